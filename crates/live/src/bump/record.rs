//! The headers of the packets that came lately, for questions about other queues ([`super::replay`]).
//!
//! Each direction has a recorder of its own. It keeps the metadata of each packet on arrival (80
//! bytes: time, sizes, flags, sequence and acknowledgement numbers, options) and the addresses of
//! each flow once a chunk. No payload is kept.
//!
//! Bounds: [`SPAN`] of time and [`MOST_PACKETS`] packets in each direction, whichever is less. Memory
//! follows the traffic, in chunks that are used again; it is at most 29 MB a direction if each packet
//! is of a new flow, and 21 MB with the flows of a usual line.
//!
//! Cost per packet: one copy of 80 bytes and one look at the flow's slot. A reader gets references to
//! whole chunks and a copy of the open one, at most 57 kB, so that it delays no packet noticeably.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lastmile_packet::{FlowId, FlowKey, Meta};
use lastmile_units::{Duration, Instant};

/// The longest time that is kept: a minute to look at, and time before it in which queues fill.
pub const SPAN: Duration = Duration::from_s(75);

/// The most packets that are kept in one direction.
pub const MOST_PACKETS: usize = 1 << 18;

/// Packets of a chunk.
const CHUNK: usize = 512;

/// Packets that came one after another.
#[derive(Clone, Default, Debug)]
struct Chunk {
    /// Their metadata on arrival.
    packets: Vec<Meta>,
    /// The flows among them.
    flows: Vec<(FlowId, FlowKey)>,
}

/// Records the packets of one direction.
#[derive(Debug)]
pub(super) struct Recorder {
    whole: VecDeque<Arc<Chunk>>,
    open: Chunk,
    /// The number of the open chunk, from 1.
    number: u32,
    /// By slot of the flow: its number, and above that the latest chunk that has its addresses.
    noted: Vec<u64>,
    spare: Option<Chunk>,
}

impl Recorder {
    /// A recorder of packets whose flows have one of this many slots.
    pub(super) fn new(slots: u32) -> Self {
        Self { whole: VecDeque::new(), open: Chunk::default(), number: 1, noted: vec![0; slots as usize], spare: None }
    }

    /// Records a packet of the flow in `slot` that arrives now.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, meta: &Meta, flow: Option<(usize, &FlowKey)>) {
        self.open.packets.push(Meta { arrived: now, ..*meta });
        if let Some((slot, key)) = flow
            && let Some(noted) = self.noted.get_mut(slot)
        {
            let this = u64::from(self.number) << 32 | u64::from(meta.flow.index());
            if *noted != this {
                *noted = this;
                self.open.flows.push((meta.flow, *key));
            }
        }
        if self.open.packets.len() >= CHUNK {
            self.close(now);
        }
    }

    /// Begins another chunk, and forgets those that are too old or too many.
    #[inline(never)]
    fn close(&mut self, now: Instant) {
        while let Some(oldest) = self.whole.front()
            && (self.whole.len() >= MOST_PACKETS / CHUNK - 1 || oldest.is_older_than(now))
        {
            let oldest = self.whole.pop_front().and_then(Arc::into_inner);
            self.spare = oldest.map(Chunk::emptied).or(self.spare.take());
        }
        let next = self.spare.take().unwrap_or_default();
        self.whole.push_back(Arc::new(std::mem::replace(&mut self.open, next)));
        self.number = self.number.wrapping_add(1).max(1);
    }

    /// All packets so far.
    pub(super) fn record(&self) -> Record {
        let mut chunks: Vec<Arc<Chunk>> = self.whole.iter().cloned().collect();
        chunks.push(Arc::new(self.open.clone()));
        Record { chunks }
    }
}

impl Chunk {
    fn is_older_than(&self, now: Instant) -> bool {
        self.packets.last().is_none_or(|last| now.since(last.arrived) > SPAN)
    }

    /// This chunk's memory.
    fn emptied(mut self) -> Self {
        self.packets.clear();
        self.flows.clear();
        // Memory for a flow of each packet is not kept.
        self.flows.shrink_to(CHUNK / 8);
        self
    }
}

/// The packets of one direction that came lately, oldest first. A copy shares the memory.
#[derive(Clone, Default, Debug)]
pub struct Record {
    chunks: Vec<Arc<Chunk>>,
}

impl Record {
    /// The metadata of the packets that came at `since` or later. [`Meta::arrived`] is the time of arrival.
    pub fn packets(&self, since: Instant) -> impl Iterator<Item = &Meta> {
        let first = self.chunks.partition_point(|chunk| chunk.packets.last().is_some_and(|last| last.arrived < since));
        let later = self.chunks[first..].iter().flat_map(|chunk| &chunk.packets);
        later.filter(move |meta| meta.arrived >= since)
    }

    /// The addresses of every flow that has a packet at `since` or later.
    #[must_use]
    pub fn flows(&self, since: Instant) -> BTreeMap<FlowId, FlowKey> {
        let later = |chunk: &&Arc<Chunk>| chunk.packets.last().is_some_and(|last| last.arrived >= since);
        self.chunks.iter().filter(later).flat_map(|chunk| chunk.flows.iter().copied()).collect()
    }

    /// The time of arrival of the oldest packet.
    #[must_use]
    pub fn begins(&self) -> Option<Instant> {
        self.chunks.iter().flat_map(|chunk| chunk.packets.first()).map(|meta| meta.arrived).next()
    }

    /// True if older packets within [`SPAN`] are not there, since more came than are kept.
    #[must_use]
    pub fn is_cut(&self, now: Instant) -> bool {
        self.chunks.len() >= MOST_PACKETS / CHUNK && self.begins().is_some_and(|begins| now.since(begins) < SPAN)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_packet::FlowAddresses;

    use super::*;

    fn key(flow: u32) -> FlowKey {
        FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(flow)), protocol: 17 }
    }

    /// A packet of this flow, at this time.
    fn note(recorder: &mut Recorder, ms: u64, flow: u32, slot: usize) {
        let meta = Meta { flow: FlowId::new(flow), ip_len: 100, ..Meta::default() };
        recorder.note(Instant::ZERO + Duration::from_ms(ms), &meta, Some((slot, &key(flow))));
    }

    #[test]
    fn packets_older_than_the_span_are_forgotten_and_their_memory_used_again() {
        let mut recorder = Recorder::new(16);
        // Ten packets a second for ten minutes.
        for count in 0..6000_u64 {
            note(&mut recorder, count * 100, (count % 4) as u32, (count % 4) as usize);
        }
        let record = recorder.record();
        let packets = record.packets(Instant::ZERO).count() as u64;
        // 75 s, and up to a chunk more on either side.
        assert!((750..=750 + 2 * CHUNK as u64).contains(&packets), "{packets}");
        assert_eq!(record.flows(Instant::ZERO).len(), 4);
        let since = Instant::ZERO + Duration::from_s(599);
        assert_eq!(record.packets(since).count(), 10);
        assert!(!record.is_cut(Instant::ZERO + Duration::from_s(600)));
    }

    #[test]
    fn the_number_of_packets_has_a_bound_even_if_a_reader_keeps_a_copy() {
        let mut recorder = Recorder::new(16);
        let mut kept = Vec::new();
        for count in 0..(2 * MOST_PACKETS as u64) {
            note(&mut recorder, count / 100, 3, 3);
            if count.is_multiple_of(100_000) {
                kept.push(recorder.record());
            }
        }
        let record = recorder.record();
        let packets = record.packets(Instant::ZERO).count();
        assert!((MOST_PACKETS - CHUNK..=MOST_PACKETS).contains(&packets), "{packets}");
        assert!(record.is_cut(Instant::ZERO + Duration::from_ms(2 * MOST_PACKETS as u64 / 100)));
        // A reader's copy does not change.
        assert_eq!(kept[1].packets(Instant::ZERO).count(), 100_001);
    }

    #[test]
    fn a_flow_that_takes_over_a_slot_has_addresses_of_its_own() {
        let mut recorder = Recorder::new(1);
        for flow in [0, 0, 7, 0, 7] {
            note(&mut recorder, 1, flow, 0);
        }
        let flows = recorder.record().flows(Instant::ZERO);
        assert_eq!(flows.into_iter().collect::<Vec<_>>(), [(FlowId::new(0), key(0)), (FlowId::new(7), key(7))]);
    }
}
