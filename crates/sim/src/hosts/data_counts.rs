//! The counters that all flows of datagrams have.

use lastmile_analysis::duplicates::Seen;
use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;

/// The counters of the data of a flow of datagrams.
#[derive(Clone, Default, Debug)]
pub struct DataCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets received, without copies.
    pub received: u64,
    /// Payload of the delivered packets.
    pub bytes_delivered: u64,
    /// The first and the latest delivery.
    pub deliveries: Option<Deliveries>,
    seen: Seen,
}

impl DataCounts {
    /// The packet with this number and `payload` bytes arrives. False for a copy of one that has arrived, which is
    /// discarded.
    pub(crate) fn arrived(&mut self, now: Instant, number: u64, payload: u64) -> bool {
        let first = self.seen.is_first(number);
        if first {
            self.received += 1;
            self.bytes_delivered += payload;
            Deliveries::note(&mut self.deliveries, now);
        }
        first
    }
}
