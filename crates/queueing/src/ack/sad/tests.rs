use lastmile_packet::{Meta, Options, Protocol, SeqNumber, TcpFlags};
use lastmile_units::PacketCount;

use super::*;
use crate::ack::tests::counted;
use crate::fifo::{Fifo, Overflow};

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

/// What is dropped on the way in.
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
fn one_ack_of_a_flow_waits_and_leaves_with_the_newest_values() {
    let mut sad = keeping();
    let newest = Meta { window: 700, ..ack(1, 5000) };
    let dropped = send(&mut sad, [ack(1, 1000), ack(2, 10), ack(1, 3000), newest]);
    assert_eq!(dropped, [(ack(1, 3000), DropReason::AckMerged), (newest, DropReason::AckMerged)]);
    assert_eq!(sad.waiting(flow(1)), Some(Suppressed { merged: 2, duplicates: 0 }));
    assert_eq!(drain(&mut sad), [newest, ack(2, 10)]);
    assert_eq!((counter(&sad, "seen"), counter(&sad, "rewritten")), (4, 1));
    assert_eq!(sad.waiting(flow(1)), None);
}

/// The bit is cleared at dequeue: the next ACK waits in its own right, and the table holds nothing of what has left.
#[test]
fn an_ack_that_left_takes_no_more() {
    let mut sad = keeping();
    for number in 0..1000 {
        assert_eq!(send(&mut sad, [ack(number, number)]), []);
        assert_eq!(drain(&mut sad), [ack(number, number)]);
        assert!(sad.table.flows.is_empty());
    }
    assert!(sad.table.flows.capacity() < 10, "the table grows with what waits, not with what ever came");
}

/// RFC 5681, section 3.2: three duplicates trigger fast retransmit, so all three follow the ACK that they repeat.
#[test]
fn kept_duplicates_reach_the_sender_behind_the_ack_that_they_repeat() {
    let mut sad = keeping();
    let came = [1000, 2000, 2000, 2000, 2000, 6000, 7000].map(|number| ack(1, number));
    send(&mut sad, came);
    assert_eq!(drain(&mut sad), [2000, 2000, 2000, 2000, 7000].map(|number| ack(1, number)));
    assert_eq!(counter(&sad, "duplicates_kept"), 3);
}

#[test]
fn counted_duplicates_are_dropped_and_told_with_the_ack_that_leaves() {
    let mut sad = counting();
    let dropped = send(&mut sad, [1000, 1000, 1000, 1000, 6000].map(|number| ack(1, number)));
    let reasons: Vec<_> = dropped.iter().map(|(_, reason)| *reason).collect();
    assert_eq!(reasons[..3], [DropReason::AckDuplicate; 3]);
    assert_eq!(reasons[3], DropReason::AckMerged);
    assert_eq!(sad.waiting(flow(1)), Some(Suppressed { merged: 1, duplicates: 3 }));
    assert_eq!(drain(&mut sad), [ack(1, 6000)]);
    assert_eq!(sad.departed(), Suppressed { merged: 1, duplicates: 3 });
    let counts = [("seen", 5), ("dropped_ack_merged", 1), ("dropped_ack_duplicate", 3), ("rewritten", 1)];
    assert_eq!(counted(&sad), counts);
    let data = Meta { ip_len: 1500, ..ack(1, 7000) };
    send(&mut sad, [data]);
    assert_eq!((drain(&mut sad), sad.departed()), (vec![data], Suppressed::default()));
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
    // The ACK came with 52 bytes and left with 64: one SACK block takes 12 (RFC 2018, section 3, with padding).
    assert_eq!((counter(&sad, "grown_bytes"), counter(&sad, "shrunk_bytes")), (12, 0));
}

#[test]
fn an_ack_whose_sack_blocks_would_be_lost_keeps_its_place() {
    let mut sad = counting();
    let block = |left| lastmile_packet::SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(left + 1000) };
    let one = with_options(ack(1, 1000), Options::NONE.with_sack(&[block(3000)]));
    let other = with_options(ack(1, 1000), Options::NONE.with_sack(&[block(8000)]));
    assert_eq!(send(&mut sad, [one, other]), []);
    assert_eq!(drain(&mut sad), [one, other]);
    assert_eq!(counter(&sad, "kept_apart"), 1);
}

/// RFC 9293, section 3.8.6: a window that opens is told once; the newest one is the one that holds.
#[test]
fn a_window_update_is_merged_and_the_latest_window_wins() {
    let mut sad = keeping();
    let shut = Meta { window: 0, ..ack(1, 1000) };
    let opened = Meta { window: 900, ..ack(1, 1000) };
    assert_eq!(send(&mut sad, [ack(1, 1000), shut, opened]).len(), 2);
    assert_eq!(drain(&mut sad), [opened]);
}

/// Were 3000 merged into 1000, the sender would get it before the data that was sent before it.
#[test]
fn an_ack_never_overtakes_data_of_its_own_flow() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, ..ack(1, 2000) };
    send(&mut sad, [ack(1, 1000), data, ack(1, 3000), ack(1, 4000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), data, ack(1, 4000)]);
    // It was the data that kept them apart.
    let counts = [("seen", 3), ("dropped_ack_merged", 1), ("rewritten", 1), ("passed_data", 1)];
    assert_eq!(counted(&sad), counts);
}

/// Data that repeats the number and the window counts: the pure ACK behind it says nothing new, so it is a duplicate.
#[test]
fn an_ack_that_repeats_what_data_said_is_a_duplicate() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, ..ack(1, 2000) };
    send(&mut sad, [ack(1, 1000), data, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), data, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(counter(&sad, "duplicates_kept"), 1);
}

/// RFC 9293, section 3.8.4: a keep-alive probe is an ACK from the sequence number before the next one. It asks for an
/// answer, so it must neither vanish nor lend its sequence number to an ACK.
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
fn what_is_exempt_passes_untouched() {
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

/// The queue refuses the ACK: no bit may stay behind, or the next ACK would be merged into nothing.
#[test]
fn an_ack_that_the_queue_refuses_leaves_no_bit() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Tail);
    let data = Meta { ip_len: 1500, ..ack(9, 0) };
    assert_eq!(send(&mut sad, [data, ack(1, 1000)]), [(ack(1, 1000), DropReason::Tail)]);
    assert_eq!(sad.waiting(flow(1)), None);
    assert_eq!(drain(&mut sad), [data]);
    assert_eq!(send(&mut sad, [ack(1, 2000)]), []);
    assert_eq!(drain(&mut sad), [ack(1, 2000)]);
}

/// A full queue costs nothing while the flow's ACK waits: what is merged needs no room.
#[test]
fn merging_needs_no_room() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Tail);
    send(&mut sad, [ack(1, 1000)]);
    assert_eq!(send(&mut sad, [ack(1, 2000)]), [(ack(1, 2000), DropReason::AckMerged)]);
    assert_eq!(drain(&mut sad), [ack(1, 2000)]);
}

#[test]
fn what_is_lost_with_an_ack_dropped_below_is_counted() {
    let mut sad = dropper(Duplicates::Count, 2, Overflow::Head);
    let data = Meta { ip_len: 1500, ..ack(9, 0) };
    send(&mut sad, [ack(1, 1000), ack(1, 2000), ack(1, 2000), ack(1, 3000), data]);
    assert_eq!(send(&mut sad, [data]), [(ack(1, 1000), DropReason::Head)]);
    assert_eq!((counter(&sad, "lost_acks"), counter(&sad, "lost_duplicates")), (2, 1));
    assert_eq!(sad.waiting(flow(1)), None);
}

/// The arriving ACK pushes the waiting one of its own flow out at the head. Its own record stands.
#[test]
fn head_drop_of_the_same_flow_keeps_the_newer_record() {
    let mut sad = dropper(Duplicates::Keep, 1, Overflow::Head);
    // A duplicate is queued beside the first, so the first goes.
    assert_eq!(send(&mut sad, [ack(1, 1000), ack(1, 1000)]), [(ack(1, 1000), DropReason::Head)]);
    let other = Meta { seq: SeqNumber::new(7), ..ack(1, 2000) };
    assert_eq!(send(&mut sad, [other]), [(ack(1, 1000), DropReason::Head)]);
    assert_eq!(send(&mut sad, [Meta { seq: SeqNumber::new(7), ..ack(1, 3000) }]).len(), 1);
    assert_eq!(drain(&mut sad), [Meta { seq: SeqNumber::new(7), ..ack(1, 3000) }]);
    assert!(sad.table.flows.is_empty());
}

/// Between any two ACKs of the flow stands data: all of them are closed, and each leaves with its own values.
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

/// The queue below drops the second ACK from its middle. The first is the last ACK now, but not the last packet.
#[test]
fn an_ack_stays_closed_when_the_one_behind_it_is_dropped() {
    let mut sad = keeping();
    let data = Meta { ip_len: 1500, seq: SeqNumber::new(1), ..ack(1, 1000) };
    let (first, second) = (ack(1, 1000), Meta { traffic_class: 4, ..ack(1, 2000) });
    send(&mut sad, [first, second, data]);
    assert!(sad.table.take(second.pure_ack().expect("it is one")).is_some());
    assert_eq!(send(&mut sad, [ack(1, 3000)]), []);
}

fn reporting(report: Report, duplicates: Duplicates) -> Sad {
    SmartAckDropper::new(
        Fifo::in_packets(PacketCount::new(100), Overflow::Tail),
        duplicates,
        report,
        Match::Never.into(),
    )
}

fn told(packet: &Meta) -> Vec<u32> {
    packet.list().numbers(packet.ack).map(SeqNumber::raw).collect()
}

/// Steps of 1000 and 2000, each two bytes and a count: 6 bytes, 3 before, 12 in words. 40 and 12 are 52.
#[test]
fn a_list_rides_on_the_ack_that_leaves_and_its_bytes_are_paid() {
    let mut sad = reporting(Report::List, Duplicates::Keep);
    send(&mut sad, [1000, 2000, 4000].map(|number| ack(1, number)));
    let left = drain(&mut sad);
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].ack.raw(), left[0].ip_len, left[0].header_len), (4000, 52, 52));
    assert_eq!(told(&left[0]), [1000, 2000]);
    assert_eq!((counter(&sad, "listed"), counter(&sad, "grown_bytes")), (2, 12));
}

#[test]
fn a_signal_leaves_right_ahead_of_the_ack() {
    let mut sad = reporting(Report::Signal, Duplicates::Count);
    send(&mut sad, [1000, 1000, 3000].map(|number| ack(1, number)));
    send(&mut sad, [ack(2, 7)]);
    let left = drain(&mut sad);
    assert_eq!(left[0].protocol, Protocol::AckSignal);
    assert_eq!((left[0].ack.raw(), told(&left[0])), (3000, vec![1000, 1000]));
    assert_eq!(left[1..], [ack(1, 3000), ack(2, 7)]);
    assert_eq!(counter(&sad, "signals"), 1);
}

/// At most one ACK of a flow waits in `count` mode, and one more for each list that was full.
#[test]
fn what_a_full_list_has_no_room_for_waits_in_its_own_right() {
    for (report, room) in [(Report::List, 7), (Report::Signal, 10)] {
        let mut sad = reporting(report, Duplicates::Count);
        // Each step is another, so that each takes three bytes of 23 or 31.
        let numbers: Vec<u32> = (0..30)
            .scan(0, |sum, n| {
                *sum += 1000 + n;
                Some(*sum)
            })
            .collect();
        send(&mut sad, numbers.iter().map(|number| ack(1, *number)));
        let waiting = Discipline::<Meta>::backlog(&sad).packets.as_u64();
        assert_eq!(waiting, 1 + counter(&sad, "list_full"));
        let mut seen = Vec::new();
        let left = drain(&mut sad);
        assert_eq!(left.iter().map(|packet| told(packet).len()).max(), Some(room));
        for packet in left {
            if packet.protocol == Protocol::Tcp {
                seen.extend(told(&packet));
                seen.push(packet.ack.raw());
            } else {
                seen.extend(told(&packet));
            }
        }
        assert_eq!(seen, numbers);
        assert!(counter(&sad, "list_full") > 0);
    }
}

#[test]
fn what_its_number_does_not_tell_waits_in_its_own_right() {
    let mut sad = reporting(Report::List, Duplicates::Count);
    let block = lastmile_packet::SackBlock { left: SeqNumber::new(9000), right: SeqNumber::new(9500) };
    let sack = with_options(ack(1, 3000), Options::NONE.with_sack(&[block]));
    let window = Meta { window: 900, ..ack(1, 4000) };
    send(&mut sad, [ack(1, 1000), ack(1, 2000), sack, ack(1, 4000), window, ack(1, 5000)]);
    let left = drain(&mut sad);
    assert_eq!(left.iter().map(|meta| meta.ack.raw()).collect::<Vec<_>>(), [2000, 3000, 4000, 4000, 5000]);
    assert_eq!((left[1], left[3]), (sack, window));
    assert_eq!(counter(&sad, "not_tellable"), 2);
    assert_eq!(left.iter().map(|meta| told(meta).len()).sum::<usize>(), 1);
}

/// RFC 2474, section 3: the traffic class is treated by itself on the way, and so may the ACKs be.
#[test]
fn an_ack_of_another_traffic_class_waits_in_its_own_right() {
    let mut sad = keeping();
    let other = Meta { traffic_class: 0b10_1000, ..ack(1, 2000) };
    assert_eq!(send(&mut sad, [ack(1, 1000), other]), []);
    assert_eq!(drain(&mut sad), [ack(1, 1000), other]);
}

/// 1000 with a SACK block takes 12 bytes more than 5000, which covers it, without one.
#[test]
fn an_ack_that_leaves_smaller_than_it_came_is_counted() {
    let mut sad = keeping();
    let block = lastmile_packet::SackBlock { left: SeqNumber::new(3000), right: SeqNumber::new(4000) };
    let sack = with_options(ack(1, 1000), Options::NONE.with_sack(&[block]));
    send(&mut sad, [sack, ack(1, 5000)]);
    assert_eq!(drain(&mut sad), [ack(1, 5000)]);
    assert_eq!((counter(&sad, "grown_bytes"), counter(&sad, "shrunk_bytes")), (0, 12));
}

/// RFC 9293, section 3.1: without ACK the number says nothing, and 2000 is newer than 1000.
#[test]
fn a_reset_without_ack_makes_no_ack_old() {
    let mut sad = keeping();
    let reset = Meta { flags: TcpFlags::RST, ..ack(1, 9000) };
    send(&mut sad, [ack(1, 1000), reset, ack(1, 2000), ack(1, 3000)]);
    assert_eq!(drain(&mut sad), [ack(1, 1000), reset, ack(1, 3000)]);
}

/// The first waits with what 2000 says, and the one that was overtaken says the same as it did when it came.
#[test]
fn of_two_that_came_alike_each_leaves_with_its_own_values() {
    let mut sad = keeping();
    send(&mut sad, [1000, 2000, 1000, 4000].map(|number| ack(1, number)));
    assert_eq!(drain(&mut sad), [2000, 1000, 4000].map(|number| ack(1, number)));
}

/// The queue below drops the second of four, which none is merged into: each has a traffic class of its own.
#[test]
fn what_is_dropped_from_the_middle_takes_its_own_record_along() {
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

/// Plain ACKs are exempt here, stamped ones are not. An exempt one takes nothing up, and counts as what was said last.
#[test]
fn nothing_is_merged_into_an_exempt_ack_and_what_it_says_counts() {
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

/// A signal of another dropper tells of the ACK behind it: nothing may be merged past it.
#[test]
fn a_signal_that_passes_closes_the_ack_before_it() {
    let mut list = AckList::EMPTY;
    assert!(list.push(500, AckList::MAX_BYTES));
    let signal = Packet::signal(&ack(1, 2000), &list);
    let mut sad = keeping();
    assert_eq!(send(&mut sad, [ack(1, 1000), signal, ack(1, 2000)]), []);
    assert_eq!(drain(&mut sad), [ack(1, 1000), signal, ack(1, 2000)]);
}

/// The ACK is ready, and waits, as soon as its signal has left. Nobody had enqueued the signal.
#[test]
fn the_ack_behind_its_signal_still_waits() {
    #[derive(Default)]
    struct Created(Vec<Meta>);
    impl DropSink<Meta> for Created {
        fn dropped(&mut self, _: Instant, packet: Meta, reason: DropReason) {
            panic!("{packet:?} dropped: {reason:?}");
        }
        fn created(&mut self, _: Instant, packet: &Meta) {
            self.0.push(*packet);
        }
    }
    let mut sad = reporting(Report::Signal, Duplicates::Keep);
    send(&mut sad, [ack(1, 1000), ack(1, 2000)]);
    let mut created = Created::default();
    let signal = sad.dequeue(NOW, &mut created).expect("the signal");
    assert_eq!((signal.protocol, created.0), (Protocol::AckSignal, vec![signal]));
    let waits = Backlog { packets: PacketCount::new(1), bytes: ByteCount::new(40) };
    assert_eq!((Discipline::<Meta>::backlog(&sad), Discipline::<Meta>::next_ready(&sad, NOW)), (waits, Some(NOW)));
    assert_eq!(drain(&mut sad), [ack(1, 2000)]);
    assert_eq!(Discipline::<Meta>::backlog(&sad), Backlog::default());
}

/// An ACK restored from its number has the timestamps of the one that it comes from: 1000, which had none, would get some. And
/// an ACK with a SACK block has no room for a list, so nothing is suppressed in favour of what it becomes.
#[test]
fn what_a_list_cannot_tell_is_not_suppressed() {
    let mut sad = reporting(Report::List, Duplicates::Count);
    let stamped = with_options(ack(1, 2000), Options::NONE.with_timestamps(1, 1));
    assert_eq!(send(&mut sad, [ack(1, 1000), stamped]), []);
    assert_eq!(drain(&mut sad), [ack(1, 1000), stamped]);
    assert_eq!(counted(&sad), [("seen", 2), ("list_full", 1)]);
    let mut sad = reporting(Report::List, Duplicates::Count);
    let block = lastmile_packet::SackBlock { left: SeqNumber::new(3000), right: SeqNumber::new(4000) };
    let sack = with_options(ack(1, 1000), Options::NONE.with_sack(&[block]));
    assert_eq!(send(&mut sad, [sack, ack(1, 5000)]), []);
    assert_eq!(drain(&mut sad), [sack, ack(1, 5000)]);
    assert_eq!(counted(&sad), [("seen", 2), ("not_tellable", 1)]);
}

/// The dropper below merges 2000 into 1000, which the upper one holds for an ACK of 1000: it is not put back.
#[test]
fn an_ack_that_a_dropper_below_made_newer_stays_so() {
    let mut upper = SmartAckDropper::new(counting(), Duplicates::Keep, Report::None, Match::Never.into());
    for number in [1000, 1000, 2000] {
        upper.enqueue(NOW, ack(1, number), &mut |_, _, _| {});
    }
    assert_eq!(upper.dequeue(NOW, &mut |_, _, _| {}), Some(ack(1, 2000)));
    assert!(upper.table.flows.is_empty());
}

/// A regenerator below makes 2000 between 1000 and 3000: it leaves as it is, and 3000 keeps its record.
#[test]
fn an_ack_that_is_made_below_leaves_as_it_is() {
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
