//! What fair schedulers have in common: they take heads of members in an order of their own.

use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use super::members::{Among, Classes, Members, PerFlow};
use crate::catalogue::Built;
use crate::discipline::Counter;
use crate::spec::Site;
use crate::{Backlog, Discipline, DropSink};

/// Whose packet goes next, by the sizes of heads and of what was sent.
pub(crate) trait Order {
    /// The member now has this packet to send next, or none. Told after whatever may change it.
    fn head(&mut self, member: u32, head: Option<WireBytes>);

    /// Whose turn it is. `None`: nobody has a packet.
    fn next(&mut self) -> Option<u32>;

    /// The member whose turn it was has sent so much; its next head is told afterwards.
    fn sent(&mut self, member: u32, size: WireBytes);

    /// The line had nothing to send: what was sent before no longer counts.
    fn restart(&mut self) {}

    /// Members of which nothing is remembered any more, each once.
    fn forgotten(&mut self) -> &mut Vec<u32>;
}

/// A scheduler of members by an order.
pub(crate) struct Scheduler<M, O> {
    kind: &'static str,
    members: M,
    order: O,
    /// When a packet came while none was there, until the line first asks after that.
    began: Option<Instant>,
    /// Members whose heads are to be told. Empty between calls.
    touched: Vec<u32>,
}

impl<M, O: Order> Scheduler<M, O> {
    /// A scheduler without packets; `kind` is its name in counters.
    pub(crate) const fn new(kind: &'static str, members: M, order: O) -> Self {
        Self { kind, members, order, began: None, touched: Vec::new() }
    }

    fn tell<P: Packet>(&mut self, now: Instant)
    where
        M: Members<P>,
    {
        for member in self.touched.drain(..) {
            self.order.head(member, self.members.head(member, now));
        }
        for member in self.order.forgotten().drain(..) {
            self.members.release(member);
        }
    }
}

impl<P: Packet, M: Members<P>, O: Order> Discipline<P> for Scheduler<M, O> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if self.members.backlog().packets == PacketCount::ZERO {
            self.began = Some(now);
        }
        self.members.enqueue(now, packet, drops, &mut self.touched);
        self.tell(now);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        // The line asks at the very time at which the first packet came: it was idle. One that is busy asks when it is done.
        if self.began.take() == Some(now) {
            self.order.restart();
        }
        self.members.wake(now, &mut self.touched);
        self.tell(now);
        while let Some(member) = self.order.next() {
            let packet = self.members.dequeue(member, now, drops);
            if let Some(packet) = &packet {
                self.order.sent(member, self.members.wire_bytes(packet));
            }
            self.touched.push(member);
            self.tell(now);
            if packet.is_some() {
                return packet;
            }
        }
        self.tell(now);
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.members.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.members.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.members.counters(self.kind, visit);
    }
}

/// Builds the scheduler of checked members by `order`; `kind` is its name in counters.
pub(crate) fn build<P: Packet + Send + 'static, S: Copy>(
    kind: &'static str,
    among: &Among<S>,
    order: impl Order + Send + 'static,
    site: &mut Site<'_>,
) -> Built<P> {
    Ok(match among {
        Among::Classes(classes) => {
            let (classifier, queues) = site.classes(classes.iter().map(|class| &class.class))?;
            let classes = Classes::new(classifier, queues, &site.environment.link_layer);
            Box::new(Scheduler::new(kind, classes, order))
        }
        Among::Flows { limit, .. } => {
            Box::new(Scheduler::new(kind, PerFlow::new(*limit, &site.environment.link_layer), order))
        }
    })
}

#[cfg(test)]
mod tests;
