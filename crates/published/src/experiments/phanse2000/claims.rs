//! The claims of the tables, judged by the figures that were simulated.

use crate::data::{Row, Table};
use crate::reproduction::{Claim, RowResult, TableResult};

use super::super::ExperimentError;
use super::super::trial::Trial;
use super::{BOTH_WAYS, DOWNLOAD, overrides, run};

/// Judges a table's claim.
pub(super) type Judge = fn(&Table, &mut TableResult) -> Result<(), ExperimentError>;

/// How far steady utilisation may lie from min(1, 1/k), in percentage points.
const TOLERANCE_PCT: f64 = 0.5;

/// The receive window of all downloads, in bytes.
const RECEIVE_WINDOW: f64 = 65_535.0;

/// The receive window of the upload in `both-ways.toml`, in bytes.
const UPLOAD_WINDOW: u32 = 8_760;

/// Table 5.1.
pub(super) fn follows_k(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let (close, evidence) = close_to_bound(result);
    push(table, result, close, evidence);
    Ok(())
}

/// Table 5.2.
pub(super) fn smaller_packets_cost(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let (close, bound) = close_to_bound(result);
    let mut by_size: Vec<(u64, f64)> =
        result.rows.iter().map(|row| (mtu(row).unwrap_or_default(), utilisation(row).unwrap_or_default())).collect();
    by_size.sort_by_key(|(mtu, _)| *mtu);
    let rises = by_size.windows(2).all(|pair| pair[0].1 <= pair[1].1 + TOLERANCE_PCT);
    let differs = by_size.first().map(|(_, used)| *used) < by_size.last().map(|(_, used)| *used);
    let figures: Vec<String> = by_size.iter().map(|(mtu, used)| format!("{mtu} bytes {used:.1} %")).collect();
    push(table, result, close && rises && differs, format!("{}; {bound}", figures.join(", ")));
    Ok(())
}

/// Table 5.4: beside the same downloads without ATM.
pub(super) fn cell_tax(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let (close, bound) = close_to_bound(result);
    let mut taxed = true;
    let mut evidence = Vec::new();
    for (row, simulated) in table.rows.iter().zip(&result.rows) {
        let plain = without_atm(table, row)?;
        let (with, without) = (utilisation(simulated).unwrap_or_default(), plain.steady_utilisation_pct("down"));
        taxed &= with <= without + TOLERANCE_PCT && time(simulated) > plain.time_s();
        evidence.push(format!(
            "{} kbit/s: {without:.1} % and {:.1} s without ATM, {with:.1} % and {:.1} s with",
            row.params.number("up_bps").unwrap_or_default() / 1e3,
            plain.time_s(),
            time(simulated),
        ));
    }
    push(table, result, close && taxed, format!("{}; {bound}", evidence.join("; ")));
    Ok(())
}

/// Table 5.5: what ATM leaves of the speed of small packets, and of large ones.
pub(super) fn small_packets_over_atm(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let (close, bound) = close_to_bound(result);
    let mut kept = Vec::new();
    for (row, simulated) in table.rows.iter().zip(&result.rows) {
        let plain = without_atm(table, row)?;
        kept.push((mtu(simulated).unwrap_or_default(), plain.time_s() / time(simulated)));
    }
    kept.sort_by_key(|(mtu, _)| *mtu);
    let suffers = kept.first().map(|(_, kept)| *kept) < kept.last().map(|(_, kept)| *kept);
    let figures: Vec<String> =
        kept.iter().map(|(mtu, kept)| format!("{mtu} bytes keep {:.1} % of their speed", 100.0 * kept)).collect();
    push(table, result, close && suffers, format!("over ATM {}; {bound}", figures.join(", ")));
    Ok(())
}

/// Table 5.8: at 64 kbit/s, and at 96 kbit/s beside it.
pub(super) fn dropper_helps(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("rows"))?;
    let pair = |up_bps: u64| -> Result<[Trial; 2], ExperimentError> {
        let one = |remedy: &str| {
            let mut overrides = overrides(table, row)?;
            overrides.set("access.up.rate", format_args!("{up_bps} bit/s"));
            overrides.set("access.remedy", remedy);
            run(DOWNLOAD, &overrides)
        };
        Ok([one("none")?, one("sad")?])
    };
    let (at_64, at_96) = (pair(64_000)?, pair(96_000)?);
    let gain = |[without, with]: &[Trial; 2]| without.time_s() / with.time_s();
    let [without, with] = &at_64;
    let [time_without, time_with] = [without, with].map(Trial::time_s);
    let [delay_without, delay_with] = [without, with].map(|transfer| transfer.mean_queue_delay_s("up"));
    let [up_without, up_with] = [without, with].map(|transfer| transfer.mean_wire_bps("up") / 1e3);
    let [carried_without, carried_with] = [up_without * time_without, up_with * time_with];
    let [grown_without, grown_with] =
        [without, with].map(|transfer| transfer.acked_when_window_reached(RECEIVE_WINDOW).unwrap_or_default() / 1e3);
    let shown = time_with < time_without
        && delay_with < delay_without
        && carried_with < carried_without
        && gain(&at_64) > gain(&at_96)
        && grown_with > grown_without;
    let evidence = format!(
        "at 64 kbit/s, without and with: {time_without:.1} and {time_with:.1} s, CPE queue {delay_without:.3} and {delay_with:.3} s, \
         upstream {carried_without:.0} and {carried_with:.0} kbit in all, cwnd reached 64 kB when {grown_without:.0} and \
         {grown_with:.0} kB were acknowledged; gain \
         {:.2} at 64 and {:.2} at 96 kbit/s",
        gain(&at_64),
        gain(&at_96),
    );
    push(table, result, shown, evidence);
    Ok(())
}

/// Table 5.9: shorter by a fifth at least, with more than half of the queue's delay left while the upload runs.
pub(super) fn dropper_helps_beside_upload(table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("rows"))?;
    let pair = |window: u32| -> Result<[Trial; 2], ExperimentError> {
        let one = |remedy: &str| {
            let mut overrides = overrides(table, row)?;
            overrides.set("traffic.upload.tcp.receive_window", format_args!("{window} B"));
            overrides.set("access.remedy", remedy);
            run(BOTH_WAYS, &overrides)
        };
        Ok([one("none")?, one("sad")?])
    };
    let [without, with] = pair(UPLOAD_WINDOW)?;
    let delay = |transfer: &Trial| transfer.queue_delay_while_s("up", "upload").unwrap_or_default();
    let shown = with.time_s() < 0.8 * without.time_s() && delay(&with) > 0.5 * delay(&without);
    let [large_without, large_with] = pair(65_535)?;
    let evidence = format!(
        "without and with: {:.1} and {:.1} s, CPE queue while the upload runs {:.2} and {:.2} s; for comparison with an upload window of \
         64 KB: {:.1} and {:.1} s, CPE queue {:.2} and {:.2} s",
        without.time_s(),
        with.time_s(),
        delay(&without),
        delay(&with),
        large_without.time_s(),
        large_with.time_s(),
        delay(&large_without),
        delay(&large_with),
    );
    push(table, result, shown, evidence);
    Ok(())
}

/// The same download with bare IP on the line.
fn without_atm(table: &Table, row: &Row) -> Result<Trial, ExperimentError> {
    let mut overrides = overrides(table, row)?;
    overrides.set("access.encapsulation", "ip");
    run(DOWNLOAD, &overrides)
}

/// Whether every row lies within the tolerance of its bound, and how far the worst is off.
fn close_to_bound(result: &TableResult) -> (bool, String) {
    let worst = result
        .rows
        .iter()
        .filter_map(|row| Some((utilisation(row)? - row.theory.number("downstream_utilisation_pct")?).abs()))
        .fold(0.0, f64::max);
    (worst <= TOLERANCE_PCT, format!("at most {worst:.2} points from min(1, 1/k), {TOLERANCE_PCT} allowed"))
}

fn push(table: &Table, result: &mut TableResult, shown: bool, evidence: String) {
    result.claims.push(Claim { text: table.claim.clone(), shown, evidence });
}

fn utilisation(row: &RowResult) -> Option<f64> {
    row.simulated.number("downstream_utilisation_pct")
}

fn time(row: &RowResult) -> f64 {
    row.simulated.number("download_time_s").unwrap_or_default()
}

fn mtu(row: &RowResult) -> Option<u64> {
    row.params.integer("ip_mtu_bytes")
}
