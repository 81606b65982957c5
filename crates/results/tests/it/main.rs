//! Results of whole simulated runs.

mod both_ways;
mod bounds;
mod bounds_hold;
mod calls;
mod captured_windows;
mod cells;
mod channels;
mod classes;
mod ends;
mod holds;
mod households;
mod network;
mod notes;
mod phases;
mod policing;
mod short;
mod starvation;

use lastmile_model::Network;
use lastmile_results::{Origin, Run, Series, Summary, summarise};

/// Simulates `network` and summarises the run.
fn summary(network: &Network) -> Summary {
    run(network).summary
}

fn run(network: &Network) -> Run {
    let outcome = lastmile_sim::run(network).expect("a network that can be built");
    let origin = Origin { scenario: "test".to_owned(), version: "0.0.0".to_owned(), ..Origin::default() };
    let series = outcome.series.iter().map(Series::from).collect();
    Run { label: String::new(), own: Vec::new(), summary: summarise(&origin, network, &outcome), series }
}
