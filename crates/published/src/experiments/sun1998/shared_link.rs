//! Sun 1998, section 5.6: two sets of connections share Link12; one is congested behind it, the other is not.

use crate::data::Table;
use crate::reproduction::{Means, RowResult};
use crate::sample::Sample;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::{Overrides, Trial};
use super::network::{Edges, Point, Scheme, Setup, Sources};
use super::whole;

const NETWORK: (&str, &str) = ("sun1998/two-sets.toml", include_str!("../../../scenarios/sun1998/two-sets.toml"));

const EPD: &str = "goodput_epd_cells_per_s";
const SPD: &str = "goodput_spd_cells_per_s";
const IMPROVEMENT: &str = "improvement_pct";

pub(super) const NOTES: &[&str] = &[
    "Goodput is cells of complete packets behind Switch2, both sets together. The counts of the thesis have no known interval, so that only the \
     improvement can be compared.",
    "Rows without published figures are predictions: K = 0.6 and 0.9 of the five values that the thesis tried.",
];

pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    for row in &table.rows {
        rows.push(RowResult::of_means(row, one(&table.settings(row), setup, seeds)?));
    }
    for threshold in [3000, 4500] {
        let params: Values = [("epd_threshold_cells", threshold)].into_iter().collect();
        let settings = table.scenario.overlaid(&params);
        rows.push(RowResult::predicted(params, one(&settings, setup, seeds)?));
    }
    Ok(rows)
}

fn one(settings: &Values, setup: &Setup, seeds: &[u64]) -> Result<Means, ExperimentError> {
    let buffer = whole(settings, "switch_buffer_cells")?;
    let threshold = whole(settings, "epd_threshold_cells")?;
    let from = whole(settings, "spd_threshold_cells")?;
    let sets = [whole(settings, "connections_via_switch3")?, whole(settings, "connections_via_switch4")?];
    let point = |scheme| Point { vcs: sets[0] + sets[1], buffer, threshold, scheme, sources: Sources::Persistent };
    let schemes = [Scheme::Epd, Scheme::Spd { from, activation: setup.large_activation }];
    let once = |seed| {
        let mut trials = Vec::new();
        for scheme in schemes {
            trials.push(run(&point(scheme), sets, setup, seed)?);
        }
        let goodput = |trial: &Trial| {
            let cells = trial.cells("link23").good_cells + trial.cells("link24").good_cells;
            cells as f64 / trial.time_s()
        };
        let (epd, spd) = (goodput(&trials[0]), goodput(&trials[1]));
        let mut values = Values::new();
        values.set(IMPROVEMENT, 100.0 * (spd / epd - 1.0));
        values.set(EPD, epd);
        values.set(SPD, spd);
        for (name, trial) in
            [("congested_set_epd_cells_per_s", &trials[0]), ("congested_set_spd_cells_per_s", &trials[1])]
        {
            values.set(name, trial.cells("link23").good_cells as f64 / trial.time_s());
        }
        Ok(values)
    };
    means_over(seeds, once)
}

fn run(point: &Point, sets: [u64; 2], setup: &Setup, seed: u64) -> Result<Trial, ExperimentError> {
    let mut overrides: Overrides = setup.common(seed);
    overrides.set("duration", format_args!("{} ms", setup.shared_ms));
    for switch in ["one", "two", "three", "four"] {
        overrides.set(&format!("switch.{switch}.queue"), point.queue(setup));
    }
    for link in ["link12", "link23", "link24"] {
        overrides.set(&format!("link.{link}.delay"), format_args!("{} ms", setup.shared_delay_ms));
    }
    let mut edges = Edges::new(setup, seed, point.sources);
    edges.add("three", sets[0], ("one", "three"));
    edges.add("four", sets[1], ("one", "four"));
    Trial::whole(NETWORK.0, &format!("{}\n{}", NETWORK.1, edges.text), &overrides)
}

/// More at every threshold, as much as published or half of it, and on average.
pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    const PUBLISHED_MEAN_PCT: f64 = 13.0;
    let mut finding = Finding::default();
    let mut sum = Sample::default();
    let mut published = 0.0;
    for row in rows {
        let gain = row.sample(IMPROVEMENT);
        match row.published.number(IMPROVEMENT) {
            Some(expected) => {
                finding.difference(&gain, expected);
                sum = if sum.is_empty() { gain.clone() } else { sum.with(&gain, |sum, gain| sum + gain) };
                published += 1.0;
            }
            None => finding.above(&gain, 0.0),
        }
        let threshold = row.params.integer("epd_threshold_cells").unwrap_or_default();
        finding.tell(format!("{:.1} % at {threshold}", gain.estimate()));
    }
    let mean = sum.map(|sum| sum / published);
    finding.difference(&mean, PUBLISHED_MEAN_PCT);
    finding.tell(format!("{:.1} % on average", mean.estimate()));
    finding
}
