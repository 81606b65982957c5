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
//! Cost: one keyed hash of 13 (IPv6: 37) bytes and one look-up a packet.

use core::hash::BuildHasher;
use std::collections::HashMap;

use lastmile_units::{Duration, Instant};
use siphasher::sip::SipHasher13;

use crate::{FlowId, FlowKey};

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

/// Gives every flow a number below `max_flows`, and takes it back from flows that have been idle.
///
/// A number that was taken back is given to another flow later. Whoever keeps state by [`FlowId`] forgets it in the
/// `evicted` callback. `idle` must be longer than any packet can wait in the datapath, or a packet would leave under
/// the number of another flow; minutes are usual.
#[derive(Clone, Debug)]
pub struct FlowTable {
    ids: HashMap<FlowKey, u32, HashKey>,
    slots: Vec<Slot>,
    /// Slots in use, from the longest idle to the newest.
    oldest: Option<u32>,
    newest: Option<u32>,
    /// Slots given back, the last one first to be used again.
    free: Vec<u32>,
    max_flows: u32,
    idle: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: FlowKey,
    last_seen: Instant,
    older: Option<u32>,
    newer: Option<u32>,
}

impl FlowTable {
    /// An empty table for at most `max_flows` flows; a flow not seen for `idle` may lose its number.
    #[must_use]
    pub fn new(max_flows: u32, idle: Duration, hash_key: HashKey) -> Self {
        Self {
            ids: HashMap::with_hasher(hash_key),
            slots: Vec::new(),
            oldest: None,
            newest: None,
            free: Vec::new(),
            max_flows,
            idle,
        }
    }

    /// The flow's number, a new one when it has none; `None` when all are taken by flows that are not idle.
    ///
    /// Counts as a sign of life of the flow. `evicted` hears of the flow that has to give its number up, if one has.
    pub fn intern(&mut self, now: Instant, key: &FlowKey, mut evicted: impl FnMut(FlowId, FlowKey)) -> Option<FlowId> {
        if let Some(&slot) = self.ids.get(key) {
            self.slots[slot as usize].last_seen = now;
            if self.newest != Some(slot) {
                self.unlink(slot);
                self.link_newest(slot);
            }
            return Some(FlowId::new(slot));
        }
        if self.free.is_empty() && self.slots.len() >= self.max_flows as usize {
            self.expire_oldest(now, &mut evicted);
        }
        let entry = Slot { key: *key, last_seen: now, older: None, newer: None };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None if self.slots.len() < self.max_flows as usize => {
                self.slots.push(entry);
                (self.slots.len() - 1) as u32
            }
            None => return None,
        };
        self.ids.insert(*key, slot);
        self.link_newest(slot);
        Some(FlowId::new(slot))
    }

    /// The flow's number, if it has one. No sign of life.
    #[must_use]
    pub fn get(&self, key: &FlowKey) -> Option<FlowId> {
        self.ids.get(key).map(|slot| FlowId::new(*slot))
    }

    /// The flow with this number.
    #[must_use]
    pub fn key(&self, flow: FlowId) -> Option<&FlowKey> {
        let slot = self.slots.get(flow.index() as usize)?;
        // A slot given back keeps its old key, which then has no number or another one.
        (self.ids.get(&slot.key) == Some(&flow.index())).then_some(&slot.key)
    }

    /// Takes the numbers of all flows back that have been idle, longest idle first; returns how many there were.
    pub fn expire(&mut self, now: Instant, mut evicted: impl FnMut(FlowId, FlowKey)) -> usize {
        let mut count = 0;
        while self.expire_oldest(now, &mut evicted) {
            count += 1;
        }
        count
    }

    /// Flows that have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True when no flow has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn expire_oldest(&mut self, now: Instant, evicted: &mut impl FnMut(FlowId, FlowKey)) -> bool {
        let Some(slot) = self.oldest else { return false };
        let Slot { key, last_seen, .. } = self.slots[slot as usize];
        if last_seen.saturating_add(self.idle) > now {
            return false;
        }
        self.unlink(slot);
        self.ids.remove(&key);
        self.free.push(slot);
        evicted(FlowId::new(slot), key);
        true
    }

    fn link_newest(&mut self, slot: u32) {
        self.slots[slot as usize].older = self.newest;
        self.slots[slot as usize].newer = None;
        match self.newest {
            Some(newest) => self.slots[newest as usize].newer = Some(slot),
            None => self.oldest = Some(slot),
        }
        self.newest = Some(slot);
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { older, newer, .. } = self.slots[slot as usize];
        match older {
            Some(older) => self.slots[older as usize].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.slots[newer as usize].older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests;
