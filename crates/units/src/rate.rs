//! Bit rates, and the exact transmission time of bits at a rate.

use core::fmt;
use core::num::NonZeroU64;

use crate::time::write_scaled;
use crate::{Duration, WireBytes};

const PS_PER_S: u64 = 1_000_000_000_000;

/// Bits per second on the line, headers and cells included. Never zero, because a line must carry
/// data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BitRate(NonZeroU64);

impl BitRate {
    /// The highest rate, 1 Tbit/s, at which no product in [`Serialiser`] overflows.
    pub const MAX: Self = Self(NonZeroU64::new(1_000_000_000_000).expect("not zero"));

    /// `bps` bits per second; `None` for zero or above [`BitRate::MAX`].
    #[must_use]
    pub const fn from_bps(bps: u64) -> Option<Self> {
        match NonZeroU64::new(bps) {
            Some(rate) if bps <= Self::MAX.0.get() => Some(Self(rate)),
            _ => None,
        }
    }

    /// `kbit` times 1000 bits per second, for constants and tests.
    ///
    /// # Panics
    /// For zero and above [`BitRate::MAX`].
    #[must_use]
    pub const fn from_kbit_per_s(kbit: u64) -> Self {
        Self::from_bps(kbit * 1_000).expect("a rate from 1 bit/s to 1 Tbit/s")
    }

    /// `mbit` times 10^6 bits per second, for constants and tests.
    ///
    /// # Panics
    /// For zero and above [`BitRate::MAX`].
    #[must_use]
    pub const fn from_mbit_per_s(mbit: u64) -> Self {
        Self::from_bps(mbit * 1_000_000).expect("a rate from 1 bit/s to 1 Tbit/s")
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0.get()
    }

    /// The transmission time of `bytes`, rounded down to a picosecond. A [`Serialiser`] carries the
    /// remainder.
    #[must_use]
    pub fn time_for(self, bytes: WireBytes) -> Duration {
        Serialiser::new(self).advance(bytes)
    }
}

/// Prints exactly, in the largest unit with a whole part: `512 kbit/s`, `1.544 Mbit/s`.
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.get() {
            bps @ 1_000_000_000.. => write_scaled(f, bps, 1_000_000_000, "Gbit/s"),
            bps @ 1_000_000.. => write_scaled(f, bps, 1_000_000, "Mbit/s"),
            bps @ 1_000.. => write_scaled(f, bps, 1_000, "kbit/s"),
            bps => write!(f, "{bps} bit/s"),
        }
    }
}

impl fmt::Debug for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Converts bytes into transmission time, exactly over any number of back-to-back packets.
///
/// The remainder of each division is carried into the next: after n back-to-back packets the error
/// of the sum is below one picosecond, not one per packet.
#[derive(Clone, Copy, Debug)]
pub struct Serialiser {
    rate: BitRate,
    /// (2^64 - 1) / rate, rounded down: a multiplication is several times cheaper than a division.
    reciprocal: u64,
    /// The remainder of the last division, below the rate, in units of 1 / rate picoseconds.
    remainder: u64,
}

impl Serialiser {
    /// A transmitter at `rate` without a remainder.
    #[must_use]
    pub const fn new(rate: BitRate) -> Self {
        Self { rate, reciprocal: u64::MAX / rate.as_bps(), remainder: 0 }
    }

    /// The rate of the line.
    #[must_use]
    pub const fn rate(&self) -> BitRate {
        self.rate
    }

    /// Discards the remainder: the line was idle, and the next packet starts on a whole picosecond.
    pub fn restart(&mut self) {
        self.remainder = 0;
    }

    /// Changes the rate during a transmission that would have taken `left` more at the rate so far. Returns the time
    /// that its unsent bits take at `rate`. No bit is lost or sent twice: the remainder is carried.
    pub fn change_rate(&mut self, rate: BitRate, left: Duration) -> Duration {
        let bits = u128::from(left.as_ps()) * u128::from(self.rate.as_bps()) + u128::from(self.remainder);
        let bps = u128::from(rate.as_bps());
        *self = Self::new(rate);
        self.remainder = u64::try_from(bits % bps).expect("below the rate");
        Duration::from_ps(u64::try_from(bits / bps).unwrap_or(u64::MAX))
    }

    /// The transmission time of `bytes`, sent back to back with the bytes before.
    #[inline]
    pub fn advance(&mut self, bytes: WireBytes) -> Duration {
        let rate = self.rate.as_bps();
        let bits = bytes.as_u64() * 8;
        // The product fits 64 bits up to 2.3 MB per call.
        let (quotient, remainder) = match bits.checked_mul(PS_PER_S).and_then(|n| n.checked_add(self.remainder)) {
            Some(numerator) => {
                // The reciprocal, and so the quotient, is too small by at most one.
                let quotient = ((u128::from(numerator) * u128::from(self.reciprocal)) >> 64) as u64;
                let remainder = numerator - quotient * rate;
                if remainder >= rate { (quotient + 1, remainder - rate) } else { (quotient, remainder) }
            }
            None => {
                let numerator = u128::from(bits) * u128::from(PS_PER_S) + u128::from(self.remainder);
                let quotient = u64::try_from(numerator / u128::from(rate)).unwrap_or(u64::MAX);
                let remainder = u64::try_from(numerator % u128::from(rate)).expect("below the rate");
                (quotient, remainder)
            }
        };
        self.remainder = remainder;
        Duration::from_ps(quotient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ITU-T G.707 STM-1 payload: 149.76 Mbit/s. 10^6 cells of 424 bits take 424e6 / 149.76e6 s =
    /// 2.831196581196... s.
    #[test]
    fn a_million_back_to_back_cells_end_within_a_nanosecond() {
        let mut line = Serialiser::new(BitRate::from_kbit_per_s(149_760));
        let mut end = Duration::ZERO;
        for _ in 0..1_000_000 {
            end += line.advance(WireBytes::new(53));
        }
        let exact_ps = 424_000_000_u128 * 1_000_000_000_000 / 149_760_000;
        assert_eq!(u128::from(end.as_ps()), exact_ps);
    }

    #[test]
    fn large_transfers_take_the_wide_path_with_the_same_result() {
        let mut wide = Serialiser::new(BitRate::from_kbit_per_s(3));
        let mut narrow = wide;
        let mut sum = Duration::ZERO;
        for _ in 0..3_000 {
            sum += narrow.advance(WireBytes::new(1_000));
        }
        assert_eq!(wide.advance(WireBytes::new(3_000_000)), sum);
    }

    /// The quotient equals that of a division for rates and sizes of all magnitudes: the lowest and
    /// highest rate, powers of two and their neighbours.
    #[test]
    fn the_quotient_is_that_of_a_division() {
        let rates = (0..40).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit >> 1]);
        for rate in rates.chain([999_999_999_999, 1_000_000_000_000]).filter_map(BitRate::from_bps) {
            let mut serialiser = Serialiser::new(rate);
            let mut carried = 0;
            for bytes in [1, 40, 53, 1500, 65_535, 1_000_003, 2_300_000].into_iter().cycle().take(50) {
                let numerator = bytes * 8 * u128::from(PS_PER_S) + carried;
                let (quotient, remainder) =
                    (numerator / u128::from(rate.as_bps()), numerator % u128::from(rate.as_bps()));
                carried = remainder;
                let took = serialiser.advance(WireBytes::new(bytes as u64));
                assert_eq!(u128::from(took.as_ps()), quotient, "{bytes} bytes at {rate}");
            }
        }
    }

    #[test]
    fn zero_and_absurd_rates_are_refused() {
        assert_eq!(BitRate::from_bps(0), None);
        assert_eq!(BitRate::from_bps(1_000_000_000_001), None);
    }

    #[test]
    fn a_rate_prints_exactly() {
        assert_eq!(BitRate::from_kbit_per_s(1544).to_string(), "1.544 Mbit/s");
        assert_eq!(BitRate::from_kbit_per_s(512).to_string(), "512 kbit/s");
    }
}
