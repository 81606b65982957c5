//! Strict priority: the first class that has a packet sends it.
//!
//! Published: tc-prio(8); `priority-list` of Cisco IOS has this order with four classes.
//! Differs: any number of classes, any classifier, any discipline as the queue of a class. While a
//! shaper of a class waits, the classes below it may send.
//! Cost: one classification a packet at enqueue; at dequeue a step for each empty class above the
//! one that sends.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::Instant;

use crate::catalogue::{Built, Mechanism};
use crate::classify::{Classifier, Packets};
use crate::discipline::{Counter, answers_of_classes};
use crate::spec::{ClassSpec, Problem, Shaper, Site, Spec, check_classes, numbered, shapers_of_class};
use crate::{Backlog, Discipline, DropSink, Node};

/// The parameters of strict priority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The classes, the most urgent first: at most [`Spec::MAX_CLASSES`]. A packet goes to the first
    /// that matches it, or else to the last.
    pub classes: Vec<ClassSpec>,
}

/// A strict priority scheduler. Class 0 is the most urgent.
pub struct Priority<P, C> {
    classes: Vec<Class<P>>,
    classifier: C,
    /// The class that sent last.
    sent: usize,
}

struct Class<P> {
    queue: Node<P>,
    sent_packets: u64,
    sent_bytes: u64,
}

impl<P: Packet, C: Classifier<P>> Priority<P, C> {
    /// A scheduler over these queues, the most urgent first. `None`: there is no queue.
    ///
    /// A packet whose class has no queue goes to the last one.
    #[must_use]
    pub fn new(classifier: C, queues: Vec<Node<P>>) -> Option<Self> {
        if queues.is_empty() {
            return None;
        }
        let classes = queues.into_iter().map(|queue| Class { queue, sent_packets: 0, sent_bytes: 0 }).collect();
        Some(Self { classes, classifier, sent: 0 })
    }
}

impl<P: Packet, C: Classifier<P>> Discipline<P> for Priority<P, C> {
    answers_of_classes!(self => self.classes);

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        for (index, class) in self.classes.iter_mut().enumerate() {
            if let Some(packet) = class.queue.dequeue(now, drops) {
                self.sent = index;
                class.sent_packets += 1;
                class.sent_bytes += u64::from(packet.meta().ip_len);
                return Some(packet);
            }
        }
        None
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let is_urgent = self.level_ready(now).is_some_and(|level| level + 1 < self.classes.len());
        if is_urgent { self.dequeue(now, drops) } else { None }
    }

    fn level_ready(&self, now: Instant) -> Option<usize> {
        self.classes.iter().position(|class| class.queue.next_ready(now).is_some_and(|ready| ready <= now))
    }

    fn level_sent(&self) -> usize {
        self.sent
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        for (index, class) in self.classes.iter().enumerate() {
            let path = format!("classes.{index}");
            visit(Counter { path: &path, kind: "priority", name: "sent_packets", value: class.sent_packets });
            visit(Counter { path: &path, kind: "priority", name: "sent_bytes", value: class.sent_bytes });
            Counter::below(&format!("{path}.queue"), &*class.queue, visit);
        }
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        check_classes(&self.classes)
    }

    fn below(&self) -> Vec<&Spec> {
        self.classes.iter().map(|class| &class.queue).collect()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        numbered(class, self.classes.len())
    }

    fn shapers_of(&self, packets: &Packets) -> Vec<Shaper> {
        shapers_of_class(packets, &self.classes.iter().collect::<Vec<_>>())
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let (classifier, queues) = site.classes(&self.classes)?;
        Ok(Box::new(Priority::new(classifier, queues).expect("checked: there is a class")))
    }
}

#[cfg(test)]
mod tests {
    use lastmile_packet::{Meta, Protocol, TcpFlags};
    use lastmile_units::PacketCount;

    use super::*;
    use crate::DropReason;
    use crate::classify::{ClassIndex, FirstMatch};
    use crate::fifo::{Fifo, Overflow};

    const NOW: Instant = Instant::ZERO;

    fn scheduler() -> Priority<Meta, FirstMatch<Meta>> {
        let fifo = || -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(2), Overflow::Tail)) };
        let classifier =
            FirstMatch::new(ClassIndex::new(u16::MAX)).rule(|packet: &Meta| packet.is_pure_ack(), ClassIndex::new(0));
        Priority::new(classifier, vec![fifo(), fifo()]).expect("two classes")
    }

    fn ack() -> Meta {
        Meta { ip_len: 40, header_len: 40, flags: TcpFlags::ACK, ..Meta::default() }
    }

    fn datagram() -> Meta {
        Meta { ip_len: 1500, header_len: 28, protocol: Protocol::Udp, ..Meta::default() }
    }

    #[test]
    fn the_urgent_class_overtakes_the_backlog_of_lower_classes() {
        let mut scheduler = scheduler();
        let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
        scheduler.enqueue(NOW, datagram(), &mut none);
        scheduler.enqueue(NOW, ack(), &mut none);
        assert_eq!(scheduler.dequeue(NOW, &mut none), Some(Meta { class: Some(0), ..ack() }));
        assert_eq!(scheduler.dequeue(NOW, &mut none), Some(Meta { class: Some(1), ..datagram() }));
        assert_eq!(scheduler.dequeue(NOW, &mut none), None);
        assert_eq!(scheduler.next_ready(NOW), None);
    }

    /// The index `u16::MAX` is no class: the packet goes to the last one. Only its queue is full.
    #[test]
    fn a_class_that_does_not_exist_is_the_last_and_a_full_class_leaves_the_others_alone() {
        let mut scheduler = scheduler();
        let mut dropped = Vec::new();
        let mut sink = |_, packet, reason| dropped.push((packet, reason));
        for _ in 0..3 {
            scheduler.enqueue(NOW, datagram(), &mut sink);
        }
        scheduler.enqueue(NOW, ack(), &mut sink);
        assert_eq!(dropped, [(Meta { class: Some(1), ..datagram() }, DropReason::Tail)]);
        assert_eq!(scheduler.backlog().packets, PacketCount::new(3));
    }

    #[test]
    fn counters_name_the_class_and_its_queue() {
        let mut scheduler = scheduler();
        let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
        scheduler.enqueue(NOW, ack(), &mut none);
        assert!(scheduler.dequeue(NOW, &mut none).is_some());
        let mut seen = Vec::new();
        scheduler.counters(&mut |c| {
            if c.value > 0 {
                seen.push(format!("{} {} {} {}", c.path, c.kind, c.name, c.value));
            }
        });
        assert_eq!(
            seen,
            [
                "classes.0 priority sent_packets 1",
                "classes.0 priority sent_bytes 40",
                "classes.0.queue fifo sent_packets 1",
                "classes.0.queue fifo sent_bytes 40",
            ]
        );
    }

    #[test]
    fn a_scheduler_without_a_class_is_refused() {
        assert!(Priority::<Meta, _>::new(FirstMatch::new(ClassIndex::new(0)), vec![]).is_none());
    }
}
