//! Many FIFOs in one store of packets, one for each flow or for each bucket of a hash.
//!
//! Cost: O(1) a packet. Places that fall free are used again.

use std::num::NonZeroU32;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Packet};
use lastmile_units::{ByteCount, PacketCount, WireBytes};

use crate::ack::flow_map::FlowMap;
use crate::random::split_mix;
use crate::spec::Problem;
use crate::{Backlog, Spec};

/// Which packets share a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowKeys {
    /// Those of one flow, and no others.
    Exact,
    /// Those whose flows have one hash, of so many: two flows may share a queue.
    Buckets {
        /// How many there are.
        count: NonZeroU32,
        /// Which flows share one.
        seed: u64,
    },
}

impl FlowKeys {
    /// Refuses more buckets than [`Spec::MAX_BUCKETS`].
    pub(crate) fn check(self) -> Result<(), Problem> {
        match self {
            Self::Buckets { count, .. } if count.get() > Spec::MAX_BUCKETS => Err(Problem::Buckets(count.get())),
            Self::Buckets { .. } | Self::Exact => Ok(()),
        }
    }
}

/// FIFOs, each with a state `S` of its scheduler.
#[derive(Clone, Debug)]
pub(crate) struct Flows<P, S> {
    keys: FlowKeys,
    link_layer: LinkLayer,
    queues: Vec<Queue<S>>,
    numbers: FlowMap<u32>,
    free_queues: Vec<u32>,
    places: Vec<Place<P>>,
    free_place: Option<u32>,
    packets: u64,
    bytes: u64,
}

/// One FIFO.
#[derive(Clone, Debug)]
struct Queue<S> {
    flow: FlowId,
    ends: Option<(u32, u32)>,
    packets: u32,
    wire: u64,
    state: S,
}

#[derive(Clone, Debug)]
enum Place<P> {
    Free { next: Option<u32> },
    Taken { packet: P, ahead: Option<u32>, behind: Option<u32> },
}

impl<P: Packet, S: Clone + Default> Flows<P, S> {
    pub(crate) fn new(keys: FlowKeys, link_layer: &LinkLayer) -> Self {
        let empty = Queue { flow: FlowId::default(), ends: None, packets: 0, wire: 0, state: S::default() };
        let queues = match keys {
            FlowKeys::Exact => Vec::new(),
            FlowKeys::Buckets { count, .. } => vec![empty; count.get() as usize],
        };
        Self {
            keys,
            link_layer: *link_layer,
            queues,
            numbers: FlowMap::default(),
            free_queues: Vec::new(),
            places: Vec::new(),
            free_place: None,
            packets: 0,
            bytes: 0,
        }
    }

    /// The queue of a flow.
    pub(crate) fn queue_of(&mut self, flow: FlowId) -> u32 {
        match self.keys {
            FlowKeys::Buckets { count, seed } => {
                let mut state = seed ^ u64::from(flow.index());
                let hash = u128::from(split_mix(&mut state)) * u128::from(count.get());
                (hash >> 64) as u32
            }
            FlowKeys::Exact => {
                if let Some(&number) = self.numbers.get(&flow) {
                    return number;
                }
                let queue = Queue { flow, ends: None, packets: 0, wire: 0, state: S::default() };
                let number = if let Some(number) = self.free_queues.pop() {
                    self.queues[number as usize] = queue;
                    number
                } else {
                    self.queues.push(queue);
                    u32::try_from(self.queues.len() - 1).expect("fewer than 2^32 flows")
                };
                self.numbers.insert(flow, number);
                number
            }
        }
    }

    /// The scheduler is done with an empty queue: an exact flow is forgotten, a bucket keeps its state.
    pub(crate) fn release(&mut self, queue: u32) {
        if self.keys == FlowKeys::Exact {
            self.numbers.remove(&self.queues[queue as usize].flow);
            self.free_queues.push(queue);
        }
    }

    pub(crate) fn push(&mut self, queue: u32, packet: P) {
        self.packets += 1;
        self.bytes += u64::from(packet.meta().ip_len);
        let wire = self.wire_bytes(&packet).as_u64();
        let ahead = self.queues[queue as usize].ends.map(|(_, last)| last);
        let taken = Place::Taken { packet, ahead, behind: None };
        let place = if let Some(place) = self.free_place {
            let Place::Free { next } = std::mem::replace(&mut self.places[place as usize], taken) else {
                unreachable!("the free list holds free places");
            };
            self.free_place = next;
            place
        } else {
            self.places.push(taken);
            u32::try_from(self.places.len() - 1).expect("fewer than 2^32 packets wait in a queue")
        };
        let this = &mut self.queues[queue as usize];
        this.packets += 1;
        this.wire += wire;
        this.ends = Some((this.ends.map_or(place, |(first, _)| first), place));
        if let Some(ahead) = ahead {
            let Place::Taken { behind, .. } = &mut self.places[ahead as usize] else {
                unreachable!("links lead to packets");
            };
            *behind = Some(place);
        }
    }

    /// The oldest packet of a queue.
    pub(crate) fn head(&self, queue: u32) -> Option<&P> {
        let (first, _) = self.queues[queue as usize].ends?;
        match &self.places[first as usize] {
            Place::Taken { packet, .. } => Some(packet),
            Place::Free { .. } => unreachable!("links lead to packets"),
        }
    }

    /// Takes the oldest packet out of a queue.
    pub(crate) fn pop(&mut self, queue: u32) -> Option<P> {
        let (first, last) = self.queues[queue as usize].ends?;
        let (packet, _, behind) = self.free(queue, first);
        self.queues[queue as usize].ends = behind.map(|next| (next, last));
        if let Some(next) = behind {
            let Place::Taken { ahead, .. } = &mut self.places[next as usize] else {
                unreachable!("links lead to packets");
            };
            *ahead = None;
        }
        Some(packet)
    }

    /// Takes the newest packet out of a queue.
    pub(crate) fn pop_newest(&mut self, queue: u32) -> Option<P> {
        let (first, last) = self.queues[queue as usize].ends?;
        let (packet, ahead, _) = self.free(queue, last);
        self.queues[queue as usize].ends = ahead.map(|next| (first, next));
        if let Some(next) = ahead {
            let Place::Taken { behind, .. } = &mut self.places[next as usize] else {
                unreachable!("links lead to packets");
            };
            *behind = None;
        }
        Some(packet)
    }

    /// The packet at `place`, and the places ahead of it and behind it in its queue.
    fn free(&mut self, queue: u32, place: u32) -> (P, Option<u32>, Option<u32>) {
        let free = Place::Free { next: self.free_place };
        let Place::Taken { packet, ahead, behind } = std::mem::replace(&mut self.places[place as usize], free) else {
            unreachable!("links lead to packets");
        };
        self.free_place = Some(place);
        self.packets -= 1;
        self.bytes -= u64::from(packet.meta().ip_len);
        let wire = self.wire_bytes(&packet).as_u64();
        let this = &mut self.queues[queue as usize];
        this.packets -= 1;
        this.wire -= wire;
        (packet, ahead, behind)
    }

    pub(crate) fn state(&self, queue: u32) -> &S {
        &self.queues[queue as usize].state
    }

    pub(crate) fn state_mut(&mut self, queue: u32) -> &mut S {
        &mut self.queues[queue as usize].state
    }

    pub(crate) fn packets_in(&self, queue: u32) -> u32 {
        self.queues[queue as usize].packets
    }

    pub(crate) fn wire_in(&self, queue: u32) -> WireBytes {
        WireBytes::new(self.queues[queue as usize].wire)
    }

    pub(crate) fn wire_bytes(&self, packet: &P) -> WireBytes {
        self.link_layer.on_wire(packet.meta().ip_bytes())
    }

    /// The queue that holds most bytes on the wire; the first of several. Looks at each.
    pub(crate) fn fattest(&self) -> Option<u32> {
        let mut fattest = None;
        for (number, queue) in (0_u32..).zip(&self.queues) {
            if queue.packets > 0 && fattest.is_none_or(|(_, wire)| queue.wire > wire) {
                fattest = Some((number, queue.wire));
            }
        }
        fattest.map(|(number, _)| number)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: PacketCount::new(self.packets), bytes: ByteCount::new(self.bytes) }
    }
}

#[cfg(test)]
mod tests;
