//! The table that assigns small numbers to flows of real packets.
//!
//! Exact: a number identifies one key, compared in full; two flows never share one. Deterministic:
//! the numbers depend only on the packets, never on the hash key. Bounded: at most `max_flows`
//! entries. In a full table a new flow takes the slot of a flow that was not active recently, so
//! every flow has a number at any number of other flows.
//!
//! A sender of packets chooses their ports, and with a known hash could choose ports that all fall
//! into one bucket. The hash is therefore SipHash-1-3 under a key: live programs draw it at random
//! when they start, simulations and tests give a constant.
//!
//! Eviction: a flow with one packet is *fresh*, with its second packet it becomes *settled*. The
//! oldest fresh flow is evicted first, so one-packet flows at any rate never evict a settled flow.
//! At most three quarters of the slots are settled. Beyond that, CLOCK (Corbato 1968) makes settled
//! flows fresh again in the order in which it last visited them, and skips those active since. Two
//! queues with a trial for newcomers are those of 2Q (Johnson, Shasha 1994).
//!
//! A number consists of a slot and a *generation*: a flow that takes over a slot gets a number of
//! the next generation. Users of state by [`FlowId`] therefore need no notice of an eviction. A
//! number recurs after its slot has changed owners through all generations, 16 383 times with 2^18
//! slots. At a million new flows a second, of which only a quarter of the slots is fresh, that
//! takes 18 minutes.
//!
//! Cost: one keyed hash of 13 (IPv6: 37) bytes, one look-up in the index, and the flow's entry per
//! packet. A new flow takes a few more cache lines. The second packet of a flow visits at most
//! [`LOOKS`] others.

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
    /// A key of these bytes. They must be random where untrusted senders choose addresses and
    /// ports.
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

/// Assigns a number to every flow.
#[derive(Clone, Debug)]
pub struct FlowTable {
    hash_key: HashKey,
    /// Slots by the hash of their keys.
    index: HashTable<u32>,
    /// The flows, by slot.
    named: Vec<Named>,
    max_flows: u32,
    /// The number of low bits of a flow's number that hold its slot; the bits above are the
    /// generation.
    slot_bits: u32,
    /// Fresh flows, the next to be evicted first.
    fresh: Chain,
    /// Settled flows, in the order of their last visit by CLOCK.
    settled: Chain,
    evicted: u64,
}

/// The result of [`FlowTable::intern`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interned {
    /// The flow's number.
    pub id: FlowId,
    /// True if the flow had no number.
    pub new: bool,
}

/// The entry of a slot.
#[derive(Clone, Copy, Debug)]
struct Named {
    key: FlowKey,
    hash: u64,
    id: FlowId,
    links: Links,
    standing: Standing,
}

/// The chain that holds a flow, and for settled flows the reference bit of CLOCK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Fresh,
    /// Settled, and not active since CLOCK's last visit.
    Settled,
    /// Settled, and active since CLOCK's last visit.
    Heard,
}

impl Linked for Named {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The most settled flows that CLOCK visits when a flow becomes settled.
const LOOKS: u32 = 16;

impl FlowTable {
    /// The most flows of a table. A larger table would have too few generations.
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

    /// The flow's number, and whether it is new. Counts as activity of the flow.
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

    /// Assigns a number to a flow that has none.
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

    /// Evicts a flow and returns its slot.
    fn make_way(&mut self) -> u32 {
        let slot = self.fresh.first().or_else(|| self.settled.first()).expect("a full table has flows");
        let Named { hash, standing, .. } = self.named[slot as usize];
        let chain = if standing == Standing::Fresh { &mut self.fresh } else { &mut self.settled };
        chain.remove(&mut self.named, slot);
        self.index.find_entry(hash, |known| *known == slot).expect("every flow is indexed").remove();
        self.evicted += 1;
        slot
    }

    /// The number of the flow that takes over the slot of `id`, never [`FlowId::NONE`].
    const fn next_generation(&self, id: FlowId) -> FlowId {
        let generations = u32::MAX >> self.slot_bits;
        let generation = ((id.index() >> self.slot_bits) + 1) % generations;
        FlowId::new(self.slot(id) as u32 | generation << self.slot_bits)
    }

    /// Records a packet of a flow that has a number.
    #[inline]
    fn hear(&mut self, slot: u32) {
        match self.named[slot as usize].standing {
            Standing::Heard => {}
            Standing::Settled => self.named[slot as usize].standing = Standing::Heard,
            Standing::Fresh => self.settle(slot),
        }
    }

    /// Makes a fresh flow settled, at its second packet. If too many flows are settled, an inactive
    /// one becomes fresh again.
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

    /// The slot of this number, below the table's limit of flows: an index for per-flow state. Once
    /// [`Interned::new`] is true, state in the slot belongs to the previous flow.
    #[inline]
    #[must_use]
    pub const fn slot(&self, id: FlowId) -> usize {
        (id.index() & ((1 << self.slot_bits) - 1)) as usize
    }

    /// The flow's number, if it has one. Does not count as activity.
    #[must_use]
    pub fn get(&self, key: &FlowKey) -> Option<FlowId> {
        self.find(key, self.hash_key.hash_one(key)).map(|slot| self.named[slot as usize].id)
    }

    /// Whether `id` is the number of `key` (`false`) or of its reverse (`true`), or `None` for
    /// neither. A match counts as activity of the flow. The call computes no hash, for callers that
    /// find numbers by a cheaper key.
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

    /// The number of flows in the table.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.named.len()
    }

    /// True for a table without flows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The number of evicted flows.
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
