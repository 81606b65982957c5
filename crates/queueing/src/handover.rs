//! Replaces one queue by another while packets are queued: how a live shaper changes its policy
//! without losing packets.
//!
//! The backlog of the earlier queue departs first, by that queue's rules. Arriving packets go into
//! the next queue, which is served when the earlier is empty. Only packets of priority classes of
//! the next queue do not wait for the earlier one. The packets of a flow therefore keep their order
//! if both policies put the flow into such a class, or neither does. Each policy keeps to its own
//! rate; while both send, the sum exceeds the rate by the traffic of the priority classes.
//!
//! Differs: in Linux `tc qdisc replace` drops the backlog of the old qdisc (`qdisc_reset` of
//! sch_generic.c).
//! Cost: one branch a packet; the earlier queue is freed once it is empty.

use lastmile_packet::Packet;
use lastmile_units::{BitRate, Instant};

use crate::discipline::Counter;
use crate::{Backlog, Discipline, DropSink, Node};

/// A queue, and its predecessor for as long as that holds packets.
pub struct Handover<P> {
    earlier: Option<Node<P>>,
    next: Node<P>,
    /// Level of the packet that departed last.
    sent: usize,
    /// The next queue may hold priority packets that can depart now. Set when one is enqueued,
    /// cleared when it has none.
    may_be_urgent: bool,
}

impl<P: Packet> Handover<P> {
    /// `next` takes over from `earlier`.
    #[must_use]
    pub fn new(earlier: Node<P>, next: Node<P>) -> Self {
        let holds_any = earlier.backlog() != Backlog::default();
        Self { earlier: holds_any.then_some(earlier), next, sent: 0, may_be_urgent: false }
    }
}

impl<P: Packet> Discipline<P> for Handover<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.next.enqueue(now, packet, drops);
        self.may_be_urgent = true;
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if let Some(earlier) = &mut self.earlier {
            // Also without a new packet: a shaper may have gained tokens.
            let urgent = self.next.dequeue_urgent(now, drops);
            self.may_be_urgent = urgent.is_some();
            if urgent.is_some() {
                self.sent = 0;
                return urgent;
            }
            let packet = earlier.dequeue(now, drops);
            self.sent = 0;
            if earlier.backlog() == Backlog::default() {
                self.earlier = None;
            } else if packet.is_none() {
                return None;
            }
            if packet.is_some() {
                return packet;
            }
        }
        let packet = self.next.dequeue(now, drops);
        self.sent = self.next.level_sent();
        packet
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        match &self.earlier {
            Some(_) if self.may_be_urgent => Some(now),
            Some(earlier) => earlier.next_ready(now),
            None => self.next.next_ready(now),
        }
    }

    /// Levels of two queues do not compare. Nothing interrupts the packets of the earlier one, so
    /// that no packet of a flow overtakes another.
    fn level_ready(&self, now: Instant) -> Option<usize> {
        match &self.earlier {
            Some(earlier) => earlier.next_ready(now).filter(|ready| *ready <= now).map(|_| 0),
            None => self.next.level_ready(now),
        }
    }

    fn level_sent(&self) -> usize {
        self.sent
    }

    /// Each queue keeps to its own rate until now, and both to the new one.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        if let Some(earlier) = &mut self.earlier {
            earlier.set_rate(now, rate);
        }
        self.next.set_rate(now, rate)
    }

    fn backlog(&self) -> Backlog {
        self.next.backlog() + self.earlier.as_ref().map_or_else(Backlog::default, Discipline::backlog)
    }

    /// Classes of the next queue: the earlier one has classes of its own.
    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.next.class_backlogs(visit);
    }

    /// Counters of the next queue, and of the earlier one under the path `earlier` while that holds
    /// packets.
    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.next.counters(visit);
        if let Some(earlier) = &self.earlier {
            Counter::below("earlier", earlier, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_packet::{Meta, Protocol};
    use lastmile_units::{ByteCount, Duration, PacketCount};
    use proptest::prelude::*;

    use super::*;
    use crate::{DropReason, Fifo, Overflow};

    fn fifo(packets: u64) -> Node<Meta> {
        Box::new(Fifo::in_packets(PacketCount::new(packets), Overflow::Tail))
    }

    /// A packet that its length identifies.
    fn packet(ip_len: u16) -> Meta {
        Meta { ip_len, protocol: Protocol::Udp, header_len: 28, ..Meta::default() }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn none(_: Instant, _: Meta, reason: DropReason) {
        panic!("dropped: {reason:?}");
    }

    #[test]
    fn the_earlier_backlog_departs_first_and_nothing_is_lost() {
        let mut earlier = fifo(10);
        earlier.enqueue(at(0), packet(100), &mut none);
        earlier.enqueue(at(0), packet(101), &mut none);
        let mut queue = Handover::new(earlier, fifo(10));
        queue.enqueue(at(1), packet(200), &mut none);
        assert_eq!(queue.backlog(), Backlog { packets: PacketCount::new(3), bytes: ByteCount::new(401) });
        let left: Vec<u16> =
            std::iter::from_fn(|| queue.dequeue(at(2), &mut none)).map(|packet| packet.ip_len).collect();
        assert_eq!(left, [100, 101, 200]);
        assert!(queue.earlier.is_none());
        assert_eq!(queue.next_ready(at(2)), None);
    }

    fn two_classes() -> Node<Meta> {
        let classify = |packet: &Meta| crate::ClassIndex::new(u16::from(packet.ip_len >= 100));
        Box::new(crate::Priority::new(classify, vec![fifo(9), fifo(9)]).expect("two classes"))
    }

    /// Packets of less than 100 bytes go first.
    #[test]
    fn urgent_packets_of_the_next_queue_do_not_wait_for_the_earlier_one() {
        let mut earlier = two_classes();
        for bytes in [100, 101] {
            earlier.enqueue(at(0), packet(bytes), &mut none);
        }
        let mut queue = Handover::new(earlier, two_classes());
        let mut left = Vec::new();
        queue.enqueue(at(1), packet(200), &mut none);
        left.extend(queue.dequeue(at(1), &mut none));
        queue.enqueue(at(2), packet(60), &mut none);
        assert_eq!(queue.next_ready(at(2)), Some(at(2)));
        left.extend(std::iter::from_fn(|| queue.dequeue(at(2), &mut none)));
        let left: Vec<u16> = left.iter().map(|packet| packet.ip_len).collect();
        assert_eq!(left, [100, 60, 101, 200]);
        assert_eq!(queue.next_ready(at(2)), None);
    }

    #[test]
    fn an_empty_queue_is_gone_at_once() {
        assert!(Handover::new(fifo(10), fifo(10)).earlier.is_none());
    }

    /// Packets of the earlier queue have level 0 whatever their class; then the classes of the next
    /// queue count.
    #[test]
    fn packets_of_the_earlier_queue_are_not_interrupted() {
        let mut earlier = two_classes();
        earlier.enqueue(at(0), packet(100), &mut none);
        let mut queue = Handover::new(earlier, two_classes());
        queue.enqueue(at(0), packet(101), &mut none);
        let mut levels = Vec::new();
        while let Some(ready) = queue.level_ready(at(0)) {
            let packet = queue.dequeue(at(0), &mut none).expect("one is ready");
            levels.push((packet.ip_len, ready, queue.level_sent()));
        }
        assert_eq!(levels, [(100, 0, 0), (101, 1, 1)]);
    }

    #[test]
    fn the_limit_of_the_next_queue_applies_to_arrivals() {
        let mut earlier = fifo(10);
        earlier.enqueue(at(0), packet(100), &mut none);
        let mut queue = Handover::new(earlier, fifo(1));
        queue.enqueue(at(0), packet(200), &mut none);
        let mut reasons = Vec::new();
        queue.enqueue(at(0), packet(201), &mut |_: Instant, _: Meta, reason| reasons.push(reason));
        assert_eq!(reasons, [DropReason::Tail]);
    }

    proptest! {
        /// Hand-overs at any moment, also nested: the order of a single FIFO, and every packet
        /// departs.
        #[test]
        fn any_number_of_hand_overs_keeps_the_order(ops in proptest::collection::vec(0_u8..4, 1..200)) {
            let mut queue = fifo(1000);
            let (mut next_len, mut expected) = (40_u16, 40_u16);
            for op in ops {
                match op {
                    0 => queue = Box::new(Handover::new(queue, fifo(1000))),
                    1 => {
                        let out = queue.dequeue(at(0), &mut none);
                        prop_assert_eq!(out.map(|packet| packet.ip_len), (expected < next_len).then_some(expected));
                        expected += u16::from(out.is_some());
                    }
                    _ => {
                        queue.enqueue(at(0), packet(next_len), &mut none);
                        next_len += 1;
                    }
                }
                prop_assert_eq!(queue.backlog().packets.as_u64(), u64::from(next_len - expected));
            }
        }
    }
}
