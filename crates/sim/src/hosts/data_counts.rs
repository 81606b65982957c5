//! The counters that all flows of datagrams have.

use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;

/// The counters of the data of a flow of datagrams.
#[derive(Clone, Copy, Default, Debug)]
pub struct DataCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Their payload.
    pub bytes_delivered: u64,
    /// The first and the latest of them.
    pub deliveries: Option<Deliveries>,
}

impl DataCounts {
    /// A packet with `payload` bytes arrives.
    pub(crate) fn arrived(&mut self, now: Instant, payload: u64) {
        self.received += 1;
        self.bytes_delivered += payload;
        Deliveries::note(&mut self.deliveries, now);
    }
}
