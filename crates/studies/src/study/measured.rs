//! The measures of a run, and their names.
//!
//! A run has the numbers of its row of a comparison, by the path of their keys, and `PHASE: MEASURE_UNIT` of each
//! phase. The numbers of each flow, ping and link are `flows.NAME.KEY`, `probes.NAME.KEY` and `links.NAME.KEY`,
//! by their keys in the document of the run.
//! Names of the first kind are known before any run; the others, and the reasons of drops, are those that occur.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use lastmile_results::Run;
use lastmile_results::comparison::Comparison;
use lastmile_results::schema::{Flow, Summary};
use lastmile_results::seeds::Seeded;
use lastmile_scenario::diagnostics::did_you_mean;
use serde::Serialize;
use serde_json::Value;

use super::store::Measures;
use crate::error::Error;

/// The lists of a run's document whose entries have measures, with the dot that follows in the names of these.
const LISTS: [&str; 3] = ["flows.", "probes.", "links."];

/// The most entries of such a list: the entries of a longer one have no measures.
const ENTRIES: usize = 16;

/// Keys of a row that have words in place of numbers.
const WORDS: [&str; 2] = ["phase", "port"];

/// The measures of a run.
pub(super) fn of(run: &Run) -> Measures {
    let mut measures = Measures::new();
    for row in rows(run) {
        leaves("", &row, &mut |path, value| {
            if let Some(number) = value.as_f64() {
                measures.insert(path.to_owned(), number);
            }
        });
    }
    for measure in (Seeded { label: String::new(), runs: vec![run.clone()] }).measures() {
        let name = format!("{}: {}_{}", measure.phase, measure.name, measure.unit);
        measures.extend(measure.mean.map(|mean| (name, mean)));
    }
    let Summary { flows, probes, links, .. } = &run.summary;
    let [of_flows, of_probes, of_links] = LISTS;
    add(of_flows, flows, &mut measures);
    add(of_probes, probes, &mut measures);
    add(of_links, links, &mut measures);
    measures
}

/// Adds the numbers of the entries of a list, by their names.
fn add(list: &str, entries: &[impl Serialize], measures: &mut Measures) {
    for entry in entries.iter().take(if entries.len() > ENTRIES { 0 } else { ENTRIES }) {
        let document = serde_json::to_value(entry).unwrap_or_default();
        let Some(name) = document["name"].as_str() else { continue };
        leaves(&format!("{list}{name}"), &document, &mut |path, value| {
            if let Some(number) = value.as_f64() {
                measures.insert(path.to_owned(), number);
            }
        });
    }
}

/// True for a measure of a single flow, ping or link.
#[must_use]
pub fn is_of_an_entry(name: &str) -> bool {
    LISTS.iter().any(|list| name.starts_with(list))
}

/// Measures that are known before any run. A name that ends with a dot stands for any below it.
static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(known);

/// The names of the measures that are known before any run.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(String::as_str).filter(|name| !name.ends_with('.'))
}

/// An error if no run of any scenario has a measure of this name.
///
/// # Errors
/// The name is unknown.
pub fn may_be(name: &str) -> Result<(), Error> {
    let is_of_a_phase = name.contains(": ");
    // The keys below an open one are the reasons of drops.
    let is_open = || KNOWN.iter().any(|open| open.ends_with('.') && name.starts_with(open.as_str()));
    if KNOWN.contains(name) || is_of_a_phase || is_of_an_entry(name) || is_open() {
        return Ok(());
    }
    Err(unknown(format_args!("no run has a measure {name:?}"), name, names()))
}

/// An error unless a run has the measure `name`.
///
/// # Errors
/// None of the runs has it.
pub(super) fn is_in<'a>(name: &str, runs: impl Iterator<Item = &'a Measures> + Clone) -> Result<(), Error> {
    if runs.clone().any(|measures| measures.contains_key(name)) {
        return Ok(());
    }
    let all: BTreeSet<&str> = runs.flat_map(Measures::keys).map(String::as_str).collect();
    Err(unknown(format_args!("no run has the measure {name:?}"), name, all.into_iter()))
}

/// An error whose hint is a similar name, or what names there are.
pub(super) fn unknown<'a>(message: std::fmt::Arguments<'_>, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let hint = did_you_mean(name, known);
    Error::new(message).hint(hint.unwrap_or_else(|| "measures are the columns of table.parquet".to_owned()))
}

/// The names of all measures but those of phases. A name that ends with a dot stands for any below it.
fn known() -> BTreeSet<String> {
    let run = |flows: Vec<Flow>| Run {
        label: String::new(),
        own: Vec::new(),
        summary: Summary { flows, ..Summary::default() },
        series: Vec::new(),
    };
    let mut names = BTreeSet::new();
    // A run without flows has the row of a line, and one whose flows are neither down nor up that of a network.
    for row in [run(Vec::new()), run(vec![Flow::default()])].iter().flat_map(rows) {
        leaves("", &row, &mut |path, value| {
            let name = if value.is_object() { format!("{path}.") } else { path.to_owned() };
            names.insert(name);
        });
    }
    WORDS.into_iter().for_each(|word| _ = names.remove(word));
    names
}

/// The rows of a comparison of this run alone, as documents.
fn rows(run: &Run) -> Vec<Value> {
    let rows = Comparison::of(vec![run.clone()]).measured().into_iter().flatten();
    rows.map(|row| serde_json::to_value(row).unwrap_or_default()).collect()
}

/// Every value of a document that holds no other, by the path of its keys, joined by dots.
fn leaves(path: &str, value: &Value, leaf: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(keys) if !keys.is_empty() => {
            for (key, value) in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(&path, value, leaf);
            }
        }
        other => leaf(path, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_before_the_first_run_as_far_as_they_do_not_depend_on_it() {
        for name in ["download_bps", "ping.p99_s", "goodput_bps", "call_mos_min", "drops", "drops_packets.tail"] {
            may_be(name).unwrap();
        }
        for name in ["during upload: download: goodput", "flows.download.retransmissions", "links.up.drops.tail"] {
            may_be(name).unwrap();
        }
        for name in ["nonsense", "ping", "phase", "port", "drops_packets"] {
            assert!(may_be(name).is_err(), "{name}");
        }
        let told = may_be("download_bp").unwrap_err().to_string();
        assert_eq!(told, "error: no run has a measure \"download_bp\"\nhint: did you mean \"download_bps\"?");
    }

    #[test]
    fn flows_have_the_numbers_of_their_document_unless_there_are_many() {
        let flow = |number: usize| Flow { name: format!("f{number}"), goodput_bps: 5.0, ..Flow::default() };
        let run = |flows: usize| Run {
            label: String::new(),
            own: Vec::new(),
            summary: Summary { flows: (0..flows).map(flow).collect(), ..Summary::default() },
            series: Vec::new(),
        };
        let few = of(&run(ENTRIES));
        assert_eq!((few["flows.f0.goodput_bps"], few["flows.f15.start_s"]), (5.0, 0.0));
        assert!(!few.contains_key("flows.f0.end_s"), "null is no number");
        assert!(!of(&run(ENTRIES + 1)).keys().any(|name| is_of_an_entry(name)));
    }
}
