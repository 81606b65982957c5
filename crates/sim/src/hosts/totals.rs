//! Sums over the connections of one web user or swarm, closed ones included.

use lastmile_model::outcome::Deliveries;
use lastmile_tcp::LimitedTime;
use lastmile_units::Instant;

use super::Transfer;

/// Sums over connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Connections opened.
    pub(crate) opened: u64,
    /// Connections that were reset or abandoned.
    pub(crate) failed: u64,
    /// Payload bytes delivered, open connections included.
    pub(crate) bytes: u64,
    pub(crate) deliveries: Option<Deliveries>,
    pub(crate) data_packets: u64,
    pub(crate) data_received: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
    pub(crate) limited: LimitedTime,
    pub(crate) max_in_flight: u64,
}

impl Totals {
    /// Counts delivered payload.
    pub(crate) fn deliver(&mut self, now: Instant, bytes: u64) {
        if bytes > 0 {
            self.bytes += bytes;
            Deliveries::note(&mut self.deliveries, now);
        }
    }

    /// Adds the counts of a connection, except its delivered bytes.
    pub(crate) fn add(&mut self, now: Instant, transfer: &Transfer) {
        let (sender, receiver) = (transfer.sender(), transfer.receiver());
        let (sent, received) = (sender.counts(), receiver.counts());
        self.data_packets += sent.data_packets;
        self.data_received += received.data_received;
        self.retransmissions += sent.retransmissions;
        self.timeouts += sent.timeouts;
        self.fast_retransmits += sent.fast_retransmits;
        self.acks_sent += received.acks_sent;
        self.acks_received += sent.acks_received;
        self.max_in_flight = self.max_in_flight.max(transfer.max_in_flight.into());
        self.limited = self.limited.plus(transfer.limited_by(now));
    }
}
