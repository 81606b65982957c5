//! Phanse 2000, section 5.4: the Smart ACK Dropper, beside a download alone and beside an upload.

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::{Overrides, Trial};
use super::setup::{Setup, set_files, with_start_up};
use super::{BOTH_WAYS, DOWNLOAD, start_upload};

const TIME: &str = "download_time_s";
const WAIT: &str = "cpe_queue_delay_mean_s";
const UP: &str = "upstream_throughput_kbps";
const GROWN: &str = "kilobytes_acknowledged_at_full_window";
const WAIT_BESIDE: &str = "cpe_queue_delay_while_the_upload_runs_s";

pub(super) const NOTES_ALONE: &[&str] = &[
    "Throughputs are bits on the wire, averaged over the transfer; queue delay is that of all packets.",
    "The dropper is the queue of the upstream line itself, and drops only ACKs that would wait. The published counts drop more than a full upstream \
     needs dropped: there the line was half idle, so that ACKs must have been dropped ahead of the bottleneck.",
    "Without the dropper all of a window but what the line holds waits as ACKs: 40 of 43, 13.25 ms each. The published 0.233 s are 18 ACKs, \
     as a window of 32 KB leaves.",
];

pub(super) const NOTES_BESIDE: &[&str] = &[
    "Throughputs are bits on the wire, averaged over the transfer; queue delay is that of all packets.",
    "The published upload has the upstream to itself (151.8 s in table 5.10 is little more than its serialisation), and without the dropper the \
     download continues for some 260 s after it, where its ACKs allow it to finish within 90: it must have stood still in timeouts.",
];

fn overrides(table: &Table, settings: &Values, setup: &Setup, seed: u64) -> Result<Overrides, ExperimentError> {
    let mut overrides = setup.overrides(settings, seed)?;
    set_files(table, &mut overrides);
    overrides.set("access.up.queue", setup.upstream(settings.switch("sad") == Some(true)));
    Ok(overrides)
}

fn common(trial: &Trial, sad: bool) -> Values {
    let mut values = Values::new();
    values.set(WAIT, trial.mean_queue_delay_s("up"));
    values.set(TIME, trial.time_s());
    if sad {
        values.set("acks_dropped", trial.acks_dropped("up") as f64);
    }
    values
}

/// Table 5.8, and the same line at 96 kbit/s.
pub(super) fn alone(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    for up_bps in [None, Some(96_000)] {
        for row in &table.rows {
            let mut settings = table.settings(row);
            if let Some(up_bps) = up_bps {
                settings.set("up_bps", up_bps);
            }
            let sad = settings.switch("sad") == Some(true);
            let once = |seed| {
                let overrides = overrides(table, &settings, setup, seed)?;
                let trial = Trial::until_complete(DOWNLOAD.0, DOWNLOAD.1, &overrides)?;
                let mut values = common(&trial, sad);
                values.set(UP, trial.mean_wire_bps("up") / 1e3);
                values.set("downstream_throughput_mbps", trial.mean_wire_bps("down") / 1e6);
                let full = trial.acked_when_window_reached(f64::from(setup.window_bytes));
                values.set(GROWN, full.unwrap_or_default() / 1e3);
                Ok(values)
            };
            let means = means_over(seeds, once)?;
            rows.push(match up_bps {
                None => with_start_up(table, row, means),
                Some(up_bps) => {
                    let params = [("up_bps", Value::from(up_bps)), ("sad", Value::from(sad))].into_iter().collect();
                    RowResult::unpublished(params, means)
                }
            });
        }
    }
    Ok(rows)
}

/// Rows without and with the dropper at one upstream rate.
fn pair(rows: &[RowResult], up_bps: u64) -> Option<(&RowResult, &RowResult)> {
    let of = |sad| {
        let is_it =
            |row: &&RowResult| row.params.switch("sad") == Some(sad) && row.params.integer("up_bps") == Some(up_bps);
        rows.iter().find(is_it)
    };
    of(false).zip(of(true))
}

pub(super) fn judge_alone(_: &Table, rows: &[RowResult]) -> Finding {
    let Some(((without, with), (fast_without, fast_with))) = pair(rows, 64_000).zip(pair(rows, 96_000)) else {
        return Finding::new(false, "no figures");
    };
    let mut finding = Finding::default();
    for name in [TIME, WAIT, UP] {
        let published = |row: &RowResult| row.published.number(name).unwrap_or_default();
        finding.difference(&with.sample(name).minus(&without.sample(name)), published(with) - published(without));
        finding.tell(format!(
            "{name} {} without and {} with SAD, {} and {} published",
            without.sample(name),
            with.sample(name),
            published(without),
            published(with)
        ));
    }
    let gain = without.sample(TIME).over(&with.sample(TIME));
    let fast = fast_without.sample(TIME).over(&fast_with.sample(TIME));
    finding.above(&gain.minus(&fast), 0.0);
    finding.above(&with.sample(GROWN).minus(&without.sample(GROWN)), 0.0);
    finding.tell(format!(
        "gain {gain} at 64 and {fast} at 96 kbit/s; the window was full when {:.0} kB were acknowledged without and {:.0} with",
        without.sample(GROWN).mean(),
        with.sample(GROWN).mean()
    ));
    finding
}

/// Table 5.9.
pub(super) fn beside_upload(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let settings = table.settings(row);
        let once = |seed| {
            let mut overrides = overrides(table, &settings, setup, seed)?;
            start_upload(&mut overrides, setup, seed);
            let trial = Trial::until_complete(BOTH_WAYS.0, BOTH_WAYS.1, &overrides)?;
            let mut values = common(&trial, settings.switch("sad") == Some(true));
            values.set("downstream_throughput_kbps", trial.mean_wire_bps("down") / 1e3);
            values.set(WAIT_BESIDE, trial.queue_delay_while_s("up", "upload").unwrap_or_default());
            values.set("download_timeouts", trial.timeouts("download") as f64);
            Ok(values)
        };
        Ok(with_start_up(table, row, means_over(seeds, once)?))
    };
    table.rows.iter().map(one).collect()
}

/// A lot: half of the published difference at least; high: more than half of the queue's delay is left while the upload runs.
pub(super) fn judge_beside_upload(_: &Table, rows: &[RowResult]) -> Finding {
    let Some((without, with)) = pair(rows, 64_000) else { return Finding::new(false, "no figures") };
    let mut finding = Finding::default();
    let published = |row: &RowResult| row.published.number(TIME).unwrap_or_default();
    finding.difference(&with.sample(TIME).minus(&without.sample(TIME)), published(with) - published(without));
    finding.above(&with.sample(WAIT_BESIDE).over(&without.sample(WAIT_BESIDE)), 0.5);
    finding.tell(format!(
        "without and with SAD {} and {} s, {} and {} published; CPE queue while the upload runs {} and {} s",
        without.sample(TIME),
        with.sample(TIME),
        published(without),
        published(with),
        without.sample(WAIT_BESIDE),
        with.sample(WAIT_BESIDE)
    ));
    finding
}
