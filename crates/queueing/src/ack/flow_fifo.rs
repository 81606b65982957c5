//! A FIFO that also knows the order of the packets of each flow, and out of whose middle one can take.

use std::collections::hash_map::Entry;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Meta, Packet, Protocol, PureAck, TcpFlags};

use super::flow_map::FlowMap;
use super::linked_fifo::{Handle, LinkedFifo};
use super::{Newest, Standing};
use crate::fifo::Capacity;
use crate::{Backlog, Limit};

/// A limited FIFO in which the packets of each flow are chained. `M` is what its owner notes with each packet.
///
/// Cost: one table look-up for each packet that comes or goes, and for a TCP segment with payload a sum over that. Memory: an entry for each flow of which something waits.
#[derive(Clone, Debug)]
pub(super) struct FlowFifo<P, M = ()> {
    fifo: LinkedFifo<Waiting<P, M>>,
    flows: FlowMap<Flow>,
    pub(super) capacity: Capacity,
}

#[derive(Clone, Debug)]
struct Waiting<P, M> {
    packet: P,
    note: M,
    /// Whether it counts as a packet of its flow. A damaged segment does not: nobody hears what it says.
    chained: bool,
    /// The packets of the same flow before and after it.
    before: Option<Handle>,
    after: Option<Handle>,
}

/// The packets of one flow that wait.
#[derive(Clone, Debug)]
struct Flow {
    oldest: Handle,
    last: Handle,
    /// The newest acknowledgement among them.
    newest: Option<Newest>,
}

impl<P: Packet, M: Copy> FlowFifo<P, M> {
    /// `None`: the limit is in cells, and `link_layer` sends none.
    pub(super) fn new(limit: Limit, link_layer: &LinkLayer) -> Option<Self> {
        Some(Self { fifo: LinkedFifo::new(), flows: FlowMap::default(), capacity: Capacity::new(limit, link_layer)? })
    }

    /// How a pure ACK stands to the newest acknowledgement of its flow that waits. `None`: none waits.
    pub(super) fn standing_of(&self, ack: PureAck<'_>) -> Option<Standing> {
        Some(self.flows.get(&ack.flow)?.newest?.standing_of(ack.segment()))
    }

    /// Puts a packet that fits at the tail.
    pub(super) fn push_back(&mut self, packet: P, size: u64, note: M) {
        let (id, segment) = (packet.meta().flow, packet.segment());
        let chained = packet.meta().protocol != Protocol::Tcp || segment.is_some();
        let acknowledged = segment.filter(|segment| segment.flags.contains(TcpFlags::ACK)).map(Newest::of);
        self.capacity.take(&packet, size);
        let handle = self.fifo.push_back(Waiting { packet, note, chained, before: None, after: None });
        if !chained {
            return;
        }
        let flow = match self.flows.entry(id) {
            Entry::Vacant(place) => place.insert(Flow { oldest: handle, last: handle, newest: None }),
            Entry::Occupied(place) => {
                let flow = place.into_mut();
                self.fifo.get_mut(handle).before = Some(flow.last);
                self.fifo.get_mut(flow.last).after = Some(handle);
                flow.last = handle;
                flow
            }
        };
        if let Some(acknowledged) = acknowledged {
            flow.newest.get_or_insert(acknowledged).advance_to(acknowledged);
        }
    }

    /// Takes a packet out.
    pub(super) fn remove(&mut self, handle: Handle) -> P {
        let Waiting { packet, chained, before, after, .. } = self.fifo.remove(handle);
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

    /// Hands out the oldest packets until one of `size` fits. `size` is within the limit.
    pub(super) fn make_room(&mut self, size: u64, mut evicted: impl FnMut(P)) {
        while !self.capacity.fits(size) {
            let oldest = self.first().expect("an empty queue holds any packet within its limit");
            evicted(self.remove(oldest));
        }
    }

    fn flow_mut(&mut self, packet: &P) -> &mut Flow {
        self.flows.get_mut(&packet.meta().flow).expect("a flow of which something waits has an entry")
    }

    /// The packet that leaves next.
    pub(super) const fn first(&self) -> Option<Handle> {
        self.fifo.first()
    }

    pub(super) fn packet(&self, handle: Handle) -> &P {
        &self.fifo.get(handle).packet
    }

    pub(super) fn note(&self, handle: Handle) -> M {
        self.fifo.get(handle).note
    }

    /// The next packet of the same flow.
    pub(super) fn after(&self, handle: Handle) -> Option<Handle> {
        self.fifo.get(handle).after
    }

    /// The packets of a flow that wait, the oldest first.
    pub(super) fn of_flow(&self, flow: FlowId) -> impl Iterator<Item = (Handle, &Meta)> {
        let oldest = self.flows.get(&flow).map(|flow| flow.oldest);
        std::iter::successors(oldest, |handle| self.after(*handle)).map(|handle| (handle, self.packet(handle).meta()))
    }

    pub(super) fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.fifo.len())
    }

    /// True when nothing is remembered of any flow.
    #[cfg(test)]
    pub(super) fn remembers_nothing(&self) -> bool {
        self.flows.is_empty()
    }
}
