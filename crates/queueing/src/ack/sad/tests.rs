use lastmile_packet::{FlowId, Meta, Options, Protocol, SeqNumber, TcpFlags};
use lastmile_units::PacketCount;

use super::*;
use crate::ack::tests::{counted, duplicates_with_sack};
use crate::fifo::{Fifo, Overflow};

mod report;

const NOW: Instant = Instant::ZERO;

type Sad = SmartAckDropper<Meta, Fifo<Meta>>;

fn dropper(duplicates: Duplicates, limit: u64, overflow: Overflow) -> Sad {
    SmartAckDropper::new(
        Fifo::in_packets(PacketCount::new(limit), overflow),
        duplicates,
        Report::None,
        Match::Never.into(),
    )
}

fn keeping() -> Sad {
    dropper(Duplicates::Keep, 100, Overflow::Tail)
}

fn counting() -> Sad {
    dropper(Duplicates::Count, 100, Overflow::Tail)
}

fn flow(index: u32) -> FlowId {
    FlowId::new(index)
}

fn ack(of: u32, number: u32) -> Meta {
    Meta {
        flow: flow(of),
        ack: SeqNumber::new(number),
        window: 100,
        flags: TcpFlags::ACK,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    }
}

fn with_options(mut meta: Meta, options: Options) -> Meta {
    meta.set_options(options);
    meta.header_len += options.header_bytes();
    meta.ip_len += u16::from(options.header_bytes());
    meta
}

/// The packets dropped on arrival.
fn send(sad: &mut Sad, packets: impl IntoIterator<Item = Meta>) -> Vec<(Meta, DropReason)> {
    let mut dropped = Vec::new();
    for packet in packets {
        sad.enqueue(NOW, packet, &mut |_, packet, reason| dropped.push((packet, reason)));
    }
    dropped
}

fn drain(sad: &mut Sad) -> Vec<Meta> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| sad.dequeue(NOW, &mut none)).collect()
}

/// The ACKs for which the queued one of `flow` stands.
fn waiting(sad: &Sad, flow: FlowId) -> Option<Suppressed> {
    sad.table.flows.get(&flow).map(|record| record.last.suppressed)
}

fn counter(sad: &Sad, name: &str) -> u64 {
    let mut found = None;
    Discipline::<Meta>::counters(sad, &mut |c| {
        if c.path.is_empty() && c.name == name {
            found = Some(c.value);
        }
    });
    found.expect("a counter of this name")
}

#[test]
fn one_ack_of_a_flow_is_queued_and_departs_with_the_newest_values() {
    let mut sad = keeping();
    let newest = Meta { window: 700, ..ack(1, 5000) };
    let dropped = send(&mut sad, [ack(1, 1000), ack(2, 10), ack(1, 3000), newest]);
    assert_eq!(dropped, [(ack(1, 3000), DropReason::AckMerged), (newest, DropReason::AckMerged)]);
    assert_eq!(waiting(&sad, flow(1)), Some(Suppressed { merged: 2, duplicates: 0 }));
    assert_eq!(drain(&mut sad), [newest, ack(2, 10)]);
    assert_eq!((counter(&sad, "seen"), counter(&sad, "rewritten")), (4, 1));
    assert_eq!(waiting(&sad, flow(1)), None);
}

/// The bit is cleared at dequeue: the next ACK is queued separately, and the table has no entry for
/// departed packets.
#[test]
fn a_departed_ack_takes_no_more_values() {
    let mut sad = keeping();
    for number in 0..1000 {
        assert_eq!(send(&mut sad, [ack(number, number)]), []);
        assert_eq!(drain(&mut sad), [ack(number, number)]);
        assert!(sad.table.flows.is_empty());
    }
    assert!(sad.table.flows.capacity() < 10, "the table grows with queued flows, not with all flows seen");
}

/// RFC 5681, section 3.2: three duplicates trigger fast retransmit, so all three follow the ACK
/// that they repeat.
#[test]
fn kept_duplicates_reach_the_sender_behind_the_ack_that_they_repeat() {
    let mut sad = keeping();
    let came = [1000, 2000, 2000, 2000, 2000, 6000, 7000].map(|number| ack(1, number));
    send(&mut sad, came);
    assert_eq!(drain(&mut sad), [2000, 2000, 2000, 2000, 7000].map(|number| ack(1, number)));
    assert_eq!(counter(&sad, "duplicates_kept"), 3);
}

/// RFC 5681 counts three duplicates; RFC 6675 reads the blocks of all, which the last one has.
#[test]
fn behind_three_duplicates_one_departs_with_the_newest_sack_blocks() {
    let mut sad = keeping();
    let came = duplicates_with_sack();
    send(&mut sad, came[..7].to_vec());
    assert_eq!(drain(&mut sad), [came[0], came[1], came[2], came[3], came[6]]);
    assert_eq!((counter(&sad, "duplicates_kept"), counter(&sad, "dropped_ack_merged")), (4, 2));
    // A D-SACK is sent once: it may take the place of one that it covers, and none takes its place.
    let advance = Meta { ack: came[0].ack.add(9000), ..came[0] };
    send(&mut sad, came.into_iter().chain([advance]));
    assert_eq!(drain(&mut sad), [came[0], came[1], came[2], came[3], came[7], advance]);
    // Without blocks each counts.
    let plain = [came[0]; 6];
    send(&mut sad, plain);
    assert_eq!(drain(&mut sad), plain);
}

#[test]
fn counted_duplicates_are_dropped_and_reported_with_the_departing_ack() {
    let mut sad = counting();
    let dropped = send(&mut sad, [1000, 1000, 1000, 1000, 6000].map(|number| ack(1, number)));
    let reasons: Vec<_> = dropped.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons[..3], [DropReason::AckDuplicate; 3]);
    assert_eq!(reasons[3], DropReason::AckMerged);
    assert_eq!(waiting(&sad, flow(1)), Some(Suppressed { merged: 1, duplicates: 3 }));
    assert_eq!(drain(&mut sad), [ack(1, 6000)]);
    let counts = [("seen", 5), ("dropped_ack_merged", 1), ("dropped_ack_duplicate", 3), ("rewritten", 1)];
    assert_eq!(counted(&sad), counts);
    let data = Meta { ip_len: 1500, ..ack(1, 7000) };
    send(&mut sad, [data]);
    assert_eq!(drain(&mut sad), [data]);
}

#[test]
fn the_newest_sack_blocks_and_timestamps_win() {
    let mut sad = counting();
    let block = |right| lastmile_packet::SackBlock { left: SeqNumber::new(3000), right: SeqNumber::new(right) };
    let first = with_options(ack(1, 1000), Options::NONE.with_timestamps(1, 1));
    let second = with_options(ack(1, 1000), Options::NONE.with_timestamps(2, 1).with_sack(&[block(4000)]));
    let third = with_options(ack(1, 1000), Options::NONE.with_timestamps(3, 1).with_sack(&[block(5000)]));
    send(&mut sad, [first, second, third]);
    assert_eq!(drain(&mut sad), [third]);
    // The ACK arrived with 52 bytes and departed with 64: one SACK block takes 12 (RFC 2018,
    // section 3, with padding).
    assert_eq!((counter(&sad, "grown_bytes"), counter(&sad, "shrunk_bytes")), (12, 0));
}

#[test]
fn an_ack_whose_sack_blocks_would_be_lost_stays_queued() {
    let mut sad = counting();
    let block = |left| lastmile_packet::SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(left + 1000) };
    let one = with_options(ack(1, 1000), Options::NONE.with_sack(&[block(3000)]));
    let other = with_options(ack(1, 1000), Options::NONE.with_sack(&[block(8000)]));
    assert_eq!(send(&mut sad, [one, other]), []);
    assert_eq!(drain(&mut sad), [one, other]);
    assert_eq!(counter(&sad, "kept_apart"), 1);
}

/// RFC 9293, section 3.8.6: an opening window is sent once; the newest one is valid.
#[test]
fn a_window_update_is_merged_and_the_latest_window_wins() {
    let mut sad = keeping();
    let shut = Meta { window: 0, ..ack(1, 1000) };
    let opened = Meta { window: 900, ..ack(1, 1000) };
    assert_eq!(send(&mut sad, [ack(1, 1000), shut, opened]).len(), 2);
    assert_eq!(drain(&mut sad), [opened]);
}

/// If 3000 were merged into 1000, the sender would receive it before data that was sent earlier.
#[test]
fn an_ack_never_overtakes_data_of_its_own_flow() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, ..ack(1, 2000) };
    send(&mut sad, [ack(1, 1000), data, ack(1, 3000), ack(1, 4000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), data, ack(1, 4000)]);
    // The data kept them apart.
    let counts = [("seen", 3), ("dropped_ack_merged", 1), ("rewritten", 1), ("passed_data", 1)];
    assert_eq!(counted(&sad), counts);
}

/// Data that repeats the number and the window counts: the pure ACK behind it is a duplicate.
#[test]
fn an_ack_that_repeats_the_number_of_data_is_a_duplicate() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, ..ack(1, 2000) };
    send(&mut sad, [ack(1, 1000), data, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), data, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(counter(&sad, "duplicates_kept"), 1);
}

/// RFC 9293, section 3.8.4: a keep-alive probe is an ACK from the sequence number before the next
/// one. It requires an answer, so it must neither be dropped nor lend its sequence number to an
/// ACK.
#[test]
fn a_keep_alive_probe_is_neither_merged_nor_merged_into() {
    let mut sad = counting();
    let later = |meta: Meta, seq| Meta { seq: SeqNumber::new(seq), ..meta };
    let (first, probe, next) = (later(ack(1, 1000), 50), later(ack(1, 1000), 49), later(ack(1, 2000), 50));
    assert_eq!(send(&mut sad, [first, probe, next]), []);
    assert_eq!(drain(&mut sad), [first, probe, next]);
}

#[test]
fn an_overtaken_ack_passes_untouched() {
    let mut sad = keeping();
    send(&mut sad, [ack(1, 3000), ack(1, 2000), ack(1, 4000)]);
    assert_eq!(drain(&mut sad), [ack(1, 3000), ack(1, 2000), ack(1, 4000)]);
    assert_eq!(counter(&sad, "passed_old"), 1);
}

#[test]
fn exempt_packets_pass_unchanged() {
    let exempt = Match::Flow(flow(1));
    let mut sad = SmartAckDropper::new(
        Fifo::in_packets(PacketCount::new(9), Overflow::Tail),
        Duplicates::Count,
        Report::None,
        exempt.into(),
    );
    assert_eq!(send(&mut sad, [ack(1, 1), ack(1, 2), ack(1, 2), ack(2, 1), ack(2, 2)]).len(), 1);
    assert_eq!(drain(&mut sad), [ack(1, 1), ack(1, 2), ack(1, 2), ack(2, 2)]);
}

/// The queue refuses the ACK: no bit may remain set, or the next ACK would be merged into a missing
/// one.
#[test]
fn an_ack_that_the_queue_refuses_leaves_no_bit() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Tail);
    let data = Meta { ip_len: 1500, ..ack(9, 0) };
    assert_eq!(send(&mut sad, [data, ack(1, 1000)]), [(ack(1, 1000), DropReason::Tail)]);
    assert_eq!(waiting(&sad, flow(1)), None);
    assert_eq!(drain(&mut sad), [data]);
    assert_eq!(send(&mut sad, [ack(1, 2000)]), []);
    assert_eq!(drain(&mut sad), [ack(1, 2000)]);
}

/// A full queue costs nothing while the flow's ACK is queued: a merged ACK needs no space.
#[test]
fn merging_needs_no_space() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Tail);
    send(&mut sad, [ack(1, 1000)]);
    assert_eq!(send(&mut sad, [ack(1, 2000)]), [(ack(1, 2000), DropReason::AckMerged)]);
    assert_eq!(drain(&mut sad), [ack(1, 2000)]);
}

#[test]
fn losses_with_an_ack_dropped_below_are_counted() {
    let mut sad = dropper(Duplicates::Count, 2, Overflow::Head);
    let data = Meta { ip_len: 1500, ..ack(9, 0) };
    send(&mut sad, [ack(1, 1000), ack(1, 2000), ack(1, 2000), ack(1, 3000), data]);
    assert_eq!(send(&mut sad, [data]), [(ack(1, 1000), DropReason::Head)]);
    assert_eq!((counter(&sad, "lost_acks"), counter(&sad, "lost_duplicates")), (2, 1));
    assert_eq!(waiting(&sad, flow(1)), None);
}

/// The arriving ACK evicts the queued one of its own flow at the head. Its own record stays.
#[test]
fn head_drop_of_the_same_flow_keeps_the_newer_record() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Head);
    // A duplicate is queued behind the first, so the first is dropped.
    assert_eq!(send(&mut sad, [ack(1, 1000), ack(1, 1000)]), [(ack(1, 1000), DropReason::Head)]);
    let other = Meta { seq: SeqNumber::new(7), ..ack(1, 2000) };
    assert_eq!(send(&mut sad, [other]), [(ack(1, 1000), DropReason::Head)]);
    assert_eq!(send(&mut sad, [Meta { seq: SeqNumber::new(7), ..ack(1, 3000) }]).len(), 1);
    assert_eq!(drain(&mut sad), [Meta { seq: SeqNumber::new(7), ..ack(1, 3000) }]);
    assert!(sad.table.flows.is_empty());
}

/// Data is queued between any two ACKs of the flow: all of them are closed, and each departs with
/// its own values.
#[test]
fn many_closed_acks_leave_in_order_with_their_own_values() {
    let mut sad = dropper(Duplicates::Keep, 10_000, Overflow::Tail);
    let mut expected = Vec::new();
    for n in 0..1000_u32 {
        let seq = SeqNumber::new(n * 10);
        let data = Meta { ip_len: 50, seq, ..ack(1, n * 100) };
        let of = |number| Meta { seq, ..ack(1, number) };
        send(&mut sad, [of(n * 100 + 1), of(n * 100 + 2), data]);
        expected.extend([of(n * 100 + 2), data]);
    }
    assert_eq!(drain(&mut sad), expected);
    assert!(sad.table.flows.is_empty());
}

/// The queue below drops the second ACK from its middle. The first is then the last ACK, but not
/// the last packet.
#[test]
fn an_ack_stays_closed_when_the_one_behind_it_is_dropped() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, seq: SeqNumber::new(1), ..ack(1, 1000) };
    let (first, second) = (ack(1, 1000), Meta { traffic_class: 4, ..ack(1, 2000) });
    send(&mut sad, [first, second, data]);
    assert!(sad.table.take(second.pure_ack().expect("it is one")).is_some());
    assert_eq!(send(&mut sad, [ack(1, 3000)]), []);
}

/// RFC 2474, section 3: the network treats each traffic class separately, and so may it treat the
/// ACKs.
#[test]
fn an_ack_of_another_traffic_class_is_queued_separately() {
    let mut sad = keeping();
    let other = Meta { traffic_class: 0b10_1000, ..ack(1, 2000) };
    assert_eq!(send(&mut sad, [ack(1, 1000), other]), []);
    assert_eq!(drain(&mut sad), [ack(1, 1000), other]);
}

/// 1000 with a SACK block takes 12 bytes more than 5000, which covers it, without one.
#[test]
fn an_ack_that_shrinks_is_counted() {
    let mut sad = keeping();
    let block = lastmile_packet::SackBlock { left: SeqNumber::new(3000), right: SeqNumber::new(4000) };
    let sack = with_options(ack(1, 1000), Options::NONE.with_sack(&[block]));
    send(&mut sad, [sack, ack(1, 5000)]);
    assert_eq!(drain(&mut sad), [ack(1, 5000)]);
    assert_eq!((counter(&sad, "grown_bytes"), counter(&sad, "shrunk_bytes")), (0, 12));
}

/// RFC 9293, section 3.1: without ACK the number has no meaning, and 2000 is newer than 1000.
#[test]
fn a_reset_without_ack_makes_no_ack_old() {
    let mut sad = keeping();
    let reset = Meta { flags: TcpFlags::RST, ..ack(1, 9000) };
    send(&mut sad, [ack(1, 1000), reset, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), reset, ack(1, 3000)]);
}

/// The first departs with the values of 2000; the reordered one departs unchanged, though both
/// arrived equal.
#[test]
fn two_equal_acks_depart_with_their_own_values() {
    let mut sad = keeping();
    send(&mut sad, [1000, 2000, 1000, 4000].map(|number| ack(1, number)));
    assert_eq!(drain(&mut sad), [2000, 1000, 4000].map(|number| ack(1, number)));
}

/// The queue below drops the second of four ACKs, none of which is merged: each has a traffic class
/// of its own.
#[test]
fn a_drop_from_the_middle_removes_its_own_record() {
    let mut sad = keeping();
    let acks = [1, 2, 3, 4].map(|n: u8| Meta { traffic_class: 4 * n, ..ack(1, 1000 * u32::from(n)) });
    assert_eq!(send(&mut sad, acks), []);
    for n in [1, 2, 0, 3] {
        let ack = acks[n].pure_ack().expect("it is one");
        let struck = sad.table.take(ack).expect("it has a record");
        assert_eq!(struck.newest, ack.fields());
    }
    assert!(sad.table.flows.is_empty());
}

/// Plain ACKs are exempt here, stamped ones are not. An exempt ACK takes no values, and counts as
/// the newest acknowledgement.
#[test]
fn nothing_is_merged_into_an_exempt_ack_and_its_number_counts() {
    let sad = || {
        let queue = Fifo::in_packets(PacketCount::new(9), Overflow::Tail);
        SmartAckDropper::new(queue, Duplicates::Keep, Report::None, Match::AtMostBytes(40).into())
    };
    let stamped = |number| with_options(ack(1, number), Options::NONE.with_timestamps(1, 1));
    let mut first = sad();
    send(&mut first, [ack(1, 1000), stamped(2000), stamped(3000)]);
    assert_eq!(drain(&mut first), [ack(1, 1000), stamped(3000)]);
    let mut behind = sad();
    assert_eq!(send(&mut behind, [stamped(1000), ack(1, 2000), stamped(3000)]), []);
    drain(&mut behind);
    // 2000 is a duplicate.
    assert_eq!(send(&mut behind, [stamped(1000), ack(1, 2000), stamped(2000), stamped(3000)]), []);
    assert_eq!(counter(&behind, "duplicates_kept"), 1);
}

/// The dropper below merges 2000 into 1000, which the upper one holds for an ACK of 1000: the newer
/// values stay.
#[test]
fn newer_values_from_a_dropper_below_are_kept() {
    let mut upper = SmartAckDropper::new(counting(), Duplicates::Keep, Report::None, Match::Never.into());
    for number in [1000, 1000, 2000] {
        upper.enqueue(NOW, ack(1, number), &mut |_, _, _| {});
    }
    assert_eq!(upper.dequeue(NOW, &mut |_, _, _| {}), Some(ack(1, 2000)));
    assert!(upper.table.flows.is_empty());
}

/// A regenerator below makes 2000 between 1000 and 3000: it departs unchanged, and 3000 keeps its
/// record.
#[test]
fn an_ack_made_below_departs_unchanged() {
    use crate::ack::regenerator::{Config, Know};
    let config = Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() };
    let queue = Fifo::in_packets(PacketCount::new(9), Overflow::Tail);
    let below = crate::ack::AckRegenerator::new(queue, &config, &Environment::default());
    let mut sad = SmartAckDropper::new(below, Duplicates::Keep, Report::None, Match::Never.into());
    let mut left = Vec::new();
    for number in [1000, 3000] {
        sad.enqueue(NOW, ack(1, number), &mut |_, _, _| {});
        left.extend(std::iter::from_fn(|| sad.dequeue(NOW, &mut |_, _, _| {})));
    }
    assert_eq!(left, [1000, 2000, 3000].map(|number| ack(1, number)));
    assert!(sad.table.flows.is_empty());
}

/// RFC 9768, section 3.3.3: see the test of the filter of this name.
#[test]
fn every_third_ack_that_counts_marks_stays() {
    let mut sad = keeping();
    let counts = |number, marks| Meta { flags: TcpFlags::ACK.with_ace(marks), ..ack(1, number) };
    send(&mut sad, (1..=7).map(|n| counts(1000 * n, 5)).chain((8..=9).map(|n| counts(1000 * n, 6))));
    assert_eq!(drain(&mut sad), [counts(3000, 5), counts(6000, 5), counts(7000, 5), counts(9000, 6)]);
}
