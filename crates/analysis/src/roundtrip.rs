//! Round trips between the capture and the receiver of a direction: from a segment to the ACK that
//! it caused.
//!
//! Published: Karn and Partridge 1987 (a retransmitted segment gives no sample), RFC 7323,
//! section 4 (with timestamps it does), RFC 6298, section 2 (smoothing). Differs: a segment that
//! fills a hole gives no sample, because the data above it delayed the ACK. A SACK block that reports a
//! segment for the first time gives one. Linux smooths the sample of the oldest segment that an ACK acknowledges.
//! Cost: a histogram of two significant digits, allocated with the first value: percentiles are within 1 %.

use hdrhistogram::Histogram;
use lastmile_units::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    /// Round trips in microseconds.
    histogram: Option<Histogram<u32>>,
    least: Option<Duration>,
    smoothed: Option<Duration>,
}

impl RoundTrip {
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let histogram = self.histogram.get_or_insert_with(|| Histogram::new(2).expect("two digits are allowed"));
        histogram.record(rtt.as_us().min(MOST_US)).expect("it grows with its values");
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        // RFC 6298 (2.3), with alpha = 1/8.
        self.smoothed = Some(self.smoothed.map_or(rtt, |smoothed| smoothed - smoothed / 8 + rtt / 8));
    }

    pub(crate) fn least(&self) -> Option<Duration> {
        self.least
    }

    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// The quantile at this share.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let histogram = self.histogram.as_ref()?;
        Some(Duration::from_us(histogram.value_at_quantile(share)))
    }
}

/// A thousand hours, which bounds the growth of the histogram.
const MOST_US: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_one_percent() {
        let mut trips = RoundTrip::default();
        (1..=100).for_each(|ms| trips.sample(Duration::from_ms(ms)));
        let within = |share, ms: f64| (trips.quantile(share).unwrap().as_secs_f64() * 1e3 / ms - 1.0).abs() < 0.01;
        assert!(within(0.5, 50.0) && within(0.95, 95.0));
        assert_eq!((trips.count(), trips.least()), (100, Some(Duration::from_ms(1))));
    }
}
