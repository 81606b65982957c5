//! Flows by kind and direction.

use super::flow::FlowKind;
use serde::{Deserialize, Serialize};

/// All flows of one kind and direction: totals, distribution, and the worst of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Direction of its flows.
    pub direction: String,
    /// Kind of traffic of its flows.
    pub kind: FlowKind,
    /// Number of flows.
    pub flows: u64,
    /// Sum of the goodputs of its flows, each over its own life.
    pub goodput_bps: f64,
    /// Distribution of the goodput of a flow.
    pub of_a_flow_bps: Spread,
    /// Retransmitted segments of all its flows; `null` for flows without TCP.
    pub retransmissions: Option<u64>,
    /// Names of at most five flows with the lowest goodput, the lowest first.
    pub worst: Vec<String>,
}

/// A distribution: nearest ranks, and the mean.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Least value.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Largest value.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}
