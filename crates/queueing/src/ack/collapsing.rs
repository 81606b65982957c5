//! ACK collapsing: all ACKs are queued; when the oldest of a flow is to depart, the newest departs
//! in its position and the others are dropped.
//!
//! Published: the filtering of RFC 3449, section 5.2.1 (Balakrishnan, Padmanabhan, Katz 1997), done
//! when a packet is transmitted instead of when one is queued. The newest ACK is therefore at the
//! head, where that of the [filter](super::filter) is at the tail.
//!
//! Differs: the publication does not define redundancy. Here the ACK about to depart gives way to the next of its
//! flow in the queue, that one to its next, and so on. Each must have a higher number, or an equal number and
//! another window, must have the same sequence number or a later one, and must carry all information of the ACK
//! before it (see [`super`]). The run ends at the first ACK that does not, and at any other packet of the flow
//! (data, a flag, a duplicate, which fast retransmit counts, but for those with SACK blocks behind the third). So
//! no packet of a flow is overtaken by a later one, and a duplicate stays behind the ACK that it repeats.
//! Since all ACKs are queued until then, a queue that is full of ACKs refuses packets, where a
//! filter frees space.
//! Cost: one table look-up a packet at enqueue, one at dequeue; O(1) for each ACK dropped. The
//! queue is never scanned. Memory: an entry for each flow with queued packets.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::flow_fifo::FlowFifo;
use super::linked_fifo::Handle;
use super::{AckKind, Regulated, gives_way, may_stand_for};
use crate::catalogue::{Built, Mechanism};
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::fifo::check_limit;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Limit, Overflow};

/// Role of a queued packet in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// An ACK that may give way to a newer one, or be the newer one.
    Link,
    /// It departs unchanged, and no packet departs in its position.
    Fixed,
}

/// A FIFO that collapses ACKs.
#[derive(Clone, Debug)]
pub struct AckCollapsing<P> {
    queue: FlowFifo<P, Role>,
    overflow: Overflow,
    exempt: Condition,
    stats: Regulated,
}

impl<P: Packet> AckCollapsing<P> {
    /// An empty queue; packets that `exempt` matches depart unchanged. `None` if the limit is in
    /// cells and the line has none.
    #[must_use]
    pub fn new(limit: Limit, overflow: Overflow, exempt: &Match, environment: &Environment) -> Option<Self> {
        let queue = FlowFifo::new(limit, &environment.link_layer)?;
        Some(Self { queue, overflow, exempt: Condition::new(exempt, environment), stats: Regulated::default() })
    }

    fn role_of(&mut self, now: Instant, packet: &P) -> Role {
        let Some(ack) = self.stats.passed.may_regulate(now, packet, &mut self.exempt) else {
            return Role::Fixed;
        };
        self.stats.seen += 1;
        match self.queue.kind_of(ack) {
            None | Some(AckKind::Advance | AckKind::WindowUpdate) => Role::Link,
            Some(AckKind::Duplicate) if self.queue.is_spare(ack) => Role::Link,
            Some(AckKind::Duplicate) => {
                self.stats.duplicates_kept += 1;
                Role::Fixed
            }
            Some(AckKind::Old) => {
                self.stats.passed.old += 1;
                Role::Fixed
            }
        }
    }

    /// The packet that may depart in the position of this ACK, which stands for `count`: the next of
    /// its flow, if that is in the run.
    fn next_in_run(&mut self, handle: Handle, count: u32) -> Option<Handle> {
        if self.queue.note(handle) == Role::Fixed {
            return None;
        }
        let next = self.queue.after(handle).filter(|&next| self.queue.note(next) == Role::Link)?;
        let [older, newer] = [handle, next].map(|handle| self.queue.packet(handle).meta().pure_ack());
        let may =
            older.zip(newer).is_some_and(|(older, newer)| gives_way(older, newer) && may_stand_for(&newer, count + 1));
        self.stats.protected += u64::from(!may);
        may.then_some(next)
    }
}

impl<P: Packet> Discipline<P> for AckCollapsing<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let size = self.queue.capacity.size_of(&packet);
        if self.queue.capacity.never_fits(size) {
            self.stats.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        if self.overflow == Overflow::Tail && !self.queue.capacity.fits(size) {
            self.stats.tally.tail += 1;
            drops.dropped(now, packet, DropReason::Tail);
            return;
        }
        self.queue.free_space(size, |oldest| {
            self.stats.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
        });
        let role = self.role_of(now, &packet);
        self.queue.push_back(packet, size, role);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let (mut departing, mut count) = (self.queue.first()?, 1);
        while let Some(newer) = self.next_in_run(departing, count) {
            count += 1;
            self.stats.dropped += 1;
            drops.dropped(now, self.queue.remove(departing), DropReason::AckCollapsed);
            departing = newer;
        }
        let packet = self.queue.remove(departing);
        self.stats.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show("ack-collapsing", "dropped_ack_collapsed", visit);
    }
}

/// The parameters of a queue that collapses ACKs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The capacity of the queue.
    pub limit: Limit,
    /// Which packet goes when it is full.
    pub drop: Overflow,
    /// Packets that are never regulated.
    pub exempt: Match,
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(self.exempt.check()?)
    }

    fn thins_acks(&self) -> bool {
        true
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let queue = AckCollapsing::new(self.limit, self.drop, &self.exempt, site.environment);
        Ok(Box::new(queue.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
