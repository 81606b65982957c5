//! Rates of payload, and the gains that multiply them.
//!
//! Linux keeps bandwidths in segments per microsecond, shifted by 24 bits, and gains in 256ths. Here a rate has whole
//! octets per second, and a gain is in 256ths too.
//! Cost: a 128-bit product and a division for each conversion.

use lastmile_units::Duration;

/// Picoseconds of a second.
const SECOND: u128 = 1_000_000_000_000;

/// Payload octets per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct OctetRate(u64);

impl OctetRate {
    pub(crate) const ZERO: Self = Self(0);

    pub(crate) const fn from_octets_per_s(octets: u64) -> Self {
        Self(octets)
    }

    pub(crate) const fn octets_per_s(self) -> u64 {
        self.0
    }

    /// The rate of `octets` in `span`; the largest rate for no time.
    pub(crate) fn of(octets: u64, span: Duration) -> Self {
        let rate = (u128::from(octets) * SECOND).checked_div(u128::from(span.as_ps()));
        Self(rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(u64::MAX))
    }

    /// The octets that this rate carries in `span`, rounded down.
    pub(crate) fn octets_in(self, span: Duration) -> u64 {
        u64::try_from(u128::from(self.0) * u128::from(span.as_ps()) / SECOND).unwrap_or(u64::MAX)
    }

    /// The time that `octets` take; `None` at a rate of zero.
    pub(crate) fn time_for(self, octets: u64) -> Option<Duration> {
        let ps = (u128::from(octets) * SECOND).checked_div(u128::from(self.0))?;
        Some(Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)))
    }

    pub(crate) fn times(self, gain: Gain) -> Self {
        Self(gain.of(self.0))
    }

    /// The distance between two rates.
    pub(crate) fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

/// A factor in 256ths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Gain(u32);

impl Gain {
    pub(crate) const ONE: Self = Self(256);

    pub(crate) const fn from_256ths(parts: u32) -> Self {
        Self(parts)
    }

    /// The product, rounded down.
    pub(crate) fn of(self, value: u64) -> u64 {
        u64::try_from(u128::from(value) * u128::from(self.0) / 256).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mbyte/s for 20 ms is 20 000 octets, which take 20 ms.
    #[test]
    fn octets_time_and_rate_are_one_relation() {
        let rate = OctetRate::of(20_000, Duration::from_ms(20));
        assert_eq!(rate.octets_per_s(), 1_000_000);
        assert_eq!(rate.octets_in(Duration::from_ms(20)), 20_000);
        assert_eq!(rate.time_for(20_000), Some(Duration::from_ms(20)));
        assert_eq!(OctetRate::ZERO.time_for(1), None);
        assert_eq!(OctetRate::of(1, Duration::ZERO).octets_per_s(), u64::MAX);
    }

    #[test]
    fn a_gain_multiplies_in_256ths() {
        assert_eq!(Gain::from_256ths(320).of(1000), 1250);
        assert_eq!(OctetRate::from_octets_per_s(1000).times(Gain::from_256ths(192)).octets_per_s(), 750);
    }
}
