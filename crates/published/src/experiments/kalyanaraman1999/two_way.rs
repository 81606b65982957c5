//! Kalyanaraman et al. 1999, section 4.2: a transfer each way, upstream in one queue or in two classes.

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;

use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, significant};
use super::single::{DROPPER, assume, judge, measure, regenerator_queue};
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

/// Table 5.
pub(super) fn classes(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut shown = true;
    let mut evidence = Vec::new();
    for row in &table.rows {
        let plain = both_ways(table, row, |_| ())?;
        let both = both_ways(table, row, |overrides| remedy(table, row, overrides))?;
        let (down, up) = (both.goodput_bps("download") / 1e6, both.goodput_bps("upload") / 1e3);
        let mut simulated = Values::new();
        simulated.set("downstream_throughput_mbps", significant(down));
        simulated.set("upstream_throughput_kbps", significant(up));
        simulated.set("download_timeouts", i64::try_from(both.timeouts("download")).unwrap_or(i64::MAX));
        result.rows.push(RowResult::new(row, simulated));
        let fifo = plain.goodput_bps("download") / 1e6;
        shown &= down > 10.0 * fifo;
        evidence.push(format!(
            "{} kbit/s, G = {}: download {fifo:.3} Mbit/s in a FIFO, {down:.2} so; upload {up:.0} kbit/s",
            row.params.number("up_bps").unwrap_or_default() / 1e3,
            row.params.number("G").unwrap_or_default(),
        ));
    }
    for pair in result.rows.windows(2) {
        let figure = |row: &RowResult, name| row.simulated.number(name).unwrap_or_default();
        let same_line = pair[0].params.integer("up_bps") == pair[1].params.integer("up_bps");
        let name = "upstream_throughput_kbps";
        // A larger share may not be needed by an upload that borrows as much already.
        shown &= !same_line || figure(&pair[0], name) <= 1.02 * figure(&pair[1], name);
    }
    assume(&mut result);
    result.assumptions.extend(
        [
            "Two classes in each direction share the link by CBQ and borrow what the other leaves: the published upload at G = 0.1 is five times \
             its share. The limits of their queues are not stated: 1000 packets of data, and one ACK of each flow.",
            "R is not stated: 1, numbers told by list and released at once.",
        ]
        .map(String::from),
    );
    judge(table, &mut result, shown, evidence.join("; "));
    Ok(result)
}

/// SAD, AR and two classes in each direction.
fn remedy(table: &Table, row: &Row, overrides: &mut Overrides) {
    let settings = table.settings(row);
    let share = |name| settings.number(name).unwrap_or(0.5);
    let (g, f) = (share("G"), share("forward_packet_share"));
    let classes = |rate: &str, packets: f64, acks: &str| {
        format!(
            r#"{{ kind = "cbq", rate = "{rate}", classes = [{{ name = "acks", share = "{} %", match = {{ pure_ack = true }}, queue = {acks} }}, {{ name = "packets", share = "{} %", match = {{}}, limit = "1000 packets" }}] }}"#,
            significant(100.0 - 100.0 * packets),
            significant(100.0 * packets),
        )
    };
    let bps = |name| format!("{} bit/s", settings.integer(name).unwrap_or_default());
    overrides.set("access.up.queue", classes(&bps("up_bps"), g, DROPPER));
    overrides.set(
        "access.down.queue",
        classes(&bps("down_bps"), f, r#"{ limit = "1000 packets" }"#)
            .replace(r#"match = {}, limit = "1000 packets""#, r#"match = {}, limit = "50 packets""#),
    );
    overrides.set("access.aggregation.queue", regenerator_queue(1, "burst"));
}

fn both_ways(table: &Table, row: &Row, more: impl FnOnce(&mut Overrides)) -> Result<Trial, ExperimentError> {
    let mut overrides = overrides(table, row)?;
    more(&mut overrides);
    Trial::whole(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)
}
