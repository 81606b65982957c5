//! Brouer 2005, figures 3.7 and 3.8: uploads with small windows, which show how much the modem holds.

use lastmile_queueing::random::Stream;

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial};
use super::measured::{
    RoundTrips, ip_kbps, judge, judge_inferred, mean, row_of_runs, runs, sensitivity, set_pooled, simulated,
};
use super::starvation::VARIANTS;
use super::{OPEN_LINE, UPLOADS};

/// Traffic of `count` uploads that start within a second, each with a window of `window` bytes.
pub(super) fn uploads(seed: u64, overrides: &mut Overrides, count: u64, window: u64) -> String {
    let mut starts = Stream::new(seed, "brouer2005 uploads alone");
    overrides.set("traffic.ping.start", format_args!("{} us", starts.below(100_000)));
    let one = |number| {
        let start = starts.below(1_000);
        format!(
            "[[traffic]]\nname = \"upload-{number}\"\nkind = \"persistent\"\ndirection = \"up\"\nstart = \"{start} \
             ms\"\n\
             tcp = {{ receive_window = \"{window} B\" }}\n"
        )
    };
    (1..=count).map(one).collect()
}

/// Figure 3.7.
pub(super) fn small_window(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let window = super::whole(&table.scenario, "window_bytes")?;
    let with = |count, window| runs(UPLOADS, |seed, overrides| uploads(seed, overrides, count, window));
    for row in &table.rows {
        let count = row.params.integer("uploads").unwrap_or(1);
        let runs = with(count, window)?;
        let mut ours = row_of_runs(row, &runs, |trial| {
            let outstanding: Vec<(f64, f64)> = trial.samples("in_flight_bytes", "upload-1").collect();
            let upstream: f64 =
                (1..=count).map(|number| ip_kbps(trial, &format!("upload-{number}"), 10.0, 120.0)).sum();
            let mut values = Values::new();
            values.set("rtt_mean_ms", RoundTrips::of(trial, "ping", 10.0, 120.0).mean());
            values.set("outstanding_mean_bytes", mean(outstanding.iter().copied(), 10.0, 120.0));
            values.set("upstream_throughput_kbps_about", upstream);
            values
        });
        let pooled = RoundTrips::all(&runs, "ping", 10.0, 120.0);
        let outstanding =
            runs.iter().flat_map(|trial| trial.samples("in_flight_bytes", "upload-1").map(|(_, bytes)| bytes));
        let most = outstanding.fold(0.0, f64::max);
        set_pooled(
            &mut ours,
            &[("rtt_min_ms", pooled.min()), ("rtt_max_ms", pooled.max()), ("outstanding_max_bytes", most)],
        );
        result.rows.push(ours);
    }
    let rtt = |runs: &[Trial]| RoundTrips::all(runs, "ping", 10.0, 120.0).mean();
    let rate = |runs: &[Trial]| mean(runs[0].samples("wire_rate_bps", "up"), 10.0, 120.0) / 1e3;
    let (whole, one, two) = (with(1, 63_712)?, with(1, window)?, with(2, window)?);
    let outstanding = |runs: &[Trial]| mean(runs[0].samples("in_flight_bytes", "upload-1"), 10.0, 120.0);
    let (shrunk, windows) = (rtt(&one) / rtt(&whole), outstanding(&one) / outstanding(&whole));
    let doubled = rtt(&two) / rtt(&one);
    let shown = (shrunk / windows - 1.0).abs() < 0.1 && (doubled - 2.0).abs() < 0.1 && rate(&one) > 0.99 * rate(&whole);
    let evidence = format!(
        "a window of {window} in place of 63712 bytes leaves {:.0} of {:.0} ms, {:.0} % where what is outstanding \
         is {:.0} %; two uploads {:.0} ms; the \
         line carries {:.0} and {:.0} kbit/s",
        rtt(&one),
        rtt(&whole),
        100.0 * shrunk,
        100.0 * windows,
        rtt(&two),
        rate(&one),
        rate(&whole)
    );
    result.assumptions.extend(OPEN_LINE.map(String::from));
    result.assumptions.push(
        "Senders fill whole segments: 12 of 1448 bytes in a window of 18750. The thesis saw 11.5 in the mean and 14 \
         at most, since its hosts moved \
         the window's edge as the application read; the minimum of 213 ms belongs to that. Ours stay at 12 but for \
         slow start."
            .to_owned(),
    );
    judge(table, &mut result, Finding::new(shown, evidence));
    Ok(result)
}

/// Figure 3.8.
pub(super) fn buffer_size(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let longest = |count: u64, set: Option<(&str, &str)>| -> Result<Vec<Trial>, ExperimentError> {
        runs(UPLOADS, |seed, overrides| {
            if let Some((key, value)) = set {
                overrides.set(key, value);
            }
            uploads(seed, overrides, count, 18_750)
        })
    };
    let mut by_count = Vec::new();
    for count in [1, 3, 5, 7, 9, 11, 15, 19] {
        by_count.push((count, RoundTrips::all(&longest(count, None)?, "ping", 10.0, 120.0)));
    }
    let most = by_count.iter().map(|(_, trips)| trips.quantile(0.99)).fold(0.0, f64::max);
    for row in &table.rows {
        let count = row.params.integer("uploads").unwrap_or(1);
        let runs = longest(count, None)?;
        let mut ours = row_of_runs(row, &runs, |trial| {
            let longest = RoundTrips::of(trial, "ping", 10.0, 120.0).max();
            let mut values = Values::new();
            values.set("rtt_max_ms_about", longest);
            values.set("rtt_mean_ms", RoundTrips::of(trial, "ping", 10.0, 120.0).mean());
            values.set("buffer_estimate_bytes", longest * 450.0 / 8.0);
            values
        });
        ours.simulated.set("rtt_max_reached", RoundTrips::all(&runs, "ping", 10.0, 120.0).quantile(0.99) > 0.95 * most);
        result.rows.push(ours);
    }
    let mean_of =
        |count: u64| by_count.iter().find(|(known, _)| *known == count).map_or(0.0, |(_, trips)| trips.mean());
    let step = (mean_of(9) - mean_of(1)) / 8.0;
    let linear = [3, 5, 7].iter().all(|count| {
        let expected = mean_of(1) + step * (*count as f64 - 1.0);
        (mean_of(*count) / expected - 1.0).abs() < 0.05
    });
    let top = |count: u64| by_count.iter().find(|(known, _)| *known == count).map_or(0.0, |(_, trips)| trips.max());
    let level = top(15) < 1.05 * top(11) && top(19) < 1.05 * top(11) && top(11) < mean_of(1) + 10.5 * step;
    let told: Vec<String> = by_count
        .iter()
        .map(|(count, trips)| format!("{count}: {:.0} (at most {:.0})", trips.mean(), trips.max()))
        .collect();
    result.assumptions.extend(OPEN_LINE.map(String::from));
    let told_otherwise = sensitivity("longest of 15 uploads", &[VARIANTS[3], VARIANTS[4]], |key, value| {
        let trips = RoundTrips::all(&longest(15, Some((key, value)))?[..1], "ping", 10.0, 120.0);
        Ok(format!("{:.0} ms", trips.max()))
    })?;
    result.assumptions.push(told_otherwise);
    let finding = Finding::new(linear && level, format!("mean round trip in ms by uploads: {}", told.join(", ")));
    judge_inferred(table, &mut result, finding, &["the modem's buffer, from the longest round trip of this figure"]);
    Ok(result)
}
