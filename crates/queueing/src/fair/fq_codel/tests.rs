use std::num::NonZeroU32;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};

use super::*;

fn config(limit: u64) -> Config {
    Config {
        flows: FlowKeys::Exact,
        quantum: WireBytes::new(1500),
        limit: PacketCount::new(limit),
        memory: ByteCount::new(1 << 20),
        target: Duration::from_ms(5),
        interval: Duration::from_ms(100),
        ecn: false,
        largest: ByteCount::new(1500),
    }
}

fn scheduler(config: &Config) -> FqCodel<Meta> {
    FqCodel::new(config, &LinkLayer::new(0, Framing::None).expect("no overhead"))
}

fn packet(flow: u32, ip_id: u16, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(flow), ip_id, ip_len, ..Meta::default() }
}

fn send(scheduler: &mut FqCodel<Meta>, count: usize) -> Vec<(u32, u16)> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let sent = std::iter::from_fn(|| scheduler.dequeue(Instant::ZERO, &mut none));
    sent.take(count).map(|packet| (packet.flow.index(), packet.ip_id)).collect()
}

/// Two long queues take turns, a quantum each; a flow that comes with one packet goes before both.
#[test]
fn sparse_flows_go_first() {
    let mut scheduler = scheduler(&config(1000));
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for number in 0..10 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 1500), &mut none);
        scheduler.enqueue(Instant::ZERO, packet(2, number, 1500), &mut none);
    }
    // Both are new and send a quantum; then they are old.
    assert_eq!(send(&mut scheduler, 3), [(1, 0), (2, 0), (1, 1)]);
    scheduler.enqueue(Instant::ZERO, packet(3, 0, 100), &mut none);
    assert_eq!(send(&mut scheduler, 4), [(3, 0), (2, 1), (1, 2), (2, 2)]);
}

/// RFC 8290, section 4.2: a new flow that has been emptied goes to the old ones, so its next packet is not first again.
#[test]
fn a_flow_that_was_emptied_is_not_new_at_once_again() {
    let mut scheduler = scheduler(&config(1000));
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for number in 0..10 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 500), &mut none);
    }
    assert_eq!(send(&mut scheduler, 2), [(1, 0), (1, 1)]);
    scheduler.enqueue(Instant::ZERO, packet(2, 0, 100), &mut none);
    // Flow 1 has 500 of its quantum left, flow 2 is next; then it waits, empty, behind flow 1.
    assert_eq!(send(&mut scheduler, 3), [(1, 2), (2, 0), (1, 3)]);
    scheduler.enqueue(Instant::ZERO, packet(2, 1, 100), &mut none);
    assert_eq!(send(&mut scheduler, 3), [(1, 4), (1, 5), (2, 1)]);
    assert_eq!(scheduler.new_flows, 2);
}

/// The eleventh packet is one too many: flow 1 holds most, and half of its nine, five, go from its head.
#[test]
fn the_fattest_flow_loses_half_of_its_queue() {
    let mut scheduler = scheduler(&config(10));
    let mut dropped = Vec::new();
    for number in 0..9 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 500), &mut |_, _, _| panic!("there is room"));
    }
    for number in 0..2 {
        let mut sink = |_, packet: Meta, reason| dropped.push((packet.flow.index(), packet.ip_id, reason));
        scheduler.enqueue(Instant::ZERO, packet(2, number, 1500), &mut sink);
    }
    let expected: Vec<_> = (0..5).map(|number| (1, number, DropReason::Head)).collect();
    assert_eq!(dropped, expected);
}

/// Of 200 packets that share one queue, 64 go and not 100.
#[test]
fn no_more_than_a_batch_goes_at_once() {
    let buckets = FlowKeys::Buckets { count: NonZeroU32::MIN, seed: 1 };
    let mut scheduler = scheduler(&Config { flows: buckets, ..config(200) });
    let mut dropped = 0;
    for number in 0..201 {
        scheduler.enqueue(Instant::ZERO, packet(u32::from(number), number, 100), &mut |_, _, _| dropped += 1);
    }
    assert_eq!((dropped, scheduler.backlog().packets), (64, PacketCount::new(137)));
}
