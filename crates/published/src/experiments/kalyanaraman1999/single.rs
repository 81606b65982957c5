//! Kalyanaraman et al. 1999, section 4.1: one download, unregulated, with ACKs dropped, and with them regenerated.

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::{Network, Setup};

const THROUGHPUT: &str = "downstream_throughput_mbps";
const WITHOUT: &str = "throughput_without_sad_mbps";

/// Throughput that comes near the bound, as a share of it: the paper's own rows reach 93 to 95 %.
const NEAR: f64 = 0.9;

/// What the paper's "about" and "five times" may be off by.
const ABOUT: f64 = 0.25;

fn measured(trial: &Trial) -> Values {
    let mut values = Values::new();
    values.set(THROUGHPUT, trial.goodput_bps("download") / 1e6);
    values.set("downstream_utilisation_pct", trial.goodput_pct("download", "down"));
    values.set("segments_per_ack", trial.segments_per_ack());
    values.set("timeouts", trial.timeouts("download") as f64);
    values
}

fn row_of(
    table: &Table,
    row: &Row,
    (setup, seeds): (&Setup, &[u64]),
    network: Network,
) -> Result<RowResult, ExperimentError> {
    let once = |seed| Ok(measured(&setup.run(table, row, network, seed)?));
    Ok(RowResult::of_means(row, means_over(seeds, once)?))
}

fn k(row: &RowResult) -> f64 {
    row.theory.number("k").unwrap_or_default()
}

/// The row with the largest k, and the one with the smallest.
fn ends(rows: &[RowResult]) -> Option<(&RowResult, &RowResult)> {
    let slow = rows.iter().max_by(|one, other| k(one).total_cmp(&k(other)))?;
    Some((slow, rows.iter().min_by(|one, other| k(one).total_cmp(&k(other)))?))
}

/// Table 1.
pub(super) fn unregulated(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    table.rows.iter().map(|row| row_of(table, row, (setup, seeds), Network::Alone)).collect()
}

pub(super) fn judge_unregulated(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    for row in rows {
        let bound = row.theory.number("bound_M1_mbps").unwrap_or(f64::INFINITY);
        let share = row.sample(THROUGHPUT).map(|mbps| mbps / bound);
        finding.above(&share, NEAR);
        finding.need(share.mean() <= 1.0);
        finding.tell(format!("k = {}: {:.1} % of the bound", k(row), 100.0 * share.mean()));
    }
    if let Some((slow, fast)) = ends(rows) {
        let factor = fast.sample(THROUGHPUT).over(&slow.sample(THROUGHPUT));
        finding.between(&factor, k(slow) * (1.0 - ABOUT), k(slow) * (1.0 + ABOUT));
        finding.tell(format!("{factor} times less at k = {} than at k = {}", k(slow), k(fast)));
    }
    finding
}

/// Table 2: with the dropper, and without for comparison.
pub(super) fn dropper(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let once = |seed| {
            let mut values = measured(&setup.run(table, row, Network::Dropper, seed)?);
            let plain = setup.run(table, row, Network::Alone, seed)?;
            values.set(WITHOUT, plain.goodput_bps("download") / 1e6);
            Ok(values)
        };
        Ok(RowResult::of_means(row, means_over(seeds, once)?))
    };
    table.rows.iter().map(one).collect()
}

/// Of the loss more than half is recovered; a gain of about four; nothing is lost where k is below one.
pub(super) fn judge_dropper(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let Some((slow, fast)) = ends(rows) else { return Finding::new(false, "no figures") };
    let (with, without) = (slow.sample(THROUGHPUT), slow.sample(WITHOUT));
    let recovered = with.minus(&without).over(&fast.sample(WITHOUT).minus(&without));
    let gain = with.over(&without);
    finding.above(&recovered, 0.5);
    finding.between(&gain, 4.0 * (1.0 - ABOUT), 4.0 * (1.0 + ABOUT));
    let kept = fast.sample(THROUGHPUT).over(&fast.sample(WITHOUT));
    finding.above(&kept, 0.99);
    finding.tell(format!(
        "at k = {} {with} Mbit/s with SAD and {without} without: {gain} times as much, {:.0} % of the loss; at k = {} {kept} times",
        k(slow),
        100.0 * recovered.mean(),
        k(fast)
    ));
    finding
}

/// Table 3.
pub(super) fn regenerator(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let factor = table.settings(row).integer("regeneration_factor").unwrap_or(1);
        row_of(table, row, (setup, seeds), Network::Regenerator { factor })
    };
    table.rows.iter().map(one).collect()
}

/// Each larger factor has to gain what is published, or half of it at least, beyond the interval.
pub(super) fn judge_regenerator(_: &Table, rows: &[RowResult]) -> Finding {
    let mut rows: Vec<&RowResult> = rows.iter().collect();
    let factor = |row: &RowResult| row.params.integer("regeneration_factor").unwrap_or_default();
    rows.sort_by_key(|row| factor(row));
    let mut finding = Finding::default();
    let published = |row: &RowResult| row.published.number(THROUGHPUT).unwrap_or_default();
    for pair in rows.windows(2) {
        let gain = pair[1].sample(THROUGHPUT).minus(&pair[0].sample(THROUGHPUT));
        let expected = published(pair[1]) - published(pair[0]);
        finding.difference(&gain, expected);
        finding.tell(format!(
            "from R = {} to {}: {:.3} Mbit/s, {expected:+.2} published",
            factor(pair[0]),
            factor(pair[1]),
            gain.estimate()
        ));
    }
    let at_most = rows.last().map_or_else(Sample::default, |row| row.sample(THROUGHPUT));
    finding.tell(format!("{at_most} Mbit/s with the largest factor"));
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::kalyanaraman1999::KEY;

    fn judged(id: &str, judge: crate::experiments::open::Judge, ours: impl Fn(&Row) -> f64) -> Finding {
        let publications = crate::publications().unwrap();
        let table = publications.iter().find(|known| known.key == KEY).unwrap().table(id).unwrap();
        let rows: Vec<RowResult> =
            table.rows.iter().map(|row| RowResult::new(row, [(THROUGHPUT, ours(row))].into_iter().collect())).collect();
        judge(table, &rows)
    }

    #[test]
    fn a_throughput_that_is_the_same_with_each_factor_is_no_growth() {
        let printed = |row: &Row| row.published.number(THROUGHPUT).unwrap();
        assert!(judged("3", judge_regenerator, printed).is_shown(), "the printed figures grow");
        assert!(!judged("3", judge_regenerator, |_| 7.673).is_shown());
        assert!(!judged("3", judge_regenerator, |row| 7.6 + 0.001 * printed(row)).is_shown(), "nor is a thousandth");
    }

    #[test]
    fn the_printed_figures_of_table_1_show_its_claim() {
        assert!(judged("1", judge_unregulated, |row| row.published.number(THROUGHPUT).unwrap()).is_shown());
        assert!(!judged("1", judge_unregulated, |_| 1.52).is_shown());
    }
}
