//! The scenario file and `--set`: no input panics, a refusal has the position and the reason on one
//! line, and an accepted scenario can be built.
//!
//! A first line of `--set key=value` is an override; the rest is the file.

use lastmile_packet::Meta;
use lastmile_scenario::{Report, Scenario};

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let (overrides, text) = match text.strip_prefix("--set ").and_then(|rest| rest.split_once('\n')) {
        Some((argument, rest)) => (vec![argument.to_owned()], rest),
        None => (Vec::new(), text),
    };
    match Scenario::parse("fuzz.toml", text, &overrides) {
        Ok(scenario) => check_accepted(&scenario),
        Err(report) => check_refused(&report),
    }
}

fn check_accepted(scenario: &Scenario) {
    let network = scenario.network_ref();
    assert!(!network.duration.is_zero(), "a run has a duration");
    for link in &network.links {
        assert!(link.from != link.to && link.from.max(link.to) < network.nodes.len(), "a link has two ends");
        assert!(link.hop.queue.build::<Meta>(&link.hop.line.link_layer).is_ok(), "an accepted queue can be built");
    }
    for (index, traffic) in network.traffic.iter().enumerate() {
        assert!(traffic.count >= 1 && traffic.ip.dscp < 64);
        assert!(traffic.stop.is_none_or(|stop| stop > traffic.start), "it stops after it starts");
        assert!(scenario.ways(index).0.is_some(), "accepted traffic has a way");
    }
    assert!(!scenario.warnings().has_errors());
}

fn check_refused(report: &Report) {
    assert!(report.has_errors(), "a refusal has a reason");
    for finding in report.findings() {
        let headline = finding.headline();
        assert!(!headline.chars().any(char::is_control), "{headline:?} is one printable line");
    }
    let shown = report.to_string();
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?} is safe to print");
}
