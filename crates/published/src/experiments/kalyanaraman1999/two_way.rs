//! Kalyanaraman et al. 1999, section 4.2: a transfer each way, upstream in one queue or in two classes.

use crate::data::{Row, Table};
use crate::reproduction::RowResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::{Network, Setup};
use super::whole;

const ALONE: &str = "download_alone_mbps";
const FIFO: &str = "download_in_a_fifo_mbps";
const DOWN: &str = "downstream_throughput_mbps";
const UP: &str = "upstream_throughput_kbps";
const UP_PCT: &str = "upstream_utilisation_pct";

fn mbps(trial: &Trial) -> f64 {
    trial.goodput_bps("download") / 1e6
}

/// Table 4.
pub(super) fn fifo(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let one = |row: &Row| {
        let once = |seed| {
            let both = setup.run(table, row, Network::BothWays, seed)?;
            let mut values = Values::new();
            values.set("downstream_throughput_kbps", both.goodput_bps("download") / 1e3);
            values.set(UP, both.goodput_bps("upload") / 1e3);
            values.set("downstream_utilisation_pct", both.goodput_pct("download", "down"));
            values.set(UP_PCT, both.goodput_pct("upload", "up"));
            values.set(ALONE, mbps(&setup.run(table, row, Network::Alone, seed)?));
            Ok(values)
        };
        Ok(RowResult::of_means(row, means_over(seeds, once)?))
    };
    table.rows.iter().map(one).collect()
}

/// Collapsed: to a fifth of what the download has alone, at most; about 90 % upstream: above 85.
pub(super) fn judge_fifo(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    for row in rows {
        let left = row.sample("downstream_throughput_kbps").over(&row.sample(ALONE).map(|mbps| 1e3 * mbps));
        finding.below(&left, 0.2);
        finding.above(&row.sample(UP_PCT), 85.0);
        finding.tell(format!(
            "{} kbit/s: download {} Mbit/s alone, {} kbit/s beside the upload, which fills {:.0} %",
            kbps(row),
            row.sample(ALONE),
            row.sample("downstream_throughput_kbps"),
            row.sample(UP_PCT).mean()
        ));
    }
    finding
}

fn kbps(row: &RowResult) -> f64 {
    row.params.number("up_bps").unwrap_or_default() / 1e3
}

/// Table 5. A download in a FIFO, alone and beside an upload, is the same for all rows of one upstream rate.
pub(super) fn classes(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    let mut unregulated: Option<(u64, Vec<Values>)> = None;
    for row in &table.rows {
        let settings = table.settings(row);
        let up = whole(&settings, "up_bps")?;
        if unregulated.as_ref().is_none_or(|(known, _)| *known != up) {
            let once = |seed: &u64| {
                let figures = [
                    (ALONE, mbps(&setup.run(table, row, Network::Alone, *seed)?)),
                    (FIFO, mbps(&setup.run(table, row, Network::BothWays, *seed)?)),
                ];
                Ok(figures.into_iter().collect())
            };
            unregulated = Some((up, seeds.iter().map(once).collect::<Result<_, ExperimentError>>()?));
        }
        let share = |name| settings.number(name).ok_or(ExperimentError::MissingSetting(name));
        let network = Network::Classes { reverse: share("G")?, forward: share("forward_packet_share")? };
        let once = |seed| {
            let both = setup.run(table, row, network, seed)?;
            let mut values = Values::new();
            values.set(DOWN, mbps(&both));
            values.set(UP, both.goodput_bps("upload") / 1e3);
            values.set("download_timeouts", both.timeouts("download") as f64);
            let place = seeds.iter().position(|known| *known == seed).unwrap_or_default();
            let beside = unregulated.as_ref().and_then(|(_, values)| values.get(place));
            Ok(beside.map_or_else(|| values.clone(), |beside| values.overlaid(beside)))
        };
        rows.push(RowResult::of_means(row, means_over(seeds, once)?));
    }
    Ok(rows)
}

/// Most of what a FIFO loses comes back; the upload rises from the smallest share to the largest as published, or half as much.
pub(super) fn judge_classes(_: &Table, rows: &[RowResult]) -> Finding {
    let mut finding = Finding::default();
    for row in rows {
        let (alone, fifo, down) = (row.sample(ALONE), row.sample(FIFO), row.sample(DOWN));
        let restored = down.minus(&fifo).over(&alone.max(&down).minus(&fifo));
        // A slow upstream loses nearly all in a FIFO and much without one: what counts there is the line.
        finding.above(&restored, 0.5);
        finding.tell(format!(
            "{} kbit/s, G = {}: download {alone} Mbit/s alone, {fifo} in a FIFO, {down} with classes; upload {} kbit/s",
            kbps(row),
            row.params.number("G").unwrap_or_default(),
            row.sample(UP),
        ));
    }
    let published = |row: &RowResult| row.published.number(UP).unwrap_or_default();
    let same = |row: &&RowResult, other: &RowResult| row.params.get("up_bps") == other.params.get("up_bps");
    for first in rows.iter().filter(|row| row.params.number("G") == Some(0.1)) {
        let Some(last) = rows.iter().rfind(|row| same(row, first)) else { continue };
        finding.difference(&last.sample(UP).minus(&first.sample(UP)), published(last) - published(first));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::kalyanaraman1999::KEY;

    fn judged(down: impl Fn(&Row) -> f64, up: impl Fn(&Row) -> f64) -> Finding {
        let publications = crate::publications().unwrap();
        let table = publications.iter().find(|known| known.key == KEY).unwrap().table("5").unwrap();
        let row = |row: &Row| {
            let figures = [(DOWN, down(row)), (UP, up(row)), (ALONE, 1.53), (FIFO, 0.06)];
            RowResult::new(row, figures.into_iter().collect())
        };
        let rows: Vec<RowResult> = table.rows.iter().map(row).collect();
        judge_classes(table, &rows).with_figures_of(&rows)
    }

    /// 1.09 Mbit/s where 6.43 are published is ten times as much as in a FIFO, and another result.
    #[test]
    fn a_download_far_below_the_published_one_is_not_shown() {
        let printed = |name: &'static str| move |row: &Row| row.published.number(name).unwrap();
        assert!(judged(printed(DOWN), printed(UP)).is_shown());
        let low = judged(|row| if row.params.number("G") == Some(0.9) { 1.09 } else { 3.4 }, printed(UP));
        assert!(!low.is_shown(), "{}", low.evidence());
        assert!(low.evidence().contains("-8"), "{}", low.evidence());
        assert!(!judged(printed(DOWN), |_| 44.0).is_shown(), "the upload does not rise");
    }
}
