//! The scenario file from the outside: what it builds, what it refuses, and the files that the repository ships.

mod applications;
mod atm;
mod autorate;
mod both_ways;
mod build;
mod build_queues;
mod capacity;
mod cases;
mod defaults;
mod impairments;
mod interleave;
mod lines;
mod managed_queues;
mod matches;
mod policy;
mod policy_downstream;
mod properties;
mod refused;
mod refused_queues;
mod send_buffer;
mod shipped;
mod study;
mod trace;

use lastmile_scenario::{Report, Scenario};

/// A line and nothing else; tests add to it.
const LINE: &str = "duration = \"10 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n";

fn parse(text: &str) -> Result<Scenario, Report> {
    Scenario::parse("x.toml", text, &[])
}

fn parse_with(text: &str, overrides: &[&str]) -> Result<Scenario, Report> {
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::parse("x.toml", text, &overrides)
}

/// The errors in `text`.
fn said(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}
