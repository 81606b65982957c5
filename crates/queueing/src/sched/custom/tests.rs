use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};

use super::*;
use crate::DropReason;
use crate::classify::ClassIndex;
use crate::fifo::{Fifo, Overflow};

const NOW: Instant = Instant::ZERO;

fn packet(class: u32, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(class), ip_len, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

fn queues(counts: &[Count], excess: Excess) -> impl Discipline<Meta> + use<> {
    let fifo = || -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(1000), Overflow::Tail)) };
    let by_flow = |packet: &Meta| ClassIndex::new(packet.flow.index() as u16);
    let plain = LinkLayer::new(0, Framing::None).unwrap();
    CustomQueueing::new(by_flow, counts.iter().map(|count| (fifo(), *count)).collect(), excess, &plain).unwrap()
}

fn bytes(count: u64) -> Count {
    Count::Bytes(WireBytes::new(count))
}

/// The classes of the next packets.
fn order(queues: &mut impl Discipline<Meta>, count: usize) -> Vec<u32> {
    (0..count).map(|_| queues.dequeue(NOW, &mut none).unwrap().flow.index()).collect()
}

/// The example of the Cisco IOS guide: counts of 1500, 1500 and 1500 bytes and packets of 1086, 291
/// and 831 bytes make turns of 2, 6 and 2 packets.
#[test]
fn a_packet_that_crosses_the_count_is_sent_whole_and_ends_the_turn() {
    let mut queues = queues(&[bytes(1500); 3], Excess::Forgotten);
    for _ in 0..12 {
        for (class, size) in [(0, 1086), (1, 291), (2, 831)] {
            queues.enqueue(NOW, packet(class, size), &mut none);
        }
    }
    let turns = [0, 0, 1, 1, 1, 1, 1, 1, 2, 2];
    assert_eq!(order(&mut queues, 20), [turns, turns].concat());
}

/// A count of 1500 and packets of 1000: forgotten, always two a turn. Carried, the excess of 500 is
/// deducted from the next turn: two, one (1000 are left), two, one; 1500 a turn in the mean.
#[test]
fn bytes_above_the_count_are_forgotten_or_carried() {
    for (excess, expected) in
        [(Excess::Forgotten, [0, 0, 1, 0, 0, 1, 0, 0, 1]), (Excess::Carried, [0, 0, 1, 0, 1, 0, 0, 1, 0])]
    {
        let mut queues = queues(&[bytes(1500), bytes(500)], excess);
        for _ in 0..9 {
            queues.enqueue(NOW, packet(0, 1000), &mut none);
            queues.enqueue(NOW, packet(1, 500), &mut none);
        }
        assert_eq!(order(&mut queues, 9), expected, "{excess:?}");
    }
}

/// A packet of ten counts costs nine more turns, which no other queue needs: it still departs, and
/// so does the next.
#[test]
fn a_debt_of_many_turns_does_not_idle_the_line() {
    let mut queues = queues(&[bytes(100), bytes(100)], Excess::Carried);
    for _ in 0..3 {
        queues.enqueue(NOW, packet(0, 1000), &mut none);
    }
    assert_eq!(order(&mut queues, 3), [0, 0, 0]);
    assert_eq!(queues.dequeue(NOW, &mut none), None);
}

#[test]
fn counts_of_packets_ignore_sizes() {
    let packets = |count| Count::Packets(PacketCount::new(count));
    let mut queues = queues(&[packets(2), packets(1)], Excess::Forgotten);
    for _ in 0..4 {
        queues.enqueue(NOW, packet(0, 1500), &mut none);
        queues.enqueue(NOW, packet(1, 40), &mut none);
    }
    assert_eq!(order(&mut queues, 8), [0, 0, 1, 0, 0, 1, 1, 1]);
}

/// Two packets of a count of three, then an empty queue: the unused part of the count is lost, and
/// the next turn is whole.
#[test]
fn a_queue_that_runs_empty_gives_up_its_turn() {
    let mut queues = queues(&[bytes(300), bytes(100)], Excess::Forgotten);
    queues.enqueue(NOW, packet(0, 100), &mut none);
    for _ in 0..3 {
        queues.enqueue(NOW, packet(1, 100), &mut none);
    }
    assert_eq!(order(&mut queues, 2), [0, 1]);
    for _ in 0..4 {
        queues.enqueue(NOW, packet(0, 100), &mut none);
    }
    assert_eq!(order(&mut queues, 6), [0, 0, 0, 1, 0, 1]);
}

#[test]
fn counters_name_packets_and_bytes() {
    let mut queues = queues(&[bytes(1500), bytes(500)], Excess::Forgotten);
    for _ in 0..3 {
        queues.enqueue(NOW, packet(0, 1000), &mut none);
    }
    order(&mut queues, 3);
    let mut counters = Vec::new();
    queues.counters(&mut |c| {
        if c.value > 0 && c.kind == "custom" {
            counters.push(format!("{} {} {}", c.path, c.name, c.value));
        }
    });
    assert_eq!(counters, ["classes.0 sent_packets 3", "classes.0 sent_bytes 3000", "classes.0 sent_wire_bytes 3000"]);
}

#[test]
fn an_empty_list_of_queues_and_a_count_of_zero_are_refused() {
    let fifo = || -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(1), Overflow::Tail)) };
    let plain = LinkLayer::new(0, Framing::None).unwrap();
    let first = |_: &Meta| ClassIndex::new(0);
    assert!(CustomQueueing::new(first, vec![], Excess::Forgotten, &plain).is_none());
    assert!(CustomQueueing::new(first, vec![(fifo(), bytes(0))], Excess::Forgotten, &plain).is_none());
}

/// A count of 500 and packets of 1000: each owes the whole of the next turn, and of no other.
#[test]
fn a_debt_of_a_whole_count_costs_a_turn() {
    let mut queues = queues(&[bytes(500); 2], Excess::Carried);
    for _ in 0..6 {
        queues.enqueue(NOW, packet(0, 1000), &mut none);
        queues.enqueue(NOW, packet(1, 500), &mut none);
    }
    assert_eq!(order(&mut queues, 9), [0, 1, 1, 0, 1, 1, 0, 1, 1]);
}

/// 40 bytes are a cell of 53: two make 106. A packet without a queue goes to the last.
#[test]
fn counts_are_in_bytes_on_the_wire() {
    let fifo = || -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(1000), Overflow::Tail)) };
    let by_flow = |packet: &Meta| ClassIndex::new(packet.flow.index() as u16);
    let atm = LinkLayer::new(8, Framing::Atm).unwrap();
    let counts = vec![(fifo(), bytes(106)), (fifo(), bytes(106))];
    let mut queues = CustomQueueing::new(by_flow, counts, Excess::Forgotten, &atm).unwrap();
    for _ in 0..6 {
        queues.enqueue(NOW, packet(0, 40), &mut none);
        queues.enqueue(NOW, packet(9, 1500), &mut none);
    }
    assert_eq!(queues.backlog().bytes.as_u64(), 6 * 1540);
    assert_eq!(order(&mut queues, 9), [0, 0, 9, 0, 0, 9, 0, 0, 9]);
}
