//! Pacing: the times at which a sender may transmit, so that its rate stays below a given one.
//!
//! Published: the behaviour of Linux's internal pacing (`tcp_output.c`: `tcp_update_skb_after_send`,
//! `tcp_pacing_check`, `tcp_tso_autosize`), which `sch_fq` shares; draft-ietf-ccwg-bbr, section 5.6.2 (send quantum).
//!
//! A burst of segments departs at once, as Linux sends a packet that the device cuts into segments. Its octets take
//! their time at the pacing rate, and the next burst waits for that time. A burst that departs later than its time
//! shortens the pause after it by the delay, at most by half of the pause. The first ten segments of a connection are
//! not paced.
//!
//! Differs: the octets are payload, as in Linux's internal pacing; `sch_fq` counts headers. The segment that begins a
//! repair, tail loss probes and window probes do not wait for their time, but count. Time is exact, where the kernel
//! has a timer with slack.
//! Cost: a division for each segment sent; 64 bytes, boxed; a timer event for each burst.

use lastmile_units::{Duration, Instant};

use super::octet_rate::OctetRate;

/// `tcp_update_skb_after_send`: the first segments of a connection are not paced. RFC 9002, section 7.7: a burst has at
/// most the initial congestion window.
const UNPACED: u8 = 10;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pacer {
    /// `None`: no rate is known, and no segment waits.
    rate: Option<OctetRate>,
    /// When the next burst may depart (`tcp_wstamp_ns`).
    next: Instant,
    /// When the last burst departed, and the octets that may still join it.
    burst_at: Instant,
    left: u64,
    /// The part of the last burst's delay that no pause has made up for.
    credit: Duration,
    /// Segments that are still exempt.
    unpaced: u8,
    /// When a segment that waits may depart.
    wake: Option<Instant>,
}

impl Pacer {
    pub(crate) fn new() -> Self {
        Self {
            rate: None,
            next: Instant::ZERO,
            burst_at: Instant::ZERO,
            left: 0,
            credit: Duration::ZERO,
            unpaced: UNPACED,
            wake: None,
        }
    }

    pub(crate) fn rate(&self) -> Option<OctetRate> {
        self.rate
    }

    pub(crate) fn set_rate(&mut self, rate: OctetRate) {
        self.rate = Some(rate);
    }

    /// The next ten segments are not paced.
    pub(crate) fn exempt(&mut self) {
        self.unpaced = UNPACED;
    }

    /// A segment may depart.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.next <= now || self.joins(now)
    }

    fn joins(&self, now: Instant) -> bool {
        self.left > 0 && self.burst_at == now
    }

    /// When the next burst may depart, at the earliest `now`.
    pub(crate) fn departure(&self, now: Instant) -> Instant {
        self.next.max(now)
    }

    /// The time for which the next burst has been admitted.
    pub(crate) fn admitted_for(&self, now: Instant) -> Duration {
        now.since(self.next.min(now))
    }

    /// A segment of `len` octets departs; a burst has `burst` octets.
    pub(crate) fn on_sent(&mut self, now: Instant, len: u64, burst: u64) {
        if !self.joins(now) {
            self.credit = self.admitted_for(now);
            (self.next, self.burst_at, self.left) = (self.next.max(now), now, burst);
        }
        self.left = self.left.saturating_sub(len);
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let Some(span) = self.rate.and_then(|rate| rate.time_for(len)) else { return };
        let cut = self.credit.min(Duration::from_ps(span.as_ps() / 2));
        self.credit = self.credit.saturating_sub(cut);
        self.next = self.next.saturating_add(span.saturating_sub(cut));
    }

    /// A segment waits for its time.
    pub(crate) fn wait(&mut self) {
        self.wake = Some(self.next);
    }

    /// No segment waits.
    pub(crate) fn stop(&mut self) {
        self.wake = None;
    }

    #[inline]
    pub(crate) fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// The timer may have expired.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        self.wake = self.wake.filter(|&wake| wake > now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn paced(rate: u64) -> Pacer {
        Pacer { rate: Some(OctetRate::from_octets_per_s(rate)), unpaced: 0, ..Pacer::new() }
    }

    /// 1 Mbyte/s: 2000 octets take 2 ms, and both segments of a burst depart at once.
    #[test]
    fn a_burst_takes_its_time_at_the_rate() {
        let mut pacer = paced(1_000_000);
        pacer.next = at(5000);
        for _ in 0..2 {
            assert!(pacer.admits(at(5000)));
            pacer.on_sent(at(5000), 1000, 2000);
        }
        assert!(!pacer.admits(at(5000)) && !pacer.admits(at(6999)));
        assert!(pacer.admits(at(7000)));
    }

    /// `tcp_update_skb_after_send`: a delay of 0.3 ms shortens a pause of 1 ms to 0.7; one of 0.8 ms to a half.
    #[test]
    fn a_late_burst_shortens_its_pause_by_at_most_half() {
        for (late, pause) in [(300, 700), (800, 500)] {
            let mut pacer = paced(1_000_000);
            pacer.next = at(10_000);
            pacer.on_sent(at(10_000 + late), 1000, 1000);
            assert_eq!(pacer.departure(at(0)), at(10_000 + late + pause));
        }
    }

    /// `tcp_tso_should_defer`: `tcp_wstamp_ns` is the time at which the next burst may depart, here 7 ms.
    #[test]
    fn a_burst_is_admitted_from_the_end_of_the_last_one_s_time() {
        let mut pacer = paced(1_000_000);
        pacer.next = at(5000);
        pacer.on_sent(at(5000), 2000, 2000);
        assert_eq!([5000, 7000, 7600].map(|us| pacer.admitted_for(at(us)).as_us()), [0, 0, 600]);
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer::new();
        pacer.set_rate(OctetRate::from_octets_per_s(1000));
        for _ in 0..10 {
            assert!(pacer.admits(at(1)));
            pacer.on_sent(at(1), 1000, 1000);
        }
        assert!(pacer.admits(at(1)));
        pacer.on_sent(at(1), 1000, 1000);
        assert!(!pacer.admits(at(1)));
    }

    proptest! {
        /// Over any window, a sender that transmits as often as it may, however late, sends at most rate * time and
        /// one and a half bursts: a delay is made up for at most by half of a pause.
        #[test]
        fn no_window_has_more_than_the_rate_and_one_and_a_half_bursts(
            rate in 10_000_u64..100_000_000,
            burst in 1_u64..40,
            steps in proptest::collection::vec((0_u64..5000, 1_u64..60), 1..120),
        ) {
            let mut pacer = paced(rate);
            let mut now = at(1_000_000);
            pacer.next = now;
            let (len, burst) = (1448, burst * 1448);
            let mut sent: Vec<(Instant, u64)> = Vec::new();
            for (late_us, count) in steps {
                now = pacer.departure(now).saturating_add(Duration::from_us(late_us));
                for _ in 0..count {
                    if !pacer.admits(now) {
                        break;
                    }
                    pacer.on_sent(now, len, burst);
                    sent.push((now, len));
                }
            }
            for (first, &(from, _)) in sent.iter().enumerate() {
                let mut octets = 0;
                for &(to, len) in &sent[first..] {
                    octets += len;
                    let most = OctetRate::from_octets_per_s(rate).octets_in(to.since(from)) + burst * 3 / 2 + 2;
                    prop_assert!(octets <= most, "{octets} octets in {:?}, at most {most}", to.since(from));
                }
            }
        }
    }
}
