//! Chapter 8 with real packets: a download and an upload that fill both directions, with and
//! without something behind the modem.

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::verdict::Finding;

use super::super::super::Lab;
use super::super::super::round_trips::RoundTrips;
use super::super::super::trial::ip_kbps;
use super::super::files::BOTH_FULL;
use super::super::{KEY, plan};
use super::runs::{AT_BBRAS, judge, set, trial, upload};
use crate::error::ExperimentError;

/// A download throughout and an upload from the 20th second on, over the middlebox of chapter 8.
struct BothFull {
    kbps: f64,
    kbps_before: f64,
    kbps_beside: f64,
    upload_kbps: f64,
    before: RoundTrips,
    beside: RoundTrips,
    all: RoundTrips,
}

impl BothFull {
    fn run(lab: &mut Lab<'_>, set: &[(&str, &str)]) -> Result<Self, ExperimentError> {
        let set: Vec<(&str, &str)> = [AT_BBRAS].into_iter().chain(set.iter().copied()).collect();
        let upload = upload("upload", 20, "from = \"host\"\nto = \"server\"\ndscp = 30");
        let run = trial(lab, BOTH_FULL, 50, &set, &upload)?;
        let trips = |from, to| RoundTrips::of(&run, "ping", from, to);
        Ok(Self {
            kbps: ip_kbps(&run, "download", 5.0, 50.0),
            kbps_before: ip_kbps(&run, "download", 5.0, 20.0),
            kbps_beside: ip_kbps(&run, "download", 25.0, 50.0),
            upload_kbps: ip_kbps(&run, "upload", 25.0, 50.0),
            before: trips(5.0, 20.0),
            beside: trips(25.0, 49.0),
            all: trips(5.0, 49.0),
        })
    }
}

pub(super) fn ack_priority(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let free = BothFull::run(lab, &[])?;
    let figures = [("downstream_throughput_mean_kbps", free.kbps), ("upstream_throughput_kbps", free.upload_kbps)];
    set(result, |params| params.text("quantity") == Some("throughput"), &figures);
    let latency = [("latency_mean_ms_about", free.all.mean())];
    set(result, |params| params.text("quantity") == Some("latency"), &latency);
    let shown = free.kbps_beside > 0.97 * free.kbps_before && free.beside.mean() > 60.0;
    let evidence = format!(
        "{:.0} kbit/s before an upload and {:.0} beside it; pings of class 1:10 beside it {}",
        free.kbps_before, free.kbps_beside, free.beside
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

/// The throughput that a discipline behind the modem costs, and the delay that remains. The discipline is that of the
/// simulation.
fn behind(
    table: &Table,
    result: &mut TableResult,
    lab: &mut Lab<'_>,
    downstream: &str,
) -> Result<(BothFull, BothFull, f64), ExperimentError> {
    let keys = plan(KEY)?.keys(table, &[("downstream", downstream)].into_iter().collect())?;
    let keys: Vec<(&str, &str)> = keys.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let (free, held) = (BothFull::run(lab, &[])?, BothFull::run(lab, &keys)?);
    let lost = 100.0 * (1.0 - held.kbps / free.kbps);
    let figures = [
        ("downstream_throughput_mean_kbps", held.kbps),
        ("loss_vs_unpoliced_pct", lost),
        ("latency_mean_ms", held.all.mean()),
    ];
    set(result, |_| true, &figures);
    Ok((free, held, lost))
}

pub(super) fn policed(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let (free, held, lost) = behind(table, result, lab, "policed")?;
    let (before, during) = (held.before.mean(), held.beside.mean());
    let shown = (1.0..6.0).contains(&lost) && before < 0.5 * free.before.mean() && during > 1.3 * before;
    let evidence = format!(
        "{lost:.1} % less throughput; pings take {before:.0} ms where the download alone is policed, {:.0} where it \
         is not; {during:.0} beside an upload",
        free.before.mean()
    );
    judge(table, result, None, shown, evidence);
    Ok(())
}

pub(super) fn shaped(table: &Table, result: &mut TableResult, lab: &mut Lab<'_>) -> Result<(), ExperimentError> {
    let (free, held, lost) = behind(table, result, lab, "shaped")?;
    let (delay, cost) = table.claim.split_once(", at a cost").unwrap_or((&table.claim, " of 6.5 % throughput."));
    let half = |held: &RoundTrips, free: &RoundTrips| held.mean() < 0.5 * free.mean();
    let evidence = format!(
        "pings of class 1:10 take {:.0} ms in place of {:.0} beside an upload, {:.0} in place of {:.0} beside the \
         download alone",
        held.beside.mean(),
        free.beside.mean(),
        held.before.mean(),
        free.before.mean()
    );
    let shown = half(&held.beside, &free.beside) && half(&held.before, &free.before);
    judge(table, result, Some(&format!("{delay}.")), shown, evidence);
    let text = format!("It comes at a cost{cost}");
    let evidence = format!("{lost:.1} % less throughput, of which 2.4 % are the rate of the shaper");
    result.live_claims.push(Finding::new((lost - 6.5).abs() < 1.5, evidence).claim(&text));
    Ok(())
}
