//! The account of all bytes and packets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The account of all IP bytes and packets: sent + created = delivered + dropped + queued + in
/// flight.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// The account in IP bytes. It includes the growth and the reduction of ACKs.
    #[serde(flatten)]
    pub bytes: Account,
    /// The account in packets.
    pub packets: Account,
    /// IP bytes dropped, by reason, without zeros.
    pub dropped_by_reason: BTreeMap<String, u64>,
    /// True if both sums agree.
    pub holds: bool,
}

/// An account of all packets, or of all their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// Sent by hosts.
    pub sent: u64,
    /// Created inside the network: restored ACKs, signals.
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
