//! A judge for figure 7 of Ano et al. 2002: whatever the burst size, throughput is that of the
//! first one, at each round trip.

use crate::reproduction::RowResult;
use crate::verdict::Finding;

use crate::rounding::significant;

const AGGREGATE: &str = "aggregate_throughput_mbps";

/// A change that nobody sees in a bar of a figure, in percent.
const UNCHANGED_PCT: f64 = 3.0;

fn rtt(row: &RowResult) -> Option<u64> {
    row.params.integer("rtt_ms")
}

/// Sets the figures of the first row, which is about all others.
pub(crate) fn summarise(rows: &mut [RowResult]) {
    let Some((first, others)) = rows.split_first_mut() else { return };
    let mbps = |row: &RowResult| row.simulated.number(AGGREGATE).unwrap_or_default();
    let same_rtt = others.chunk_by(|one, other| rtt(one) == rtt(other));
    let change = |rows: &[RowResult]| {
        let ends = rows.iter().map(mbps).fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(x), b.max(x)));
        100.0 * (ends.1 / ends.0 - 1.0)
    };
    let most = same_rtt.map(change).fold(0.0, f64::max);
    first.simulated.set("largest_change_pct", significant(most));
    first.simulated.set("throughput_change", if most < UNCHANGED_PCT { "none" } else { "some" });
}

/// The finding about these rows.
pub(crate) fn judge(rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let measured: Vec<&RowResult> = rows.iter().filter(|row| rtt(row).is_some()).collect();
    for same_rtt in measured.chunk_by(|one, other| rtt(one) == rtt(other)) {
        for row in &same_rtt[1..] {
            let ratio = row.sample(AGGREGATE).over(&same_rtt[0].sample(AGGREGATE));
            finding.between(&ratio.map(|ratio| 100.0 * (ratio - 1.0)), -UNCHANGED_PCT, UNCHANGED_PCT);
        }
    }
    finding.need(!measured.is_empty());
    let most = rows.first().and_then(|row| row.simulated.number("largest_change_pct")).unwrap_or(f64::INFINITY);
    let cells = |row: Option<&&RowResult>| row.and_then(|row| row.params.integer("mbs0")).unwrap_or_default();
    let (least, largest) = (cells(measured.first()), cells(measured.last()));
    finding.tell(format!("from {least} to {largest} cells throughput changes by {most:.2} % at most"));
    finding
}
