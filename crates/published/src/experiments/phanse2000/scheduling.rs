//! Phanse 2000, section 5.5: the Smart ACK Dropper in a class of its own, ahead of the upload or in turns with it.

use crate::data::{Row, Table};
use crate::reproduction::{Claim, RowResult, TableResult};
use crate::value::Values;

use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, rounded};
use super::{BOTH_WAYS, KEY, OPEN, offset_note, overrides, with_offset};

const ACKS: &str = r#"match = { pure_ack = true }, queue = { kind = "sad", queue = { limit = "1000 packets" } }"#;
const REST: &str = r#"limit = "1000 packets""#;

/// Table 5.10.
pub(super) fn schedulers(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        let overrides = with_scheduler(table, row)?;
        let download = Trial::until_complete(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)?;
        let both = Trial::whole(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)?;
        let mut simulated = Values::new();
        simulated.set("downstream_throughput_kbps", rounded(download.mean_wire_bps("down") / 1e3, 1));
        simulated.set("download_time_s", rounded(download.time_s(), 1));
        let upload = both.flow_time_s("upload").ok_or(ExperimentError::MissingSetting("upload_bytes"))?;
        simulated.set("upload_time_s", rounded(upload, 1));
        simulated.set("upload_goodput_beside_download_kbps", rounded(download.goodput_bps("upload") / 1e3, 1));
        simulated.set("upload_timeouts", i64::try_from(both.timeouts("upload")).unwrap_or(i64::MAX));
        result.rows.push(with_offset(table, row, simulated));
    }
    result.claims.push(claim(table, &result));
    result.assumptions = OPEN.map(String::from).to_vec();
    result.assumptions.push(
        "Custom queueing takes turns of one packet; queues of 1000 packets in each class. The upload's receive window is 8760 bytes, as in \
         table 5.9."
            .to_owned(),
    );
    result.assumptions.push(
        "The published upload of 642 s behind priority for ACKs outlasts the download by far longer than its own bytes take: it must have \
         stood in doubled timeouts. Strict priority leaves it what the ACKs do not need; how many times its timer doubles hangs on minimum \
         RTO and queue, which are not stated."
            .to_owned(),
    );
    result.assumptions.push(offset_note(table));
    Ok(result)
}

fn claim(table: &Table, result: &TableResult) -> Claim {
    let row = |scheduler: &str| {
        let of = |row: &&RowResult| row.params.text("scheduler").is_some_and(|name| name.starts_with(scheduler));
        // The row with SAD, where there are two.
        let found = result.rows.iter().rfind(of);
        let figure = |name| found.and_then(|row| row.simulated.number(name)).unwrap_or_default();
        (figure("download_time_s"), figure("upload_time_s"), figure("upload_goodput_beside_download_kbps"))
    };
    let [(fifo, fifo_up, fifo_rate), (priority, priority_up, priority_rate), (custom, custom_up, custom_rate)] =
        [row("fifo"), row("priority"), row("custom")];
    let fastest = priority <= custom && priority < fifo;
    // Starved: a tenth of what it has in one queue, at most, while the download runs.
    let starves = priority_rate < 0.1 * fifo_rate && custom_up < 0.8 * priority_up;
    Claim {
        text: table.claim.clone(),
        shown: fastest && starves && custom < 1.25 * priority,
        evidence: format!(
            "download and upload, and the upload's goodput beside the download: FIFO {fifo:.1} and {fifo_up:.1} s, {fifo_rate:.1} kbit/s; priority \
             {priority:.1} and {priority_up:.1} s, {priority_rate:.1} kbit/s; custom queueing {custom:.1} and {custom_up:.1} s, \
             {custom_rate:.1} kbit/s; all with SAD"
        ),
    }
}

fn with_scheduler(table: &Table, row: &Row) -> Result<Overrides, ExperimentError> {
    let scheduler = table.settings(row).text("scheduler").unwrap_or_default().to_owned();
    let mut overrides = overrides(table, row)?;
    if scheduler.starts_with("priority") {
        overrides.set("access.remedy", "none");
        let queue = format!(r#"{{ kind = "priority", classes = [{{ {ACKS} }}, {{ {REST} }}] }}"#);
        overrides.set("access.up.queue", queue);
    } else if scheduler.starts_with("custom") {
        overrides.set("access.remedy", "none");
        let queue =
            format!(r#"{{ kind = "custom", classes = [{{ packets = 1, {ACKS} }}, {{ packets = 1, {REST} }}] }}"#);
        overrides.set("access.up.queue", queue);
    }
    Ok(overrides)
}
