//! Points in time and spans between cells, to 2^-32 of a picosecond.
//!
//! A cell at 149.76 Mbit/s takes 2 831 196.58 ps. The fraction is part of a time, so cell i of a
//! run that starts at t is at `t + i * spacing`, without a remainder to carry. A spacing is rounded
//! down to 2^-32 ps: 10^9 cells back to back are a quarter of a picosecond early.

use lastmile_units::{BitRate, CellCount, Duration, Instant};

const FRACTION_BITS: u32 = 32;
/// The bits of a cell, times 10^12 ps a second.
const CELL_PS: u128 = CellCount::new(1).wire_bytes().bits() as u128 * 1_000_000_000_000;

/// A point in time, to 2^-32 of a picosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Moment(u128);

/// The time from one cell to the next, or any other span, to 2^-32 of a picosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Spacing(u128);

impl Moment {
    /// The beginning of a picosecond.
    #[inline]
    #[must_use]
    pub const fn at(instant: Instant) -> Self {
        Self((instant.as_ps() as u128) << FRACTION_BITS)
    }

    /// `ps` picoseconds, and `fraction` of 2^-32 ps.
    #[inline]
    pub(crate) const fn from_parts(ps: u64, fraction: u32) -> Self {
        Self(((ps as u128) << FRACTION_BITS) | fraction as u128)
    }

    /// Whole picoseconds since the clock began; the fraction is cut.
    #[inline]
    #[must_use]
    pub const fn ps(self) -> u64 {
        (self.0 >> FRACTION_BITS) as u64
    }

    /// The fraction of a picosecond, in units of 2^-32 ps.
    #[cfg(test)]
    const fn fraction(self) -> u32 {
        self.0 as u32
    }

    /// The last moment of a picosecond.
    #[inline]
    pub(crate) const fn end_of(instant: Instant) -> Self {
        Self::from_parts(instant.as_ps(), u32::MAX)
    }

    /// Units of 2^-32 ps since the clock began.
    #[inline]
    pub(crate) const fn units(self) -> u128 {
        self.0
    }

    /// The picosecond in which this moment lies.
    #[inline]
    #[must_use]
    pub const fn instant(self) -> Instant {
        Instant::from_ps(self.ps())
    }

    /// The first picosecond that does not begin before this moment.
    #[inline]
    pub(crate) const fn next_instant(self) -> Instant {
        Self(self.0 + (1 << FRACTION_BITS) - 1).instant()
    }

    /// `spacing` later.
    #[inline]
    #[must_use]
    pub const fn plus(self, spacing: Spacing) -> Self {
        Self(self.0 + spacing.0)
    }

    /// `spacing` earlier, or the beginning of the clock.
    #[inline]
    #[must_use]
    pub const fn minus(self, spacing: Spacing) -> Self {
        Self(self.0.saturating_sub(spacing.0))
    }

    /// The number of cells that start by `now`, 1 or more, if the first starts here and each other
    /// an interval later.
    #[inline]
    pub(crate) fn starts_by(self, now: Self, interval: Spacing) -> u64 {
        if self.plus(interval) > now { 1 } else { now.since(self).divided_by(interval) + 1 }
    }

    /// The span from `earlier` to here; none if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Spacing {
        Spacing(self.0.saturating_sub(earlier.0))
    }
}

impl Spacing {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The shortest span of [`Instant`]s.
    #[cfg(test)]
    pub(crate) const PICOSECOND: Self = Self(1 << FRACTION_BITS);

    /// The time of a cell at `rate`: 424 bits.
    #[must_use]
    pub const fn of_cell(rate: BitRate) -> Self {
        Self((CELL_PS << FRACTION_BITS) / rate.as_bps() as u128)
    }

    /// A span of whole picoseconds.
    #[must_use]
    pub const fn of(span: Duration) -> Self {
        Self((span.as_ps() as u128) << FRACTION_BITS)
    }

    /// `count` times as long.
    ///
    /// At most 2^95 ps, far above any number of cells on a real line.
    #[inline]
    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self(self.0 * count as u128)
    }

    /// The sum.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The difference; zero if `other` is longer.
    #[inline]
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The whole quotient; `other` is not zero.
    #[inline]
    pub(crate) fn divided_by(self, other: Self) -> u64 {
        match (u64::try_from(self.0), u64::try_from(other.0)) {
            (Ok(this), Ok(other)) => this / other,
            _ => u64::try_from(self.0 / other.0).unwrap_or(u64::MAX),
        }
    }

    /// This span in parts of `whole`, of which `whole` has `parts`, cut to an integer of at most
    /// `parts`.
    pub(crate) fn parts_of(self, whole: Self, parts: u64) -> u64 {
        let this = self.0.min(whole.0);
        u64::try_from(this.saturating_mul(u128::from(parts)).checked_div(whole.0).unwrap_or(0)).unwrap_or(parts)
    }

    /// Units of 2^-32 ps.
    #[inline]
    pub(crate) const fn units(self) -> u128 {
        self.0
    }

    /// Whole picoseconds; the fraction is cut.
    #[must_use]
    pub const fn ps(self) -> u64 {
        (self.0 >> FRACTION_BITS) as u64
    }

    /// The span in picoseconds, the fraction cut.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_ps(self.ps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ITU-T G.707 STM-1 payload: 10^6 cells of 424 bits at 149.76 Mbit/s take 424e6 / 149.76e6 s =
    /// 2.831196581196... s.
    #[test]
    fn a_million_back_to_back_cells_end_at_the_exact_picosecond() {
        let cell = Spacing::of_cell(BitRate::from_kbit_per_s(149_760));
        assert_eq!(cell.ps(), 2_831_196);
        let exact_ps = 424_000_000_u128 * 1_000_000_000_000 / 149_760_000;
        assert_eq!(u128::from(cell.times(1_000_000).ps()), exact_ps);
    }

    #[test]
    fn a_moment_is_its_picosecond_and_its_fraction() {
        let moment = Moment::from_parts(u64::MAX, u32::MAX);
        assert_eq!((moment.ps(), moment.fraction()), (u64::MAX, u32::MAX));
        assert_eq!(Moment::end_of(Instant::from_ps(u64::MAX)), moment);
        assert_eq!(Moment::at(Instant::from_ps(7)), Moment::from_parts(7, 0));
        let next =
            [(7, 0), (7, 1), (7, u32::MAX)].map(|(ps, fraction)| Moment::from_parts(ps, fraction).next_instant());
        assert_eq!(next.map(Instant::as_ps), [7, 8, 8]);
    }

    #[test]
    fn spans_of_any_length_divide() {
        let cell = Spacing::of_cell(BitRate::from_kbit_per_s(149_760));
        for count in [0, 1, 171, 1_000_000_000_000] {
            assert_eq!(cell.times(count).divided_by(cell), count);
            assert_eq!(cell.times(count + 1).minus(Spacing(1)).divided_by(cell), count);
            let start = Moment::at(Instant::from_ps(5));
            assert_eq!(start.starts_by(start.plus(cell.times(count)), cell), count + 1);
        }
    }
}
