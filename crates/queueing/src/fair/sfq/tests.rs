use std::num::NonZeroU32;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};

use super::*;

fn config(limit: u64) -> Config {
    Config {
        flows: FlowKeys::Exact,
        quantum: WireBytes::new(1500),
        perturb: Duration::ZERO,
        limit: PacketCount::new(limit),
        depth: PacketCount::new(127),
        drop: Overflow::Tail,
    }
}

fn sfq(config: &Config) -> Sfq<Meta> {
    Sfq::new(config, &LinkLayer::new(0, Framing::None).expect("no overhead"))
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

/// Of cells: 40 bytes and a trailer of 8 are one cell of 53, 576 are 13 of them (689), and 1500 are 32 (1696). Each flow gets a
/// third of them, to within a quantum.
#[test]
fn flows_share_the_wire_whatever_their_packets() {
    let line = LinkLayer::new(8, Framing::Atm).expect("8 bytes");
    let quantum = line.on_wire(lastmile_units::ByteCount::new(1500));
    let mut sfq = Sfq::new(&Config { quantum, ..config(127) }, &line);
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

/// Five packets are one too many: flow 1 has three of them, and its newest goes, or its oldest.
#[test]
fn the_longest_queue_pays() {
    let arrivals = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0)];
    assert_eq!(drops(&mut sfq(&config(4)), &arrivals), [(1, 2, DropReason::Tail)]);
    let head = Config { drop: Overflow::Head, ..config(4) };
    assert_eq!(drops(&mut sfq(&head), &arrivals), [(1, 0, DropReason::Head)]);
}

/// When all have one packet, the flow that came last gives way, and is forgotten.
#[test]
fn a_flow_too_many_finds_no_room() {
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

/// Of 16 flows in 8 buckets some share one. From one period to the next other flows do, and in each period each flow leaves
/// in the order in which it came.
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

/// Flows that share a bucket, found by asking; the new hash parts them although their queue is never empty.
#[test]
fn a_new_hash_parts_flows_that_shared_a_bucket() {
    let mut sfq = sfq(&Config { flows: buckets(1024), perturb: Duration::from_s(10), ..config(127) });
    let first = sfq.flows.queue_of(FlowId::new(0));
    let other = (1..100_000).find(|&flow| sfq.flows.queue_of(FlowId::new(flow)) == first).expect("one of 1024");
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
