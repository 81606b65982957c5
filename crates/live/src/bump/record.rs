//! The headers of the packets that came lately, for questions about other queues ([`super::replay`]).
//!
//! Each direction has a recorder of its own. It keeps the metadata of each packet on arrival (80
//! bytes: time, sizes, flags, sequence and acknowledgement numbers, options), the addresses of
//! each flow once a chunk, and time, flow and reason of each drop (16 bytes). No payload is kept.
//!
//! Bounds: [`SPAN`] of time and [`MOST_PACKETS`] packets in each direction, whichever is less. Memory
//! follows the traffic, in chunks that are used again. A direction takes at most 37 MB if each packet
//! is of a new flow and is dropped, and 21 MB with the flows of a usual line; slots of flows take 2 MB.
//!
//! Cost per packet: one copy of 80 bytes and one look at the flow's slot. A reader gets references to
//! whole chunks and a copy of the open one, at most 72 kB, so that it delays no packet noticeably.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lastmile_packet::{FlowId, FlowKey, Meta};
use lastmile_queueing::discipline::DropReason;
use lastmile_units::{Duration, Instant};

/// The longest time that is kept: a minute to look at, and time before it in which queues fill.
pub const SPAN: Duration = Duration::from_s(75);

/// The most packets that are kept in one direction.
pub const MOST_PACKETS: usize = 1 << 18;

/// Packets of a chunk, and drops of a chunk with packets, at most.
const CHUNK: usize = 512;

/// Packets that came one after another.
#[derive(Clone, Default, Debug)]
struct Chunk {
    /// Their metadata on arrival.
    packets: Vec<Meta>,
    /// The flows among them.
    flows: Vec<(FlowId, FlowKey)>,
    /// The packets that the hops dropped meanwhile.
    drops: Vec<Dropped>,
}

/// A packet that a hop dropped.
#[derive(Clone, Copy, Debug)]
struct Dropped {
    at: Instant,
    flow: FlowId,
    reason: DropReason,
}

// The bounds above: 2^18 times this, and 512 times this.
const _: () = assert!(size_of::<Meta>() + size_of::<(FlowId, FlowKey)>() + size_of::<Dropped>() == 140);

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

    /// Records that a hop drops a packet of this flow.
    #[inline]
    pub(super) fn note_drop(&mut self, at: Instant, flow: FlowId, reason: DropReason) {
        self.open.drops.push(Dropped { at, flow, reason });
        // A chunk has a time by its packets. Without arrivals, no more is dropped than waits.
        if self.open.drops.len() >= CHUNK && !self.open.packets.is_empty() {
            self.close(at);
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
        self.drops.clear();
        // Memory for a flow and a drop of each packet is not kept.
        self.flows.shrink_to(CHUNK / 8);
        self.drops.shrink_to(CHUNK / 8);
        self
    }
}

/// The packets of a flow in a time.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FlowTotal {
    /// The flow; `None` if its packets were unreadable.
    pub key: Option<FlowKey>,
    /// Packets that came.
    pub packets: u64,
    /// IP bytes of these.
    pub bytes: u64,
    /// Packets that a hop dropped.
    pub dropped: u64,
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
        self.keys(since).collect()
    }

    /// Flows with their addresses, some repeatedly.
    fn keys(&self, since: Instant) -> impl Iterator<Item = (FlowId, FlowKey)> {
        let later = move |chunk: &&Arc<Chunk>| chunk.packets.last().is_some_and(|last| last.arrived >= since);
        self.chunks.iter().filter(later).flat_map(|chunk| chunk.flows.iter().copied())
    }

    /// The number of flows that have a packet at `since` or later, and the `most` of these with the most bytes, the
    /// largest first. Drops from `since` on count if `counts` is true of their reason.
    #[must_use]
    pub fn largest_flows(
        &self,
        since: Instant,
        most: usize,
        counts: impl Fn(DropReason) -> bool,
    ) -> (usize, Vec<FlowTotal>) {
        let mut flows: BTreeMap<FlowId, FlowTotal> = BTreeMap::new();
        for meta in self.packets(since) {
            let total = flows.entry(meta.flow).or_default();
            total.packets += 1;
            total.bytes += u64::from(meta.ip_len);
        }
        let count = flows.len();
        let mut largest: Vec<(FlowId, FlowTotal)> = flows.into_iter().collect();
        largest.sort_unstable_by_key(|(flow, total)| (Reverse(total.bytes), *flow));
        largest.truncate(most);
        let mut shown: BTreeMap<FlowId, &mut FlowTotal> = largest.iter_mut().map(|(id, total)| (*id, total)).collect();
        for (flow, key) in self.keys(since) {
            if let Some(total) = shown.get_mut(&flow) {
                total.key = Some(key);
            }
        }
        // Drops of several hops are not in the order of time.
        for gone in self.chunks.iter().flat_map(|chunk| &chunk.drops) {
            if gone.at >= since
                && counts(gone.reason)
                && let Some(total) = shown.get_mut(&gone.flow)
            {
                total.dropped += 1;
            }
        }
        (count, largest.into_iter().map(|(_, total)| total).collect())
    }

    /// The time of arrival of the oldest packet.
    #[must_use]
    pub fn begins(&self) -> Option<Instant> {
        self.chunks.iter().flat_map(|chunk| chunk.packets.first()).map(|meta| meta.arrived).next()
    }

    /// The beginning of the time that ends at `now` and has every packet: `span` ago, but not before the start of the
    /// run nor before the oldest packet of a record that is cut.
    #[must_use]
    pub fn reaches_back(&self, now: Instant, span: Duration) -> Instant {
        let since = Instant::ZERO + now.since(Instant::ZERO).saturating_sub(span);
        self.begins().filter(|_| self.is_cut(now)).map_or(since, |begins| since.max(begins))
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
    use proptest::prelude::*;

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
        let at = |second| Instant::ZERO + Duration::from_s(second);
        assert!(!record.is_cut(at(600)));
        let five = Duration::from_s(5);
        assert_eq!([3, 600].map(|now| record.reaches_back(at(now), five)), [at(0), at(595)]);
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
        let now = Instant::ZERO + Duration::from_ms(2 * MOST_PACKETS as u64 / 100);
        assert!(record.is_cut(now));
        // 100 packets a millisecond: the record has 2.6 s. A shorter time is whole, and the start is its beginning.
        let reaches_back = |now, ms| record.reaches_back(now, Duration::from_ms(ms));
        assert_eq!(reaches_back(now, 5000), record.packets(Instant::ZERO).next().unwrap().arrived);
        assert!((2610..=2622).contains(&now.since(reaches_back(now, 5000)).as_ms()));
        assert_eq!(now.since(reaches_back(now, 1000)), Duration::from_ms(1000));
        // A reader's copy does not change.
        assert_eq!(kept[1].packets(Instant::ZERO).count(), 100_001);
    }

    /// Each packet is of a new flow, and is dropped: neither packets nor flows nor drops exceed the bound.
    #[test]
    fn a_flood_of_flows_takes_no_more_than_the_bound() {
        let mut recorder = Recorder::new(1 << 10);
        for count in 0..(2 * MOST_PACKETS as u32) {
            let ms = u64::from(count) / 100;
            note(&mut recorder, ms, count, count as usize % (1 << 10));
            recorder.note_drop(Instant::ZERO + Duration::from_ms(ms), FlowId::new(count), DropReason::Tail);
        }
        let chunks = recorder.record().chunks;
        let kept = |of: fn(&Chunk) -> usize| chunks.iter().map(|chunk| of(chunk)).sum::<usize>();
        let kept = [kept(|c| c.packets.len()), kept(|c| c.flows.len()), kept(|c| c.drops.len())];
        assert!(kept.iter().all(|kept| (MOST_PACKETS - 2 * CHUNK..=MOST_PACKETS).contains(kept)), "{kept:?}");
        let (flows, largest) = recorder.record().largest_flows(Instant::ZERO, 3, |_| true);
        assert_eq!((flows, largest.len()), (kept[0], 3));
        assert!(largest.iter().all(|flow| (flow.packets, flow.bytes, flow.dropped) == (1, 100, 1)));
    }

    proptest! {
        /// Packets and drops of a few flows at any times, in the order of time: totals are those of a plain count.
        #[test]
        fn the_largest_flows_are_those_of_a_plain_count(
            steps in prop::collection::vec((0..3_u64, 0..6_u32, 0..4_u16, any::<bool>()), 0..2000),
            since in 0..2000_u64,
            most in 0..8_usize,
        ) {
            let mut recorder = Recorder::new(8);
            let since = Instant::ZERO + Duration::from_ms(since);
            let mut plain: BTreeMap<u32, (u64, u64, u64)> = BTreeMap::new();
            let mut now = Instant::ZERO;
            for (gap, flow, size, is_drop) in steps {
                now += Duration::from_ms(gap);
                let (id, late) = (FlowId::new(flow), u64::from(now >= since));
                let (packets, bytes, dropped) = plain.entry(flow).or_default();
                if is_drop {
                    let reason = if size == 0 { DropReason::AckFiltered } else { DropReason::Aqm };
                    recorder.note_drop(now, id, reason);
                    *dropped += late * u64::from(size != 0);
                } else {
                    let meta = Meta { flow: id, ip_len: size, ..Meta::default() };
                    // The last flow has no addresses.
                    recorder.note(now, &meta, (flow < 5).then_some((flow as usize, &key(flow))));
                    (*packets, *bytes) = (*packets + late, *bytes + late * u64::from(size));
                }
            }
            let mut expected: Vec<_> = plain.into_iter().filter(|(_, (packets, ..))| *packets > 0).collect();
            expected.sort_by_key(|(flow, (_, bytes, _))| (Reverse(*bytes), *flow));
            let (count, largest) =
                recorder.record().largest_flows(since, most, |reason| reason != DropReason::AckFiltered);
            prop_assert_eq!(count, expected.len());
            let total = |&(flow, (packets, bytes, dropped)): &(u32, (u64, u64, u64))| {
                FlowTotal { key: (flow < 5).then(|| key(flow)), packets, bytes, dropped }
            };
            prop_assert_eq!(largest, expected.iter().take(most).map(total).collect::<Vec<_>>());
        }
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
