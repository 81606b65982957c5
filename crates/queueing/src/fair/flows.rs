//! FIFOs in one store of packets, one FIFO for each flow or each bucket of a hash.
//!
//! Cost: O(1) a packet. Free slots are reused.

use std::num::NonZeroU32;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, PacketCount, WireBytes};

use crate::ack::flow_map::TagMap;
use crate::random::split_mix;
use crate::spec::{Problem, Site};
use crate::{Backlog, Spec};

/// The queues that there are: one for each tag ([`super::per::Per`]), or the buckets of a hash of tags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowKeys {
    /// One queue for each flow, or host.
    Exact,
    /// Hashed: flows, or hosts, of one bucket share a queue.
    Buckets {
        /// Number of buckets.
        count: NonZeroU32,
        /// Seed of the hash.
        seed: u64,
    },
}

impl FlowKeys {
    /// These keys, with the seed of the discipline at `site`: which flows share a bucket differs from run to run.
    pub(crate) fn seeded(self, site: &Site<'_>) -> Self {
        match self {
            Self::Exact => Self::Exact,
            Self::Buckets { count, seed } => Self::Buckets { count, seed: site.seed(seed) },
        }
    }

    /// Refuses more buckets than [`Spec::MAX_BUCKETS`].
    pub(crate) fn check(self) -> Result<(), Problem> {
        match self {
            Self::Buckets { count, .. } if count.get() > Spec::MAX_BUCKETS => Err(Problem::Buckets(count.get())),
            Self::Buckets { .. } | Self::Exact => Ok(()),
        }
    }
}

/// FIFOs, each with its scheduler state `S`.
#[derive(Clone, Debug)]
pub(crate) struct Flows<P, S> {
    keys: FlowKeys,
    link_layer: LinkLayer,
    queues: Vec<Queue<S>>,
    queue_indices: TagMap<u32>,
    free_queues: Vec<u32>,
    slots: Vec<Slot<P>>,
    free_slot: Option<u32>,
    packets: u64,
    bytes: u64,
}

/// One FIFO.
#[derive(Clone, Debug)]
struct Queue<S> {
    tag: u64,
    ends: Option<(u32, u32)>,
    packets: u32,
    wire: u64,
    state: S,
}

#[derive(Clone, Debug)]
enum Slot<P> {
    Free { next_free: Option<u32> },
    Used { packet: P, previous: Option<u32>, next: Option<u32> },
}

impl<P: Packet, S: Clone + Default> Flows<P, S> {
    pub(crate) fn new(keys: FlowKeys, link_layer: &LinkLayer) -> Self {
        let empty = Queue { tag: 0, ends: None, packets: 0, wire: 0, state: S::default() };
        let queues = match keys {
            FlowKeys::Exact => Vec::new(),
            FlowKeys::Buckets { count, .. } => vec![empty; count.get() as usize],
        };
        Self {
            keys,
            link_layer: *link_layer,
            queues,
            queue_indices: TagMap::default(),
            free_queues: Vec::new(),
            slots: Vec::new(),
            free_slot: None,
            packets: 0,
            bytes: 0,
        }
    }

    /// The queue of a tag; makes one for a new tag.
    pub(crate) fn queue_of(&mut self, tag: u64) -> u32 {
        match self.keys {
            FlowKeys::Buckets { count, seed } => {
                let mut state = seed ^ tag;
                let hash = u128::from(split_mix(&mut state)) * u128::from(count.get());
                (hash >> 64) as u32
            }
            FlowKeys::Exact => {
                if let Some(&number) = self.queue_indices.get(&tag) {
                    return number;
                }
                let queue = Queue { tag, ends: None, packets: 0, wire: 0, state: S::default() };
                let number = if let Some(number) = self.free_queues.pop() {
                    self.queues[number as usize] = queue;
                    number
                } else {
                    self.queues.push(queue);
                    u32::try_from(self.queues.len() - 1).expect("fewer than 2^32 flows")
                };
                self.queue_indices.insert(tag, number);
                number
            }
        }
    }

    /// Releases an empty queue: an exact tag is removed, a bucket keeps its state.
    pub(crate) fn release(&mut self, queue: u32) {
        if self.keys == FlowKeys::Exact {
            self.queue_indices.remove(&self.queues[queue as usize].tag);
            self.free_queues.push(queue);
        }
    }

    pub(crate) fn push(&mut self, queue: u32, packet: P) {
        self.packets += 1;
        self.bytes += u64::from(packet.meta().ip_len);
        let wire = self.wire_bytes(&packet).as_u64();
        let previous = self.queues[queue as usize].ends.map(|(_, last)| last);
        let used = Slot::Used { packet, previous, next: None };
        let slot = if let Some(slot) = self.free_slot {
            let Slot::Free { next_free } = std::mem::replace(&mut self.slots[slot as usize], used) else {
                unreachable!("the free list holds free slots");
            };
            self.free_slot = next_free;
            slot
        } else {
            self.slots.push(used);
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets in a queue")
        };
        let this = &mut self.queues[queue as usize];
        this.packets += 1;
        this.wire += wire;
        this.ends = Some((this.ends.map_or(slot, |(first, _)| first), slot));
        if let Some(previous) = previous {
            let Slot::Used { next, .. } = &mut self.slots[previous as usize] else {
                unreachable!("links lead to packets");
            };
            *next = Some(slot);
        }
    }

    /// The oldest packet of a queue.
    pub(crate) fn head(&self, queue: u32) -> Option<&P> {
        let (first, _) = self.queues[queue as usize].ends?;
        match &self.slots[first as usize] {
            Slot::Used { packet, .. } => Some(packet),
            Slot::Free { .. } => unreachable!("links lead to packets"),
        }
    }

    /// Dequeues the oldest packet of a queue.
    pub(crate) fn pop(&mut self, queue: u32) -> Option<P> {
        let (first, last) = self.queues[queue as usize].ends?;
        let (packet, _, next) = self.free(queue, first);
        self.queues[queue as usize].ends = next.map(|next| (next, last));
        if let Some(next) = next {
            let Slot::Used { previous, .. } = &mut self.slots[next as usize] else {
                unreachable!("links lead to packets");
            };
            *previous = None;
        }
        Some(packet)
    }

    /// Removes the newest packet of a queue.
    pub(crate) fn pop_newest(&mut self, queue: u32) -> Option<P> {
        let (first, last) = self.queues[queue as usize].ends?;
        let (packet, previous, _) = self.free(queue, last);
        self.queues[queue as usize].ends = previous.map(|previous| (first, previous));
        if let Some(previous) = previous {
            let Slot::Used { next, .. } = &mut self.slots[previous as usize] else {
                unreachable!("links lead to packets");
            };
            *next = None;
        }
        Some(packet)
    }

    /// Frees a slot. Returns its packet, and the slots before and after it in its queue.
    fn free(&mut self, queue: u32, slot: u32) -> (P, Option<u32>, Option<u32>) {
        let free = Slot::Free { next_free: self.free_slot };
        let Slot::Used { packet, previous, next } = std::mem::replace(&mut self.slots[slot as usize], free) else {
            unreachable!("links lead to packets");
        };
        self.free_slot = Some(slot);
        self.packets -= 1;
        self.bytes -= u64::from(packet.meta().ip_len);
        let wire = self.wire_bytes(&packet).as_u64();
        let this = &mut self.queues[queue as usize];
        this.packets -= 1;
        this.wire -= wire;
        (packet, previous, next)
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

    /// The queue with the largest backlog in bytes on the wire; the first of several. O(n) in the
    /// queues.
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
