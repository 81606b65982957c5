//! Phanse 2000, sections 5.1.2, 5.2.2, 5.3: several downloads at once; delayed ACKs, header compression, PPP.

use std::fmt::Write as _;

use lastmile_queueing::random::Stream;

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::Setup;

const SEVERAL: (&str, &str) =
    ("phanse2000/several-downloads.toml", include_str!("../../../scenarios/phanse2000/several-downloads.toml"));

pub(super) const NOTES: &[&str] = &[
    "Downloads never end. Averages are taken over 300 s without the first 30 s.",
    "Header compression is RFC 1144 with its state; the thesis does not say which, nor how small its ACKs became.",
    "With persistent flows and a full window ACKs release segments in pairs, and the pairs stay together. The published figures with delayed ACKs \
     lie nearer to one ACK for each segment: where segments of several flows alternate, the timer may end before a second segment comes.",
];

const USED: &str = "downstream_utilisation_pct";
const PLAIN: &str = "utilisation_without_atm_pct";
const WITHOUT_PPP: &str = "utilisation_without_ppp_pct";
const UP_USED: &str = "upstream_utilisation_pct";
const WAIT: &str = "ack_queue_delay_mean_s";
const LOAD: &str = "upstream_load_factor_vs_no_ppp";

/// What may be called equal, in percentage points.
const SAME_PCT: f64 = 1.0;

/// When the averages begin, in s: all downloads have started.
const FROM_S: f64 = 30.0;

/// Runs downloads that start at random.
fn run(settings: &Values, setup: &Setup, seed: u64, encapsulation: Option<&str>) -> Result<Trial, ExperimentError> {
    let mut overrides = setup.overrides(settings, seed)?;
    overrides.set("access.up.queue", setup.upstream(false));
    if settings.switch("header_compression") == Some(true) {
        overrides.set("access.up.header_compression", "vj");
    }
    if let Some(encapsulation) = encapsulation {
        overrides.set("access.encapsulation", encapsulation);
    }
    let mut text = SEVERAL.1.to_owned();
    let mut starts = Stream::new(seed, "phanse2000 downloads");
    for download in 1..=setup.downloads {
        let start = starts.below(setup.starts_within_s * 1_000);
        write!(
            text,
            "\n[[traffic]]\nname = \"download-{download}\"\nkind = \"persistent\"\ndirection = \"down\"\nstart = \"{start} ms\"\n"
        )
        .expect("a string takes all");
    }
    Trial::whole(SEVERAL.0, &text, &overrides)
}

fn used(settings: &Values, setup: &Setup, seed: u64, encapsulation: &str) -> Result<f64, ExperimentError> {
    Ok(run(settings, setup, seed, Some(encapsulation))?.utilisation_from_pct("down", FROM_S))
}

fn measured(settings: &Values, setup: &Setup, seed: u64) -> Result<Values, ExperimentError> {
    let trial = run(settings, setup, seed, None)?;
    let mut values = Values::new();
    values.set(USED, trial.utilisation_from_pct("down", FROM_S));
    values.set("segments_per_ack", trial.segments_per_ack());
    Ok(values)
}

fn told_degraded(row: &mut RowResult) {
    if row.published.switch("degraded").is_some() {
        let degraded = row.sample(USED).mean() < 100.0 - SAME_PCT;
        row.simulated.set("degraded", degraded);
    }
}

/// Section 5.1.2, figure 5.3; and section 5.2.2, figure 5.8, where the same downloads without ATM are beside them.
pub(super) fn downloads(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let settings = table.settings(row);
        let once = |seed| {
            let mut values = measured(&settings, setup, seed)?;
            if settings.text("link_layer") != Some("ip") {
                values.set(PLAIN, used(&settings, setup, seed, "ip")?);
            }
            Ok(values)
        };
        let mut result = RowResult::of_means(row, means_over(seeds, once)?);
        told_degraded(&mut result);
        Ok(result)
    };
    table.rows.iter().map(one).collect()
}

fn at(rows: &[RowResult], up_bps: u64, name: &str) -> Sample {
    let row = rows.iter().find(|row| row.params.integer("up_bps") == Some(up_bps));
    row.map_or_else(Sample::default, |row| row.sample(name))
}

pub(super) fn judge_without_atm(_: &Table, rows: &[RowResult]) -> Finding {
    let (slow, fast) = (at(rows, 16_000, USED), at(rows, 96_000, USED));
    let mut finding = Finding::default();
    finding.below(&slow, 100.0 - SAME_PCT);
    finding.above(&fast, 100.0 - SAME_PCT);
    finding.tell(format!("{slow} % at 16 kbit/s, {fast} % at 96 kbit/s"));
    finding
}

/// Far below: by half of the published fall from 65 to 35 % at least.
pub(super) fn judge_over_atm(_: &Table, rows: &[RowResult]) -> Finding {
    const PUBLISHED_WITHOUT_ATM_PCT: f64 = 65.0;
    let of = |up_bps| (at(rows, up_bps, PLAIN), at(rows, up_bps, USED));
    let ((plain_slow, slow), (plain_fast, fast)) = (of(16_000), of(96_000));
    let published = rows.iter().find_map(|row| row.published.number(USED)).unwrap_or_default();
    let mut finding = Finding::default();
    finding.difference(&slow.minus(&plain_slow), published - PUBLISHED_WITHOUT_ATM_PCT);
    finding.between(&fast.minus(&plain_fast), -SAME_PCT, SAME_PCT);
    finding.tell(format!(
        "at 16 kbit/s {plain_slow} % without ATM and {slow} % with; at 96 kbit/s {plain_fast} and {fast} %"
    ));
    finding
}

/// Delays of an ACK that the claims of tables 5.3 and 5.6 are about, and others, in ms.
const COMPARED_MS: [i64; 4] = [0, 50, 200, 500];
const PREDICTED_MS: [i64; 4] = [5, 10, 20, 100];

/// Tables 5.3 and 5.6, and other delays.
pub(super) fn delays(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let of = |settings: &Values| means_over(seeds, |seed| measured(settings, setup, seed));
    let mut rows = Vec::new();
    for row in &table.rows {
        rows.push(RowResult::of_means(row, of(&table.settings(row))?));
    }
    for (delay, is_predicted) in
        COMPARED_MS.iter().map(|ms| (*ms, false)).chain(PREDICTED_MS.iter().map(|ms| (*ms, true)))
    {
        if delayed(&rows, delay).is_some() {
            continue;
        }
        let params: Values =
            [("delayed_ack_ms", Value::from(delay)), ("header_compression", Value::from(false))].into_iter().collect();
        let means = of(&table.scenario.overlaid(&params))?;
        rows.push(if is_predicted {
            RowResult::predicted(params, means)
        } else {
            RowResult::unpublished(params, means)
        });
    }
    Ok(rows)
}

/// The row with ACKs delayed by so much and full headers.
fn delayed(rows: &[RowResult], ms: i64) -> Option<&RowResult> {
    let is_it = |row: &&RowResult| {
        row.params.get("delayed_ack_ms") == Some(&Value::Integer(ms))
            && row.params.switch("header_compression") != Some(true)
    };
    rows.iter().find(is_it)
}

fn compressed(rows: &[RowResult]) -> Sample {
    let row = rows.iter().find(|row| row.params.switch("header_compression") == Some(true));
    row.map_or_else(Sample::default, |row| row.sample(USED))
}

fn tell_delays(finding: &mut Finding, rows: &[RowResult]) {
    let mut by_delay: Vec<(i64, Sample)> = rows
        .iter()
        .filter(|row| row.params.switch("header_compression") != Some(true))
        .filter_map(|row| match row.params.get("delayed_ack_ms") {
            Some(Value::Integer(ms)) => Some((*ms, row.sample(USED))),
            _ => None,
        })
        .collect();
    by_delay.sort_by_key(|(delay, _)| *delay);
    let told: Vec<String> = by_delay.iter().map(|(delay, used)| format!("{used} at {delay} ms")).collect();
    finding.tell(format!("% with an ACK delayed: {}; {} with compression", told.join(", "), compressed(rows)));
}

fn of_delay(rows: &[RowResult], ms: i64) -> Sample {
    delayed(rows, ms).map_or_else(Sample::default, |row| row.sample(USED))
}

/// Table 5.3: from 200 to 500 ms nothing more is gained.
pub(super) fn judge_compression_wins(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let published = |ms| delayed(rows, ms).and_then(|row| row.published.number(USED)).unwrap_or_default();
    finding.difference(&of_delay(rows, 50).minus(&of_delay(rows, 0)), published(50) - published(0));
    finding.above(&of_delay(rows, 200).minus(&of_delay(rows, 50)), 0.0);
    finding.below(&of_delay(rows, 500).minus(&of_delay(rows, 200)), SAME_PCT);
    for row in rows.iter().filter(|row| row.params.switch("header_compression") != Some(true)) {
        finding.above(&compressed(rows).minus(&row.sample(USED)), 0.0);
    }
    tell_delays(&mut finding, rows);
    finding
}

/// Table 5.6: hardly helps is by no more than the published 5 points.
pub(super) fn judge_delay_wins(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let of = |ms| delayed(rows, ms).and_then(|row| row.published.number(USED)).unwrap_or_default();
    let with = rows.iter().find(|row| row.params.switch("header_compression") == Some(true));
    let with = with.and_then(|row| row.published.number(USED)).unwrap_or_default();
    finding.difference(&of_delay(rows, 200).minus(&of_delay(rows, 50)), of(200) - of(50));
    finding.difference(&of_delay(rows, 200).minus(&compressed(rows)), of(200) - with);
    finding.below(&compressed(rows).minus(&of_delay(rows, 50)), with - of(50));
    tell_delays(&mut finding, rows);
    finding
}

/// Figure 5.9, whose bars carry no figures.
pub(super) fn ppp(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows: Vec<RowResult> = Vec::new();
    for row in &table.rows {
        let settings = table.settings(row);
        let once = |seed| {
            let trial = run(&settings, setup, seed, None)?;
            let without = run(&settings, setup, seed, Some("aal5"))?;
            let mut values = Values::new();
            values.set(USED, trial.utilisation_from_pct("down", FROM_S));
            values.set(UP_USED, trial.utilisation_from_pct("up", FROM_S));
            values.set(WAIT, trial.mean_queue_delay_s("up"));
            values.set(WITHOUT_PPP, without.utilisation_from_pct("down", FROM_S));
            values.set(LOAD, trial.utilisation_from_pct("up", FROM_S) / without.utilisation_from_pct("up", FROM_S));
            Ok(values)
        };
        let mut result = RowResult::of_means(row, means_over(seeds, once)?);
        if row.published.switch("downstream_degraded").is_some() {
            let lost = result.sample(WITHOUT_PPP).minus(&result.sample(USED)).mean();
            result.simulated.set("downstream_degraded", lost > SAME_PCT);
        }
        rows.push(result);
    }
    Ok(rows)
}

pub(super) fn judge_ppp(_: &Table, rows: &[RowResult]) -> Finding {
    let [_, fast, slow, compressed] = rows else { return Finding::new(false, "four rows are compared") };
    let lost = |row: &RowResult| row.sample(WITHOUT_PPP).minus(&row.sample(USED));
    let mut finding = Finding::default();
    finding.between(&fast.sample(LOAD), 1.5, 2.5);
    finding.between(&lost(fast), -SAME_PCT, SAME_PCT);
    finding.above(&lost(slow), SAME_PCT);
    // Undone: no more than a point of what a line without PPP carries is missing, without compression there as here.
    let plain = slow.sample(WITHOUT_PPP);
    finding.below(&plain.minus(&compressed.sample(USED)), 2.0 * SAME_PCT);
    let longer = slow.sample(WAIT).over(&fast.sample(WAIT));
    finding.above(&longer, 10.0);
    finding.tell(format!(
        "upstream load times {}; downstream {} and {} % at 96 kbit/s without and with PPP; at 16 kbit/s {plain} % without, {} % with, {} % with \
         compression; an ACK waits {} s at 96 and {} s at 16 kbit/s",
        fast.sample(LOAD),
        fast.sample(WITHOUT_PPP),
        fast.sample(USED),
        slow.sample(USED),
        compressed.sample(USED),
        fast.sample(WAIT),
        slow.sample(WAIT),
    ));
    finding
}
