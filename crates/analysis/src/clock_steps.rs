//! Steps of the capture's clock that the timestamps of connections show (RFC 7323).
//!
//! Where the clock of a capture is set forward, time passes between two packets that their sender's timestamps do not
//! have. A delay on the way to the capture, or a sender that was suspended, does that to one end of a connection; a
//! step to both at once. Only timestamps in milliseconds, as all current systems have them, count: a second of a
//! connection shows the unit. Cost: two subtractions for each packet.

use lastmile_units::{Duration, Instant};

use crate::timestamps;

/// The least step.
const LEAST: Duration = Duration::from_s(1);
/// The time after which the unit shows.
const SURE: Duration = Duration::from_s(1);
/// The largest error of a clock in the right unit, as 1 in this number, and of both ends about a step.
const ERROR: u64 = 10;

/// A step forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// The last packet before it, and the first after it.
    pub between: (Instant, Instant),
    /// What the clock gained.
    pub by: Duration,
}

impl ClockStep {
    /// The time in which both lie, if there is one.
    fn common(&self, other: &Self) -> Option<(Instant, Instant)> {
        let between = (self.between.0.max(other.between.0), self.between.1.min(other.between.1));
        (between.0 < between.1).then_some(between)
    }
}

/// The timestamps of one end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamps {
    first: Option<(Instant, u32)>,
    last: Option<(Instant, u32)>,
    is_ms: bool,
    /// The last time that passed at the capture alone.
    gain: Option<ClockStep>,
}

impl Stamps {
    /// Records a packet of this end with this timestamp.
    pub(crate) fn note(&mut self, now: Instant, value: u32) {
        let span = |from: u32| Duration::from_ms(value.wrapping_sub(from).into());
        let (start, origin) = *self.first.get_or_insert((now, value));
        let (at, last) = *self.last.get_or_insert((now, value));
        if timestamps::is_before(value, last) {
            return;
        }
        let by = now.since(at).saturating_sub(span(last));
        if by < LEAST {
            let (here, there) = (now.since(start), span(origin));
            self.is_ms |= here >= SURE && here.max(there) - here.min(there) <= here / ERROR;
        } else if self.is_ms {
            self.gain = Some(ClockStep { between: (at, now), by });
        }
        self.last = Some((now, value));
    }

    /// The step that both ends show: at least what either of them does, as the other end's packet may have been
    /// delayed.
    pub(crate) fn step(&mut self, other: &mut Self) -> Option<ClockStep> {
        let (own, others) = self.gain.zip(other.gain)?;
        let (by, most) = (own.by.min(others.by), own.by.max(others.by));
        let between = own.common(&others).filter(|_| most - by <= most / ERROR)?;
        (self.gain, other.gain) = (None, None);
        Some(ClockStep { between, by })
    }
}

/// The steps of a capture, which each of its connections may show.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClockSteps(Vec<ClockStep>);

impl ClockSteps {
    pub(crate) fn note(&mut self, step: ClockStep) {
        match self.0.iter_mut().rev().find_map(|known| known.common(&step).map(|between| (known, between))) {
            Some((known, between)) => *known = ClockStep { between, by: known.by.min(step.by) },
            None => self.0.push(step),
        }
    }

    pub(crate) fn all(&self) -> &[ClockStep] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    /// The steps that two ends show by packets: the end, the capture's time and the timestamp.
    fn steps(packets: &[(usize, u64, u32)]) -> Vec<(Instant, Instant, u64)> {
        let (mut ends, mut steps) = ([Stamps::default(); 2], ClockSteps::default());
        for &(end, ms, value) in packets {
            let [one, other] = &mut ends;
            let (own, other) = if end == 0 { (one, other) } else { (other, one) };
            own.note(at(ms), value);
            own.step(other).into_iter().for_each(|step| steps.note(step));
        }
        steps.all().iter().map(|step| (step.between.0, step.between.1, step.by.as_ms())).collect()
    }

    /// Packets of both ends every 100 ms for 2 s, across the wrap of the timestamps; then the clock gains an hour.
    fn begun(unit_ms: u64) -> Vec<(usize, u64, u32)> {
        let value = |ms: u64| (u32::MAX - 500).wrapping_add((ms / unit_ms) as u32);
        (0..=20).flat_map(|number| [0, 1].map(|end| (end, 100 * number, value(100 * number)))).collect()
    }

    fn value(ms: u32) -> u32 {
        (u32::MAX - 500).wrapping_add(ms)
    }

    #[test]
    fn an_hour_that_no_timestamp_has_is_a_step() {
        let mut packets = begun(1);
        packets.extend([(0, 3_602_100, value(2_100)), (1, 3_602_130, value(2_100)), (0, 3_602_200, value(2_200))]);
        assert_eq!(steps(&packets), [(at(2_000), at(3_602_100), 3_600_000)]);
    }

    #[test]
    fn a_pause_a_delay_and_a_suspended_host_are_no_steps() {
        let with = |more: &[(usize, u64, u32)]| steps(&[&begun(1), more].concat());
        assert_eq!(with(&[(0, 3_602_100, value(3_602_100)), (1, 3_602_130, value(3_602_130))]), [], "a pause");
        // A packet in a queue for 10 s, its answer, and a host that slept.
        assert_eq!(with(&[(0, 12_100, value(2_100)), (1, 12_100, value(12_100))]), [], "a delay of one end");
        // Both ends are delayed one after the other.
        let apart = [(0, 5_100, value(2_100)), (1, 5_100, value(5_100)), (0, 9_000, value(9_000))];
        assert_eq!(with(&[&apart[..], &[(1, 9_000, value(5_200)), (0, 9_100, value(9_100))]].concat()), []);
        // The ends have gained 5 s and 9 s.
        assert_eq!(with(&[(0, 7_100, value(2_100)), (1, 11_100, value(2_100))]), [], "different delays");
    }

    #[test]
    fn timestamps_of_another_unit_show_no_step() {
        let mut packets = begun(10);
        packets.extend([(0, 3_602_000, value(360_200)), (1, 3_602_000, value(360_200))]);
        assert_eq!(steps(&packets), []);
    }

    #[test]
    fn connections_show_a_step_once() {
        let mut all = ClockSteps::default();
        for (from, to, by) in [(0, 9_000, 5_200), (1_000, 8_000, 5_000), (20_000, 30_000, 7_000)] {
            all.note(ClockStep { between: (at(from), at(to)), by: Duration::from_ms(by) });
        }
        let found: Vec<_> = all.all().iter().map(|step| (step.between, step.by.as_ms())).collect();
        assert_eq!(found, [((at(1_000), at(8_000)), 5_000), ((at(20_000), at(30_000)), 7_000)]);
    }
}
