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

/// The packets that depart at `ms` when this one arrives then.
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

/// RFC 9293, section 3.8.6: 1000 with a window of 9000 promised everything up to 10 000, and so
/// does 5000 with 5000. The duplicate of 1000 stays one (RFC 5681, section 2). An opening window is
/// that of the newest.
#[test]
fn a_closing_window_takes_nothing_back() {
    let mut regenerator = regenerator(&Config::default());
    let windows = |left: Vec<Meta>| left.iter().map(|meta| (meta.ack.raw(), meta.window)).collect::<Vec<_>>();
    pass(&mut regenerator, 0, Meta { window: 9000, ..ack(1000) });
    let closing = pass(&mut regenerator, 1, Meta { window: 5000, ..listed(5000, &[1000, 0, 2000, 1000]) });
    assert_eq!(windows(closing), [(1000, 9000), (2000, 8000), (2000, 8000), (4000, 6000), (5000, 5000)]);
    let opening = pass(&mut regenerator, 2, Meta { window: 6000, ..listed(8000, &[1000, 1000]) });
    assert_eq!(windows(opening), [(6000, 6000), (7000, 6000), (8000, 6000)]);
}

/// The list holds 1000, 2000, 2000, 4000 (steps 1000, 0, 2000, 1000 up to 5000): they are restored
/// as they were suppressed, with the newest window, and without the list.
#[test]
fn with_a_factor_of_one_the_suppressed_numbers_are_restored() {
    let mut regenerator = regenerator(&Config::default());
    let newest = Meta { window: 700, ..listed(5000, &[1000, 0, 2000, 1000]) };
    let left = pass(&mut regenerator, 0, newest);
    assert_eq!(left, [1000, 2000, 2000, 4000, 5000].map(|number| Meta { window: 700, ..ack(number) }));
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (3, 1));
    let counts =
        [("seen", 1), ("lists", 1), ("restored", 3), ("duplicates_restored", 1), ("created", 4), ("shrunk_bytes", 16)];
    assert_eq!(counted(&regenerator), counts);
    // A list of 3 runs of 3, 2 and 3 bytes, and one more of 3: 11, with 3 before, padded to 16.
    assert_eq!((newest.ip_len, counter(&regenerator, "shrunk_bytes")), (56, 16));
}

/// The first suppressed ACK repeats the last one that departed.
#[test]
fn duplicates_are_restored_once_for_any_factor() {
    let mut regenerator = regenerator(&Config { factor: factor(4, 1), ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    let left = pass(&mut regenerator, 1, listed(1000, &[0, 0]));
    assert_eq!(numbers(&left), [1000, 1000, 1000]);
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (0, 2));
}

/// R = 3: three numbers for one suppressed, a third of the distance apart: 1000, 1333, 1666, then
/// 2000 itself.
#[test]
fn further_numbers_are_spread_evenly_up_to_the_next() {
    let mut threefold = regenerator(&Config { factor: factor(3, 1), ..Config::default() });
    assert_eq!(numbers(&pass(&mut threefold, 0, listed(2000, &[1000]))), [1000, 1333, 1666, 2000]);
    // Two bytes hold only two numbers.
    assert_eq!(numbers(&pass(&mut threefold, 1, listed(3002, &[2]))), [3000, 3001, 3002]);
    // 3/2: one, two, one, two.
    let mut regenerator = regenerator(&Config { factor: factor(3, 2), ..Config::default() });
    let left = pass(&mut regenerator, 0, listed(4000, &[1000; 3]));
    assert_eq!(numbers(&left), [1000, 2000, 2500, 3000, 4000]);
    let left = pass(&mut regenerator, 1, listed(6000, &[1000]));
    assert_eq!(numbers(&left), [5000, 5500, 6000]);
}

#[test]
fn a_factor_below_one_restores_its_share_and_all_repeated_numbers() {
    let mut regenerator = regenerator(&Config { factor: factor(1, 2), ..Config::default() });
    let left = pass(&mut regenerator, 0, listed(6000, &[1000, 1000, 1000, 0, 0, 2000]));
    // The share omits 1000 and 3000; 4000 is repeated. The list: 1000, 2000, 3000, 4000, 4000,
    // 4000.
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
fn a_signal_is_consumed_and_its_acks_restored() {
    let mut regenerator = regenerator(&Config { know: Know::Signal, ..Config::default() });
    let signal = Packet::signal(&ack(3000), &list(&[1000, 1000]));
    assert_eq!(pass(&mut regenerator, 0, signal), []);
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(3000))), [1000, 2000, 3000]);
    assert_eq!((counter(&regenerator, "signals"), counter(&regenerator, "signals_unmatched")), (1, 0));
    assert_eq!(numbers(&pass(&mut regenerator, 2, ack(4000))), [4000]);
}

/// Its ACK was lost: the signal does not describe the next one.
#[test]
fn a_signal_of_another_ack_restores_nothing() {
    let mut regenerator = regenerator(&Config { know: Know::Signal, ..Config::default() });
    pass(&mut regenerator, 0, Packet::signal(&ack(3000), &list(&[1000])));
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(4000))), [4000]);
    assert_eq!(counter(&regenerator, "signals_unmatched"), 1);
}

#[test]
fn unknown_packets_pass_unchanged() {
    let mut interpolates = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    let signal = Packet::signal(&ack(3000), &list(&[1000]));
    assert_eq!(pass(&mut interpolates, 0, signal), [signal]);
    assert_eq!(pass(&mut interpolates, 1, listed(3000, &[1000])), [listed(3000, &[1000])]);
    let mut reads_lists = regenerator(&Config::default());
    assert_eq!(pass(&mut reads_lists, 0, signal), [signal]);
    assert_eq!(counter(&reads_lists, "passed_not_tcp"), 1);
    // A congestion mark belongs to the ACK itself.
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
fn a_filled_hole_does_not_count_as_suppressed_acks() {
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

/// The previous ACK arrived 40 ms ago: three restored ones and the ACK itself depart 10 ms apart.
#[test]
fn paced_acks_depart_evenly_over_the_time_since_the_previous_one() {
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
    // A newer ACK arrives early: it waits behind the last held one; those of other flows do not.
    assert_eq!(pass(&mut regenerator, 62, ack(6000)), []);
    let other = Meta { flow: FlowId::new(2), ..ack(7) };
    assert_eq!(pass(&mut regenerator, 63, other), [other]);
    assert_eq!(numbers(&leave(&mut regenerator, at(70))), [5000, 6000]);
    assert_eq!(regenerator.next_ready(at(70)), None);
    assert_eq!(Discipline::<Meta>::backlog(&regenerator), Backlog::default());
    assert_eq!(counter(&regenerator, "held"), 4);
    assert!(regenerator.held.flows.is_empty());
}

/// The previous ACK arrived 900 ms ago, but none is held for more than 30 ms: 0, 10, 20 ms.
#[test]
fn no_ack_is_held_for_longer_than_the_cap() {
    let hold = Duration::from_ms(30);
    let mut regenerator = regenerator(&Config { release: Release::Paced { hold }, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 900, listed(4000, &[1000; 2]))), [2000]);
    assert_eq!(regenerator.next_ready(at(900)), Some(at(910)));
    // An ACK that arrives in between is spread over 30 ms from then on, behind those: from 920 to
    // 935 in three steps.
    assert_eq!(pass(&mut regenerator, 905, listed(7000, &[1000; 2])), []);
    assert_eq!(numbers(&leave(&mut regenerator, at(920))), [3000, 4000, 5000]);
    let last = at(905) + hold;
    assert_eq!(numbers(&leave(&mut regenerator, last)), [6000, 7000]);
}

/// 3000 bytes acknowledged, 1000 of window closed: at 2000, 333 1/3 of them, rounded in favour of
/// the receiver. A number before the newest one has the window of the ACK that it arrived with, and
/// so has one that repeats that ACK's number.
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

/// 5000 overtook it and the ACKs that it replaces: the numbers of its list are restored once,
/// whatever the factor.
#[test]
fn a_reordered_ack_restores_exactly_its_numbers() {
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

/// The only ACK of a flow so far, with a list that repeats its number: the list refers to an
/// earlier ACK, which did not arrive.
#[test]
fn the_first_ack_of_a_flow_restores_no_duplicate() {
    let mut regenerator = regenerator(&Config::default());
    assert_eq!(numbers(&pass(&mut regenerator, 0, listed(1000, &[0]))), [1000, 1000]);
    assert_eq!((counter(&regenerator, "restored"), counter(&regenerator, "duplicates_restored")), (1, 0));
}

/// RFC 9293, section 3.1: without ACK the number has no meaning; nor has that of a passing signal.
/// Data repeats the number and is no duplicate (RFC 5681, section 2).
#[test]
fn only_acknowledgements_show_missing_numbers() {
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

/// R = 3, two segments an ACK: from 1000 to 4500 one is missing, 3000, and two more lie between it
/// and 4500.
#[test]
fn further_numbers_lie_before_the_arriving_ack() {
    let know = Know::Interpolate { stride: 2000 };
    let mut regenerator = regenerator(&Config { know, factor: factor(3, 1), ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    assert_eq!(numbers(&pass(&mut regenerator, 1, ack(4500))), [3000, 3500, 4000, 4500]);
}

/// 1024 numbers at most, the maximum of a list: a larger gap is no thinned stream of ACKs.
#[test]
fn a_gap_beyond_the_maximum_of_a_list_is_not_interpolated() {
    let mut regenerator = regenerator(&Config { know: Know::Interpolate { stride: 1000 }, ..Config::default() });
    pass(&mut regenerator, 0, ack(0));
    assert_eq!(pass(&mut regenerator, 1, ack(1_025_000)).len(), 1025);
    assert_eq!(pass(&mut regenerator, 2, ack(1_025_000 + 1_026_000)).len(), 1);
    assert_eq!((counter(&regenerator, "passed_too_far"), counter(&regenerator, "created")), (1, 1024));
}

#[test]
fn a_signal_is_used_once_and_only_the_last_one() {
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

/// R = 16 makes 16 of each of 1024 numbers, more than 4096: the ACK departs alone. R = 4 makes
/// exactly 4096.
#[test]
fn one_ack_is_made_into_no_more_than_4096() {
    for (times, left) in [(16, 1), (4, 4097)] {
        let mut regenerator = regenerator(&Config { factor: factor(times, 1), ..Config::default() });
        assert_eq!(pass(&mut regenerator, 0, listed(200_000, &[100; 1024])).len(), left);
        assert_eq!(counter(&regenerator, "no_room"), u64::from(left == 1));
    }
}

/// Of 1024 numbers and their ACK one departs at once and 1024 are held. Sixteen flows fill the
/// capacity of 16 384; the seventeenth exceeds it, and its ACK departs alone.
#[test]
fn held_packets_are_limited_by_the_capacity() {
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

/// No dequeue between 40 and 65 ms: the packets due at 50 and 60 ms precede the ACK of another flow
/// that arrives at 65.
#[test]
fn due_packets_precede_later_arrivals() {
    let release = Release::Paced { hold: Duration::from_ms(100) };
    let mut regenerator = regenerator(&Config { release, ..Config::default() });
    pass(&mut regenerator, 0, ack(1000));
    pass(&mut regenerator, 40, listed(5000, &[1000; 3]));
    let other = Meta { flow: FlowId::new(2), ..ack(7) };
    assert_eq!(numbers(&pass(&mut regenerator, 65, other)), [3000, 4000, 7]);
}

#[test]
fn created_acks_are_shown_to_the_sink() {
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
