//! Phanse 2000, sections 5.1.3 and 5.2.3: downloads beside e-mail or voice upstream, of one mean rate.

use crate::data::Table;
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::Setup;

const SCENARIO: (&str, &str) =
    ("phanse2000/upstream-load.toml", include_str!("../../../scenarios/phanse2000/upstream-load.toml"));

pub(super) const NOTES: &[&str] = &[
    "Voice is a packet of 160 bytes of IP every 20 ms, e-mail is packets of 1500 bytes: 64 kbit/s of IP in the mean for both, the rate of digitised \
     voice (ITU-T G.711). The thesis says only that the loads are about equal.",
    "Averages are taken from 30 to 300 s.",
];

/// When the averages begin, in s.
const FROM_S: f64 = 30.0;

const USED: &str = "downstream_utilisation_pct";

/// Table 5.7. The data hold three of its four cells; the claim is about all four.
pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let of = |settings: &Values| means_over(seeds, |seed| measure(settings, setup, seed));
    let mut rows = Vec::new();
    for row in &table.rows {
        rows.push(RowResult::of_means(row, of(&table.settings(row))?));
    }
    for (link, traffic) in [("ip", EMAIL), ("ip", VOICE), ("aal5", EMAIL), ("aal5", VOICE)] {
        if cell(&rows, link, traffic).is_none() {
            let params: Values =
                [("link_layer", Value::from(link)), ("upstream_traffic", Value::from(traffic))].into_iter().collect();
            let means = of(&table.scenario.overlaid(&params))?;
            rows.push(RowResult::unpublished(params, means));
        }
    }
    Ok(rows)
}

const EMAIL: &str = "email";
const VOICE: &str = "voice";

fn cell<'a>(rows: &'a [RowResult], link: &str, traffic: &str) -> Option<&'a RowResult> {
    let is_it = |row: &&RowResult| {
        row.params.text("link_layer") == Some(link)
            && row.params.text("upstream_traffic").is_some_and(|known| known.contains(traffic))
    };
    rows.iter().find(is_it)
}

fn measure(settings: &Values, setup: &Setup, seed: u64) -> Result<Values, ExperimentError> {
    let voice = settings.text("upstream_traffic").is_some_and(|traffic| traffic.contains(VOICE));
    let mut overrides = setup.overrides(settings, seed)?;
    overrides.set("access.up.queue", setup.upstream(false));
    overrides.set("tcp.delayed_ack", setup.beside_load_delayed_ack);
    overrides.set("traffic.download.count", setup.downloads);
    overrides.set("traffic.email.on", setup.email.0);
    overrides.set("traffic.email.off", setup.email.1);
    let silent = if voice { EMAIL } else { VOICE };
    // A source that starts after the end is not there.
    overrides.set(&format!("traffic.{silent}.start"), "299.9 s");
    let trial = Trial::whole(SCENARIO.0, SCENARIO.1, &overrides)?;
    let mut values = Values::new();
    values.set(USED, trial.utilisation_from_pct("down", FROM_S));
    values.set("upstream_utilisation_pct", trial.utilisation_from_pct("up", FROM_S));
    values.set("upstream_drops", trial.dropped("up") as f64);
    Ok(values)
}

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    let used = |link, traffic| cell(rows, link, traffic).map_or_else(Sample::default, |row| row.sample(USED));
    let published = |link, traffic| cell(rows, link, traffic).and_then(|row| row.published.number(USED));
    let mut finding = Finding::default();
    let mut less = |(link, traffic), (other_link, other)| {
        let apart = used(link, traffic).minus(&used(other_link, other));
        match published(link, traffic).zip(published(other_link, other)) {
            Some((more, less)) => finding.difference(&apart, more - less),
            None => finding.above(&apart, 0.0),
        }
    };
    less(("ip", EMAIL), ("ip", VOICE));
    less(("aal5", EMAIL), ("aal5", VOICE));
    less(("ip", EMAIL), ("aal5", EMAIL));
    less(("ip", VOICE), ("aal5", VOICE));
    finding.tell(format!(
        "without ATM {} % beside e-mail and {} % beside voice, with ATM {} and {} %",
        used("ip", EMAIL),
        used("ip", VOICE),
        used("aal5", EMAIL),
        used("aal5", VOICE)
    ));
    finding
}
