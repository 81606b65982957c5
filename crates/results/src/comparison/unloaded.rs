//! The downloads without other traffic, with which rows are compared.

use serde::{Deserialize, Serialize};

use crate::goodput::{self, of_direction};
use crate::schema::{Phase, Summary};

/// Goodput above the capacity by less is no more than the octets at the ends of a phase.
const ROUNDING: f64 = 1.01;

/// The goodput of all downloads of a run without other traffic, over any time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Unloaded {
    duration_s: f64,
    /// The end of the last download.
    ended_s: f64,
    /// Names of the downloads.
    names: Vec<String>,
    whole: Part,
    /// Between two changes of the downloads.
    phases: Vec<Part>,
}

/// A part of the run, and what the downloads have in it.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Part {
    from_s: f64,
    to_s: f64,
    bps: f64,
    /// Payload that the line carries.
    capacity_bps: Option<f64>,
}

impl Unloaded {
    /// The downloads of this run.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        let phases = summary.phases.iter().map(|phase| {
            let down = phase.links.iter().find(|link| link.name == "down");
            let capacity_bps = down.and_then(|link| link.payload_capacity_bps);
            let bps = of_direction(summary, Some(phase), "down");
            Part { from_s: phase.from_s, to_s: phase.to_s, bps, capacity_bps }
        });
        let down = summary.links.iter().find(|link| link.name == "down");
        let duration_s = summary.run.duration_s;
        let downloads = summary.flows.iter().filter(|flow| goodput::is_counted(flow, "down"));
        Self {
            duration_s,
            ended_s: downloads.map(|flow| flow.end_s.unwrap_or(duration_s)).fold(0.0, f64::max),
            names: summary.flows.iter().map(|flow| flow.name.clone()).collect(),
            whole: Part {
                from_s: 0.0,
                to_s: duration_s,
                bps: of_direction(summary, None, "down"),
                capacity_bps: down.and_then(|link| link.payload_capacity_bps),
            },
            phases: phases.collect(),
        }
    }

    /// The baseline of a run with other traffic, over a phase of this span or the whole. Downloads of other kinds, such
    /// as web pages, do not count.
    pub(super) fn baseline(&self, summary: &Summary, phase: Option<&Phase>, span: (f64, f64)) -> Baseline {
        let own = || goodput::of(summary, phase, |flow| self.names.contains(&flow.name));
        // Nothing is no baseline: the downloads began later, or were over.
        let Some(alone) = self.part(span).filter(|alone| alone.bps > 0.0) else { return Baseline::default() };
        Baseline {
            download_share: Some(own() / alone.bps),
            reference_bps: Some(alone.bps),
            above_capacity: alone.capacity_bps.is_some_and(|capacity| alone.bps > capacity * ROUNDING),
        }
    }

    /// The goodput of the downloads between two times: the mean over the phases between, or that of the whole run. The
    /// time after the end of the last download does not count. `None` if the downloads had no part of that time.
    fn part(&self, (from_s, to_s): (f64, f64)) -> Option<Part> {
        if self.phases.is_empty() || (from_s <= 0.0 && to_s >= self.duration_s) {
            return Some(self.whole);
        }
        let (mut bits, mut seconds) = (0.0, 0.0);
        let mut carried = Some((0.0, 0.0));
        for phase in &self.phases {
            let (from, to) = (phase.from_s.max(from_s), phase.to_s.min(to_s));
            let length = (to - from).max(0.0);
            bits += length * phase.bps;
            seconds += (to.min(self.ended_s) - from).max(0.0);
            if length > 0.0 {
                carried = carried
                    .zip(phase.capacity_bps)
                    .map(|((bits, seconds), capacity)| (bits + length * capacity, seconds + length));
            }
        }
        let capacity_bps = carried.map(|(bits, seconds)| bits / seconds);
        (seconds > 0.0).then(|| Part { from_s, to_s, bps: bits / seconds, capacity_bps })
    }
}

/// The downloads of a run next to those of a run without other traffic.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Baseline {
    /// Goodput of the bulk downloads as a share of what they have without other traffic in that time, with the same
    /// values of other keys; `None` if that is unknown or nothing.
    pub download_share: Option<f64>,
    /// The goodput that they have without other traffic in that time, bit/s.
    pub reference_bps: Option<f64>,
    /// True if that is more than the line carries: goodput counts what is delivered in order, so octets behind a gap
    /// count when it closes.
    #[serde(skip)]
    pub above_capacity: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Flow, FlowSetup};

    fn part(from_s: f64, to_s: f64, bps: f64, capacity_bps: f64) -> Part {
        Part { from_s, to_s, bps, capacity_bps: Some(capacity_bps) }
    }

    /// A run of 10 s, of which the whole has 9 Mbit/s.
    fn alone(ended_s: f64, phases: Vec<Part>) -> Unloaded {
        Unloaded { duration_s: 10.0, ended_s, names: Vec::new(), whole: part(0.0, 10.0, 9e6, 10e6), phases }
    }

    fn bps(alone: &Unloaded, span: (f64, f64)) -> Option<f64> {
        alone.part(span).map(|part| part.bps)
    }

    /// Slow start at first: 3 Mbit/s for 5 s, then 15 Mbit/s.
    #[test]
    fn the_baseline_is_that_of_the_measured_time() {
        let alone = alone(10.0, vec![part(0.0, 5.0, 3e6, 4e6), part(5.0, 10.0, 15e6, 16e6)]);
        assert_eq!(bps(&alone, (5.0, 10.0)), Some(15e6));
        assert_eq!(bps(&alone, (4.0, 8.0)), Some(12e6));
        assert_eq!(bps(&alone, (0.0, 10.0)), Some(9e6));
        assert_eq!(bps(&alone, (10.0, 12.0)), None);
        assert_eq!(bps(&Unloaded { phases: Vec::new(), ..alone }, (5.0, 10.0)), Some(9e6));
    }

    /// The line carries 2 Mbit/s for 1 s, and 20 from then on: over the run it has less than the downloads have in the
    /// measured time.
    #[test]
    fn the_capacity_is_that_of_the_measured_time() {
        let above = |fast_bps| {
            let mut alone = alone(10.0, vec![part(0.0, 1.0, 1.9e6, 1.93e6), part(1.0, 10.0, fast_bps, 19.3e6)]);
            alone.whole.capacity_bps = Some(17.6e6);
            alone.baseline(&Summary::default(), None, (5.0, 10.0)).above_capacity
        };
        assert!(!above(19.3e6) && above(19.6e6));
        let mixed = alone(10.0, vec![part(0.0, 5.0, 3e6, 4e6), part(5.0, 10.0, 15e6, 16e6)]);
        assert_eq!(mixed.part((4.0, 8.0)).and_then(|part| part.capacity_bps), Some(13e6));
    }

    /// 20 MB at 40 Mbit/s are over after 4 s. Where another policy has the upload until 5 s, the second with nothing to
    /// send is no part of the baseline.
    #[test]
    fn the_time_after_the_last_download_does_not_count() {
        let of = |from_s, to_s, bps| part(from_s, to_s, bps, 48e6);
        let alone = alone(4.0, vec![of(0.0, 2.0, 40e6), of(2.0, 4.0, 40e6), of(4.0, 10.0, 0.0)]);
        assert_eq!(bps(&alone, (2.0, 5.0)), Some(40e6));
        assert_eq!(bps(&alone, (3.0, 10.0)), Some(40e6));
        assert_eq!(bps(&alone, (5.0, 10.0)), None);
    }

    /// Pages that come next to the download are no part of what it had alone.
    #[test]
    fn other_downloads_are_no_share() {
        let flow = |name: &str, goodput_bps| {
            let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
            let bytes_delivered = 1_000_000;
            Flow { name: name.into(), direction: "down".into(), setup, goodput_bps, bytes_delivered, ..Flow::default() }
        };
        let run = |flows: Vec<Flow>| Summary { flows, ..Summary::default() };
        let alone = Unloaded::of(&run(vec![flow("download", 8e6)]));
        let beside = run(vec![flow("download", 6e6), flow("web", 3e6)]);
        let expected = Baseline { download_share: Some(0.75), reference_bps: Some(8e6), above_capacity: false };
        assert_eq!(alone.baseline(&beside, None, (0.0, 1.0)), expected);
        // A download that was over when the measured time began has no baseline there.
        let over = Unloaded { whole: Part::default(), ..alone };
        assert_eq!(over.baseline(&beside, None, (0.0, 1.0)), Baseline::default());
    }
}
