//! The machine's monotonic clock as the datapath's [`Instant`], and the kernel's receive stamps on the same scale.
//!
//! `CLOCK_MONOTONIC` counts nanoseconds; they become picoseconds since the program began, so that 213 days fit. Receive stamps
//! (`SO_TIMESTAMPNS`) are of `CLOCK_REALTIME`, which may be set at any time: [`StampMap`] measures the distance anew whenever
//! it is asked to.

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
}

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::ZERO + span(self.start.elapsed())
    }
}

/// How a time of `CLOCK_REALTIME` reads on a [`MonotonicClock`].
#[derive(Clone, Copy, Debug)]
pub struct StampMap {
    /// The same moment on both clocks.
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

/// A span of the standard library; held at the longest that fits, 213 days.
pub(crate) fn span(span: std::time::Duration) -> Duration {
    match u64::try_from(span.as_nanos()) {
        Ok(ns) if ns <= u64::MAX / 1_000 => Duration::from_ns(ns),
        _ => Duration::MAX,
    }
}

/// A span for the standard library, rounded up to a nanosecond: who waits this long is not early.
pub(crate) fn std_span(span: Duration) -> std::time::Duration {
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

    #[test]
    fn a_wait_is_rounded_up() {
        assert_eq!(std_span(Duration::from_ps(1)), std::time::Duration::from_nanos(1));
        assert_eq!(span(std::time::Duration::MAX), Duration::MAX);
    }
}
