//! The members among which a fair scheduler shares a line: classes with a discipline each, or flows
//! with a FIFO each.
//!
//! A class learns the size of its next packet from `SizedQueue`, and pays for the bytes that it really sent.
//!
//! Cost: O(1) a packet where packets depart in order; else a search among the sizes of the class.
//! Classes whose shaper delays them are polled at every turn. On overflow all flows are searched
//! for the fattest.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use super::per::{Per, Tags};
use super::sized::SizedQueue;
use crate::classify::Classifier;
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::spec::{ClassSpec, Problem, Spec, check_classes, numbered};
use crate::{Backlog, Discipline as _, DropReason, DropSink, Environment, Node};

/// The members among which a line is shared. `S` is the type of a share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Among<S> {
    /// Classes, at most [`crate::Spec::MAX_CLASSES`]. A packet goes to the first that matches it,
    /// else to the last.
    Classes(Vec<Class<S>>),
    /// Every flow, or every host, each with a FIFO of its own.
    Flows {
        /// The share of each flow.
        share: S,
        /// Capacity in packets, shared by all flows. On overflow the flow with most bytes on the
        /// wire loses its oldest packet.
        limit: PacketCount,
        /// The member that has a FIFO: a flow or a host.
        per: Per,
    },
}

/// A class and its share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class<S> {
    /// The packets of the class, and its queue.
    pub class: ClassSpec,
    /// The share of the class.
    pub share: S,
}

impl<S: Copy> Among<S> {
    pub(crate) fn classes(&self) -> &[Class<S>] {
        match self {
            Self::Classes(classes) => classes,
            Self::Flows { .. } => &[],
        }
    }

    /// Refuses classes and limits with which nothing would pass.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        match self {
            Self::Classes(classes) => check_classes(classes.iter().map(|class| &class.class)),
            Self::Flows { limit, .. } if limit.as_u64() == 0 => Err(Problem::ZeroLimit),
            Self::Flows { .. } => Ok(()),
        }
    }

    /// The queues of the classes.
    pub(crate) fn queues(&self) -> Vec<&Spec> {
        self.classes().iter().map(|class| &class.class.queue).collect()
    }

    /// The name of a class.
    pub(crate) fn name(&self, class: u16) -> Option<String> {
        numbered(class, self.classes().len())
    }

    /// The shares as numbers.
    pub(crate) fn shares(&self, number: impl Fn(S) -> u64) -> Shares {
        match self {
            Self::Classes(classes) => {
                Shares { by_member: classes.iter().map(|class| number(class.share)).collect(), default_share: 0 }
            }
            Self::Flows { share, .. } => Shares { by_member: Vec::new(), default_share: number(*share) },
        }
    }
}

/// The share of each member.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    by_member: Vec<u64>,
    default_share: u64,
}

impl Shares {
    pub(super) fn of(&self, member: u32) -> u64 {
        self.by_member.get(member as usize).copied().unwrap_or(self.default_share)
    }
}

/// The members among which a line is shared, by number.
pub(crate) trait Members<P: Packet> {
    /// Enqueues a packet, and adds to `changed`, each once, the members whose head may have
    /// changed.
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>, changed: &mut Vec<u32>);

    /// Dequeues the next packet of a member.
    fn dequeue(&mut self, member: u32, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P>;

    /// Size of the packet that the member would send now. `None`: it sends none now.
    fn head(&mut self, member: u32, now: Instant) -> Option<WireBytes>;

    /// Adds to `changed` the members that could not send when last polled and can now.
    fn wake(&mut self, now: Instant, changed: &mut Vec<u32>);

    /// Releases the number of a member without packets and without scheduler state.
    fn release(&mut self, member: u32);

    fn wire_bytes(&self, packet: &P) -> WireBytes;

    fn next_ready(&self, now: Instant) -> Option<Instant>;

    fn backlog(&self) -> Backlog;

    /// Shows the backlog of each class; flows are no classes.
    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        let _ = visit;
    }

    fn counters(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>));
}

/// Classes, each with its queue.
pub(crate) struct Classes<P, C> {
    classes: Vec<ClassQueue<P>>,
    classifier: C,
    link_layer: LinkLayer,
    /// Number of classes that have packets and cannot send them yet.
    throttled: usize,
}

struct ClassQueue<P> {
    sized: SizedQueue<P>,
    /// True if the queue had packets and could not send when last polled.
    throttled: bool,
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

impl<P: Packet, C: Classifier<P>> Classes<P, C> {
    /// Classes over these queues; at least one. A packet whose class has no queue goes to the last
    /// one.
    pub(crate) fn new(classifier: C, queues: Vec<Node<P>>, link_layer: &LinkLayer) -> Self {
        let class_queue = |queue| ClassQueue {
            sized: SizedQueue::new(queue),
            throttled: false,
            sent_packets: 0,
            sent_bytes: 0,
            sent_wire_bytes: 0,
        };
        Self {
            classes: queues.into_iter().map(class_queue).collect(),
            classifier,
            link_layer: *link_layer,
            throttled: 0,
        }
    }
}

impl<P: Packet, C: Classifier<P>> Members<P> for Classes<P, C> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>, changed: &mut Vec<u32>) {
        let number = self.classifier.classify(now, &packet).index().min(self.classes.len() - 1);
        packet.meta_mut().join_class(number);
        let class = &mut self.classes[number];
        class.sized.enqueue(now, packet, &self.link_layer, drops);
        changed.push(u32::try_from(number).expect("at most MAX_CLASSES"));
    }

    fn dequeue(&mut self, member: u32, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let class = &mut self.classes[member as usize];
        let (packet, wire) = class.sized.dequeue(now, &self.link_layer, drops)?;
        class.sent_packets += 1;
        class.sent_bytes += u64::from(packet.meta().ip_len);
        class.sent_wire_bytes += wire.as_u64();
        Some(packet)
    }

    fn head(&mut self, member: u32, now: Instant) -> Option<WireBytes> {
        let class = &mut self.classes[member as usize];
        let ready = class.sized.queue.next_ready(now);
        let throttled = ready.is_some_and(|ready| ready > now);
        self.throttled = self.throttled + usize::from(throttled) - usize::from(class.throttled);
        class.throttled = throttled;
        ready.filter(|_| !throttled).map(|_| class.sized.next_size())
    }

    fn wake(&mut self, now: Instant, changed: &mut Vec<u32>) {
        if self.throttled == 0 {
            return;
        }
        for (number, class) in (0..).zip(&self.classes) {
            if class.throttled && class.sized.queue.next_ready(now).is_none_or(|ready| ready <= now) {
                changed.push(number);
            }
        }
    }

    fn release(&mut self, _member: u32) {}

    fn wire_bytes(&self, packet: &P) -> WireBytes {
        self.link_layer.on_wire(packet.meta().ip_bytes())
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.classes.iter().filter_map(|class| class.sized.queue.next_ready(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.classes.iter().map(|class| class.sized.queue.backlog()).sum()
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.classes.iter().enumerate().for_each(|(index, class)| visit(index, class.sized.queue.backlog()));
    }

    fn counters(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        for (index, class) in self.classes.iter().enumerate() {
            let path = format!("classes.{index}");
            for (name, value) in [
                ("sent_packets", class.sent_packets),
                ("sent_bytes", class.sent_bytes),
                ("sent_wire_bytes", class.sent_wire_bytes),
            ] {
                visit(Counter { path: &path, kind, name, value });
            }
            Counter::below(&format!("{path}.queue"), &*class.sized.queue, visit);
        }
    }
}

/// Flows, each with a FIFO, under one shared limit.
#[derive(Clone, Debug)]
pub(crate) struct PerFlow<P> {
    flows: Flows<P, ()>,
    tags: Tags,
    limit: PacketCount,
    tally: Tally,
}

impl<P: Packet> PerFlow<P> {
    pub(crate) fn new(limit: PacketCount, per: Per, environment: &Environment) -> Self {
        let flows = Flows::new(FlowKeys::Exact, &environment.link_layer);
        Self { flows, tags: Tags::new(per, environment), limit, tally: Tally::default() }
    }
}

impl<P: Packet> Members<P> for PerFlow<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>, changed: &mut Vec<u32>) {
        let flow = self.flows.queue_of(self.tags.of(&packet));
        self.flows.push(flow, packet);
        changed.push(flow);
        if self.flows.backlog().packets > self.limit
            && let Some(fattest) = self.flows.fattest()
            && let Some(oldest) = self.flows.pop(fattest)
        {
            self.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
            if fattest != flow {
                changed.push(fattest);
            }
        }
    }

    fn dequeue(&mut self, member: u32, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        let packet = self.flows.pop(member)?;
        self.tally.sent(&packet);
        Some(packet)
    }

    fn head(&mut self, member: u32, _now: Instant) -> Option<WireBytes> {
        self.flows.head(member).map(|packet| self.flows.wire_bytes(packet))
    }

    fn wake(&mut self, _now: Instant, _touched: &mut Vec<u32>) {}

    fn release(&mut self, member: u32) {
        self.flows.release(member);
    }

    fn wire_bytes(&self, packet: &P) -> WireBytes {
        self.flows.wire_bytes(packet)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.flows.backlog().packets == PacketCount::ZERO { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn counters(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show(kind, visit);
    }
}

#[cfg(test)]
mod tests;
