//! The ingress policer of Linux: a token bucket, a peak rate and a largest packet, and no queue.
//!
//! Published: tc-police(8), `rate`, `burst`, `mtu`, `peakrate`.
//!
//! A packet conforms if it is not larger than `mtu`, the bucket of `rate` covers it, and so does
//! that of `peakrate`, which holds `mtu`. An exceeding packet takes nothing from either. On
//! ingress, where packets cannot be queued, an early drop slows TCP down and keeps the queue at the
//! far end of the line short.
//!
//! Differs: sizes are bytes on the wire, which tc counts only with a size table (tc-stab(8)). A
//! burst below the largest packet is refused; tc drops each such packet for good. The estimator of
//! tc (`avrate`) is not implemented.
//! Cost: a multiplication a packet, two with a peak rate.

use lastmile_units::{BitRate, Instant, WireBytes};

use super::{Bucket, Color, MeterError, TokenBucket, fits};

/// Parameters of an ingress policer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rate on the wire, headers and cells included.
    pub rate: BitRate,
    /// Bytes on the wire that conform at once after a pause.
    pub burst: WireBytes,
    /// The rate within a burst; exceeds `rate`.
    pub peak: Option<BitRate>,
    /// The largest conforming packet, in bytes on the wire, and the capacity of the peak rate's
    /// bucket.
    pub mtu: WireBytes,
}

impl Config {
    pub(super) fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        if let Some(peak) = self.peak
            && peak <= self.rate
        {
            return Err(MeterError::PeakNotAboveRate { peak, rate: self.rate });
        }
        fits(Bucket::Burst, self.burst, largest)?;
        fits(Bucket::Mtu, self.mtu, largest)
    }
}

/// An ingress policer.
#[derive(Clone, Debug)]
pub struct Police {
    bucket: TokenBucket,
    peak: Option<TokenBucket>,
    mtu: WireBytes,
}

impl Police {
    /// Both buckets full at the beginning of the clock.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            bucket: TokenBucket::new(config.rate, config.burst),
            peak: config.peak.map(|rate| TokenBucket::new(rate, config.mtu)),
            mtu: config.mtu,
        }
    }

    /// Green, or yellow for a packet that exceeds.
    pub fn conform(&mut self, now: Instant, size: WireBytes) -> Color {
        let small = size <= self.mtu;
        let slow = self.peak.as_mut().is_none_or(|peak| peak.covers(now, size));
        let conforms = small && slow && self.bucket.take(now, size);
        if conforms && let Some(peak) = &mut self.peak {
            peak.charge(size);
        }
        Color::conforms(conforms)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    fn passes(police: &mut Police, ms: u64, size: u64) -> bool {
        police.conform(Instant::ZERO + Duration::from_ms(ms), WireBytes::new(size)) == Color::Green
    }

    fn config(peak: Option<BitRate>) -> Config {
        let (burst, mtu) = (WireBytes::new(4000), WireBytes::new(1500));
        // 8 kbit/s are a byte a millisecond.
        Config { rate: BitRate::from_kbit_per_s(8), burst, peak, mtu }
    }

    #[test]
    fn a_burst_conforms_and_then_the_rate() {
        let mut police = Police::new(&config(None));
        assert!(passes(&mut police, 0, 1500) && passes(&mut police, 0, 1500) && !passes(&mut police, 0, 1500));
        assert!(passes(&mut police, 0, 1000), "what exceeds takes nothing");
        assert!(!passes(&mut police, 999, 1000) && passes(&mut police, 1000, 1000));
    }

    #[test]
    fn a_packet_larger_than_the_mtu_exceeds() {
        let mut police = Police::new(&config(None));
        assert!(!passes(&mut police, 0, 1501) && passes(&mut police, 0, 1500));
    }

    /// The peak rate, 2 bytes a millisecond, holds 1500. A packet that it does not cover takes
    /// nothing from the burst: at 0 ms 1500, at 750 ms 1500, and 1750 of 4000 are left (750 were
    /// earned), so 1500 more at 1500 ms.
    #[test]
    fn a_peak_rate_spreads_the_burst_and_neither_bucket_pays_alone() {
        let mut police = Police::new(&config(Some(BitRate::from_kbit_per_s(16))));
        assert!(passes(&mut police, 0, 1500));
        for ms in 0..750 {
            assert!(!passes(&mut police, ms, 1500), "{ms} ms");
        }
        assert!(passes(&mut police, 750, 1500) && passes(&mut police, 1500, 1500));
        // 4000 + 1500 - 4500 = 1000 in the bucket: the peak rate would pay 1500 at 2250 ms, the
        // rate pays 1500 at 2000 ms.
        assert!(!passes(&mut police, 2249, 1500) && passes(&mut police, 2250, 1500));
        // 1000 + 750 - 1500 = 250 left, 1500 at 3500 ms: here the rate is the limit.
        assert!(!passes(&mut police, 3499, 1500) && passes(&mut police, 3500, 1500));
    }
}
