use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{Meta, Options, SackBlock, SeqNumber};
use lastmile_units::{ByteCount, PacketCount};

use super::*;
use crate::ack::tests::{counted, duplicates_with_sack};

const NOW: Instant = Instant::ZERO;

fn filter(limit: Limit, overflow: Overflow, rules: &Rules) -> AckFilter<Meta> {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    AckFilter::new(limit, overflow, rules, &Environment::new(line)).expect("no limit in cells")
}

fn with_ample_space(rules: &Rules) -> AckFilter<Meta> {
    filter(Limit::Packets(PacketCount::new(1000)), Overflow::Tail, rules)
}

fn ack(of: u32, number: u32) -> Meta {
    Meta {
        flow: FlowId::new(of),
        ack: SeqNumber::new(number),
        window: 100,
        flags: TcpFlags::ACK,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    }
}

fn acks<const N: usize>(numbers: [u32; N]) -> [Meta; N] {
    numbers.map(|number| ack(1, number))
}

fn data() -> Meta {
    Meta { ip_len: 1500, ..ack(9, 0) }
}

fn send(filter: &mut AckFilter<Meta>, packets: impl IntoIterator<Item = Meta>) -> Vec<(Meta, DropReason)> {
    let mut dropped = Vec::new();
    for packet in packets {
        filter.enqueue(NOW, packet, &mut |_, packet, reason| dropped.push((packet, reason)));
    }
    dropped
}

fn drain(filter: &mut AckFilter<Meta>) -> Vec<Meta> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| filter.dequeue(NOW, &mut none)).collect()
}

/// RFC 3168, section 6.1: of the ACKs with CWR, without, and with it again the sender sees both changes.
#[test]
fn an_ack_before_a_change_of_marks_does_not_give_way_to_one_after_the_change_back() {
    let cwr = |number| Meta { flags: TcpFlags::ACK.with(TcpFlags::CWR), ..ack(1, number) };
    let mut filter = with_ample_space(&Rules::default());
    let packets = [cwr(1000), cwr(2000), ack(1, 3000), cwr(4000)];
    assert_eq!(send(&mut filter, packets), [(cwr(1000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), packets[1..]);
}

/// An ACK that no rule of the filter touches reports a change of marks all the same.
#[test]
fn a_change_of_marks_counts_also_on_an_ack_that_passes() {
    let cwr = |number| Meta { flags: TcpFlags::ACK.with(TcpFlags::CWR), ..ack(1, number) };
    for rules in [Rules::default(), Rules { duplicates: Duplicates::Remove, ..Rules::default() }] {
        let mut filter = with_ample_space(&rules);
        let marked = Meta { traffic_class: 3, ..ack(1, 2000) };
        let packets = [cwr(1000), marked, cwr(3000)];
        assert_eq!(send(&mut filter, packets), []);
        assert_eq!(drain(&mut filter), packets);
    }
}

/// RFC 3449, section 5.2.1: older ACKs are removed, the new one goes to the tail, behind the data.
#[test]
fn a_new_ack_removes_older_ones_of_its_flow_and_goes_to_the_tail() {
    let mut filter = with_ample_space(&Rules::default());
    let dropped = send(&mut filter, [ack(1, 1000), ack(2, 10), data(), ack(1, 2000)]);
    assert_eq!(dropped, [(ack(1, 1000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), [ack(2, 10), data(), ack(1, 2000)]);
    assert!(filter.flows.is_empty());
}

#[test]
fn duplicates_protect_themselves_and_the_ack_that_they_repeat() {
    let mut filter = with_ample_space(&Rules::default());
    send(&mut filter, acks([1000, 2000, 2000, 2000, 2000, 6000, 7000]));
    assert_eq!(drain(&mut filter), acks([2000, 2000, 2000, 2000, 7000]));
}

/// RFC 5681 counts three duplicates; RFC 6675 reads the blocks of all, which the last one has.
#[test]
fn behind_three_duplicates_the_newest_sack_blocks_remove_older_ones() {
    let mut filter = with_ample_space(&Rules::default());
    let came = duplicates_with_sack();
    send(&mut filter, came[..7].to_vec());
    assert_eq!(drain(&mut filter), [came[0], came[1], came[2], came[3], came[6]]);
    let plain = [came[0]; 6];
    send(&mut filter, plain);
    assert_eq!(drain(&mut filter), plain);
}

/// A filter that compares numbers alone disables fast retransmit.
#[test]
fn by_number_alone_duplicates_are_removed_too() {
    let mut filter = with_ample_space(&Rules { duplicates: Duplicates::Remove, ..Rules::default() });
    send(&mut filter, acks([1000, 2000, 2000, 2000, 2000]));
    assert_eq!(drain(&mut filter), acks([2000]));
}

/// Half of one is none, half of two is one: two are queued.
#[test]
fn a_fraction_leaves_its_inverse_queued() {
    let fraction = Fraction::new(1, 2).expect("a half");
    let mut filter = with_ample_space(&Rules { fraction, ..Rules::default() });
    assert_eq!(send(&mut filter, acks([1000, 2000])), []);
    let dropped = send(&mut filter, acks([3000, 4000, 5000]));
    assert_eq!(dropped, acks([1000, 2000, 3000]).map(|packet| (packet, DropReason::AckFiltered)));
    assert_eq!(drain(&mut filter), acks([4000, 5000]));
}

#[test]
fn a_fraction_is_above_zero_and_at_most_one() {
    assert_eq!(Fraction::new(0, 5), None);
    assert_eq!(Fraction::new(6, 5), None);
    assert_eq!(Fraction::new(0, 0), None);
    assert_eq!(Fraction::new(1, 1), Some(Fraction::ALL));
    assert_eq!(Fraction::new(1, 3).map(|third| [2, 3, 5, 6].map(|count| third.of(count))), Some([0, 1, 1, 2]));
}

#[test]
fn a_duplicate_protects_only_the_newest_of_a_chain() {
    let fraction = Fraction::new(1, 3).expect("a third");
    let mut filter = with_ample_space(&Rules { fraction, ..Rules::default() });
    send(&mut filter, acks([1000, 2000, 3000, 3000]));
    // The chain holds 1000 and 2000; 4000 makes three, so 5000 removes one.
    assert_eq!(send(&mut filter, acks([4000, 5000])), [(ack(1, 1000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), acks([2000, 3000, 3000, 4000, 5000]));
    assert!(filter.flows.is_empty());
}

#[test]
fn an_ack_whose_sack_blocks_the_newer_one_does_not_cover_stays() {
    let mut filter = with_ample_space(&Rules::default());
    let mut with_blocks = ack(1, 1000);
    let block = SackBlock { left: SeqNumber::new(5000), right: SeqNumber::new(6000) };
    with_blocks.set_options(Options::NONE.with_sack(&[block]));
    (with_blocks.header_len, with_blocks.ip_len) = (52, 52);
    assert_eq!(send(&mut filter, [with_blocks, ack(1, 2000)]), []);
    assert_eq!(send(&mut filter, acks([3000])), [(ack(1, 2000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), [with_blocks, ack(1, 3000)]);
}

#[test]
fn a_keep_alive_probe_stays() {
    let mut filter = with_ample_space(&Rules::default());
    let probe = Meta { seq: SeqNumber::new(49), ..ack(1, 1000) };
    let next = Meta { seq: SeqNumber::new(50), ..ack(1, 2000) };
    assert_eq!(send(&mut filter, [probe, next]), []);
    assert_eq!(drain(&mut filter), [probe, next]);
}

/// RFC 9293, section 3.10.7.4: a probe from below the window is answered and dropped, and its
/// acknowledgement with it.
#[test]
fn a_keep_alive_probe_removes_nothing() {
    let mut filter = with_ample_space(&Rules::default());
    let first = Meta { seq: SeqNumber::new(50), ..ack(1, 1000) };
    let probe = Meta { seq: SeqNumber::new(49), ..ack(1, 2000) };
    assert_eq!(send(&mut filter, [first, probe]), []);
    assert_eq!(drain(&mut filter), [first, probe]);
}

/// RFC 3168, section 6.1: between two periods of ECE one ACK reports the end of the first.
#[test]
fn the_ack_before_ece_or_cwr_stays() {
    for flag in [TcpFlags::ECE, TcpFlags::CWR] {
        let mut filter = with_ample_space(&Rules::default());
        let flagged = Meta { flags: TcpFlags::ACK.with(flag), ..ack(1, 2000) };
        send(&mut filter, [ack(1, 500), ack(1, 1000), flagged, ack(1, 3000), ack(1, 4000)]);
        assert_eq!(drain(&mut filter), [ack(1, 1000), flagged, ack(1, 4000)]);
    }
}

/// RFC 9768, section 3.3.3: of ACKs with equal counters of marks at least each third stays, so that eight marked
/// segments between two of them are seen; and the last one before the counter moves.
#[test]
fn every_third_ack_that_counts_marks_stays() {
    let mut filter = with_ample_space(&Rules::default());
    let counts = |number, marks| Meta { flags: TcpFlags::ACK.with_ace(marks), ..ack(1, number) };
    send(&mut filter, (1..=7).map(|n| counts(1000 * n, 5)).chain((8..=9).map(|n| counts(1000 * n, 6))));
    let left = drain(&mut filter);
    assert_eq!(left, [counts(3000, 5), counts(6000, 5), counts(7000, 5), counts(9000, 6)]);
}

#[test]
fn the_latest_window_removes_the_ones_before() {
    let mut filter = with_ample_space(&Rules::default());
    let opened = Meta { window: 900, ..ack(1, 1000) };
    send(&mut filter, [Meta { window: 0, ..ack(1, 1000) }, opened]);
    assert_eq!(drain(&mut filter), [opened]);
}

/// The new ACK would not fit even in place of the old one: the old one must stay.
#[test]
fn nothing_is_removed_for_an_ack_that_does_not_fit() {
    let mut filter = filter(Limit::Bytes(ByteCount::new(1550)), Overflow::Tail, &Rules::default());
    let large = Meta { ip_len: 64, header_len: 64, ..ack(1, 2000) };
    assert_eq!(send(&mut filter, [data(), ack(1, 1000), large]), [(large, DropReason::Tail)]);
    // An ACK of equal size replaces the old one in the full queue.
    assert_eq!(send(&mut filter, [ack(1, 3000)]), [(ack(1, 1000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), [data(), ack(1, 3000)]);
}

#[test]
fn head_drop_frees_space_and_updates_the_flow() {
    let mut filter = filter(Limit::Packets(PacketCount::new(2)), Overflow::Head, &Rules::default());
    assert_eq!(send(&mut filter, [ack(1, 1000), data(), data()]), [(ack(1, 1000), DropReason::Head)]);
    assert!(filter.flows.is_empty());
    assert_eq!(send(&mut filter, [ack(1, 2000)]), [(data(), DropReason::Head)]);
    assert_eq!(drain(&mut filter), [data(), ack(1, 2000)]);
}

/// The data acknowledges 2000, so the ACK of 2000 behind it is a duplicate; it repeats no queued
/// one. A reset without ACK acknowledges nothing (RFC 9293, section 3.1).
#[test]
fn an_ack_that_repeats_the_number_of_data_counts_as_a_duplicate() {
    let mut filter = with_ample_space(&Rules::default());
    let answer = Meta { ip_len: 1500, ..ack(1, 2000) };
    let reset = Meta { flags: TcpFlags::RST, ..ack(1, 9000) };
    let dropped = send(&mut filter, [ack(1, 1000), answer, ack(1, 2000), reset, ack(1, 3000)]);
    assert_eq!(dropped, [(ack(1, 1000), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut filter), [answer, ack(1, 2000), reset, ack(1, 3000)]);
    assert_eq!(counted(&filter)[4], ("duplicates_kept", 1));
}

/// Half of one is none: 1000 and 2000 are queued, until one of them is protected or departs.
#[test]
fn protected_or_departed_acks_are_never_removed() {
    let half = || with_ample_space(&Rules { fraction: Fraction::new(1, 2).expect("a half"), ..Rules::default() });
    let mut filter = half();
    send(&mut filter, acks([1000, 2000, 2000]));
    assert_eq!(filter.dequeue(NOW, &mut |_, _, _| {}), Some(ack(1, 1000)));
    assert_eq!(send(&mut filter, acks([3000, 4000])), []);
    assert_eq!(drain(&mut filter), acks([2000, 2000, 3000, 4000]));
    let mut filter = half();
    send(&mut filter, acks([1000, 2000]));
    assert_eq!(filter.dequeue(NOW, &mut |_, _, _| {}), Some(ack(1, 1000)));
    assert_eq!(send(&mut filter, acks([2000, 3000, 4000])), []);
    assert_eq!(drain(&mut filter), acks([2000, 2000, 3000, 4000]));
    assert!(filter.flows.is_empty());
}

/// The old ACK would stay for its SACK block, so its space is not released.
#[test]
fn a_protected_ack_frees_no_space() {
    let mut filter = filter(Limit::Packets(PacketCount::new(2)), Overflow::Tail, &Rules::default());
    let mut with_blocks = ack(1, 1000);
    let block = SackBlock { left: SeqNumber::new(5000), right: SeqNumber::new(6000) };
    with_blocks.set_options(Options::NONE.with_sack(&[block]));
    (with_blocks.header_len, with_blocks.ip_len) = (52, 52);
    assert_eq!(send(&mut filter, [data(), with_blocks, ack(1, 2000)]), [(ack(1, 2000), DropReason::Tail)]);
    assert_eq!(drain(&mut filter), [data(), with_blocks]);
}

#[test]
fn a_packet_larger_than_the_whole_limit_is_dropped_as_too_large() {
    for overflow in [Overflow::Tail, Overflow::Head] {
        let mut filter = filter(Limit::Bytes(ByteCount::new(1499)), overflow, &Rules::default());
        assert_eq!(send(&mut filter, [ack(1, 1000), data()]), [(data(), DropReason::TooLarge)]);
        assert_eq!(drain(&mut filter), [ack(1, 1000)]);
    }
}

/// 1000 is removed for 2000; the second 2000 is a duplicate; 1500 was reordered; the stamped one
/// stays, since the ACKs behind it have no timestamps.
#[test]
fn each_packet_is_counted_once_by_its_fate() {
    let mut tail = filter(Limit::Bytes(ByteCount::new(1732)), Overflow::Tail, &Rules::default());
    let mut stamped = ack(1, 3000);
    stamped.set_options(Options::NONE.with_timestamps(1, 1));
    (stamped.header_len, stamped.ip_len) = (52, 52);
    let large = Meta { ip_len: 1733, ..data() };
    send(&mut tail, acks([1000, 2000, 2000, 1500]));
    send(&mut tail, [stamped, ack(1, 4000), data(), ack(2, 1), large]);
    assert_eq!(drain(&mut tail).len(), 6);
    let expected = [
        ("sent_packets", 6),
        ("sent_bytes", 3 * 40 + 52 + 40 + 1500),
        ("dropped_tail", 1),
        ("dropped_too_large", 1),
        ("seen", 7),
        ("dropped_ack_filtered", 1),
        ("duplicates_kept", 1),
        ("protected", 1),
        ("passed_data", 1),
        ("passed_old", 1),
    ];
    assert_eq!(counted(&tail), expected);
    let mut head = filter(Limit::Packets(PacketCount::new(1)), Overflow::Head, &Rules::default());
    send(&mut head, [data(), ack(1, 1)]);
    assert_eq!(counted(&head), [("dropped_head", 1), ("seen", 1), ("passed_data", 1)]);
}
