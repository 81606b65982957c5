//! Active queue management: telling senders of congestion before the queue is full.
//!
//! Sizes that stand for time are those on the wire of the line, where the RFCs count IP bytes: what delays is what is sent.
//! Limits and thresholds of a queue are in packets, IP bytes or cells. Where a sender understands congestion marks and `ecn` is set, a mark takes the place of a drop (RFC 3168).

pub mod codel;
pub mod pie;
pub mod red;

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Limit, WireBytes};

use crate::Backlog;
use crate::fifo::Room;

pub use codel::CoDel;
pub use pie::Pie;
pub use red::Red;

/// A FIFO that knows how much it holds in bytes on the wire.
#[derive(Clone, Debug)]
struct WireFifo<P: Packet> {
    packets: VecDeque<P>,
    room: Room,
    wire: WireBytes,
    link_layer: LinkLayer,
}

impl<P: Packet> WireFifo<P> {
    /// `None`: the limit is in cells, and `link_layer` sends none.
    fn new(limit: Limit, link_layer: &LinkLayer) -> Option<Self> {
        let room = Room::new(limit, link_layer)?;
        Some(Self { packets: VecDeque::new(), room, wire: WireBytes::ZERO, link_layer: *link_layer })
    }

    /// Takes the packet in, or says why it cannot.
    fn push(&mut self, packet: P) -> Result<(), (P, Full)> {
        if let Some(full) = self.refuses(&packet) {
            return Err((packet, full));
        }
        self.put(packet);
        Ok(())
    }

    /// Why it cannot take the packet in.
    fn refuses(&self, packet: &P) -> Option<Full> {
        let size = self.room.size_of(packet);
        if self.room.never_fits(size) {
            Some(Full::ForEver)
        } else if self.room.fits(size) {
            None
        } else {
            Some(Full::Now)
        }
    }

    /// Takes in a packet that is not refused.
    fn put(&mut self, packet: P) {
        self.room.take(&packet, self.room.size_of(&packet));
        self.wire += self.link_layer.on_wire(packet.meta().ip_bytes());
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.room.release(&packet);
        self.wire -= self.link_layer.on_wire(packet.meta().ip_bytes());
        Some(packet)
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn backlog(&self) -> Backlog {
        self.room.backlog(self.packets.len())
    }
}

/// Why a packet finds no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    /// What waits takes it.
    Now,
    /// The packet is larger than the whole limit.
    ForEver,
}
