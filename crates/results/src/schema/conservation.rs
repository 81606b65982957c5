//! Where every byte and packet went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where every IP byte and packet went: sent + created = delivered + dropped + queued + in flight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// IP bytes sent by hosts.
    pub sent: u64,
    /// IP bytes made inside the network: restored ACKs, signals, and what ACKs grew by.
    pub created: u64,
    /// IP bytes received by hosts.
    pub delivered: u64,
    /// IP bytes dropped, and what ACKs shrank by.
    pub dropped: u64,
    /// IP bytes waiting in queues at the end.
    pub queued: u64,
    /// IP bytes on wires at the end.
    pub in_flight: u64,
    /// The same in packets.
    pub packets: ConservedPackets,
    /// IP bytes dropped, by reason; reasons with none are left out.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// True when both sums come out.
    pub holds: bool,
}

/// Where every packet went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConservedPackets {
    /// Sent by hosts.
    pub sent: u64,
    /// Made inside the network.
    pub created: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped.
    pub dropped: u64,
    /// Waiting in queues at the end.
    pub queued: u64,
    /// On wires at the end.
    pub in_flight: u64,
}
