//! Ano et al. 2002, section 4.2: what a path gets for its sustainable rate, and for its burst size.

use crate::data::Table;
use crate::reproduction::{Means, RowResult};
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::{Trial, Variation as _};
use super::testbed::{AF, PATHS, PAYLOAD, Point, Setup, TRUNK_MBPS};
use super::whole;

const AGGREGATE: &str = "aggregate_throughput_mbps";
const WINDOW_BOUND: &str = "window_bound_with_35mbps_shaping_mbps";

/// Of the connections of one path, in Mbit/s.
fn aggregate(trial: &Trial, path: &str) -> f64 {
    trial.connections(path).iter().map(|connection| connection.goodput_bps / 1e6).sum()
}

fn of_second_path(point: Point, setup: &Setup, seeds: &[u64]) -> Result<Means, ExperimentError> {
    let once = |seed| {
        let trial = point.run(setup, seed, |_| ())?;
        let values = [(AGGREGATE, aggregate(&trial, "af-2")), ("aggregate_of_af_1_mbps", aggregate(&trial, "af-1"))];
        Ok(values.into_iter().collect())
    };
    means_over(seeds, once)
}

/// Table 1.
pub(super) fn rates(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let rtt = whole(&table.scenario, "rtt_ms")?;
    let point = |mbps: f64| Point { scr_kbps: (mbps * 1e3).round() as u64, ..Point::at(rtt) };
    let mut rows = Vec::new();
    for row in &table.rows {
        let mbps = super::number(&row.params, "scr0_af2_mbps")?;
        rows.push(RowResult::of_means(row, of_second_path(point(mbps), setup, seeds)?));
    }
    for mbps in [14.84, 5.3] {
        let params: Values = [("scr0_af2_mbps", mbps)].into_iter().collect();
        let mut row = RowResult::predicted(params, of_second_path(point(mbps), setup, seeds)?);
        // Windows allow as much with every contract.
        let window = table.rows.iter().find_map(|row| row.theory.number(WINDOW_BOUND));
        window.into_iter().for_each(|mbps| row.theory.set(WINDOW_BOUND, mbps));
        row.theory.set("aggregate_mbps", super::super::significant(share_mbps(mbps)));
        rows.push(row);
    }
    Ok(rows)
}

/// What the share formula gives the second path, in Mbit/s of payload.
pub(super) fn share_mbps(scr: f64) -> f64 {
    let rest = TRUNK_MBPS - 18.72 - scr;
    (scr + rest / PATHS as f64) * PAYLOAD
}

/// As predicted: falling with the contract, and as near to what the formula or the window allows as the published figures are.
pub(super) fn judge_rates(_: &Table, rows: &[RowResult]) -> Finding {
    const CLOSE: f64 = 0.13;
    let expected = |row: &RowResult| {
        let bounds = ["aggregate_mbps", WINDOW_BOUND].map(|name| row.theory.number(name));
        bounds.into_iter().flatten().fold(f64::INFINITY, f64::min)
    };
    let contract = |row: &RowResult| row.params.number("scr0_af2_mbps").unwrap_or_default();
    let mut rows: Vec<&RowResult> = rows.iter().collect();
    rows.sort_by(|one, other| contract(other).total_cmp(&contract(one)));
    let mut finding = Finding::default();
    for row in &rows {
        let share = row.sample(AGGREGATE).map(|mbps| mbps / expected(row));
        finding.between(&share, 1.0 - CLOSE, 1.0 + CLOSE);
        finding.tell(format!(
            "{} Mbit/s with {} ({:.2} by formula or window)",
            row.sample(AGGREGATE),
            contract(row),
            expected(row)
        ));
    }
    for pair in rows.windows(2) {
        let fall = pair[0].sample(AGGREGATE).minus(&pair[1].sample(AGGREGATE));
        let published = |row: &RowResult| row.published.number(AGGREGATE);
        match published(pair[0]).zip(published(pair[1])) {
            Some((more, less)) => finding.difference(&fall, more - less),
            None => finding.above(&fall, 0.0),
        }
    }
    finding
}

/// Burst sizes that are tried, in cells: one and six windows of 48 kbytes, six of 64, twelve.
const BURSTS: [u64; 4] = [1032, 6192, 8256, 16_512];

/// Figure 7.
pub(super) fn bursts(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut predicted = Vec::new();
    let mut most = 0.0_f64;
    for rtt in [20, 80, 160] {
        let mut by_burst = Vec::new();
        for mbs in BURSTS {
            let once = |seed| {
                let trial = Point { mbs, ..Point::at(rtt) }.run(setup, seed, |_| ())?;
                let each = (1..=AF).map(|path| aggregate(&trial, &format!("af-{path}"))).sum::<f64>() / AF as f64;
                Ok([(AGGREGATE, each)].into_iter().collect())
            };
            let means = means_over(seeds, once)?;
            by_burst.push(means.mean.number(AGGREGATE).unwrap_or_default());
            let params = [("mbs0", mbs as i64), ("rtt_ms", rtt as i64)].into_iter().collect();
            predicted.push(RowResult::unpublished(params, means));
        }
        let (least, largest) = by_burst.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
        most = most.max(100.0 * (largest / least - 1.0));
    }
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("rows"))?;
    let mut told: Values = [("largest_change_pct", super::super::significant(most))].into_iter().collect();
    told.set("throughput_change", if most < UNCHANGED_PCT { "none" } else { "some" });
    let mut rows = vec![RowResult::new(row, told)];
    rows.append(&mut predicted);
    Ok(rows)
}

/// A change that nobody sees in a bar of a figure.
const UNCHANGED_PCT: f64 = 3.0;

/// Every burst size has the throughput of the first one, at each round trip.
pub(super) fn judge_bursts(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    let mut first: Option<&RowResult> = None;
    let rtt = |row: &RowResult| row.params.integer("rtt_ms");
    for row in rows.iter().filter(|row| rtt(row).is_some()) {
        match first.filter(|first| rtt(first) == rtt(row)) {
            Some(first) => {
                let change = row.sample(AGGREGATE).over(&first.sample(AGGREGATE)).map(|ratio| 100.0 * (ratio - 1.0));
                finding.between(&change, -UNCHANGED_PCT, UNCHANGED_PCT);
            }
            None => first = Some(row),
        }
    }
    finding.need(first.is_some());
    let most = rows.first().and_then(|row| row.simulated.number("largest_change_pct")).unwrap_or(f64::INFINITY);
    finding.tell(format!("from {} to {} cells throughput changes by {most:.2} % at most", BURSTS[0], BURSTS[3]));
    finding
}
