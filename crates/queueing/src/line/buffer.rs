//! The buffer of a granted transmitter, behind a queue that shapes.
//!
//! A shaper lets a packet go when its tokens suffice. If packets stayed in it until a grant begins, a bucket smaller
//! than what comes between two grants would overflow, and the line would idle. So they wait for grants here, in order,
//! and requests ask for them alone. The buffer stops the queue when it is full, as the byte limit of a driver does.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, PacketCount, WireBytes};

use crate::Backlog;

/// Packets that have left the queue and wait for a grant.
pub(super) struct Buffer<P> {
    packets: VecDeque<P>,
    /// IP bytes of the packets.
    bytes: u64,
    /// Bytes of the packets on the wire, without header compression.
    wire: u64,
    /// The bytes on the wire from which on it is full.
    most: u64,
}

impl<P: Packet> Buffer<P> {
    pub(super) fn new(most: WireBytes) -> Self {
        Self { packets: VecDeque::new(), bytes: 0, wire: 0, most: most.as_u64() }
    }

    /// True unless it is full. The last packet may exceed the limit, so that one of any size passes.
    pub(super) fn has_room(&self) -> bool {
        self.wire < self.most
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(super) fn wire_bytes(&self) -> u64 {
        self.wire
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: PacketCount::new(self.packets.len() as u64), bytes: ByteCount::new(self.bytes) }
    }

    pub(super) fn push(&mut self, packet: P, link: &LinkLayer) {
        let bytes = packet.meta().ip_bytes();
        self.bytes += bytes.as_u64();
        self.wire += link.on_wire(bytes).as_u64();
        self.packets.push_back(packet);
    }

    pub(super) fn pop(&mut self, link: &LinkLayer) -> Option<P> {
        let packet = self.packets.pop_front()?;
        let bytes = packet.meta().ip_bytes();
        self.bytes -= bytes.as_u64();
        self.wire -= link.on_wire(bytes).as_u64();
        Some(packet)
    }
}
