//! A stream of packets at its receiver: one-way delay, jitter, losses, and packets too late to be
//! played.
//!
//! Jitter is the estimate J of RFC 3550, section 6.4.1: for consecutive arrivals i and j, D = (Rj -
//! Ri) - (Sj - Si) and J += (|D| - J) / 16.
//!
//! The play-out follows the delay: a packet is played at its sending time plus the smallest delay of the present and
//! the preceding half second of sending times, plus the buffer. A packet that arrives after that time is late. So a
//! queue that grows by more than the buffer within that time makes packets late, and a queue that stands delays them
//! all. A packet that others overtake is judged by its delay alone. A copy of a packet that has arrived is discarded.
//!
//! Published: Ramjee, Kurose, Towsley and Schulzrinne 1994 (play-out that follows the delay). Differs: the smallest
//! delay of a window replaces their moving averages, which need a talkspurt to change.
//!
//! Cost: O(1) a packet; memory is constant without the distribution.

use lastmile_units::{Duration, Instant};

use crate::buckets::Buckets;
use crate::duplicates::Seen;
use crate::runs::Runs;

/// The measurements of a stream at its receiver.
#[derive(Clone, Debug, Default)]
pub struct Reception {
    /// Packets that arrived.
    pub packets: u64,
    /// Smallest delay; zero without a packet.
    pub min: Duration,
    /// Largest delay; zero without a packet.
    pub max: Duration,
    /// Sum of the delays, in picoseconds.
    pub sum_ps: u128,
    /// Sum over the packets of the delay from which the buffer counted, in picoseconds.
    pub base_sum_ps: u128,
    /// Delays in nanoseconds, to three digits, if requested.
    pub distribution: Option<Box<Buckets>>,
    /// Jitter after the latest packet, in seconds.
    pub jitter_s: f64,
    /// The largest jitter, in seconds.
    pub jitter_max_s: f64,
    /// Sum of the jitter over the packets from the second on, in seconds.
    pub jitter_sum_s: f64,
    /// Packets that arrived too late to be played.
    pub late: u64,
    /// Packets that had not arrived at their play time nor by the end, and were not dropped.
    pub overdue: u64,
    /// Number of runs of consecutive packets that were lost or late.
    pub runs: u64,
    /// Packets in those runs.
    pub in_runs: u64,
}

/// The smallest delay of the present half second of sending times, and of the preceding one with packets.
#[derive(Clone, Copy, Debug, Default)]
struct Base {
    half_second: u64,
    present: Option<Duration>,
    preceding: Option<Duration>,
}

impl Base {
    /// Records the delay of a packet sent at `sent`, and returns the smallest delay.
    fn with(&mut self, sent: Instant, delay: Duration) -> Duration {
        let half_second = sent.since(Instant::ZERO).as_us() / 500_000;
        if half_second > self.half_second {
            (self.half_second, self.preceding) = (half_second, self.present.take().or(self.preceding));
        }
        let present = self.present.map_or(delay, |present| present.min(delay));
        self.present = Some(present);
        self.preceding.map_or(present, |preceding| preceding.min(present))
    }

    fn smallest(&self) -> Duration {
        self.present.into_iter().chain(self.preceding).min().unwrap_or_default()
    }
}

/// Measures a stream as its packets arrive.
#[derive(Clone, Debug)]
pub struct Stream {
    reception: Reception,
    buffer: Duration,
    /// Transit time of the latest packet.
    latest: Option<Duration>,
    base: Base,
    /// Number after that of the latest packet in order.
    next: u64,
    seen: Seen,
    runs: Runs,
    /// Packets, and the sum of their delays, at the latest call of [`Stream::take_mean_s`].
    taken: (u64, u128),
}

impl Stream {
    /// A stream without packets, for a receiver with this play-out buffer.
    #[must_use]
    pub fn new(buffer: Duration, with_distribution: bool) -> Self {
        let reception = Reception { distribution: with_distribution.then(Box::default), ..Reception::default() };
        Self {
            reception,
            buffer,
            latest: None,
            base: Base::default(),
            next: 0,
            seen: Seen::default(),
            runs: Runs::default(),
            taken: (0, 0),
        }
    }

    /// Records the delay of a packet of a transport, which is not played: no jitter, and none is late or lost.
    #[inline(always)]
    pub fn delayed(&mut self, delay: Duration) {
        let of = &mut self.reception;
        of.min = if of.packets == 0 { delay } else { of.min.min(delay) };
        of.max = of.max.max(delay);
        of.packets += 1;
        of.sum_ps += u128::from(delay.as_ps());
        if let Some(distribution) = &mut of.distribution {
            distribution.record(delay.as_ns());
        }
    }

    /// Records the arrival at `now` of the packet `number`, sent at `sent`. Numbers count from 0. False for a copy of
    /// one that has arrived, which is discarded.
    pub fn arrived(&mut self, number: u64, sent: Instant, now: Instant) -> bool {
        if !self.seen.is_first(number) {
            return false;
        }
        let delay = now.since(sent);
        self.delayed(delay);
        let base = self.base.with(sent, delay);
        let of = &mut self.reception;
        of.base_sum_ps += u128::from(base.as_ps());
        if let Some(before) = self.latest.replace(delay) {
            let difference_s = before.max(delay).saturating_sub(before.min(delay)).as_secs_f64();
            of.jitter_s += (difference_s - of.jitter_s) / 16.0;
            of.jitter_max_s = of.jitter_max_s.max(of.jitter_s);
            of.jitter_sum_s += of.jitter_s;
        }
        let late = delay > base + self.buffer;
        of.late += u64::from(late);
        let Some(skipped) = number.checked_sub(self.next) else {
            if !late {
                self.runs.play_late(self.next - 1 - number);
            }
            return true;
        };
        self.next = number + 1;
        self.runs.skip(skipped + u64::from(late));
        if !late {
            self.runs.play();
        }
        true
    }

    /// Number after that of the latest packet that arrived in order.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of packets that arrived.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.reception.packets
    }

    /// Current jitter, in seconds; `None` before the second packet.
    #[must_use]
    pub fn jitter_s(&self) -> Option<f64> {
        (self.reception.packets > 1).then_some(self.reception.jitter_s)
    }

    /// Mean delay of the packets since the latest call, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn take_mean_s(&mut self) -> Option<f64> {
        let Reception { packets, sum_ps, .. } = self.reception;
        let (before, before_ps) = std::mem::replace(&mut self.taken, (packets, sum_ps));
        (packets > before).then(|| (sum_ps - before_ps) as f64 / (packets - before) as f64 / 1e12)
    }

    /// Whether a packet that was sent at `sent`, and has not arrived by `end`, should have been played.
    #[must_use]
    pub fn is_overdue(&self, sent: Instant, end: Instant) -> bool {
        end.since(sent) > self.base.smallest() + self.buffer
    }

    /// The measurements at `end`. `outstanding` are the sending times of packets after the latest
    /// that arrived; `under_way` of them were not dropped.
    #[must_use]
    pub fn finish(mut self, end: Instant, outstanding: impl Iterator<Item = Instant>, under_way: u64) -> Reception {
        let overdue = outstanding.filter(|sent| self.is_overdue(*sent, end)).count() as u64;
        self.runs.skip(overdue);
        (self.reception.runs, self.reception.in_runs) = self.runs.finish();
        self.reception.overdue = overdue.min(under_way);
        self.reception
    }
}

impl Reception {
    /// Mean delay in seconds; `None` without a packet.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.sum_ps as f64 / self.packets as f64 / 1e12)
    }

    /// Mean delay from which the buffer counted, in seconds; `None` without a packet.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn base_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| self.base_sum_ps as f64 / self.packets as f64 / 1e12)
    }

    /// Mean jitter in seconds; `None` before the second packet.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn jitter_mean_s(&self) -> Option<f64> {
        let packets = self.packets.checked_sub(1).filter(|packets| *packets > 0)?;
        Some(self.jitter_sum_s / packets as f64)
    }

    /// Mean length of the runs of lost and late packets.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_run(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.in_runs as f64 / self.runs as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_ms;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + MS(ms)
    }

    /// RFC 3550, section 6.4.1, by hand: transit times 10, 26, 10, 10 ms give |D| = 16, 16, 0 and
    /// J = 1, 1.9375, 1.81640625 ms.
    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut stream = Stream::new(MS(60), false);
        let mut jitters = Vec::new();
        for (number, transit) in [10, 26, 10, 10].into_iter().enumerate() {
            let sent = 20 * number as u64;
            stream.arrived(number as u64, at(sent), at(sent + transit));
            jitters.extend(stream.jitter_s().map(|s| s * 1e3));
        }
        for (jitter, expected) in jitters.iter().zip([1.0, 1.9375, 1.816_406_25]) {
            assert!((jitter - expected).abs() < 1e-12, "{jitters:?}");
        }
        let reception = stream.finish(at(100), std::iter::empty(), 0);
        assert!((reception.jitter_max_s - 1.9375e-3).abs() < 1e-15);
        assert!((reception.jitter_mean_s().unwrap() - (1.0 + 1.9375 + 1.816_406_25) / 3.0 / 1e3).abs() < 1e-15);
        assert_eq!((reception.min, reception.max, reception.mean_s()), (MS(10), MS(26), Some(0.014)));
    }

    /// Of packets 0 to 9, 2 and 3 are lost, 4 and 8 arrive 61 ms after the fastest: runs 2 3 4
    /// and 8. A packet at exactly the 60 ms of the buffer is on time.
    #[test]
    fn what_is_lost_or_late_comes_in_runs() {
        let mut stream = Stream::new(MS(60), false);
        for (number, transit) in [(0, 10), (1, 70), (4, 71), (5, 10), (6, 10), (7, 10), (8, 71), (9, 10)] {
            stream.arrived(number, at(20 * number), at(20 * number + transit));
        }
        let reception = stream.finish(at(300), std::iter::empty(), 0);
        assert_eq!((reception.packets, reception.late, reception.runs, reception.in_runs), (8, 2, 2, 4));
        assert_eq!(reception.mean_run(), Some(2.0));
    }

    /// A queue grows by 50 ms in each second. No packet is late, and each waits 60 ms beyond the smallest delay of its
    /// half second and the one before. When a queue of 100 ms comes at once, packets are late until a whole half second
    /// has it.
    #[test]
    fn play_out_follows_the_delay() {
        let mut grows = Stream::new(MS(60), false);
        for number in 0..200 {
            let sent = 20 * number;
            grows.arrived(number, at(sent), at(sent + 10 + sent / 20));
        }
        let reception = grows.finish(at(4_010), std::iter::empty(), 0);
        // 10 ms twice, then 35, 60, 85, 110, 135 and 160 ms.
        assert_eq!((reception.late, reception.base_s()), (0, Some(0.075625)));
        let mut steps = Stream::new(MS(60), false);
        for number in 0..250 {
            let sent = 20 * number;
            steps.arrived(number, at(sent), at(sent + if sent < 1_500 { 10 } else { 110 }));
        }
        let reception = steps.finish(at(5_110), std::iter::empty(), 0);
        // Those of 1.5 to 2 s: then the half second before has the queue.
        assert_eq!((reception.late, reception.runs), (25, 1));
    }

    /// The last packet that arrived took 10 ms. At 1 s those sent at 600 and 900 ms should have
    /// been played, and one of them was dropped.
    #[test]
    fn packets_that_wait_for_ever_are_overdue() {
        let mut stream = Stream::new(MS(60), false);
        stream.arrived(0, at(0), at(10));
        let reception = stream.finish(at(1_000), [at(600), at(900), at(931)].into_iter(), 1);
        assert_eq!((reception.overdue, reception.runs, reception.in_runs), (1, 1, 2));
    }

    /// A wire that repeats packets, at once or late, is as good as one that does not.
    #[test]
    fn a_copy_is_discarded() {
        let (mut once, mut twice) = (Stream::new(MS(60), true), Stream::new(MS(60), true));
        for (number, transit) in [(0, 10), (1, 26), (3, 10), (2, 80), (5, 10)] {
            let (sent, now) = (at(20 * number), at(20 * number + transit));
            assert!(once.arrived(number, sent, now) && twice.arrived(number, sent, now));
            assert!(!twice.arrived(number, sent, now + MS(90)) && !twice.arrived(0, at(0), now + MS(91)));
        }
        assert_eq!((twice.packets(), twice.next()), (5, 6));
        let [once, twice] = [once, twice].map(|stream| stream.finish(at(300), std::iter::empty(), 0));
        assert_eq!(format!("{once:?}"), format!("{twice:?}"));
    }

    #[test]
    fn a_packet_out_of_turn_is_no_loss() {
        let mut stream = Stream::new(MS(60), false);
        for number in [0, 2, 1, 3] {
            stream.arrived(number, at(number), at(number + 5));
        }
        let reception = stream.finish(at(100), std::iter::empty(), 0);
        assert_eq!((reception.packets, reception.runs, reception.in_runs, reception.late), (4, 0, 0, 0));
    }
}
