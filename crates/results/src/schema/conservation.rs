//! The account of all bytes and packets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account of all IP bytes and packets: sent + created = delivered + dropped + queued + in
/// flight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// IP bytes sent by hosts.
    pub sent: u64,
    /// IP bytes created inside the network: restored ACKs, signals, and the growth of ACKs.
    pub created: u64,
    /// IP bytes received by hosts.
    pub delivered: u64,
    /// IP bytes dropped, and the reduction of ACKs.
    pub dropped: u64,
    /// IP bytes in queues at the end.
    pub queued: u64,
    /// IP bytes on wires at the end.
    pub in_flight: u64,
    /// The account in packets.
    pub packets: ConservedPackets,
    /// IP bytes dropped, by reason, without zeros.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// True if both sums agree.
    pub holds: bool,
}

/// The account of all packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConservedPackets {
    /// Sent by hosts.
    pub sent: u64,
    /// Created inside the network.
    pub created: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped.
    pub dropped: u64,
    /// In queues at the end.
    pub queued: u64,
    /// On wires at the end.
    pub in_flight: u64,
}
