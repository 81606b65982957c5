//! Every seed once, without libFuzzer: what a target found before stays found.

use std::fs;
use std::path::Path;

fn replay(target: &str, check: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut seeds: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "no seeds in {}", directory.display());
    for seed in seeds {
        println!("{}", seed.display());
        check(&fs::read(&seed).unwrap());
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
fn packet() {
    replay("packet", lastmile_fuzz::packet::check);
}

#[test]
fn policy() {
    replay("policy", lastmile_fuzz::policy::check);
}

#[test]
fn scenario() {
    replay("scenario", lastmile_fuzz::scenario::check);
}
