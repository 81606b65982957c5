use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Options, SackBlock};
use lastmile_units::{ByteCount, PacketCount};

use super::*;
use crate::ack::tests::counted;

const NOW: Instant = Instant::ZERO;

fn ack(number: u32) -> Meta {
    let ack = SeqNumber::new(number);
    Meta { flow: FlowId::new(1), ack, window: 100, flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() }
}

fn with_options(number: u32, options: Options) -> Meta {
    let mut meta = ack(number);
    meta.set_options(options);
    meta.header_len += options.header_bytes();
    meta.ip_len = u16::from(meta.header_len);
    meta
}

fn stamped(number: u32, value: u32, echo: u32) -> Meta {
    with_options(number, Options::NONE.with_timestamps(value, echo))
}

fn sacked(number: u32, blocks: &[(u32, u32)]) -> Meta {
    let block = |&(left, right): &(u32, u32)| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(right) };
    with_options(number, Options::NONE.with_sack(&blocks.iter().map(block).collect::<Vec<_>>()))
}

fn flagged(number: u32, flags: TcpFlags) -> Meta {
    Meta { flags: TcpFlags::ACK.with(flags), ..ack(number) }
}

fn data(number: u32) -> Meta {
    Meta { ip_len: 1500, ..ack(number) }
}

fn goes(mode: Mode, older: &[Meta], trigger: &Meta) -> Option<usize> {
    redundant(mode, older.iter().enumerate(), trigger)
}

fn both(older: &[Meta], trigger: &Meta) -> [Option<usize>; 2] {
    [Mode::Normal, Mode::Aggressive].map(|mode| goes(mode, older, trigger))
}

#[test]
fn normal_leaves_two_and_aggressive_one() {
    assert_eq!(both(&[], &ack(1)), [None, None]);
    assert_eq!(both(&[ack(1)], &ack(2)), [None, Some(0)]);
    assert_eq!(both(&[ack(1), ack(2)], &ack(3)), [Some(0), Some(0)]);
}

#[test]
fn the_oldest_goes_and_only_one_at_a_time() {
    assert_eq!(both(&[data(1), ack(1), ack(2), ack(3)], &ack(4)), [Some(1), Some(1)]);
}

/// A single ACK must be directly before the trigger; a packet of another flow between them keeps
/// it.
#[test]
fn aggressive_takes_a_single_ack_only_from_right_before_the_trigger() {
    let other = Meta { flow: FlowId::new(2), ..ack(9) };
    assert_eq!(both(&[ack(1), other], &ack(2)), [None, None]);
    assert_eq!(both(&[ack(1), data(1)], &ack(2)), [None, None]);
    assert_eq!(both(&[other, ack(1)], &ack(2)), [None, Some(1)]);
}

#[test]
fn other_flows_and_protocols_are_no_acks_of_the_flow() {
    let other = Meta { flow: FlowId::new(2), ..ack(1) };
    let datagram = Meta { protocol: Protocol::Udp, ..ack(1) };
    assert_eq!(both(&[other, other, datagram, datagram], &ack(3)), [None, None]);
    assert_eq!(both(&[ack(1), ack(2)], &Meta { protocol: Protocol::Udp, ..ack(3) }), [None, None]);
}

/// Data with an ACK triggers; a SYN does not, nor does a segment without ACK.
#[test]
fn every_acknowledgement_triggers() {
    let older = [ack(1), ack(2)];
    assert_eq!(both(&older, &data(3)), [Some(0), Some(0)]);
    assert_eq!(both(&older, &flagged(3, TcpFlags::FIN)), [Some(0), Some(0)]);
    assert_eq!(both(&older, &with_options(3, Options::NONE.with_unknown())), [Some(0), Some(0)]);
    assert_eq!(both(&older, &flagged(3, TcpFlags::SYN)), [None, None]);
    assert_eq!(both(&older, &Meta { flags: TcpFlags::RST, ..ack(3) }), [None, None]);
}

#[test]
fn rules_1_to_3_keep_segments_that_do_more_than_acknowledge() {
    for flag in [TcpFlags::FIN, TcpFlags::SYN, TcpFlags::RST, TcpFlags::PSH, TcpFlags::URG] {
        assert_eq!(both(&[ack(1), flagged(1, flag)], &ack(3)), [None, None], "{flag:?}");
    }
    assert_eq!(goes(Mode::Normal, &[data(1), data(2)], &ack(3)), None);
    let syn = SynOptions { mss: Some(1460), ..SynOptions::default() };
    for options in [Options::NONE.with_unknown(), Options::syn(syn)] {
        let odd = with_options(1, options);
        assert_eq!(both(&[odd, odd], &ack(3)), [None, None]);
        assert_eq!(both(&[odd, ack(1), ack(2)], &ack(3)), [Some(1), Some(1)]);
    }
}

/// Rule 4, across the wrap.
#[test]
fn an_ack_above_the_trigger_stays() {
    assert_eq!(both(&[ack(5), ack(5)], &ack(4)), [None, None]);
    assert_eq!(both(&[ack(u32::MAX - 1), ack(u32::MAX)], &ack(3)), [Some(0), Some(0)]);
}

/// Rule 5.
#[test]
fn timestamps_may_only_rise() {
    let run = |value, echo| [stamped(1, value, echo), stamped(2, value, echo)];
    let trigger = stamped(3, 100, 50);
    assert_eq!(both(&run(100, 50), &trigger), [Some(0), Some(0)]);
    assert_eq!(both(&run(u32::MAX, 50), &trigger), [Some(0), Some(0)]);
    assert_eq!(both(&run(101, 50), &trigger), [None, None]);
    assert_eq!(both(&run(100, 51), &trigger), [None, None]);
    assert_eq!(both(&run(100, 50), &ack(3)), [None, None]);
    assert_eq!(both(&[ack(1), ack(2)], &trigger), [Some(0), Some(0)]);
}

/// Rule 6.
#[test]
fn sack_blocks_must_be_covered() {
    let twice = |blocks| [sacked(10, blocks), sacked(10, blocks)];
    assert_eq!(both(&twice(&[(20, 30)]), &sacked(10, &[(20, 40)])), [Some(0), Some(0)]);
    assert_eq!(both(&twice(&[(20, 30), (50, 60)]), &sacked(10, &[(50, 70), (20, 30)])), [Some(0), Some(0)]);
    assert_eq!(both(&twice(&[(20, 30), (50, 60)]), &sacked(10, &[(50, 90)])), [None, None]);
    assert_eq!(both(&twice(&[(20, 30)]), &sacked(10, &[(25, 90)])), [None, None]);
    // Even if the number has advanced past the block.
    assert_eq!(both(&twice(&[(20, 30)]), &ack(40)), [None, None]);
}

/// Rule 6; RFC 2883, section 4.
#[test]
fn a_dsack_stays() {
    let dsack = sacked(10, &[(5, 10), (20, 30)]);
    assert_eq!(both(&[dsack, dsack], &sacked(11, &[(5, 10), (20, 40)])), [None, None]);
}

/// Rule 7: a higher number, or more SACK information.
#[test]
fn a_repeated_ack_removes_nothing() {
    assert_eq!(both(&[ack(1), ack(1)], &ack(1)), [None, None]);
    assert_eq!(both(&[ack(1), ack(1)], &Meta { window: 900, ..ack(1) }), [None, None]);
    let with_blocks = sacked(1, &[(20, 30)]);
    assert_eq!(both(&[with_blocks, with_blocks], &with_blocks), [None, None]);
    assert_eq!(both(&[with_blocks, with_blocks], &sacked(2, &[(20, 30)])), [Some(0), Some(0)]);
    assert_eq!(both(&[with_blocks, with_blocks], &sacked(1, &[(20, 31)])), [Some(0), Some(0)]);
    assert_eq!(both(&[ack(1), ack(1)], &with_blocks), [Some(0), Some(0)]);
}

/// The last ACK before ECE or CWR change stays, also if the change arrived on data.
#[test]
fn a_change_of_ece_or_cwr_ends_a_run() {
    let ece = |number| flagged(number, TcpFlags::ECE);
    assert_eq!(both(&[ack(1), ece(2)], &ece(3)), [None, Some(1)]);
    assert_eq!(both(&[ack(1), ece(2), ece(3)], &ece(4)), [Some(1), Some(1)]);
    assert_eq!(both(&[ack(1), ece(2)], &ack(3)), [None, None]);
    let data_with_cwr = Meta { ip_len: 1500, ..flagged(1, TcpFlags::CWR) };
    assert_eq!(both(&[ack(1), data_with_cwr, ack(2)], &ack(3)), [None, Some(2)]);
    assert_eq!(both(&[ece(1), ece(2)], &ack(3)), [Some(0), Some(0)]);
}

fn queue(limit: Limit, overflow: Overflow, rules: &Rules) -> CakeAckFilter<Meta> {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    CakeAckFilter::new(limit, overflow, rules, &Environment::new(line)).expect("no limit in cells")
}

fn send(queue: &mut CakeAckFilter<Meta>, packets: impl IntoIterator<Item = Meta>) -> Vec<(Meta, DropReason)> {
    let mut dropped = Vec::new();
    for packet in packets {
        queue.enqueue(NOW, packet, &mut |_, packet, reason| dropped.push((packet, reason)));
    }
    dropped
}

fn drain(queue: &mut CakeAckFilter<Meta>) -> Vec<Meta> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| queue.dequeue(NOW, &mut none)).collect()
}

const ROOMY: Limit = Limit::Packets(PacketCount::new(1000));

/// The queue of the flow counts: packets of other flows between its ACKs do not keep them.
#[test]
fn in_a_queue_for_all_a_flow_has_its_own_neighbours() {
    let other = Meta { flow: FlowId::new(2), ..data(9) };
    let mut aggressive = queue(ROOMY, Overflow::Tail, &Rules { mode: Mode::Aggressive, exempt: Match::Never });
    send(&mut aggressive, [ack(1), other, ack(2), other, ack(3)]);
    assert_eq!(drain(&mut aggressive), [other, other, ack(3)]);
    let mut normal = queue(ROOMY, Overflow::Tail, &Rules::default());
    let dropped = send(&mut normal, [ack(1), other, ack(2), other, ack(3)]);
    assert_eq!(dropped, [(ack(1), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut normal), [other, ack(2), other, ack(3)]);
    assert!(normal.queue.remembers_nothing());
}

#[test]
fn nothing_is_removed_for_a_packet_that_does_not_fit() {
    let limit = Limit::Bytes(ByteCount::new(1550));
    let rules = Rules { mode: Mode::Aggressive, exempt: Match::Never };
    let mut tail = queue(limit, Overflow::Tail, &rules);
    assert_eq!(send(&mut tail, [data(1), ack(1), data(2)]), [(data(2), DropReason::Tail)]);
    assert_eq!(send(&mut tail, [ack(2)]), [(ack(1), DropReason::AckFiltered)]);
    let mut head = queue(limit, Overflow::Head, &rules);
    let dropped = send(&mut head, [data(1), ack(1), data(2)]);
    assert_eq!(dropped, [(ack(1), DropReason::AckFiltered), (data(1), DropReason::Head)]);
}

#[test]
fn exempt_packets_are_kept_and_counted() {
    let exempt = Match::Flow(FlowId::new(1));
    let mut filter = queue(ROOMY, Overflow::Tail, &Rules { mode: Mode::Aggressive, exempt });
    assert_eq!(send(&mut filter, [ack(1), ack(2), ack(3)]), []);
    let mut counts = Vec::new();
    filter.counters(&mut |counter| counts.push((counter.name, counter.value)));
    assert!(counts.contains(&("passed_exempt", 3)) && counts.contains(&("seen", 0)));
}

/// A queued exempt ACK stays, and an arriving exempt one removes nothing: here those with
/// timestamps, 52 bytes.
#[test]
fn exempt_acks_neither_remove_nor_are_removed() {
    let exempt = |number| stamped(number, 1, 1);
    let rules = || Rules { mode: Mode::Aggressive, exempt: Match::AtLeastBytes(52) };
    let mut waits = queue(ROOMY, Overflow::Tail, &rules());
    assert_eq!(send(&mut waits, [exempt(1), stamped(2, 1, 1)]), []);
    assert_eq!(send(&mut waits, [Meta { ip_len: 51, header_len: 51, ..stamped(3, 1, 1) }]), []);
    let mut comes = queue(ROOMY, Overflow::Tail, &rules());
    assert_eq!(send(&mut comes, [ack(1), exempt(2)]), []);
    assert_eq!(send(&mut comes, [ack(3), ack(4)]), [(ack(1), DropReason::AckFiltered)]);
}

/// The first packet of the flow has departed, and then its last is removed: later packets have the
/// right neighbours.
#[test]
fn departed_packets_are_unlinked() {
    let mut normal = queue(ROOMY, Overflow::Tail, &Rules::default());
    send(&mut normal, [data(1), ack(2), ack(3)]);
    assert_eq!(normal.dequeue(NOW, &mut |_, _, _| {}), Some(data(1)));
    assert_eq!(send(&mut normal, [ack(4)]), [(ack(2), DropReason::AckFiltered)]);
    assert_eq!(drain(&mut normal), [ack(3), ack(4)]);
    let mut aggressive = queue(ROOMY, Overflow::Tail, &Rules { mode: Mode::Aggressive, exempt: Match::Never });
    let dropped = send(&mut aggressive, [data(1), ack(2), ack(3), ack(4)]);
    assert_eq!(dropped, [2, 3].map(|number| (ack(number), DropReason::AckFiltered)));
    assert_eq!(drain(&mut aggressive), [data(1), ack(4)]);
    assert!(aggressive.queue.remembers_nothing());
}

#[test]
fn each_packet_is_counted_once_by_its_fate() {
    let rules = || Rules { mode: Mode::Aggressive, exempt: Match::Never };
    let mut tail = queue(Limit::Bytes(ByteCount::new(1700)), Overflow::Tail, &rules());
    let datagram = Meta { protocol: Protocol::Udp, ..ack(0) };
    let odd = with_options(3, Options::NONE.with_unknown());
    let large = Meta { ip_len: 1701, ..data(4) };
    send(&mut tail, [ack(1), ack(2), datagram, odd, flagged(3, TcpFlags::FIN), data(4), data(5), large]);
    let left = drain(&mut tail);
    assert_eq!(left.len(), 5);
    let bytes = left.iter().map(|meta| u64::from(meta.ip_len)).sum();
    let expected = [
        ("sent_packets", 5),
        ("sent_bytes", bytes),
        ("dropped_tail", 1),
        ("dropped_too_large", 1),
        ("seen", 2),
        ("dropped_ack_filtered", 1),
        ("passed_not_tcp", 1),
        ("passed_data", 2),
        ("passed_flags", 1),
        ("passed_unknown_options", 1),
    ];
    assert_eq!(counted(&tail), expected);
    let mut head = queue(Limit::Packets(PacketCount::new(1)), Overflow::Head, &rules());
    send(&mut head, [data(1), data(2)]);
    assert_eq!(counted(&head), [("dropped_head", 1), ("passed_data", 2)]);
}
