//! The measures of a run, phase by phase.

use crate::Run;
use crate::format;
use crate::schema::{Phase, Summary};

/// The fewest replies whose 99th percentile by nearest rank differs from their maximum.
pub(crate) const ENOUGH_FOR_P99: u64 = 100;

const GOODPUT: &str = ": goodput";
const MEDIAN: &str = ": RTT p50";
const TAIL: &str = ": RTT p99";
const LARGEST: &str = ": RTT max";

/// The position of a measure among those of a phase.
pub(crate) fn order(name: &str) -> u8 {
    match name {
        n if n.ends_with(GOODPUT) => 0,
        n if [MEDIAN, TAIL, LARGEST].iter().any(|end| n.ends_with(end)) => 1,
        _ => 2,
    }
}

/// A measured value and its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Rate(f64),
    Seconds(f64),
    Share(f64),
}

impl Value {
    pub(crate) fn bare(self) -> f64 {
        match self {
            Self::Rate(v) | Self::Seconds(v) | Self::Share(v) => v,
        }
    }

    /// The unit, as in the suffix of names of outputs.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Rate(_) => "bps",
            Self::Seconds(_) => "s",
            Self::Share(_) => "share",
        }
    }

    /// This quantity with another value.
    pub(crate) fn with(self, value: f64) -> Self {
        match self {
            Self::Rate(_) => Self::Rate(value),
            Self::Seconds(_) => Self::Seconds(value),
            Self::Share(_) => Self::Share(value),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match *self {
            Self::Rate(bps) => format::rate(bps),
            Self::Seconds(s) => format::seconds(s),
            Self::Share(share) => format::percent(share),
        })
    }
}

/// The measures of a phase, by name.
pub(crate) fn measures(phase: &Phase, links: &[String]) -> Vec<(String, Value)> {
    let flows = phase.flows.iter().map(|flow| (format!("{}{GOODPUT}", flow.name), Value::Rate(flow.goodput_bps)));
    let probes = phase.probes.iter().flat_map(|probe| {
        // The 99th percentile by nearest rank of a few replies is their maximum, and is named so.
        let tail = if probe.received >= ENOUGH_FOR_P99 { (TAIL, probe.rtt_s.p99) } else { (LARGEST, probe.rtt_s.max) };
        let round_trips = [(MEDIAN, probe.rtt_s.p50), tail];
        round_trips
            .into_iter()
            .filter_map(|(what, value)| Some((format!("{}{what}", probe.name), Value::Seconds(value?))))
    });
    let links = phase.links.iter().filter(|link| links.contains(&link.name)).flat_map(|link| {
        let busy = link.utilisation.map(|share| (format!("{}: busy", link.name), Value::Share(share)));
        let delay =
            link.queue_delay_mean_s.map(|mean| (format!("{}: mean queue delay", link.name), Value::Seconds(mean)));
        [busy, delay].into_iter().flatten()
    });
    flows.chain(probes).chain(links).collect()
}

/// The links that were at least a quarter busy in some phase.
pub(crate) fn busy_links(summary: &Summary) -> Vec<String> {
    let phases = summary.phases.iter().flat_map(|phase| &phase.links);
    let mut names: Vec<String> =
        phases.filter(|link| link.utilisation.is_some_and(|busy| busy >= 0.25)).map(|link| link.name.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// The phases of runs of one scenario, each once, and its name; with its traffic, if another phase has the name.
pub(crate) fn phases_of(runs: &[Run]) -> Vec<(String, &Phase)> {
    let mut phases: Vec<&Phase> = Vec::new();
    for phase in runs.iter().flat_map(|run| &run.summary.phases) {
        if !phases.iter().any(|known| known.is(phase)) {
            phases.push(phase);
        }
    }
    let is_alone = |phase: &Phase| phases.iter().filter(|other| other.name == phase.name).count() == 1;
    let label = |phase: &Phase| match phase {
        phase if is_alone(phase) => phase.name.clone(),
        phase if phase.traffic.is_empty() => format!("{}: nothing", phase.name),
        phase => format!("{}: {}", phase.name, phase.traffic.join(", ")),
    };
    phases.iter().map(|phase| (label(phase), *phase)).collect()
}

/// Every measure of the runs, phase by phase: the phase, the name, and the value in each run that has it.
pub(crate) fn measured(runs: &[Run]) -> Vec<(String, String, Vec<Value>)> {
    let links = distinct(runs.iter().flat_map(|run| busy_links(&run.summary)));
    let mut all = Vec::new();
    for (label, phase) in phases_of(runs) {
        let same = runs.iter().filter_map(|run| run.summary.same_phase(phase));
        let values: Vec<Vec<(String, Value)>> = same.map(|same| measures(same, &links)).collect();
        let mut names = distinct(values.iter().flatten().map(|(name, _)| name.clone()));
        names.sort_by_key(|name| order(name));
        for name in names {
            let find = |values: &Vec<(String, Value)>| {
                values.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            };
            all.push((label.clone(), name.clone(), values.iter().filter_map(find).collect()));
        }
    }
    all
}

/// The names without repetition, in the order of first occurrence.
pub(crate) fn distinct<T: PartialEq>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut distinct: Vec<T> = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
