//! ACK collapsing: every ACK waits; when the oldest of a flow is to leave, the newest goes in its place and the rest is
//! dropped.
//!
//! Published: the filtering of RFC 3449, section 5.2.1 (Balakrishnan, Padmanabhan, Katz 1997), done when a packet is
//! transmitted instead of when one is queued; thus the newest ACK is at the head, where the [filter](super::filter)'s waits at
//! the tail.
//!
//! Differs: the publication leaves open what is redundant. Here the ACK to leave gives way to the next of its flow in the
//! queue, that to the one behind it, and so on, as long as each acknowledges more or updates the window of the same, comes from the same
//! sequence number or a later one, and tells all that the one before tells (see [`super`]). The first that does not, or that is no
//! regulated ACK (data, a flag, a duplicate, which fast retransmit counts), ends the run: nothing of a flow is overtaken by
//! what came later and left earlier, and a duplicate stays behind the ACK that it repeats.
//! Since every ACK waits until then, a queue that is full of ACKs refuses packets, where a filter makes room.
//! Cost: one table look-up a packet on the way in, one on the way out; O(1) for each ACK dropped. The queue is never scanned.
//! Memory: an entry for each flow of which something waits.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::Instant;

use super::flow_fifo::FlowFifo;
use super::linked_fifo::Handle;
use super::{Regulated, Standing, gives_way};
use crate::catalogue::{Built, Mechanism};
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::fifo::check_limit;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Limit, Overflow};

/// Whether a packet that waits is part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// An ACK that may give way to a newer one, or be that newer one.
    Link,
    /// It leaves as it came, and nothing leaves in its place.
    Apart,
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
    /// An empty queue; what `exempt` matches leaves as it came. `None`: the limit is in cells, and the line sends none.
    #[must_use]
    pub fn new(limit: Limit, overflow: Overflow, exempt: &Match, environment: &Environment) -> Option<Self> {
        let queue = FlowFifo::new(limit, &environment.link_layer)?;
        Some(Self { queue, overflow, exempt: Condition::new(exempt, environment), stats: Regulated::default() })
    }

    fn role_of(&mut self, now: Instant, packet: &P) -> Role {
        let Some(ack) = self.stats.passed.may_regulate(now, packet, &mut self.exempt) else {
            return Role::Apart;
        };
        self.stats.seen += 1;
        match self.queue.standing_of(ack) {
            None | Some(Standing::Advance | Standing::WindowUpdate) => Role::Link,
            Some(Standing::Duplicate) => {
                self.stats.duplicates_kept += 1;
                Role::Apart
            }
            Some(Standing::Old) => {
                self.stats.passed.old += 1;
                Role::Apart
            }
        }
    }

    /// What may leave in place of this ACK, if it is the next of its flow.
    fn next_in_run(&mut self, handle: Handle) -> Option<Handle> {
        if self.queue.note(handle) == Role::Apart {
            return None;
        }
        let next = self.queue.after(handle).filter(|&next| self.queue.note(next) == Role::Link)?;
        let [older, newer] = [handle, next].map(|handle| self.queue.packet(handle).meta().pure_ack());
        let may = older.zip(newer).is_some_and(|(older, newer)| gives_way(older, newer));
        self.stats.protected += u64::from(!may);
        may.then_some(next)
    }
}

impl<P: Packet> Discipline<P> for AckCollapsing<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let size = self.queue.room.size_of(&packet);
        if self.queue.room.never_fits(size) {
            self.stats.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        if self.overflow == Overflow::Tail && !self.queue.room.fits(size) {
            self.stats.tally.tail += 1;
            drops.dropped(now, packet, DropReason::Tail);
            return;
        }
        self.queue.make_room(size, |oldest| {
            self.stats.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
        });
        let role = self.role_of(now, &packet);
        self.queue.push_back(packet, size, role);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut leaving = self.queue.first()?;
        while let Some(newer) = self.next_in_run(leaving) {
            self.stats.dropped += 1;
            drops.dropped(now, self.queue.remove(leaving), DropReason::AckCollapsed);
            leaving = newer;
        }
        let packet = self.queue.remove(leaving);
        self.stats.tally.sent(&packet);
        Some(packet)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.queue.first().map(|_| now)
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
    /// How much it holds.
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

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let queue = AckCollapsing::new(self.limit, self.drop, &self.exempt, site.environment);
        Ok(Box::new(queue.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
