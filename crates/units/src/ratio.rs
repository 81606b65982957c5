//! Shares of a whole, from 0 to 100 %, without floats.

use core::fmt;

use crate::BitRate;
use crate::time::write_scaled;

const WHOLE: u32 = 1_000_000_000;
const PER_PERCENT: u32 = WHOLE / 100;
const PER_PPM: u32 = WHOLE / 1_000_000;

/// A share of a whole, from 0 to 100 %, in steps of one part in 10^9.
///
/// The resolution suffices for the bit error ratio of 10^-7 that ADSL lines are set up for (ITU-T
/// G.992.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Ratio(u32);

impl Ratio {
    /// 0 %.
    pub const ZERO: Self = Self(0);
    /// 100 %.
    pub const ONE: Self = Self(WHOLE);

    /// `parts` in 10^9; `None` above 100 %.
    #[must_use]
    pub const fn from_parts_per_billion(parts: u32) -> Option<Self> {
        if parts <= WHOLE { Some(Self(parts)) } else { None }
    }

    /// `parts` in 10^6; `None` above 100 %.
    #[must_use]
    pub const fn from_ppm(parts: u32) -> Option<Self> {
        match parts.checked_mul(PER_PPM) {
            Some(parts) => Self::from_parts_per_billion(parts),
            None => None,
        }
    }

    /// `percent` parts in 100; `None` above 100 %.
    #[must_use]
    pub const fn from_percent(percent: u32) -> Option<Self> {
        match percent.checked_mul(PER_PERCENT) {
            Some(parts) => Self::from_parts_per_billion(parts),
            None => None,
        }
    }

    /// Parts in 10^9.
    #[must_use]
    pub const fn as_parts_per_billion(self) -> u32 {
        self.0
    }

    /// A number from 0 to 1, for statistics and printing.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// This share of a count, rounded down. Never overflows, because a share is at most the whole.
    #[must_use]
    pub const fn of(self, count: u64) -> u64 {
        let share = count as u128 * self.0 as u128 / WHOLE as u128;
        share as u64
    }

    /// This share of a rate, rounded down to a bit per second; `None` below 1 bit/s.
    #[must_use]
    pub const fn of_rate(self, rate: BitRate) -> Option<BitRate> {
        BitRate::from_bps(self.of(rate.as_bps()))
    }
}

/// Prints percent with all decimals of the value: `20 %`, `0.00001 %`.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, u64::from(self.0), u64::from(PER_PERCENT), "%")
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_whole_is_no_share() {
        assert_eq!(Ratio::from_percent(100), Some(Ratio::ONE));
        assert_eq!(Ratio::from_percent(101), None);
        assert_eq!(Ratio::from_ppm(1_000_001), None);
        assert_eq!(Ratio::from_ppm(u32::MAX), None);
    }

    #[test]
    fn a_share_rounds_down_and_never_overflows() {
        let fifth = Ratio::from_percent(20).unwrap();
        assert_eq!(fifth.of(427), 85);
        assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX);
        assert_eq!(fifth.of_rate(BitRate::from_kbit_per_s(767)), BitRate::from_bps(153_400));
        assert_eq!(fifth.of_rate(BitRate::from_bps(4).unwrap()), None);
    }

    #[test]
    fn a_share_prints_exactly() {
        assert_eq!(Ratio::from_percent(20).unwrap().to_string(), "20 %");
        assert_eq!(Ratio::from_parts_per_billion(1).unwrap().to_string(), "0.0000001 %");
        assert_eq!(Ratio::ZERO.to_string(), "0 %");
    }
}
