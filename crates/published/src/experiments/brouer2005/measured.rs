//! Runs with several seeds, and what is read off them as the thesis read it off its plots.

use std::fmt;

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::sample::Sample;
use crate::value::Values;
use crate::verdict::{Agreement, Finding};

use super::super::seeds::{SEEDS, means};
use super::super::trial::{Overrides, Trial};
use super::super::{ExperimentError, significant};
use super::KEY;

/// IP bytes for each byte of payload: 1500 for 1448. Throughput in the thesis counts IP bytes.
const IP_PER_PAYLOAD: f64 = 1500.0 / 1448.0;

/// The scenario, with traffic of its own added, once with each seed.
pub(super) fn runs(
    (name, text): (&str, &str),
    set: impl Fn(u64, &mut Overrides) -> String,
) -> Result<Vec<Trial>, ExperimentError> {
    SEEDS.iter().map(|&seed| run((name, text), seed, &set)).collect()
}

/// The scenario, with traffic of its own added, with one seed.
pub(super) fn run(
    (name, text): (&str, &str),
    seed: u64,
    set: impl Fn(u64, &mut Overrides) -> String,
) -> Result<Trial, ExperimentError> {
    let mut overrides = Overrides::default();
    overrides.set("seed", seed);
    let traffic = set(seed, &mut overrides);
    Trial::whole(name, &format!("{text}\n{traffic}"), &overrides)
}

/// A row beside the means of what `measure` reads off each run.
pub(super) fn row_of_runs<'a>(
    row: &Row,
    runs: impl IntoIterator<Item = &'a Trial>,
    measure: impl Fn(&Trial) -> Values,
) -> RowResult {
    let values: Vec<Values> = runs.into_iter().map(measure).collect();
    RowResult::of_means(row, means(&values))
}

/// A table of simulated rows that has no rows yet.
pub(super) fn simulated(table: &Table) -> TableResult {
    let mut result = TableResult::new(KEY, table);
    result.seeds = SEEDS.to_vec();
    result
}

/// Adds the table's claim, judged by this finding and by how near the figures are.
pub(super) fn judge(table: &Table, result: &mut TableResult, finding: Finding) {
    judge_inferred(table, result, finding, &[]);
}

/// Adds the table's claim, where parameters were inferred from these very figures.
pub(super) fn judge_inferred(table: &Table, result: &mut TableResult, finding: Finding, inferred: &[&str]) {
    result.agreement = Some(Agreement::of(&result.rows));
    result.claims.push(finding.with_figures_of(&result.rows).claim_inferred(&table.claim, inferred));
}

/// A figure of a row that was simulated.
pub(super) fn figure(row: &RowResult, name: &str) -> f64 {
    row.simulated.number(name).unwrap_or_default()
}

/// A quantity of each run, seed by seed.
pub(super) fn sample(runs: &[Trial], of: impl Fn(&Trial) -> f64) -> Sample {
    runs.iter().map(of).collect::<Vec<f64>>().into()
}

/// Mean round trips, run by run.
pub(super) fn mean_trips(runs: &[Trial], ping: &str, from_s: f64, to_s: f64) -> Sample {
    sample(runs, |trial| RoundTrips::of(trial, ping, from_s, to_s).mean())
}

/// Throughput of `traffic` in IP bytes from one time to another, in kbit/s.
pub(super) fn ip_kbps(trial: &Trial, traffic: &str, from_s: f64, to_s: f64) -> f64 {
    mean(trial.samples("goodput_bps", traffic), from_s, to_s) * IP_PER_PAYLOAD / 1e3
}

/// The mean of the samples after one time and up to another.
pub(super) fn mean(samples: impl Iterator<Item = (f64, f64)>, from_s: f64, to_s: f64) -> f64 {
    let values: Vec<f64> = samples.filter(|(at, _)| *at > from_s && *at <= to_s).map(|(_, value)| value).collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Round trips, in ms, in order of size.
#[derive(Clone, Default)]
pub(super) struct RoundTrips(Vec<f64>);

impl RoundTrips {
    /// The round trips of a ping that departed from one time to another.
    pub(super) fn of(trial: &Trial, ping: &str, from_s: f64, to_s: f64) -> Self {
        Self::new(trial.round_trips(ping).filter(|(at, _)| (from_s..to_s).contains(at)).map(|(_, took)| took))
    }

    /// The round trips of a ping in several runs together.
    pub(super) fn all(runs: &[Trial], ping: &str, from_s: f64, to_s: f64) -> Self {
        Self::new(runs.iter().flat_map(|trial| Self::of(trial, ping, from_s, to_s).0))
    }

    fn new(times: impl Iterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(super) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or_default()
    }

    pub(super) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// The time that this share of them does not exceed.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let place = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Percent that took at most `ms`.
    pub(super) fn within_pct(&self, ms: f64) -> f64 {
        100.0 * self.0.partition_point(|time| *time <= ms) as f64 / self.0.len().max(1) as f64
    }

    /// The middle of the fullest millisecond.
    pub(super) fn mode(&self) -> f64 {
        let mut best = (0, 0.0);
        let mut rest = self.0.as_slice();
        while let Some(first) = rest.first() {
            let millisecond = first.floor();
            let count = rest.partition_point(|time| time.floor() <= millisecond);
            if count > best.0 {
                best = (count, millisecond + 0.5);
            }
            rest = &rest[count..];
        }
        best.1
    }
}

impl fmt::Display for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.1}, at most {:.1} ms", self.mean(), self.max())
    }
}

/// Adds extremes of all runs together to a row, where a mean of extremes would say little.
pub(super) fn set_pooled(row: &mut RowResult, figures: &[(&'static str, f64)]) {
    for (name, value) in figures {
        row.simulated.set(*name, significant(*value));
        if let Some(reference) = row.published.number(name).or_else(|| row.theory.number(name)) {
            row.deviation.set(*name, significant(value - reference));
        }
    }
}

/// The effect of single keys that the thesis leaves open.
pub(super) fn sensitivity<T: fmt::Display>(
    what: &str,
    variants: &[(&str, &str, &str)],
    measure: impl Fn(&str, &str) -> Result<T, ExperimentError>,
) -> Result<String, ExperimentError> {
    let mut told = Vec::new();
    for (label, key, value) in variants {
        told.push(format!("{label}: {}", measure(key, value)?));
    }
    Ok(format!("How sensitive this is ({what}, one seed): {}.", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten times: 1.2, 2.1, 2.2, 2.3, and 5 to 10.
    #[test]
    fn round_trips_tell_their_shares_and_where_most_of_them_are() {
        let trips = RoundTrips::new([5.0, 2.1, 2.2, 6.0, 1.2, 7.0, 2.3, 8.0, 9.0, 10.0].into_iter());
        assert_eq!(trips.count(), 10);
        let expected = [
            (trips.min(), 1.2),
            (trips.max(), 10.0),
            (trips.mean(), 5.28),
            (trips.quantile(0.1), 1.2),
            (trips.quantile(0.5), 5.0),
            (trips.quantile(0.99), 10.0),
            (trips.within_pct(1.0), 0.0),
            (trips.within_pct(2.3), 40.0),
            (trips.within_pct(9.9), 90.0),
            // The three between 2 and 3.
            (trips.mode(), 2.5),
        ];
        for (place, (ours, expected)) in expected.into_iter().enumerate() {
            assert!((ours - expected).abs() < 1e-9, "{place}: {ours}, not {expected}");
        }
    }

    #[test]
    fn a_mean_is_of_the_samples_after_its_begin_and_up_to_its_end() {
        let samples = [(1.0, 100.0), (2.0, 3.0), (3.0, 5.0), (3.1, 100.0)];
        assert!((mean(samples.into_iter(), 1.0, 3.0) - 4.0).abs() < 1e-9);
    }
}
