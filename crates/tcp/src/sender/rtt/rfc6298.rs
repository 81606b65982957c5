//! The retransmission timeout of RFC 6298.
//!
//! Differs: the minimum is settable, 200 ms by default. On a coarse clock the timeout is at least two
//! ticks, since a timer of one tick may fire at once.
//! Cost: shifts and one multiplication for each measurement, about one a round trip.

use lastmile_units::Duration;

use crate::TimerConfig;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rfc6298 {
    estimate: Option<Estimate>,
    /// The current timeout, doublings included.
    rto: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Estimate {
    srtt: Duration,
    rttvar: Duration,
}

impl Rfc6298 {
    pub(super) fn new(timers: &TimerConfig) -> Self {
        // RFC 6298 (2.1) Until a measurement has been made, RTO is 1 second (settable here).
        Self { estimate: None, rto: timers.initial_rto.max(Duration::from_ps(1)) }
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        self.estimate.as_ref().map(|estimate| estimate.srtt)
    }

    #[inline]
    pub(super) fn rto(&self) -> Duration {
        self.rto
    }

    pub(super) fn sample(&mut self, rtt: Duration, timers: &TimerConfig) {
        let rtt = rtt.max(Duration::from_ps(1));
        let estimate = match &mut self.estimate {
            // RFC 6298 (2.2) SRTT <- R, RTTVAR <- R/2.
            none @ None => none.insert(Estimate { srtt: rtt, rttvar: rtt / 2 }),
            // RFC 6298 (2.3) RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R|, then SRTT <- 7/8 SRTT + 1/8 R.
            Some(estimate) => {
                let (srtt, rttvar) = (estimate.srtt.as_ps(), estimate.rttvar.as_ps());
                let error = rtt.as_ps().abs_diff(srtt);
                estimate.rttvar = Duration::from_ps(rttvar - rttvar / 4 + error / 4);
                estimate.srtt = Duration::from_ps(srtt - srtt / 8 + rtt.as_ps() / 8).max(Duration::from_ps(1));
                estimate
            }
        };
        // RFC 6298 (2.2), (2.3) RTO <- SRTT + max(G, K * RTTVAR) with K = 4.
        let spread = estimate.rttvar.saturating_mul(4).max(timers.clock_granularity);
        let rto = Duration::from_ps(estimate.srtt.as_ps().saturating_add(spread.as_ps()));
        // RFC 6298 (2.4), (2.5): a minimum and a maximum.
        let minimum = timers.min_rto.max(timers.clock_granularity.saturating_mul(2)).max(Duration::from_ps(1));
        self.rto = rto.max(minimum).min(timers.max_rto.max(minimum));
    }

    pub(super) fn back_off(&mut self, timers: &TimerConfig) {
        // RFC 6298 (5.5) RTO <- RTO * 2, up to the maximum of (2.5).
        self.rto = self.rto.saturating_mul(2).min(timers.max_rto.max(self.rto));
    }

    pub(super) fn set_rto(&mut self, rto: Duration) {
        self.rto = rto;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers(min_ms: u64) -> TimerConfig {
        TimerConfig { min_rto: Duration::from_ms(min_ms), ..TimerConfig::default() }
    }

    /// RFC 6298 (2.2): R = 100 ms gives SRTT 100, RTTVAR 50, RTO 300 ms. (2.3): R' = 180 ms gives RTTVAR
    /// 37.5 + 20 = 57.5, SRTT 87.5 + 22.5 = 110, RTO 340 ms.
    #[test]
    fn the_timeout_follows_mean_and_deviation() {
        let timers = timers(1);
        let mut rtt = Rfc6298::new(&timers);
        assert_eq!(rtt.rto(), Duration::from_s(1));
        rtt.sample(Duration::from_ms(100), &timers);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(Duration::from_ms(100)), Duration::from_ms(300)));
        rtt.sample(Duration::from_ms(180), &timers);
        assert_eq!((rtt.srtt(), rtt.rto()), (Some(Duration::from_ms(110)), Duration::from_ms(340)));
    }

    #[test]
    fn the_timeout_keeps_its_minimum_and_doubles_to_its_maximum() {
        let timers = TimerConfig { max_rto: Duration::from_ms(700), ..timers(200) };
        let mut rtt = Rfc6298::new(&timers);
        rtt.sample(Duration::from_ms(10), &timers);
        assert_eq!(rtt.rto(), Duration::from_ms(200));
        rtt.back_off(&timers);
        assert_eq!(rtt.rto(), Duration::from_ms(400));
        rtt.back_off(&timers);
        assert_eq!(rtt.rto(), Duration::from_ms(700));
    }

    #[test]
    fn a_coarse_clock_adds_its_tick_and_asks_for_two() {
        let timers = TimerConfig { clock_granularity: Duration::from_ms(500), ..timers(1) };
        let mut rtt = Rfc6298::new(&timers);
        for _ in 0..40 {
            rtt.sample(Duration::from_ms(500), &timers);
        }
        assert!(rtt.rto() >= Duration::from_ms(1000));
    }
}
