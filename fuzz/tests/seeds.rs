//! Replays every seed without libFuzzer, so that no error that a target found returns.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let entries = fs::read_dir(&directory).expect("each target has a folder of seeds");
    let mut seeds: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "no seeds in {}", directory.display());
    for seed in seeds {
        let input = fs::read(&seed).expect("a seed is a file");
        assert!(catch_unwind(AssertUnwindSafe(|| check(&input))).is_ok(), "{}", seed.display());
    }
}

#[test]
fn atm() {
    replay("atm", lastmile_fuzz::atm::check);
}

#[test]
fn capture() {
    replay("capture", lastmile_fuzz::capture::check);
}

#[test]
fn control() {
    replay("control", lastmile_fuzz::control::check);
}

#[test]
fn flent() {
    replay("flent", lastmile_fuzz::flent::check);
}

#[test]
fn iperf3() {
    replay("iperf3", lastmile_fuzz::iperf3::check);
}

#[test]
fn irtt() {
    replay("irtt", lastmile_fuzz::irtt::check);
}

#[test]
fn measure() {
    replay("measure", lastmile_fuzz::measure::check);
}

#[test]
fn metrics() {
    replay("metrics", lastmile_fuzz::metrics::check);
}

#[test]
fn packet() {
    replay("packet", lastmile_fuzz::packet::check);
}

#[test]
fn page() {
    replay("page", lastmile_fuzz::page::check);
}

#[test]
fn policy() {
    replay("policy", lastmile_fuzz::policy::check);
}

#[test]
fn responsiveness() {
    replay("responsiveness", lastmile_fuzz::responsiveness::check);
}

#[test]
fn scenario() {
    replay("scenario", lastmile_fuzz::scenario::check);
}

#[test]
fn text() {
    replay("text", lastmile_fuzz::text::check);
}
