//! Phanse 2000, sections 5.1.2, 5.2.2, 5.3: several downloads at once; delayed ACKs, header compression, PPP.

use lastmile_queueing::random::Stream;

use crate::data::{Row, Table};
use crate::reproduction::{Claim, RowResult, TableResult};
use crate::value::Values;

use super::super::seeds::{SEEDS, Sample, over_seeds};
use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, rounded};
use super::{KEY, base_overrides};

const SEVERAL: (&str, &str) =
    ("phanse2000/several-downloads.toml", include_str!("../../../scenarios/phanse2000/several-downloads.toml"));

const OPEN: [&str; 4] = [
    "The number of downloads, their sizes and arrivals are not stated: four that start at random within 10 s and never end.",
    "The average is taken over the run, whose length is not stated: 300 s, without the first 30 s.",
    "Header compression is RFC 1144 with its state; the thesis does not say which, nor how small its ACKs became.",
    "Delays, queue sizes, first window and minimum RTO are not stated: as in table 5.1.",
];

/// What may be called equal, in percentage points.
const SAME_PCT: f64 = 1.0;

/// Delays of an ACK that are tried for the break-even point, in ms.
const DELAYS_MS: [u64; 8] = [0, 5, 10, 20, 50, 100, 200, 500];

/// When the averages begin, in s: all downloads have started.
const FROM_S: f64 = 30.0;

/// Section 5.1.2, figure 5.3.
pub(super) fn without_atm(table: &Table) -> Result<TableResult, ExperimentError> {
    let result = rows(table)?;
    let (slow, fast) = slow_and_fast(&result);
    let shown = slow < 100.0 - SAME_PCT && fast > 100.0 - SAME_PCT;
    Ok(judged(table, result, shown, format!("{slow:.1} % at 16 kbit/s, {fast:.1} % at 96 kbit/s")))
}

/// Section 5.2.2, figure 5.8.
pub(super) fn over_atm(table: &Table) -> Result<TableResult, ExperimentError> {
    let result = rows(table)?;
    let (slow, fast) = slow_and_fast(&result);
    let plain = |up_bps: u64| -> Result<f64, ExperimentError> {
        let row = table.rows.iter().find(|row| row.params.integer("up_bps") == Some(up_bps));
        let mut overrides = overrides(table, row.ok_or(ExperimentError::MissingSetting("up_bps"))?)?;
        overrides.set("access.encapsulation", "ip");
        Ok(mean_used(&overrides)?.mean())
    };
    let (plain_slow, plain_fast) = (plain(16_000)?, plain(96_000)?);
    // A cell for an ACK of 40 bytes is a third more: half of that is far more than chance.
    let shown = slow < plain_slow * 0.87 && (fast - plain_fast).abs() < SAME_PCT;
    let evidence = format!(
        "at 16 kbit/s {plain_slow:.1} % without ATM and {slow:.1} % with; at 96 kbit/s {plain_fast:.1} and {fast:.1} %"
    );
    Ok(judged(table, result, shown, evidence))
}

/// Tables 5.3 and 5.6: `compression_wins` as table 5.3 says, or hardly helps as table 5.6 does.
pub(super) fn delay_or_compression(table: &Table, compression_wins: bool) -> Result<TableResult, ExperimentError> {
    let mut result = rows(table)?;
    let mut by_delay = Vec::new();
    for delay in DELAYS_MS {
        by_delay.push((delay, with(table, delay, false)?));
    }
    let at =
        |delay| by_delay.iter().find(|(known, _)| *known == delay).map(|(_, used)| used.clone()).unwrap_or_default();
    let compressed = with(table, 50, true)?;
    let best =
        by_delay.iter().map(|(_, used)| used.clone()).max_by(|a, b| a.mean().total_cmp(&b.mean())).unwrap_or_default();
    let even = by_delay.iter().find(|(_, used)| used.mean() > best.mean() - SAME_PCT).map_or(0, |(delay, _)| *delay);
    let rises = at(0).below(&at(50)) && at(50).below(&at(200));
    let shown = if compression_wins {
        rises && best.below(&compressed)
    } else {
        rises && !at(50).below(&compressed) && compressed.below(&at(200))
    };
    let delays: Vec<String> = by_delay.iter().map(|(delay, used)| format!("{used} at {delay} ms")).collect();
    let evidence = format!(
        "% with an ACK delayed: {}; with compression {compressed} at 50 ms. From {even} ms on no delay gains another point",
        delays.join(", ")
    );
    result.assumptions.push(
        "The published figures with delayed ACKs lie nearer to one ACK for each segment than these: where segments of several flows \
         alternate, the timer may end before a second segment comes. With persistent flows and a full window ACKs release segments in \
         pairs, and the pairs stay together."
            .to_owned(),
    );
    Ok(judged(table, result, shown, evidence))
}

/// Figure 5.9, whose bars carry no figures.
pub(super) fn ppp(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        let overrides = overrides(table, row)?;
        let means = over_seeds(|seed| {
            let trial = run(&overrides, seed)?;
            let mut simulated = Values::new();
            simulated.set("downstream_utilisation_pct", trial.utilisation_from_pct("down", FROM_S));
            simulated.set("upstream_utilisation_pct", trial.utilisation_from_pct("up", FROM_S));
            simulated.set("ack_queue_delay_mean_s", trial.mean_queue_delay_s("up"));
            Ok(simulated)
        })?;
        result.rows.push(RowResult::of_means(row, means));
    }
    assume(&mut result);
    result.assumptions.push("ACKs are delayed by 50 ms, as in the other runs of several downloads.".to_owned());
    let figure = |row: usize, name| result.rows[row].simulated.number(name).unwrap_or_default();
    let down = |row| figure(row, "downstream_utilisation_pct");
    let wait = |row| figure(row, "ack_queue_delay_mean_s");
    let factor = figure(1, "upstream_utilisation_pct") / figure(0, "upstream_utilisation_pct");
    let mut slow_without = overrides(table, &table.rows[2])?;
    slow_without.set("access.encapsulation", "aal5");
    let slow_without = mean_used(&slow_without)?.mean();
    let shown = (factor - 2.0).abs() < 0.15
        && (down(0) - down(1)).abs() < SAME_PCT
        && down(2) < slow_without - SAME_PCT
        && (down(3) - slow_without).abs() < 2.0 * SAME_PCT
        && wait(2) > 10.0 * wait(1);
    let evidence = format!(
        "upstream load times {factor:.2}; downstream {:.1} and {:.1} % at 96 kbit/s; at 16 kbit/s {slow_without:.1} % without PPP, {:.1} % with, \
         {:.1} % with compression; an ACK waits {:.3} s at 96 and {:.2} s at 16 kbit/s",
        down(0),
        down(1),
        down(2),
        down(3),
        wait(1),
        wait(2),
    );
    result.rows[1].simulated.set("upstream_load_factor_vs_no_ppp", rounded(factor, 2));
    Ok(judged(table, result, shown, evidence))
}

fn rows(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        let overrides = overrides(table, row)?;
        let mut means = over_seeds(|seed| {
            let trial = run(&overrides, seed)?;
            let mut simulated = Values::new();
            simulated.set("downstream_utilisation_pct", trial.utilisation_from_pct("down", FROM_S));
            simulated.set("segments_per_ack", trial.segments_per_ack());
            Ok(simulated)
        })?;
        if row.published.switch("degraded").is_some() {
            let used = means.mean.number("downstream_utilisation_pct").unwrap_or_default();
            means.mean.set("degraded", used < 100.0 - SAME_PCT);
        }
        result.rows.push(RowResult::of_means(row, means));
    }
    assume(&mut result);
    Ok(result)
}

fn assume(result: &mut TableResult) {
    result.seeds = SEEDS.to_vec();
    result.assumptions.extend(OPEN.map(String::from));
}

/// The downloads of the table's first row with ACKs delayed by `delay_ms`.
fn with(table: &Table, delay_ms: u64, compression: bool) -> Result<Sample, ExperimentError> {
    let mut overrides = overrides(table, &table.rows[0])?;
    overrides.set("tcp.delayed_ack", format_args!("{delay_ms} ms"));
    overrides.set("access.up.header_compression", if compression { "vj" } else { "none" });
    mean_used(&overrides)
}

/// Mean utilisation of the downstream over all seeds, in percent.
fn mean_used(overrides: &Overrides) -> Result<Sample, ExperimentError> {
    Sample::of(|seed| Ok(run(overrides, seed)?.utilisation_from_pct("down", FROM_S)))
}

fn overrides(table: &Table, row: &Row) -> Result<Overrides, ExperimentError> {
    let settings = table.settings(row);
    let mut overrides = base_overrides(&settings)?;
    if let Some(delay) = settings.integer("delayed_ack_ms") {
        overrides.set("tcp.delayed_ack", format_args!("{delay} ms"));
    }
    if settings.switch("header_compression") == Some(true) {
        overrides.set("access.up.header_compression", "vj");
    }
    Ok(overrides)
}

/// A run whose downloads start at random.
fn run(overrides: &Overrides, seed: u64) -> Result<Trial, ExperimentError> {
    let mut overrides = overrides.clone();
    let mut starts = Stream::new(seed, "phanse2000 downloads");
    for download in 1..=4 {
        overrides.set(&format!("traffic.download-{download}.start"), format_args!("{} ms", starts.below(10_000)));
    }
    overrides.set("seed", seed);
    Trial::whole(SEVERAL.0, SEVERAL.1, &overrides)
}

fn slow_and_fast(result: &TableResult) -> (f64, f64) {
    let used = |row: &RowResult| row.simulated.number("downstream_utilisation_pct").unwrap_or_default();
    let at = |bps: u64| result.rows.iter().find(|row| row.params.integer("up_bps") == Some(bps)).map_or(0.0, used);
    (at(16_000), at(96_000))
}

fn judged(table: &Table, mut result: TableResult, shown: bool, evidence: String) -> TableResult {
    result.claims.push(Claim { text: table.claim.clone(), shown, evidence });
    result
}
