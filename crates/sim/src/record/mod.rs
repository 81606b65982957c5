//! Records of a run: one-way delays, series, snapshots, and the outcome.

pub(crate) mod delays;
pub(crate) mod outcome;
pub(crate) mod series;

use lastmile_model::Network;

/// The name of each flow, pings included: the name of its traffic, numbered if the traffic has several flows.
fn flow_names(network: &Network) -> impl Iterator<Item = String> {
    network.traffic.iter().flat_map(|traffic| {
        (1..=traffic.count).map(|member| match traffic.count {
            1 => traffic.name.clone(),
            _ => format!("{}-{member}", traffic.name),
        })
    })
}
