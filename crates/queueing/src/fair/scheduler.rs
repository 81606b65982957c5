//! The common part of fair schedulers: members with heads, served in an order that each scheduler
//! defines.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use super::members::{Among, Classes, Members, PerFlow};
use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::spec::{Problem, Shaper, Site, Spec, shapers_of_class};
use crate::{Backlog, Discipline, DropSink};

/// The order of service, computed from the sizes of heads and of sent packets.
pub(crate) trait Order {
    /// Sets the head of a member: the size of the packet that it would send next. Called after
    /// every event that may change it.
    fn head(&mut self, member: u32, head: Option<WireBytes>);

    /// The member to serve next. `None`: no member has a packet.
    fn next(&mut self) -> Option<u32>;

    /// The member returned by `next` has sent `size` bytes. A call of `head` follows.
    fn sent(&mut self, member: u32, size: WireBytes);

    /// The line was idle: earlier service is released.
    fn restart(&mut self) {}

    /// Members whose state was discarded since the list was last drained, each once.
    fn released(&mut self) -> &mut Vec<u32>;
}

/// A scheduler of members by an order.
pub(crate) struct Scheduler<M, O> {
    kind: &'static str,
    members: M,
    order: O,
    /// Time at which a packet arrived in the empty scheduler, until the next dequeue.
    backlogged_since: Option<Instant>,
    /// Members whose heads the order must learn. Empty between calls.
    changed: Vec<u32>,
}

impl<M, O: Order> Scheduler<M, O> {
    /// A scheduler without packets; `kind` is its name in counters.
    pub(crate) const fn new(kind: &'static str, members: M, order: O) -> Self {
        Self { kind, members, order, backlogged_since: None, changed: Vec::new() }
    }

    fn refresh_heads<P: Packet>(&mut self, now: Instant)
    where
        M: Members<P>,
    {
        for member in self.changed.drain(..) {
            self.order.head(member, self.members.head(member, now));
        }
        for member in self.order.released().drain(..) {
            self.members.release(member);
        }
    }
}

impl<P: Packet, M: Members<P>, O: Order> Discipline<P> for Scheduler<M, O> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if self.members.backlog().packets == PacketCount::ZERO {
            self.backlogged_since = Some(now);
        }
        self.members.enqueue(now, packet, drops, &mut self.changed);
        self.refresh_heads(now);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        // A dequeue at the time of arrival means that the line was idle. A busy line dequeues when
        // its transmission ends.
        if self.backlogged_since.take() == Some(now) {
            self.order.restart();
        }
        self.members.wake(now, &mut self.changed);
        self.refresh_heads(now);
        while let Some(member) = self.order.next() {
            let packet = self.members.dequeue(member, now, drops);
            if let Some(packet) = &packet {
                self.order.sent(member, self.members.wire_bytes(packet));
            }
            self.changed.push(member);
            self.refresh_heads(now);
            if packet.is_some() {
                return packet;
            }
        }
        self.refresh_heads(now);
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.members.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.members.backlog()
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.members.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.members.counters(self.kind, visit);
    }
}

/// The parameters of a fair scheduler: members with a share each, served in an [`Order`].
pub(crate) trait Fair {
    /// The name of the scheduler in counters.
    const KIND: &'static str;
    /// The share of a member: its weight or quantum.
    type Share: Copy;

    /// The members of the scheduler.
    fn among(&self) -> &Among<Self::Share>;

    /// The order of service by their shares.
    fn order(&self) -> impl Order + Send + 'static;

    /// Checks the shares.
    fn check_shares(&self) -> Result<(), Problem> {
        Ok(())
    }
}

impl<C: Fair> Mechanism for C {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        self.among().check()?;
        self.check_shares()
    }

    fn below(&self) -> Vec<&Spec> {
        self.among().queues()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.among().name(class)
    }

    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        shapers_of_class(packets, &self.among().classes().iter().map(|class| &class.class).collect::<Vec<_>>())
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let order = self.order();
        Ok(match self.among() {
            Among::Classes(classes) => {
                let (classifier, queues) = site.classes(classes.iter().map(|class| &class.class))?;
                let classes = Classes::new(classifier, queues, &site.environment.link_layer);
                Box::new(Scheduler::new(C::KIND, classes, order))
            }
            Among::Flows { limit, per, .. } => {
                Box::new(Scheduler::new(C::KIND, PerFlow::new(*limit, *per, site.environment), order))
            }
        })
    }
}

#[cfg(test)]
mod tests;
