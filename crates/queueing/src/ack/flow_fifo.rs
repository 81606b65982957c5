//! A FIFO that also keeps the order of the packets of each flow, and supports removal from its
//! middle.

use std::collections::hash_map::Entry;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Meta, Packet, Protocol, PureAck, TcpFlags};

use super::flow_map::FlowMap;
use super::linked_fifo::{Handle, LinkedFifo};
use super::{AckKind, Newest};
use crate::fifo::Capacity;
use crate::{Backlog, Limit};

/// A limited FIFO in which the packets of each flow are chained. `M` is a note of the owner with
/// each packet.
///
/// Cost: one table look-up for each packet that arrives or departs, and for a TCP segment with
/// payload a checksum over that. Memory: an entry for each flow with queued packets.
#[derive(Clone, Debug)]
pub(super) struct FlowFifo<P, M = ()> {
    fifo: LinkedFifo<QueuedPacket<P, M>>,
    flows: FlowMap<Flow>,
    pub(super) capacity: Capacity,
}

#[derive(Clone, Debug)]
struct QueuedPacket<P, M> {
    packet: P,
    note: M,
    /// Whether it counts as a packet of its flow. A damaged segment does not: its receiver ignores
    /// it.
    chained: bool,
    /// The packets of its flow before and after it.
    before: Option<Handle>,
    after: Option<Handle>,
}

/// The queued packets of one flow.
#[derive(Clone, Debug)]
struct Flow {
    oldest: Handle,
    last: Handle,
    /// The newest acknowledgement among them.
    newest: Option<Newest>,
}

impl<P: Packet, M: Copy> FlowFifo<P, M> {
    /// `None` if the limit is in cells and `link_layer` has none.
    pub(super) fn new(limit: Limit, link_layer: &LinkLayer) -> Option<Self> {
        Some(Self { fifo: LinkedFifo::new(), flows: FlowMap::default(), capacity: Capacity::new(limit, link_layer)? })
    }

    /// Relation of a pure ACK to the newest queued acknowledgement of its flow. `None`: no
    /// acknowledgement is queued.
    pub(super) fn kind_of(&self, ack: PureAck<'_>) -> Option<AckKind> {
        Some(self.newest_of(ack.flow)?.kind_of(ack.segment()))
    }

    /// True if a pure ACK that repeats the newest number of its flow is needed only for its SACK blocks.
    pub(super) fn is_spare(&self, duplicate: PureAck<'_>) -> bool {
        self.newest_of(duplicate.flow).is_some_and(|newest| newest.is_spare(duplicate))
    }

    fn newest_of(&self, flow: FlowId) -> Option<Newest> {
        self.flows.get(&flow)?.newest
    }

    /// Appends a packet that fits.
    pub(super) fn push_back(&mut self, packet: P, size: u64, note: M) {
        let (id, segment) = (packet.meta().flow, packet.segment());
        let chained = packet.meta().protocol != Protocol::Tcp || segment.is_some();
        let acknowledged = segment.filter(|segment| segment.flags.contains(TcpFlags::ACK));
        let newest = acknowledged.map(|segment| match self.newest_of(id) {
            Some(newest) => newest.noted(segment),
            None => Newest::of(segment),
        });
        self.capacity.take(&packet, size);
        let handle = self.fifo.push_back(QueuedPacket { packet, note, chained, before: None, after: None });
        if !chained {
            return;
        }
        let flow = match self.flows.entry(id) {
            Entry::Vacant(entry) => entry.insert(Flow { oldest: handle, last: handle, newest: None }),
            Entry::Occupied(entry) => {
                let flow = entry.into_mut();
                self.fifo.get_mut(handle).before = Some(flow.last);
                self.fifo.get_mut(flow.last).after = Some(handle);
                flow.last = handle;
                flow
            }
        };
        flow.newest = newest.or(flow.newest);
    }

    /// Removes a packet.
    pub(super) fn remove(&mut self, handle: Handle) -> P {
        let QueuedPacket { packet, chained, before, after, .. } = self.fifo.remove(handle);
        self.capacity.release(&packet);
        if !chained {
            return packet;
        }
        if let Some(before) = before {
            self.fifo.get_mut(before).after = after;
        }
        if let Some(after) = after {
            self.fifo.get_mut(after).before = before;
        }
        match (before, after) {
            (None, None) => {
                self.flows.remove(&packet.meta().flow);
            }
            (Some(_), Some(_)) => {}
            (None, Some(after)) => self.flow_mut(&packet).oldest = after,
            (Some(before), None) => self.flow_mut(&packet).last = before,
        }
        packet
    }

    /// Evicts the oldest packets until one of `size` fits. `size` is within the limit.
    pub(super) fn free_space(&mut self, size: u64, mut evicted: impl FnMut(P)) {
        while !self.capacity.fits(size) {
            let oldest = self.first().expect("an empty queue holds any packet within its limit");
            evicted(self.remove(oldest));
        }
    }

    fn flow_mut(&mut self, packet: &P) -> &mut Flow {
        self.flows.get_mut(&packet.meta().flow).expect("a flow with queued packets has an entry")
    }

    /// The packet at the head.
    pub(super) const fn first(&self) -> Option<Handle> {
        self.fifo.first()
    }

    pub(super) fn packet(&self, handle: Handle) -> &P {
        &self.fifo.get(handle).packet
    }

    pub(super) fn note(&self, handle: Handle) -> M {
        self.fifo.get(handle).note
    }

    /// The next packet of its flow.
    pub(super) fn after(&self, handle: Handle) -> Option<Handle> {
        self.fifo.get(handle).after
    }

    /// The queued packets of a flow, the oldest first.
    pub(super) fn of_flow(&self, flow: FlowId) -> impl Iterator<Item = (Handle, &Meta)> {
        let oldest = self.flows.get(&flow).map(|flow| flow.oldest);
        std::iter::successors(oldest, |handle| self.after(*handle)).map(|handle| (handle, self.packet(handle).meta()))
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.fifo.len())
    }

    /// True when no flow has state.
    #[cfg(test)]
    pub(super) fn remembers_nothing(&self) -> bool {
        self.flows.is_empty()
    }
}
