//! Live runs compared with each other and with the simulation: medians, their spread, and the
//! deviation.

mod measure;

use lastmile_analysis::quantiles::median;
use serde::Serialize;

pub use self::measure::Measure;
use crate::format::or_dash;
use crate::schema::{Clock, Phase, Summary};
use crate::tabular::{Column, Kind, Table};
use crate::{Run, table};

/// The title of the measures of applications.
const APPLICATIONS: &str = "applications, over the whole run";

/// Every measure that has a value in each live run.
#[derive(Clone, Debug, Serialize)]
pub struct LiveComparison {
    /// Name of the scenario.
    pub scenario: String,
    /// Number of live runs.
    pub runs: usize,
    /// One row per measure, phase by phase.
    pub rows: Vec<Row>,
    /// One row per measure of each application, over the whole run.
    pub applications: Vec<Row>,
}

/// One measure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The phase; of applications the whole run.
    pub phase: String,
    /// The flow, ping, link or application.
    pub of: String,
    /// The measured quantity.
    pub measure: Measure,
    /// The simulated value.
    pub simulated: Option<f64>,
    /// The median of the live runs.
    pub median: f64,
    /// The minimum of the live runs.
    pub least: f64,
    /// The maximum of the live runs.
    pub most: f64,
    /// Relative deviation of the median from the simulated value.
    pub deviation: Option<f64>,
}

impl LiveComparison {
    /// The live runs among `runs`, compared with the first simulated one if there is any. `None` if
    /// no comparison is possible: no live run, a single one without simulation, or several with
    /// different inputs, whose median has no meaning.
    #[must_use]
    pub fn new(runs: &[Run]) -> Option<Self> {
        let of = |clock: Clock| runs.iter().map(|run| &run.summary).filter(move |summary| summary.run.clock == clock);
        let live: Vec<&Summary> = of(Clock::Monotonic).collect();
        let simulated = of(Clock::Simulated).next();
        let first = *live.first()?;
        let one_thing = live.iter().all(|summary| summary.run.inputs == first.run.inputs);
        if live.len() + usize::from(simulated.is_some()) < 2 || !one_thing {
            return None;
        }
        let mut rows = Vec::new();
        for phase in &first.phases {
            for (of, measure) in measures(phase) {
                let find = |summary: &Summary| {
                    let phase = summary.same_phase(phase)?;
                    measure.of_phase(phase, &of)
                };
                rows.extend(row((&phase.name, &of), measure, &live, simulated, &find));
            }
        }
        let applications = measure::of_applications(first).into_iter().filter_map(|(of, measure)| {
            let find = |summary: &Summary| measure.of_run(summary, &of);
            row((APPLICATIONS, &of), measure, &live, simulated, &find)
        });
        let applications = applications.collect();
        Some(Self { scenario: first.run.scenario.clone(), runs: live.len(), rows, applications })
    }

    /// The tables for a terminal of `width` columns, one per phase and one of applications.
    #[must_use]
    pub fn table(&self, width: u16) -> String {
        self.tables().iter().fold(String::new(), |mut text, table| {
            table::whole(&mut text, table, width);
            text
        })
    }

    /// One table per phase, named in its title, and one of applications.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let simulated = self.rows.iter().chain(&self.applications).any(|row| row.simulated.is_some());
        let live = if self.runs > 1 { format!("live, median\nof {}", self.runs) } else { "live".to_owned() };
        let numbers = [
            ("simulated", simulated),
            (&live, true),
            ("least", self.runs > 1),
            ("most", self.runs > 1),
            ("deviation", simulated),
        ];
        let mut tables: Vec<Table> = Vec::new();
        for row in self.rows.iter().chain(&self.applications) {
            let text = |value: f64| row.measure.text(value);
            let cells = [
                or_dash(row.simulated, text),
                text(row.median),
                text(row.least),
                text(row.most),
                or_dash(row.deviation, |share| format!("{:+.1} %", share * 100.0)),
            ];
            if tables.last().is_none_or(|table| table.title != row.phase) {
                let text = [("Of", Kind::Name), ("Measure", Kind::Text)].map(|(name, kind)| (name.to_owned(), kind));
                let shown = numbers.iter().filter(|(_, shown)| *shown);
                let shown = shown.map(|(name, _)| ((*name).to_owned(), Kind::Number));
                let columns = text.into_iter().chain(shown).map(|(name, kind)| Column { name, kind });
                tables.push(Table { title: row.phase.clone(), columns: columns.collect(), rows: Vec::new() });
            }
            let words = [row.of.clone(), row.measure.name().to_owned()];
            let shown = cells.into_iter().zip(&numbers).filter(|(_, (_, shown))| *shown).map(|(cell, _)| cell);
            if let Some(table) = tables.last_mut() {
                table.rows.push(words.into_iter().chain(shown).collect());
            }
        }
        tables
    }
}

/// The row of a measure with a value in each live run.
fn row(
    (phase, of): (&str, &str),
    measure: Measure,
    live: &[&Summary],
    simulated: Option<&Summary>,
    find: &dyn Fn(&Summary) -> Option<f64>,
) -> Option<Row> {
    let mut values: Vec<f64> = live.iter().map(|summary| find(summary)).collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let median = median(&values);
    let simulated = simulated.and_then(find);
    Some(Row {
        phase: phase.to_owned(),
        of: of.to_owned(),
        measure,
        simulated,
        median,
        least: values[0],
        most: values[values.len() - 1],
        deviation: simulated.filter(|value| *value > 0.0).map(|value| median / value - 1.0),
    })
}

/// Everything that is compared in a phase: flows, pings, and the line in both directions.
fn measures(phase: &Phase) -> Vec<(String, Measure)> {
    let each = |name: &String, measures: &[Measure]| -> Vec<(String, Measure)> {
        measures.iter().map(|measure| (name.clone(), *measure)).collect()
    };
    let flows = phase.flows.iter().flat_map(|flow| each(&flow.name, &[Measure::GoodputBps, Measure::Retransmissions]));
    let probes = phase.probes.iter().flat_map(|probe| each(&probe.name, &[Measure::RttP50S, Measure::RttP99S]));
    let links = phase.links.iter().filter(|link| matches!(link.name.as_str(), "up" | "down"));
    let links = links.flat_map(|link| each(&link.name, &[Measure::QueueDelayMeanS, Measure::Utilisation]));
    flows.chain(probes).chain(links).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{PhaseFlow, PhaseProbe, RoundTrip, RunFacts};

    fn run(clock: Clock, goodput_bps: f64, p50: Option<f64>) -> Run {
        let flow = PhaseFlow { name: "download".into(), goodput_bps, retransmissions: Some(3), ..PhaseFlow::default() };
        let probe = PhaseProbe {
            name: "ping".into(),
            rtt_s: RoundTrip { p50, ..RoundTrip::default() },
            ..PhaseProbe::default()
        };
        let phase = Phase { name: "during upload".into(), flows: vec![flow], probes: vec![probe], ..Phase::default() };
        let summary = Summary {
            run: RunFacts { scenario: "test".into(), clock, ..RunFacts::default() },
            phases: vec![phase],
            ..Summary::default()
        };
        Run { label: String::new(), own: Vec::new(), summary, series: Vec::new() }
    }

    fn rows(runs: &[Run]) -> Vec<Row> {
        LiveComparison::new(runs).unwrap().rows
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {}

    /// 440 against 400 kbit/s is 10 % more. A measure that one of the live runs lacks is omitted.
    #[test]
    fn live_runs_have_median_least_and_most_and_their_deviation_from_the_simulation() {
        let runs = [
            run(Clock::Simulated, 4e5, Some(0.1)),
            run(Clock::Monotonic, 4.7e5, Some(0.2)),
            run(Clock::Monotonic, 4.2e5, None),
            run(Clock::Monotonic, 4.4e5, Some(0.3)),
        ];
        let rows = rows(&runs);
        let measures: Vec<Measure> = rows.iter().map(|row| row.measure).collect();
        assert_eq!(measures, [Measure::GoodputBps, Measure::Retransmissions]);
        let Row { median, least, most, deviation, .. } = rows[0];
        assert_eq!((median, least, most), (4.4e5, 4.2e5, 4.7e5));
        assert!((deviation.unwrap() - 0.1).abs() < 1e-12);
        let text = LiveComparison::new(&runs).unwrap().table(80);
        assert!(text.starts_with("during upload\n") && text.contains("+10.0 %"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    /// A start of 2.2 s live and 2 s simulated; the stalls of a run without any are 0 %, from which nothing deviates.
    #[test]
    fn applications_are_compared_over_the_whole_run() {
        let film = |clock, start_s| {
            let video = crate::schema::Video {
                name: "film".into(),
                start_s: Some(start_s),
                stalled_share: Some(0.0),
                ..crate::schema::Video::default()
            };
            let mut run = run(clock, 1e6, None);
            run.summary.applications.videos.push(video);
            run
        };
        let runs = [film(Clock::Simulated, 2.0), film(Clock::Monotonic, 2.2)];
        let found = LiveComparison::new(&runs).unwrap();
        let [start, stalled] = &found.applications[..] else { panic!("{found:?}") };
        assert_eq!((&*start.phase, &*start.of, start.measure), (APPLICATIONS, "film", Measure::StartS));
        assert!((start.deviation.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!((stalled.measure, stalled.median, stalled.deviation), (Measure::StalledShare, 0.0, None));
        let text = found.table(100);
        assert!(text.contains("applications, over the whole run\n") && text.contains("start, ms"), "{text}");
    }

    #[test]
    fn one_run_alone_is_compared_with_nothing() {
        assert!(LiveComparison::new(&[run(Clock::Monotonic, 1.0, None)]).is_none());
        assert!(LiveComparison::new(&[run(Clock::Simulated, 1.0, None), run(Clock::Simulated, 2.0, None)]).is_none());
        assert_eq!(rows(&[run(Clock::Monotonic, 1.0, None), run(Clock::Monotonic, 3.0, None)])[0].simulated, None);
    }

    #[test]
    fn live_runs_of_different_remedies_have_no_median() {
        let mut other = run(Clock::Monotonic, 3.0, None);
        other.summary.run.inputs.set = vec!["access.policy=cake".into()];
        assert!(LiveComparison::new(&[run(Clock::Monotonic, 1.0, None), other]).is_none());
    }
}
