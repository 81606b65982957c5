//! Kalyanaraman et al. 1999, section 4.1: one download, unregulated, with ACKs dropped, and with them regenerated.

use crate::data::{Row, Table};
use crate::reproduction::{Claim, RowResult, TableResult};
use crate::value::Values;

use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, significant};
use super::{KEY, OPEN, overrides};

pub(super) const DOWNLOAD: (&str, &str) =
    ("kalyanaraman1999/download.toml", include_str!("../../../scenarios/kalyanaraman1999/download.toml"));

/// Throughput that comes near the bound, as a share of it: the paper's own rows reach 93 to 95 %.
const NEAR: f64 = 0.9;

/// Table 1.
pub(super) fn unregulated(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        result.rows.push(RowResult::new(row, measure(table, row, |_| ())?));
    }
    assume(&mut result);
    let mut near = true;
    let mut shares = Vec::new();
    for row in &result.rows {
        let share = mbps(row) / row.theory.number("bound_M1_mbps").unwrap_or(f64::INFINITY);
        near &= (NEAR..=1.0).contains(&share);
        shares.push(format!("{:.0} % at k = {}", 100.0 * share, row.theory.number("k").unwrap_or_default()));
    }
    let (at_5, best) = (mbps(&result.rows[0]), result.rows.iter().map(mbps).fold(0.0, f64::max));
    let factor = best / at_5;
    judge(
        table,
        &mut result,
        near && (4.5..5.5).contains(&factor),
        format!("of the bound {}; {factor:.2} times less at k = 5 than where the line is full", shares.join(", ")),
    );
    Ok(result)
}

/// Table 2.
pub(super) fn dropper(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut plain = Vec::new();
    for row in &table.rows {
        result.rows.push(RowResult::new(row, measure(table, row, |overrides| overrides.set("access.remedy", "sad"))?));
        plain.push(measure(table, row, |_| ())?.number("downstream_throughput_mbps").unwrap_or_default());
    }
    assume(&mut result);
    result.assumptions.push("Duplicate ACKs are kept, numbers are rewritten at dequeue.".to_owned());
    let gains: Vec<f64> = result.rows.iter().zip(&plain).map(|(row, plain)| mbps(row) / plain).collect();
    let evidence = result
        .rows
        .iter()
        .zip(&plain)
        .map(|(row, plain)| {
            format!("{plain:.2} and {:.2} Mbit/s at k = {}", mbps(row), row.theory.number("k").unwrap_or_default())
        })
        .collect::<Vec<_>>()
        .join(", ");
    let (first, last) = (gains[0], gains[gains.len() - 1]);
    judge(table, &mut result, first > 3.5 && last > 0.99, format!("without and with SAD {evidence}"));
    Ok(result)
}

pub(super) fn measure(table: &Table, row: &Row, more: impl FnOnce(&mut Overrides)) -> Result<Values, ExperimentError> {
    let mut overrides = overrides(table, row)?;
    more(&mut overrides);
    let trial = Trial::whole(DOWNLOAD.0, DOWNLOAD.1, &overrides)?;
    let mut simulated = Values::new();
    let goodput = trial.goodput_bps("download");
    simulated.set("downstream_throughput_mbps", significant(goodput / 1e6));
    simulated.set("downstream_utilisation_pct", significant(trial.goodput_pct("download", "down")));
    simulated.set("segments_per_ack", significant(trial.segments_per_ack()));
    simulated.set("timeouts", i64::try_from(trial.timeouts("download")).unwrap_or(i64::MAX));
    Ok(simulated)
}

pub(super) fn mbps(row: &RowResult) -> f64 {
    row.simulated.number("downstream_throughput_mbps").unwrap_or_default()
}

pub(super) fn assume(result: &mut TableResult) {
    result.assumptions.extend(OPEN.map(String::from));
}

pub(super) fn judge(table: &Table, result: &mut TableResult, shown: bool, evidence: String) {
    result.claims.push(Claim { text: table.claim.clone(), shown, evidence });
}
