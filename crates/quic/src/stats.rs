//! The counters of an endpoint.

/// The counters of an endpoint. Bytes of data are those of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Packets sent with octets of the stream, retransmissions included.
    pub data_packets: u64,
    /// Octets of the stream sent, retransmissions included.
    pub data_bytes_sent: u64,
    /// Retransmitted octets of the stream.
    pub retransmitted_bytes: u64,
    /// Packets sent with retransmitted octets of the stream.
    pub retransmissions: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Expiries of the probe timeout.
    pub probe_timeouts: u64,
    /// Reductions of the window for losses.
    pub reductions: u64,
    /// Persistent congestions.
    pub persistent_congestions: u64,
    /// Packets sent with an ACK frame and without data.
    pub acks_sent: u64,
    /// UDP payload bytes of these packets.
    pub ack_bytes_sent: u64,
    /// Packets received with an ACK frame and without data.
    pub acks_received: u64,
    /// Packets received with octets of the stream, duplicates excluded.
    pub data_received: u64,
    /// Packets received twice, or so late that they may be.
    pub duplicates: u64,
}
