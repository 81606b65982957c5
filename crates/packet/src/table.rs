//! The table that gives flows of real packets their small numbers.
//!
//! Exact: a number stands for one key, compared in full; no two flows ever share one. Deterministic: the numbers depend on
//! the packets and their times only, never on the hash key. Bounded: at most `max_flows` entries; when all are taken and none
//! is idle, a new flow gets no number, and its packets pass unregulated.
//!
//! Whoever can send packets chooses their ports, and with a known hash could choose such that all fall into one
//! bucket. So the hash is SipHash-1-3 under a key: live programs draw it at random when they start, simulations and tests
//! give a constant.
//!
//! A packet of a known flow only notes the time; nothing is put in order of it. Instead every flow waits in one queue for
//! the next look at it, at most once per idle time, as CLOCK does for pages (Corbato 1968).
//!
//! Cost: one keyed hash of 13 (IPv6: 37) bytes, a place of the index and the cache line of the flow a packet, at most four more
//! lines for a new flow. Place and line may lie anywhere in memory: who has several packets at hand reads them ahead
//! ([`FlowTable::read_ahead`]), so that the waiting for all of them is one.

use core::hash::BuildHasher;
use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};
use siphasher::sip::SipHasher13;

use self::index::Index;
use self::siphash::siphash_1_3;
use crate::{FlowId, FlowKey, IpAddresses};

mod index;
mod siphash;

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

impl HashKey {
    /// What a hasher of this key makes of a flow's.
    #[inline]
    fn hash_flow(self, key: &FlowKey) -> u64 {
        let half = |at| u64::from_le_bytes(std::array::from_fn(|byte| self.0[at + byte]));
        let halves = [half(0), half(8)];
        let [a, b] = key.addresses.source_port.to_be_bytes();
        let [c, d] = key.addresses.destination_port.to_be_bytes();
        let tail = u64::from_le_bytes([a, b, c, d, key.protocol, 0, 0, 0]);
        match key.addresses.ip {
            IpAddresses::V4 { source, destination } => {
                let [a, b, c, d] = source.octets();
                let [e, f, g, h] = destination.octets();
                siphash_1_3(halves, &[u64::from_le_bytes([a, b, c, d, e, f, g, h])], tail, 13)
            }
            IpAddresses::V6 { source, destination } => {
                let words = [source, destination].map(|address| {
                    let octets = address.octets();
                    [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| octets[at + byte])))
                });
                siphash_1_3(halves, words.as_flattened(), tail, 37)
            }
        }
    }
}

impl BuildHasher for HashKey {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

/// Gives every flow a number below `max_flows`, and takes it back from flows that have been idle.
///
/// A number that was taken back is given to another flow later. Whoever keeps state by [`FlowId`] forgets it in the
/// `evicted` callback. `idle` must be longer than any packet can wait in the datapath, or a packet would leave under
/// the number of another flow; minutes are usual.
#[derive(Clone, Debug)]
pub struct FlowTable {
    hash_key: HashKey,
    /// Numbers that are held, by the hash of their keys.
    index: Index,
    /// By number.
    named: Vec<Named>,
    /// Numbers given back, the last one first to be used again.
    free: Vec<FlowId>,
    /// Every flow once, in order of the time since which it waits for a look.
    looks: VecDeque<Look>,
    max_flows: u32,
    idle: Duration,
}

/// The number of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interned {
    /// The number.
    pub id: FlowId,
    /// True when the flow had none before.
    pub new: bool,
}

/// What a table's hash makes of a key, for who looks for it more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash(u32);

/// The flow that a number was last given to, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Named {
    key: FlowKey,
    /// False once the number has been given back.
    held: bool,
    hash: KeyHash,
    last_seen: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Look {
    id: FlowId,
    since: Instant,
}

/// How many flows a new flow may look at to find an idle one.
const LOOKS_FOR_ONE: u32 = 4;

impl FlowTable {
    /// An empty table for at most `max_flows` flows; a flow not seen for `idle` may lose its number.
    #[must_use]
    pub fn new(max_flows: u32, idle: Duration, hash_key: HashKey) -> Self {
        Self {
            hash_key,
            index: Index::default(),
            named: Vec::new(),
            free: Vec::new(),
            looks: VecDeque::new(),
            max_flows,
            idle,
        }
    }

    /// The flow's number, a new one when it has none; `None` when all are taken and no idle flow was found.
    ///
    /// Counts as a sign of life of the flow. `evicted` hears of the flow that has to give its number up, if one has. An idle
    /// flow is looked for among a few at a time, so a flow that got no number may get one with its next packet.
    pub fn intern(&mut self, now: Instant, key: &FlowKey, evicted: impl FnMut(FlowId, FlowKey)) -> Option<FlowId> {
        self.intern_or_tell(now, key, evicted).map(|interned| interned.id)
    }

    /// The same, and whether the number is new.
    pub fn intern_or_tell(
        &mut self,
        now: Instant,
        key: &FlowKey,
        evicted: impl FnMut(FlowId, FlowKey),
    ) -> Option<Interned> {
        self.intern_hashed(now, key, self.hash(key), evicted)
    }

    /// The same for a key whose hash by this table is known.
    #[inline]
    pub fn intern_hashed(
        &mut self,
        now: Instant,
        key: &FlowKey,
        hash: KeyHash,
        mut evicted: impl FnMut(FlowId, FlowKey),
    ) -> Option<Interned> {
        if let Some(id) = self.find(key, hash) {
            self.named[id.index() as usize].last_seen = now;
            return Some(Interned { id, new: false });
        }
        self.intern_new(now, key, hash, &mut evicted)
    }

    /// The same for a flow that has no number.
    #[inline(never)]
    fn intern_new(
        &mut self,
        now: Instant,
        key: &FlowKey,
        hash: KeyHash,
        evicted: &mut impl FnMut(FlowId, FlowKey),
    ) -> Option<Interned> {
        let id = self.unused(now, evicted)?;
        self.index.insert(hash.0, id.index());
        self.looks.push_back(Look { id, since: now });
        let named = Named { key: *key, held: true, hash, last_seen: now };
        match self.named.get_mut(id.index() as usize) {
            Some(slot) => *slot = named,
            None => self.named.push(named),
        }
        Some(Interned { id, new: true })
    }

    /// The hash of a key, for [`FlowTable::intern_hashed`] of this table.
    #[inline]
    #[must_use]
    pub fn hash(&self, key: &FlowKey) -> KeyHash {
        KeyHash((self.hash_key.hash_flow(key) >> 32) as u32)
    }

    /// Reads the place where the number of a key of this hash stands, so that it is in a cache by the time that it is looked for.
    pub fn read_ahead(&self, hash: KeyHash) {
        self.index.touch(hash.0);
    }

    /// Reads on, to the flow itself: after [`FlowTable::read_ahead`] has had its time.
    pub fn read_further_ahead(&self, hash: KeyHash) {
        if let Some(number) = self.index.find(hash.0, |_| true) {
            self.read_ahead_of(FlowId::new(number));
        }
    }

    /// Reads the flow of this number, so that it is in a cache by the time of [`FlowTable::touch_either_way`].
    pub fn read_ahead_of(&self, id: FlowId) {
        std::hint::black_box(self.named.get(id.index() as usize).map(|named| named.last_seen));
    }

    /// The flow's number, if it has one. No sign of life.
    #[must_use]
    pub fn get(&self, key: &FlowKey) -> Option<FlowId> {
        self.find(key, self.hash(key))
    }

    /// Whether the flow with the number `id` is that of `key` (`false`) or its reverse (`true`), and then a sign of life of it: for
    /// who remembers numbers by something that is looked up at less cost than a key. `None`: neither. No hash.
    pub fn touch_either_way(&mut self, now: Instant, id: FlowId, key: &FlowKey) -> Option<bool> {
        let named = self.named.get_mut(id.index() as usize).filter(|named| named.held)?;
        let reversed = named.key != *key;
        if reversed && named.key.reversed() != *key {
            return None;
        }
        named.last_seen = now;
        Some(reversed)
    }

    /// The flow with this number.
    #[must_use]
    pub fn key(&self, id: FlowId) -> Option<&FlowKey> {
        self.named.get(id.index() as usize).filter(|named| named.held).map(|named| &named.key)
    }

    /// Takes the numbers of idle flows back; returns how many there were. Called once per `idle`, it finds each flow before
    /// that has been idle twice as long.
    pub fn expire(&mut self, now: Instant, mut evicted: impl FnMut(FlowId, FlowKey)) -> usize {
        let before = self.len();
        while self.look(now, &mut evicted) {}
        before - self.len()
    }

    /// Flows that have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.looks.len()
    }

    /// True when no flow has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.looks.is_empty()
    }

    #[inline]
    fn find(&self, key: &FlowKey, hash: KeyHash) -> Option<FlowId> {
        self.index.find(hash.0, |number| self.named[number as usize].key == *key).map(FlowId::new)
    }

    /// A number that no flow has.
    fn unused(&mut self, now: Instant, evicted: &mut impl FnMut(FlowId, FlowKey)) -> Option<FlowId> {
        let mut looks = 0;
        loop {
            if let Some(id) = self.free.pop() {
                return Some(id);
            }
            if self.named.len() < self.max_flows as usize {
                return Some(FlowId::new(self.named.len() as u32));
            }
            if looks == LOOKS_FOR_ONE || !self.look(now, evicted) {
                return None;
            }
            looks += 1;
        }
    }

    /// Looks at the flow that has waited longest and takes its number back if it is idle; false when none has waited for
    /// `idle`, since then none can be idle that long.
    fn look(&mut self, now: Instant, evicted: &mut impl FnMut(FlowId, FlowKey)) -> bool {
        match self.looks.front() {
            Some(look) if look.since.saturating_add(self.idle) <= now => {}
            _ => return false,
        }
        let Some(Look { id, .. }) = self.looks.pop_front() else { return false };
        let named = &mut self.named[id.index() as usize];
        if named.last_seen.saturating_add(self.idle) <= now {
            named.held = false;
            self.index.remove(named.hash.0, id.index());
            self.free.push(id);
            evicted(id, named.key);
        } else {
            self.looks.push_back(Look { id, since: now });
        }
        true
    }
}

#[cfg(test)]
mod tests;
