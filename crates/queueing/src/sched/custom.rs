//! Custom queueing (CQ): the queues take turns, and each sends until its count is reached.
//!
//! Published: `custom-queue-list` of Cisco IOS, as Phanse (2000) and Phanse, DaSilva, Kidambi
//! (2000) use it for ACKs against data: a queue sends until its byte count is reached or crossed,
//! and the packet that crosses it is sent whole.
//! Differs: a count is in bytes on the wire or in packets, where IOS counts bytes of its own; any
//! classifier, any discipline as a queue. The bytes above the count are forgotten
//! ([`Excess::Forgotten`], IOS before 12.1), which favours large packets, or deducted from the next
//! turn ([`Excess::Carried`], IOS since), which makes shares exact, as in deficit round robin.
//! Cost: one classification at enqueue; at dequeue a step for each queue that is skipped.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, PacketCount, WireBytes};

use crate::catalogue::{Built, Mechanism};
use crate::classify::{Classifier, Packets};
use crate::discipline::{Counter, answers_of_classes};
use crate::spec::{ClassSpec, Problem, Shaper, Site, Spec, check_classes, numbered, shapers_of_class};
use crate::{Backlog, Discipline, DropSink, Node};

/// Parameters of custom queueing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The queues, in the order of their turns: at most [`crate::Spec::MAX_CLASSES`]. A packet goes
    /// to the first that matches it, else to the last.
    pub classes: Vec<Class>,
    /// Treatment of the bytes that a packet exceeds its count by.
    pub excess: Excess,
}

/// A queue and its count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// The packets of the class, and its queue.
    pub class: ClassSpec,
    /// The amount after which its turn ends. Not zero.
    pub count: Count,
}

/// The amount after which the turn of a queue ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Count {
    /// The turn ends when at least this many bytes on the wire were sent.
    Bytes(WireBytes),
    /// The turn ends when this many packets were sent.
    Packets(PacketCount),
}

impl Count {
    /// The count without its unit.
    pub(crate) const fn as_u64(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.as_u64(),
            Self::Packets(packets) => packets.as_u64(),
        }
    }
}

/// Treatment of the bytes that a queue sent above its count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Excess {
    /// Forgotten: each turn begins with the whole count.
    #[default]
    Forgotten,
    /// Deducted from the next turn, or turns.
    Carried,
}

/// Queues that take turns.
pub struct CustomQueueing<P, C> {
    queues: Vec<Queue<P>>,
    classifier: C,
    link_layer: LinkLayer,
    excess: Excess,
    /// The queue that has the turn.
    turn: usize,
}

struct Queue<P> {
    queue: Node<P>,
    count: Count,
    /// The part of the count that is used. May exceed the count; later turns then pay for the
    /// excess.
    used: u64,
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

impl<P> Queue<P> {
    /// Ends a turn. The unused part of the count is lost.
    fn end_turn(&mut self, excess: Excess) {
        self.used = match excess {
            Excess::Forgotten => 0,
            Excess::Carried => self.used.saturating_sub(self.count.as_u64()),
        };
    }
}

impl<P: Packet, C: Classifier<P>> CustomQueueing<P, C> {
    /// Queues with their counts, in the order of their turns. `None`: there is no queue, or a count
    /// is zero.
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
        Some(Self { queues: queues.collect(), classifier, link_layer: *link_layer, excess, turn: 0 })
    }
}

impl<P: Packet, C: Classifier<P>> Discipline<P> for CustomQueueing<P, C> {
    answers_of_classes!(self => self.queues);

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut idle_queues = 0;
        while idle_queues < self.queues.len() {
            let queue = &mut self.queues[self.turn];
            if queue.used >= queue.count.as_u64() {
                // The queue pays with this turn for bytes above its count. The turn costs it
                // something only if it has a packet ready.
                idle_queues =
                    if queue.queue.next_ready(now).is_some_and(|ready| ready <= now) { 0 } else { idle_queues + 1 };
            } else if let Some(packet) = queue.queue.dequeue(now, drops) {
                let wire = self.link_layer.on_wire(packet.meta().ip_bytes()).as_u64();
                queue.used += if matches!(queue.count, Count::Bytes(_)) { wire } else { 1 };
                queue.sent_packets += 1;
                queue.sent_bytes += u64::from(packet.meta().ip_len);
                queue.sent_wire_bytes += wire;
                if queue.used >= queue.count.as_u64() {
                    queue.end_turn(self.excess);
                    self.turn = (self.turn + 1) % self.queues.len();
                }
                return Some(packet);
            } else {
                idle_queues += 1;
            }
            queue.end_turn(self.excess);
            self.turn = (self.turn + 1) % self.queues.len();
        }
        None
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

    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        shapers_of_class(packets, &self.classes.iter().map(|class| &class.class).collect::<Vec<_>>())
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
