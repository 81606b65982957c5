//! Live runs compared with each other and with the simulation: medians, their spread, and the
//! deviation.

use serde::Serialize;

use crate::format::{self, or_dash};
use crate::schema::{Clock, Phase, Summary};
use crate::tabular::{Column, Kind, Table};
use crate::{Run, table};

/// Every measure that has a value in each live run.
#[derive(Clone, Debug, Serialize)]
pub struct LiveComparison {
    /// Name of the scenario.
    pub scenario: String,
    /// Number of live runs.
    pub runs: usize,
    /// One row per measure, phase by phase.
    pub rows: Vec<Row>,
}

/// One measure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The phase.
    pub phase: String,
    /// The flow, ping or link.
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

/// A measured quantity; its name includes the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Goodput of a flow in the phase.
    GoodputBps,
    /// Segments that a flow retransmitted in the phase.
    Retransmissions,
    /// Median round-trip time of a ping.
    RttP50S,
    /// The 99th percentile of a ping's round-trip time.
    RttP99S,
    /// Mean queueing delay of a link.
    QueueDelayMeanS,
    /// Share of the phase during which the wire was busy.
    Utilisation,
}

impl Measure {
    const fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput, kbit/s",
            Self::Retransmissions => "retransmitted",
            Self::RttP50S => "ping p50, ms",
            Self::RttP99S => "ping p99, ms",
            Self::QueueDelayMeanS => "queue, ms",
            Self::Utilisation => "busy, %",
        }
    }

    /// The value in the unit of the table.
    fn text(self, value: f64) -> String {
        match self {
            Self::GoodputBps => format!("{:.1}", value / 1e3),
            Self::RttP50S | Self::RttP99S | Self::QueueDelayMeanS => format!("{:.1}", value * 1e3),
            Self::Utilisation => format!("{:.1}", value * 1e2),
            Self::Retransmissions => format!("{value:.0}"),
        }
    }

    fn of(self, phase: &Phase, of: &str) -> Option<f64> {
        let flow = || phase.flows.iter().find(|flow| flow.name == of);
        let probe = || phase.probes.iter().find(|probe| probe.name == of);
        let link = || phase.links.iter().find(|link| link.name == of);
        match self {
            Self::GoodputBps => flow().map(|flow| flow.goodput_bps),
            Self::Retransmissions => flow()?.retransmissions.map(format::to_f64),
            Self::RttP50S => probe()?.rtt_s.p50,
            Self::RttP99S => probe()?.rtt_s.p99,
            Self::QueueDelayMeanS => link()?.queue_delay_mean_s,
            Self::Utilisation => link()?.utilisation,
        }
    }
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
                    let phase = summary.phases.iter().find(|other| other.name == phase.name)?;
                    measure.of(phase, &of)
                };
                let values: Option<Vec<f64>> = live.iter().map(|summary| find(summary)).collect();
                let Some(mut values) = values else { continue };
                values.sort_by(f64::total_cmp);
                let median = median(&values);
                let simulated = simulated.and_then(find);
                rows.push(Row {
                    phase: phase.name.clone(),
                    of,
                    measure,
                    simulated,
                    median,
                    least: values[0],
                    most: values[values.len() - 1],
                    deviation: simulated.filter(|value| *value > 0.0).map(|value| median / value - 1.0),
                });
            }
        }
        Some(Self { scenario: first.run.scenario.clone(), runs: live.len(), rows })
    }

    /// The tables for a terminal of `width` columns, one per phase.
    #[must_use]
    pub fn table(&self, width: u16) -> String {
        self.tables().iter().fold(String::new(), |mut text, table| {
            table::whole(&mut text, table, width);
            text
        })
    }

    /// One table per phase, named in its title.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let simulated = self.rows.iter().any(|row| row.simulated.is_some());
        let live = if self.runs > 1 { format!("live, median\nof {}", self.runs) } else { "live".to_owned() };
        let numbers = [
            ("simulated", simulated),
            (&live, true),
            ("least", self.runs > 1),
            ("most", self.runs > 1),
            ("deviation", simulated),
        ];
        let mut tables: Vec<Table> = Vec::new();
        for row in &self.rows {
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

/// The median of `sorted`, which is not empty.
fn median(sorted: &[f64]) -> f64 {
    let (half, odd) = (sorted.len() / 2, sorted.len() % 2 == 1);
    if odd { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
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
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert!((median(&[1.0, 2.0, 9.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-12);
    }

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
