//! The machine's monotonic clock as the datapath's [`Instant`], and the kernel's receive stamps on the same scale.
//!
//! `CLOCK_MONOTONIC` counts nanoseconds; they become picoseconds since the program began, so that
//! 213 days fit. Receive stamps (`SO_TIMESTAMPNS`) are of `CLOCK_REALTIME`, which may be set at any
//! time: [`StampMap`] measures the distance anew whenever it is asked to, and `Arrivals` holds what
//! was stamped before the wall clock was set, and is read after it, between the readings around it.

use std::time::SystemTime;

use lastmile_units::{Duration, Instant};

/// Something that tells the time. A live program's is [`MonotonicClock`]; a test's says what the test wants.
pub trait Clock {
    /// The time now. Never goes back.
    fn now(&self) -> Instant;
}

/// `CLOCK_MONOTONIC`, counted from when this value was made.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    start: std::time::Instant,
}

impl MonotonicClock {
    /// A clock that shows zero now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// A clock that shows `time` now.
    #[cfg(test)]
    pub(crate) fn at(time: Instant) -> Self {
        Self { start: std::time::Instant::now().checked_sub(std_span(time.since(Instant::ZERO))).unwrap() }
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::ZERO + span(self.start.elapsed())
    }
}

/// The latest time at which packets are carried, 200 days. Beyond the last [`Instant`], 213 days, the clock would stand
/// still, and so would queues; what is due later than this time needs the days between.
pub(crate) const LAST: Instant = Instant::from_ps(200 * 86_400 * 1_000_000_000_000);

/// The time that the machine has been suspended since it started: `CLOCK_BOOTTIME` counts it, `CLOCK_MONOTONIC` does
/// not.
#[must_use]
pub fn suspended() -> std::time::Duration {
    std::time::Duration::from_nanos(crate::sys::wait::suspended_ns())
}

/// How a time of `CLOCK_REALTIME` reads on a [`MonotonicClock`].
#[derive(Clone, Copy, Debug)]
pub struct StampMap {
    /// One moment on both clocks.
    monotonic: Instant,
    realtime: SystemTime,
}

impl StampMap {
    /// Reads both clocks. Of a few attempts the one counts that took least time, so that an interruption between two
    /// readings does not become an error of every stamp.
    #[must_use]
    pub fn measure(clock: &dyn Clock) -> Self {
        const ATTEMPTS: usize = 5;
        let attempt = |_| {
            let before = clock.now();
            let realtime = SystemTime::now();
            let took = clock.now() - before;
            (took, Self { monotonic: before + took / 2, realtime })
        };
        let (_, best) = (0..ATTEMPTS).map(attempt).min_by_key(|(took, _)| *took).expect("more than one attempt");
        best
    }

    /// When the moment `stamp` was on the monotonic clock; held at its beginning if it was earlier.
    #[must_use]
    pub fn monotonic(&self, stamp: SystemTime) -> Instant {
        match stamp.duration_since(self.realtime) {
            Ok(later) => self.monotonic + span(later),
            Err(earlier) => {
                Instant::ZERO + self.monotonic.since(Instant::ZERO).saturating_sub(span(earlier.duration()))
            }
        }
    }
}

/// Arrival times of packets: never before an earlier packet's, and never after the packet was read.
/// The wall clock may be set while a packet waits, and stamps that several processors give differ
/// by a little.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrivals {
    latest: Instant,
}

impl Arrivals {
    /// Nothing has arrived.
    pub(crate) const fn new() -> Self {
        Self { latest: Instant::ZERO }
    }

    /// When a packet with this stamp arrived that has been read by `now`.
    pub(crate) fn stamped(&mut self, map: &StampMap, stamp: SystemTime, now: Instant) -> Instant {
        self.at(map.monotonic(stamp).min(now))
    }

    /// Up to when all packets have been handed over.
    pub(crate) const fn latest(&self) -> Instant {
        self.latest
    }

    /// Advances to `time`: a packet arrived then, or all earlier packets have been handed over. Returns the latest such
    /// time, which is later than `time` if the wall clock was set.
    pub(crate) fn at(&mut self, time: Instant) -> Instant {
        self.latest = self.latest.max(time);
        self.latest
    }
}

/// A span of the standard library; held at the longest that fits, 213 days.
pub(crate) fn span(span: std::time::Duration) -> Duration {
    match u64::try_from(span.as_nanos()) {
        Ok(ns) if ns <= u64::MAX / 1_000 => Duration::from_ns(ns),
        _ => Duration::MAX,
    }
}

/// A span for the standard library, rounded up to a nanosecond: who waits this long is not early.
#[must_use]
pub fn std_span(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_ps().div_ceil(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_the_wall_clock_lands_on_the_monotonic_clock() {
        let clock = MonotonicClock::start();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let map = StampMap::measure(&clock);
        let before = clock.now();
        let stamp = map.monotonic(SystemTime::now());
        let after = clock.now();
        let slack = Duration::from_us(200);
        assert!(before.since(stamp) < slack && stamp.since(after) < slack, "{before} <= {stamp} <= {after}");
    }

    #[test]
    fn a_stamp_from_before_the_clock_began_is_its_beginning() {
        let clock = MonotonicClock::start();
        let map = StampMap::measure(&clock);
        assert_eq!(map.monotonic(SystemTime::UNIX_EPOCH), Instant::ZERO);
    }

    /// A packet arrives each millisecond, and what is there is read every five; the wall clock is
    /// set at 502.5 ms. By the distance of the clocks alone, what arrived at 501 and 502 ms would
    /// be off by as much as that was.
    #[test]
    fn a_wall_clock_that_is_set_moves_no_arrival_beyond_the_readings_around_it() {
        const HOUR: i64 = 3_600_000_000;
        let at = |ms: u64| Instant::ZERO + Duration::from_ms(ms);
        for jump_us in [HOUR, -HOUR, 20_000, -20_000, 1500, -1500, 1, -1] {
            let wall = |ms: u64| {
                let jumped = if ms > 502 { jump_us } else { 0 };
                let us = 1_700_000_000_000_000 + ms * 1000;
                SystemTime::UNIX_EPOCH + std::time::Duration::from_micros(us.checked_add_signed(jumped).unwrap())
            };
            let mut arrivals = Arrivals::new();
            let mut last = Instant::ZERO;
            for read in (0..1000).step_by(5) {
                let map = StampMap { monotonic: at(read), realtime: wall(read) };
                for came in (read + 1).saturating_sub(5)..=read {
                    let arrived = arrivals.stamped(&map, wall(came), at(read));
                    assert!(last <= arrived && arrived <= at(read), "{jump_us} us: {arrived} at {read} ms");
                    let around = 500 < came && came <= 505;
                    assert!(around || arrived == at(came), "{jump_us} us: {arrived}, came at {came} ms");
                    last = arrived;
                }
                assert_eq!(arrivals.at(at(read)), at(read));
            }
            let map = StampMap { monotonic: at(505), realtime: wall(505) };
            let off = map.monotonic(wall(502)).since(at(502)).max(at(502).since(map.monotonic(wall(502))));
            // Nothing is before the clock began.
            let earliest = if jump_us > 0 { Duration::from_ms(502) } else { Duration::MAX };
            assert_eq!(off, Duration::from_us(jump_us.unsigned_abs()).min(earliest));
        }
    }

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(std_span(Duration::from_ps(1)), std::time::Duration::from_nanos(1));
        assert_eq!(span(std::time::Duration::MAX), Duration::MAX);
    }
}
