//! Phanse 2000, section 5.5: a bursty upstream source, policed or not, beside a download whose ACKs are thinned out or not.

use crate::data::Table;
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::{Setup, with_start_up};

const SCENARIO: (&str, &str) =
    ("phanse2000/policed-email.toml", include_str!("../../../scenarios/phanse2000/policed-email.toml"));

pub(super) const NOTES: &[&str] = &[
    "The e-mail comes in bursts of 2 s every 20 s in the mean, in packets of 500 bytes.",
    "CAR counts bytes on the wire and drops what exceeds; how the simulator used made a drop probability of the bursts is not stated.",
];

const TIME: &str = "download_time_s";

/// Table 5.11. The data hold three of the four cases.
pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let of = |settings: &Values| means_over(seeds, |seed| measure(settings, setup, seed));
    let mut rows = Vec::new();
    for row in &table.rows {
        rows.push(with_start_up(table, row, of(&table.settings(row))?));
    }
    for (car, sad) in [(false, false), (true, false), (false, true), (true, true)] {
        if case(&rows, car, sad).is_none() {
            let params: Values = [("car", Value::from(car)), ("sad", Value::from(sad))].into_iter().collect();
            let means = of(&table.scenario.overlaid(&params))?;
            rows.push(RowResult::unpublished(params, means));
        }
    }
    Ok(rows)
}

fn case(rows: &[RowResult], car: bool, sad: bool) -> Option<&RowResult> {
    rows.iter().find(|row| (row.params.switch("car"), row.params.switch("sad")) == (Some(car), Some(sad)))
}

fn measure(settings: &Values, setup: &Setup, seed: u64) -> Result<Values, ExperimentError> {
    let mut overrides = setup.overrides(settings, seed)?;
    overrides.set("access.up.queue.queue", setup.upstream(settings.switch("sad") == Some(true)));
    if settings.switch("car") != Some(true) {
        overrides.set("access.up.queue.conform", "transmit");
        overrides.set("access.up.queue.exceed", "transmit");
    }
    overrides.set("traffic.email.rate", setup.policed_email);
    let trial = Trial::until_complete(SCENARIO.0, SCENARIO.1, &overrides)?;
    let mut values = Values::new();
    values.set("downstream_throughput_kbps", trial.mean_wire_bps("down") / 1e3);
    values.set(TIME, trial.time_s());
    values.set("cpe_queue_delay_mean_s", trial.mean_queue_delay_s("up"));
    Ok(values)
}

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    let time = |(car, sad)| case(rows, car, sad).map_or_else(Sample::default, |row| row.sample(TIME));
    let published = |(car, sad)| case(rows, car, sad).and_then(|row| row.published.number(TIME));
    let (neither, car, sad, both) = ((false, false), (true, false), (false, true), (true, true));
    let mut finding = Finding::default();
    for (longer, shorter) in [(neither, car), (neither, sad), (car, sad), (sad, both)] {
        let apart = time(longer).minus(&time(shorter));
        match published(longer).zip(published(shorter)) {
            Some((more, less)) => finding.difference(&apart, more - less),
            None => finding.above(&apart, 0.0),
        }
    }
    finding.tell(format!(
        "{} s with neither, {} s with CAR, {} s with SAD, {} s with both",
        time(neither),
        time(car),
        time(sad),
        time(both)
    ));
    finding
}
