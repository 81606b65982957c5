//! Runs with several seeds: a mean and its 95 % confidence interval for each measure of each phase.

use lastmile_theory::interval::Mean;
use serde::Serialize;

use crate::Run;
use crate::format::some_of;
use crate::measures::{Value, measured};

/// Runs that differ only by seed.
#[derive(Clone, Debug)]
pub struct Seeded {
    /// Name among the compared sets of runs; empty for a single one.
    pub label: String,
    /// One run for each seed.
    pub runs: Vec<Run>,
}

/// The measures of runs that differ only by seed, in the form of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct Means<'a> {
    /// Name among the compared sets of runs; empty for a single one.
    pub label: &'a str,
    /// Every measure.
    pub measures: Vec<Measure>,
}

/// One measure over all seeds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measure {
    /// Name of the phase, or `over the whole run`.
    pub phase: String,
    /// The measure, such as `download: goodput`.
    pub name: String,
    /// `bps`, `s`, or `share`.
    pub unit: &'static str,
    /// Mean over the runs that have the measure; `None` if no run of the row has what runs of another row have.
    pub mean: Option<f64>,
    /// Half width of the 95 % confidence interval of the mean (Student's t); `None` for a single run.
    pub ci95: Option<f64>,
    /// Runs that have the measure.
    pub runs: u64,
}

/// A mean with its interval, `81.6 Mbit/s ± 1.2 Mbit/s`, or `2.0 s ± 0.1 s (2 of 3)` where only some of the runs have
/// the measure.
pub(crate) fn text((Mean { mean, ci95 }, values): (Mean, u64), seeds: usize, text: impl Fn(f64) -> String) -> String {
    let interval = ci95.map_or_else(String::new, |ci95| format!(" ± {}", text(ci95)));
    let some = some_of(values, seeds as u64);
    format!("{}{interval}{some}", text(mean))
}

impl Seeded {
    /// Every measure of the runs, in the order of the table.
    #[must_use]
    pub fn measures(&self) -> Vec<Measure> {
        measured(&self.runs).into_iter().filter_map(|(phase, name, values)| of(phase, name, &values)).collect()
    }
}

fn of(phase: String, name: String, values: &[Value]) -> Option<Measure> {
    let samples: Vec<f64> = values.iter().map(|value| value.bare()).collect();
    let Mean { mean, ci95 } = Mean::of(&samples)?;
    Some(Measure { phase, name, unit: values.first()?.unit(), mean: Some(mean), ci95, runs: samples.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Summary;
    use crate::schema::{Phase, PhaseFlow};

    /// A phase in which the transfer has this goodput next to `others`.
    fn phase(name: &str, others: &[&str], goodput_bps: f64) -> Phase {
        let flow = PhaseFlow { name: "down".into(), offered: true, goodput_bps, ..PhaseFlow::default() };
        let traffic = others.iter().chain(&["down"]).map(|name| (*name).to_owned()).collect();
        Phase { name: name.into(), traffic, flows: vec![flow], ..Phase::default() }
    }

    fn run(phases: Vec<Phase>) -> Run {
        let summary = Summary { phases, ..Summary::default() };
        Run { label: String::new(), own: Vec::new(), summary, series: Vec::new() }
    }

    /// An upload that ends late lives for the whole run in the third seed, so that its name is left out of the phase's:
    /// that phase is another one.
    #[test]
    fn phases_of_one_name_with_other_traffic_are_no_seeds_of_each_other() {
        let alone = |bps| run(vec![phase("during down", &[], bps)]);
        let runs = vec![alone(1e6), alone(3e6), run(vec![phase("during down", &["up"], 5e5)])];
        let measures = Seeded { label: String::new(), runs }.measures();
        let told: Vec<(&str, Option<f64>, u64)> =
            measures.iter().map(|one| (&*one.phase, one.mean, one.runs)).collect();
        assert_eq!(told, [("during down: down", Some(2e6), 2), ("during down: up, down", Some(5e5), 1)]);
    }
}
