//! Phanse 2000, sections 5.1.1 and 5.2.1: one download, with its upstream rate or its packet size varied, without ATM and with it.

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::DOWNLOAD;
use super::setup::{Setup, set_files, with_start_up};

const USED: &str = "downstream_utilisation_pct";
const TIME: &str = "download_time_s";
const PLAIN_USED: &str = "utilisation_without_atm_pct";
const PLAIN_TIME: &str = "download_time_without_atm_s";

/// How far steady utilisation may lie from min(1, 1/k), in percentage points.
const TOLERANCE_PCT: f64 = 0.5;

fn run(table: &Table, row: &Row, setup: &Setup, seed: u64, plain: bool) -> Result<Trial, ExperimentError> {
    let mut overrides = setup.overrides(&table.settings(row), seed)?;
    set_files(table, &mut overrides);
    overrides.set("access.up.queue", setup.upstream(false));
    if plain {
        overrides.set("access.encapsulation", "ip");
    }
    Trial::until_complete(DOWNLOAD.0, DOWNLOAD.1, &overrides)
}

/// Tables 5.1 and 5.2.
pub(super) fn downloads(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    rows(table, setup, seeds, false)
}

/// Tables 5.4 and 5.5: over ATM, and for comparison without.
pub(super) fn over_atm(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    rows(table, setup, seeds, true)
}

fn rows(table: &Table, setup: &Setup, seeds: &[u64], compare: bool) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let once = |seed| {
            let trial = run(table, row, setup, seed, false)?;
            let mut values = Values::new();
            values.set(USED, trial.steady_utilisation_pct("down"));
            values.set(TIME, trial.time_s());
            if compare {
                let plain = run(table, row, setup, seed, true)?;
                values.set(PLAIN_USED, plain.steady_utilisation_pct("down"));
                values.set(PLAIN_TIME, plain.time_s());
            }
            Ok(values)
        };
        Ok(with_start_up(table, row, means_over(seeds, once)?))
    };
    table.rows.iter().map(one).collect()
}

/// Table 5.1.
pub(super) fn follows_k(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let mut worst = 0.0_f64;
    for row in rows {
        let Some(bound) = row.theory.number(USED) else { continue };
        let off = row.sample(USED).map(|used| used - bound);
        finding.between(&off, -TOLERANCE_PCT, TOLERANCE_PCT);
        worst = worst.max(off.mean().abs());
    }
    finding.tell(format!("at most {worst:.2} points from min(1, 1/k), {TOLERANCE_PCT} allowed"));
    finding
}

fn by_size(rows: &[RowResult]) -> Option<(&RowResult, &RowResult)> {
    let size = |row: &&RowResult| row.params.integer("ip_mtu_bytes");
    Some((rows.iter().min_by_key(size)?, rows.iter().max_by_key(size)?))
}

fn mtu(row: &RowResult) -> u64 {
    row.params.integer("ip_mtu_bytes").unwrap_or_default()
}

/// Table 5.2.
pub(super) fn smaller_packets_cost(table: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = follows_k(table, rows);
    let Some((small, large)) = by_size(rows) else { return Finding::new(false, "no figures") };
    let published = |row: &RowResult| row.published.number(USED).unwrap_or_default();
    finding.difference(&large.sample(USED).minus(&small.sample(USED)), published(large) - published(small));
    finding.tell(format!(
        "{} bytes {:.1} %, {} bytes {:.1} %",
        mtu(small),
        small.sample(USED).mean(),
        mtu(large),
        large.sample(USED).mean()
    ));
    finding
}

/// Table 5.4: no more of the line than without ATM, and longer.
pub(super) fn cell_tax(table: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = follows_k(table, rows);
    for row in rows {
        finding.below(&row.sample(USED).minus(&row.sample(PLAIN_USED)), TOLERANCE_PCT);
        finding.above(&row.sample(TIME).minus(&row.sample(PLAIN_TIME)), 0.0);
        finding.tell(format!(
            "{} kbit/s: {:.1} % and {:.1} s without ATM, {:.1} % and {:.1} s with",
            row.params.number("up_bps").unwrap_or_default() / 1e3,
            row.sample(PLAIN_USED).mean(),
            row.sample(PLAIN_TIME).mean(),
            row.sample(USED).mean(),
            row.sample(TIME).mean(),
        ));
    }
    finding
}

/// Table 5.5: what ATM leaves of the speed of small packets, and of large ones.
pub(super) fn small_packets_over_atm(table: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = follows_k(table, rows);
    let Some((small, large)) = by_size(rows) else { return Finding::new(false, "no figures") };
    let kept = |row: &RowResult| row.sample(PLAIN_TIME).over(&row.sample(TIME));
    finding.above(&kept(large).minus(&kept(small)), 0.0);
    for row in [small, large] {
        finding.tell(format!("over ATM {} bytes keep {:.1} % of their speed", mtu(row), 100.0 * kept(row).mean()));
    }
    finding
}
