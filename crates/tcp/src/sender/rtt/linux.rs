//! The retransmission timeout as Linux computes it: the minimum applies to the variance, which decays slowly.
//!
//! Published: P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002, section 4; RFC
//! 6298 for the shared parts.
//!
//! RFC 6298 adds SRTT and four deviations and bounds the sum below. Here
//!
//! - the term of the variance alone has the minimum, so the timeout is at least SRTT + `min_rto`;
//! - this term is the largest deviation within a round trip. It rises at once, and at the end of a round
//!   with a smaller deviation it falls by a quarter of the difference;
//! - a round trip so far below SRTT that the deviation would grow counts an eighth, since shorter round
//!   trips are no reason to wait longer;
//! - every acknowledgement measures, so SRTT follows within a fraction of a round.
//!
//! Differs: a kernel's ticks of up to 4 ms are absent; on a coarse clock the minimum is at least a tick.
//! Spans are whole microseconds, as in the kernel; those beyond 500 s count as 500 s.
//! Cost: shifts and additions for each acknowledgement.

use lastmile_units::Duration;

use crate::TimerConfig;
use crate::sender::flight::Outstanding;

/// The longest measurement, in microseconds.
const LONGEST: u64 = 500_000_000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Linux {
    estimate: Option<Estimate>,
    /// The current timeout, doublings included, in microseconds.
    rto: u32,
}

/// The results of measurements, in microseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Estimate {
    /// Eight times the smoothed round trip.
    srtt8: u32,
    /// Four times the mean deviation.
    deviation4: u32,
    /// The largest value of `deviation4` in this round, at least the minimum.
    largest4: u32,
    /// The term of the variance.
    variance: u32,
    /// The shortest round trip.
    least: u32,
    /// The round ends when this octet is acknowledged: one past all that were in flight at its beginning.
    round_end: u64,
}

impl Linux {
    pub(super) fn new(timers: &TimerConfig) -> Self {
        Self { estimate: None, rto: micros(timers.initial_rto).max(1) }
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        // Eighths of a microsecond are 125 ns.
        self.estimate.as_ref().map(|estimate| Duration::from_ps(u64::from(estimate.srtt8) * 125_000))
    }

    #[inline]
    pub(super) fn rto(&self) -> Duration {
        Duration::from_us(u64::from(self.rto))
    }

    /// The shortest round trip, in microseconds.
    pub(super) fn least_us(&self) -> Option<u32> {
        self.estimate.as_ref().map(|estimate| estimate.least)
    }

    pub(super) fn set_rto(&mut self, rto: Duration) {
        self.rto = micros(rto);
    }

    pub(super) fn sample(&mut self, rtt: Duration, outstanding: Outstanding, timers: &TimerConfig) {
        let rtt = (rtt.as_ps() / 1_000_000).clamp(1, LONGEST) as u32;
        let floor = micros(timers.min_rto.max(timers.clock_granularity)).max(1);
        let estimate = match &mut self.estimate {
            Some(estimate) => {
                estimate.follow(rtt, floor, outstanding);
                estimate
            }
            none => none.insert(Estimate::first(rtt, floor, outstanding)),
        };
        self.rto = (estimate.srtt8 / 8 + estimate.variance).min(micros(timers.max_rto).max(1));
    }

    pub(super) fn back_off(&mut self, timers: &TimerConfig) {
        self.rto = self.rto.saturating_mul(2).min(micros(timers.max_rto).max(self.rto));
    }
}

impl Estimate {
    fn first(rtt: u32, floor: u32, outstanding: Outstanding) -> Self {
        // Four times half of the first round trip.
        let deviation4 = rtt * 2;
        let variance = deviation4.max(floor);
        let round_end = outstanding.max;
        Self { srtt8: rtt * 8, deviation4, largest4: variance, variance, least: rtt, round_end }
    }

    #[inline]
    fn follow(&mut self, rtt: u32, floor: u32, outstanding: Outstanding) {
        self.least = self.least.min(rtt);
        self.smooth(rtt);
        if self.deviation4 > self.largest4 {
            self.largest4 = self.deviation4;
            self.variance = self.variance.max(self.largest4);
        }
        if self.round_end < outstanding.una {
            if self.largest4 < self.variance {
                self.variance -= (self.variance - self.largest4) / 4;
            }
            self.round_end = outstanding.max;
            self.largest4 = floor;
        }
    }

    /// SRTT and the mean deviation move towards a measurement.
    #[inline]
    fn smooth(&mut self, rtt: u32) {
        let srtt = self.srtt8 / 8;
        let error = rtt.abs_diff(srtt);
        // 7/8 SRTT + 1/8 R.
        self.srtt8 = self.srtt8 - srtt + rtt;
        // 3/4 of the deviation + 1/4 of the error.
        let deviation = self.deviation4 / 4;
        if rtt < srtt && error > deviation {
            self.deviation4 += (error - deviation) / 8;
        } else {
            self.deviation4 = self.deviation4 - deviation + error;
        }
    }
}

/// Whole microseconds, at most half of the range.
fn micros(span: Duration) -> u32 {
    (span.as_ps() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn timers() -> TimerConfig {
        TimerConfig { rto: crate::Rto::Linux, ..TimerConfig::default() }
    }

    fn ms(count: u64) -> Duration {
        Duration::from_ms(count)
    }

    /// The cumulative acknowledgement stays at or below the end of the first round.
    const WITHIN: Outstanding = Outstanding { una: 500, max: 1000 };

    fn after(samples: &[u64]) -> Linux {
        let timers = timers();
        let mut rtt = Linux::new(&timers);
        for &sample in samples {
            rtt.sample(ms(sample), WITHIN, &timers);
        }
        rtt
    }

    fn estimate(rtt: &Linux) -> &Estimate {
        rtt.estimate.as_ref().expect("a measurement")
    }

    /// First 100 ms: four deviations of R/2 are 200 ms, no less than the minimum. RTO = 100 + 200.
    #[test]
    fn the_first_round_trip_gives_half_of_it_as_deviation() {
        let rtt = after(&[100]);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(ms(100)), ms(300)));
        assert_eq!(
            (estimate(&rtt).deviation4, estimate(&rtt).largest4, estimate(&rtt).variance),
            (200_000, 200_000, 200_000)
        );
        // 10 ms: the minimum applies to the variance, which is added.
        assert_eq!(after(&[10]).rto(), ms(210));
    }

    /// 180 ms after 100 ms: the error 80 ms, the deviation 50: 4 * (3/4 * 50 + 1/4 * 80) = 230; SRTT = 87.5 + 22.5.
    #[test]
    fn a_longer_round_trip_raises_the_variance_at_once() {
        let rtt = after(&[100, 180]);
        assert_eq!(rtt.srtt(), Some(ms(110)));
        assert_eq!((estimate(&rtt).deviation4, estimate(&rtt).variance), (230_000, 230_000));
        assert_eq!(rtt.rto(), ms(340));
    }

    /// 900 ms down to 100: the error 800 ms exceeds the deviation 450 by 350, of which an eighth counts:
    /// 4 * 450 + 350 / 8 = 1843.75; SRTT = 7/8 * 900 + 1/8 * 100 = 800. By the RFC the deviation would be 537.5.
    #[test]
    fn a_shorter_round_trip_counts_an_eighth() {
        let rtt = after(&[900, 100]);
        assert_eq!(rtt.srtt(), Some(ms(800)));
        assert_eq!((estimate(&rtt).deviation4, estimate(&rtt).variance), (1_843_750, 1_843_750));
    }

    /// 900 ms down to 600, within the deviation of 450: 4 * (3/4 * 450 + 1/4 * 300) = 1650.
    #[test]
    fn a_shorter_round_trip_within_the_deviation_counts_as_any() {
        let rtt = after(&[900, 600]);
        assert_eq!(estimate(&rtt).deviation4, 1_650_000);
        assert_eq!(estimate(&rtt).variance, 1_800_000, "the largest of the round holds");
    }

    /// The variance is 4 * 500 = 2000 ms after a first round trip of 1 s. Equal ones reduce the deviation
    /// by a quarter each: 1500, 1125, ... The end of a round reduces the variance by a quarter of its
    /// distance from the largest deviation, which is 2000 in the first round and 1125 in the second.
    #[test]
    fn the_variance_falls_by_a_quarter_once_a_round() {
        let timers = timers();
        let mut rtt = after(&[1000]);
        rtt.sample(ms(1000), Outstanding { una: 1000, max: 2000 }, &timers);
        assert_eq!(
            (estimate(&rtt).deviation4, estimate(&rtt).variance),
            (1_500_000, 2_000_000),
            "the round ends beyond 1000"
        );
        rtt.sample(ms(1000), Outstanding { una: 1001, max: 2001 }, &timers);
        assert_eq!(
            (estimate(&rtt).deviation4, estimate(&rtt).variance, estimate(&rtt).largest4),
            (1_125_000, 2_000_000, 200_000)
        );
        rtt.sample(ms(1000), Outstanding { una: 1500, max: 2500 }, &timers);
        assert_eq!(
            (estimate(&rtt).deviation4, estimate(&rtt).variance, estimate(&rtt).largest4),
            (843_750, 2_000_000, 843_750)
        );
        rtt.sample(ms(1000), Outstanding { una: 2002, max: 3000 }, &timers);
        // 2000 - (2000 - 843.75) / 4.
        assert_eq!((estimate(&rtt).deviation4, estimate(&rtt).variance), (632_813, 1_710_938));
        assert_eq!(rtt.rto(), Duration::from_us(2_710_938));
    }

    #[test]
    fn the_timeout_doubles_to_its_maximum_and_a_measurement_ends_that() {
        let timers = TimerConfig { max_rto: ms(700), ..timers() };
        let mut rtt = Linux::new(&timers);
        rtt.sample(ms(100), WITHIN, &timers);
        rtt.back_off(&timers);
        assert_eq!(rtt.rto(), ms(600));
        rtt.back_off(&timers);
        assert_eq!(rtt.rto(), ms(700));
        rtt.sample(ms(100), WITHIN, &timers);
        assert_eq!(rtt.rto(), ms(300));
    }

    proptest! {
        /// For all measurements, the timeout lies between SRTT + `min_rto` and the maximum, SRTT within the
        /// range of the measurements, and the variance is at least four deviations.
        #[test]
        fn the_minimum_applies_to_the_variance(
            samples in proptest::collection::vec((1_u64..20_000_000, 0_u64..3000), 1..80),
            min_us in 1_u64..2_000_000,
        ) {
            let timers = TimerConfig { min_rto: Duration::from_us(min_us), ..timers() };
            let mut rtt = Linux::new(&timers);
            let (mut una, mut least, mut most) = (1, u64::MAX, 0);
            for (us, acked) in samples {
                una += acked;
                rtt.sample(Duration::from_us(us), Outstanding { una, max: una + 5000 }, &timers);
                (least, most) = (least.min(us), most.max(us));
                let srtt = rtt.srtt().expect("measured").as_ps() / 1_000_000;
                prop_assert!((least.saturating_sub(1)..=most).contains(&srtt), "{srtt} of {least} to {most}");
                let rto = rtt.rto().as_ps() / 1_000_000;
                prop_assert!(rto >= (srtt + min_us).min(120_000_000), "{rto}");
                prop_assert!(rto <= 120_000_000);
                prop_assert!(estimate(&rtt).variance >= estimate(&rtt).deviation4);
            }
        }

        /// Falling round trips never raise the timeout.
        #[test]
        fn a_falling_round_trip_does_not_raise_the_timeout(
            first in 1_000_u64..10_000_000,
            cuts in proptest::collection::vec(1_u64..100, 1..60),
        ) {
            let timers = timers();
            let mut rtt = Linux::new(&timers);
            let mut us = first;
            rtt.sample(Duration::from_us(us), WITHIN, &timers);
            let mut before = rtt.rto();
            for percent in cuts {
                us = (us * percent / 100).max(1);
                rtt.sample(Duration::from_us(us), WITHIN, &timers);
                prop_assert!(rtt.rto() <= before);
                before = rtt.rto();
            }
        }
    }
}
