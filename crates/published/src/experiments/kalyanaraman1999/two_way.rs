//! Kalyanaraman et al. 1999, section 4.2: a transfer each way, upstream in one queue or in two classes.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;

use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, significant};
use super::single::{assume, judge, measure};
use super::{KEY, overrides};

const BOTH_WAYS: (&str, &str) =
    ("kalyanaraman1999/both-ways.toml", include_str!("../../../scenarios/kalyanaraman1999/both-ways.toml"));

/// Table 4.
pub(super) fn fifo(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut evidence = Vec::new();
    let mut shown = true;
    for row in &table.rows {
        let alone = measure(table, row, |_| ())?.number("downstream_throughput_mbps").unwrap_or_default();
        let both = both_ways(table, row, |_| ())?;
        let mut simulated = Values::new();
        simulated.set("downstream_throughput_kbps", significant(both.goodput_bps("download") / 1e3));
        simulated.set("upstream_throughput_kbps", significant(both.goodput_bps("upload") / 1e3));
        let upstream = both.goodput_pct("upload", "up");
        simulated.set("upstream_utilisation_pct", significant(upstream));
        simulated.set("downstream_utilisation_pct", significant(both.goodput_pct("download", "down")));
        let collapsed = both.goodput_bps("download") / 1e6;
        shown &= collapsed < alone / 5.0 && upstream > 85.0;
        evidence.push(format!(
            "{} kbit/s: download {alone:.2} Mbit/s alone, {collapsed:.3} beside the upload, which fills {upstream:.0} %",
            row.params.number("up_bps").unwrap_or_default() / 1e3
        ));
        result.rows.push(RowResult::new(row, simulated));
    }
    assume(&mut result);
    result.assumptions.push(
        "Both transfers have the same window, so that ACKs and data alternate upstream and the download gets about as many packets \
         through as the upload."
            .to_owned(),
    );
    judge(table, &mut result, shown, evidence.join("; "));
    Ok(result)
}

fn both_ways(table: &Table, row: &Row, more: impl FnOnce(&mut Overrides)) -> Result<Trial, ExperimentError> {
    let mut overrides = overrides(table, row)?;
    more(&mut overrides);
    Trial::whole(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)
}
