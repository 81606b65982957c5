//! Active queue management: signals congestion to senders before the queue is full.
//!
//! Sizes that represent time are bytes on the wire, where the RFCs count IP bytes: delay comes from
//! the bytes sent. Limits and thresholds of a queue are in packets, IP bytes or cells. If `ecn` is
//! set, packets of ECN-capable senders are marked instead of dropped (RFC 3168).

pub mod codel;
pub mod docsis_pie;
pub mod dualpi2;
pub(crate) mod pi;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Limit, WireBytes};

use crate::fifo::{Capacity, Tally};
use crate::{Backlog, DropReason};

pub use codel::CoDel;
pub use docsis_pie::DocsisPie;
pub use dualpi2::DualPi2;
pub use pie::Pie;
pub use red::Red;

/// A FIFO that also counts its backlog in bytes on the wire.
#[derive(Clone, Debug)]
struct WireFifo<P: Packet> {
    packets: VecDeque<P>,
    capacity: Capacity,
    wire: WireBytes,
    link_layer: LinkLayer,
}

impl<P: Packet> WireFifo<P> {
    /// `None` if the limit is in cells and `link_layer` has none.
    fn new(limit: Limit, link_layer: &LinkLayer) -> Option<Self> {
        let capacity = Capacity::new(limit, link_layer)?;
        Some(Self { packets: VecDeque::new(), capacity, wire: WireBytes::ZERO, link_layer: *link_layer })
    }

    /// Enqueues the packet, or returns it with the reason for refusal.
    fn push(&mut self, packet: P) -> Result<(), (P, Full)> {
        if let Some(full) = self.refuses(&packet) {
            return Err((packet, full));
        }
        self.put(packet);
        Ok(())
    }

    /// The reason for which the packet cannot be enqueued, if any.
    fn refuses(&self, packet: &P) -> Option<Full> {
        Full::of(&self.capacity, packet)
    }

    /// Enqueues a packet that is not refused.
    fn put(&mut self, packet: P) {
        self.capacity.take(&packet, self.capacity.size_of(&packet));
        self.wire += self.link_layer.on_wire(packet.meta().ip_bytes());
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.capacity.release(&packet);
        self.wire -= self.link_layer.on_wire(packet.meta().ip_bytes());
        Some(packet)
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.packets.len())
    }
}

/// Reasons for which a packet does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    /// The backlog leaves too little free space.
    NoSpace,
    /// The packet is larger than the whole limit.
    TooLarge,
}

impl Full {
    /// The reason for which the packet does not fit, if any.
    fn of(capacity: &Capacity, packet: &impl Packet) -> Option<Self> {
        let size = capacity.size_of(packet);
        if capacity.never_fits(size) { Some(Self::TooLarge) } else { (!capacity.fits(size)).then_some(Self::NoSpace) }
    }

    /// Counts the refused packet, and returns the reason of its drop.
    const fn counted(self, tally: &mut Tally) -> DropReason {
        match self {
            Self::NoSpace => {
                tally.tail += 1;
                DropReason::Tail
            }
            Self::TooLarge => {
                tally.too_large += 1;
                DropReason::TooLarge
            }
        }
    }
}
