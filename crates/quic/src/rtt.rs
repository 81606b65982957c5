//! Round trips, and the times that follow from them.
//!
//! Published: RFC 9002, section 5 (estimates), 6.1.2 (time threshold), 6.2.1 (probe timeout), 7.6.1 (persistent
//! congestion).
//! Differs: nothing.
//! Cost: a few additions and shifts for each sample.

use lastmile_units::Duration;

/// RFC 9002, section 6.1.2: kGranularity.
const GRANULARITY: Duration = Duration::from_ms(1);
/// RFC 9002, section 6.2.2: kInitialRtt.
const INITIAL: Duration = Duration::from_ms(333);
/// RFC 9002, section 7.6.1: kPersistentCongestionThreshold.
const PERSISTENT: u64 = 3;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rtt {
    /// `latest_rtt`, `smoothed_rtt`, `rttvar`, `min_rtt`, once there is a sample.
    samples: Option<Samples>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Samples {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    least: Duration,
}

impl Rtt {
    /// A round trip of `latest`, of which the peer delayed its acknowledgement by `delay`. `limit`: the peer's
    /// `max_ack_delay`, once the handshake is confirmed.
    pub(crate) fn sample(&mut self, latest: Duration, delay: Duration, limit: Option<Duration>) {
        let Some(last) = self.samples else {
            let variance = latest / 2;
            self.samples = Some(Samples { latest, smoothed: latest, variance, least: latest });
            return;
        };
        let least = last.least.min(latest);
        let delay = limit.map_or(delay, |limit| delay.min(limit));
        let adjusted = if latest >= least + delay { latest.saturating_sub(delay) } else { latest };
        let apart = Duration::from_ps(last.smoothed.as_ps().abs_diff(adjusted.as_ps()));
        self.samples = Some(Samples {
            latest,
            smoothed: (last.smoothed * 7 + adjusted) / 8,
            variance: (last.variance * 3 + apart) / 4,
            least,
        });
    }

    /// Persistent congestion is established: the path may be another one (section 5.2).
    pub(crate) fn renew_least(&mut self) {
        if let Some(samples) = &mut self.samples {
            samples.least = samples.latest;
        }
    }

    pub(crate) fn smoothed(&self) -> Option<Duration> {
        self.samples.map(|samples| samples.smoothed)
    }

    pub(crate) fn least(&self) -> Option<Duration> {
        self.samples.map(|samples| samples.least)
    }

    /// `smoothed_rtt` + max(4 * `rttvar`, kGranularity).
    fn span(&self) -> Duration {
        match self.samples {
            Some(samples) => samples.smoothed + (samples.variance * 4).max(GRANULARITY),
            None => INITIAL + (INITIAL / 2 * 4).max(GRANULARITY),
        }
    }

    /// The probe timeout without back-off. `max_ack_delay`: the peer's, for packets with application data.
    pub(crate) fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        self.span() + max_ack_delay
    }

    /// The age at which a packet sent before an acknowledged one is lost (section 6.1.2): 9/8 of the round trip.
    pub(crate) fn loss_delay(&self) -> Duration {
        let trip = self.samples.map_or(INITIAL, |samples| samples.latest.max(samples.smoothed));
        (trip * 9 / 8).max(GRANULARITY)
    }

    /// The time between two lost packets, with nothing delivered between them, that is persistent congestion.
    pub(crate) fn persistent(&self, max_ack_delay: Duration) -> Duration {
        (self.span() + max_ack_delay) * PERSISTENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn ms(count: u64) -> Duration {
        Duration::from_ms(count)
    }

    /// RFC 9002, section 6.2.2: 333 ms give a first timeout of 999 ms.
    #[test]
    fn the_first_probe_timeout_is_999_ms() {
        assert_eq!(Rtt::default().probe_timeout(NONE), ms(999));
        assert_eq!(Rtt::default().loss_delay(), Duration::from_us(374_625));
    }

    /// Section 5.3: 100 ms, then 140 ms of which the peer took 20: adjusted 120; variance 3/4 * 50 + 1/4 * 20 = 42.5;
    /// smoothed 7/8 * 100 + 1/8 * 120 = 102.5.
    #[test]
    fn estimates_follow_the_rfc() {
        let mut rtt = Rtt::default();
        rtt.sample(ms(100), NONE, None);
        // 100 + max(4 * 50, 1) + 25.
        assert_eq!(rtt.probe_timeout(ms(25)), ms(325));
        rtt.sample(ms(140), ms(20), Some(ms(25)));
        assert_eq!(rtt.smoothed(), Some(Duration::from_us(102_500)));
        assert_eq!(rtt.probe_timeout(NONE), Duration::from_us(102_500 + 170_000));
        // 9/8 of max(140, 102.5); 3 * (272.5 + 25).
        assert_eq!(rtt.loss_delay(), Duration::from_us(157_500));
        assert_eq!(rtt.persistent(ms(25)), Duration::from_us(892_500));
    }

    /// Section 5.3: a delay is at most `max_ack_delay` once the handshake is confirmed, and none that would lead below
    /// the least round trip counts.
    #[test]
    fn the_delay_of_the_peer_has_limits() {
        let smoothed = |latest, delay, limit| {
            let mut rtt = Rtt::default();
            rtt.sample(ms(80), NONE, None);
            rtt.sample(latest, delay, limit);
            rtt.smoothed().expect("a sample")
        };
        assert_eq!(smoothed(ms(160), ms(60), Some(ms(25))), (ms(80) * 7 + ms(135)) / 8);
        assert_eq!(smoothed(ms(160), ms(60), None), (ms(80) * 7 + ms(100)) / 8);
        assert_eq!(smoothed(ms(90), ms(20), Some(ms(25))), (ms(80) * 7 + ms(90)) / 8);
    }

    /// Section 5.2: after persistent congestion, the least round trip is the newest sample.
    #[test]
    fn persistent_congestion_renews_the_least_round_trip() {
        let mut rtt = Rtt::default();
        for latest in [20, 600, 610] {
            rtt.sample(ms(latest), NONE, None);
        }
        assert_eq!(rtt.least(), Some(ms(20)));
        rtt.renew_least();
        assert_eq!(rtt.least(), Some(ms(610)));
    }

    #[test]
    fn times_have_a_granularity_of_a_millisecond() {
        let mut rtt = Rtt::default();
        (0..100).for_each(|_| rtt.sample(Duration::from_us(100), NONE, None));
        assert_eq!(rtt.loss_delay(), ms(1));
        assert_eq!(rtt.probe_timeout(NONE), Duration::from_us(1100));
    }
}
