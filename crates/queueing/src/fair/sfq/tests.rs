use std::num::NonZeroU32;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};

use super::*;

fn config(limit: u64) -> Config {
    Config {
        flows: FlowKeys::Exact,
        per: Per::Flow,
        quantum: WireBytes::new(1500),
        perturb: Duration::ZERO,
        limit: PacketCount::new(limit),
        depth: PacketCount::new(127),
        drop: Overflow::Tail,
    }
}

fn sfq(config: &Config) -> Sfq<Meta> {
    Sfq::new(config, &Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead")))
}

fn buckets(count: u32) -> FlowKeys {
    FlowKeys::Buckets { count: NonZeroU32::new(count).expect("above zero"), seed: 1 }
}

fn packet(flow: u32, ip_id: u16, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(flow), ip_id, ip_len, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn send(sfq: &mut Sfq<Meta>, count: usize) -> Vec<(u32, u16)> {
    let sent = std::iter::from_fn(|| sfq.dequeue(Instant::ZERO, &mut none));
    sent.take(count).map(|packet| (packet.flow.index(), packet.ip_id)).collect()
}

/// Two flows: quanta of 1500 are three packets of 500, and one of 1500.
#[test]
fn queues_take_turns_of_a_quantum() {
    let mut sfq = sfq(&config(100));
    for number in 0..6 {
        sfq.enqueue(Instant::ZERO, packet(1, number, 500), &mut none);
        sfq.enqueue(Instant::ZERO, packet(2, number, 1500), &mut none);
    }
    assert_eq!(send(&mut sfq, 6), [(1, 0), (1, 1), (1, 2), (2, 0), (1, 3), (1, 4)]);
}

/// Cells: 40 bytes and a trailer of 8 are one cell of 53 bytes, 576 are 13 cells (689), and 1500
/// are 32 (1696). Each flow gets a third of the bytes on the wire, to within a quantum.
#[test]
fn flows_share_the_wire_for_any_packet_sizes() {
    let line = LinkLayer::new(8, Framing::Atm).expect("8 bytes");
    let quantum = line.on_wire(lastmile_units::ByteCount::new(1500));
    let mut sfq = Sfq::new(&Config { quantum, ..config(127) }, &Environment::new(line));
    let mut sent = [0_u64; 3];
    let sizes = [40, 576, 1500];
    for (flow, size) in (0..).zip(sizes) {
        for number in 0..40 {
            sfq.enqueue(Instant::ZERO, packet(flow, number, size), &mut none);
        }
    }
    for number in 0..40_000_u32 {
        let left = sfq.dequeue(Instant::ZERO, &mut none).expect("all have something to send");
        sent[left.flow.index() as usize] += line.on_wire(left.ip_bytes()).as_u64();
        sfq.enqueue(Instant::ZERO, packet(left.flow.index(), number as u16, left.ip_len), &mut none);
    }
    let total: u64 = sent.iter().sum();
    for bytes in sent {
        assert!(bytes.abs_diff(total / 3) * 100 < total / 3, "{sent:?}");
    }
}

fn drops(sfq: &mut Sfq<Meta>, packets: &[(u32, u16)]) -> Vec<(u32, u16, DropReason)> {
    let mut dropped = Vec::new();
    for &(flow, number) in packets {
        let mut sink = |_, packet: Meta, reason| dropped.push((packet.flow.index(), packet.ip_id, reason));
        sfq.enqueue(Instant::ZERO, packet(flow, number, 500), &mut sink);
    }
    dropped
}

/// Five packets are one too many: flow 1 has three of them, and loses its newest, or its oldest.
#[test]
fn the_longest_queue_loses_a_packet() {
    let arrivals = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)];
    assert_eq!(drops(&mut sfq(&config(4)), &arrivals), [(1, 2, DropReason::Tail)]);
    let head = Config { drop: Overflow::Head, ..config(4) };
    assert_eq!(drops(&mut sfq(&head), &arrivals), [(1, 0, DropReason::Head)]);
}

/// When all flows have one packet, the flow that arrived last is dropped and released.
#[test]
fn a_flow_beyond_the_capacity_is_dropped() {
    let mut sfq = sfq(&config(2));
    assert_eq!(drops(&mut sfq, &[(1, 0), (2, 0), (3, 0)]), [(3, 0, DropReason::Tail)]);
    assert_eq!(send(&mut sfq, 9), [(1, 0), (2, 0)]);
    assert_eq!(drops(&mut sfq, &[(3, 1), (3, 2)]), []);
    assert_eq!(send(&mut sfq, 9), [(3, 1), (3, 2)]);
}

#[test]
fn a_queue_is_no_deeper_than_its_depth() {
    let shallow = Config { depth: PacketCount::new(2), ..config(100) };
    let arrivals = [(1, 0), (1, 1), (1, 2), (2, 0)];
    assert_eq!(drops(&mut sfq(&shallow), &arrivals), [(1, 2, DropReason::Tail)]);
    let head = Config { drop: Overflow::Head, ..shallow };
    let mut sfq = sfq(&head);
    assert_eq!(drops(&mut sfq, &arrivals), [(1, 0, DropReason::Head)]);
    assert_eq!(send(&mut sfq, 9), [(1, 1), (1, 2), (2, 0)]);
}

/// Of 16 flows in 8 buckets some share one. These change from period to period, and in each period
/// packets of a flow depart in the order of arrival.
#[test]
fn a_new_hash_reorders_no_flow() {
    let mut sfq = sfq(&Config { flows: buckets(8), perturb: Duration::from_ms(10), ..config(10_000) });
    let mut left = vec![Vec::new(); 16];
    for number in 0..200_u16 {
        let now = Instant::ZERO + Duration::from_ms(u64::from(number));
        for flow in 0..16 {
            sfq.enqueue(now, packet(flow, number, 1000), &mut |_, _, _| {});
        }
        for _ in 0..12 {
            let packet = sfq.dequeue(now, &mut none).expect("more comes than goes");
            left[packet.flow.index() as usize].push(packet.ip_id);
        }
    }
    assert_eq!(sfq.rehashes, 19);
    assert!(left.iter().all(|numbers| numbers.is_sorted() && !numbers.is_empty()), "{left:?}");
}

/// The test searches a flow that shares a bucket with flow 0. The new hash separates them although
/// their queue is never empty.
#[test]
fn a_new_hash_parts_flows_that_shared_a_bucket() {
    let mut sfq = sfq(&Config { flows: buckets(1024), perturb: Duration::from_s(10), ..config(127) });
    let first = sfq.flows.queue_of(0);
    let other = (1..100_000).find(|&flow| sfq.flows.queue_of(flow.into()) == first).expect("one of 1024");
    for number in 0..20 {
        sfq.enqueue(Instant::ZERO, packet(0, number, 1500), &mut none);
    }
    for number in 0..20 {
        sfq.enqueue(Instant::ZERO, packet(other, number, 1500), &mut none);
    }
    assert_eq!(send(&mut sfq, 2), [(0, 0), (0, 1)], "one queue");
    sfq.enqueue(Instant::ZERO + Duration::from_s(10), packet(0, 20, 1500), &mut none);
    assert_eq!(send(&mut sfq, 4), [(0, 2), (other, 0), (0, 3), (other, 1)]);
    assert_eq!(sfq.backlog().packets, PacketCount::new(35));
}

/// A bucket keeps its state when it is empty, a flow does not. In both cases a queue that is filled
/// again has a turn with a whole quantum of 1500, although 100 were sent in the turn before.
#[test]
fn a_queue_that_was_empty_begins_with_a_quantum() {
    for flows in [FlowKeys::Exact, buckets(1024)] {
        let mut sfq = sfq(&Config { flows, ..config(100) });
        sfq.enqueue(Instant::ZERO, packet(1, 0, 100), &mut none);
        assert_eq!(send(&mut sfq, 9), [(1, 0)]);
        for number in 0..20 {
            sfq.enqueue(Instant::ZERO, packet(1, number, 100), &mut none);
        }
        sfq.enqueue(Instant::ZERO, packet(2, 0, 100), &mut none);
        let sent = send(&mut sfq, 99);
        assert_eq!(sent.iter().position(|sent| sent.0 == 2), Some(15));
    }
}

/// A bucket that lost its only packet on overflow is in the round again when its next packet
/// arrives.
#[test]
fn a_bucket_beyond_the_capacity_is_dropped_once() {
    let mut sfq = sfq(&Config { flows: buckets(1024), ..config(2) });
    assert_eq!(drops(&mut sfq, &[(1, 0), (2, 0), (3, 0)]), [(3, 0, DropReason::Tail)]);
    assert_eq!(send(&mut sfq, 9), [(1, 0), (2, 0)]);
    assert_eq!(drops(&mut sfq, &[(3, 1), (3, 2)]), []);
    assert_eq!(send(&mut sfq, 9), [(3, 1), (3, 2)]);
}

/// Reused both after a departure and after a drop.
#[test]
fn the_number_of_a_forgotten_flow_is_reused() {
    let mut sfq = sfq(&config(2));
    drops(&mut sfq, &[(1, 0), (2, 0), (3, 0)]);
    assert_eq!(sfq.flows.queue_of(4), 2);
    send(&mut sfq, 1);
    assert_eq!(sfq.flows.queue_of(5), 0);
}

/// When a queue becomes empty the turn passes to the one behind it, and to no other.
#[test]
fn no_queue_is_skipped_when_another_becomes_empty() {
    let mut sfq = sfq(&config(100));
    for (flow, packets) in [(1, 1), (2, 2), (3, 2)] {
        for number in 0..packets {
            sfq.enqueue(Instant::ZERO, packet(flow, number, 1500), &mut none);
        }
    }
    assert_eq!(send(&mut sfq, 9), [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1)]);
}

/// Flow 1 had five packets and has one; flow 2, with two, is the longest. A new hash does not
/// change this.
#[test]
fn the_longest_queue_is_the_currently_longest() {
    for at in [Instant::ZERO, Instant::ZERO + Duration::from_s(10)] {
        let mut sfq = sfq(&Config { flows: buckets(1024), perturb: Duration::from_s(10), ..config(5) });
        assert_eq!(drops(&mut sfq, &[(1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]), []);
        assert_eq!(send(&mut sfq, 4).len(), 4);
        assert_eq!(drops(&mut sfq, &[(2, 0), (2, 1), (3, 0), (4, 0)]), []);
        let mut dropped = Vec::new();
        sfq.enqueue(at, packet(5, 0, 500), &mut |_, packet: Meta, _| dropped.push((packet.flow.index(), packet.ip_id)));
        assert_eq!(dropped, [(2, 1)]);
    }
}

/// The buckets of 50 flows from one period to the next.
#[test]
fn each_period_has_a_hash_of_its_own() {
    let mut sfq = sfq(&Config { flows: buckets(1024), perturb: Duration::from_s(1), ..config(127) });
    let mut places = Vec::new();
    for second in 0..4 {
        sfq.enqueue(Instant::ZERO + Duration::from_s(second), packet(1, 0, 100), &mut none);
        places.push((0..50).map(|flow| sfq.flows.queue_of(flow)).collect::<Vec<_>>());
    }
    places.sort();
    places.dedup();
    assert_eq!((places.len(), sfq.rehashes), (4, 3));
}

#[test]
fn counters_show_packets_sent_and_dropped() {
    for (drop, name) in [(Overflow::Tail, "dropped_tail"), (Overflow::Head, "dropped_head")] {
        let mut sfq = sfq(&Config { drop, ..config(2) });
        assert_eq!(drops(&mut sfq, &[(1, 0), (1, 1), (1, 2)]).len(), 1);
        assert_eq!(send(&mut sfq, 9).len(), 2);
        let mut counters = Vec::new();
        sfq.counters(&mut |counter| {
            if counter.value > 0 {
                counters.push((counter.name, counter.value));
            }
        });
        assert_eq!(counters, [("sent_packets", 2), ("sent_bytes", 1000), (name, 1)]);
    }
}
