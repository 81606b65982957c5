use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta, Options, SackBlock, SeqNumber, TcpFlags};
use lastmile_units::PacketCount;

use super::*;
use crate::ack::tests::{counted, duplicates_with_sack};

const NOW: Instant = Instant::ZERO;

fn queue(packets: u64, overflow: Overflow) -> AckCollapsing<Meta> {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    let limit = Limit::Packets(PacketCount::new(packets));
    AckCollapsing::new(limit, overflow, &Match::Flow(FlowId::new(7)), &Environment::new(line))
        .expect("no limit in cells")
}

fn ack(of: u32, number: u32) -> Meta {
    let (flow, ack) = (FlowId::new(of), SeqNumber::new(number));
    Meta { flow, ack, window: 100, flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() }
}

fn acks<const N: usize>(numbers: [u32; N]) -> [Meta; N] {
    numbers.map(|number| ack(1, number))
}

fn send(queue: &mut AckCollapsing<Meta>, packets: impl IntoIterator<Item = Meta>) -> Vec<(Meta, DropReason)> {
    let mut dropped = Vec::new();
    for packet in packets {
        queue.enqueue(NOW, packet, &mut |_, packet, reason| dropped.push((packet, reason)));
    }
    dropped
}

/// The departing packet, and the packets dropped in its favour.
fn leave(queue: &mut AckCollapsing<Meta>) -> Option<(Meta, Vec<Meta>)> {
    let mut dropped = Vec::new();
    let packet = queue.dequeue(NOW, &mut |_, packet, reason| {
        assert_eq!(reason, DropReason::AckCollapsed);
        dropped.push(packet);
    })?;
    Some((packet, dropped))
}

fn drain(queue: &mut AckCollapsing<Meta>) -> Vec<Meta> {
    std::iter::from_fn(|| leave(queue)).map(|(packet, _)| packet).collect()
}

/// All four are queued until then; behind the data no packet of flow 1 is left.
#[test]
fn the_newest_departs_in_the_position_of_the_oldest() {
    let mut queue = queue(10, Overflow::Tail);
    let data = Meta { ip_len: 1500, ..ack(9, 0) };
    assert_eq!(send(&mut queue, [ack(1, 1000), ack(2, 10), data, ack(1, 2000), ack(1, 3000)]), []);
    assert_eq!(queue.backlog().packets.as_u64(), 5);
    assert_eq!(leave(&mut queue), Some((ack(1, 3000), vec![ack(1, 1000), ack(1, 2000)])));
    assert_eq!(drain(&mut queue), [ack(2, 10), data]);
    assert!(queue.queue.remembers_nothing());
}

#[test]
fn duplicates_stay_behind_the_ack_that_they_repeat() {
    let mut queue = queue(10, Overflow::Tail);
    send(&mut queue, acks([1000, 2000, 2000, 2000, 2000, 6000, 7000]));
    assert_eq!(drain(&mut queue), acks([2000, 2000, 2000, 2000, 7000]));
}

/// RFC 5681 counts three duplicates; RFC 6675 reads the blocks of all, which the last one has.
#[test]
fn behind_three_duplicates_the_newest_sack_blocks_depart() {
    let mut queue = queue(100, Overflow::Tail);
    let came = duplicates_with_sack();
    send(&mut queue, came[..7].to_vec());
    assert_eq!(drain(&mut queue), [came[0], came[1], came[2], came[3], came[6]]);
    let plain = [came[0]; 6];
    send(&mut queue, plain);
    assert_eq!(drain(&mut queue), plain);
}

#[test]
fn nothing_is_overtaken() {
    let mut queue = queue(10, Overflow::Tail);
    let data = Meta { ip_len: 1500, ..ack(1, 2000) };
    let fin = Meta { flags: TcpFlags::ACK.with(TcpFlags::FIN), ..ack(1, 5000) };
    send(&mut queue, [ack(1, 1000), ack(1, 2000), data, ack(1, 3000), ack(1, 4000), fin]);
    assert_eq!(drain(&mut queue), [ack(1, 2000), data, ack(1, 4000), fin]);
}

#[test]
fn an_ack_with_information_that_the_newer_lacks_departs_itself() {
    let mut queue = queue(10, Overflow::Tail);
    let mut with_blocks = ack(1, 1000);
    let block = SackBlock { left: SeqNumber::new(5000), right: SeqNumber::new(6000) };
    with_blocks.set_options(Options::NONE.with_sack(&[block]));
    (with_blocks.header_len, with_blocks.ip_len) = (52, 52);
    let mut stamped = ack(1, 3000);
    stamped.set_options(Options::NONE.with_timestamps(1, 1));
    (stamped.header_len, stamped.ip_len) = (52, 52);
    send(&mut queue, [with_blocks, ack(1, 2000), stamped, ack(1, 4000)]);
    assert_eq!(drain(&mut queue), [with_blocks, stamped, ack(1, 4000)]);
}

#[test]
fn the_latest_window_leaves_and_a_repeated_one_too() {
    let mut queue = queue(10, Overflow::Tail);
    let open = |window| Meta { window, ..ack(1, 1000) };
    send(&mut queue, [open(0), open(500), open(900), open(900)]);
    assert_eq!(drain(&mut queue), [open(900), open(900)]);
}

#[test]
fn reordered_and_exempt_acks_stay_unchanged() {
    let mut queue = queue(10, Overflow::Tail);
    let exempt = [ack(7, 1), ack(7, 2)];
    send(&mut queue, acks([2000, 1000, 3000]).into_iter().chain(exempt));
    assert_eq!(drain(&mut queue), [ack(1, 2000), ack(1, 1000), ack(1, 3000), ack(7, 1), ack(7, 2)]);
}

/// Every ACK uses its space until one departs.
#[test]
fn a_full_queue_drops_at_its_tail_or_head() {
    let mut tail = queue(2, Overflow::Tail);
    assert_eq!(send(&mut tail, acks([1000, 2000, 3000])), [(ack(1, 3000), DropReason::Tail)]);
    let mut head = queue(2, Overflow::Head);
    assert_eq!(send(&mut head, acks([1000, 2000, 3000])), [(ack(1, 1000), DropReason::Head)]);
    assert_eq!(leave(&mut head), Some((ack(1, 3000), vec![ack(1, 2000)])));
}

/// The data acknowledges 2000, so the ACK of 2000 behind it is a duplicate and in no run. A reset
/// without ACK acknowledges nothing (RFC 9293, section 3.1).
#[test]
fn an_ack_that_repeats_the_number_of_data_counts_as_a_duplicate() {
    let mut queue = queue(10, Overflow::Tail);
    let answer = Meta { ip_len: 1500, ..ack(1, 2000) };
    let reset = Meta { flags: TcpFlags::RST, ..ack(1, 9000) };
    send(&mut queue, [answer, ack(1, 2000), reset, ack(1, 3000), ack(1, 4000)]);
    assert_eq!(drain(&mut queue), [answer, ack(1, 2000), reset, ack(1, 4000)]);
}

/// 1000 gives way to 2000, which a duplicate repeats; 1500 was reordered; 4000 lacks the timestamps
/// of the stamped ACK.
#[test]
fn each_packet_is_counted_once_by_its_fate() {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    let new = |bytes, overflow| {
        let limit = Limit::Bytes(lastmile_units::ByteCount::new(bytes));
        AckCollapsing::new(limit, overflow, &Match::Never, &Environment::new(line)).expect("no limit in cells")
    };
    let mut tail = new(252, Overflow::Tail);
    let mut stamped = ack(1, 3000);
    stamped.set_options(Options::NONE.with_timestamps(1, 1));
    (stamped.header_len, stamped.ip_len) = (52, 52);
    send(&mut tail, acks([1000, 2000, 2000, 1500]));
    let large = Meta { ip_len: 253, ..ack(1, 5000) };
    send(&mut tail, [stamped, ack(1, 4000), ack(2, 1), large]);
    assert_eq!(drain(&mut tail).len(), 5);
    let expected = [
        ("sent_packets", 5),
        ("sent_bytes", 3 * 40 + 52 + 40),
        ("dropped_tail", 1),
        ("dropped_too_large", 1),
        ("seen", 6),
        ("dropped_ack_collapsed", 1),
        ("duplicates_kept", 1),
        ("protected", 1),
        ("passed_old", 1),
    ];
    assert_eq!(counted(&tail), expected);
    let mut head = new(40, Overflow::Head);
    send(&mut head, acks([1000, 2000]));
    assert_eq!(counted(&head), [("dropped_head", 1), ("seen", 2)]);
}

/// RFC 9768, section 3.3.3: see the test of the filter of this name.
#[test]
fn every_third_ack_that_counts_marks_stays() {
    let mut queue = queue(100, Overflow::Tail);
    let counts = |number, marks| Meta { flags: TcpFlags::ACK.with_ace(marks), ..ack(1, number) };
    send(&mut queue, (1..=7).map(|n| counts(1000 * n, 5)).chain((8..=9).map(|n| counts(1000 * n, 6))));
    assert_eq!(drain(&mut queue), [counts(3000, 5), counts(6000, 5), counts(7000, 5), counts(9000, 6)]);
}
