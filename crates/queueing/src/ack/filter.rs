//! ACK filter (AF): a queue in which a new ACK replaces older ones of its flow.
//!
//! Published: Balakrishnan, Padmanabhan, Katz 1997; RFC 3449, section 5.2.1. When an ACK arrives,
//! queued older ACKs of its flow are removed, all or a fraction of them, and the new one goes to
//! the tail.
//!
//! Differs: the publications do not define redundancy. Here an ACK is removed only for one that has a higher
//! number, or an equal number and another window, has the same sequence number or a later one, carries all
//! information of its options (see [`super`]), and reports the marks that all between the two report. A duplicate
//! protects itself and the ACK that it repeats, since fast retransmit counts them all, but for those with SACK
//! blocks behind the third. With [`Duplicates::Remove`] duplicates are filtered like any older ACK, as a filter
//! does that compares numbers alone. Data with ECE or CWR protect the ACK before them, which has neither and so
//! reports the end of congestion (RFC 3168, section 6.1). Nothing is removed in favour of an ACK that does not fit
//! afterwards.
//! Cost: one table look-up a packet; O(1) for each ACK removed or found protected, once. The queue
//! is never scanned: the removable ACKs of a flow are chained. Memory: an entry for each flow with
//! a queued pure ACK.

use std::collections::hash_map::Entry;

use lastmile_packet::{FlowId, Packet, PureAck, SeqNumber, TcpFlags};
use lastmile_units::Instant;

use super::flow_map::FlowMap;
use super::linked_fifo::{Handle, LinkedFifo};
use super::{AckKind, Filter, Filtered, Newest, Regulated, gives_way, may_stand_for};
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::fifo::Capacity;
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Limit, Node, Overflow};

/// Treatment of duplicate ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplicates {
    /// They are kept, and so is the ACK that they repeat, as fast retransmit needs.
    #[default]
    Keep,
    /// They are filtered like any other older ACK.
    Remove,
}

/// The share of the removable older ACKs of a flow that a new one removes: above 0, at most 1.
///
/// Of n queued ACKs, n times the share are removed, rounded down, the oldest first. So at most 1 /
/// share of them are queued, rounded up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fraction {
    numerator: u32,
    denominator: u32,
}

impl Fraction {
    /// All older ACKs.
    pub const ALL: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; `None` unless it is above 0 and at most 1.
    #[must_use]
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator == 0 || numerator > denominator { None } else { Some(Self { numerator, denominator }) }
    }

    const fn of(self, count: u32) -> u32 {
        // At most `count`, since the share is at most 1.
        (count as u64 * self.numerator as u64 / self.denominator as u64) as u32
    }
}

/// Parameters of a filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// The share of older ACKs that a new one removes.
    pub fraction: Fraction,
    /// Treatment of duplicates.
    pub duplicates: Duplicates,
    /// Packets that are never removed and remove nothing.
    pub exempt: Match,
}

/// Removes all older ACKs, keeps duplicates, exempts nothing.
impl Default for Rules {
    fn default() -> Self {
        Self { fraction: Fraction::ALL, duplicates: Duplicates::Keep, exempt: Match::Never }
    }
}

/// A FIFO with an ACK filter.
#[derive(Clone, Debug)]
pub struct AckFilter<P> {
    fifo: LinkedFifo<QueuedPacket<P>>,
    flows: FlowMap<Flow>,
    capacity: Capacity,
    overflow: Overflow,
    rules: Rules,
    exempt: Condition,
    stats: Regulated,
}

#[derive(Clone, Debug)]
struct QueuedPacket<P> {
    packet: P,
    chain: Chain,
    /// ACKs for which it stands, itself included.
    count: u32,
}

/// Links of a packet in the chain of removable ACKs of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chain {
    /// Not in the chain: no pure ACK, or protected.
    Unchained,
    /// Between these neighbours.
    In { before: Option<Handle>, after: Option<Handle> },
}

/// Effect of an arriving packet on the queued ACKs of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// None, and it will not be removed.
    NoEffect,
    /// It protects the ACK that it repeats, and itself.
    Protects,
    /// It removes this many of the oldest, and a later ACK may remove it.
    Removes(u32),
}

/// The queued pure ACKs of one flow.
#[derive(Clone, Debug)]
struct Flow {
    /// Their number, protected ones included.
    queued: u32,
    newest: Newest,
    /// The chain of removable ACKs: its oldest and its newest.
    chain: Option<(Handle, Handle)>,
    chained: u32,
}

impl<P: Packet> AckFilter<P> {
    /// An empty queue. `None`: the limit is in cells, and the line sends none.
    #[must_use]
    pub fn new(limit: Limit, overflow: Overflow, rules: &Rules, environment: &Environment) -> Option<Self> {
        Some(Self {
            fifo: LinkedFifo::new(),
            flows: FlowMap::default(),
            capacity: Capacity::new(limit, &environment.link_layer)?,
            overflow,
            rules: rules.clone(),
            exempt: Condition::new(&rules.exempt, environment),
            stats: Regulated::default(),
        })
    }

    fn decide(&mut self, now: Instant, packet: &P) -> Verdict {
        let Some(ack) = self.stats.passed.may_regulate(now, packet, &mut self.exempt) else {
            return Verdict::NoEffect;
        };
        self.stats.seen += 1;
        let Some(flow) = self.flows.get_mut(&ack.flow) else {
            return Verdict::Removes(0);
        };
        flow.protect_from_change(ack.flags, &mut self.fifo);
        match (flow.newest.kind_of(ack.segment()), self.rules.duplicates) {
            (AckKind::Old, _) => {
                self.stats.passed.old += 1;
                Verdict::NoEffect
            }
            (AckKind::Duplicate, Duplicates::Keep) if !flow.newest.is_spare(ack) => {
                self.stats.duplicates_kept += 1;
                Verdict::Protects
            }
            _ => Verdict::Removes(self.rules.fraction.of(flow.chained)),
        }
    }

    /// Space that would be released if the first `count` ACKs of the flow's chain gave way to
    /// `newer` where they may.
    fn freed_by(&self, newer: PureAck<'_>, count: u32) -> u64 {
        let (mut freed, mut stands_for) = (0, 1);
        self.visit_chain(newer.flow, count, |queued| {
            if queued.gives_way(newer, stands_for) {
                stands_for += queued.count;
                freed += self.capacity.size_of(&queued.packet);
            }
        });
        freed
    }

    fn visit_chain(&self, flow: FlowId, count: u32, mut visit: impl FnMut(&QueuedPacket<P>)) {
        let mut at = self.flows.get(&flow).and_then(|flow| flow.chain).map(|(oldest, _)| oldest);
        for _ in 0..count {
            let Some(handle) = at else { return };
            let queued = self.fifo.get(handle);
            visit(queued);
            at = queued.chain.after();
        }
    }

    /// Removes the first `count` ACKs of the flow's chain in favour of `newer`; those that do not
    /// give way are protected. Returns the number of ACKs for which `newer` then stands.
    fn filter(&mut self, now: Instant, newer: PureAck<'_>, count: u32, drops: &mut dyn DropSink<P>) -> u32 {
        let mut stands_for = 1;
        for _ in 0..count {
            let Some(handle) = self.flows.get_mut(&newer.flow).and_then(|flow| flow.unchain_oldest(&mut self.fifo))
            else {
                break;
            };
            let queued = self.fifo.get(handle);
            if queued.gives_way(newer, stands_for) {
                stands_for += queued.count;
                self.stats.dropped += 1;
                let packet = self.take(handle);
                drops.dropped(now, packet, DropReason::AckFiltered);
            } else {
                self.stats.protected += 1;
            }
        }
        stands_for
    }

    /// Appends a packet that stands for `count` ACKs, and updates the state of its flow.
    fn append(&mut self, packet: P, size: u64, verdict: Verdict, count: u32) {
        self.capacity.take(&packet, size);
        let handle = self.fifo.push_back(QueuedPacket { packet, chain: Chain::Unchained, count });
        let Some(ack) = self.fifo.get(handle).packet.meta().pure_ack() else {
            self.note_other(handle);
            return;
        };
        let (number, flags) = (ack.ack, ack.flags);
        let flow = self.flows.entry(ack.flow).or_insert_with(|| Flow::new(ack));
        if flow.queued > 0 {
            flow.newest.note(ack.segment());
        }
        flow.queued += 1;
        match verdict {
            Verdict::NoEffect => flow.protect_from_change(flags, &mut self.fifo),
            Verdict::Protects => flow.protect(number, &mut self.fifo),
            Verdict::Removes(_) => flow.enchain(handle, &mut self.fifo),
        }
    }

    /// Updates the state of a flow with an appended packet that is no pure ACK.
    fn note_other(&mut self, handle: Handle) {
        let packet = &self.fifo.get(handle).packet;
        // Checksums of payload are computed only if the flow has a queued ACK to protect.
        let Some(flow) = self.flows.get_mut(&packet.meta().flow) else { return };
        let Some(segment) = packet.segment() else { return };
        if segment.flags.contains(TcpFlags::ACK) {
            flow.newest.note(segment);
        }
        if segment.flags.intersects(TcpFlags::ACE) {
            flow.protect_newest(&mut self.fifo);
        } else if segment.flags.contains(TcpFlags::ACK) {
            flow.protect_from_change(segment.flags, &mut self.fifo);
        }
    }

    /// Removes a packet that is in no chain.
    fn take(&mut self, handle: Handle) -> P {
        let packet = self.fifo.remove(handle).packet;
        self.capacity.release(&packet);
        if packet.meta().pure_ack().is_some()
            && let Entry::Occupied(mut entry) = self.flows.entry(packet.meta().flow)
        {
            entry.get_mut().queued -= 1;
            if entry.get().queued == 0 {
                entry.remove();
            }
        }
        packet
    }

    fn take_first(&mut self) -> Option<P> {
        let first = self.fifo.first()?;
        let queued = self.fifo.get(first);
        if queued.chain != Chain::Unchained {
            let flow = self.flows.get_mut(&queued.packet.meta().flow).expect("a chained ACK has a flow");
            let oldest = flow.unchain_oldest(&mut self.fifo);
            debug_assert_eq!(oldest, Some(first), "the oldest packet of all is the oldest of its flow");
        }
        Some(self.take(first))
    }
}

impl<P: Packet> Discipline<P> for AckFilter<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let size = self.capacity.size_of(&packet);
        if self.capacity.never_fits(size) {
            self.stats.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        let verdict = self.decide(now, &packet);
        let removes = match verdict {
            Verdict::Removes(count) => packet.meta().pure_ack().map(|ack| (ack, count)),
            _ => None,
        };
        if self.overflow == Overflow::Tail && !self.capacity.fits(size) {
            let freed = removes.map_or(0, |(ack, count)| self.freed_by(ack, count));
            if !self.capacity.would_fit(size, freed) {
                self.stats.tally.tail += 1;
                drops.dropped(now, packet, DropReason::Tail);
                return;
            }
        }
        let stands_for = removes.map_or(1, |(ack, count)| self.filter(now, ack, count, drops));
        while !self.capacity.fits(size) {
            let oldest = self.take_first().expect("an empty queue holds any packet within its limit");
            self.stats.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
        }
        self.append(packet, size, verdict, stands_for);
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        let packet = self.take_first()?;
        self.stats.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.capacity.backlog(self.fifo.len())
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show("ack-filter", "dropped_ack_filtered", visit);
    }
}

impl<P: Packet> QueuedPacket<P> {
    /// True for a pure ACK that may be removed in favour of `newer`, which stands for `count` ACKs so far.
    fn gives_way(&self, newer: PureAck<'_>, count: u32) -> bool {
        may_stand_for(&newer, count + self.count)
            && self.packet.meta().pure_ack().is_some_and(|older| gives_way(older, newer))
    }
}

impl Chain {
    const fn before(self) -> Option<Handle> {
        match self {
            Self::Unchained => None,
            Self::In { before, .. } => before,
        }
    }

    const fn after(self) -> Option<Handle> {
        match self {
            Self::Unchained => None,
            Self::In { after, .. } => after,
        }
    }
}

impl Flow {
    fn new(ack: PureAck<'_>) -> Self {
        Self { queued: 0, newest: Newest::of(ack.segment()), chain: None, chained: 0 }
    }

    fn enchain<P>(&mut self, handle: Handle, fifo: &mut LinkedFifo<QueuedPacket<P>>) {
        let before = self.chain.map(|(_, newest)| newest);
        fifo.get_mut(handle).chain = Chain::In { before, after: None };
        if let Some(before) = before {
            let chain = &mut fifo.get_mut(before).chain;
            *chain = Chain::In { before: chain.before(), after: Some(handle) };
        }
        self.chain = Some((self.chain.map_or(handle, |(oldest, _)| oldest), handle));
        self.chained += 1;
    }

    fn unchain_oldest<P>(&mut self, fifo: &mut LinkedFifo<QueuedPacket<P>>) -> Option<Handle> {
        let (oldest, newest) = self.chain?;
        let after = std::mem::replace(&mut fifo.get_mut(oldest).chain, Chain::Unchained).after();
        if let Some(after) = after {
            let chain = &mut fifo.get_mut(after).chain;
            *chain = Chain::In { before: None, after: chain.after() };
        }
        self.chain = after.map(|after| (after, newest));
        self.chained -= 1;
        Some(oldest)
    }

    /// Removes the ACK with the number of a duplicate from the chain. It can only be the newest.
    fn protect<P: Packet>(&mut self, duplicate: SeqNumber, fifo: &mut LinkedFifo<QueuedPacket<P>>) {
        if self.chain.is_some_and(|(_, newest)| fifo.get(newest).packet.meta().ack == duplicate) {
            self.protect_newest(fifo);
        }
    }

    /// Protects the newest ACK if `flags` report other marks: it must not give way to an ACK after a change back.
    fn protect_from_change<P: Packet>(&mut self, flags: TcpFlags, fifo: &mut LinkedFifo<QueuedPacket<P>>) {
        if self.chain.is_some_and(|(_, newest)| fifo.get(newest).packet.meta().flags.ace() != flags.ace()) {
            self.protect_newest(fifo);
        }
    }

    fn protect_newest<P>(&mut self, fifo: &mut LinkedFifo<QueuedPacket<P>>) {
        let Some((oldest, newest)) = self.chain else { return };
        let before = std::mem::replace(&mut fifo.get_mut(newest).chain, Chain::Unchained).before();
        if let Some(before) = before {
            let chain = &mut fifo.get_mut(before).chain;
            *chain = Chain::In { before: chain.before(), after: None };
        }
        self.chain = before.map(|before| (oldest, before));
        self.chained -= 1;
    }
}

/// The parameters of a queue with an ACK filter.
pub type Config = Filtered<Rules>;

impl Filter for Rules {
    fn exempt(&self) -> &Match {
        &self.exempt
    }

    fn queue<P: Packet + Send + 'static>(&self, of: &Config, environment: &Environment) -> Option<Node<P>> {
        Some(Box::new(AckFilter::new(of.limit, of.drop, self, environment)?))
    }
}

#[cfg(test)]
mod tests;
