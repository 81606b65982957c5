use std::num::NonZeroU32;

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta};

use super::*;
use crate::Environment;
use crate::classify::ClassIndex;
use crate::fair::Per;
use crate::fair::drr::Drr;
use crate::fair::members::{Among, Classes, PerFlow, Shares};
use crate::fair::wf2q_plus::Wf2qPlus;
use crate::fair::wfq::Wfq;
use crate::fifo::{Fifo, Overflow};
use crate::{DropReason, Node};

const NOW: Instant = Instant::ZERO;

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn packet(flow: u32) -> Meta {
    Meta { flow: FlowId::new(flow), ip_len: 100, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

/// Every member has a share of 1000.
fn equal() -> Shares {
    let share = NonZeroU32::new(1000).expect("above zero");
    Among::Flows { share, limit: PacketCount::new(1), per: Per::Flow }.shares(|share| share.get().into())
}

fn orders() -> [Box<dyn Order>; 3] {
    [Box::new(Drr::new(equal())), Box::new(Wfq::new(equal())), Box::new(Wf2qPlus::new(equal()))]
}

impl Order for Box<dyn Order> {
    fn head(&mut self, member: u32, head: Option<WireBytes>) {
        (**self).head(member, head);
    }

    fn next(&mut self) -> Option<u32> {
        (**self).next()
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        (**self).sent(member, size);
    }

    fn restart(&mut self) {
        (**self).restart();
    }

    fn released(&mut self) -> &mut Vec<u32> {
        (**self).released()
    }
}

/// A packet that exceeds the limit on arrival leaves a flow without state.
#[test]
fn a_flow_whose_only_packet_was_dropped_is_forgotten() {
    for mut order in orders() {
        order.head(3, None);
        assert_eq!(*order.released(), [3]);
    }
}

#[test]
fn numbers_of_forgotten_flows_are_reused() {
    for order in orders() {
        let mut scheduler =
            Scheduler::new("any", PerFlow::new(PacketCount::new(4), Per::Flow, &Environment::new(plain())), order);
        for flow in 0..5 {
            scheduler.enqueue(NOW, packet(flow), &mut none);
            assert!(scheduler.dequeue(NOW, &mut none).is_some());
            assert!(scheduler.dequeue(NOW, &mut none).is_none());
        }
        let mut changed = Vec::new();
        scheduler.members.enqueue(NOW, packet(9), &mut none, &mut changed);
        assert_eq!(changed, [0]);
    }
}

/// A queue that drops its whole backlog on dequeue, as an AQM may.
struct Shredder(Fifo<Meta>);

impl Discipline<Meta> for Shredder {
    fn enqueue(&mut self, now: Instant, packet: Meta, drops: &mut dyn DropSink<Meta>) {
        self.0.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<Meta>) -> Option<Meta> {
        while let Some(packet) = self.0.dequeue(now, drops) {
            drops.dropped(now, packet, DropReason::Aqm);
        }
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        self.0.next_ready(now)
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.0.counters(visit);
    }
}

#[test]
fn a_class_that_drops_all_it_has_leaves_the_turn_to_the_next() {
    let fifo = || Fifo::in_packets(PacketCount::new(10), Overflow::Tail);
    for order in orders() {
        let queues: Vec<Node<Meta>> = vec![Box::new(Shredder(fifo())), Box::new(fifo())];
        let by_flow = |packet: &Meta| ClassIndex::new(packet.flow.index() as u16);
        let mut scheduler = Scheduler::new("any", Classes::new(by_flow, queues, &plain()), order);
        for flow in [0, 0, 1] {
            scheduler.enqueue(NOW, packet(flow), &mut none);
        }
        let mut dropped = 0;
        let sent = scheduler.dequeue(NOW, &mut |_, _, _| dropped += 1);
        assert_eq!((sent, dropped), (Some(Meta { class: Some(1), ..packet(1) }), 2));
        assert_eq!(scheduler.next_ready(NOW), None);
    }
}
