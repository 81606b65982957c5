//! One tin of CAKE: 1024 queues, a set-associative hash that finds them, and the rounds in which
//! they are served.
//!
//! The hash selects a queue; if another flow has it, the seven others of its set of eight are
//! tried. Flows therefore share a queue only once nine fall into one set: 256 flows hardly ever do,
//! where with a plain hash thirty of them would share.
//!
//! The rounds are DRR++ (MacGregor, Shi 2000): a new flow is *sparse* and has priority over flows
//! that have used up a quantum, which are *bulk*. The quantum of a flow is that of the tin divided
//! by the number of bulk flows of its host. A flow whose queue is empty keeps its queue,
//! *decaying*, until its AQM is back in its initial state.

use std::collections::{BTreeMap, VecDeque};

use lastmile_packet::{Meta, Packet};
use lastmile_units::{BitRate, Instant, Serialiser, WireBytes};

use super::cobalt::{Cobalt, Settings, Signal};
use super::isolation::{HostLoad, Hosts, Isolation, mix};
use super::shaper::Fate;
use super::stats::Stats;
use super::{Config, Ledger, Shared};
use crate::ack::linked_fifo::{Handle, LinkedFifo};
use crate::discipline::Counter;
use crate::{DropReason, DropSink};

/// Queues of a tin.
pub(super) const QUEUES: usize = 1024;
/// Queues of a set.
const WAYS: usize = 8;

/// State of a queue in the rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum QueueState {
    /// Free for any flow.
    #[default]
    Idle,
    /// In the list of new flows: it has priority until its quantum is used up.
    Sparse,
    /// In the list of old flows with an empty queue, to pay for its quantum: still counted as
    /// sparse.
    Paying,
    /// In the list of old flows.
    Bulk,
    /// Empty, but reserved for its flow.
    Decaying,
}

#[derive(Debug)]
struct Flow<P> {
    packets: VecDeque<P>,
    /// Backlog in IP bytes.
    bytes: u64,
    /// Tag of the flow that has the queue, or had it last.
    tag: Option<u64>,
    hosts: Hosts,
    /// Tags of flows that share the queue for lack of their own.
    guests: Vec<u64>,
    state: QueueState,
    /// The position of the queue in the list of its state.
    position: Option<Handle>,
    /// Bytes on the wire that it may send in this round.
    deficit: i64,
    /// Remainder of the last division of the quantum.
    remainder: u32,
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
            state: QueueState::Idle,
            position: None,
            deficit: 0,
            remainder: 0,
            law: Cobalt::default(),
        }
    }
}

/// Service of a tin without a rate, by deficit round robin among the tins.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Bytes on the wire a round.
    weight: i64,
    /// Bytes on the wire that it may still send in this round.
    deficit: i64,
}

/// The lists of queues: sparse ones have priority over bulk ones.
#[derive(Debug)]
struct Rounds {
    new: LinkedFifo<u16>,
    old: LinkedFifo<u16>,
    /// Empty queues whose AQM is not yet in its initial state; checked, not served.
    decaying: LinkedFifo<u16>,
}

/// The result of one turn of a queue.
enum Pulled<P> {
    Packet(P),
    /// The AQM dropped a packet of this size, which is charged to the queue.
    Charged(WireBytes),
    /// The queue is empty.
    Nothing,
}

/// A tin.
#[derive(Debug)]
pub(super) struct Tin<P> {
    number: u32,
    name: String,
    isolation: Isolation,
    settings: Settings,
    /// Bytes on the wire a round, for a flow that is its host's only one.
    quantum: u32,
    /// The rate up to which it has priority, and the time at which its traffic is down to that
    /// rate.
    threshold: Option<Serialiser>,
    pub(super) next: Instant,
    share: Share,
    /// Empty before the first packet: most tins never see one.
    flows: Vec<Flow<P>>,
    /// Flows without a queue of their own, and the queue that they share until it is empty, so that
    /// they keep their order.
    guests: BTreeMap<u64, u16>,
    rounds: Rounds,
    load: HostLoad,
    packets: u64,
    stats: Stats,
}

/// The quantum of a tin of this rate: a 4096th of a second, from 300 to 1514 bytes.
fn quantum(rate: BitRate) -> u32 {
    u32::try_from((rate.as_bps() / 8 / 4096).clamp(300, 1514)).expect("at most 1514")
}

impl<P: Packet> Tin<P> {
    /// The tin of this number; `largest` is the largest packet on the wire.
    pub(super) fn new(config: &Config, number: usize, largest: WireBytes) -> Self {
        let rate = config.bandwidth.map(|bandwidth| config.diffserv.threshold_rate(number, bandwidth));
        Self {
            number: u32::try_from(number).expect("at most eight tins"),
            name: format!("tins.{}", config.diffserv.names()[number]),
            isolation: config.isolation,
            settings: Settings::new(config.rtt, rate, largest),
            quantum: rate.map_or(1514, quantum),
            threshold: rate.map(Serialiser::new),
            next: Instant::ZERO,
            share: Share { weight: config.diffserv.weight(number), deficit: 0 },
            flows: Vec::new(),
            guests: BTreeMap::new(),
            rounds: Rounds { new: LinkedFifo::new(), old: LinkedFifo::new(), decaying: LinkedFifo::new() },
            load: HostLoad::default(),
            packets: 0,
            stats: Stats::default(),
        }
    }

    /// Changes what follows from the bandwidth of the shaper.
    pub(super) fn set_rate(&mut self, now: Instant, bandwidth: BitRate, config: &Config, largest: WireBytes) {
        let rate = config.diffserv.threshold_rate(self.number as usize, bandwidth);
        self.settings = Settings::new(config.rtt, Some(rate), largest);
        self.quantum = quantum(rate);
        if let Some(threshold) = &mut self.threshold {
            let left = threshold.change_rate(rate, self.next.since(now));
            self.next = self.next.min(now).saturating_add(left);
        }
    }

    /// True while a round has a flow to serve.
    pub(super) fn is_active(&self) -> bool {
        self.rounds.new.first().is_some() || self.rounds.old.first().is_some()
    }

    /// True if it has the turn, where tins share by weight. Otherwise its deficit grows for its
    /// next turn.
    pub(super) fn has_turn(&mut self) -> bool {
        let has = self.share.deficit >= 0 && self.is_active();
        if !has && self.share.deficit <= 0 {
            self.share.deficit += self.share.weight;
        }
        has
    }

    /// Number of a queue in the ledger: one range a tin.
    fn name_of(&self, index: usize) -> u32 {
        self.number * QUEUES as u32 + index as u32
    }

    /// The bytes of each backlogged queue, by its number in the ledger.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let waiting = self.flows.iter().enumerate().filter(|(_, flow)| flow.bytes > 0);
        waiting.map(|(index, flow)| (flow.bytes, self.name_of(index)))
    }

    /// Enqueues a packet.
    pub(super) fn push(
        &mut self,
        now: Instant,
        packet: P,
        hosts: Hosts,
        shared: &mut Shared,
        drops: &mut dyn DropSink<P>,
    ) {
        if self.packets == 0 {
            self.next = self.next.max(now);
        }
        let index = self.queue_for(self.isolation.tag(packet.meta().flow, hosts), hosts);
        let redundant = shared.ack_filter.and_then(|mode| {
            let older = self.flows[index].packets.iter().enumerate().map(|(position, older)| (position, older.meta()));
            crate::ack::cake::redundant(mode, older, &packet)
        });
        if let Some(position) = redundant {
            let older = self.take(index, position, &mut shared.ledger).expect("the packet is in this queue");
            self.stats.dropped_ack_filtered += 1;
            self.charge_dropped(now, &older, shared);
            drops.dropped(now, older, DropReason::AckFiltered);
        }
        let name = self.name_of(index);
        let flow = &mut self.flows[index];
        let bytes = u64::from(packet.meta().ip_len);
        shared.ledger.add(name, flow.bytes, bytes);
        flow.bytes += bytes;
        self.packets += 1;
        flow.packets.push_back(packet);
        self.activate(index);
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
            if self.flows[way(n)].state == QueueState::Idle {
                self.flows[way(n)].hosts = hosts;
            }
            return way(n);
        }
        if let Some(&index) = self.guests.get(&tag) {
            return usize::from(index);
        }
        if let Some(n) = (0..WAYS).find(|&n| self.flows[way(n)].state == QueueState::Idle) {
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

    /// Moves a queue that has received a packet to the list in which it is served.
    fn activate(&mut self, index: usize) {
        match self.flows[index].state {
            QueueState::Idle | QueueState::Decaying => {
                self.remove_from_list(index);
                self.flows[index].deficit = self.quantum_of(index);
                self.insert_into_list(index, QueueState::Sparse);
            }
            // It is in the list of old flows already.
            QueueState::Paying => self.become_bulk(index),
            QueueState::Sparse | QueueState::Bulk => {}
        }
    }

    /// The flow's share of the tin's quantum. The remainder of the division is carried, so that
    /// shares are exact.
    fn quantum_of(&mut self, index: usize) -> i64 {
        let flow = &mut self.flows[index];
        let load = self.load.of(flow.hosts);
        let whole = self.quantum + flow.remainder;
        flow.remainder = whole % load;
        i64::from(whole / load)
    }

    fn become_bulk(&mut self, index: usize) {
        self.load.add(self.isolation, self.flows[index].hosts);
        self.flows[index].state = QueueState::Bulk;
    }

    /// The list of queues in this state.
    fn list(&mut self, state: QueueState) -> Option<&mut LinkedFifo<u16>> {
        match state {
            QueueState::Idle => None,
            QueueState::Sparse => Some(&mut self.rounds.new),
            QueueState::Paying | QueueState::Bulk => Some(&mut self.rounds.old),
            QueueState::Decaying => Some(&mut self.rounds.decaying),
        }
    }

    fn remove_from_list(&mut self, index: usize) {
        if let Some(position) = self.flows[index].position.take() {
            let state = self.flows[index].state;
            self.list(state).expect("a position belongs to a list").remove(position);
        }
        if self.flows[index].state == QueueState::Bulk {
            self.load.remove(self.isolation, self.flows[index].hosts);
        }
        self.flows[index].state = QueueState::Idle;
    }

    fn insert_into_list(&mut self, index: usize, state: QueueState) {
        debug_assert_eq!(self.flows[index].state, QueueState::Idle, "it was removed from its list");
        let position = self.list(state).map(|list| list.push_back(index as u16));
        self.flows[index].position = position;
        match state {
            QueueState::Bulk => self.become_bulk(index),
            _ => self.flows[index].state = state,
        }
    }

    /// Serves the flow that has the turn. `None`: it had no packet, and has left the rounds.
    ///
    /// If `decays` is set, a decaying flow is checked first, and `decays` is cleared.
    pub(super) fn serve(
        &mut self,
        now: Instant,
        decays: &mut bool,
        shared: &mut Shared,
        drops: &mut dyn DropSink<P>,
    ) -> Option<P> {
        loop {
            let decaying = if std::mem::take(decays) { self.rounds.decaying.first() } else { None };
            let index = match (decaying, self.rounds.new.first(), self.rounds.old.first()) {
                (Some(position), ..) => *self.rounds.decaying.get(position),
                (None, Some(position), _) => *self.rounds.new.get(position),
                (None, None, Some(position)) => *self.rounds.old.get(position),
                (None, None, None) => return None,
            };
            let index = usize::from(index);
            if self.flows[index].deficit <= 0 {
                self.next_round(index);
                continue;
            }
            match self.pull(index, now, shared, drops) {
                Pulled::Packet(packet) => {
                    let wire = self.charge(now, &packet, Fate::Sent, shared);
                    self.pay(index, wire);
                    self.stats.sent_packets += 1;
                    self.stats.sent_bytes += u64::from(packet.meta().ip_len);
                    self.stats.sent_wire_bytes += wire.as_u64();
                    return Some(packet);
                }
                Pulled::Charged(wire) => self.pay(index, wire),
                Pulled::Nothing => {
                    self.retire(index, now);
                    return None;
                }
            }
        }
    }

    /// Takes the bytes of a packet from the deficits of its flow and of the tin.
    fn pay(&mut self, index: usize, wire: WireBytes) {
        let paid = i64::try_from(wire.as_u64()).expect("the wire bytes of a packet");
        self.flows[index].deficit -= paid;
        self.share.deficit -= paid;
    }

    /// The flow has used up its quantum: it moves to the end with a new one.
    fn next_round(&mut self, index: usize) {
        let previous = self.flows[index].state;
        if previous == QueueState::Bulk {
            // The load of its hosts does not change.
            let position = self.flows[index].position.expect("a bulk flow is in the list of old flows");
            self.rounds.old.remove(position);
            self.flows[index].position = Some(self.rounds.old.push_back(index as u16));
            self.flows[index].deficit += self.quantum_of(index);
            return;
        }
        let empty = self.flows[index].packets.is_empty();
        let state = match previous {
            QueueState::Sparse | QueueState::Paying if empty => QueueState::Paying,
            _ => QueueState::Bulk,
        };
        // A flow that turns from sparse to bulk counts in its own share already.
        self.remove_from_list(index);
        self.insert_into_list(index, state);
        self.flows[index].deficit += self.quantum_of(index);
    }

    /// The next packet of a queue that its AQM passes. If drops are charged, each ends the turn.
    fn pull(&mut self, index: usize, now: Instant, shared: &mut Shared, drops: &mut dyn DropSink<P>) -> Pulled<P> {
        let settings = if shared.ingress { self.settings.shared_by(self.load.flows()) } else { self.settings };
        loop {
            let Some(mut packet) = self.take(index, 0, &mut shared.ledger) else { return Pulled::Nothing };
            let waited = now.since(packet.meta().arrived);
            let flow = &mut self.flows[index];
            let markable = packet.meta().ecn() != Meta::NOT_ECT;
            match flow.law.on_dequeue(&settings, now, (waited, markable), &mut shared.random) {
                Signal::Pass => return Pulled::Packet(packet),
                Signal::Mark if packet.mark_ce() => {
                    self.stats.marked += 1;
                    return Pulled::Packet(packet);
                }
                // The last packet of a queue is never dropped: no packet would follow to show its
                // receiver the loss.
                Signal::Mark | Signal::Drop if flow.packets.is_empty() => return Pulled::Packet(packet),
                Signal::Mark | Signal::Drop => {
                    self.stats.dropped_aqm += 1;
                    let charged = self.charge_dropped(now, &packet, shared);
                    drops.dropped(now, packet, DropReason::Aqm);
                    if let Some(wire) = charged {
                        return Pulled::Charged(wire);
                    }
                }
            }
        }
    }

    /// Removes an empty queue from the rounds. It decays until its AQM is back in its initial
    /// state.
    fn retire(&mut self, index: usize, now: Instant) {
        for tag in std::mem::take(&mut self.flows[index].guests) {
            self.guests.remove(&tag);
        }
        self.flows[index].law.found_empty(&self.settings, now);
        let state = if self.flows[index].law.has_state(now) { QueueState::Decaying } else { QueueState::Idle };
        self.remove_from_list(index);
        self.insert_into_list(index, state);
    }

    /// Drops the oldest packet of a queue that is the largest of all.
    pub(super) fn drop_oldest(&mut self, index: usize, now: Instant, shared: &mut Shared, drops: &mut dyn DropSink<P>) {
        let oldest = self.take(index, 0, &mut shared.ledger).expect("the largest queue holds something");
        self.charge_dropped(now, &oldest, shared);
        self.flows[index].law.overflowed(&self.settings, now);
        self.stats.dropped_head += 1;
        drops.dropped(now, oldest, DropReason::Head);
    }

    /// Removes the packet at this position from a queue.
    fn take(&mut self, index: usize, position: usize, ledger: &mut Ledger) -> Option<P> {
        let name = self.name_of(index);
        let flow = &mut self.flows[index];
        let packet = flow.packets.remove(position)?;
        let bytes = u64::from(packet.meta().ip_len);
        ledger.remove(name, flow.bytes, bytes);
        flow.bytes -= bytes;
        self.packets -= 1;
        Some(packet)
    }

    /// Charges a packet to the shaper, and to the tin's threshold. Capacity unused before the pause that ended
    /// with its first packet does not count. Returns its bytes on the wire.
    fn charge(&mut self, now: Instant, packet: &P, fate: Fate, shared: &mut Shared) -> WireBytes {
        let wire = shared.link_layer.on_wire(packet.meta().ip_bytes());
        if let Some(threshold) = &mut self.threshold {
            let span = threshold.advance(wire);
            self.next =
                if self.next < now { self.next.saturating_add(span) } else { self.next.max(now.saturating_add(span)) };
        }
        if let Some(shaper) = &mut shared.shaper {
            shaper.charge(now, wire, fate);
        }
        wire
    }

    /// Charges a dropped packet, if the slow line stands before this queue.
    fn charge_dropped(&mut self, now: Instant, packet: &P, shared: &mut Shared) -> Option<WireBytes> {
        shared.ingress.then(|| self.charge(now, packet, Fate::Dropped, shared))
    }

    /// Shows the counters.
    pub(super) fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(&self.name, visit);
    }
}
