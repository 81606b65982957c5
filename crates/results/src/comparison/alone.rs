//! The downloads without other traffic, with which rows are compared.

use serde::{Deserialize, Serialize};

use crate::goodput::{self, of_direction};
use crate::schema::{Phase, Summary};

/// Goodput above the capacity by less is no more than the octets at the ends of a phase.
const ROUNDING: f64 = 1.01;

/// The goodput of all downloads of a run without other traffic, over any time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Alone {
    duration_s: f64,
    /// The end of the last download.
    ended_s: f64,
    /// Names of the downloads.
    names: Vec<String>,
    /// Over the whole run.
    whole_bps: f64,
    /// From, to, and the goodput between.
    phases: Vec<(f64, f64, f64)>,
}

impl Alone {
    /// The downloads of this run.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        let phases = summary.phases.iter();
        let phases = phases.map(|phase| (phase.from_s, phase.to_s, of_direction(summary, Some(phase), "down")));
        let duration_s = summary.run.duration_s;
        let downloads = summary.flows.iter().filter(|flow| goodput::is_counted(flow, "down"));
        Self {
            duration_s,
            ended_s: downloads.map(|flow| flow.end_s.unwrap_or(duration_s)).fold(0.0, f64::max),
            names: summary.flows.iter().map(|flow| flow.name.clone()).collect(),
            whole_bps: of_direction(summary, None, "down"),
            phases: phases.collect(),
        }
    }

    /// The baseline of a run with other traffic, over a phase of this span or the whole. Downloads of other kinds, such
    /// as web pages, do not count.
    pub(super) fn baseline(&self, summary: &Summary, phase: Option<&Phase>, span: (f64, f64)) -> Baseline {
        let own = || goodput::of(summary, phase, |flow| self.names.contains(&flow.name));
        // Nothing is no baseline: the downloads began later, or were over.
        let reference_bps = self.bps(span).filter(|bps| *bps > 0.0);
        let capacity = summary.links.iter().find(|link| link.name == "down").and_then(|link| link.payload_capacity_bps);
        Baseline {
            download_share: reference_bps.map(|bps| own() / bps),
            reference_bps,
            above_capacity: reference_bps.zip(capacity).is_some_and(|(bps, capacity)| bps > capacity * ROUNDING),
        }
    }

    /// The goodput between two times, bit/s: the mean over the phases between, or that of the whole run. The time after
    /// the end of the last download does not count. `None` if the downloads had no part of that time.
    #[must_use]
    fn bps(&self, (from_s, to_s): (f64, f64)) -> Option<f64> {
        if self.phases.is_empty() || (from_s <= 0.0 && to_s >= self.duration_s) {
            return Some(self.whole_bps);
        }
        let (mut bits, mut seconds) = (0.0, 0.0);
        for (from, to, bps) in &self.phases {
            let (from, to) = (from.max(from_s), to.min(to_s));
            bits += (to - from).max(0.0) * bps;
            seconds += (to.min(self.ended_s) - from).max(0.0);
        }
        (seconds > 0.0).then(|| bits / seconds)
    }
}

/// The downloads of a run beside those of a run without other traffic.
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

    /// Slow start at first: 3 Mbit/s for 5 s, then 15 Mbit/s.
    #[test]
    fn the_baseline_is_that_of_the_measured_time() {
        let phases = vec![(0.0, 5.0, 3e6), (5.0, 10.0, 15e6)];
        let alone = Alone { duration_s: 10.0, ended_s: 10.0, names: Vec::new(), whole_bps: 9e6, phases };
        assert_eq!(alone.bps((5.0, 10.0)), Some(15e6));
        assert_eq!(alone.bps((4.0, 8.0)), Some(12e6));
        assert_eq!(alone.bps((0.0, 10.0)), Some(9e6));
        assert_eq!(alone.bps((10.0, 12.0)), None);
        assert_eq!(Alone { phases: Vec::new(), ..alone }.bps((5.0, 10.0)), Some(9e6));
    }

    /// 20 MB at 40 Mbit/s are over after 4 s. Where another policy has the upload until 5 s, the second with nothing to
    /// send is no part of the baseline.
    #[test]
    fn the_time_after_the_last_download_does_not_count() {
        let phases = vec![(0.0, 2.0, 40e6), (2.0, 4.0, 40e6), (4.0, 10.0, 0.0)];
        let alone = Alone { duration_s: 10.0, ended_s: 4.0, names: Vec::new(), whole_bps: 40e6, phases };
        assert_eq!(alone.bps((2.0, 5.0)), Some(40e6));
        assert_eq!(alone.bps((3.0, 10.0)), Some(40e6));
        assert_eq!(alone.bps((5.0, 10.0)), None);
    }

    /// Pages that come beside the download are no part of what it had alone.
    #[test]
    fn other_downloads_are_no_share() {
        let flow = |name: &str, goodput_bps| {
            let setup = FlowSetup { tcp: Some("cubic".into()), ..FlowSetup::default() };
            let bytes_delivered = 1_000_000;
            Flow { name: name.into(), direction: "down".into(), setup, goodput_bps, bytes_delivered, ..Flow::default() }
        };
        let run = |flows: Vec<Flow>| Summary { flows, ..Summary::default() };
        let alone = Alone::of(&run(vec![flow("download", 8e6)]));
        let beside = run(vec![flow("download", 6e6), flow("web", 3e6)]);
        let expected = Baseline { download_share: Some(0.75), reference_bps: Some(8e6), above_capacity: false };
        assert_eq!(alone.baseline(&beside, None, (0.0, 1.0)), expected);
        // A download that was over when the measured time began has no baseline there.
        let over = Alone { whole_bps: 0.0, ..alone };
        assert_eq!(over.baseline(&beside, None, (0.0, 1.0)), Baseline::default());
    }
}
