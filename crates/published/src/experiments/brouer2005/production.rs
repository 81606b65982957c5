//! Brouer 2005, chapter 10: the classes on a line that is never idle, and what the production router counted.

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::sample::Sample;
use crate::value::Values;
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::closed_form::quotation;
use super::super::trial::{Overrides, Trial};
use super::KEY;
use super::formulas::row_of;
use super::measured::{RoundTrips, judge, row_of_runs, runs, set_pooled, simulated};

pub(super) const PRODUCTION: (&str, &str) =
    ("brouer2005/production.toml", include_str!("../../../scenarios/brouer2005/production.toml"));

/// From when on pings count, in s: everything has started.
const FROM_S: f64 = 30.0;
const TO_S: f64 = 290.0;

/// Figures 10.3 and 10.4: with the six classes and without any.
pub(super) fn latency(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = simulated(table);
    let line = line_of(table)?;
    let scheduled = runs(PRODUCTION, |_, overrides| {
        overrides.extend(&line);
        String::new()
    })?;
    let plain = runs(PRODUCTION, |_, overrides| {
        overrides.extend(&line);
        overrides.set("access.up.queue", r#"{ limit = "185625 B" }"#);
        String::new()
    })?;
    let mean_of = |trial: &Trial, pings: &[&str]| {
        let means = pings.iter().map(|ping| RoundTrips::of(trial, ping, FROM_S, TO_S).mean());
        means.sum::<f64>() / pings.len() as f64
    };
    let longest = |runs: &[Trial], pings: &[&str]| {
        pings.iter().map(|ping| RoundTrips::all(runs, ping, FROM_S, TO_S).max()).fold(0.0, f64::max)
    };
    let urgent = ["ping-10", "ping-20"].as_slice();
    for row in &table.rows {
        let (runs, pings) = match row.params.text("class_id") {
            Some("1:10 and 1:20") => (&scheduled, urgent),
            Some("without scheduler") => (&plain, urgent),
            _ => (&scheduled, ["ping-50"].as_slice()),
        };
        let mut ours = row_of_runs(row, runs, |trial| {
            let mean = mean_of(trial, pings);
            [("rtt_mean_ms_about", mean), ("rtt_ms_above", mean)]
                .into_iter()
                .filter(|(name, _)| row.published.get(name).is_some() || *name == "rtt_mean_ms_about")
                .collect()
        });
        set_pooled(&mut ours, &[("rtt_max_ms", longest(runs, pings))]);
        result.rows.push(ours);
    }
    let pooled = |runs: &[Trial], ping: &str| RoundTrips::all(runs, ping, FROM_S, TO_S);
    let told: Vec<String> = ["10", "20", "50"]
        .iter()
        .map(|class| format!("1:{class} {}", pooled(&scheduled, &format!("ping-{class}"))))
        .collect();
    let of = |runs: &[Trial], ping: &str| {
        Sample::from(runs.iter().map(|trial| RoundTrips::of(trial, ping, FROM_S, TO_S).mean()).collect::<Vec<_>>())
    };
    let mut finding = Finding::default();
    for (ping, target_ms) in [("ping-10", 100.0), ("ping-20", 100.0), ("ping-50", 1000.0)] {
        finding.below(&of(&scheduled, ping), target_ms);
    }
    finding.above(&of(&plain, "ping-10"), 1000.0);
    let without = pooled(&plain, "ping-10");
    result.assumptions = [
        "Who sent what is not stated: five hosts share files, seven uploads run in classes 1:40 and 1:50, twenty \
         users read the web, one works in a shell.",
        "A run is 300 s of the 12 hours that were measured, with ten seeds: an extreme of twelve hours is larger.",
        "Targets are one-way means: mean round trips are held against them, which is the stricter.",
        "Delays and buffers as for the line of Tele2: 2 ms each way on the line, 5 ms beyond, 800 cells in the \
         DSLAM, 185625 bytes in the modem.",
        "Class 1:20 has the ceiling of the table, not the 90 % of listing B.27.",
    ]
    .map(String::from)
    .to_vec();
    finding.tell(format!("{}; without the classes {without}", told.join(", ")));
    judge(table, &mut result, finding);
    Ok(result)
}

/// Rates of a line such as `TDC 8 Mbit/768 kbit`.
fn line_of(table: &Table) -> Result<Overrides, ExperimentError> {
    let missing = || ExperimentError::MissingSetting("line");
    let (down, up) = table.scenario.text("line").and_then(|line| line.split_once('/')).ok_or_else(missing)?;
    let mut overrides = Overrides::default();
    for (key, rate) in [("access.down.rate", down), ("access.up.rate", up)] {
        let words: Vec<&str> = rate.split(' ').collect();
        let [.., number, unit] = words.as_slice() else { return Err(missing()) };
        overrides.set(key, format_args!("{number} {unit}/s"));
    }
    Ok(overrides)
}

/// Section 10.4: a count of real traffic, of which only the sums can be checked.
pub(super) fn connections(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    let mut sums = Vec::new();
    for row in &table.rows {
        let counted = |name| row.published.number(name);
        let mut theory = Values::new();
        if let (Some(total), Some(unreplied), Some(confirmed)) =
            (counted("connections"), counted("unreplied"), counted("confirmed"))
        {
            let p2p = counted("p2p_confirmed").unwrap_or_default();
            theory.set("p2p_share_pct", super::super::significant(100.0 * p2p / confirmed));
            sums.push((total - unreplied - confirmed, "answered connections"));
            sums.push((confirmed - p2p - counted("unmarked").unwrap_or_default(), "unmarked connections"));
        }
        if let (Some(p2p), Some(other), Some(unknown)) =
            (counted("known_p2p"), counted("other_known"), counted("unknown"))
        {
            sums.push((p2p + other + unknown - counted("total").unwrap_or_default(), "listed ports"));
        }
        if let (Some(entries), Some(each)) = (counted("entries"), counted("bytes_each")) {
            theory.set("mb", entries * each / 1e6);
        }
        result.rows.push(row_of(row, theory));
    }
    result.assumptions.push(
        "These are counts of one network's traffic: there is nothing to simulate, their sums are checked.".to_owned(),
    );
    let share = result.rows.iter().find_map(|row| row.theory.number("p2p_share_pct")).unwrap_or_default();
    let wrong = sums.iter().filter(|(difference, _)| *difference != 0.0).count();
    let evidence =
        format!("{share:.1} % of the answered connections; {} of {} sums are right", sums.len() - wrong, sums.len());
    result.claims.push(quotation(table, (share - 92.0).abs() < 0.5 && wrong == 0, evidence));
    Ok(result)
}
