//! The caption of a report: the inputs that reproduce it.

use maud::{Markup, html};

use crate::Run;
use crate::measures::distinct;
use crate::schema::{Clock, Summary};

pub(super) fn caption(summary: &Summary) -> Markup {
    html! { p.caption { (caption_text(summary)) } }
}

/// The inputs that reproduce a picture: scenario, seed, version.
pub(super) fn caption_text(summary: &Summary) -> String {
    caption_with(std::slice::from_ref(&summary), summary.run.inputs.set.iter())
}

/// The caption of several runs: the overrides that all share, and the differing ones as
/// `key = one, another` if runs are named after their values.
pub(super) fn shared_caption(runs: &[Run]) -> String {
    let Some((first, others)) = runs.split_first() else { return String::new() };
    let shared =
        |set: &&String| !first.own.contains(*set) && others.iter().all(|run| run.summary.run.inputs.set.contains(*set));
    let keys = varied(runs);
    let labels = || vec![runs.iter().map(|run| run.label.as_str()).collect::<Vec<_>>().join(", ")];
    let varied = if keys.is_empty() { Vec::new() } else { named_values(runs, &keys).unwrap_or_else(labels) };
    let summaries: Vec<&Summary> = runs.iter().map(|run| &run.summary).collect();
    caption_with(&summaries, first.summary.run.inputs.set.iter().filter(shared).chain(&varied))
}

/// The keys in which runs differ, such as `access.policy`; empty if unknown.
fn varied(runs: &[Run]) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    for set in runs.iter().flat_map(|run| &run.own) {
        let key = set.split_once('=').map_or(set.as_str(), |(key, _)| key);
        // An override common to all runs is no difference.
        if !keys.contains(&key) && !runs.iter().all(|run| run.own.contains(set)) {
            keys.push(key);
        }
    }
    keys
}

/// `key = value, value` for each of `keys`, if runs are named by the values that they set; `None`
/// if a run has another name, as a case has.
fn named_values(runs: &[Run], keys: &[&str]) -> Option<Vec<String>> {
    let values = |run| -> Option<Vec<&str>> {
        let Run { label, own, .. }: &Run = run;
        let names: Vec<&str> = if keys.len() == 1 { vec![label] } else { label.split(", ").collect() };
        let sets = |key: &str, name: &str| {
            own.iter().any(|set| set.split_once('=').is_some_and(|(set, value)| set == key && value.ends_with(name)))
        };
        let named = names.len() == keys.len() && keys.iter().zip(&names).all(|(key, name)| sets(key, name));
        named.then_some(names)
    };
    let values: Vec<Vec<&str>> = runs.iter().map(values).collect::<Option<_>>()?;
    let of = |(number, key): (usize, &&str)| {
        let values = distinct(values.iter().map(|of_run| of_run[number]));
        format!("{key} = {}", values.join(", "))
    };
    Some(keys.iter().enumerate().map(of).collect())
}

/// The caption of at least one of `summaries`; a seed or length that differs between them is
/// omitted.
fn caption_with<'a>(summaries: &[&Summary], set: impl Iterator<Item = &'a String>) -> String {
    let summary = summaries[0];
    let seed = format!(" · seed {}", summary.run.seed);
    let seed = if summaries.iter().all(|other| other.run.seed == summary.run.seed) { &*seed } else { "" };
    let length = format!(" · {}", crate::format::seconds(summary.run.duration_s));
    let same_length = |other: &&Summary| other.run.duration_s.total_cmp(&summary.run.duration_s).is_eq();
    let length = if summaries.iter().all(same_length) { &*length } else { "" };
    let set: String = set.map(|set| format!(" · {set}")).collect();
    let file = summary.run.inputs.file.as_deref().unwrap_or(&summary.run.scenario);
    let clock = match summary.run.clock {
        Clock::Simulated => "",
        Clock::Monotonic => " · real packets",
    };
    format!("{file}{set}{seed}{length}{clock} · lastmile {}", summary.run.version)
}
