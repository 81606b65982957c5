//! COBALT: CoDel for responsive flows and BLUE for unresponsive ones, combined.
//!
//! Published: Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Täht 2019; Høiland-Jørgensen,
//! Täht, Morton 2018, section III-C; CoDel is RFC 8289, BLUE Feng, Shin, Kandlur, Saha 2002.
//!
//! Differences from plain CoDel: the first signal and later ones share one schedule, interval /
//! sqrt(count) apart. Once packets are in time again, the count is not discarded but decremented
//! along that schedule, so that a flow that returns soon finds a suitable count. BLUE raises a drop
//! probability by 1/256 at most once a target when the queue overflows, and lowers it by 1/4096
//! when the queue is found empty. It always drops, with or without ECN.
//!
//! Differs from Linux: the square root is exact. When packets become late, the next signal always
//! follows an interval over sqrt(count) later; an earlier due time does not shorten that.
//! Cost: O(1) a packet; a square root for each signal and for each decrement.

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::aqm::codel::drop_after;
use crate::random::Stream;

/// Parameters shared by all queues of a tin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Settings {
    /// Acceptable queueing delay.
    pub(super) target: Duration,
    /// Time from the first late packet to the first signal.
    pub(super) interval: Duration,
    /// Transmission time of the largest packet at the rate of the tin.
    largest: Duration,
    /// Packets of that size that may wait without being late.
    patience: u32,
}

/// [`Settings::patience`] where flows need not share.
const PATIENCE: u32 = 4;

impl Settings {
    /// For traffic with this round-trip time, in a tin of this rate. The target is a twentieth of
    /// the round-trip time, or one and a half times the largest packet's transmission time if that
    /// is longer.
    pub(super) fn new(rtt: Duration, rate: Option<BitRate>, largest: WireBytes) -> Self {
        let largest = rate.map_or(Duration::ZERO, |rate| rate.time_for(largest));
        let wanted = Duration::from_ps(rtt.as_ps() / 20);
        let target = wanted.max(Duration::from_ps(largest.as_ps().saturating_mul(3) / 2));
        let longer = target.saturating_sub(wanted);
        let interval = Duration::from_ps(rtt.as_ps().saturating_add(longer.as_ps())).max(target.saturating_mul(2));
        Self { target, interval, largest, patience: PATIENCE }
    }

    /// For a tin whose drops cost rate: each of its `flows` may have two packets waiting.
    pub(super) fn shared_by(self, flows: u32) -> Self {
        Self { patience: flows.saturating_mul(2).max(PATIENCE), ..self }
    }

    fn is_late(&self, waited: Duration) -> bool {
        waited > self.target && waited > self.largest.saturating_mul(self.patience.into())
    }
}

/// The least increase of BLUE's probability, in 2^-32.
const BLUE_INCREMENT: u32 = 1 << 24;
/// The least decrease, in 2^-32.
const BLUE_DECREMENT: u32 = 1 << 20;

/// Decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    /// Send it unchanged.
    Pass,
    /// Mark it, or drop it if it cannot be marked.
    Mark,
    /// Drop it.
    Drop,
}

/// The state of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Cobalt {
    /// Signals on the schedule: the next follows interval / sqrt(count) after the last.
    count: u32,
    /// The time of the next signal or decrement of `count`. With a count of zero, the time until
    /// which the queue counts as active.
    next: Instant,
    /// True while packets are late.
    late: bool,
    /// BLUE's probability, in 2^-32.
    blue: u32,
    /// When `blue` last changed.
    blue_changed: Instant,
}

impl Cobalt {
    /// Decides on a packet that departs at `now` after a queueing delay of `waited`. `markable`: it
    /// is ECN-capable.
    pub(super) fn on_dequeue(
        &mut self,
        settings: &Settings,
        now: Instant,
        (waited, markable): (Duration, bool),
        random: &mut Stream,
    ) -> Signal {
        let due = self.is_due(now);
        if settings.is_late(waited) {
            if !self.late {
                self.late = true;
                self.next = drop_after(now, settings.interval, self.count);
            }
            self.count = self.count.max(1);
        } else {
            self.late = false;
        }
        let mut signal = Signal::Pass;
        if due && self.late {
            signal = Signal::Mark;
            self.count = self.count.saturating_add(1);
            self.next = drop_after(self.next, settings.interval, self.count);
        } else if due {
            self.count_down(settings, now);
        }
        if self.blue > 0 && (random.bits() >> 32) < u64::from(self.blue) {
            signal = Signal::Drop;
        }
        if self.count == 0 {
            self.next = now.saturating_add(settings.interval);
        } else if signal == Signal::Mark && markable {
            // Drops follow one another until the schedule is kept. With marks one packet departs
            // for each, and missed signals are not made up.
            self.next = self.next.max(now);
        }
        signal
    }

    /// A packet of the queue was dropped at `now` since the memory was full.
    pub(super) fn overflowed(&mut self, settings: &Settings, now: Instant) {
        if now.since(self.blue_changed) > settings.target {
            self.blue = self.blue.saturating_add(BLUE_INCREMENT);
            self.blue_changed = now;
        }
        self.late = true;
        self.next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty at `now`.
    pub(super) fn found_empty(&mut self, settings: &Settings, now: Instant) {
        if self.blue > 0 && now.since(self.blue_changed) > settings.target {
            self.blue = self.blue.saturating_sub(BLUE_DECREMENT);
            self.blue_changed = now;
        }
        self.late = false;
        if self.is_due(now) {
            self.count -= 1;
            self.next = drop_after(self.next, settings.interval, self.count);
        }
    }

    /// False once the queue's state equals that of a new one.
    pub(super) fn has_state(&self, now: Instant) -> bool {
        self.blue > 0 || self.count > 0 || now < self.next
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.next
    }

    fn count_down(&mut self, settings: &Settings, now: Instant) {
        while self.is_due(now) {
            self.count -= 1;
            self.next = drop_after(self.next, settings.interval, self.count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 ms, without a rate: a target of 5 ms.
    fn settings() -> Settings {
        Settings::new(Duration::from_ms(100), None, WireBytes::new(1500))
    }

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(count)
    }

    fn random() -> Stream {
        Stream::new(1, "blue")
    }

    /// Times of signals to packets that depart every millisecond with a delay of 10 ms.
    fn signalled(cobalt: &mut Cobalt, from: u64, until: u64) -> Vec<u64> {
        let waited = Duration::from_ms(10);
        (from..until)
            .filter(|&at| cobalt.on_dequeue(&settings(), ms(at), (waited, false), &mut random()) != Signal::Pass)
            .collect()
    }

    /// The first at 1000 + 100 ms; the next 100/sqrt(2) = 70.7 ms later, then 57.7, 50, 44.7 and
    /// 40.8 ms: each at the first packet at or after 1170.71, 1228.45, 1278.45, 1323.17, 1363.99.
    #[test]
    fn signals_follow_the_control_law() {
        let mut cobalt = Cobalt::default();
        assert_eq!(signalled(&mut cobalt, 1000, 1364), [1100, 1171, 1229, 1279, 1324]);
        assert_eq!(signalled(&mut cobalt, 1364, 1365), [1364]);
    }

    #[test]
    fn a_delay_of_at_most_the_target_causes_no_signal() {
        let mut cobalt = Cobalt::default();
        for at in 0..1000 {
            let signal = cobalt.on_dequeue(&settings(), ms(at), (Duration::from_ms(5), false), &mut random());
            assert_eq!(signal, Signal::Pass);
        }
        assert!(cobalt.has_state(ms(1098)) && !cobalt.has_state(ms(1099)), "an interval beyond the last packet");
    }

    /// After five signals the count is 6 (it began at one). In time again, it is decremented along
    /// the schedule; late again after 60 ms, it continues from its value, not from one.
    #[test]
    fn the_count_goes_down_step_by_step() {
        let mut cobalt = Cobalt::default();
        signalled(&mut cobalt, 1000, 1325);
        assert_eq!(cobalt.count, 6);
        // Due at 1363.99, then 100/sqrt(5) = 44.7 ms later, and so on to 0: in all 100 * (1/sqrt(5)
        // + 1/2 + 1/sqrt(3) + 1/sqrt(2) + 1) = 323.2 ms more until the count of 1 is due.
        let in_time =
            |cobalt: &mut Cobalt, at| cobalt.on_dequeue(&settings(), ms(at), (Duration::ZERO, false), &mut random());
        for at in 1325..1364 {
            in_time(&mut cobalt, at);
        }
        assert_eq!(cobalt.count, 6);
        in_time(&mut cobalt, 1364);
        assert_eq!(cobalt.count, 5);
        for at in 1365..1687 {
            in_time(&mut cobalt, at);
        }
        assert_eq!(cobalt.count, 1);
        in_time(&mut cobalt, 1688);
        assert_eq!(cobalt.count, 0);
    }

    /// 1/256 up at most once a target, 1/4096 down each time the queue is found empty a target
    /// later.
    #[test]
    fn blue_rises_with_overflow_and_falls_with_an_empty_queue() {
        let mut cobalt = Cobalt::default();
        for at in [10, 11, 12, 16, 30] {
            cobalt.overflowed(&settings(), ms(at));
        }
        assert_eq!(cobalt.blue, 3 * BLUE_INCREMENT);
        cobalt.found_empty(&settings(), ms(35));
        assert_eq!(cobalt.blue, 3 * BLUE_INCREMENT);
        for step in 1..=48 {
            assert!(cobalt.has_state(ms(1_000_000)));
            cobalt.found_empty(&settings(), ms(30 + 6 * step));
        }
        assert_eq!(cobalt.blue, 0);
    }

    /// 1/4096 at most once a target.
    #[test]
    fn blue_falls_at_most_once_a_target() {
        let mut cobalt = Cobalt { blue: 2 * BLUE_DECREMENT, ..Cobalt::default() };
        let after = [10, 12, 15, 16].map(|at| {
            cobalt.found_empty(&settings(), ms(at));
            cobalt.blue
        });
        assert_eq!(after, [BLUE_DECREMENT, BLUE_DECREMENT, BLUE_DECREMENT, 0]);
    }

    /// An overflow at 10 ms makes a signal due at once, and the next ones 100/sqrt(2) and
    /// 100/sqrt(3) ms later: at 80.71 and 138.45 ms.
    #[test]
    fn an_overflow_is_a_reason_to_signal_at_once() {
        let mut cobalt = Cobalt::default();
        assert_eq!(cobalt.on_dequeue(&settings(), ms(0), (Duration::ZERO, false), &mut random()), Signal::Pass);
        cobalt.overflowed(&settings(), ms(10));
        // BLUE's increase is not under test.
        cobalt.blue = 0;
        assert_eq!(signalled(&mut cobalt, 11, 150), [11, 81, 139]);
    }

    /// Late again with a count of 4: the first signal is 100/sqrt(4) ms later.
    #[test]
    fn a_flow_that_returns_keeps_its_count() {
        let mut cobalt = Cobalt { count: 4, next: ms(2000), ..Cobalt::default() };
        assert_eq!(signalled(&mut cobalt, 1000, 1060), [1050]);
    }

    /// The first signal is due at 1100 ms, but no packet arrives before 1500. After a mark the next
    /// is due at once, and the one after that 100/sqrt(3) = 57.7 ms later. Drops catch up on those
    /// due at 1171, 1229, 1279, 1324, 1364, 1402, 1438 and 1471 ms.
    #[test]
    fn missed_marks_are_not_made_up() {
        let signals = |markable| {
            let mut cobalt = Cobalt::default();
            let waited = Duration::from_ms(10);
            cobalt.on_dequeue(&settings(), ms(1000), (waited, markable), &mut random());
            let mut is = |at| cobalt.on_dequeue(&settings(), ms(at), (waited, markable), &mut random()) != Signal::Pass;
            (1500..1560).filter(|at| is(*at)).collect::<Vec<_>>()
        };
        assert_eq!(signals(true), [1500, 1501, 1558]);
        assert_eq!(signals(false)[..9], [1500, 1501, 1502, 1503, 1504, 1505, 1506, 1507, 1508]);
    }

    /// The late state ends, and the count is decremented if that was due: at 10 ms, and then at
    /// 110.
    #[test]
    fn an_empty_queue_counts_down_too() {
        let mut cobalt = Cobalt { count: 2, next: ms(10), late: true, ..Cobalt::default() };
        let mut counts = Vec::new();
        for at in [9, 10, 11, 109, 110] {
            assert!(cobalt.has_state(ms(1_000_000)));
            cobalt.found_empty(&settings(), ms(at));
            counts.push(cobalt.count);
        }
        assert_eq!((counts, cobalt.late), (vec![2, 1, 1, 1, 0], false));
    }

    /// A probability of 1/4: of 10 000 packets in time a quarter is dropped, to within five
    /// standard deviations of 43.
    #[test]
    fn blue_drops_at_any_delay() {
        let mut cobalt = Cobalt { blue: 1 << 30, ..Cobalt::default() };
        let mut random = random();
        let dropped = (0..10_000)
            .filter(|&at| cobalt.on_dequeue(&settings(), ms(at), (Duration::ZERO, false), &mut random) == Signal::Drop)
            .count();
        assert!((2_285..=2_715).contains(&dropped), "{dropped}");
    }

    /// 1500 bytes take 24 ms at 500 kbit/s: a target of 36 ms, an interval of 100 + 31 ms; nothing
    /// is late within 96 ms.
    #[test]
    fn slow_tins_have_longer_times() {
        let slow = Settings::new(Duration::from_ms(100), Some(BitRate::from_kbit_per_s(500)), WireBytes::new(1500));
        assert_eq!((slow.target, slow.interval), (Duration::from_ms(36), Duration::from_ms(131)));
        assert!(!slow.is_late(Duration::from_ms(96)) && slow.is_late(Duration::from_us(96_001)));
        // Two packets of each of two flows are no more than four; of five flows they are ten.
        assert_eq!(slow.shared_by(2), slow);
        let busy = slow.shared_by(5);
        assert!(!busy.is_late(Duration::from_ms(240)) && busy.is_late(Duration::from_us(240_001)));
        // 1500 bytes in 120 ms: a target of 180 ms, and twice as much exceeds 275 ms.
        let slower = Settings::new(Duration::from_ms(100), Some(BitRate::from_kbit_per_s(100)), WireBytes::new(1500));
        assert_eq!((slower.target, slower.interval), (Duration::from_ms(180), Duration::from_ms(360)));
    }
}
