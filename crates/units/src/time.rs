//! Points in time and spans, as integer picoseconds.
//!
//! Picoseconds are needed because an ATM cell at 149.76 Mbit/s lasts 2 831 196.58 ps: a coarser
//! clock would lose cells over a long run. An unsigned 64-bit count of picoseconds spans 213 days.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// A point in time: picoseconds since the clock in use began (simulated zero, or the start of a
/// live program).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Instant(u64);

/// A span of time in picoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Duration(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);
    /// The last representable time, 213 days. It does not mean "never", which is `None`.
    pub const MAX: Self = Self(u64::MAX);

    /// The time `ps` picoseconds after the start of the clock.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start of the clock.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the clock, for statistics and printing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or `None` after the end of the clock.
    #[must_use]
    pub const fn checked_add(self, span: Duration) -> Option<Self> {
        match self.0.checked_add(span.0) {
            Some(ps) => Some(Self(ps)),
            None => None,
        }
    }

    /// `self + span`, at most the end of the clock.
    #[must_use]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Duration {
    /// A span of zero.
    pub const ZERO: Self = Self(0);
    /// The longest span: 213 days.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ps` picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds.
    ///
    /// # Panics
    /// Above 213 days, as do all constructors of this type.
    #[inline]
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(scaled(ns, PS_PER_NS))
    }

    /// A span of `us` microseconds.
    #[inline]
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(scaled(us, PS_PER_US))
    }

    /// A span of `ms` milliseconds.
    #[inline]
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(scaled(ms, PS_PER_MS))
    }

    /// A span of `s` seconds.
    #[inline]
    #[must_use]
    pub const fn from_s(s: u64) -> Self {
        Self(scaled(s, PS_PER_S))
    }

    /// The span in picoseconds.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The span in whole nanoseconds, rounded down.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// The span in whole microseconds, rounded down.
    #[must_use]
    pub const fn as_us(self) -> u64 {
        self.0 / PS_PER_US
    }

    /// The span in whole milliseconds, rounded down.
    #[must_use]
    pub const fn as_ms(self) -> u64 {
        self.0 / PS_PER_MS
    }

    /// The span in seconds, for statistics and printing.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// True for a span of zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self - other`, zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self * factor`, at most the longest span.
    #[must_use]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The next multiple of `granule` at or above `self`; `self` for a granule of zero. Models a
    /// coarse clock.
    #[must_use]
    pub const fn round_up_to(self, granule: Self) -> Self {
        if granule.0 == 0 {
            return self;
        }
        Self(self.0.div_ceil(granule.0).saturating_mul(granule.0))
    }
}

#[inline]
const fn scaled(count: u64, ps: u64) -> u64 {
    match count.checked_mul(ps) {
        Some(ps) => ps,
        None => panic!("a span of more than 213 days"),
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0 + span.0)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}

/// The span since an earlier time. A later time is a broken invariant: use [`Instant::since`] where
/// it may occur.
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        debug_assert!(earlier <= self, "time went back: {earlier:?} is later than {self:?}");
        Duration(self.0.wrapping_sub(earlier.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// The number of whole spans of the divisor in the dividend.
impl Div for Duration {
    type Output = u64;
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}

impl Sum for Duration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Prints seconds with all decimals of the value: `1.5 s`.
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, PS_PER_S, "s")
    }
}

/// Prints in the largest unit with a whole part, with all decimals of the value: `20 ms`,
/// `2.831196 us`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 s"),
            PS_PER_S.. => write_scaled(f, self.0, PS_PER_S, "s"),
            PS_PER_MS.. => write_scaled(f, self.0, PS_PER_MS, "ms"),
            PS_PER_US.. => write_scaled(f, self.0, PS_PER_US, "us"),
            PS_PER_NS.. => write_scaled(f, self.0, PS_PER_NS, "ns"),
            ps => write!(f, "{ps} ps"),
        }
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes `count / scale` exactly, in decimal, without trailing zeros.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, count: u64, scale: u64, unit: &str) -> fmt::Result {
    let (whole, mut rest) = (count / scale, count % scale);
    write!(f, "{whole}")?;
    if rest != 0 {
        f.write_str(".")?;
        let mut digit = scale / 10;
        while rest != 0 {
            write!(f, "{}", rest / digit)?;
            rest %= digit;
            digit /= 10;
        }
    }
    write!(f, " {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_exactly_in_its_largest_unit() {
        assert_eq!(Duration::from_ms(20).to_string(), "20 ms");
        assert_eq!(Duration::from_ps(2_831_196).to_string(), "2.831196 us");
        assert_eq!(Duration::from_ms(1500).to_string(), "1.5 s");
        assert_eq!(Duration::ZERO.to_string(), "0 s");
        assert_eq!(Duration::from_ps(7).to_string(), "7 ps");
    }

    #[test]
    fn a_coarse_clock_rounds_up() {
        assert_eq!(Duration::from_ms(101).round_up_to(Duration::from_ms(100)), Duration::from_ms(200));
        assert_eq!(Duration::from_ms(200).round_up_to(Duration::from_ms(100)), Duration::from_ms(200));
        assert_eq!(Duration::from_ms(101).round_up_to(Duration::ZERO), Duration::from_ms(101));
    }

    #[test]
    fn the_span_since_a_later_point_is_zero() {
        assert_eq!(Instant::ZERO.since(Instant::from_ps(5)), Duration::ZERO);
    }
}
