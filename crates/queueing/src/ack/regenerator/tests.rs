use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta, Options, SackBlock};
use lastmile_units::ByteCount;

use super::*;
use crate::ack::tests::counted;
use crate::fifo::{Fifo, Overflow};

type Regenerator = AckRegenerator<Meta, Fifo<Meta>>;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

fn regenerator(config: &Config) -> Regenerator {
    let line = LinkLayer::new(0, Framing::None).expect("no overhead");
    AckRegenerator::new(Fifo::in_packets(PacketCount::new(100_000), Overflow::Tail), config, &Environment::new(line))
}

fn factor(numerator: u32, denominator: u32) -> Factor {
    Factor::new(numerator, denominator).expect("a factor")
}

fn ack(number: u32) -> Meta {
    let flow = FlowId::new(1);
    let meta = Meta { flow, window: 100, flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() };
    Meta { ack: SeqNumber::new(number), ..meta }
}

fn with_options(mut meta: Meta, options: Options) -> Meta {
    let fields = meta.pure_ack().expect("it is one").fields();
    meta.rewrite_ack(&AckFields { options, ..fields });
    meta
}

fn list(steps: &[u32]) -> AckList {
    let mut list = AckList::EMPTY;
    assert!(steps.iter().all(|step| list.push(*step, AckList::MAX_BYTES)));
    list
}

/// The ACK `number` with the list that ends there.
fn listed(number: u32, steps: &[u32]) -> Meta {
    with_options(ack(number), Options::NONE.with_list(&list(steps)))
}

/// What leaves at `ms` when this comes then.
fn pass(regenerator: &mut Regenerator, ms: u64, packet: Meta) -> Vec<Meta> {
    let mut sink = |_, packet: Meta, reason| {
        assert_eq!((packet.protocol, reason), (Protocol::AckSignal, DropReason::AckSignal));
    };
    regenerator.enqueue(at(ms), packet, &mut sink);
    leave(regenerator, at(ms))
}

fn leave(regenerator: &mut Regenerator, now: Instant) -> Vec<Meta> {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    std::iter::from_fn(|| regenerator.dequeue(now, &mut none)).collect()
}

fn numbers(left: &[Meta]) -> Vec<u32> {
    left.iter().map(|meta| meta.ack.raw()).collect()
}

fn counter(regenerator: &Regenerator, name: &str) -> u64 {
    let mut found = None;
    Discipline::<Meta>::counters(regenerator, &mut |c| {
        if c.path.is_empty() && c.name == name {
            found = Some(c.value);
        }
    });
    found.expect("a counter of this name")
}

/// RFC 9293, section 3.8.6: 1000 with 9000 promised everything up to 10 000, and 5000 with 5000 promises no more and no less.
/// The duplicate of 1000 is one (RFC 5681, section 2). A window that opens is that of the newest.
#[test]
fn a_window_that_closes_takes_nothing_back() {
    let mut regenerator = regenerator(&Config::default());
    let windows = |left: Vec<Meta>| left.iter().map(|meta| (meta.ack.raw(), meta.window)).collect::<Vec<_>>();
    pass(&mut regenerator, 0, Meta { window: 9000, ..ack(1000) });
    let closing = pass(&mut regenerator, 1, Meta { window: 5000, ..listed(5000, &[1000, 0, 2000, 1000]) });
    assert_eq!(windows(closing), [(1000, 9000), (2000, 8000), (2000, 8000), (4000, 6000), (5000, 5000)]);
    let opening = pass(&mut regenerator, 2, Meta { window: 6000, ..listed(8000, &[1000, 1000]) });
    assert_eq!(windows(opening), [(6000, 6000), (7000, 6000), (8000, 6000)]);
}

/// The list says 1000, 2000, 2000, 4000 (steps 1000, 0, 2000, 1000 up to 5000): as they were suppressed, with the newest
/// window, and without the list.
#[test]
fn one_for_one_the_suppressed_numbers_come_back() {
    let mut regenerator = regenerator(&Config::default());
    let newest = Meta { window: 700, ..listed(5000, &[1000, 0, 2000, 1000]) };
    let left = pass(&mut regenerator, 0, newest);
    assert_eq!(left, [1000, 2000, 2000, 4000, 5000].map(|number| Meta { window: 700, ..ack(number) }));
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (3, 1));
    let counts =
        [("seen", 1), ("lists", 1), ("restored", 3), ("duplicates_restored", 1), ("created", 4), ("shrunk_bytes", 16)];
    assert_eq!(counted(&regenerator), counts);
    // A list of 3 runs of 3, 2 and 3 bytes, and one more of 3: 11, with 3 before, filled up to 16.
    assert_eq!((newest.ip_len, counter(&regenerator, "shrunk_bytes")), (56, 16));
}

/// The first suppressed ACK repeats the one that left before.
#[test]
fn duplicates_come_back_once_whatever_the_factor() {
    let mut regenerator = regenerator(&Config { factor: factor(4, 1), ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    let left = pass(&mut regenerator, 1, listed(1000, &[0, 0]));
    assert_eq!(numbers(&left), [1000, 1000, 1000]);
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (0, 2));
}

/// R = 3: three numbers for the one suppressed, a third of the way apart: 1000, 1333, 1666, then 2000 itself.
#[test]
fn further_numbers_stand_evenly_between_a_restored_one_and_the_next() {
    let mut threefold = regenerator(&Config { factor: factor(3, 1), ..Config::default() });
    assert_eq!(numbers(&pass(&mut threefold, 0, listed(2000, &[1000]))), [1000, 1333, 1666, 2000]);
    // Two bytes have room for two numbers only.
    assert_eq!(numbers(&pass(&mut threefold, 1, listed(3002, &[2]))), [3000, 3001, 3002]);
    // 3/2: one, two, one, two.
    let mut regenerator = regenerator(&Config { factor: factor(3, 2), ..Config::default() });
    let left = pass(&mut regenerator, 0, listed(4000, &[1000; 3]));
    assert_eq!(numbers(&left), [1000, 2000, 2500, 3000, 4000]);
    let left = pass(&mut regenerator, 1, listed(6000, &[1000]));
    assert_eq!(numbers(&left), [5000, 5500, 6000]);
}

#[test]
fn a_factor_below_one_restores_its_share_but_none_that_is_repeated_is_left_out() {
    let mut regenerator = regenerator(&Config { factor: factor(1, 2), ..Config::default() });
    let left = pass(&mut regenerator, 0, listed(6000, &[1000, 1000, 1000, 0, 0, 2000]));
    // 1000 and 3000 are left out by their share; 4000 is repeated. The list: 1000, 2000, 3000, 4000, 4000, 4000.
    assert_eq!(numbers(&left), [2000, 4000, 4000, 4000, 6000]);
    // Half of one is none, but 1000 is repeated.
    let mut halves = self::regenerator(&Config { factor: factor(1, 2), ..Config::default() });
    assert_eq!(numbers(&pass(&mut halves, 0, listed(2000, &[0, 1000]))), [1000, 1000, 2000]);
}

#[test]
fn a_factor_is_above_0_and_at_most_16() {
    assert!(Factor::new(0, 1).is_none() && Factor::new(1, 0).is_none());
    assert!(Factor::new(33, 2).is_none() && Factor::new(16, 1).is_some());
}

#[test]
fn a_signal_is_taken_in_and_its_ack_restored() {
    let mut regenerator = regenerator(&Config { know: Know::Signal, ..Config::default() });
    let signal = Packet::signal(&ack(3000), &list(&[1000, 1000]));
    assert_eq!(pass(&mut regenerator, 0, signal), []);
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(3000))), [1000, 2000, 3000]);
    assert_eq!((counter(&regenerator, "signals"), counter(&regenerator, "signals_unmatched")), (1, 0));
    assert_eq!(numbers(&pass(&mut regenerator, 2, ack(4000))), [4000]);
}

/// Its ACK was lost: the next one is not the one that it tells of.
#[test]
fn a_signal_of_another_ack_restores_nothing() {
    let mut regenerator = regenerator(&Config { know: Know::Signal, ..Config::default() });
    pass(&mut regenerator, 0, Packet::signal(&ack(3000), &list(&[1000])));
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(4000))), [4000]);
    assert_eq!(counter(&regenerator, "signals_unmatched"), 1);
}

#[test]
fn what_it_does_not_know_of_passes_as_it_came() {
    let mut interpolates = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    let signal = Packet::signal(&ack(3000), &list(&[1000]));
    assert_eq!(pass(&mut interpolates, 0, signal), [signal]);
    assert_eq!(pass(&mut interpolates, 1, listed(3000, &[1000])), [listed(3000, &[1000])]);
    let mut reads_lists = regenerator(&Config::default());
    assert_eq!(pass(&mut reads_lists, 0, signal), [signal]);
    assert_eq!(counter(&reads_lists, "passed_not_tcp"), 1);
    // A congestion mark is the ACK's own.
    let marked = Meta { traffic_class: Meta::CE, ..listed(3000, &[1000]) };
    assert_eq!(pass(&mut reads_lists, 1, marked), [marked]);
}

/// Two segments of 1000 bytes an ACK: from 1000 to 6500 the receiver would have sent 3000 and 5000.
#[test]
fn interpolation_puts_a_number_at_every_stride() {
    let mut regenerator = regenerator(&Config { know: Know::Interpolate { stride: 2000 }, ..Config::default() });
    assert_eq!(numbers(&pass(&mut regenerator, 0, ack(1000))), [1000]);
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(6500))), [3000, 5000, 6500]);
    assert_eq!(numbers(&pass(&mut regenerator, 2, ack(8500))), [8500], "a whole stride is one ACK");
    assert_eq!((counter(&regenerator, "passed_first"), counter(&regenerator, "interpolated")), (1, 2));
}

#[test]
fn a_hole_that_was_filled_is_not_taken_for_suppressed_acks() {
    let mut regenerator = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    pass(&mut regenerator, 1, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 2, ack(9000))), [9000]);
    assert_eq!(counter(&regenerator, "passed_hole"), 1);
    assert_eq!(numbers(&pass(&mut regenerator, 3, ack(11_000))), [10_000, 11_000]);
    let block = SackBlock { left: SeqNumber::new(20_000), right: SeqNumber::new(21_000) };
    let sack = with_options(ack(14_000), Options::NONE.with_sack(&[block]));
    assert_eq!(pass(&mut regenerator, 4, sack), [sack]);
    assert_eq!(numbers(&pass(&mut regenerator, 5, ack(21_000))), [21_000]);
    assert_eq!((counter(&regenerator, "passed_sack"), counter(&regenerator, "passed_hole")), (1, 2));
}

#[test]
fn a_flow_that_was_silent_for_long_is_a_new_one() {
    let mut regenerator = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 60_000, ack(3000))), [3000]);
    assert_eq!(counter(&regenerator, "passed_first"), 2);
}

/// The ACK before came 40 ms ago: three restored ones and the ACK itself leave 10 ms apart.
#[test]
fn paced_acks_leave_evenly_over_the_time_since_the_previous_one() {
    let release = Release::Paced { hold: Duration::from_ms(100) };
    let mut regenerator = regenerator(&Config { release, ..Config::default() });
    assert_eq!(numbers(&pass(&mut regenerator, 0, ack(1000))), [1000]);
    assert_eq!(numbers(&pass(&mut regenerator, 40, listed(5000, &[1000; 3]))), [2000]);
    let waits = Backlog { packets: PacketCount::new(3), bytes: ByteCount::new(120) };
    assert_eq!(Discipline::<Meta>::backlog(&regenerator), waits);
    for (ms, number) in [(50, 3000), (60, 4000)] {
        assert_eq!(regenerator.next_ready(at(ms - 5)), Some(at(ms)));
        assert_eq!(leave(&mut regenerator, at(ms - 1)), []);
        assert_eq!(numbers(&leave(&mut regenerator, at(ms))), [number]);
    }
    // A newer ACK comes early: it waits behind the last that is held, and those of other flows do not.
    assert_eq!(pass(&mut regenerator, 62, ack(6000)), []);
    let other = Meta { flow: FlowId::new(2), ..ack(7) };
    assert_eq!(pass(&mut regenerator, 63, other), [other]);
    assert_eq!(numbers(&leave(&mut regenerator, at(70))), [5000, 6000]);
    assert_eq!(regenerator.next_ready(at(70)), None);
    assert_eq!(Discipline::<Meta>::backlog(&regenerator), Backlog::default());
    assert_eq!(counter(&regenerator, "held"), 4);
    assert!(regenerator.held.flows.is_empty());
}

/// The previous ACK came 900 ms ago, but none is held for more than 30 ms: 0, 10, 20 ms.
#[test]
fn no_ack_is_held_for_longer_than_the_cap() {
    let hold = Duration::from_ms(30);
    let mut regenerator = regenerator(&Config { release: Release::Paced { hold }, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 900, listed(4000, &[1000; 2]))), [2000]);
    assert_eq!(regenerator.next_ready(at(900)), Some(at(910)));
    // What comes in between has 30 ms from then on, behind those: from 920 to 935 in three steps.
    assert_eq!(pass(&mut regenerator, 905, listed(7000, &[1000; 2])), []);
    assert_eq!(numbers(&leave(&mut regenerator, at(920))), [3000, 4000, 5000]);
    let last = at(905) + hold;
    assert_eq!(numbers(&leave(&mut regenerator, last)), [6000, 7000]);
}

/// 3000 bytes acknowledged, 1000 of window closed: at 2000, 333 1/3 of them, and the sender gets no more than that leaves. A
/// number before the newest one has the window of the ACK that it came with, and so has what repeats that ACK's number.
#[test]
fn a_closing_window_is_rounded_down_and_spread_between_the_two_acks_alone() {
    let windows = |left: Vec<Meta>| left.iter().map(|meta| (meta.ack.raw(), meta.window)).collect::<Vec<_>>();
    let mut regenerator = regenerator(&Config::default());
    pass(&mut regenerator, 0, Meta { window: 9000, ..ack(1000) });
    let closing = pass(&mut regenerator, 1, Meta { window: 8000, ..listed(4000, &[2000]) });
    assert_eq!(windows(closing), [(2000, 8666), (4000, 8000)]);
    let repeats = pass(&mut regenerator, 2, Meta { window: 5000, ..listed(4000, &[0]) });
    assert_eq!(windows(repeats), [(4000, 5000), (4000, 5000)]);
    let below = pass(&mut regenerator, 3, Meta { window: 4000, ..listed(5000, &[1000, 1000]) });
    assert_eq!(windows(below), [(3000, 4000), (4000, 5000), (5000, 4000)]);
}

/// It was overtaken by 5000, and what it stands for with it: the numbers of its list come back once, whatever the factor.
#[test]
fn an_overtaken_ack_brings_its_own_numbers_and_no_more() {
    let mut regenerator = regenerator(&Config { factor: factor(3, 1), ..Config::default() });
    pass(&mut regenerator, 0, ack(5000));
    assert_eq!(numbers(&pass(&mut regenerator, 1, listed(4000, &[1000, 1000]))), [2000, 3000, 4000]);
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "passed_old")), (2, 1));
    assert_eq!(
        numbers(&pass(&mut regenerator, 2, listed(7000, &[1000]))),
        [6000, 6333, 6666, 7000],
        "5000 is the newest"
    );
}

/// The only ACK of a flow that came, and a list that repeats its number: that is the ACK before, which did not come.
#[test]
fn the_first_of_a_flow_repeats_none_that_came() {
    let mut regenerator = regenerator(&Config::default());
    assert_eq!(numbers(&pass(&mut regenerator, 0, listed(1000, &[0]))), [1000, 1000]);
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (1, 0));
}

/// RFC 9293, section 3.1: without ACK the number says nothing; nor does that of a signal that passes. Data repeats the number
/// and is no duplicate (RFC 5681, section 2).
#[test]
fn only_acknowledgements_tell_what_is_missing() {
    let config = Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() };
    let reset = Meta { flags: TcpFlags::RST, ..ack(50_000) };
    let signal = Packet::signal(&ack(3000), &list(&[1000]));
    let data = Meta { ip_len: 1500, ..ack(1000) };
    for between in [reset, signal, data] {
        let mut regenerator = regenerator(&config);
        pass(&mut regenerator, 0, ack(1000));
        assert_eq!(pass(&mut regenerator, 1, between), [between]);
        assert_eq!(numbers(&pass(&mut regenerator, 2, ack(3000))), [2000, 3000], "{between:?}");
    }
}

/// R = 3, two segments an ACK: from 1000 to 4500 one is missing, 3000, and two more lie between it and 4500.
#[test]
fn further_numbers_lie_before_the_ack_that_came() {
    let know = Know::Interpolate { stride: 2000 };
    let mut regenerator = regenerator(&Config { know, factor: factor(3, 1), ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(4500))), [3000, 3500, 4000, 4500]);
}

/// 1024 numbers at most, as many as a list tells: beyond that it is no stream of ACKs that was thinned out.
#[test]
fn a_leap_of_more_than_a_list_could_tell_is_left_alone() {
    let mut regenerator = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    pass(&mut regenerator, 0, ack(0));
    assert_eq!(pass(&mut regenerator, 1, ack(1_025_000)).len(), 1025);
    assert_eq!(pass(&mut regenerator, 2, ack(1_025_000 + 1_026_000)).len(), 1);
    assert_eq!((counter(&regenerator, "passed_too_far"), counter(&regenerator, "created")), (1, 1024));
}

#[test]
fn a_signal_counts_once_and_the_last_one_alone() {
    let mut regenerator = regenerator(&Config { know: Know::Signal, ..Config::default() });
    pass(&mut regenerator, 0, Packet::signal(&ack(2000), &list(&[1000])));
    pass(&mut regenerator, 1, Packet::signal(&ack(3000), &list(&[500])));
    assert_eq!(counter(&regenerator, "signals_unmatched"), 1);
    assert_eq!(numbers(&pass(&mut regenerator, 2, ack(3000))), [2500, 3000]);
    assert_eq!(numbers(&pass(&mut regenerator, 3, ack(3000))), [3000], "the signal is used up");
    let exempt = Match::Protocol(Protocol::AckSignal);
    let mut passes = self::regenerator(&Config { know: Know::Signal, exempt, ..Config::default() });
    let signal = Packet::signal(&ack(2000), &list(&[1000]));
    assert_eq!(pass(&mut passes, 0, signal), [signal]);
}

/// R = 16 makes 16 of each of 1024 numbers, more than 4096: the ACK goes on alone. With R = 4 it is just 4096.
#[test]
fn one_ack_is_made_into_no_more_than_4096() {
    for (times, left) in [(16, 1), (4, 4097)] {
        let mut regenerator = regenerator(&Config { factor: factor(times, 1), ..Config::default() });
        assert_eq!(pass(&mut regenerator, 0, listed(200_000, &[100; 1024])).len(), left);
        assert_eq!(counter(&regenerator, "no_room"), u64::from(left == 1));
    }
}

/// Of 1024 numbers and their ACK one leaves at once and 1024 are held. Sixteen flows fill the 16 384 places; the seventeenth finds
/// none, and its ACK goes on alone.
#[test]
fn no_more_is_held_than_there_is_room_for() {
    let release = Release::Paced { hold: Duration::from_ms(100) };
    let mut regenerator = regenerator(&Config { release, ..Config::default() });
    let of = |flow, meta| Meta { flow: FlowId::new(flow), ..meta };
    for flow in 0..17 {
        pass(&mut regenerator, 0, of(flow, ack(1000)));
    }
    for flow in 0..17 {
        let left = pass(&mut regenerator, 1, of(flow, listed(200_000, &[100; 1024])));
        assert_eq!(numbers(&left), [if flow < 16 { 97_600 } else { 200_000 }]);
    }
    assert_eq!(Discipline::<Meta>::backlog(&regenerator).packets, PacketCount::new(16 * 1024));
    assert_eq!((counter(&regenerator, "created"), counter(&regenerator, "no_room")), (16 * 1024, 1));
    assert_eq!(leave(&mut regenerator, at(101)).len(), 16 * 1024);
}

/// Nobody asks between 40 and 65 ms: what was due at 50 and 60 ms is ahead of the ACK of another flow that comes at 65.
#[test]
fn what_is_due_is_ahead_of_what_comes_later() {
    let release = Release::Paced { hold: Duration::from_ms(100) };
    let mut regenerator = regenerator(&Config { release, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    pass(&mut regenerator, 40, listed(5000, &[1000; 3]));
    let other = Meta { flow: FlowId::new(2), ..ack(7) };
    assert_eq!(numbers(&pass(&mut regenerator, 65, other)), [3000, 4000, 7]);
}

#[test]
fn whoever_makes_an_ack_says_so() {
    struct Created(Vec<Meta>);
    impl DropSink<Meta> for Created {
        fn dropped(&mut self, _: Instant, packet: Meta, reason: DropReason) {
            panic!("{packet:?} dropped: {reason:?}");
        }
        fn created(&mut self, _: Instant, packet: &Meta) {
            self.0.push(*packet);
        }
    }
    let mut regenerator = regenerator(&Config::default());
    let mut created = Created(Vec::new());
    regenerator.enqueue(at(0), listed(3000, &[1000, 1000]), &mut created);
    assert_eq!(created.0, [ack(1000), ack(2000)]);
}
