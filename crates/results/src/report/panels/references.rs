//! Constants that panels draw for comparison: capacities, limits of queues, windows, line rates.

use std::collections::{BTreeMap, BTreeSet};

use crate::format;
use crate::report::panel::Reference;
use crate::schema::{Flow, Summary};

pub(super) fn none(_: &Summary) -> Vec<Reference> {
    Vec::new()
}

/// The payload capacity of the narrowest link of each flow, without repetition.
pub(super) fn capacities(summary: &Summary) -> Vec<Reference> {
    let links: BTreeMap<&str, f64> = summary.flows.iter().filter_map(|flow| narrowest(summary, flow)).collect();
    merged("capacity of", links.into_iter(), format::rate)
}

/// The link on the path of the data of `flow` with the least payload capacity, and that capacity.
pub(crate) fn narrowest<'a>(summary: &'a Summary, flow: &Flow) -> Option<(&'a str, f64)> {
    let links = summary.links.iter().filter(|link| flow.setup.data_path.iter().any(|name| **name == *link.name));
    let capacities = links.filter_map(|link| Some((link.name.as_str(), link.payload_capacity_bps?)));
    capacities.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A reference for each value: links with one value share it.
fn merged<'a>(what: &str, links: impl Iterator<Item = (&'a str, f64)>, text: impl Fn(f64) -> String) -> Vec<Reference> {
    let mut values: Vec<(f64, Vec<&str>)> = Vec::new();
    for (link, value) in links {
        match values.iter_mut().find(|(other, _)| other.to_bits() == value.to_bits()) {
            Some((_, names)) => names.push(link),
            None => values.push((value, vec![link])),
        }
    }
    let names = |names: &[&str]| match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first, others @ ..] => format!("{first}\u{a0}and\u{a0}{}\u{a0}more", others.len()),
    };
    values.iter().map(|(value, links)| reference(what, &names(links), &text(*value), *value)).collect()
}

/// `what name value`, with the value on one line.
fn reference(what: &str, name: &str, text: &str, value: f64) -> Reference {
    Reference { label: format!("{what} {name} {}", text.replace(' ', "\u{a0}")), value }
}

pub(super) fn queue_limits(summary: &Summary) -> Vec<Reference> {
    let limited = summary.links.iter().filter_map(|link| Some((link, format::to_f64(link.limit.queue_limit_bytes?))));
    // Only queues that came near their limit have the limit as a reference.
    let near = limited.filter(|(link, limit)| format::to_f64(link.queue.max_backlog_bytes) > limit * 0.5);
    merged("limit of", near.map(|(link, limit)| (link.name.as_str(), limit)), |limit| {
        format::with_unit(limit, format::BYTES)
    })
}

/// Each receive window, without repetition.
pub(super) fn windows(summary: &Summary) -> Vec<Reference> {
    let windows: BTreeSet<u64> = summary.flows.iter().filter_map(|flow| flow.setup.receive_window_bytes).collect();
    windows
        .into_iter()
        .map(|size| reference("receive", "window", &format::window(size), format::to_f64(size)))
        .collect()
}

pub(super) fn line_rates(summary: &Summary) -> Vec<Reference> {
    let narrow = capacities_of_lines(summary);
    merged("rate of", narrow.iter().map(|(link, bps)| (link.as_str(), *bps)), format::rate)
}

/// Rates of the links that were busy for at least a tenth of some phase.
pub(super) fn capacities_of_lines(summary: &Summary) -> BTreeMap<String, f64> {
    let used = |name: &str| {
        let links = summary.phases.iter().flat_map(|phase| &phase.links).filter(|link| link.name == name);
        links.filter_map(|link| link.utilisation).fold(0.0, f64::max)
    };
    let busy = summary.links.iter().filter(|link| used(&link.name) >= 0.1);
    busy.filter_map(|link| Some((link.name.clone(), link.rate_bps?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_with_one_rate_share_a_line_to_compare_with() {
        let links = [("down-1", 1.5e6), ("down-2", 1.5e6), ("up", 1e5), ("down-3", 1.5e6)];
        let merged = merged("rate of", links.into_iter(), format::rate);
        let told: Vec<String> = merged.iter().map(|reference| reference.label.replace('\u{a0}', " ")).collect();
        assert_eq!(told, ["rate of down-1 and 2 more 1.5 Mbit/s", "rate of up 100 kbit/s"]);
    }
}
