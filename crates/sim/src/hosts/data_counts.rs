//! The counters that all flows of datagrams have.

use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;

/// The counters of the data of a flow of datagrams.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct DataCounts {
    /// Packets.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Payload.
    pub(crate) bytes_delivered: u64,
    pub(crate) deliveries: Option<Deliveries>,
}

impl DataCounts {
    /// A packet with `payload` bytes arrives.
    pub(crate) fn arrived(&mut self, now: Instant, payload: u64) {
        self.received += 1;
        self.bytes_delivered += payload;
        Deliveries::note(&mut self.deliveries, now);
    }
}
