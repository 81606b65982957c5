//! One tin of CAKE: 1024 queues, a set-associative hash that finds them, and the rounds in which they are served.
//!
//! The hash names a queue; if another flow has it, the seven others of its set of eight are tried. So flows share a queue only
//! once nine fall into one set: 256 flows hardly ever do, where a plain hash would have thirty of them share.
//!
//! The rounds are DRR++ (MacGregor, Shi 2000): a flow that comes anew is *sparse* and goes before all that have used up a
//! quantum, which are *bulk*. The quantum of a flow is that of the tin by the number of bulk flows that its host has.
//! A flow whose queue is empty keeps its queue, *decaying*, until its AQM has nothing left to remember.

use std::collections::{BTreeMap, VecDeque};

use lastmile_packet::{Meta, Packet};
use lastmile_units::{Instant, Serialiser, WireBytes};

use super::cobalt::{Cobalt, Settings, Signal};
use super::isolation::{HostLoad, Hosts, Isolation, mix};
use super::{Config, Cx, Ledger};
use crate::ack::linked_fifo::{Handle, LinkedFifo};
use crate::discipline::Counter;
use crate::{DropReason, DropSink};

/// Queues of a tin.
pub(super) const QUEUES: usize = 1024;
/// Queues of a set.
const WAYS: usize = 8;

/// What a queue is to the rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Standing {
    /// Free for any flow.
    #[default]
    Idle,
    /// Among the new: it goes first until its quantum is used up.
    Sparse,
    /// Among the old, to pay what it has used, though its queue is empty: still counted as sparse.
    Paying,
    /// Among the old.
    Bulk,
    /// Empty, its place kept.
    Decaying,
}

#[derive(Debug)]
struct Flow<P> {
    packets: VecDeque<P>,
    /// IP bytes that wait.
    bytes: u64,
    /// Whose queue it is, or was last.
    tag: Option<u64>,
    hosts: Hosts,
    /// The tags of those that share it for want of a queue of their own.
    guests: Vec<u64>,
    standing: Standing,
    /// Where it stands in the list of its standing.
    place: Option<Handle>,
    /// Bytes on the wire that it may send in this round.
    deficit: i64,
    /// What the last division of the quantum left over.
    rest: u32,
    law: Cobalt,
}

impl<P> Flow<P> {
    fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            tag: None,
            hosts: None,
            guests: Vec::new(),
            standing: Standing::Idle,
            place: None,
            deficit: 0,
            rest: 0,
            law: Cobalt::default(),
        }
    }
}

/// What a tin counts.
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
    marked: u64,
    dropped_aqm: u64,
    dropped_head: u64,
    dropped_ack_filtered: u64,
    way_hits: u64,
    way_misses: u64,
    way_collisions: u64,
}

/// A tin.
#[derive(Debug)]
pub(super) struct Tin<P> {
    number: u32,
    name: String,
    isolation: Isolation,
    settings: Settings,
    /// Bytes on the wire a round, for a flow whose host has no other.
    quantum: u32,
    /// The rate below which it goes first, and when it will have sent no more than that.
    threshold: Option<Serialiser>,
    pub(super) next: Instant,
    /// Where there is no rate: bytes a round of tins, and what is left of them.
    weight: i64,
    deficit: i64,
    /// None before the first packet: most tins never see one.
    flows: Vec<Flow<P>>,
    /// Flows that found no queue of their own, and whose they share until it is empty: so they keep their order.
    guests: BTreeMap<u64, u16>,
    new: LinkedFifo<u16>,
    old: LinkedFifo<u16>,
    decaying: LinkedFifo<u16>,
    load: HostLoad,
    packets: u64,
    stats: Stats,
}

impl<P: Packet> Tin<P> {
    /// The tin of this number, on a line where the largest packet takes so much.
    pub(super) fn new(config: &Config, number: usize, largest: WireBytes) -> Self {
        let rate = config.bandwidth.map(|bandwidth| config.diffserv.threshold_rate(number, bandwidth));
        // A 4096th of a second at the rate, from 300 to 1514 bytes.
        let quantum = rate.map_or(1514, |rate| (rate.as_bps() / 8 / 4096).clamp(300, 1514));
        Self {
            number: u32::try_from(number).expect("at most eight tins"),
            name: format!("tins.{}", config.diffserv.names()[number]),
            isolation: config.isolation,
            settings: Settings::new(config.rtt, rate, largest),
            quantum: u32::try_from(quantum).expect("at most 1514"),
            threshold: rate.map(Serialiser::new),
            next: Instant::ZERO,
            weight: config.diffserv.weight(number),
            deficit: 0,
            flows: Vec::new(),
            guests: BTreeMap::new(),
            new: LinkedFifo::new(),
            old: LinkedFifo::new(),
            decaying: LinkedFifo::new(),
            load: HostLoad::default(),
            packets: 0,
            stats: Stats::default(),
        }
    }

    /// True while a round has a flow to serve.
    pub(super) fn is_active(&self) -> bool {
        self.new.first().is_some() || self.old.first().is_some()
    }

    /// True if it is its turn, where tins share by weight. Otherwise it has more for its next turn.
    pub(super) fn has_turn(&mut self) -> bool {
        let has = self.deficit >= 0 && self.is_active();
        if !has && self.deficit <= 0 {
            self.deficit += self.weight;
        }
        has
    }

    /// The names of the queues in the ledger: one range a tin.
    fn name_of(&self, index: usize) -> u32 {
        self.number * QUEUES as u32 + index as u32
    }

    /// The bytes of each queue that waits, by its name in the ledger.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let waiting = self.flows.iter().enumerate().filter(|(_, flow)| flow.bytes > 0);
        waiting.map(|(index, flow)| (flow.bytes, self.name_of(index)))
    }

    /// Takes a packet in.
    pub(super) fn push(&mut self, now: Instant, packet: P, hosts: Hosts, cx: &mut Cx, drops: &mut dyn DropSink<P>) {
        if self.packets == 0 {
            self.next = self.next.max(now);
        }
        let index = self.queue_for(self.isolation.tag(packet.meta().flow, hosts), hosts);
        let redundant = cx.ack_filter.and_then(|mode| {
            let older = self.flows[index].packets.iter().enumerate().map(|(place, older)| (place, older.meta()));
            crate::ack::cake::redundant(mode, older, &packet)
        });
        if let Some(place) = redundant {
            let older = self.take(index, place, &mut cx.ledger).expect("it waits there");
            self.stats.dropped_ack_filtered += 1;
            drops.dropped(now, older, DropReason::AckFiltered);
        }
        let name = self.name_of(index);
        let flow = &mut self.flows[index];
        let bytes = u64::from(packet.meta().ip_len);
        cx.ledger.add(name, flow.bytes, bytes);
        flow.bytes += bytes;
        self.packets += 1;
        flow.packets.push_back(packet);
        self.rouse(index);
    }

    /// The queue of the flow with this tag.
    fn queue_for(&mut self, tag: u64, hosts: Hosts) -> usize {
        if self.flows.is_empty() {
            self.flows.resize_with(QUEUES, Flow::new);
        }
        let slot = mix(tag) as usize % QUEUES;
        let set = slot - slot % WAYS;
        let way = |n: usize| set + (slot + n) % WAYS;
        if let Some(n) = (0..WAYS).find(|&n| self.flows[way(n)].tag == Some(tag)) {
            self.stats.way_hits += u64::from(n > 0);
            if self.flows[way(n)].standing == Standing::Idle {
                self.flows[way(n)].hosts = hosts;
            }
            return way(n);
        }
        if let Some(&index) = self.guests.get(&tag) {
            return usize::from(index);
        }
        if let Some(n) = (0..WAYS).find(|&n| self.flows[way(n)].standing == Standing::Idle) {
            self.stats.way_misses += 1;
            let flow = &mut self.flows[way(n)];
            (flow.tag, flow.hosts) = (Some(tag), hosts);
            return way(n);
        }
        self.stats.way_collisions += 1;
        self.guests.insert(tag, slot as u16);
        self.flows[slot].guests.push(tag);
        slot
    }

    /// Puts a queue that has a packet now where it is served.
    fn rouse(&mut self, index: usize) {
        match self.flows[index].standing {
            Standing::Idle | Standing::Decaying => {
                self.leave(index);
                self.flows[index].deficit = self.quantum_of(index);
                self.join(index, Standing::Sparse);
            }
            // It stands among the old already.
            Standing::Paying => self.becomes_bulk(index),
            Standing::Sparse | Standing::Bulk => {}
        }
    }

    /// Its share of the tin's quantum. What the division leaves over is carried, so that shares are exact.
    fn quantum_of(&mut self, index: usize) -> i64 {
        let flow = &mut self.flows[index];
        let load = self.load.of(flow.hosts);
        let whole = self.quantum + flow.rest;
        flow.rest = whole % load;
        i64::from(whole / load)
    }

    fn becomes_bulk(&mut self, index: usize) {
        self.load.add(self.isolation, self.flows[index].hosts);
        self.flows[index].standing = Standing::Bulk;
    }

    /// The list in which queues of this standing wait.
    fn list(&mut self, standing: Standing) -> Option<&mut LinkedFifo<u16>> {
        match standing {
            Standing::Idle => None,
            Standing::Sparse => Some(&mut self.new),
            Standing::Paying | Standing::Bulk => Some(&mut self.old),
            Standing::Decaying => Some(&mut self.decaying),
        }
    }

    fn leave(&mut self, index: usize) {
        if let Some(place) = self.flows[index].place.take() {
            let standing = self.flows[index].standing;
            self.list(standing).expect("who has a place stands in a list").remove(place);
        }
        if self.flows[index].standing == Standing::Bulk {
            self.load.remove(self.isolation, self.flows[index].hosts);
        }
        self.flows[index].standing = Standing::Idle;
    }

    fn join(&mut self, index: usize, standing: Standing) {
        debug_assert_eq!(self.flows[index].standing, Standing::Idle, "it left where it stood");
        let place = self.list(standing).map(|list| list.push_back(index as u16));
        self.flows[index].place = place;
        match standing {
            Standing::Bulk => self.becomes_bulk(index),
            _ => self.flows[index].standing = standing,
        }
    }

    /// Serves the flow whose turn it is. `None`: it had nothing, and has left the rounds.
    ///
    /// One of the decaying flows is looked after first if `decays` says so, which it then does no more.
    pub(super) fn serve(
        &mut self,
        now: Instant,
        decays: &mut bool,
        cx: &mut Cx,
        drops: &mut dyn DropSink<P>,
    ) -> Option<P> {
        loop {
            let decaying = if std::mem::take(decays) { self.decaying.first() } else { None };
            let index = match (decaying, self.new.first(), self.old.first()) {
                (Some(place), ..) => *self.decaying.get(place),
                (None, Some(place), _) => *self.new.get(place),
                (None, None, Some(place)) => *self.old.get(place),
                (None, None, None) => return None,
            };
            let index = usize::from(index);
            if self.flows[index].deficit <= 0 {
                self.next_round(index);
                continue;
            }
            if let Some(packet) = self.pull(index, now, cx, drops) {
                let wire = cx.link_layer.on_wire(packet.meta().ip_bytes());
                let paid = i64::try_from(wire.as_u64()).expect("the wire bytes of a packet");
                self.flows[index].deficit -= paid;
                self.deficit -= paid;
                self.stats.sent_packets += 1;
                self.stats.sent_bytes += u64::from(packet.meta().ip_len);
                self.stats.sent_wire_bytes += wire.as_u64();
                return Some(packet);
            }
            self.retire(index, now);
            return None;
        }
    }

    /// Its quantum is used up: behind all the others, with a new one.
    fn next_round(&mut self, index: usize) {
        let stood = self.flows[index].standing;
        if stood == Standing::Bulk {
            // The load of its hosts stays as it is.
            let place = self.flows[index].place.expect("it stands among the old");
            self.old.remove(place);
            self.flows[index].place = Some(self.old.push_back(index as u16));
            self.flows[index].deficit += self.quantum_of(index);
            return;
        }
        let empty = self.flows[index].packets.is_empty();
        let standing = match stood {
            Standing::Sparse | Standing::Paying if empty => Standing::Paying,
            _ => Standing::Bulk,
        };
        // A flow that turns from sparse to bulk counts in its own share already.
        self.leave(index);
        self.join(index, standing);
        self.flows[index].deficit += self.quantum_of(index);
    }

    /// The next packet of a queue that its AQM lets pass.
    fn pull(&mut self, index: usize, now: Instant, cx: &mut Cx, drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let mut packet = self.take(index, 0, &mut cx.ledger)?;
            let waited = now.since(packet.meta().arrived);
            let flow = &mut self.flows[index];
            let markable = packet.meta().ecn() != Meta::NOT_ECT;
            match flow.law.leaving(&self.settings, now, (waited, markable), &mut cx.random) {
                Signal::Pass => return Some(packet),
                Signal::Mark if packet.mark_ce() => {
                    self.stats.marked += 1;
                    return Some(packet);
                }
                // The last packet of a queue is never dropped: nothing would follow to tell its receiver of the loss.
                Signal::Mark | Signal::Drop if flow.packets.is_empty() => return Some(packet),
                Signal::Mark | Signal::Drop => {
                    self.stats.dropped_aqm += 1;
                    drops.dropped(now, packet, DropReason::Aqm);
                }
            }
        }
    }

    /// A queue that was found empty leaves the rounds, and decays as long as its AQM remembers something.
    fn retire(&mut self, index: usize, now: Instant) {
        for tag in std::mem::take(&mut self.flows[index].guests) {
            self.guests.remove(&tag);
        }
        self.flows[index].law.found_empty(&self.settings, now);
        let standing = if self.flows[index].law.remembers(now) { Standing::Decaying } else { Standing::Idle };
        self.leave(index);
        self.join(index, standing);
    }

    /// Drops the oldest packet of a queue that is the largest of all.
    pub(super) fn drop_oldest(&mut self, index: usize, now: Instant, ledger: &mut Ledger, drops: &mut dyn DropSink<P>) {
        let oldest = self.take(index, 0, ledger).expect("the largest queue holds something");
        self.flows[index].law.overflowed(&self.settings, now);
        self.stats.dropped_head += 1;
        drops.dropped(now, oldest, DropReason::Head);
    }

    /// Takes a packet out of a queue.
    fn take(&mut self, index: usize, place: usize, ledger: &mut Ledger) -> Option<P> {
        let name = self.name_of(index);
        let flow = &mut self.flows[index];
        let packet = flow.packets.remove(place)?;
        let bytes = u64::from(packet.meta().ip_len);
        ledger.remove(name, flow.bytes, bytes);
        flow.bytes -= bytes;
        self.packets -= 1;
        Some(packet)
    }

    /// A packet of the tin was sent: it uses up its threshold. What it did not use before does not count beyond the pause
    /// that its first packet ended.
    pub(super) fn charge(&mut self, now: Instant, wire: WireBytes) {
        let Some(threshold) = &mut self.threshold else { return };
        let span = threshold.advance(wire);
        self.next =
            if self.next < now { self.next.saturating_add(span) } else { self.next.max(now.saturating_add(span)) };
    }

    pub(super) fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let stats = &self.stats;
        let counts = [
            ("sent_packets", stats.sent_packets),
            ("sent_bytes", stats.sent_bytes),
            ("sent_wire_bytes", stats.sent_wire_bytes),
            ("marked", stats.marked),
            ("dropped_aqm", stats.dropped_aqm),
            ("dropped_head", stats.dropped_head),
            ("dropped_ack_filtered", stats.dropped_ack_filtered),
            ("way_hits", stats.way_hits),
            ("way_misses", stats.way_misses),
            ("way_collisions", stats.way_collisions),
        ];
        for (name, value) in counts {
            visit(Counter { path: &self.name, kind: "cake", name, value });
        }
    }
}
