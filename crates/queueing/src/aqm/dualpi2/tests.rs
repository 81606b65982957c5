use lastmile_linklayer::preset;
use lastmile_packet::FlowId;

use super::*;
use crate::aqm::pi::ONE;
use lastmile_units::BitRate;
use lastmile_units::ByteCount;
use lastmile_units::Duration;
use lastmile_units::PacketCount;
use lastmile_units::Ratio;

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

fn at(count: u64) -> Instant {
    Instant::ZERO + ms(count)
}

fn dual(config: &Config) -> DualPi2<Meta> {
    DualPi2::new(config, &preset::IP.link).expect("a limit in packets")
}

fn packet(now: Instant, ecn: u8) -> Meta {
    Meta { ip_len: 1500, traffic_class: ecn, arrived: now, ..Meta::default() }
}

fn put(dual: &mut DualPi2<Meta>, now: Instant, ecn: u8) {
    dual.enqueue(now, packet(now, ecn), &mut |_, packet, reason| panic!("{packet:?} dropped: {reason:?}"));
}

/// Base probability in 10^-12 after one update.
fn updated(from: u64, wait_before: Duration, wait: Duration) -> u64 {
    let probability = (u128::from(from) * u128::from(ONE)).div_ceil(1_000_000_000_000) as u64;
    let mut controller = Controller::with(probability, wait_before);
    controller.update(&Config::default(), wait);
    (u128::from(controller.probability()) * 1_000_000_000_000 / u128::from(ONE)) as u64
}

/// RFC 9332, appendix A.1: 41/256 * (31 - 15) ms = 0.0025625, and 819/256 * (31 - 27) ms = 0.012796875. The
/// probability stays between zero and one.
#[test]
fn a_step_is_the_weighted_distance_and_trend() {
    assert!(updated(500_000_000_000, ms(31), ms(31)).abs_diff(502_562_500_000) <= 1);
    assert!(updated(500_000_000_000, ms(27), ms(31)).abs_diff(515_359_375_000) <= 1);
    assert!(updated(500_000_000_000, ms(15), ms(15)).abs_diff(500_000_000_000) <= 1);
    assert_eq!(updated(1_000_000_000, ms(15), ms(0)), 0);
    assert_eq!(updated(999_000_000_000, ms(0), ms(500)), 1_000_000_000_000);
}

/// ECT(1) and CE wait in the shallow queue, Not-ECT and ECT(0) in the classic one. The shallow queue is served first.
#[test]
fn the_ecn_field_decides_the_queue() {
    let mut dual = dual(&Config::default());
    for ecn in [Meta::NOT_ECT, Meta::ECT_0, Meta::ECT_1, Meta::CE] {
        put(&mut dual, at(0), ecn);
    }
    let sent: Vec<Meta> = (0..4).map(|_| dual.dequeue(at(0), &mut |_, _, _| ()).unwrap()).collect();
    let order: Vec<u8> = sent.iter().map(Meta::ecn).collect();
    assert_eq!(order, [Meta::ECT_1, Meta::CE, Meta::NOT_ECT, Meta::ECT_0]);
    let classes = sent.iter().map(|packet| Config::default().class_name(packet.class.unwrap()));
    assert!(classes.eq(["L queue", "L queue", "C queue", "C queue"].map(|name| Some(name.to_owned()))));
    assert_eq!((dual.counts.sent_l, dual.counts.sent_c), (2, 2));
}

/// A packet of the code point NQB without ECN waits in the shallow queue if the configuration says so. Beyond the step
/// it departs without a mark, since it cannot carry one.
#[test]
fn packets_of_nqb_wait_in_the_shallow_queue_on_request() {
    for nqb in [false, true] {
        let mut dual = dual(&Config { nqb, ..Config::default() });
        put(&mut dual, at(0), Meta::NOT_ECT);
        put(&mut dual, at(0), Config::NQB << 2 | Meta::NOT_ECT);
        let first = dual.dequeue(at(2), &mut |_, _, _| ()).unwrap();
        assert_eq!(first.dscp() == Config::NQB, nqb);
        assert_eq!(first.ecn(), Meta::NOT_ECT);
        assert_eq!((dual.counts.sent_l, dual.counts.marked_step), (u64::from(nqb), 0));
    }
}

/// Both queues always have packets: of 1000, a tenth are classic.
#[test]
fn the_classic_queue_has_its_share() {
    let mut dual = dual(&Config { step: ms(1000), ..Config::default() });
    let mut classic = 0;
    for _ in 0..50 {
        put(&mut dual, at(0), Meta::ECT_0);
        put(&mut dual, at(0), Meta::ECT_1);
    }
    for _ in 0..1000 {
        let packet = dual.dequeue(at(0), &mut |_, _, _| ()).unwrap();
        classic += u32::from(packet.ecn() == Meta::ECT_0);
        put(&mut dual, at(0), packet.ecn());
    }
    assert!((98..=102).contains(&classic), "{classic}");
}

/// The step marks what has waited for 1 ms, unless it was alone when it came (`min_qlen_step`).
#[test]
fn the_step_marks_by_the_wait_and_spares_a_packet_that_is_alone() {
    let marks = |spared: u64, wait: Duration| {
        let mut dual = dual(&Config { min_qlen_step: PacketCount::new(spared), ..Config::default() });
        for _ in 0..3 {
            put(&mut dual, at(0), Meta::ECT_1);
        }
        let sent: Vec<u8> = (0..3).map(|_| dual.dequeue(at(0) + wait, &mut |_, _, _| ()).unwrap().ecn()).collect();
        assert_eq!(dual.counts.marked_step, sent.iter().filter(|ecn| **ecn == Meta::CE).count() as u64);
        sent
    };
    let (ect, ce) = (Meta::ECT_1, Meta::CE);
    assert_eq!(marks(0, Duration::from_us(999)), [ect, ect, ect]);
    assert_eq!(marks(0, ms(1)), [ect, ce, ce]);
    assert_eq!(marks(1, ms(1)), [ect, ect, ce]);
}

/// Of 10 000 packets at a base probability of 20 %: 40 % of the shallow queue are marked (k = 2), and 4 % of the
/// classic queue, which are marked if they can be, and else dropped.
#[test]
fn the_probabilities_are_coupled() {
    let config = Config { step: ms(1000), ..Config::default() };
    let shares = |ecn: u8| {
        let mut dual = dual(&config);
        dual.controller = Controller::with(ONE / 5, ms(15));
        for _ in 0..10_000 {
            put(&mut dual, at(0), ecn);
        }
        // Time stands still, so that the probability stays.
        dual.controller = Controller::with(ONE / 5, ms(15));
        while dual.dequeue(at(0), &mut |_, _, _| ()).is_some() {}
        dual.counts
    };
    let near = |count: u64, expected: u64| count.abs_diff(expected) < expected / 10;
    assert!(near(shares(Meta::ECT_1).marked_l, 4000), "{:?}", shares(Meta::ECT_1));
    assert!(near(shares(Meta::ECT_0).marked_c, 400), "{:?}", shares(Meta::ECT_0));
    assert!(near(shares(Meta::NOT_ECT).dropped, 400), "{:?}", shares(Meta::NOT_ECT));
    assert_eq!((shares(Meta::ECT_1).dropped, shares(Meta::ECT_0).dropped), (0, 0));
}

/// Appendix A.2: at a base probability of 60 % marks of the shallow queue are at 100 % and do not control it; both
/// queues drop 36 %, whatever the ECN field.
#[test]
fn an_overload_drops_in_both_queues() {
    for ecn in [Meta::ECT_1, Meta::ECT_0] {
        let mut dual = dual(&Config::default());
        for _ in 0..10_000 {
            put(&mut dual, at(0), ecn);
        }
        dual.controller = Controller::with(ONE / 5 * 3, ms(15));
        while dual.dequeue(at(0), &mut |_, _, _| ()).is_some() {}
        assert!(dual.counts.dropped.abs_diff(3600) < 200, "{:?}", dual.counts);
    }
}

/// While less than two full packets wait nothing is dropped.
#[test]
fn the_last_packet_is_spared() {
    let mut dual = dual(&Config::default());
    put(&mut dual, at(0), Meta::NOT_ECT);
    dual.controller = Controller::with(ONE, ms(100));
    assert!(dual.dequeue(at(0), &mut |_, _, _| ()).is_some());
}

/// 12 Mbit/s carry 1500 bytes in 1 ms; classic packets come each 0.8 ms and do not respond. A fifth is dropped, so the
/// base probability is the root of it, below the half at which the shallow queue would be overloaded; the probability
/// is steady only where the wait is at the target.
#[test]
fn a_fifth_too_much_is_dropped_and_the_wait_is_at_the_target() {
    let mut dual = dual(&Config::default());
    let (mut came, mut dropped, mut waits, mut sent) = (0_u64, 0_u64, Duration::ZERO, 0_u64);
    let (settled, end) = (at(60_000), at(120_000));
    let mut next_send = Instant::ZERO;
    for number in 0.. {
        let now = Instant::ZERO + Duration::from_us(800 * number);
        while next_send <= now {
            let late = next_send >= settled;
            let packet = dual.dequeue(next_send, &mut |_, _, _| dropped += u64::from(late));
            if let Some(packet) = packet.filter(|_| late) {
                (waits, sent) = (waits + next_send.since(packet.arrived), sent + 1);
            }
            next_send += ms(1);
        }
        if now >= end {
            break;
        }
        came += u64::from(now >= settled);
        put(&mut dual, now, Meta::NOT_ECT);
    }
    let (share, wait_ms) = (dropped as f64 / came as f64, waits.as_secs_f64() * 1e3 / sent as f64);
    assert!((share - 0.2).abs() < 0.004, "{share}");
    assert!((wait_ms - 15.0).abs() < 1.0, "{wait_ms} ms");
}

/// 120 Mbit/s carry 1500 bytes in 0.1 ms. Of a flow that sends twice as much and does not respond, more than a fifth is
/// moved to the classic queue, and the overload drops more; small packets each 5 ms stay.
#[test]
fn a_flow_that_builds_the_shallow_queue_is_moved() {
    let mut dual = dual(&Config { queue_protection: true, ..Config::default() });
    let (mut greedy, mut sparse) = ((0, 0), (0, 0));
    for step in 0..20_000_u64 {
        let now = Instant::ZERO + Duration::from_us(50 * step);
        let mut offer = |flow: u32, ip_len: u16, count: &mut (u64, u64)| {
            let before = dual.counts.redirected;
            let packet = Meta { flow: FlowId::new(flow), ip_len, ..packet(now, Meta::ECT_1) };
            dual.enqueue(now, packet, &mut |_, _, _| ());
            *count = (count.0 + 1, count.1 + dual.counts.redirected - before);
        };
        offer(1, 1500, &mut greedy);
        if step % 100 == 0 {
            offer(2, 150, &mut sparse);
        }
        if step % 2 == 0 {
            dual.dequeue(now, &mut |_, _, _| ());
        }
    }
    assert!(greedy.1 * 5 > greedy.0, "{greedy:?}");
    assert_eq!(sparse, (200, 0));
}

/// RFC 9957: 1500 bytes of congestion are 3.072 ms at 2^19 bytes in 2^30 ns, and age with the clock. At 2 ms of wait a
/// score above 2 ms is sanctioned, at up to 1 ms none.
#[test]
fn scores_grow_by_bytes_and_age_with_time() {
    let (flow, size) = (FlowId::new(7), ByteCount::new(1500));
    let mut protection = Protection::new(ms(1), 1);
    let first = protection.score(at(0), flow, size, ONE);
    assert_eq!(first, Duration::from_us(3072));
    assert_eq!(protection.score(at(2), flow, size, 0), first - ms(2));
    assert_eq!(protection.score(at(10), flow, size, 0), Duration::ZERO);
    // At a quarter of the ramp a quarter of the bytes counts.
    assert_eq!(protection.score(at(20), flow, size, ONE / 4), Duration::from_us(768));
    assert!(protection.is_sanctioned(ms(2), Duration::from_us(2001)));
    assert!(!protection.is_sanctioned(ms(2), ms(2)));
    assert!(!protection.is_sanctioned(ms(1), ms(1000)));
}

/// RFC 9957: the critical wait is the one from which each packet is marked (MAXTH), here a step of 4 ms, and 3.2 ms and
/// 2^19 ns at 10 Mbit/s. The first marked packet of a flow has a score of 3.072 ms: 4.5 ms times that are 13.8 ms² of
/// 4 ms · 4 ms, and 4.8 ms times that 14.7 ms² of 3.72 ms · 4 ms. The second has twice the score, and is moved.
#[test]
fn the_critical_wait_is_that_of_the_marks() {
    let moved = |config: Config, arrivals: &[(u64, u32)]| {
        let mut dual = dual(&Config { queue_protection: true, ..config });
        let mut offer = |&(us, flow): &(u64, u32)| {
            let now = Instant::ZERO + Duration::from_us(us);
            let packet = Meta { flow: FlowId::new(flow), ..packet(now, Meta::ECT_1) };
            dual.enqueue(now, packet, &mut |_, packet, reason| panic!("{packet:?} dropped: {reason:?}"));
            dual.counts.redirected
        };
        arrivals.iter().map(&mut offer).collect::<Vec<u64>>()
    };
    let step = Config { step: ms(4), ..Config::default() };
    assert_eq!(moved(step, &[(0, 1), (4500, 2), (4500, 2)]), [0, 0, 1]);
    let predicted = Config { predicted: Some(BitRate::from_mbit_per_s(10)), ..Config::default() };
    // Packets of 1.2 ms: waits of 1.2, 2.4, 3.6, 4.8 and 6 ms.
    assert_eq!(moved(predicted, &[(0, 1), (0, 2), (0, 3), (0, 4), (0, 4)]), [0, 0, 0, 0, 1]);
}

/// 4000 packets of 1500 bytes are 12.3 s of congestion, of which 5 s count (RFC 9957, MAX_QLSCORE).
#[test]
fn a_score_is_at_most_five_seconds() {
    let (flow, size) = (FlowId::new(7), ByteCount::new(1500));
    let mut protection = Protection::new(ms(1), 1);
    for _ in 0..4000 {
        protection.score(at(0), flow, size, ONE);
    }
    assert_eq!(protection.score(at(1), flow, size, ONE), ms(5000));
    assert_eq!(protection.score(at(5001), flow, size, 0), Duration::ZERO);
}

/// A queue that was asked each period does what one does that nobody asked for a day.
#[test]
fn a_long_silence_is_made_up_for_at_once() {
    let (mut asked, mut left) = (dual(&Config::default()), dual(&Config::default()));
    for dual in [&mut asked, &mut left] {
        put(dual, at(0), Meta::ECT_0);
        let _ = dual.dequeue(at(90), &mut |_, _, _| ());
    }
    for period in 0..6000 {
        asked.controller.advance(at(16 * period), &asked.config, &asked.queues);
    }
    for dual in [&mut asked, &mut left] {
        dual.controller.advance(at(86_400_000), &dual.config, &dual.queues);
    }
    assert_eq!(asked.controller, left.controller);
    assert_eq!(left.controller.probability(), 0);
}

#[test]
fn what_cannot_work_is_refused() {
    let config = Config::default();
    let refused = |config: Config| config.check().expect_err("it is refused");
    assert_eq!(refused(Config { target: Duration::ZERO, ..config }), DualPi2Error::ZeroTarget);
    assert_eq!(refused(Config { period: Duration::ZERO, ..config }), DualPi2Error::ZeroPeriod);
    assert_eq!(refused(Config { beta: 65_537, ..config }), DualPi2Error::Gain(65_537));
    assert_eq!(refused(Config { coupling: 0, ..config }), DualPi2Error::Coupling(0));
    assert_eq!(
        refused(Config { classic_protection: Ratio::ONE, ..config }),
        DualPi2Error::ClassicProtection(Ratio::ONE)
    );
    assert_eq!(config.check(), Ok(()));
}
