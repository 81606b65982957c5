//! Brouer 2005, figures 7.5 to 7.8: what the clock of the middlebox adds to the wait.

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Value;
use crate::verdict::Finding;

use super::super::seeds::SEEDS;
use super::super::trial::Trial;
use super::super::{ExperimentError, significant};
use super::MIDDLEBOX;
use super::load::{Load, Ping, assume, runs_of_row};
use super::measured::{RoundTrips, judge, mean_trips, row_of_runs, run, set_pooled, simulated};

/// The clock of Linux 2.4 as it comes.
const STOCK_HZ: i64 = 100;

/// The round trip of an idle line, in ms.
fn idle_ms() -> Result<f64, ExperimentError> {
    let load = Load { upload: None, udp: None, ping: Ping::FromMiddlebox, duration_s: 10 };
    let trial = run(MIDDLEBOX, SEEDS[0], |seed, overrides| load.traffic(seed, overrides))?;
    Ok(RoundTrips::of(&trial, "ping-10", 0.0, 10.0).quantile(0.5))
}

/// Figure 7.5.
pub(super) fn local_pings(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let mut trips = RoundTrips::default();
    for row in &table.rows {
        let runs = runs_of_row(table, row, Ping::FromMiddlebox)?;
        trips = RoundTrips::all(&runs, "ping-10", 0.0, 300.0);
        let mut ours = row_of_runs(row, &runs, |trial| {
            let trips = RoundTrips::of(trial, "ping-10", 0.0, 300.0);
            [("latency_mean_ms", trips.mean()), ("latency_mode_ms", trips.mode())].into_iter().collect()
        });
        set_pooled(
            &mut ours,
            &[("latency_mode_ms", trips.mode()), ("latency_min_ms", trips.min()), ("latency_max_ms", trips.max())],
        );
        result.rows.push(ours);
    }
    let added = trips.mode() - idle_ms()?;
    assume(&mut result);
    result.assumptions.push(
        "The generator pauses every 5 minutes; a run is the time between two pauses. It begins with full buckets, \
         and what they hold goes into the modem at \
         once."
            .to_owned(),
    );
    let evidence = format!(
        "most often {:.1} ms, {added:.1} above the idle line; at most {:.1} ms, of {} pings",
        trips.mode(),
        trips.max(),
        trips.count()
    );
    judge(table, &mut result, Finding::new((8.0..=11.5).contains(&added), evidence));
    Ok(result)
}

/// Figure 7.7.
pub(super) fn pings_from_behind(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("timer_hz"))?;
    let runs = runs_of_row(table, row, Ping::FromBehind)?;
    let trips = RoundTrips::all(&runs, "ping-10", 60.0, 300.0);
    let idle = idle_ms()?;
    let added = [trips.quantile(0.005) - idle, trips.quantile(0.995) - idle]
        .map(|ms| significant((ms * 100.0).round() / 100.0));
    for row in &table.rows {
        let mut ours = row_of_runs(row, &runs, |trial| {
            [("latency_mean_ms", RoundTrips::of(trial, "ping-10", 60.0, 300.0).mean())].into_iter().collect()
        });
        ours.simulated.set("added_delay_ms", Value::List(added.map(Value::Float).to_vec()));
        result.rows.push(ours);
    }
    let quarter = |share: f64| trips.quantile(share) - idle;
    let even = [0.25, 0.5, 0.75].iter().all(|share| {
        let expected = added[0] + share * (added[1] - added[0]);
        (quarter(*share) - expected).abs() < 1.5
    });
    let evidence = format!(
        "{:.1} to {:.1} ms are added, a quarter of the pings has {:.1}, half {:.1}, three quarters {:.1} at most",
        added[0],
        added[1],
        quarter(0.25),
        quarter(0.5),
        quarter(0.75)
    );
    assume(&mut result);
    judge(table, &mut result, Finding::new(added[0] < 1.5 && (8.5..12.5).contains(&added[1]) && even, evidence));
    Ok(result)
}

/// Figure 7.8.
pub(super) fn fine_timer(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let row = table.rows.first().ok_or(ExperimentError::MissingSetting("timer_hz"))?;
    let mut stock = row.clone();
    stock.params.set("timer_hz", STOCK_HZ);
    let (coarse, fine) = (runs_of_row(table, &stock, Ping::FromBehind)?, runs_of_row(table, row, Ping::FromBehind)?);
    for row in &table.rows {
        result.rows.push(row_of_runs(row, &fine, |trial| {
            let trips = RoundTrips::of(trial, "ping-10", 0.0, 300.0);
            [("latency_mean_ms", trips.mean()), ("share_below_15ms_pct", trips.within_pct(15.0))].into_iter().collect()
        }));
    }
    let idle = idle_ms()?;
    let added = |runs: &[Trial]| mean_trips(runs, "ping-10", 0.0, 300.0).map(|mean| mean - idle);
    let mut finding = Finding::default();
    // Most of the delay: more than half.
    finding.below(&added(&fine).over(&added(&coarse)), 0.5);
    let [coarse, fine] = [coarse, fine].map(|runs| RoundTrips::all(&runs, "ping-10", 0.0, 300.0));
    assume(&mut result);
    let evidence = format!(
        "at 100 Hz {:.1} ms more than the idle line in the mean, at 1500 Hz {:.1}; then {:.1} % below 15 ms",
        coarse.mean() - idle,
        fine.mean() - idle,
        fine.within_pct(15.0)
    );
    result.assumptions.push(
        "A run is the time between two pauses of the generator, 5 minutes: the burst that follows a pause stands in \
         the modem until the line, 0.3 % faster than \
         the shaper, has worked it off. That takes some 10 s and makes the few pings above 15 ms."
            .to_owned(),
    );
    finding.tell(evidence);
    judge(table, &mut result, finding);
    Ok(result)
}
