//! The table that gives flows of real packets their small numbers.
//!
//! Exact: a number stands for one key, compared in full; no two flows ever share one. Deterministic: the numbers depend on
//! the packets only, never on the hash key. Bounded: at most `max_flows` entries. When all are taken, a new flow takes the slot of one
//! that has not been heard of for long, so that every flow has a number, whoever sends how many others.
//!
//! Whoever can send packets chooses their ports, and with a known hash could choose such that all fall into one
//! bucket. So the hash is SipHash-1-3 under a key: live programs draw it at random when they start, simulations and tests
//! give a constant.
//!
//! Whose slot goes: a flow of which one packet came is *fresh*, with the second it is *settled*; the oldest fresh flow gives way. So
//! one-packet flows, at any rate, cost no settled flow its number. At most three quarters of the slots are settled: beyond that flows become
//! fresh again by CLOCK (Corbato 1968), in the order in which they were looked at last, those passed over that have been heard of since. Two
//! queues with a trial for newcomers are those of 2Q (Johnson, Shasha 1994).
//!
//! A number holds slot and *generation*: a flow that takes over a slot gets a number of the next generation. So whoever keeps state by
//! [`FlowId`] need not be told when a flow gives way: the number comes again when its slot has changed hands as often as there are
//! generations, 16 383 times with 2^18 slots. At a million new flows a second, where only a quarter of the slots is fresh, that takes 18 minutes.
//!
//! Cost: one keyed hash of 13 (IPv6: 37) bytes, a place of the index and the flow itself a packet. For a new flow a few lines
//! more, and for its second packet, with which it looks at [`LOOKS`] others at most.

use core::hash::BuildHasher;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;

use self::chain::{Chain, Linked, Links};
use crate::{FlowId, FlowKey};

mod chain;

/// The key of the table's hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// A key of these bytes: random ones wherever strangers choose addresses and ports.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl BuildHasher for HashKey {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

/// Gives every flow a number.
#[derive(Clone, Debug)]
pub struct FlowTable {
    hash_key: HashKey,
    /// Slots by the hash of their keys.
    index: HashTable<u32>,
    /// By slot.
    named: Vec<Named>,
    max_flows: u32,
    /// The lower bits of a number, which name its slot; those above it are the generation.
    slot_bits: u32,
    /// Flows that give way, the first before the others.
    fresh: Chain,
    /// Flows that do not, in the order in which they were looked at.
    settled: Chain,
    evicted: u64,
}

/// The number of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interned {
    /// The number.
    pub id: FlowId,
    /// True when the flow had none before.
    pub new: bool,
}

/// The flow of a slot.
#[derive(Clone, Copy, Debug)]
struct Named {
    key: FlowKey,
    hash: u64,
    id: FlowId,
    links: Links,
    standing: Standing,
}

/// In which chain a flow is, and whether it may be passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Fresh,
    /// Settled, and not heard of since it was looked at.
    Settled,
    /// Settled, and heard of since.
    Heard,
}

impl Linked for Named {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// How many settled flows may be looked at when another becomes one.
const LOOKS: u32 = 16;

impl FlowTable {
    /// The most flows of a table: beyond them generations would be too few.
    pub const MOST: u32 = 1 << 20;

    /// An empty table for at most `max_flows` flows, from one to [`FlowTable::MOST`].
    #[must_use]
    pub const fn new(max_flows: u32, hash_key: HashKey) -> Self {
        debug_assert!(0 < max_flows && max_flows <= Self::MOST, "a table has slots and generations");
        Self {
            hash_key,
            index: HashTable::new(),
            named: Vec::new(),
            max_flows,
            slot_bits: u32::BITS - (max_flows - 1).leading_zeros(),
            fresh: Chain::new(),
            settled: Chain::new(),
            evicted: 0,
        }
    }

    /// The flow's number, and whether it is new. Counts as a sign of life of the flow.
    pub fn intern(&mut self, key: &FlowKey) -> Interned {
        let hash = self.hash_key.hash_one(key);
        match self.find(key, hash) {
            Some(slot) => {
                self.hear(slot);
                Interned { id: self.named[slot as usize].id, new: false }
            }
            None => Interned { id: self.intern_new(key, hash), new: true },
        }
    }

    /// The same for a flow that has no number.
    #[inline(never)]
    fn intern_new(&mut self, key: &FlowKey, hash: u64) -> FlowId {
        let new = |id| Named { key: *key, hash, id, links: Links::NONE, standing: Standing::Fresh };
        let slot = if self.named.len() < self.max_flows as usize {
            let slot = self.named.len() as u32;
            self.named.push(new(FlowId::new(slot)));
            slot
        } else {
            let slot = self.make_way();
            let id = self.next_generation(self.named[slot as usize].id);
            self.named[slot as usize] = new(id);
            slot
        };
        let named = &self.named;
        self.index.insert_unique(hash, slot, |other| named[*other as usize].hash);
        self.fresh.push_back(&mut self.named, slot);
        self.named[slot as usize].id
    }

    /// Takes a slot back from its flow.
    fn make_way(&mut self) -> u32 {
        let slot = self.fresh.first().or_else(|| self.settled.first()).expect("a full table has flows");
        let Named { hash, standing, .. } = self.named[slot as usize];
        let chain = if standing == Standing::Fresh { &mut self.fresh } else { &mut self.settled };
        chain.remove(&mut self.named, slot);
        self.index.find_entry(hash, |known| *known == slot).expect("every flow is indexed").remove();
        self.evicted += 1;
        slot
    }

    /// The number of the flow that takes over the slot of `id`. None is [`FlowId::NONE`].
    const fn next_generation(&self, id: FlowId) -> FlowId {
        let generations = u32::MAX >> self.slot_bits;
        let generation = ((id.index() >> self.slot_bits) + 1) % generations;
        FlowId::new(self.slot(id) as u32 | generation << self.slot_bits)
    }

    /// A packet of a flow came that has a number.
    #[inline]
    fn hear(&mut self, slot: u32) {
        match self.named[slot as usize].standing {
            Standing::Heard => {}
            Standing::Settled => self.named[slot as usize].standing = Standing::Heard,
            Standing::Fresh => self.settle(slot),
        }
    }

    /// A second packet of a flow came. Where there are too many settled, one that was not heard of for long is fresh again.
    #[inline(never)]
    fn settle(&mut self, slot: u32) {
        self.fresh.remove(&mut self.named, slot);
        self.settled.push_back(&mut self.named, slot);
        self.named[slot as usize].standing = Standing::Settled;
        let most = self.max_flows - (self.max_flows / 4).max(1);
        for _ in 0..LOOKS {
            let Some(first) = self.settled.first().filter(|_| self.settled.len() > most) else { return };
            self.settled.remove(&mut self.named, first);
            let heard = self.named[first as usize].standing == Standing::Heard;
            let (chain, standing) =
                if heard { (&mut self.settled, Standing::Settled) } else { (&mut self.fresh, Standing::Fresh) };
            chain.push_back(&mut self.named, first);
            self.named[first as usize].standing = standing;
        }
    }

    /// The slot of the flow with this number, below the most flows of the table: an index for what is kept of its flows. Whatever is kept
    /// there is another flow's once [`Interned::new`] has said so.
    #[inline]
    #[must_use]
    pub const fn slot(&self, id: FlowId) -> usize {
        (id.index() & ((1 << self.slot_bits) - 1)) as usize
    }

    /// The flow's number, if it has one. No sign of life.
    #[must_use]
    pub fn get(&self, key: &FlowKey) -> Option<FlowId> {
        self.find(key, self.hash_key.hash_one(key)).map(|slot| self.named[slot as usize].id)
    }

    /// Whether the flow with the number `id` is that of `key` (`false`) or its reverse (`true`), and then a sign of life of it: for
    /// who remembers numbers by something that is looked up at less cost than a key. `None`: neither. No hash.
    pub fn touch_either_way(&mut self, id: FlowId, key: &FlowKey) -> Option<bool> {
        let named = self.named.get(self.slot(id)).filter(|named| named.id == id)?;
        let reversed = named.key != *key;
        if reversed && named.key.reversed() != *key {
            return None;
        }
        self.hear(self.slot(id) as u32);
        Some(reversed)
    }

    /// The flow with this number.
    #[must_use]
    pub fn key(&self, id: FlowId) -> Option<&FlowKey> {
        self.named.get(self.slot(id)).filter(|named| named.id == id).map(|named| &named.key)
    }

    /// Flows that have a number.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.named.len()
    }

    /// True when no flow has a number.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Flows that have given way to others.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }

    #[inline]
    fn find(&self, key: &FlowKey, hash: u64) -> Option<u32> {
        self.index.find(hash, |slot| self.named[*slot as usize].key == *key).copied()
    }
}

#[cfg(test)]
mod tests;
