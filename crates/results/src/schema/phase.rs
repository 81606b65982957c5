//! The parts of a run between two changes of the offered traffic.

use serde::{Deserialize, Serialize};

use super::{RoundTrip, Shares};

/// A part of the run between two changes of the offered traffic.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// What sets it apart: `before upload`, `during upload`, `after upload`.
    pub name: String,
    /// Its begin.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// The flows that offered traffic or delivered data in it.
    pub flows: Vec<PhaseFlow>,
    /// Every link.
    pub links: Vec<PhaseLink>,
    /// Every ping; a reply counts for the phase in which its request left.
    pub probes: Vec<PhaseProbe>,
}

/// A flow within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseFlow {
    /// Name of the flow.
    pub name: String,
    /// Payload delivered over the length of the phase.
    pub goodput_bps: f64,
    /// What held the sender back in this phase, as shares that sum to 1; empty where it was not active.
    pub limited_by: Shares,
    /// What held it back, in words, drawn from what was measured.
    pub explanation: String,
    /// The closed-form bound on its goodput in this phase.
    pub bound_bps: Option<f64>,
    /// What sets the bound.
    pub bound_by: Option<String>,
    /// An equal share of what the line can carry at best in this phase.
    pub fair_share_bps: Option<f64>,
    /// What sets the fair share.
    pub fair_share_by: Option<String>,
    /// Where its ACKs shared a FIFO with data in this phase, and that binds closer: what they could release beside that data.
    pub two_way_bound_bps: Option<f64>,
    /// Which link, and what share of it data took.
    pub two_way_bound_by: Option<String>,
    /// Segments sent again in this phase.
    pub retransmissions: Option<u64>,
}

/// A link within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseLink {
    /// Name of the link.
    pub name: String,
    /// Share of the phase that the wire was busy.
    pub utilisation: Option<f64>,
    /// Mean time in the queue of packets that left it in this phase.
    pub queue_delay_mean_s: Option<f64>,
    /// Longest such time.
    pub queue_delay_max_s: Option<f64>,
    /// Mean for pure ACKs alone.
    pub ack_queue_delay_mean_s: Option<f64>,
    /// Longest for pure ACKs alone.
    pub ack_queue_delay_max_s: Option<f64>,
}

/// A ping within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseProbe {
    /// Name of the probe.
    pub name: String,
    /// Class of its packets.
    pub class: String,
    /// Replies to requests of this phase.
    pub received: u64,
    /// Their round-trip time.
    pub rtt_s: RoundTrip,
}
