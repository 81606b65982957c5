//! The clock of a sender, from the timestamps of its packets (RFC 7323, section 4.1), and the delay
//! of each packet in queues before the capture.
//!
//! A timestamp is the sender's time in units of a millisecond, as in all current systems. The least
//! distance between a packet's time at the capture and its timestamp is that of an empty path, and
//! what exceeds it is the delay in queues. Two clocks drift apart by up to [`DRIFT`]. A clock in
//! another unit has no delays.

use lastmile_units::{Duration, Instant};

/// Microseconds in a unit of the timestamps.
const UNIT_US: i64 = 1_000;
/// The largest drift of two clocks, as 1 in this number: 50 parts in a million, as quartz has it.
const DRIFT: i64 = 20_000;
/// A delay above is a step of a clock, such as a suspended host makes it.
const STEP_US: i64 = 30_000_000;
/// The time after which the unit shows.
const SURE_US: i64 = 2_000_000;

/// The clock of a sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    /// The first packet: its time at the capture and its timestamp.
    first: Option<(Instant, u32)>,
    /// The least distance, in us relative to that of the first packet, and when it was measured.
    least: (i64, i64),
    is_other_unit: bool,
}

impl SenderClock {
    /// The delay in queues of a packet with this timestamp, captured at `now`; `None` if the
    /// timestamps have another unit.
    pub(crate) fn queued(&mut self, now: Instant, value: u32) -> Option<Duration> {
        let (first, start) = *self.first.get_or_insert((now, value));
        let elapsed = now.since(first).as_us().cast_signed();
        let sent = i64::from(value.wrapping_sub(start).cast_signed()) * UNIT_US;
        let distance = elapsed - sent;
        // In units of 4 ms the timestamps are three quarters behind, in those of a microsecond far ahead.
        self.is_other_unit |= elapsed > SURE_US && (distance > elapsed / 2 + SURE_US || -distance > elapsed / 2);
        if self.is_other_unit {
            return None;
        }
        let (least, at) = self.least;
        let drifted = least + (elapsed - at) / DRIFT;
        if distance <= drifted || distance - drifted > STEP_US {
            self.least = (distance, elapsed);
            return Some(Duration::ZERO);
        }
        Some(Duration::from_us((distance - drifted).unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// The timestamps wrap after 100 ms.
    #[test]
    fn what_exceeds_the_least_distance_is_the_delay_in_queues() {
        let mut clock = SenderClock::default();
        let stamp = |ms: u32| (u32::MAX - 99).wrapping_add(ms);
        for (now, sent, queued) in [(50, 0, 0), (100, 30, 20), (120, 80, 0), (400, 200, 160), (440, 400, 0)] {
            let queued = Duration::from_ms(queued);
            let own = clock.queued(at(now), stamp(sent)).unwrap();
            assert!(own <= queued && queued.saturating_sub(own) < Duration::from_us(20), "{now}: {own:?}");
        }
    }

    #[test]
    fn clocks_drift_apart_without_a_queue() {
        let mut clock = SenderClock::default();
        for s in 0..3_600 {
            // 40 parts in a million: 144 ms in an hour.
            let now = at(1_000 * s) + Duration::from_us(40 * s);
            assert!(clock.queued(now, 1_000 * s as u32).unwrap() <= Duration::from_ms(1), "{s} s");
        }
    }

    #[test]
    fn clocks_of_another_unit_have_no_delays() {
        for unit_us in [1, 100, 4_000, 10_000] {
            let mut clock = SenderClock::default();
            let delays: Vec<_> = (0..10_000).map(|ms| clock.queued(at(ms), (1_000 * ms / unit_us) as u32)).collect();
            assert!(delays[9_000..].iter().all(Option::is_none), "{unit_us} us");
        }
    }
}
