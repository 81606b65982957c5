//! The queues of a hop: credit after a sleep, queues that change hands, waits by class.

use super::*;
use lastmile_model::Passage;
use lastmile_queueing::line::grants::{self, Asks, Outstanding, Requests, Slots};
use lastmile_queueing::meter::{drain, tbf};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{Over, Problem};
use lastmile_queueing::{Fifo, supplied};
use lastmile_units::PacketCount;

/// A bucket of one packet of 1000 bytes.
fn shaped(kbit: u64) -> Spec {
    Spec::Tbf(Over {
        config: tbf::Config {
            rate: BitRate::from_kbit_per_s(kbit),
            burst: WireBytes::new(1000),
            peak: None,
            largest: ByteCount::new(1000),
            catch_up: Duration::ZERO,
        },
        queue: Box::new(Spec::fifo(100)),
    })
}

/// A discipline written in Python knows simulated packets alone.
#[test]
fn a_supplied_discipline_for_other_packets_is_refused() {
    let one = || Box::new(Fifo::in_packets(PacketCount::new(1), Overflow::Tail)) as lastmile_queueing::Node<Meta>;
    let (spec, link_layer) = (Spec::Supplied(supplied::Config::new::<Meta>(false, one)), adsl(0).line.link_layer);
    let queues = Queues::build((&spec, link_layer), (&spec, link_layer), HashKey::default());
    let refused = queues.err().map(|error| error.problem);
    assert_eq!(refused, Some(Problem::OtherPackets));
}

/// 1000 bytes take 16 ms at 500 kbit/s. Of half a second's sleep 32 packets are due at its end, of
/// which the last 100 ms have seven: at 400, 416, up to 496 ms. Those that came meanwhile wait
/// behind the others.
#[test]
fn a_sleep_is_made_up_for_as_far_back_as_is_asked_for() {
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let arrivals: Vec<_> = (0..40).map(|n| (at(u64::from(n)), packet(n, 1000))).collect();
    let sent_by = |most: Option<Duration>| {
        let mut bump = bump(vec![Hop { queue: shaped(500), ..hop("up", None, "ip", Duration::ZERO, 0) }]);
        if let Some(most) = most {
            bump.make_up_for_at_most(most);
        }
        let clock = FakeClock(Cell::new(at(0)));
        let mut client = FakePort { arriving: arrivals.iter().cloned().collect(), ..FakePort::default() };
        let mut server = FakePort::default();
        let mut counts = Vec::new();
        for now in [0, 10, 500, 513] {
            clock.0.set(at(now));
            bump.turn(&clock, &mut client, &mut server).unwrap();
            counts.push(server.sent.len());
        }
        assert!(bump.reports().0.is_balanced());
        (counts, bump.reports().0.overslept)
    };
    assert_eq!(sent_by(None), (vec![1, 1, 32, 33], 0));
    assert_eq!(sent_by(Some(Duration::from_ms(100))), (vec![1, 1, 8, 9], 1));
    assert_eq!(sent_by(Some(Duration::from_ms(500))), (vec![1, 1, 32, 33], 0), "nobody slept for so long");
}

/// 1000 bytes take 16 ms at 500 kbit/s and 4 ms at 2 Mbit/s. At 24 ms half of the third packet is paid, and the other
/// half takes 2 ms at the new rate.
#[test]
fn a_shaper_is_steered_while_packets_wait() {
    let mut bump = bump(vec![Hop { queue: shaped(500), ..hop("up", None, "ip", Duration::ZERO, 0) }]);
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let arriving = (0..5).map(|n| (Instant::ZERO, packet(n, 1000))).collect();
    let (mut client, mut server) = (FakePort { arriving, ..FakePort::default() }, FakePort::default());
    for ms in [0, 16, 24] {
        clock.0.set(Instant::ZERO + Duration::from_ms(ms));
        bump.turn(&clock, &mut client, &mut server).unwrap();
    }
    let rate = BitRate::from_mbit_per_s(2);
    assert_eq!(bump.steer(0, rate).as_u64(), 2000);
    while let Some(wake) = bump.next_wake() {
        clock.0.set(wake);
        bump.turn(&clock, &mut client, &mut server).unwrap();
    }
    let sent: Vec<u64> = server.sent.iter().map(|(at, _)| at.since(Instant::ZERO).as_ms()).collect();
    assert_eq!(sent, [0, 16, 26, 30, 34]);
    assert_eq!(bump.steer(1, rate).as_u64(), 0, "the other direction has a FIFO, which has no rate");
    let shapers = |hops: Vec<HopGlance>| hops.into_iter().map(|hop| hop.shaper_rate).collect::<Vec<_>>();
    assert_eq!(shapers(bump.glance(clock.0.get())), [Some(rate), None]);
}

/// 1000 bytes take 16 ms at 500 kbit/s and 4 ms at 2 Mbit/s; a bucket of one packet lets the first go at once.
#[test]
fn queues_change_hands_while_packets_wait() {
    let ip = LinkLayer::from_name("ip").unwrap();
    let first = Hop { queue: shaped(500), ..hop("up", None, "ip", Duration::ZERO, 0) };
    let mut bump = bump(vec![first]);
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let clock = FakeClock(Cell::new(at(0)));
    let mut client = FakePort { arriving: (0..4).map(|n| (at(0), packet(n, 1000))).collect(), ..FakePort::default() };
    let mut server = FakePort::default();
    bump.turn(&clock, &mut client, &mut server).unwrap();
    bump.hand_over(Queues::build((&shaped(2000), ip), (&Spec::fifo(9), ip), HashKey::default()).unwrap());
    client.arriving.extend((4..7).map(|n| (at(1), packet(n, 1000))));
    clock.0.set(at(1));
    bump.turn(&clock, &mut client, &mut server).unwrap();
    while let Some(wake) = bump.next_wake() {
        clock.0.set(wake);
        bump.turn(&clock, &mut client, &mut server).unwrap();
    }
    // Ports stamp what they send with the time of their last reading: the client's port is read before each sending.
    let sent: Vec<_> = server.sent.iter().map(|(at, bytes)| (*at, u16::from_be_bytes([bytes[4], bytes[5]]))).collect();
    assert_eq!(sent, [(0, 0), (16, 1), (32, 2), (48, 3), (48, 4), (52, 5), (56, 6)].map(|(ms, n)| (at(ms), n)));
    assert!(bump.reports().0.is_balanced());
}

/// Two classes by size, the small first.
fn by_size() -> Spec {
    let class = |matches| ClassSpec { matches, queue: Spec::fifo(100) };
    Spec::Rules(rules::Config {
        rules: vec![rules::Rule { matches: Match::AtMostBytes(100), class: 0, last: false }],
        otherwise: 1,
        names: Vec::new(),
        queue: Box::new(Spec::Priority(priority::Config { classes: vec![class(Match::Class(0)), class(Match::Any)] })),
    })
}

/// 8 Mbit/s without encapsulation: 1000 bytes take a millisecond, 100 bytes a tenth.
#[test]
fn waits_are_told_by_class_until_another_queue_is_put_in() {
    let by_size = |rate| Hop { queue: by_size(), ..hop("line", rate, "ip", Duration::ZERO, 0) };
    let mut bump = bump(vec![by_size(Some(BitRate::from_mbit_per_s(8)))]);
    let at = |us| Instant::ZERO + Duration::from_us(us);
    let arriving = [(0, 1000), (0, 1000), (0, 100), (5_000, 1000), (5_000, 1000)];
    let arrivals: Vec<_> = (0..).zip(arriving).map(|(number, (us, size))| (at(us), packet(number, size))).collect();
    drive(&mut bump, &arrivals[..3], &[]);
    let us = |waited: &Buckets| -> Vec<(u64, u64)> { waited.ends().map(|(ns, count)| (ns / 1000, count)).collect() };
    let near = |told: Vec<(u64, u64)>, exact: &[(u64, u64)]| {
        assert_eq!(told.len(), exact.len(), "{told:?}");
        for ((us, count), (exact_us, exact_count)) in told.into_iter().zip(exact) {
            // Three digits.
            assert!(us.abs_diff(*exact_us) * 1000 <= *exact_us && count == *exact_count, "{us} {count}");
        }
    };
    let told = bump.reports().0.hops.remove(0);
    near(us(&told.class_waited[0]), &[(1000, 1)]);
    near(us(&told.class_waited[1]), &[(0, 1), (1100, 1)]);
    assert_eq!(told.overlimits, 2, "the first found the line free");

    // Of two packets the second waits when the queue is replaced: it wears a class of the earlier one.
    let clock = FakeClock(Cell::new(at(5_000)));
    let mut client = FakePort { arriving: arrivals[3..].iter().cloned().collect(), ..FakePort::default() };
    bump.turn(&clock, &mut client, &mut FakePort::default()).unwrap();
    clock.0.set(at(5_500));
    bump.turn(&clock, &mut client, &mut FakePort::default()).unwrap();
    let layer = LinkLayer::from_name("ip").unwrap();
    let queues = Queues::build((&self::by_size(), layer), (&Spec::fifo(1), layer), HashKey::default()).unwrap();
    bump.hand_over(queues);
    drive(&mut bump, &[(at(6_500), packet(9, 1000))], &[]);
    let told = bump.reports().0.hops.remove(0);
    near(us(&told.class_waited[0]), &[]);
    near(us(&told.class_waited[1]), &[(500, 1)]);
    assert_eq!((told.overlimits, told.waited.len()), (4, 6));
}

/// 8 Mbit/s in slots of 1 ms. A packet of 500 bytes at 0.3 ms asks at 1 ms, and is granted 3 ms later.
#[test]
fn requests_and_grants_are_counted() {
    let ms = Duration::from_ms;
    let slots = Slots::new(ms(1), vec![grants::Span { start: Duration::ZERO, end: ms(1) }]).unwrap();
    let requests = Requests {
        every: ms(1),
        contention: None,
        piggyback: false,
        response: ms(3),
        asks: Asks::Packet,
        outstanding: Outstanding::One,
    };
    let rate = BitRate::from_mbit_per_s(8);
    let mut hop = hop("line", Some(rate), "ip", Duration::ZERO, 1_000);
    hop.line.grants = Some(Box::new(grants::Config { requests: Some(requests), ..grants::Config::new(rate, slots) }));
    let mut bump = bump(vec![hop]);
    drive(&mut bump, &[(Instant::ZERO + Duration::from_us(300), packet(0, 500))], &[]);
    let told = bump.reports().0.hops.remove(0).grants.expect("grants");
    let expected = grants::Counts { requests: 1, grants: 1, granted: 500, ..grants::Counts::default() };
    assert_eq!(bump.states(Instant::ZERO + ms(10), Default::default()).hops[0].grants, Some(expected));
    assert_eq!((told.counts, told.waited_ns.len(), told.waited_ns.max()), (expected, 1, 3_000_000));
}

/// Small packets do not wait for the drain, and pass the classes below it.
#[test]
fn the_waits_of_packets_that_a_drain_passes_are_in_no_class() {
    let Spec::Rules(rules) = by_size() else { panic!("rules") };
    let config = drain::Config {
        line: BitRate::from_mbit_per_s(8),
        share: lastmile_units::Ratio::ONE,
        drain: None,
        urgent: Match::Class(0),
        largest: ByteCount::new(1000),
        catch_up: Duration::ZERO,
    };
    let queue = Box::new(Spec::Drain(Over { config, queue: rules.queue }));
    let queue = Spec::Rules(rules::Config { queue, ..rules });
    let mut bump = bump(vec![Hop { queue, ..hop("line", None, "ip", Duration::ZERO, 0) }]);
    let arrivals: Vec<_> =
        [1000, 100, 1000].into_iter().zip(0..).map(|(size, n)| (Instant::ZERO, packet(n, size))).collect();
    drive(&mut bump, &arrivals, &[]);
    let told = bump.reports().0.hops.remove(0);
    assert_eq!(told.waited.len(), 3);
    assert_eq!(told.class_waited.iter().map(Buckets::len).collect::<Vec<_>>(), [0, 2]);
}

/// The reports to a tap: time, hop, and length of the packet.
type Heard = Arc<Mutex<Vec<(Instant, usize, Passage, usize)>>>;

struct Ear(Heard);

impl lastmile_model::Observer<[u8]> for Ear {
    fn packet(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        self.0.lock().unwrap().push((at, hop, passage, bytes.len()));
    }
}

/// One packet of 100 bytes, found 20 ms late: at every hop of the way up it is reported at the times of
/// an exact clock, and at none of those down, which are numbered behind them.
#[test]
fn a_tap_hears_when_a_packet_passes_each_hop_however_late_the_wake_up() {
    let heard = Heard::default();
    let mut bump = bump(path());
    bump.set_tap(Box::new(Ear(Heard::clone(&heard))));
    let at = Instant::ZERO + Duration::from_ms(1);
    let sent = drive(&mut bump, &[(at, packet(1, 100))], &[at + Duration::from_ms(20)]);
    let heard = heard.lock().unwrap();
    let hops: Vec<(usize, Passage)> = heard.iter().map(|(_, hop, passage, _)| (*hop, *passage)).collect();
    let expected: Vec<(usize, Passage)> =
        (0..5).flat_map(|hop| [(hop, Passage::Transmitted), (hop, Passage::Arrived)]).collect();
    assert_eq!(hops, expected);
    assert!(heard.iter().all(|(.., len)| *len == 100));
    assert_eq!(heard[0].0, at, "an idle link takes it at once");
    assert!(heard.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    assert_eq!((heard[9].0, 1), (exactly(&path(), &[(at, packet(1, 100))]).0[0].0, sent.len()));
}
