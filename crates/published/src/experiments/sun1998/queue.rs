//! Sun 1998, section 5.5: the queue of Switch2 against time under the three schemes.

use lastmile_scenario::Scenario;

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::seeds::{SEEDS, means_over};
use super::super::trial::{Trial, Variation as _};
use super::super::{Drawing, ExperimentError};
use super::network::{Point, Scheme, Setup, Sources};
use super::whole;

/// SPDth and CongestTh of chapter 4.
const SPD: Scheme = Scheme::Spd { from: 20, activation: 200 };

/// Cells with which the queue counts as drained, and with which it has a peak: less than one packet, and the bandwidth-delay product.
const DRAINED: f64 = 20.0;
const PEAK: f64 = 283.0;

pub(super) const NOTES: &[&str] = &[
    "The queue is sampled every millisecond, in which 24 cells leave. A peak is the most between two times at which it had drained (20 cells or \
     fewer), if that is more than the bandwidth-delay product of 283 cells.",
    "`lastmile reproduce sun1998/fig-5.12 --out DIR` draws the three queues against time.",
];

const MEAN: &str = "peak_queue_cells_mean";
const MOST: &str = "peak_queue_cells_max";
const AT_THRESHOLD: &str = "time_at_epd_threshold_pct";
const REACHED: &str = "peaks_at_epd_threshold_pct";
const EMPTY: &str = "time_drained_pct";
const LOST: &str = "cells_dropped";

fn scheme(row: &Row) -> Scheme {
    match row.params.text("scheme") {
        Some("EPD aggregate") => Scheme::Epd,
        Some("EPD per-VC") => Scheme::EpdPerVc,
        _ => SPD,
    }
}

/// The run whose queue a row is about.
fn scenario(table: &Table, row: &Row, setup: &Setup, seed: u64) -> Result<Scenario, ExperimentError> {
    let settings = table.settings(row);
    let point = Point {
        vcs: whole(&settings, "vcs")?,
        buffer: whole(&settings, "switch_buffer_cells")?,
        threshold: whole(&settings, "epd_threshold_cells")?,
        scheme: scheme(row),
        sources: Sources::Persistent,
    };
    point.scenario(setup, seed, |overrides| {
        overrides.set("record.series", true);
        overrides.set("record.interval", "1 ms");
        overrides.set("record.flows", 0);
    })
}

/// The three runs, for their queues to be drawn.
pub(super) fn drawings(table: &Table, setup: &Setup) -> Result<Vec<Drawing>, ExperimentError> {
    // Some dozens of peaks.
    let brief = Setup { duration_ms: 5000, ..setup.clone() };
    let drawing = |row: &Row| {
        let label = row.params.text("scheme").unwrap_or_default().to_owned();
        let scenario = scenario(table, row, &brief, SEEDS[0])?;
        Ok(Drawing { label, scenario, series: "queue_cells", of: "link23" })
    };
    table.rows.iter().map(drawing).collect()
}

pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    for row in &table.rows {
        let threshold = whole(&table.settings(row), "epd_threshold_cells")? as f64;
        let once = |seed| Ok(measured(&Trial::of_scenario(&scenario(table, row, setup, seed)?)?, threshold));
        let mut result = RowResult::of_means(row, means_over(seeds, once)?);
        let of = |name| result.simulated.number(name).unwrap_or_default();
        let (typical, reached) = (of(MEAN), of(REACHED));
        // The same quantities by the names under which they were published.
        for (name, ours) in [("peak_queue_cells_about", typical), ("peak_queue_cells_above", typical)] {
            if let Some(published) = row.published.number(name) {
                result.simulated.set(name, ours);
                result.deviation.set(name, ours - published);
            }
        }
        if row.published.get("peak_reaches_epd_threshold").is_some() {
            result.simulated.set("peak_reaches_epd_threshold", if reached < RARELY_PCT { "rarely" } else { "often" });
        }
        rows.push(result);
    }
    Ok(rows)
}

/// Peaks that reach a threshold rarely: one of four at most.
const RARELY_PCT: f64 = 25.0;

fn measured(trial: &Trial, threshold: f64) -> Values {
    let samples: Vec<f64> = trial.samples("queue_cells", "link23").map(|(_, cells)| cells).collect();
    let share = |of: &dyn Fn(f64) -> bool| {
        100.0 * samples.iter().filter(|cells| of(**cells)).count() as f64 / samples.len().max(1) as f64
    };
    let peaks = peaks(&samples);
    let reached = peaks.iter().filter(|peak| **peak >= threshold).count();
    let mut values = Values::new();
    values.set(MEAN, peaks.iter().sum::<f64>() / peaks.len().max(1) as f64);
    values.set(MOST, peaks.iter().copied().fold(0.0, f64::max));
    values.set(REACHED, 100.0 * reached as f64 / peaks.len().max(1) as f64);
    values.set(AT_THRESHOLD, share(&|cells| cells >= threshold));
    values.set(EMPTY, share(&|cells| cells <= DRAINED));
    values.set("peaks", peaks.len() as f64);
    values.set(LOST, trial.cells("link23").cells.dropped_cells() as f64);
    values
}

/// The most between two times at which the queue had drained, where that is a peak.
fn peaks(samples: &[f64]) -> Vec<f64> {
    let between = samples.split(|cells| *cells <= DRAINED);
    between.map(|cells| cells.iter().copied().fold(0.0, f64::max)).filter(|peak| *peak > PEAK).collect()
}

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    let [epd, per_vc, spd] = rows else { return Finding::new(false, "three schemes are compared") };
    let mut finding = Finding::default();
    // Packets that had begun when the threshold was reached still come in whole: a few dozen cells.
    finding.between(&epd.sample(MEAN), 550.0, 700.0);
    finding.above(&per_vc.sample(MEAN).minus(&epd.sample(MEAN)), 0.0);
    finding.above(&per_vc.sample(MOST), 600.0);
    finding.above(&per_vc.sample(LOST), 0.0);
    finding.below(&spd.sample(REACHED), RARELY_PCT);
    rows.iter().for_each(|row| finding.above(&row.sample(EMPTY), 1.0));
    for (name, row) in [("EPD", epd), ("per VC", per_vc), ("SPD", spd)] {
        let of = |name| row.sample(name).mean();
        finding.tell(format!(
            "{name}: peaks of {:.0} cells, {:.0} at most, {:.0} % of them at 600 or more, drained {:.0} % of the time, {:.0} cells dropped",
            of(MEAN),
            of(MOST),
            of(REACHED),
            of(EMPTY),
            of(LOST)
        ));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_lies_between_two_times_at_which_the_queue_had_drained() {
        let samples = [0.0, 400.0, 700.0, 500.0, 10.0, 200.0, 0.0, 0.0, 300.0, 290.0];
        assert_eq!(peaks(&samples), [700.0, 300.0], "200 cells are no peak");
        assert!(peaks(&[0.0, 5.0]).is_empty());
    }
}
