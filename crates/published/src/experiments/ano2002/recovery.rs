//! Ano et al. 2002, section 5: how connections of each class recover, and what makes them differ.

use lastmile_analysis::fairness::{Share, fairness};

use crate::data::Table;
use crate::reproduction::RowResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::seeds::{SEEDS, means};
use super::super::trial::{Overrides, Trial, Variation as _};
use super::super::{Drawing, ExperimentError};
use super::testbed::{Point, Setup, connections, mean};

const TIMEOUTS: &str = "timeouts_per_connection";
const FAST: &str = "fast_retransmits_per_connection";
const PAUSES: &str = "pauses_above_1s_per_connection";
const LONGEST: &str = "longest_pause_s";
const CORRELATION: &str = "correlation_of_goodput_with_timeouts";

/// Where runs are shorter than the paper's, three times as long, since what is looked for is rare.
fn long(setup: &Setup) -> Setup {
    Setup { duration_s: (3 * setup.duration_s).min(Setup::base().duration_s), ..setup.clone() }
}

pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let setup = long(setup);
    let sampled = |seed: &u64| Point::at(80).run(&setup, *seed, sampled);
    let runs = seeds.iter().map(sampled).collect::<Result<Vec<Trial>, ExperimentError>>()?;
    let mut rows = Vec::new();
    for class in ["DF", "AF"] {
        let measured: Vec<Values> = runs.iter().map(|trial| recovery(trial, &class.to_lowercase())).collect();
        let means = means(&measured);
        let published = table.rows.iter().find(|row| row.params.text("phb") == Some(class));
        let mut row = match published {
            Some(row) => RowResult::of_means(row, means),
            None => RowResult::unpublished([("phb", class)].into_iter().collect(), means),
        };
        let of = |name| row.simulated.number(name).unwrap_or_default();
        let recovery = match (of(TIMEOUTS), of(FAST)) {
            (0.0, 0.0) => "nothing is lost",
            (timeouts, fast) if timeouts > fast => "timeouts",
            _ => "fast retransmits",
        };
        row.simulated.set("recovery", recovery);
        rows.push(row);
    }
    Ok(rows)
}

fn sampled(overrides: &mut Overrides) {
    overrides.set("record.series", true);
    overrides.set("record.interval", "100 ms");
}

/// Windows of one path of each class, for their recoveries to be drawn.
pub(super) fn drawings(setup: &Setup) -> Result<Vec<Drawing>, ExperimentError> {
    let scenario = Point::at(80).scenario(setup, SEEDS[0], sampled)?;
    let drawing = |label: &str, of: &str| Drawing {
        label: label.to_owned(),
        scenario: scenario.clone(),
        series: "cwnd_bytes".to_owned(),
        of: of.to_owned(),
    };
    Ok(vec![drawing("AF", "af-1-"), drawing("DF", "df-1-")])
}

fn recovery(trial: &Trial, class: &str) -> Values {
    let connections = connections(trial, class);
    let each = |of: &dyn Fn(usize) -> f64| mean(&(0..connections.len()).map(of).collect::<Vec<_>>());
    let pauses: Vec<Vec<f64>> =
        connections.iter().map(|connection| pauses(trial.samples("acked_bytes", &connection.name))).collect();
    let shares: Vec<Share> = connections
        .iter()
        .enumerate()
        .map(|(number, connection)| Share {
            number,
            goodput_bps: connection.goodput_bps,
            timeouts: connection.timeouts,
            fast_retransmits: connection.fast_retransmits,
            ..Share::default()
        })
        .collect();
    let fairness = fairness(&shares);
    let mut values = Values::new();
    values.set(TIMEOUTS, each(&|number| connections[number].timeouts as f64));
    values.set(FAST, each(&|number| connections[number].fast_retransmits as f64));
    values.set(PAUSES, each(&|number| pauses[number].iter().filter(|pause| **pause > 1.0).count() as f64));
    values.set(LONGEST, pauses.iter().flatten().copied().fold(0.0, f64::max));
    values.set("jain_index", fairness.jain_index.unwrap_or_default());
    values.set(CORRELATION, fairness.correlation_with_timeouts.unwrap_or_default());
    values
}

/// How long nothing new was acknowledged, each time, in s, after the first data.
fn pauses(acked: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let mut pauses = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    for (at, bytes) in acked.filter(|(_, bytes)| *bytes > 0.0) {
        match last {
            Some((_, before)) if bytes <= before => {}
            Some((since, _)) => {
                pauses.push(at - since);
                last = Some((at, bytes));
            }
            None => last = Some((at, bytes)),
        }
    }
    pauses
}

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    let [df, af] = rows else { return Finding::new(false, "two classes are compared") };
    let mut finding = Finding::default();
    finding.above(&df.sample(TIMEOUTS).minus(&df.sample(FAST)), 0.0);
    finding.above(&df.sample(PAUSES), 0.0);
    finding.above(&af.sample(FAST).minus(&af.sample(TIMEOUTS)), 0.0);
    for (name, row) in [("DF", df), ("AF", af)] {
        let of = |name| row.sample(name).mean();
        finding.tell(format!(
            "{name} {:.1} timeouts and {:.1} fast retransmits a connection, {:.2} pauses above 1 s, the longest {:.1} s; goodput and timeouts correlate by {:.2}",
            of(TIMEOUTS),
            of(FAST),
            of(PAUSES),
            of(LONGEST),
            of(CORRELATION)
        ));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_until_something_new_is_acknowledged() {
        let acked = [(0.1, 0.0), (0.2, 5.0), (0.3, 9.0), (0.4, 9.0), (1.8, 9.0), (1.9, 12.0)];
        let pauses = pauses(acked.into_iter());
        assert_eq!(pauses.len(), 2);
        assert!((pauses[1] - 1.6).abs() < 1e-9, "{pauses:?}");
    }
}
