use std::num::NonZeroU32;

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};

use super::*;

fn config(limit: u64) -> Config {
    Config { limit: PacketCount::new(limit), memory: ByteCount::new(1 << 20), ..Config::default() }
}

fn scheduler(config: &Config) -> FqCodel<Meta> {
    FqCodel::new(config, &Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead")))
}

fn packet(flow: u32, ip_id: u16, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(flow), ip_id, ip_len, ..Meta::default() }
}

fn send(scheduler: &mut FqCodel<Meta>, count: usize) -> Vec<(u32, u16)> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    let sent = std::iter::from_fn(|| scheduler.dequeue(Instant::ZERO, &mut none));
    sent.take(count).map(|packet| (packet.flow.index(), packet.ip_id)).collect()
}

/// Two long queues take turns, a quantum each; a new flow with one packet goes before both.
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

/// RFC 8290, section 4.2: an emptied new flow becomes an old one, so its next packet is not first
/// again.
#[test]
fn a_flow_that_was_emptied_is_not_new_at_once_again() {
    let mut scheduler = scheduler(&config(1000));
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for number in 0..10 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 500), &mut none);
    }
    assert_eq!(send(&mut scheduler, 2), [(1, 0), (1, 1)]);
    scheduler.enqueue(Instant::ZERO, packet(2, 0, 100), &mut none);
    // Flow 1 has 500 of its quantum left, flow 2 is next and then moves, empty, behind flow 1.
    assert_eq!(send(&mut scheduler, 3), [(1, 2), (2, 0), (1, 3)]);
    scheduler.enqueue(Instant::ZERO, packet(2, 1, 100), &mut none);
    assert_eq!(send(&mut scheduler, 3), [(1, 4), (1, 5), (2, 1)]);
    assert_eq!(scheduler.rounds.new_flows(), 2);
}

/// The eleventh packet exceeds the limit: flow 1 has the largest backlog, and half of its nine
/// packets, five, are dropped from its head.
#[test]
fn the_fattest_flow_loses_half_of_its_queue() {
    let mut scheduler = scheduler(&config(10));
    let mut dropped = Vec::new();
    for number in 0..9 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 500), &mut |_, _, _| panic!("the queue is not full"));
    }
    for number in 0..2 {
        let mut sink = |_, packet: Meta, reason| dropped.push((packet.flow.index(), packet.ip_id, reason));
        scheduler.enqueue(Instant::ZERO, packet(2, number, 1500), &mut sink);
    }
    let expected: Vec<_> = (0..5).map(|number| (1, number, DropReason::Head)).collect();
    assert_eq!(dropped, expected);
}

/// Of 200 packets in one queue, 64 are dropped, not 100.
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

fn drops(scheduler: &mut FqCodel<Meta>, packets: &[(u32, u16)]) -> Vec<(u32, u16, DropReason)> {
    let mut dropped = Vec::new();
    for &(flow, ip_len) in packets {
        let mut sink = |_, packet: Meta, reason| dropped.push((packet.flow.index(), packet.ip_len, reason));
        scheduler.enqueue(Instant::ZERO, packet(flow, 0, ip_len), &mut sink);
    }
    dropped
}

/// Packets within the limits are kept, up to the last packet and byte.
#[test]
fn limits_are_for_packets_and_for_bytes() {
    let mut scheduler = scheduler(&config(3));
    assert_eq!(drops(&mut scheduler, &[(1, 100), (1, 100), (2, 100)]), []);
    assert_eq!(drops(&mut scheduler, &[(2, 99)]), [(1, 100, DropReason::Head)]);
    let small = Config { memory: ByteCount::new(3000), ..config(100) };
    let mut scheduler = self::scheduler(&small);
    assert_eq!(drops(&mut scheduler, &[(1, 1500), (1, 1500)]), []);
    assert_eq!(drops(&mut scheduler, &[(2, 1)]), [(1, 1500, DropReason::Head)]);
    let mut scheduler = self::scheduler(&small);
    assert_eq!(drops(&mut scheduler, &[(1, 3001), (1, 3000)]), [(1, 3001, DropReason::TooLarge)]);
    assert_eq!(scheduler.backlog().packets, PacketCount::new(1));
    assert_eq!((scheduler.tally.too_large, scheduler.tally.head), (1, 0));
}

/// Packets arrive at 0 and depart every 10 ms: the episode begins at 110 ms, as in CoDel alone, and
/// only in this queue. A flow that was released and returns has new CoDel state.
#[test]
fn each_flow_has_its_own_codel_until_it_is_forgotten() {
    let mut scheduler = scheduler(&config(1000));
    for number in 0..40 {
        scheduler.enqueue(Instant::ZERO, packet(1, number, 1000), &mut |_, _, _| panic!("the queue is not full"));
    }
    let mut dropped = Vec::new();
    for at in (10..=210).step_by(10) {
        let now = Instant::ZERO + Duration::from_ms(at);
        scheduler.dequeue(now, &mut |_, packet: Meta, reason| dropped.push((at, packet.ip_id, reason)));
    }
    assert_eq!(dropped, [(110, 10, DropReason::Aqm), (210, 21, DropReason::Aqm)]);
    assert_eq!((scheduler.signals.dropped, scheduler.signals.episodes), (2, 1));
    let queue = scheduler.flows.queue_of(1);
    assert_ne!(scheduler.flows.state(queue).law, ControlLaw::default());
    let end = Instant::ZERO + Duration::from_ms(215);
    while scheduler.dequeue(end, &mut |_, _, _| {}).is_some() {}
    let queue = scheduler.flows.queue_of(1);
    assert_eq!(scheduler.flows.state(queue).law, ControlLaw::default());
    assert_eq!(scheduler.next_ready(end), None);
}

/// 1500 bytes take 32 cells, 1696 bytes: the largest packet. One of them queued behind is no
/// standing queue.
#[test]
fn a_largest_packet_is_as_large_as_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let mut scheduler = FqCodel::new(&config(1000), &Environment::new(atm));
    for step in 0..100_u16 {
        let now = Instant::ZERO + Duration::from_ms(u64::from(step) * 10 + 50);
        while scheduler.backlog().packets < PacketCount::new(2) {
            scheduler.enqueue(now, packet(1, step, 1500), &mut |_, _, _| panic!("the queue is not full"));
        }
        let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
        assert!(scheduler.dequeue(now, &mut none).is_some());
    }
}

/// ECN-capable senders: the packets that depart at 110 and 210 ms are marked.
#[test]
fn marks_take_the_place_of_drops_and_all_is_counted() {
    let mut scheduler = scheduler(&Config { ecn: true, ..config(1000) });
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for number in 0..40 {
        scheduler.enqueue(Instant::ZERO, Meta { traffic_class: 2, ..packet(1, number, 1000) }, &mut none);
    }
    let mut marked = Vec::new();
    for at in (10..=210).step_by(10) {
        let sent = scheduler.dequeue(Instant::ZERO + Duration::from_ms(at), &mut none).expect("a packet");
        if sent.ecn() == Meta::CE {
            marked.push(at);
        }
    }
    assert_eq!(marked, [110, 210]);
    let mut counters = Vec::new();
    scheduler.counters(&mut |counter| {
        if counter.value > 0 {
            counters.push((counter.name, counter.value));
        }
    });
    let expected = [("sent_packets", 21), ("sent_bytes", 21_000), ("marked", 2), ("episodes", 1), ("new_flows", 1)];
    assert_eq!(counters, expected);
}
