//! LEDBAT++: a background transfer that yields to others, by the delay that it finds in queues.
//!
//! Published: draft-irtf-iccrg-ledbat-plus-plus-01 (P. Balasubramanian, O. Ertugay, D. Havey), sections 4.1 to 4.4; RFC
//! 6817 (LEDBAT).
//!
//! The queueing delay is the least of the last four round trips less the least of ten minutes. Below a target of 60 ms
//! the window grows by a gain of 1/16 to 1 segment a round trip; above it, it shrinks by its own multiple of the
//! excess, at most by half. Slow start grows by the gain too, and the first one ends at three quarters of the target. A
//! slowdown to two segments for two round trips, after the first slow start and then in a tenth of the time, lets the
//! queue drain, so that the least round trip is found in the presence of others of its kind.
//!
//! Differs: windows are octets. The least round trip is kept by minutes, as in RFC 6817 (section 2.5). A window that is
//! not used does not grow; RFC 6817 (section 2.4) also lowers it to a segment more than the flight. A loss in a
//! slowdown ends it with its repair; the draft is silent.
//! Cost: about ten divisions for each acknowledgement; 200 bytes, boxed.

use lastmile_units::{Duration, Instant};

use super::Acked;

/// Section 4.2: TARGET.
const TARGET: Duration = Duration::from_ms(60);
/// Section 4.2: the smallest gain is 1/16.
const LEAST_GAIN: u64 = 16;
/// RFC 6817, section 2.5: BASE_HISTORY minutes, and section 4.1 here: the filter of current delays.
const MINUTES: usize = 10;
const FILTER: usize = 4;
/// Section 4.4: round trips at two segments, and the part of the time that slowdowns may take: 1/10.
const SLOW_TRIPS: u64 = 2;
const SLOW_PART: u64 = 9;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The first slow start.
    Start,
    /// Congestion avoidance until the next slowdown.
    Steady { until: Instant },
    /// Two segments until then; the window before was `window`.
    Slow { began: Instant, until: Instant, window: u32 },
    /// Slow start to that window.
    Rise { began: Instant, window: u32 },
    /// A loss ended the slowdown that began then, and is repaired.
    Lost { began: Instant },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ledbat {
    phase: Phase,
    /// The least round trips of the last minutes, and the minute of the newest.
    base: [Option<Duration>; MINUTES],
    minute: u64,
    recent: [Option<Duration>; FILTER],
    next: usize,
    /// The part of an octet of growth or loss, in 2^-20.
    counted: i64,
}

impl Ledbat {
    pub(super) fn new() -> Self {
        Self { phase: Phase::Start, base: [None; MINUTES], minute: 0, recent: [None; FILTER], next: 0, counted: 0 }
    }

    /// A round trip was measured.
    fn measure(&mut self, now: Instant, rtt: Duration) {
        let minute = now.as_ps() / Duration::from_s(60).as_ps();
        if minute > self.minute {
            let passed = usize::try_from(minute - self.minute).unwrap_or(MINUTES).min(MINUTES);
            self.base.rotate_right(passed);
            self.base[..passed].fill(None);
            self.minute = minute;
        }
        self.base[0] = Some(self.base[0].map_or(rtt, |least| least.min(rtt)));
        self.recent[self.next] = Some(rtt);
        self.next = (self.next + 1) % FILTER;
    }

    fn base(&self) -> Option<Duration> {
        self.base.iter().flatten().min().copied()
    }

    fn queueing_delay(&self) -> Duration {
        let current = self.recent.iter().flatten().min().copied().unwrap_or_default();
        current.saturating_sub(self.base().unwrap_or_default())
    }

    /// Section 4.2: GAIN = 1 / min(16, ceil(2 * TARGET / base)). Returns its inverse.
    fn inverse_gain(&self) -> u64 {
        let base = self.base().unwrap_or(Duration::from_ms(1)).as_ps().max(1);
        (2 * TARGET.as_ps()).div_ceil(base).clamp(1, LEAST_GAIN)
    }

    /// Window and slow start threshold after an acknowledgement. A window that is not `used` does not grow (RFC 6817,
    /// section 2.4), and a rise ends where it is not: the flow has what it asks for.
    pub(super) fn window(&mut self, cwnd: u32, ssthresh: u32, acked: &Acked, used: bool) -> (u32, u32) {
        if let Some(rtt) = acked.rtt {
            self.measure(acked.now, rtt);
        }
        let (now, mss) = (acked.now, acked.mss);
        let most = if used { u32::MAX } else { cwnd };
        let trip = acked.srtt.unwrap_or(acked.least_rtt);
        let soon = now.saturating_add(trip.saturating_mul(SLOW_TRIPS));
        match self.phase {
            Phase::Start => {
                let late = self.queueing_delay().as_ps() * 4 > TARGET.as_ps() * 3;
                if late || cwnd >= ssthresh {
                    self.phase = Phase::Steady { until: soon };
                    return (cwnd, cwnd);
                }
                (self.slow_start(cwnd, acked).min(most), ssthresh)
            }
            Phase::Steady { until } if now >= until && cwnd > 2 * mss => {
                self.phase = Phase::Slow { began: now, until: soon, window: cwnd };
                (2 * mss, cwnd)
            }
            Phase::Steady { .. } => {
                let cwnd = self.avoid(cwnd, acked).min(most);
                (cwnd, ssthresh.min(cwnd))
            }
            Phase::Slow { began, until, window } => {
                if now >= until {
                    self.phase = Phase::Rise { began, window };
                }
                (2 * mss, window)
            }
            Phase::Lost { began } => {
                self.pause(now, began);
                let cwnd = self.avoid(cwnd, acked).min(most);
                (cwnd, ssthresh.min(cwnd))
            }
            Phase::Rise { began, window } => {
                let cwnd = self.slow_start(cwnd, acked).min(most);
                if used && cwnd < window {
                    return (cwnd, window);
                }
                self.pause(now, began);
                let reached = cwnd.min(window);
                (reached, reached)
            }
        }
    }

    /// Section 4.4: the slowdown that began then is over, and the next one waits for nine times its duration.
    fn pause(&mut self, now: Instant, began: Instant) {
        let pause = now.since(began).saturating_mul(SLOW_PART);
        self.phase = Phase::Steady { until: now.saturating_add(pause) };
    }

    fn slow_start(&self, cwnd: u32, acked: &Acked) -> u32 {
        cwnd.saturating_add((acked.bytes / self.inverse_gain()) as u32)
    }

    /// Section 4.2: W += GAIN below the target, W += max(GAIN - W * (delay / target - 1), -W / 2) above it, in a round
    /// trip; each acknowledgement has its share.
    fn avoid(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        const ONE: i128 = 1 << 20;
        let (window, mss) = (i128::from(cwnd), i128::from(acked.mss));
        let delay = i128::from(self.queueing_delay().as_ps());
        let target = i128::from(TARGET.as_ps());
        let mut change = mss * ONE / i128::from(self.inverse_gain());
        if delay > target {
            change = (change - window * ONE * (delay - target) / target).max(-window * ONE / 2);
        }
        let share = change * i128::from(acked.bytes.min(u64::from(cwnd))) / window.max(1);
        let total = i128::from(self.counted) + share;
        self.counted = total.rem_euclid(ONE) as i64;
        (window + total.div_euclid(ONE)).clamp(2 * mss, i128::from(u32::MAX)) as u32
    }

    /// A loss ends slow start. It ends a slowdown when it is repaired.
    pub(super) fn on_loss(&mut self) {
        self.phase = match self.phase {
            Phase::Start => Phase::Steady { until: Instant::ZERO },
            Phase::Rise { began, .. } | Phase::Slow { began, .. } => Phase::Lost { began },
            phase @ (Phase::Steady { .. } | Phase::Lost { .. }) => phase,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn ack(ms: u64, rtt_ms: u64, bytes: u64) -> Acked {
        Acked {
            now: Instant::ZERO + Duration::from_ms(ms),
            bytes,
            mss: MSS,
            after_timeout: false,
            least_rtt: Duration::from_ms(20),
            srtt: Some(Duration::from_ms(rtt_ms)),
            rtt: Some(Duration::from_ms(rtt_ms)),
            marked: 0,
        }
    }

    fn steady(base_ms: u64) -> Ledbat {
        let mut ledbat = Ledbat::new();
        ledbat.measure(Instant::ZERO, Duration::from_ms(base_ms));
        ledbat.phase = Phase::Steady { until: Instant::MAX };
        ledbat
    }

    /// Section 4.2: 2 * 60 / 20 = 6; at 5 ms 24, but at most 16; at 200 ms 1.
    #[test]
    fn the_gain_depends_on_the_least_round_trip() {
        assert_eq!([5, 20, 50, 200].map(|ms| steady(ms).inverse_gain()), [16, 6, 3, 1]);
    }

    /// A window's worth below the target adds a sixth of a segment.
    #[test]
    fn below_the_target_the_window_grows_by_the_gain() {
        let mut ledbat = steady(20);
        let mut cwnd = 20_000;
        for _ in 0..20 {
            cwnd = ledbat.avoid(cwnd, &ack(1, 20, 1000));
        }
        assert!((20_164..=20_167).contains(&cwnd), "{cwnd}");
    }

    /// A delay of 90 ms is half above the target: a window's worth takes a half of the window, less the gain.
    #[test]
    fn above_the_target_the_window_shrinks_by_the_excess() {
        let mut ledbat = steady(20);
        ledbat.recent = [Some(Duration::from_ms(110)); FILTER];
        assert_eq!(ledbat.avoid(20_000, &ack(1, 110, 20_000)), 20_000 - 10_000 + 166);
        ledbat.recent = [Some(Duration::from_ms(500)); FILTER];
        ledbat.counted = 0;
        assert_eq!(ledbat.avoid(20_000, &ack(1, 500, 20_000)), 10_000, "at most a half");
    }

    /// Section 4.1: the least of four, so that one late acknowledgement is no queue.
    #[test]
    fn one_long_round_trip_is_no_delay() {
        let mut ledbat = steady(20);
        for rtt in [20, 200, 200, 200] {
            ledbat.measure(Instant::ZERO, Duration::from_ms(rtt));
        }
        assert_eq!(ledbat.queueing_delay(), Duration::ZERO);
    }

    /// Ten minutes later the least round trip of the beginning is forgotten.
    #[test]
    fn the_least_round_trip_lasts_ten_minutes() {
        let mut ledbat = steady(20);
        for minute in 1..=9 {
            ledbat.measure(Instant::ZERO + Duration::from_s(60 * minute), Duration::from_ms(50));
            assert_eq!(ledbat.base(), Some(Duration::from_ms(20)));
        }
        ledbat.measure(Instant::ZERO + Duration::from_s(600), Duration::from_ms(50));
        assert_eq!(ledbat.base(), Some(Duration::from_ms(50)));
    }

    /// Section 4.4: two round trips at two segments, the rise to the window before, then nine times as long at work.
    #[test]
    fn a_slowdown_takes_a_tenth_of_the_time() {
        let mut ledbat = steady(20);
        ledbat.phase = Phase::Steady { until: Instant::ZERO };
        let (mut cwnd, mut ssthresh) = (10_000, 10_000);
        let (mut slow_until, mut ms) = (None, 1000);
        while slow_until.is_none() {
            (cwnd, ssthresh) = ledbat.window(cwnd, ssthresh, &ack(ms, 20, u64::from(cwnd)), true);
            if matches!(ledbat.phase, Phase::Slow { .. }) {
                assert_eq!((cwnd, ssthresh), (2 * MSS, 10_000));
            }
            if let Phase::Steady { until } = ledbat.phase {
                slow_until = Some(until);
            }
            ms += 20;
        }
        let took = ms - 20 - 1000;
        assert_eq!(cwnd, 10_000);
        assert_eq!(slow_until, Some(Instant::ZERO + Duration::from_ms(1000 + took * 10)));
    }

    /// Section 4.4: a slowdown that began at 1 s and that a loss ended, repaired at 1.3 s, is followed by 9 * 0.3 s
    /// without.
    #[test]
    fn a_loss_in_a_slowdown_leaves_the_wait_for_the_next() {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut ledbat = steady(20);
        ledbat.phase = Phase::Rise { began: at(1000), window: 20 * MSS };
        ledbat.on_loss();
        ledbat.on_loss();
        let (cwnd, _) = ledbat.window(4 * MSS, 4 * MSS, &ack(1300, 20, 1000), true);
        assert_eq!(ledbat.phase, Phase::Steady { until: at(1300 + 9 * 300) });
        // A quarter of a window's worth, at a gain of 1/6.
        assert_eq!(cwnd, 4 * MSS + MSS / 6 / 4);
        ledbat.window(4 * MSS, 4 * MSS, &ack(4000, 20, 1000), true);
        assert!(matches!(ledbat.phase, Phase::Slow { .. }), "{:?}", ledbat.phase);
    }

    /// RFC 6817, section 2.4: each acknowledgement measures the delay and moves the window; one that is not used only
    /// shrinks.
    #[test]
    fn an_unused_window_yields_and_does_not_grow() {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut ledbat = Ledbat::new();
        assert_eq!(ledbat.window(20_000, u32::MAX, &ack(20, 20, 20_000), false), (20_000, u32::MAX));
        // The fourth round trip of 110 ms ends slow start.
        for ms in [130, 240, 350] {
            assert_eq!(ledbat.window(20_000, u32::MAX, &ack(ms, 110, 20_000), false), (20_000, u32::MAX));
        }
        assert_eq!(ledbat.window(20_000, u32::MAX, &ack(460, 110, 20_000), false), (20_000, 20_000));
        assert_eq!(ledbat.phase, Phase::Steady { until: at(680) });
        // Half above the target, less the gain.
        assert_eq!(ledbat.window(20_000, 20_000, &ack(570, 110, 20_000), false), (10_166, 10_166));
        assert_eq!(ledbat.window(10_166, 10_166, &ack(680, 110, 10_166), false), (2 * MSS, 10_166));
        assert_eq!(ledbat.window(2 * MSS, 10_166, &ack(900, 20, 2000), false), (2 * MSS, 10_166));
        assert_eq!(ledbat.phase, Phase::Rise { began: at(680), window: 10_166 });
        assert_eq!(ledbat.window(2 * MSS, 10_166, &ack(920, 20, 2000), false), (2 * MSS, 2 * MSS));
        assert_eq!(ledbat.phase, Phase::Steady { until: at(920 + 9 * 240) });
        assert_eq!(ledbat.window(2 * MSS, 2 * MSS, &ack(940, 20, 2000), false), (2 * MSS, 2 * MSS));
    }
}
