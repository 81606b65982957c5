//! Whose packets a fair scheduler tells apart: classes with a discipline each, or flows with a FIFO each.
//!
//! A scheduler by tags or deficits must know the size of a packet before it is its turn, and a discipline tells it only when
//! the packet leaves. So a class keeps the sizes of what is below it in the order of arrival, and takes the first for the
//! head. For a FIFO, with either end dropped, and for an AQM over one that is exact. Where packets overtake one another in
//! a class it is a guess, and the class pays for what it really sent.
//!
//! Cost: O(1) a packet where sizes leave in order; else a search among the sizes of the class. Classes that a shaper below
//! holds back are asked at every turn. A packet too many looks at all flows for the fattest.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use crate::classify::Classifier;
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::spec::{ClassSpec, Problem, Spec, check_classes, numbered};
use crate::{Backlog, Discipline as _, DropReason, DropSink, Node};

/// Among whom a line is shared. `S` says what the share of one is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Among<S> {
    /// Classes: at most [`crate::Spec::MAX_CLASSES`]. A packet goes to the first that matches it, or else to the last.
    Classes(Vec<Class<S>>),
    /// Every flow, each with a FIFO of its own.
    Flows {
        /// What each has.
        share: S,
        /// How many packets there are in all. One too many costs the flow with most bytes on the wire its oldest.
        limit: PacketCount,
    },
}

/// A class and its share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class<S> {
    /// Which packets, and where they wait.
    pub class: ClassSpec,
    /// What it has.
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
                Shares { of: classes.iter().map(|class| number(class.share)).collect(), otherwise: 0 }
            }
            Self::Flows { share, .. } => Shares { of: Vec::new(), otherwise: number(*share) },
        }
    }
}

/// The share of each member.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    of: Vec<u64>,
    otherwise: u64,
}

impl Shares {
    pub(super) fn of(&self, member: u32) -> u64 {
        self.of.get(member as usize).copied().unwrap_or(self.otherwise)
    }
}

/// Those among whom a line is shared, by number.
pub(crate) trait Members<P: Packet> {
    /// Takes a packet in, and names in `touched`, each once, the members whose head this may change.
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>, touched: &mut Vec<u32>);

    /// The next packet of a member.
    fn dequeue(&mut self, member: u32, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P>;

    /// The size of the packet that the member would send now. `None`: it sends none now.
    fn head(&mut self, member: u32, now: Instant) -> Option<WireBytes>;

    /// Names the members that could not send when they were last asked and now can.
    fn wake(&mut self, now: Instant, touched: &mut Vec<u32>);

    /// Nothing is remembered of the member, which has no packets, so its number may go to another.
    fn release(&mut self, member: u32);

    fn wire_bytes(&self, packet: &P) -> WireBytes;

    fn next_ready(&self, now: Instant) -> Option<Instant>;

    fn backlog(&self) -> Backlog;

    fn counters(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>));
}

/// Classes, each with the discipline where its packets wait.
pub(crate) struct Classes<P, C> {
    classes: Vec<Waiting<P>>,
    classifier: C,
    link_layer: LinkLayer,
    /// How many classes have packets and cannot send them yet.
    held: usize,
}

struct Waiting<P> {
    queue: Node<P>,
    /// Bytes on the wire of what is in the queue, as it came, in the order of arrival.
    sizes: VecDeque<u32>,
    /// It has packets and could not send when it was last asked.
    held: bool,
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

impl<P: Packet, C: Classifier<P>> Classes<P, C> {
    /// Classes over these queues; there is at least one. A packet whose class has no queue goes to the last one.
    pub(crate) fn new(classifier: C, queues: Vec<Node<P>>, link_layer: &LinkLayer) -> Self {
        let waiting = |queue| Waiting {
            queue,
            sizes: VecDeque::new(),
            held: false,
            sent_packets: 0,
            sent_bytes: 0,
            sent_wire_bytes: 0,
        };
        Self { classes: queues.into_iter().map(waiting).collect(), classifier, link_layer: *link_layer, held: 0 }
    }
}

/// What a packet takes on the wire.
fn on_wire(link_layer: &LinkLayer, packet: &impl Packet) -> u32 {
    let wire = link_layer.on_wire(packet.meta().ip_bytes()).as_u64();
    u32::try_from(wire).expect("a packet of at most 64 KiB and its overhead")
}

/// Keeps the sizes of a class while the discipline below it drops and makes packets.
struct Watch<'a, P> {
    sizes: &'a mut VecDeque<u32>,
    link_layer: &'a LinkLayer,
    arriving: bool,
    drops: &'a mut dyn DropSink<P>,
}

impl<P: Packet> DropSink<P> for Watch<'_, P> {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        use DropReason::{Aqm, Policed, Tail, TooLarge};
        let newest = self.arriving && matches!(reason, Tail | TooLarge | Aqm | Policed);
        forget(self.sizes, on_wire(self.link_layer, &packet), newest);
        self.drops.dropped(now, packet, reason);
    }

    fn created(&mut self, now: Instant, packet: &P) {
        self.sizes.push_back(on_wire(self.link_layer, packet));
        self.drops.created(now, packet);
    }
}

/// Takes the oldest of this size out, or the newest. If a packet changed its size below, the oldest of any size goes.
fn forget(sizes: &mut VecDeque<u32>, size: u32, newest: bool) {
    let same = |other: &u32| *other == size;
    let place = if newest { sizes.iter().rposition(same) } else { sizes.iter().position(same) };
    sizes.remove(place.unwrap_or(0));
}

impl<P: Packet, C: Classifier<P>> Members<P> for Classes<P, C> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>, touched: &mut Vec<u32>) {
        let number = self.classifier.classify(now, &packet).index().min(self.classes.len() - 1);
        packet.meta_mut().join_class(number);
        let class = &mut self.classes[number];
        class.sizes.push_back(on_wire(&self.link_layer, &packet));
        let mut watch = Watch { sizes: &mut class.sizes, link_layer: &self.link_layer, arriving: true, drops };
        class.queue.enqueue(now, packet, &mut watch);
        touched.push(u32::try_from(number).expect("at most MAX_CLASSES"));
    }

    fn dequeue(&mut self, member: u32, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let class = &mut self.classes[member as usize];
        let mut watch = Watch { sizes: &mut class.sizes, link_layer: &self.link_layer, arriving: false, drops };
        let packet = class.queue.dequeue(now, &mut watch)?;
        let wire = on_wire(&self.link_layer, &packet);
        forget(&mut class.sizes, wire, false);
        class.sent_packets += 1;
        class.sent_bytes += u64::from(packet.meta().ip_len);
        class.sent_wire_bytes += u64::from(wire);
        Some(packet)
    }

    fn head(&mut self, member: u32, now: Instant) -> Option<WireBytes> {
        let class = &mut self.classes[member as usize];
        let ready = class.queue.next_ready(now);
        let held = ready.is_some_and(|ready| ready > now);
        self.held = self.held + usize::from(held) - usize::from(class.held);
        class.held = held;
        ready.filter(|_| !held).map(|_| WireBytes::new(class.sizes.front().copied().unwrap_or_default().into()))
    }

    fn wake(&mut self, now: Instant, touched: &mut Vec<u32>) {
        if self.held == 0 {
            return;
        }
        for (number, class) in (0..).zip(&self.classes) {
            if class.held && class.queue.next_ready(now).is_none_or(|ready| ready <= now) {
                touched.push(number);
            }
        }
    }

    fn release(&mut self, _member: u32) {}

    fn wire_bytes(&self, packet: &P) -> WireBytes {
        self.link_layer.on_wire(packet.meta().ip_bytes())
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.classes.iter().filter_map(|class| class.queue.next_ready(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.classes.iter().fold(Backlog::default(), |sum, class| {
            let one = class.queue.backlog();
            Backlog { packets: sum.packets + one.packets, bytes: sum.bytes + one.bytes }
        })
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
            Counter::below(&format!("{path}.queue"), &*class.queue, visit);
        }
    }
}

/// Flows, each with a FIFO, and one limit for all.
#[derive(Clone, Debug)]
pub(crate) struct PerFlow<P> {
    flows: Flows<P, ()>,
    limit: PacketCount,
    tally: Tally,
}

impl<P: Packet> PerFlow<P> {
    pub(crate) fn new(limit: PacketCount, link_layer: &LinkLayer) -> Self {
        Self { flows: Flows::new(FlowKeys::Exact, link_layer), limit, tally: Tally::default() }
    }
}

impl<P: Packet> Members<P> for PerFlow<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>, touched: &mut Vec<u32>) {
        let flow = self.flows.queue_of(packet.meta().flow);
        self.flows.push(flow, packet);
        touched.push(flow);
        if self.flows.backlog().packets > self.limit
            && let Some(fattest) = self.flows.fattest()
            && let Some(oldest) = self.flows.pop(fattest)
        {
            self.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
            if fattest != flow {
                touched.push(fattest);
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
