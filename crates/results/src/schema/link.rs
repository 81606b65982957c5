//! What each link and its queue did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One link and direction: queue, transmitter, wire.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Name, unique in the run.
    pub name: String,
    /// Node that sends into it.
    pub from: String,
    /// Node at its far end.
    pub to: String,
    /// Rate of the wire, headers and cells included; `null` where transmission takes no time.
    pub rate_bps: Option<f64>,
    /// Propagation delay.
    pub delay_s: f64,
    /// Payload that it carries in a second of full-sized segments of the flows that cross it; of several sizes the largest rate.
    pub payload_capacity_bps: Option<f64>,
    /// What its queue holds at most, where that is counted in bytes.
    pub queue_limit_bytes: Option<u64>,
    /// Bits sent on the wire, headers and cells included.
    pub wire_bits: u64,
    /// IP bytes sent.
    pub ip_bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// ATM cells sent; zero on a line without cells.
    pub cells: u64,
    /// Share of the run that the wire was busy: wire bits over rate times duration.
    pub utilisation: Option<f64>,
    /// The same counting IP bytes alone: what of the line's rate carried IP.
    pub utilisation_ip: Option<f64>,
    /// Time in the queue of packets that left it.
    pub queue_delay_s: Delay,
    /// The same for pure ACKs alone.
    pub ack_queue_delay_s: Delay,
    /// Time in the queue by class, where the queue has classes: those of the outermost scheduler that sent something, in its order.
    #[serde(default)]
    pub class_queue_delays: Vec<ClassDelay>,
    /// Largest backlog in packets.
    pub max_backlog_packets: u64,
    /// Largest backlog in IP bytes.
    pub max_backlog_bytes: u64,
    /// Packets dropped, by reason; every reason is listed.
    pub drops: BTreeMap<String, u64>,
    /// IP bytes dropped, by reason; reasons with none are left out.
    pub dropped_bytes: BTreeMap<String, u64>,
    /// Counters of the queue's parts.
    pub counters: Vec<Counter>,
}

/// How long packets of one class waited.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClassDelay {
    /// Name of the class, or its number where it has none; a tin of CAKE.
    pub class: String,
    /// Time in the queue of its packets that left.
    pub queue_delay_s: Delay,
}

/// A counter of one part of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    /// Which part, as a path from the root; empty for the root.
    pub part: String,
    /// What kind of discipline that is.
    pub kind: String,
    /// What is counted.
    pub name: String,
    /// How many.
    pub value: u64,
}

/// Distribution of a delay in seconds; all `null` when nothing was measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median: half of all values are at or below it.
    pub p50: Option<f64>,
    /// 99 of 100 values are at or below it.
    pub p99: Option<f64>,
    /// 999 of 1000 values are at or below it.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// How many values.
    pub count: u64,
}
