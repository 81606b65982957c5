//! Live runs beside one another and beside the simulation: medians, their spread, and how far the two lie apart.

use lastmile_results::Run;
use lastmile_results::schema::{Phase, Summary};
use serde::Serialize;

use super::outcome::{Document, Measured};
use crate::table::{Align, Table};

/// What `--json` prints of several runs.
#[derive(Serialize)]
pub(super) struct Beside<'a> {
    #[serde(flatten)]
    pub(super) comparison: Comparison<'a>,
    #[serde(serialize_with = "summary")]
    pub(super) simulated: Option<&'a Run>,
    pub(super) live: Vec<Document<'a>>,
}

fn summary<S: serde::Serializer>(run: &Option<&Run>, serializer: S) -> Result<S::Ok, S::Error> {
    run.map(|run| &run.summary).serialize(serializer)
}

/// Every measure that has a value in each run.
#[derive(Serialize)]
pub(super) struct Comparison<'a> {
    pub(super) scenario: &'a str,
    runs: usize,
    rows: Vec<Row>,
}

/// One measure.
#[derive(Serialize)]
struct Row {
    phase: String,
    /// What it is measured of: a flow, a ping or a link.
    of: String,
    measure: Measure,
    simulated: Option<f64>,
    /// Of the live runs.
    median: f64,
    least: f64,
    most: f64,
    /// How far the median is from the simulated value, as a share of that.
    deviation: Option<f64>,
}

/// What is measured; the name tells the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Measure {
    GoodputBps,
    RttP50S,
    Utilisation,
}

impl Measure {
    fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput, kbit/s",
            Self::RttP50S => "median ping, ms",
            Self::Utilisation => "busy, %",
        }
    }

    /// In the unit of the table.
    fn told(self, value: f64) -> String {
        match self {
            Self::GoodputBps => format!("{:.1}", value / 1e3),
            Self::RttP50S => format!("{:.1}", value * 1e3),
            Self::Utilisation => format!("{:.1}", value * 1e2),
        }
    }
}

impl<'a> Comparison<'a> {
    /// Of at least one live run.
    pub(super) fn new(simulated: Option<&Run>, live: &'a [Measured]) -> Self {
        let summaries: Vec<&Summary> = live.iter().map(|measured| &measured.run.summary).collect();
        let simulated = simulated.map(|run| &run.summary);
        let first = summaries[0];
        let mut rows = Vec::new();
        for phase in &first.phases {
            for (of, measure) in measures(phase) {
                let find = |summary: &Summary| {
                    let phase = summary.phases.iter().find(|other| other.name == phase.name)?;
                    value(phase, &of, measure)
                };
                let values: Option<Vec<f64>> = summaries.iter().map(|summary| find(summary)).collect();
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
        Self { scenario: &first.scenario, runs: live.len(), rows }
    }

    /// For a terminal.
    pub(super) fn table(&self) -> String {
        let live = if self.runs > 1 { format!("live, median of {}", self.runs) } else { "live".to_owned() };
        let columns = [("", Align::Left), ("of", Align::Left), ("measure", Align::Left)];
        let mut columns: Vec<(String, Align)> = columns.map(|(title, align)| (title.to_owned(), align)).to_vec();
        let simulated = self.rows.iter().any(|row| row.simulated.is_some());
        let numbers = [
            ("simulated", simulated),
            (&live, true),
            ("least", self.runs > 1),
            ("most", self.runs > 1),
            ("deviation", simulated),
        ];
        columns
            .extend(numbers.iter().filter(|(_, shown)| *shown).map(|(title, _)| ((*title).to_owned(), Align::Right)));
        let mut table = Table::new(columns);
        let mut last = "";
        for row in &self.rows {
            let told = |value: f64| row.measure.told(value);
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let cells = [
                or_dash(row.simulated.map(told)),
                told(row.median),
                told(row.least),
                told(row.most),
                or_dash(row.deviation.map(|share| format!("{:+.1} %", share * 100.0))),
            ];
            let phase = if row.phase == last { "" } else { &row.phase };
            last = &row.phase;
            let words = [phase.to_owned(), row.of.clone(), row.measure.name().to_owned()];
            let shown = cells.into_iter().zip(&numbers).filter(|(_, (_, shown))| *shown).map(|(cell, _)| cell);
            table.row(words.into_iter().chain(shown));
        }
        table.render()
    }
}

/// Everything that is measured of a phase: flows, pings, and the line in both directions.
fn measures(phase: &Phase) -> Vec<(String, Measure)> {
    let flows = phase.flows.iter().map(|flow| (flow.name.clone(), Measure::GoodputBps));
    let probes = phase.probes.iter().map(|probe| (probe.name.clone(), Measure::RttP50S));
    let links = phase.links.iter().filter(|link| matches!(link.name.as_str(), "up" | "down"));
    flows.chain(probes).chain(links.map(|link| (link.name.clone(), Measure::Utilisation))).collect()
}

fn value(phase: &Phase, of: &str, measure: Measure) -> Option<f64> {
    match measure {
        Measure::GoodputBps => phase.flows.iter().find(|flow| flow.name == of).map(|flow| flow.goodput_bps),
        Measure::RttP50S => phase.probes.iter().find(|probe| probe.name == of)?.rtt_s.p50,
        Measure::Utilisation => phase.links.iter().find(|link| link.name == of)?.utilisation,
    }
}

/// The middle of `sorted`, which is not empty; of two middles their mean.
fn median(sorted: &[f64]) -> f64 {
    let (half, odd) = (sorted.len() / 2, sorted.len() % 2 == 1);
    if odd { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert!((median(&[1.0, 2.0, 9.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-12);
    }
}
