//! Phanse 2000, section 5.5: the Smart ACK Dropper in a class of its own, ahead of the upload or in turns with it.

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::{Overrides, Trial};
use super::setup::{Setup, set_files, with_start_up};
use super::{BOTH_WAYS, start_upload};

const DOWN: &str = "download_time_s";
const UP: &str = "upload_time_s";

pub(super) const NOTES: &[&str] = &[
    "Custom queueing takes turns of one packet.",
    "The published upload of 642 s behind priority for ACKs outlasts the download by far longer than its own bytes take: it must have stood in \
     doubled timeouts. Strict priority leaves it what the ACKs do not need.",
];

/// Table 5.10.
pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let once = |seed| {
            let overrides = with_scheduler(table, row, setup, seed)?;
            let download = Trial::until_complete(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)?;
            let both = Trial::whole(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)?;
            let upload = both.flow_time_s("upload").ok_or(ExperimentError::MissingSetting("upload_bytes"))?;
            let mut values = Values::new();
            values.set("downstream_throughput_kbps", download.mean_wire_bps("down") / 1e3);
            values.set(DOWN, download.time_s());
            values.set(UP, upload);
            values.set("upload_goodput_beside_download_kbps", download.goodput_bps("upload") / 1e3);
            values.set("upload_timeouts", both.timeouts("upload") as f64);
            Ok(values)
        };
        Ok(with_start_up(table, row, means_over(seeds, once)?))
    };
    table.rows.iter().map(one).collect()
}

fn with_scheduler(table: &Table, row: &Row, setup: &Setup, seed: u64) -> Result<Overrides, ExperimentError> {
    let settings = table.settings(row);
    let scheduler = settings.text("scheduler").unwrap_or_default();
    let sad = settings.switch("sad") == Some(true);
    let mut overrides = setup.overrides(&settings, seed)?;
    set_files(table, &mut overrides);
    start_upload(&mut overrides, setup, seed);
    let acks = format!("match = {{ pure_ack = true }}, queue = {}", setup.upstream(sad));
    let rest = format!("limit = \"{}\"", setup.queue);
    overrides.set(
        "access.up.queue",
        if scheduler.starts_with("priority") {
            format!(r#"{{ kind = "priority", classes = [{{ {acks} }}, {{ {rest} }}] }}"#)
        } else if scheduler.starts_with("custom") {
            format!(r#"{{ kind = "custom", classes = [{{ packets = 1, {acks} }}, {{ packets = 1, {rest} }}] }}"#)
        } else {
            setup.upstream(sad)
        },
    );
    Ok(overrides)
}

/// Nearly the same download: a quarter longer at most.
const NEARLY: f64 = 1.25;

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    // The row with SAD, where there are two.
    let row = |scheduler: &str| {
        rows.iter().rfind(|row| row.params.text("scheduler").is_some_and(|name| name.starts_with(scheduler)))
    };
    let (Some(fifo), Some(priority), Some(custom)) = (row("fifo"), row("priority"), row("custom")) else {
        return Finding::new(false, "no figures");
    };
    let mut finding = Finding::default();
    let mut apart = |name: &str, longer: &RowResult, shorter: &RowResult| {
        let published = |row: &RowResult| row.published.number(name).unwrap_or_default();
        finding.difference(&longer.sample(name).minus(&shorter.sample(name)), published(longer) - published(shorter));
    };
    apart(DOWN, fifo, priority);
    apart(DOWN, custom, priority);
    apart(UP, priority, fifo);
    apart(UP, priority, custom);
    finding.below(&custom.sample(DOWN).over(&priority.sample(DOWN)), NEARLY);
    for (name, row) in [("FIFO", fifo), ("priority", priority), ("custom queueing", custom)] {
        finding.tell(format!("{name}: download {} and upload {} s", row.sample(DOWN), row.sample(UP)));
    }
    finding
}
