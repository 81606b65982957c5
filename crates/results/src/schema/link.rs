//! Results of each link and its queue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::format;

/// One link and direction: queue, transmitter, wire.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Name, unique in the run.
    pub name: String,
    /// Node at its near end.
    pub from: String,
    /// Node at its far end.
    pub to: String,
    /// Rate of the wire, headers and cells included; `null` for transmission in no time.
    pub rate_bps: Option<f64>,
    /// Propagation delay.
    pub delay_s: f64,
    /// Payload per second of full-sized segments of the flows that cross it; with several sizes the
    /// largest rate.
    pub payload_capacity_bps: Option<f64>,
    /// The limit of its queue.
    #[serde(flatten)]
    pub limit: QueueLimit,
    /// Bits sent on the wire, headers and cells included.
    pub wire_bits: u64,
    /// IP bytes sent.
    pub ip_bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// ATM cells sent; zero on a line without cells.
    pub cells: u64,
    /// Share of the run during which the wire was busy: wire bits over rate times duration.
    pub utilisation: Option<f64>,
    /// IP bits over rate times duration: the share of the line's rate that carried IP.
    pub utilisation_ip: Option<f64>,
    /// Packets that the wire duplicated or reordered.
    #[serde(flatten)]
    pub disorder: Disorder,
    /// Results of its queue.
    #[serde(flatten)]
    pub queue: LinkQueue,
}

/// The limit of a queue, if it has one limit: one of the three, and none where cells are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct QueueLimit {
    /// IP bytes.
    pub queue_limit_bytes: Option<u64>,
    /// Packets.
    #[serde(default)]
    pub queue_limit_packets: Option<u64>,
    /// Bytes on the wire, headers and cells included.
    #[serde(default)]
    pub queue_limit_wire_bytes: Option<u64>,
}

impl QueueLimit {
    /// The limit in words, such as `100 packets`.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let on_wire = self.queue_limit_wire_bytes.map(|bytes| format!("{} on the wire", format::bytes(bytes)));
        let packets = self.queue_limit_packets.map(|packets| format!("{} packets", format::grouped(packets)));
        on_wire.or(packets).or_else(|| self.queue_limit_bytes.map(format::bytes))
    }
}

/// Packets that the wire of a link duplicated or reordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Disorder {
    /// Packets that the wire made: duplicates.
    #[serde(default)]
    pub duplicated: u64,
    /// Packets that overtook one that was transmitted before them.
    #[serde(default)]
    pub reordered: u64,
}

/// Results of the queue of a link.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct LinkQueue {
    /// Rate of the slowest shaper that every packet passes; `None` without one.
    #[serde(default)]
    pub shaper_rate_bps: Option<f64>,
    /// Queueing delay of the packets that departed.
    pub queue_delay_s: Delay,
    /// Queueing delay of the pure ACKs that departed.
    pub ack_queue_delay_s: Delay,
    /// Queueing delay by class of the outermost scheduler, in its order, for classes that sent
    /// packets.
    #[serde(default)]
    pub class_queue_delays: Vec<ClassDelay>,
    /// Largest backlog in packets.
    pub max_backlog_packets: u64,
    /// Largest backlog in IP bytes.
    pub max_backlog_bytes: u64,
    /// Packets dropped, by reason; every reason is listed.
    pub drops: BTreeMap<String, u64>,
    /// IP bytes dropped, by reason, without zeros.
    pub dropped_bytes: BTreeMap<String, u64>,
    /// Counters of the queue's parts.
    pub counters: Vec<Counter>,
    /// The grants that its packets wait for; `None` on a line without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grants: Option<Grants>,
}

/// Requests and grants of a line.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Grants {
    /// Requests, collided ones included.
    pub requests: u64,
    /// Requests that collided with those of other stations.
    pub collisions: u64,
    /// Requests that left with granted data.
    pub piggybacked: u64,
    /// Requested grants that have begun.
    pub grants: u64,
    /// Bytes of requested grants on the wire.
    pub granted_bytes: u64,
    /// Granted bytes that nothing used.
    pub unused_bytes: u64,
    /// Bytes that were sent in grants without a request.
    pub unrequested_bytes: u64,
    /// Time from a request that did not collide to the start of its first grant.
    pub request_grant_s: Delay,
}

/// Queueing delays of one class.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ClassDelay {
    /// Name of the class, or its number without one; a tin of CAKE.
    pub class: String,
    /// Queueing delay of its packets that departed.
    pub queue_delay_s: Delay,
}

/// A counter of one part of a queue.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    /// The part, as a path from the root; empty for the root.
    pub part: String,
    /// The kind of discipline of the part.
    pub kind: String,
    /// The counter's name.
    pub name: String,
    /// The counter's value.
    pub value: u64,
}

/// Distribution of a delay in seconds; all `null` without values.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Delay {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Number of values.
    pub count: u64,
}
