use lastmile_linklayer::Framing;
use lastmile_packet::Meta;
use lastmile_units::CellCount;

use super::*;

const NOW: Instant = Instant::ZERO;

/// RFC 2684 routed, VC-multiplexed: the overhead is the AAL5 trailer of 8 bytes, so 40 bytes take
/// one cell and 1500 take 32.
fn atm() -> LinkLayer {
    LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes")
}

fn in_bytes(limit: u64, overflow: Overflow) -> Fifo<Meta> {
    Fifo::new(Limit::Bytes(ByteCount::new(limit)), overflow, &atm()).expect("a limit in bytes")
}

fn packet(number: u16, ip_len: u16) -> Meta {
    Meta { ip_id: number, ip_len, ..Meta::default() }
}

/// Drops, as (number of the packet, reason).
fn fill(fifo: &mut Fifo<Meta>, packets: &[(u16, u16)]) -> Vec<(u16, DropReason)> {
    let mut dropped = Vec::new();
    for &(number, ip_len) in packets {
        let mut sink = |_, packet: Meta, reason| dropped.push((packet.ip_id, reason));
        fifo.enqueue(NOW, packet(number, ip_len), &mut sink);
    }
    dropped
}

fn drain(fifo: &mut Fifo<Meta>) -> Vec<u16> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| fifo.dequeue(NOW, &mut none)).map(|packet| packet.ip_id).collect()
}

#[test]
fn tail_drop_keeps_the_oldest() {
    let mut fifo = Fifo::in_packets(PacketCount::new(2), Overflow::Tail);
    assert_eq!(fill(&mut fifo, &[(1, 40), (2, 40), (3, 40)]), [(3, DropReason::Tail)]);
    assert_eq!(drain(&mut fifo), [1, 2]);
}

#[test]
fn head_drop_keeps_the_newest() {
    let mut fifo = Fifo::in_packets(PacketCount::new(2), Overflow::Head);
    assert_eq!(fill(&mut fifo, &[(1, 40), (2, 40), (3, 40)]), [(1, DropReason::Head)]);
    assert_eq!(drain(&mut fifo), [2, 3]);
}

/// Packets that a line holds count as if they were in the queue.
#[test]
fn a_line_may_hold_the_packets_that_the_queue_admits() {
    let counters = |fifo: &Fifo<Meta>| {
        let mut counters = Vec::new();
        fifo.counters(&mut |counter| counters.push((counter.name, counter.value)));
        counters
    };
    let mut fifo = in_bytes(1000, Overflow::Tail);
    let mut other = fifo.clone();
    let held = [packet(2, 600), packet(3, 400)];
    assert!(!fifo.admits(&packet(1, 1001)) && held.iter().all(|packet| fifo.admits(packet)));
    assert_eq!(fill(&mut other, &[(2, 600), (3, 400)]), []);
    assert_eq!(fifo.backlog(), other.backlog());
    assert!(!fifo.admits(&packet(4, 40)));
    assert_eq!(fill(&mut fifo, &[(4, 40)]), fill(&mut other, &[(4, 40)]));
    fifo.departs(&held[0]);
    fifo.take_back([held[1]].into());
    assert!(!fifo.admits(&packet(5, 40)), "it would overtake packet 3");
    assert_eq!((drain(&mut fifo), drain(&mut other)), (vec![3], vec![2, 3]));
    assert_eq!((counters(&fifo), fifo.backlog()), (counters(&other), other.backlog()));
}

#[test]
fn a_queue_that_drops_from_the_front_keeps_its_packets() {
    assert!(!in_bytes(1000, Overflow::Head).admits(&packet(1, 40)));
}

#[test]
fn a_byte_limit_lets_a_small_packet_in_where_a_large_one_does_not_fit() {
    let mut fifo = in_bytes(3000, Overflow::Tail);
    assert_eq!(fill(&mut fifo, &[(1, 1500), (2, 1461), (3, 40), (4, 39)]), [(3, DropReason::Tail)]);
    assert_eq!(fifo.backlog(), Backlog { packets: PacketCount::new(3), bytes: ByteCount::new(3000) });
    assert_eq!(drain(&mut fifo), [1, 2, 4]);
    assert_eq!(fifo.backlog(), Backlog::default());
}

#[test]
fn head_drop_frees_the_space_that_a_large_packet_needs() {
    let mut fifo = in_bytes(1600, Overflow::Head);
    let dropped = fill(&mut fifo, &[(1, 40), (2, 40), (3, 40), (4, 1500)]);
    assert_eq!(dropped, [(1, DropReason::Head)]);
    assert_eq!(drain(&mut fifo), [2, 3, 4]);
}

/// 33 cells hold one packet of 1500 bytes (1508 / 48 = 31.4: 32 cells) and one of 40.
#[test]
fn a_cell_limit_counts_cells_on_the_line() {
    let limit = Limit::Cells(CellCount::new(33));
    let mut fifo = Fifo::new(limit, Overflow::Tail, &atm()).expect("a line of cells");
    assert_eq!(
        fill(&mut fifo, &[(1, 1500), (2, 41), (3, 40), (4, 40)]),
        [(2, DropReason::Tail), (4, DropReason::Tail)]
    );
    assert_eq!(drain(&mut fifo), [1, 3]);
}

#[test]
fn a_cell_limit_is_refused_on_a_line_without_cells() {
    let plain = LinkLayer::new(0, Framing::None).expect("no overhead");
    assert!(Fifo::<Meta>::new(Limit::Cells(CellCount::new(33)), Overflow::Tail, &plain).is_none());
}

#[test]
fn a_packet_above_the_whole_limit_never_empties_the_queue() {
    for overflow in [Overflow::Tail, Overflow::Head] {
        let mut fifo = in_bytes(1000, overflow);
        assert_eq!(fill(&mut fifo, &[(1, 400), (2, 1001), (3, 600)]), [(2, DropReason::TooLarge)]);
        assert_eq!(drain(&mut fifo), [1, 3]);
    }
}

#[test]
fn counters_add_up() {
    let mut fifo = in_bytes(100, Overflow::Head);
    fill(&mut fifo, &[(1, 60), (2, 60), (3, 101), (4, 40)]);
    drain(&mut fifo);
    let mut counts = Vec::new();
    fifo.counters(&mut |c| counts.push((c.name, c.value)));
    let expected =
        [("sent_packets", 2), ("sent_bytes", 100), ("dropped_tail", 0), ("dropped_head", 1), ("dropped_too_large", 1)];
    assert_eq!(counts, expected);
}

#[test]
fn a_packet_as_large_as_the_whole_limit_fits() {
    for overflow in [Overflow::Tail, Overflow::Head] {
        let mut fifo = in_bytes(1000, overflow);
        assert_eq!(fill(&mut fifo, &[(1, 1000)]), []);
        assert_eq!((fifo.next_ready(NOW), drain(&mut fifo)), (Some(NOW), vec![1]));
        assert_eq!(fifo.next_ready(NOW), None);
    }
}

#[test]
fn tail_drops_are_counted() {
    let mut fifo = Fifo::in_packets(PacketCount::new(1), Overflow::Tail);
    fill(&mut fifo, &[(1, 60), (2, 60), (3, 60)]);
    let mut tail = 0;
    fifo.counters(&mut |counter| tail += if counter.name == "dropped_tail" { counter.value } else { 0 });
    assert_eq!(tail, 2);
}
