//! The parts of a run between two changes of the offered traffic.

use serde::{Deserialize, Serialize};

use super::{RoundTrip, Shares};

/// A part of the run between two changes of the offered traffic.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Phase {
    /// Name by its traffic: `before upload`, `during upload`, `after upload`.
    pub name: String,
    /// Start time.
    pub from_s: f64,
    /// End time.
    pub to_s: f64,
    /// Names of the traffic that it offers, pings included, in the order of the scenario.
    #[serde(default)]
    pub traffic: Vec<String>,
    /// The flows that offered traffic or delivered data in it.
    pub flows: Vec<PhaseFlow>,
    /// Every link.
    pub links: Vec<PhaseLink>,
    /// Every ping; a reply belongs to the phase of its request.
    pub probes: Vec<PhaseProbe>,
}

impl Phase {
    /// True if `other`, of another run of one scenario, has the name and the traffic of this phase. Where transfers
    /// end at other times, one name may stand for other traffic.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.name == other.name && self.traffic == other.traffic
    }

    /// The length of the phase in seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// A flow within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseFlow {
    /// Name of the flow.
    pub name: String,
    /// True if the flow offered data in this phase; else only earlier data arrived or were retransmitted.
    #[serde(default)]
    pub offered: bool,
    /// Payload delivered over the length of the phase.
    pub goodput_bps: f64,
    /// Limits of the sender in this phase, as shares that sum to 1; empty for an inactive flow.
    pub limited_by: Shares,
    /// The limit in words, inferred from measurements.
    pub explanation: String,
    /// The closed-form bound on its goodput in this phase.
    pub bound_bps: Option<f64>,
    /// The cause of the bound.
    pub bound_by: Option<String>,
    /// An equal share of the line's best capacity in this phase.
    pub fair_share_bps: Option<f64>,
    /// The cause of the fair share.
    pub fair_share_by: Option<String>,
    /// The rate that its ACKs could release, if they shared a FIFO with data in this phase and this
    /// is below `bound_bps`.
    pub two_way_bound_bps: Option<f64>,
    /// The link of that FIFO, and the share of data on it.
    pub two_way_bound_by: Option<String>,
    /// Segments retransmitted in this phase.
    pub retransmissions: Option<u64>,
}

/// A link within a phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PhaseLink {
    /// Name of the link.
    pub name: String,
    /// The payload capacity of the link in this phase, as [`Link::payload_capacity_bps`](super::Link) is over the run.
    #[serde(default)]
    pub payload_capacity_bps: Option<f64>,
    /// Share of the phase during which the wire was busy.
    pub utilisation: Option<f64>,
    /// Mean queueing delay of the packets that departed in this phase.
    pub queue_delay_mean_s: Option<f64>,
    /// Longest queueing delay of the packets that departed in this phase.
    pub queue_delay_max_s: Option<f64>,
    /// Mean queueing delay of pure ACKs.
    pub ack_queue_delay_mean_s: Option<f64>,
    /// Longest queueing delay of pure ACKs.
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
    /// Round-trip time of those requests.
    pub rtt_s: RoundTrip,
}
