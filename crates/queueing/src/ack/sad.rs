//! Smart ACK Dropper (SAD): at most one mergeable ACK of each flow is queued, and it departs with
//! the newest values.
//!
//! Published: Kalyanaraman, Shekhar, Kidambi 1999; Phanse 2000 applies it to ADSL. Design: a table
//! by flow holds whether an ACK of the flow is queued, and the values of the newest one. A newer
//! ACK updates the table and is dropped; the queued one takes the table's values when it departs.
//!
//! Differs, so that the sender never sees ACKs that TCP could not have sent (see [`super`]):
//!
//! - *Nothing is overtaken.* The queued ACK may take newer values only while it is the last packet
//!   of its flow in the queue. Any later packet of the flow *closes* it: a duplicate that is kept,
//!   a data segment that carries an ACK, a FIN, an ACK that passes unchanged. The next ACK is then
//!   queued separately. The packets that depart are always a subsequence of those that arrived.
//! - *Headers stay consistent.* Only number, window and options are rewritten. An ACK with another
//!   sequence number (data was sent between; a keep-alive), other ECN feedback or another traffic
//!   class is queued separately.
//! - *SACK blocks and timestamps* of the newest ACK are used. If they lack information of the
//!   queued ACK, the newest is queued separately.
//!
//! It can *report* suppressed ACKs to an [`AckRegenerator`](super::AckRegenerator) at the far end
//! of the line ([`Report`]): in an option of the departing ACK, or in a packet ahead of it, whose
//! bytes are sent like any other. The publications have a regenerator and leave open how it learns
//! the numbers. With a report every number is reported or departs in an ACK of its own: an ACK is
//! queued separately if its number does not fit into the list, or if the regenerator could not
//! restore it from its number (SACK blocks, a window update, timestamps that the other lacks).
//!
//! If the discipline below drops a queued ACK, its record is removed; the ACKs merged into it are
//! counted (`lost_acks`). The discipline below must not rewrite pure ACKs itself: values are then
//! best effort, but no record outlives the packets of its flow.
//! Cost: one table look-up a packet; no queue is ever scanned. Memory: a record for each flow with
//! a queued pure ACK, and one for each closed ACK.

mod stats;
mod table;

use std::collections::hash_map::Entry;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{AckList, Packet};
use lastmile_units::{ByteCount, Instant, PacketCount};

use self::stats::Stats;
use self::table::{QueuedAck, Record, Table};
use super::AckKind;
use crate::catalogue::Above;
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Node};
pub use table::Suppressed;

/// Treatment of duplicate ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplicates {
    /// Duplicate ACKs are queued unchanged, as fast retransmit needs. Behind three queued ones, those with SACK blocks
    /// are merged.
    #[default]
    Keep,
    /// Duplicate ACKs are dropped and counted ([`Suppressed::duplicates`]), for a regenerator at the far end to
    /// restore. The queued ACK takes their options.
    Count,
}

/// Report of suppressed ACKs to a regenerator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Report {
    /// No report.
    #[default]
    None,
    /// In an option in the IP header of the departing ACK.
    List,
    /// In a packet directly ahead of the departing ACK.
    Signal,
}

impl Report {
    /// Capacity of the list in bytes.
    const fn list_capacity(self) -> usize {
        match self {
            Self::None => 0,
            Self::List => AckList::MAX_OPTION_BYTES,
            Self::Signal => AckList::MAX_BYTES,
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
    /// The rewritten ACK whose signal has just departed, and its IP bytes on arrival.
    behind_signal: Option<(P, u16)>,
    stats: Stats,
}

impl<P: Packet> SmartAckDropper<P> {
    /// The default: duplicates are kept, nothing is reported, no packet is exempt.
    #[must_use]
    pub fn over(queue: Node<P>) -> Self {
        Self::new(queue, Duplicates::Keep, Report::None, Match::Never.into())
    }
}

impl<P, D> SmartAckDropper<P, D> {
    /// A dropper in front of `queue`. Packets that `exempt` matches are never regulated.
    #[must_use]
    pub fn new(queue: D, duplicates: Duplicates, report: Report, exempt: Condition) -> Self {
        Self {
            queue,
            duplicates,
            report,
            exempt,
            table: Table::default(),
            behind_signal: None,
            stats: Stats::default(),
        }
    }

    /// The backlog below, plus the ACK whose signal has just departed.
    #[inline]
    fn with_ack_behind_signal(&self, mut backlog: Backlog) -> Backlog {
        if let Some((_, came)) = &self.behind_signal {
            backlog.packets += PacketCount::new(1);
            backlog.bytes += ByteCount::new(u64::from(*came));
        }
        backlog
    }

    /// Decides on an arriving packet. `None`: it goes to the queue, and a pure ACK has its record.
    fn admit(&mut self, now: Instant, packet: &P) -> Option<DropReason>
    where
        P: Packet,
    {
        let Some(ack) = self.stats.passed.may_regulate(now, packet, &mut self.exempt) else {
            self.table.pass(packet);
            return None;
        };
        self.stats.seen += 1;
        let reportable = self.report == Report::None || (ack.options().may_have_list() && packet.takes_list());
        let record = match self.table.flows.entry(ack.flow) {
            Entry::Vacant(entry) => {
                entry.insert(Record::new(ack)).last.open = reportable;
                self.stats.not_tellable += u64::from(!reportable);
                return None;
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        let kind = record.newest.kind_of(ack.segment());
        let spare = self.report == Report::None && record.newest.is_spare(ack);
        record.newest.note(ack.segment());
        let reason = match (kind, self.duplicates) {
            (AckKind::Old, _) => {
                self.stats.passed.old += 1;
                record.push(QueuedAck::closed(ack));
                return None;
            }
            (AckKind::Duplicate, Duplicates::Keep) => {
                if !(spare && record.last.open && record.last.is_duplicate && record.last.may_become(ack)) {
                    self.stats.duplicates_kept += 1;
                    record.push(QueuedAck::duplicate(ack, spare));
                    return None;
                }
                DropReason::AckMerged
            }
            (AckKind::Duplicate, Duplicates::Count) => DropReason::AckDuplicate,
            (AckKind::Advance | AckKind::WindowUpdate, _) => DropReason::AckMerged,
        };
        if !reportable || (kind == AckKind::WindowUpdate && self.report != Report::None) {
            self.stats.not_tellable += 1;
            record.push(QueuedAck::closed(ack));
            return None;
        }
        if record.last.open && record.last.may_become(ack) {
            if self.report != Report::None {
                if !record.last.add_to_list(ack, self.report.list_capacity()) {
                    self.stats.list_full += 1;
                    record.push(QueuedAck::open(ack));
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
        record.push(QueuedAck::open(ack));
        None
    }

    /// Rewrites a departing ACK with the values of the table, and reports suppressed ACKs; returns
    /// the packet that departs first.
    fn release(&mut self, now: Instant, mut packet: P, waited: &QueuedAck, drops: &mut dyn DropSink<P>) -> P
    where
        P: Packet,
    {
        let mut newest = waited.newest;
        // Only a regulator below can have made it newer.
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
            self.behind_signal = Some((packet, came));
            return signal;
        }
        self.stats.resized(came, packet.meta().ip_len);
        packet
    }
}

impl<P: Packet, D: Discipline<P>> SmartAckDropper<P, D> {
    /// Takes the next packet out of the queue by `dequeue`.
    fn take(
        &mut self,
        now: Instant,
        drops: &mut dyn DropSink<P>,
        dequeue: impl FnOnce(&mut D, Instant, &mut dyn DropSink<P>) -> Option<P>,
    ) -> Option<P> {
        if let Some((packet, came)) = self.behind_signal.take() {
            self.stats.resized(came, packet.meta().ip_len);
            return Some(packet);
        }
        let mut sink = TableUpdater { table: &mut self.table, stats: &mut self.stats, drops };
        let packet = dequeue(&mut self.queue, now, &mut sink)?;
        match packet.meta().pure_ack().and_then(|ack| self.table.take(ack)) {
            Some(waited) => Some(self.release(now, packet, &waited, drops)),
            None => Some(packet),
        }
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for SmartAckDropper<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if let Some(reason) = self.admit(now, &packet) {
            drops.dropped(now, packet, reason);
            return;
        }
        let mut sink = TableUpdater { table: &mut self.table, stats: &mut self.stats, drops };
        self.queue.enqueue(now, packet, &mut sink);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.take(now, drops, D::dequeue)
    }

    /// An ACK behind its signal departs next, in either way.
    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.take(now, drops, D::dequeue_urgent)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.behind_signal.is_some() { Some(now) } else { self.queue.next_ready(now) }
    }

    fn level_ready(&self, now: Instant) -> Option<usize> {
        if self.behind_signal.is_some() { Some(self.level_sent()) } else { self.queue.level_ready(now) }
    }

    fn level_sent(&self) -> usize {
        self.queue.level_sent()
    }

    fn backlog(&self) -> Backlog {
        self.with_ack_behind_signal(self.queue.backlog())
    }

    fn standing(&self, now: Instant) -> (Backlog, Option<Instant>) {
        let (backlog, ready) = self.queue.standing(now);
        (self.with_ack_behind_signal(backlog), if self.behind_signal.is_some() { Some(now) } else { ready })
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.queue.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }
}

/// Removes packets that the queue drops from the table, and passes them to the sink.
struct TableUpdater<'a, P> {
    table: &'a mut Table,
    stats: &'a mut Stats,
    drops: &'a mut dyn DropSink<P>,
}

impl<P: Packet> DropSink<P> for TableUpdater<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        if let Some(lost) = packet.meta().pure_ack().and_then(|ack| self.table.take(ack)) {
            self.stats.lost_acks += u64::from(lost.suppressed.merged);
            self.stats.lost_duplicates += u64::from(lost.suppressed.duplicates);
        }
        self.drops.dropped(now, packet, reason);
    }

    /// A regenerator below makes ACKs that did not arrive here: each departs unchanged.
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
    /// Treatment of duplicate ACKs.
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

    fn thins_acks(&self) -> bool {
        true
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
