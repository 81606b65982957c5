//! Test harness: a scheduler on a line without overhead, for service orders computed by hand.

use std::num::NonZeroU32;

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta};
use lastmile_units::{Instant, WireBytes};

use super::members::{Among, Class, Shares};
use super::scheduler::Order;
use crate::spec::{ClassSpec, Spec};
use crate::{Discipline as _, Match, Node};

/// A class for each share, with the flow of its number.
pub(super) fn line<S>(shares: impl IntoIterator<Item = S>) -> Vec<Class<S>> {
    let class = |number| ClassSpec { matches: Match::Flow(FlowId::new(number)), queue: Spec::fifo(100) };
    (0..).zip(shares).map(|(number, share)| Class { class: class(number), share }).collect()
}

pub(super) fn weights<const N: usize>(weights: [u32; N]) -> Vec<Class<NonZeroU32>> {
    line(weights.map(|weight| NonZeroU32::new(weight).expect("a weight")))
}

pub(super) struct Trial {
    scheduler: Node<Meta>,
    pub(super) now: Instant,
    /// Flow and size of dropped packets.
    pub(super) dropped: Vec<(u32, u16)>,
}

impl Trial {
    pub(super) fn new(spec: &Spec) -> Self {
        let plain = LinkLayer::new(0, Framing::None).expect("no overhead");
        Self { scheduler: spec.build(&plain).expect("it can be built"), now: Instant::ZERO, dropped: Vec::new() }
    }

    pub(super) fn offer(&mut self, flow: u32, sizes: &[u16]) {
        let dropped = &mut self.dropped;
        for &ip_len in sizes {
            let packet = Meta { flow: FlowId::new(flow), ip_len, ..Meta::default() };
            let mut sink = |_, packet: Meta, _| dropped.push((packet.flow.index(), packet.ip_len));
            self.scheduler.enqueue(self.now, packet, &mut sink);
        }
    }

    /// Flow and size of the next packets, at most `count`.
    pub(super) fn take(&mut self, count: usize) -> Vec<(u32, u16)> {
        let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
        let sent = std::iter::from_fn(|| self.scheduler.dequeue(self.now, &mut none));
        sent.take(count).map(|packet| (packet.flow.index(), packet.ip_len)).collect()
    }

    pub(super) fn take_classes(&mut self, count: usize) -> Vec<u32> {
        self.take(count).into_iter().map(|(class, _)| class).collect()
    }

    /// Flow and size of the whole backlog.
    pub(super) fn rest(&mut self) -> Vec<(u32, u16)> {
        self.take(usize::MAX)
    }

    pub(super) fn rest_classes(&mut self) -> Vec<u32> {
        self.take_classes(usize::MAX)
    }
}

/// Figure 1 of Bennett and Zhang: a session of weight 10 with eleven packets, and ten of weight 1
/// with a packet each.
pub(super) fn eleven_sessions(spec: impl Fn(Vec<Class<NonZeroU32>>) -> Spec) -> Vec<u32> {
    let mut trial = Trial::new(&spec(weights([10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])));
    trial.offer(0, &[100; 11]);
    for session in 1..=10 {
        trial.offer(session, &[100]);
    }
    trial.rest_classes()
}

/// Capacity four packets: of three flows the one with most bytes loses its oldest, and the rest
/// alternates.
pub(super) fn flows(spec: &Spec) {
    let mut trial = Trial::new(spec);
    trial.offer(7, &[1000, 1001]);
    trial.offer(5, &[1002, 1003]);
    trial.offer(6, &[100]);
    assert_eq!(trial.dropped, [(5, 1002)]);
    let sent = trial.rest();
    assert_eq!(sent.len(), 4);
    let place = |packet| sent.iter().position(|sent| *sent == packet).expect("it was sent");
    assert!(place((6, 100)) < place((7, 1001)) && place((5, 1003)) < place((7, 1001)), "{sent:?}");
    assert!(place((7, 1000)) < place((7, 1001)), "{sent:?}");
}

/// Serves 1000 days of 100 Gbit/s, and then 600 packets of 100 bytes by weights 1 and 2: 200 and
/// 400 of them.
pub(super) fn long_run(order: impl Fn(Shares) -> Box<dyn Order>) {
    let shares = Among::Classes(weights([1, 2])).shares(|weight| weight.get().into());
    let mut order = order(shares);
    let size = Some(WireBytes::new(100));
    for member in [0, 1] {
        order.head(member, size);
    }
    for (member, days) in [(0, 1000), (1, 2000)] {
        // 100 Gbit/s are 1.08 * 10^15 bytes a day; each member has received its share.
        order.sent(member, WireBytes::new(days * 1_080_000_000_000_000));
        order.head(member, size);
    }
    let mut sent = [0, 0];
    for _ in 0..600 {
        let member = order.next().expect("both have packets");
        order.sent(member, WireBytes::new(100));
        order.head(member, size);
        sent[member as usize] += 1;
    }
    assert_eq!(sent, [200, 400]);
}
