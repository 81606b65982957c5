//! Fair schedulers of classes and flows, under the contract and within the bounds that their
//! authors prove.

use std::num::NonZeroU32;

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::DropReason::{AckFiltered, Aqm, Head, Tail};
use lastmile_queueing::ack::filter;
use lastmile_queueing::aqm::codel;
use lastmile_queueing::fair::{Among, Class, Per, wf2q_plus, wfq};
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_queueing::{Discipline as _, Match, Node, Overflow};
use lastmile_units::{ByteCount, Duration, Instant, PacketCount, WireBytes};
use proptest::prelude::*;

use crate::contract::{Promise, atm, contract};
use crate::disciplines::{BURST, BYTES, PACKETS, RATE, fifo, tbf};
use crate::traffic::Probe;

fn is_ack(meta: &Meta) -> u8 {
    u8::from(meta.is_pure_ack() || meta.protocol == Protocol::AckSignal)
}

/// ACKs have a share of 2, all other packets 5.
fn acks_and_rest<S>(share: impl Fn(u32) -> S, acks: Spec, rest: Spec) -> Among<S> {
    let class = |matches, queue, number| Class { class: ClassSpec { matches, queue }, share: share(number) };
    Among::Classes(vec![class(Match::PureAck, acks, 2), class(Match::Any, rest, 5)])
}

fn quantum(number: u32) -> WireBytes {
    WireBytes::new(u64::from(number) * 100)
}

fn weight(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("a weight")
}

fn head() -> Spec {
    fifo(PACKETS, Overflow::Head)
}

fn tail() -> Spec {
    fifo(BYTES, Overflow::Tail)
}

fn shaped() -> Spec {
    tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail))
}

fn managed() -> Spec {
    let (target, interval) = (Duration::from_ms(1), Duration::from_ms(5));
    Spec::Codel(codel::Config {
        target,
        interval,
        limit: PACKETS,
        largest: ByteCount::new(300),
        ..codel::Config::default()
    })
}

fn filtered() -> Spec {
    Spec::AckFilter(filter::Config { limit: PACKETS, drop: Overflow::Head, rules: filter::Rules::default() })
}

const FEW: PacketCount = PacketCount::new(6);

contract!(drr_over_fifos, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    Spec::Drr(acks_and_rest(quantum, head(), tail())).build(line)
});
contract!(drr_over_a_shaped_class, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    Spec::Drr(acks_and_rest(quantum, head(), shaped())).build(line)
});
contract!(drr_over_what_drops_anywhere, Promise::of(&[Tail, Head, Aqm, AckFiltered]).by_class(is_ack), |line| {
    Spec::Drr(acks_and_rest(quantum, filtered(), managed())).build(line)
});
contract!(drr_of_flows, Promise::of(&[Head]), |line| {
    Spec::Drr(Among::Flows { share: quantum(2), limit: FEW, per: Per::Flow }).build(line)
});
contract!(drr_of_hosts, Promise::of(&[Head]), |line| {
    Spec::Drr(Among::Flows { share: quantum(2), limit: FEW, per: Per::Source }).build(line)
});
contract!(wfq_over_fifos, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    Spec::Wfq(wfq::Config(acks_and_rest(weight, head(), tail()))).build(line)
});
contract!(wfq_over_a_shaped_class, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    Spec::Wfq(wfq::Config(acks_and_rest(weight, shaped(), head()))).build(line)
});
contract!(wfq_over_what_drops_anywhere, Promise::of(&[Tail, Head, Aqm, AckFiltered]).by_class(is_ack), |line| {
    Spec::Wfq(wfq::Config(acks_and_rest(weight, filtered(), managed()))).build(line)
});
contract!(wfq_of_flows, Promise::of(&[Head]), |line| {
    Spec::Wfq(wfq::Config(Among::Flows { share: weight(1), limit: FEW, per: Per::Flow })).build(line)
});
contract!(wf2q_plus_over_fifos, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    Spec::Wf2qPlus(wf2q_plus::Config(acks_and_rest(weight, head(), tail()))).build(line)
});
contract!(wf2q_plus_over_a_shaped_class, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    Spec::Wf2qPlus(wf2q_plus::Config(acks_and_rest(weight, shaped(), head()))).build(line)
});
contract!(wf2q_plus_over_what_drops_anywhere, Promise::of(&[Tail, Head, Aqm, AckFiltered]).by_class(is_ack), |line| {
    Spec::Wf2qPlus(wf2q_plus::Config(acks_and_rest(weight, filtered(), managed()))).build(line)
});
contract!(wf2q_plus_of_flows, Promise::of(&[Head]), |line| {
    Spec::Wf2qPlus(wf2q_plus::Config(Among::Flows { share: weight(1), limit: FEW, per: Per::Flow })).build(line)
});

/// A class for each share, with the flow of its number.
fn classes<S: Copy>(shares: &[S]) -> Among<S> {
    let class = |number| ClassSpec { matches: Match::Flow(FlowId::new(number)), queue: Spec::fifo(1000) };
    Among::Classes((0..).zip(shares).map(|(number, &share)| Class { class: class(number), share }).collect())
}

fn weighted(weights: &[u32]) -> Among<NonZeroU32> {
    classes(&weights.iter().map(|number| weight(*number)).collect::<Vec<_>>())
}

fn packet(class: u32, ip_len: u16) -> Probe {
    Meta { flow: FlowId::new(class), ip_len, ..Meta::default() }.into()
}

fn wire(packet: &Meta) -> u64 {
    atm().on_wire(packet.ip_bytes()).as_u64()
}

/// Packets sent, as class and size on the wire, while every class was backlogged.
fn while_all_wait(spec: &Spec, sizes: &[Vec<u16>]) -> Vec<(usize, u64)> {
    let mut scheduler: Node<Probe> = spec.build(&atm()).expect("a tree that can be built");
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for (class, sizes) in (0..).zip(sizes) {
        sizes.iter().for_each(|&size| scheduler.enqueue(Instant::ZERO, packet(class, size), &mut none));
    }
    let mut left: Vec<usize> = sizes.iter().map(Vec::len).collect();
    let mut sent = Vec::new();
    while let Some(packet) = scheduler.dequeue(Instant::ZERO, &mut none) {
        let class = packet.flow.index() as usize;
        left[class] -= 1;
        sent.push((class, wire(&packet)));
        if left[class] == 0 {
            return sent;
        }
    }
    unreachable!("a class ends first")
}

/// For each packet of a load: its class, the time at which it has been sent, on a line of a byte a
/// nanosecond, and the time by which a line of its own with its class's share of the rate would
/// have sent it.
fn departures(spec: &Spec, weights: &[u32], load: &[(u64, u32, u16)]) -> Vec<(usize, f64, f64)> {
    let mut scheduler: Node<Probe> = spec.build(&atm()).expect("a tree that can be built");
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let total = f64::from(weights.iter().sum::<u32>());
    let mut alone = vec![0.0_f64; weights.len()];
    let mut due: Vec<std::collections::VecDeque<f64>> = vec![Default::default(); weights.len()];
    let mut load = load.iter().scan(0, |now, &(gap, class, size)| {
        *now += gap;
        Some((*now, class, size))
    });
    let mut next = load.next();
    let (mut free, mut out) = (0, Vec::new());
    let at = |ns: u64| Instant::ZERO + Duration::from_ns(ns);
    loop {
        let busy = scheduler.next_ready(at(free)).is_some();
        if let Some((now, class, size)) = next.filter(|(now, ..)| !busy || *now <= free) {
            let packet = packet(class, size);
            let class = class as usize;
            alone[class] = alone[class].max(now as f64) + wire(&packet) as f64 * total / f64::from(weights[class]);
            due[class].push_back(alone[class]);
            scheduler.enqueue(at(now), packet, &mut none);
            free = free.max(now);
            next = load.next();
        } else if let Some(packet) = scheduler.dequeue(at(free), &mut none) {
            free += wire(&packet);
            let class = packet.flow.index() as usize;
            out.push((class, free as f64, due[class].pop_front().expect("it came")));
        } else {
            return out;
        }
    }
}

/// The largest packet of each class on the wire.
fn largest(load: &[(u64, u32, u16)], classes: usize) -> Vec<f64> {
    let size = |class| load.iter().filter(move |(_, of, _)| *of == class).map(|&(_, _, size)| wire(&packet(0, size)));
    (0..classes as u32).map(|class| size(class).max().unwrap_or(0) as f64).collect()
}

fn sizes() -> impl Strategy<Value = Vec<Vec<u16>>> {
    let size = prop_oneof![Just(40_u16), Just(576), Just(1500), 40..=1500_u16];
    prop::collection::vec(prop::collection::vec(size, 5..40), 3)
}

/// Arrivals at up to several times the rate of the line, with pauses.
fn load() -> impl Strategy<Value = Vec<(u64, u32, u16)>> {
    let gap = prop_oneof![3 => Just(0_u64), 3 => 0..800_u64, 1 => 0..20_000_u64];
    let size = prop_oneof![Just(40_u16), Just(1500), 40..=1500_u16];
    prop::collection::vec((gap, 0..3_u32, size), 1..150)
}

fn three_weights() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(1..20_u32, 3)
}

/// Tolerance for floats that hold whole nanoseconds and quotients of them.
const ROUNDING: f64 = 1e-3;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Shreedhar and Varghese, theorem 2: in any interval in which both are backlogged, the service
    /// of two classes, each over its quantum, differs by at most the least quantum and two largest
    /// packets, over the least quantum.
    #[test]
    fn drr_keeps_its_bound_of_fairness(sizes in sizes(), quanta in prop::collection::vec(200..5000_u64, 3)) {
        let spec = Spec::Drr(classes(&quanta.iter().map(|quantum| WireBytes::new(*quantum)).collect::<Vec<_>>()));
        let sent = while_all_wait(&spec, &sizes);
        let least = quanta.iter().copied().min().expect("three");
        let largest = sizes.iter().flatten().map(|size| wire(&packet(0, *size))).max().expect("a backlog");
        for from in 0..sent.len() {
            let mut of = [0_u64; 3];
            for &(class, size) in &sent[from..] {
                of[class] += size;
                for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                    let apart = (of[i] * quanta[j]).abs_diff(of[j] * quanta[i]) * least;
                    let most = (least + 2 * largest) * quanta[i] * quanta[j];
                    prop_assert!(apart <= most, "{of:?} from {from} of {sent:?}");
                }
            }
        }
    }

    /// Golestani, theorem 1: in any interval in which both are backlogged, the service of two
    /// classes, each over its weight, differs by at most a largest packet of each over its weight.
    #[test]
    fn wfq_keeps_its_bound_of_fairness(sizes in sizes(), weights in three_weights()) {
        let sent = while_all_wait(&Spec::Wfq(wfq::Config(weighted(&weights))), &sizes);
        let largest = |class: usize| sizes[class].iter().map(|size| wire(&packet(0, *size))).max().unwrap_or(0);
        let largest = [largest(0), largest(1), largest(2)];
        for from in 0..sent.len() {
            let mut of = [0_u64; 3];
            for &(class, size) in &sent[from..] {
                of[class] += size;
                for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                    let (wi, wj) = (u64::from(weights[i]), u64::from(weights[j]));
                    let most = largest[i] * wj + largest[j] * wi;
                    prop_assert!((of[i] * wj).abs_diff(of[j] * wi) <= most, "{of:?} from {from} of {sent:?}");
                }
            }
        }
    }

    /// The delay bound of SCFQ: a packet is sent by the time at which a line of its class alone,
    /// with the class's share of the rate, would have sent it, plus the time of a largest packet of
    /// each other class.
    #[test]
    fn wfq_keeps_its_bound_of_delay(load in load(), weights in three_weights()) {
        let largest = largest(&load, 3);
        for (class, sent, alone) in departures(&Spec::Wfq(wfq::Config(weighted(&weights))), &weights, &load) {
            let others: f64 = (0..3).filter(|other| *other != class).map(|other| largest[other]).sum();
            let latest = alone + others + ROUNDING;
            prop_assert!(sent <= latest, "class {class}: sent at {sent}, alone at {alone}, {others}");
        }
    }

    /// WF2Q+: by the time of a line of its class alone, plus the time of one largest packet,
    /// whatever the number of classes.
    #[test]
    fn wf2q_plus_keeps_its_bound_of_delay(load in load(), weights in three_weights()) {
        let largest = largest(&load, 3).into_iter().fold(0.0, f64::max);
        let spec = Spec::Wf2qPlus(wf2q_plus::Config(weighted(&weights)));
        for (class, sent, alone) in departures(&spec, &weights, &load) {
            let latest = alone + largest + ROUNDING;
            prop_assert!(sent <= latest, "class {class}: sent at {sent}, alone at {alone}, {largest}");
        }
    }

    /// Worst-case fairness: when a packet begins, its class has received at most its share of the
    /// total service, so it is never ahead by more than that packet.
    #[test]
    fn wf2q_plus_sends_nothing_before_the_fluid_system_begins_it(sizes in sizes(), weights in three_weights()) {
        let (mut of, mut all) = ([0_u64; 3], 0);
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        for (class, size) in while_all_wait(&Spec::Wf2qPlus(wf2q_plus::Config(weighted(&weights))), &sizes) {
            prop_assert!(of[class] * total <= all * u64::from(weights[class]), "class {class}: {of:?} of {all}");
            of[class] += size;
            all += size;
        }
    }
}
