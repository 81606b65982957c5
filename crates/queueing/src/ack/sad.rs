//! Smart ACK Dropper (SAD): at most one mergeable ACK of each flow waits, and it leaves with the newest values.
//!
//! Published: Kalyanaraman, Shekhar, Kidambi 1999; Phanse 2000 applies it to ADSL. Design: a table by flow says whether an
//! ACK of the flow waits, and what the newest one said. A newer ACK updates the table and is dropped; the one that waits
//! takes the table's values when it leaves.
//!
//! Differs, so that the sender never sees what TCP could not have sent (see [`super`]):
//!
//! - *Nothing is overtaken.* The ACK that waits may take newer values only while it is the last packet of its flow in the
//!   queue. A duplicate that is kept, a data segment that carries an ACK, a FIN, an ACK that passes untouched: each *closes*
//!   it, and the next ACK waits behind in its own right. So what leaves of a flow is always a subsequence of what came.
//! - *The header tells one truth.* Only number, window and options are rewritten. An ACK with another sequence number (data
//!   went another way; a keep-alive) or another traffic class waits in its own right.
//! - *SACK blocks and timestamps* of the newest ACK win. Where they would not tell all that the ACK that waits tells, the
//!   newest waits in its own right.
//!
//! What it suppresses it can *report* to an [`AckRegenerator`](super::AckRegenerator) at the far end of the line ([`Report`]): in
//! an option of the ACK that leaves, or in a packet ahead of it, whose bytes are sent like any other. The publications
//! have a regenerator and leave open how it learns the numbers. Every number is then told or leaves by itself: an ACK whose number
//! the list has no room for waits in its own right, and so does one that the regenerator could not restore from its
//! number (SACK blocks, a window update, timestamps where the other has none).
//!
//! Should the discipline below drop an ACK that waits, its record goes with it; what had been merged into it is counted
//! (`lost_acks`). The discipline below must not rewrite pure ACKs of its own: then it is only best effort, and yet no
//! record outlives the packets of its flow.
//! Cost: one table look-up a packet; no queue is ever scanned. Memory: a record for each flow of which a pure ACK waits,
//! and one for each closed ACK.

mod stats;
mod table;

use std::collections::hash_map::Entry;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{AckList, FlowId, Packet};
use lastmile_units::{ByteCount, Instant, PacketCount};

use self::stats::Stats;
use self::table::{Record, Table, Waiting};
use super::Standing;
use crate::catalogue::Above;
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Node};

/// What happens to duplicate ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplicates {
    /// They are queued untouched, so that fast retransmit lives.
    #[default]
    Keep,
    /// They are dropped and counted ([`Suppressed::duplicates`]), for a regenerator at the far end to restore. Their options
    /// live on in the ACK that waits.
    Count,
}

/// How what was suppressed is told to a regenerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Report {
    /// Not at all.
    #[default]
    None,
    /// In an option in the IP header of the ACK that leaves.
    List,
    /// In a packet right ahead of the ACK that leaves.
    Signal,
}

impl Report {
    /// Bytes of the list.
    const fn room(self) -> usize {
        match self {
            Self::None => 0,
            Self::List => AckList::MAX_OPTION_BYTES,
            Self::Signal => AckList::MAX_BYTES,
        }
    }
}

/// What one ACK stands for besides itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Suppressed {
    /// ACKs that were merged into it.
    pub merged: u32,
    /// Duplicate ACKs that were counted with it.
    pub duplicates: u32,
}

impl Suppressed {
    fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::AckDuplicate => self.duplicates += 1,
            _ => self.merged += 1,
        }
    }
}

/// A Smart ACK Dropper in front of a queue.
#[derive(Debug)]
pub struct SmartAckDropper<P, D = Node<P>> {
    queue: D,
    duplicates: Duplicates,
    report: Report,
    exempt: Condition,
    table: Table,
    /// What the ACK stood for that left last.
    departed: Suppressed,
    /// The ACK whose signal left last, rewritten, and the bytes with which it came.
    held: Option<(P, u16)>,
    stats: Stats,
}

impl<P: Packet> SmartAckDropper<P> {
    /// The usual one: duplicates are kept, nothing is reported, no packet is exempt.
    #[must_use]
    pub fn over(queue: Node<P>) -> Self {
        Self::new(queue, Duplicates::Keep, Report::None, Match::Never.into())
    }
}

impl<P, D> SmartAckDropper<P, D> {
    /// A dropper in front of `queue`. What `exempt` matches is never regulated.
    #[must_use]
    pub fn new(queue: D, duplicates: Duplicates, report: Report, exempt: Condition) -> Self {
        Self {
            queue,
            duplicates,
            report,
            exempt,
            table: Table::default(),
            departed: Suppressed::default(),
            held: None,
            stats: Stats::default(),
        }
    }

    /// What the newest ACK of `flow` that waits stands for. `None`: no pure ACK of the flow waits.
    #[must_use]
    pub fn waiting(&self, flow: FlowId) -> Option<Suppressed> {
        self.table.flows.get(&flow).map(|record| record.last.suppressed)
    }

    /// What the packet that left last stood for: nothing unless it was a pure ACK.
    #[must_use]
    pub const fn departed(&self) -> Suppressed {
        self.departed
    }

    /// What waits below, and the ACK that waits for its signal to leave.
    #[inline]
    fn with_held(&self, mut backlog: Backlog) -> Backlog {
        if let Some((_, came)) = &self.held {
            backlog.packets += PacketCount::new(1);
            backlog.bytes += ByteCount::new(u64::from(*came));
        }
        backlog
    }

    /// Decides on a packet that came. `None`: it goes to the queue, and if it is a pure ACK its record stands.
    fn admit(&mut self, now: Instant, packet: &P) -> Option<DropReason>
    where
        P: Packet,
    {
        let Some(ack) = self.stats.passed.may_regulate(now, packet, &mut self.exempt) else {
            self.table.pass(packet);
            return None;
        };
        self.stats.seen += 1;
        let tellable = self.report == Report::None || (ack.options().may_have_list() && packet.takes_list());
        let record = match self.table.flows.entry(ack.flow) {
            Entry::Vacant(place) => {
                place.insert(Record::new(ack)).last.open = tellable;
                self.stats.not_tellable += u64::from(!tellable);
                return None;
            }
            Entry::Occupied(place) => place.into_mut(),
        };
        let standing = record.newest.standing_of(ack.segment());
        record.newest.note(ack.segment());
        let reason = match (standing, self.duplicates) {
            (Standing::Old, _) => {
                self.stats.passed.old += 1;
                record.push(Waiting::closed(ack));
                return None;
            }
            (Standing::Duplicate, Duplicates::Keep) => {
                self.stats.duplicates_kept += 1;
                record.push(Waiting::closed(ack));
                return None;
            }
            (Standing::Duplicate, Duplicates::Count) => DropReason::AckDuplicate,
            (Standing::Advance | Standing::WindowUpdate, _) => DropReason::AckMerged,
        };
        if !tellable || (standing == Standing::WindowUpdate && self.report != Report::None) {
            self.stats.not_tellable += 1;
            record.push(Waiting::closed(ack));
            return None;
        }
        if record.last.open && record.last.may_become(ack) {
            if self.report != Report::None {
                if !record.last.tell(ack, self.report.room()) {
                    self.stats.list_full += 1;
                    record.push(Waiting::open(ack));
                    return None;
                }
                self.stats.listed += 1;
            }
            record.last.newest = ack.fields();
            record.last.suppressed.count(reason);
            self.stats.count(reason);
            return Some(reason);
        }
        self.stats.kept_apart += u64::from(record.last.open);
        record.push(Waiting::open(ack));
        None
    }

    /// Gives the ACK what the table has for it, and tells what it stands for; returns what leaves first.
    fn release(&mut self, now: Instant, mut packet: P, waited: &Waiting, drops: &mut dyn DropSink<P>) -> P
    where
        P: Packet,
    {
        self.departed = waited.suppressed;
        let mut newest = waited.newest;
        // Only a regulator of its own below could have made it newer.
        let Some(came_as) = packet.meta().pure_ack().filter(|came| newest.ack.at_or_after(came.ack)) else {
            return packet;
        };
        let came_as = came_as.fields();
        if self.report == Report::List && !waited.list.is_empty() {
            newest.options = newest.options.with_list(&waited.list);
        }
        let came = packet.meta().ip_len;
        let rewritten = newest != came_as;
        if rewritten {
            packet.rewrite_ack(&newest);
            self.stats.rewritten += 1;
        }
        if self.report == Report::Signal && !waited.list.is_empty() {
            let signal = packet.signal(&waited.list);
            self.stats.signals += 1;
            drops.created(now, &signal);
            self.held = Some((packet, came));
            return signal;
        }
        self.stats.resized(came, packet.meta().ip_len);
        packet
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for SmartAckDropper<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if let Some(reason) = self.admit(now, &packet) {
            drops.dropped(now, packet, reason);
            return;
        }
        let mut told = Told { table: &mut self.table, stats: &mut self.stats, drops };
        self.queue.enqueue(now, packet, &mut told);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if let Some((packet, came)) = self.held.take() {
            self.stats.resized(came, packet.meta().ip_len);
            return Some(packet);
        }
        let mut told = Told { table: &mut self.table, stats: &mut self.stats, drops };
        let packet = self.queue.dequeue(now, &mut told)?;
        self.departed = Suppressed::default();
        if let Some(waited) = packet.meta().pure_ack().and_then(|ack| self.table.take(ack)) {
            return Some(self.release(now, packet, &waited, drops));
        }
        Some(packet)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.held.is_some() { Some(now) } else { self.queue.next_ready(now) }
    }

    fn backlog(&self) -> Backlog {
        self.with_held(self.queue.backlog())
    }

    fn standing(&self, now: Instant) -> (Backlog, Option<Instant>) {
        let (backlog, ready) = self.queue.standing(now);
        (self.with_held(backlog), if self.held.is_some() { Some(now) } else { ready })
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }
}

/// Strikes what the queue drops from the table, on its way to the sink.
struct Told<'a, P> {
    table: &'a mut Table,
    stats: &'a mut Stats,
    drops: &'a mut dyn DropSink<P>,
}

impl<P: Packet> DropSink<P> for Told<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        if let Some(lost) = packet.meta().pure_ack().and_then(|ack| self.table.take(ack)) {
            self.stats.lost_acks += u64::from(lost.suppressed.merged);
            self.stats.lost_duplicates += u64::from(lost.suppressed.duplicates);
        }
        self.drops.dropped(now, packet, reason);
    }

    /// A regenerator below makes ACKs that never came by here: each leaves as it is.
    fn created(&mut self, now: Instant, packet: &P) {
        if packet.meta().pure_ack().is_some() {
            self.table.pass(packet);
        }
        self.drops.created(now, packet);
    }
}

/// The parameters of a Smart ACK Dropper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What happens to duplicate ACKs.
    pub duplicates: Duplicates,
    /// How a regenerator hears of the ACKs that were suppressed.
    pub report: Report,
    /// Packets that are never regulated.
    pub exempt: Match,
}

/// True when an ACK regenerator is in this tree.
fn regenerates(spec: &Spec) -> bool {
    matches!(spec, Spec::AckRegenerator(_)) || spec.below().into_iter().any(regenerates)
}

impl Above for Config {
    fn check(&self, queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        if regenerates(queue) {
            return Err(Problem::RegeneratorBelow);
        }
        Ok(self.exempt.check()?)
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        let exempt = Condition::new(&self.exempt, environment);
        Ok(Box::new(SmartAckDropper::new(queue, self.duplicates, self.report, exempt)))
    }
}

#[cfg(test)]
mod tests;
