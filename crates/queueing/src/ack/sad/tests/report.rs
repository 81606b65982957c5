//! Suppressed ACKs reported to a regenerator, in a list or by a signal.

use super::*;

fn reporting(report: Report, duplicates: Duplicates) -> Sad {
    SmartAckDropper::new(
        Fifo::in_packets(PacketCount::new(100), Overflow::Tail),
        duplicates,
        report,
        Match::Never.into(),
    )
}

fn reported(packet: &Meta) -> Vec<u32> {
    packet.list().numbers(packet.ack).map(SeqNumber::raw).collect()
}

/// Steps of 1000 and 2000, each two bytes and a count: 6 bytes, 3 before, 12 in words. 40 and 12
/// are 52.
#[test]
fn a_list_is_an_option_of_the_departing_ack_and_its_bytes_are_counted() {
    let mut sad = reporting(Report::List, Duplicates::Keep);
    send(&mut sad, [1000, 2000, 4000].map(|number| ack(1, number)));
    let left = drain(&mut sad);
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].ack.raw(), left[0].ip_len, left[0].header_len), (4000, 52, 52));
    assert_eq!(reported(&left[0]), [1000, 2000]);
    assert_eq!((counter(&sad, "listed"), counter(&sad, "grown_bytes")), (2, 12));
}

#[test]
fn a_signal_leaves_right_ahead_of_the_ack() {
    let mut sad = reporting(Report::Signal, Duplicates::Count);
    send(&mut sad, [1000, 1000, 3000].map(|number| ack(1, number)));
    send(&mut sad, [ack(2, 7)]);
    let left = drain(&mut sad);
    assert_eq!(left[0].protocol, Protocol::AckSignal);
    assert_eq!((left[0].ack.raw(), reported(&left[0])), (3000, vec![1000, 1000]));
    assert_eq!(left[1..], [ack(1, 3000), ack(2, 7)]);
    assert_eq!(counter(&sad, "signals"), 1);
}

/// At most one ACK of a flow is queued in `count` mode, and one more for each full list.
#[test]
fn an_ack_that_exceeds_the_list_is_queued_separately() {
    for (report, room) in [(Report::List, 7), (Report::Signal, 10)] {
        let mut sad = reporting(report, Duplicates::Count);
        // All steps differ, so that each takes three bytes of 23 or 31.
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
        assert_eq!(left.iter().map(|packet| reported(packet).len()).max(), Some(room));
        for packet in left {
            if packet.protocol == Protocol::Tcp {
                seen.extend(reported(&packet));
                seen.push(packet.ack.raw());
            } else {
                seen.extend(reported(&packet));
            }
        }
        assert_eq!(seen, numbers);
        assert!(counter(&sad, "list_full") > 0);
    }
}

#[test]
fn an_ack_that_its_number_cannot_restore_is_queued_separately() {
    let mut sad = reporting(Report::List, Duplicates::Count);
    let block = lastmile_packet::SackBlock { left: SeqNumber::new(9000), right: SeqNumber::new(9500) };
    let sack = with_options(ack(1, 3000), Options::NONE.with_sack(&[block]));
    let window = Meta { window: 900, ..ack(1, 4000) };
    send(&mut sad, [ack(1, 1000), ack(1, 2000), sack, ack(1, 4000), window, ack(1, 5000)]);
    let left = drain(&mut sad);
    assert_eq!(left.iter().map(|meta| meta.ack.raw()).collect::<Vec<_>>(), [2000, 3000, 4000, 4000, 5000]);
    assert_eq!((left[1], left[3]), (sack, window));
    assert_eq!(counter(&sad, "not_tellable"), 2);
    assert_eq!(left.iter().map(|meta| reported(meta).len()).sum::<usize>(), 1);
}

/// A signal of another dropper describes the ACK behind it: no ACK may be merged past it.
#[test]
fn a_signal_that_passes_closes_the_ack_before_it() {
    let mut list = AckList::EMPTY;
    assert!(list.push(500, AckList::MAX_BYTES));
    let signal = Packet::signal(&ack(1, 2000), &list);
    let mut sad = keeping();
    assert_eq!(send(&mut sad, [ack(1, 1000), signal, ack(1, 2000)]), []);
    assert_eq!(drain(&mut sad), [ack(1, 1000), signal, ack(1, 2000)]);
}

/// The ACK is ready and counted in the backlog once its signal has departed. The signal was never
/// enqueued.
#[test]
fn the_ack_behind_its_signal_is_in_the_backlog() {
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

/// An ACK restored from its number has the timestamps of the one that it is made from: 1000, which
/// had none, would get some. An ACK with a SACK block has no space for a list, so no ACK is
/// suppressed in favour of it.
#[test]
fn acks_that_a_list_cannot_represent_are_not_suppressed() {
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
