//! Custom queueing (CQ): the queues take turns, and each sends until its count is reached.
//!
//! Published: `custom-queue-list` of Cisco IOS, as Phanse (2000) and Phanse, DaSilva, Kidambi (2000) use it for ACKs
//! against data: a queue sends until its byte count is reached or crossed, and the packet that crosses it is sent whole.
//! Differs: a count is in bytes on the wire or in packets, where IOS counts bytes of its own; any classifier, any discipline
//! as a queue. What crosses the count is forgotten ([`Excess::Forgotten`], IOS before 12.1), which favours large packets,
//! or comes off the next turn ([`Excess::Carried`], IOS since), which makes shares exact, as deficit round robin does.
//! Cost: one classification on the way in; on the way out the queues passed over until one may send.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use crate::catalogue::{Built, Mechanism};
use crate::classify::Classifier;
use crate::discipline::Counter;
use crate::spec::{ClassSpec, Problem, Site, Spec, check_classes, numbered};
use crate::{Backlog, Discipline, DropSink, Node};

/// What custom queueing is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The queues, in the order of their turns: at most [`crate::Spec::MAX_CLASSES`]. A packet goes to the first that
    /// matches it, or else to the last.
    pub classes: Vec<Class>,
    /// What happens to the part of a packet beyond the count.
    pub excess: Excess,
}

/// A queue and what it may send in a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// Which packets, and where they wait.
    pub class: ClassSpec,
    /// When its turn ends. Not zero.
    pub count: Count,
}

/// When the turn of a queue ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// When it has sent so many bytes on the wire, or more.
    Bytes(WireBytes),
    /// When it has sent so many packets.
    Packets(PacketCount),
}

impl Count {
    /// The bare number.
    pub(crate) const fn as_u64(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.as_u64(),
            Self::Packets(packets) => packets.as_u64(),
        }
    }
}

/// What happens to what a queue sent beyond its count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Excess {
    /// It is a gift: each turn begins with the whole count.
    #[default]
    Forgotten,
    /// It comes off the next turn, or turns.
    Carried,
}

/// Queues that take turns.
pub struct CustomQueueing<P, C> {
    queues: Vec<Queue<P>>,
    classifier: C,
    link_layer: LinkLayer,
    excess: Excess,
    /// Whose turn it is.
    turn: usize,
    /// The class that sent last.
    sent: usize,
}

struct Queue<P> {
    queue: Node<P>,
    count: Count,
    /// What this turn has used of the count: more than it, when turns to come are paying for it.
    used: u64,
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

impl<P> Queue<P> {
    /// Ends a turn. What is left of the count is lost.
    fn pass(&mut self, excess: Excess) {
        self.used = match excess {
            Excess::Forgotten => 0,
            Excess::Carried => self.used.saturating_sub(self.count.as_u64()),
        };
    }
}

impl<P: Packet, C: Classifier<P>> CustomQueueing<P, C> {
    /// Queues with their counts, in the order of their turns. `None`: there is no queue, or a count is zero.
    ///
    /// A packet whose class has no queue goes to the last one.
    #[must_use]
    pub fn new(classifier: C, queues: Vec<(Node<P>, Count)>, excess: Excess, link_layer: &LinkLayer) -> Option<Self> {
        if queues.is_empty() || queues.iter().any(|(_, count)| count.as_u64() == 0) {
            return None;
        }
        let queues = queues.into_iter().map(|(queue, count)| Queue {
            queue,
            count,
            used: 0,
            sent_packets: 0,
            sent_bytes: 0,
            sent_wire_bytes: 0,
        });
        Some(Self { queues: queues.collect(), classifier, link_layer: *link_layer, excess, turn: 0, sent: 0 })
    }
}

impl<P: Packet, C: Classifier<P>> Discipline<P> for CustomQueueing<P, C> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        let last = self.queues.len() - 1;
        let class = self.classifier.classify(now, &packet).index().min(last);
        packet.meta_mut().join_class(class);
        self.queues[class].queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut silent = 0;
        while silent < self.queues.len() {
            let queue = &mut self.queues[self.turn];
            if queue.used >= queue.count.as_u64() {
                // It pays for what it sent too much in turns before, if it has anything to lose by that.
                silent = if queue.queue.next_ready(now).is_some_and(|ready| ready <= now) { 0 } else { silent + 1 };
            } else if let Some(packet) = queue.queue.dequeue(now, drops) {
                let wire = self.link_layer.on_wire(packet.meta().ip_bytes()).as_u64();
                queue.used += if matches!(queue.count, Count::Bytes(_)) { wire } else { 1 };
                self.sent = self.turn;
                queue.sent_packets += 1;
                queue.sent_bytes += u64::from(packet.meta().ip_len);
                queue.sent_wire_bytes += wire;
                if queue.used >= queue.count.as_u64() {
                    queue.pass(self.excess);
                    self.turn = (self.turn + 1) % self.queues.len();
                }
                return Some(packet);
            } else {
                silent += 1;
            }
            queue.pass(self.excess);
            self.turn = (self.turn + 1) % self.queues.len();
        }
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.queues.iter().filter_map(|class| class.queue.next_ready(now)).min()
    }

    fn backlog(&self) -> Backlog {
        self.queues.iter().fold(Backlog::default(), |sum, class| {
            let one = class.queue.backlog();
            Backlog { packets: sum.packets + one.packets, bytes: sum.bytes + one.bytes }
        })
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        for (index, class) in self.queues.iter().enumerate() {
            let path = format!("classes.{index}");
            for (name, value) in [
                ("sent_packets", class.sent_packets),
                ("sent_bytes", class.sent_bytes),
                ("sent_wire_bytes", class.sent_wire_bytes),
            ] {
                visit(Counter { path: &path, kind: "custom", name, value });
            }
            Counter::below(&format!("{path}.queue"), &*class.queue, visit);
        }
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        check_classes(self.classes.iter().map(|class| &class.class))?;
        if self.classes.iter().any(|class| class.count.as_u64() == 0) { Err(Problem::ZeroCount) } else { Ok(()) }
    }

    fn below(&self) -> Vec<&Spec> {
        self.classes.iter().map(|class| &class.class.queue).collect()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        numbered(class, self.classes.len())
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let (classifier, queues) = site.classes(self.classes.iter().map(|class| &class.class))?;
        let queues = queues.into_iter().zip(self.classes.iter().map(|class| class.count)).collect();
        let scheduler = CustomQueueing::new(classifier, queues, self.excess, &site.environment.link_layer);
        Ok(Box::new(scheduler.expect("checked: there is a queue, and no count is zero")))
    }
}

#[cfg(test)]
mod tests;
