//! Phanse 2000, section 5.5: a bursty upstream source, policed or not, beside a download whose ACKs are thinned out or not.

use crate::data::Table;
use crate::reproduction::{Claim, Means, RowResult, TableResult};
use crate::value::Values;

use super::super::ExperimentError;
use super::super::seeds::{SEEDS, Sample, over_seeds};
use super::super::trial::{Overrides, Trial};
use super::{KEY, base_overrides, offset_note, with_offset};

const SCENARIO: (&str, &str) =
    ("phanse2000/policed-email.toml", include_str!("../../../scenarios/phanse2000/policed-email.toml"));

/// E-mail as published in the mean, and as loud as a greedy upload, which the published times look like.
#[derive(Clone, Copy)]
enum Email {
    Mean,
    Greedy,
}

/// Table 5.11.
pub(super) fn car(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    result.seeds = SEEDS.to_vec();
    for row in &table.rows {
        let settings = table.settings(row);
        let (car, sad) = (settings.switch("car") == Some(true), settings.switch("sad") == Some(true));
        let base = base_overrides(&settings)?;
        let means = over_seeds(|seed| {
            let trial = run(&base, Email::Mean, car, sad, seed)?;
            let mut simulated = Values::new();
            simulated.set("downstream_throughput_kbps", trial.mean_wire_bps("down") / 1e3);
            simulated.set("download_time_s", trial.time_s());
            simulated.set("cpe_queue_delay_mean_s", trial.mean_queue_delay_s("up"));
            Ok(simulated)
        })?;
        result.rows.push(with_means(table, row, means));
    }
    let base = base_overrides(&table.settings(&table.rows[0]))?;
    let times = |email, car, sad| Sample::of(|seed| Ok(run(&base, email, car, sad, seed)?.time_s()));
    let mut evidence = Vec::new();
    let mut shown = Vec::new();
    for (email, name) in [
        (Email::Mean, "with e-mail of 10 kbit/s in the mean"),
        (Email::Greedy, "with e-mail at the rate of the line in the mean"),
    ] {
        let (neither, car) = (times(email, false, false)?, times(email, true, false)?);
        let (sad, both) = (times(email, false, true)?, times(email, true, true)?);
        shown.push(car.below(&neither) && sad.below(&car) && both.below(&sad));
        evidence
            .push(format!("{name}: {neither} s with neither, {car} s with CAR, {sad} s with SAD, {both} s with both"));
    }
    result.claims.push(Claim {
        text: table.claim.clone(),
        shown: shown.contains(&true),
        evidence: evidence.join("; "),
    });
    result.assumptions = [
        "The e-mail is stated only by its mean of 1250 bytes/s: bursts of 2 s every 20 s in the mean, ten times as fast, in packets of 500 \
         bytes. The published download without CAR or SAD is as slow as beside a greedy upload, which no source of that mean can do in a queue \
         that loses nothing: so the claim is also judged with a source whose mean is the rate of the line.",
        "CAR counts bytes on the wire and drops what exceeds; how the simulator used made a drop probability of the bursts is not stated.",
        "Delays, queue sizes, first window and minimum RTO are not stated: as in table 5.1.",
    ]
    .map(String::from)
    .to_vec();
    result.assumptions.push(offset_note(table));
    Ok(result)
}

fn with_means(table: &Table, row: &crate::data::Row, means: Means) -> RowResult {
    RowResult { ci95: means.ci95, ..with_offset(table, row, means.mean) }
}

fn run(base: &Overrides, email: Email, car: bool, sad: bool, seed: u64) -> Result<Trial, ExperimentError> {
    let mut overrides = base.clone();
    overrides.set("seed", seed);
    overrides.set("access.up.queue.queue.kind", if sad { "sad" } else { "fifo" });
    if !car {
        overrides.set("access.up.queue.conform", "transmit");
        overrides.set("access.up.queue.exceed", "transmit");
    }
    if matches!(email, Email::Greedy) {
        overrides.set("traffic.email.rate", "64 kbit/s");
    }
    Trial::until_complete(SCENARIO.0, SCENARIO.1, &overrides)
}
