//! Flows of one kind and direction together.

use serde::{Deserialize, Serialize};

/// All flows of one kind and direction: totals, distribution, and the worst of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Direction of its flows.
    pub direction: String,
    /// Kind of traffic of its flows.
    pub kind: String,
    /// Number of flows.
    pub flows: u64,
    /// Sum of the goodputs of its flows, each over its own life.
    pub goodput_bps: f64,
    /// Distribution of the goodput of a flow.
    pub of_a_flow_bps: Spread,
    /// Segments sent again by all of them; `null` for what is not TCP.
    pub retransmissions: Option<u64>,
    /// Names of the flows with the least goodput, at most five, the least first.
    pub worst: Vec<String>,
}

/// A distribution: nearest ranks, and the mean.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Spread {
    /// Least value.
    pub min: f64,
    /// 5 % are at most this.
    pub p5: f64,
    /// Half are at most this.
    pub p50: f64,
    /// 95 % are at most this.
    pub p95: f64,
    /// Largest value.
    pub max: f64,
    /// Mean.
    pub mean: f64,
}
