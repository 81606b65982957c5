//! The policy file: no input panics, a refusal has the position and the reason, and an accepted
//! policy can be built, on its own line and on another.

use lastmile_packet::Meta;
use lastmile_scenario::Report;
use lastmile_scenario::policy::{Line, Policy};
use lastmile_units::BitRate;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let Ok(text) = core::str::from_utf8(input) else { return };
    let own = Policy::parse("fuzz.toml", text, None);
    match &own {
        Ok(policy) => check_accepted(policy),
        Err(report) => check_refused(report),
    }
    let ready = Policy::load("sad", None, None);
    assert!(ready.is_err(), "a policy without a line is none");
    if let Ok(Policy { line, .. }) = own {
        // The reversed line: the policy's rates may exceed it, which must be reported and must not
        // panic.
        let Line { up, down, up_layer, down_layer, up_best, down_best } = line;
        let turned = Line {
            up: down,
            down: up,
            up_layer: down_layer,
            down_layer: up_layer,
            up_best: down_best,
            down_best: up_best,
        };
        match Policy::parse("fuzz.toml", text, Some(turned)) {
            Ok(policy) => check_accepted(&policy),
            Err(report) => check_refused(&report),
        }
    }
}

fn check_accepted(policy: &Policy) {
    assert!(policy.up.build::<Meta>(&policy.line.up_layer).is_ok(), "an accepted policy can be built");
    if let Some(down) = &policy.down {
        assert!(down.queue.build::<Meta>(&policy.line.down_layer).is_ok(), "an accepted queue can be built");
    }
    let tops = policy.classes.iter().filter(|class| class.parent.is_none());
    let guaranteed: u64 = tops.filter_map(|class| class.rate).map(BitRate::as_bps).sum();
    assert!(guaranteed <= policy.line.up.map_or(0, BitRate::as_bps), "no more is guaranteed than there is");
    for class in &policy.classes {
        assert!(class.rate.is_none_or(|rate| rate <= class.ceil), "a class has no more than its ceiling");
    }
    for rule in &policy.rules {
        assert!(policy.classes.iter().any(|class| class.name == rule.class && class.queue.is_some()));
    }
    assert!(!policy.warnings.has_errors());
}

fn check_refused(report: &Report) {
    assert!(report.has_errors(), "a refusal has a reason");
    for finding in report.findings() {
        let headline = finding.headline();
        assert!(!headline.chars().any(char::is_control), "{headline:?} is one printable line");
    }
}
