use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};
use lastmile_units::Duration;

use super::*;
use crate::DropReason;
use crate::sched::tree::{Class, Rule};
use crate::spec::Spec;
use crate::{Match, Overflow};

const START: Instant = Instant::from_ps(1_000_000_000_000);

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).unwrap()
}

fn kbit(rate: u64) -> Share {
    Share::of(BitRate::from_kbit_per_s(rate))
}

fn up_to(ceil: u64, share: Share) -> Share {
    Share { ceil: Some(BitRate::from_kbit_per_s(ceil)), ..share }
}

fn at_priority(priority: u8, share: Share) -> Share {
    Share { priority, ..share }
}

fn in_turns_of(quantum: u64, share: Share) -> Share {
    Share { quantum: Some(WireBytes::new(quantum)), ..share }
}

fn inner(name: &str, parent: Option<&str>, share: Share) -> Class<Share> {
    Class { name: name.into(), parent: parent.map(Into::into), share, queue: None }
}

fn leaf(name: &str, parent: &str, share: Share) -> Class<Share> {
    Class { queue: Some(Spec::fifo(1000)), ..inner(name, Some(parent), share) }
}

/// Packets of flow n belong to the nth class.
fn by_number(classes: Vec<Class<Share>>) -> Config {
    let leaves = classes.iter().enumerate().filter(|(_, class)| class.queue.is_some());
    let rule = |(number, class): (usize, &Class<Share>)| Rule {
        matches: Match::Flow(FlowId::new(number as u32)),
        class: class.name.clone(),
    };
    let rules = leaves.map(rule).collect();
    Config { largest: ByteCount::new(1000), ..Config::new(Tree { classes, rules, default: None }) }
}

fn built(config: &Config) -> Htb<Meta> {
    let leaves = config.tree.classes.iter().filter(|class| class.queue.is_some());
    let fifo = |_| -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(1000), Overflow::Tail)) };
    Htb::new(config, leaves.map(fifo).collect(), &Environment::new(plain())).unwrap()
}

fn packet(class: u32, ip_len: u16) -> Meta {
    Meta { flow: FlowId::new(class), ip_len, ..Meta::default() }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

/// kbit/s that each class gets in 100 s, when those of `backlogged` always have packets of 1000
/// bytes.
fn rates(config: &Config, backlogged: &[u32]) -> Vec<f64> {
    let mut htb = built(config);
    let mut bytes = vec![0; config.tree.classes.len()];
    for class in backlogged {
        htb.enqueue(START, packet(*class, 1000), &mut none);
        htb.enqueue(START, packet(*class, 1000), &mut none);
    }
    let end = START + Duration::from_s(100);
    while let Some(ready) = htb.next_ready(START)
        && ready < end
    {
        let now = ready.max(START);
        if let Some(sent) = htb.dequeue(now, &mut none) {
            bytes[sent.flow.index() as usize] += u64::from(sent.ip_len);
            htb.enqueue(now, sent, &mut none);
        }
    }
    bytes.iter().map(|bytes| *bytes as f64 * 8.0 / 100.0 / 1000.0).collect()
}

#[track_caller]
fn assert_rates(config: &Config, backlogged: &[u32], expected: &[f64]) {
    let rates = rates(config, backlogged);
    // A burst and a packet more in 100 s: 0.16 kbit/s, shared among all.
    let near = rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 0.5);
    assert!(near && rates.len() == expected.len(), "{rates:?}, expected {expected:?}");
}

#[test]
fn a_class_has_its_rate_and_borrows_unused_capacity_of_the_other() {
    let config = by_number(vec![
        inner("all", None, kbit(800)),
        leaf("a", "all", up_to(800, kbit(160))),
        leaf("b", "all", kbit(640)),
    ]);
    assert_rates(&config, &[1, 2], &[0.0, 160.0, 640.0]);
    assert_rates(&config, &[1], &[0.0, 800.0, 0.0]);
    assert_rates(&config, &[2], &[0.0, 0.0, 640.0]);
}

/// 800 less twice 80 are excess, and the more urgent class takes all of it up to its ceiling.
#[test]
fn the_more_urgent_class_is_offered_excess_first() {
    let tree = |ceil| {
        by_number(vec![
            inner("all", None, kbit(800)),
            leaf("later", "all", at_priority(1, up_to(800, kbit(80)))),
            leaf("first", "all", at_priority(0, up_to(ceil, kbit(80)))),
        ])
    };
    assert_rates(&tree(800), &[1, 2], &[0.0, 80.0, 720.0]);
    assert_rates(&tree(500), &[1, 2], &[0.0, 300.0, 500.0]);
}

#[test]
fn urgent_leaves_can_be_dequeued_alone() {
    let mut htb = built(&by_number(vec![
        inner("all", None, kbit(800)),
        leaf("later", "all", at_priority(1, up_to(800, kbit(400)))),
        leaf("first", "all", at_priority(0, up_to(800, kbit(400)))),
    ]));
    for class in [1, 2] {
        htb.enqueue(START, packet(class, 1000), &mut none);
    }
    let urgent = |htb: &mut Htb<Meta>| htb.dequeue_urgent(START, &mut none).map(|packet| packet.flow);
    assert_eq!(urgent(&mut htb), Some(FlowId::new(2)));
    assert_eq!((urgent(&mut htb), htb.backlog().packets), (None, PacketCount::new(1)));
    assert_eq!(htb.dequeue(START, &mut none).map(|packet| packet.flow), Some(FlowId::new(1)));
}

/// 640 of excess in turns of 1000 and 3000 bytes: 160 and 480. Also with quanta smaller than a
/// packet.
#[test]
fn excess_of_one_priority_is_shared_by_quanta() {
    for unit in [1000, 100] {
        let config = by_number(vec![
            inner("all", None, kbit(800)),
            leaf("a", "all", in_turns_of(unit, up_to(800, kbit(80)))),
            leaf("b", "all", in_turns_of(3 * unit, up_to(800, kbit(80)))),
        ]);
        assert_rates(&config, &[1, 2], &[0.0, 240.0, 560.0]);
    }
}

/// The unused capacity of a class goes to its sibling, before a cousin borrows it.
#[test]
fn excess_goes_to_siblings_before_cousins() {
    let config = by_number(vec![
        inner("all", None, kbit(800)),
        inner("us", Some("all"), up_to(800, kbit(600))),
        inner("them", Some("all"), up_to(800, kbit(200))),
        leaf("me", "us", up_to(800, kbit(100))),
        leaf("brother", "us", up_to(800, kbit(500))),
        leaf("cousin", "them", up_to(800, kbit(200))),
    ]);
    assert_rates(&config, &[3, 5], &[0.0, 0.0, 0.0, 600.0, 0.0, 200.0]);
    assert_rates(&config, &[3, 4, 5], &[0.0, 0.0, 0.0, 100.0, 500.0, 200.0]);
    // Both sides need more than the other leaves unused: 800 less 100 and 200 are in no family, but
    // "us" has 500 of it.
    assert_rates(&config, &[3], &[0.0, 0.0, 0.0, 800.0, 0.0, 0.0]);
}

/// 8 kbit/s are a byte a millisecond. A burst of 1000 lets one packet pass, and one more on credit.
/// The debt of 1000 is paid after 1 s; with hysteresis one more packet passes, and the debt is paid
/// after 2 s.
#[test]
fn a_class_sends_again_exactly_when_its_debt_is_paid() {
    let mut config = by_number(vec![inner("all", None, kbit(8)), leaf("a", "all", kbit(8))]);
    for (hysteresis, at_once) in [(false, 2), (true, 3)] {
        config.hysteresis = hysteresis;
        let mut htb = built(&config);
        for _ in 0..10 {
            htb.enqueue(START, packet(1, 1000), &mut none);
        }
        for _ in 0..at_once {
            assert!(htb.dequeue(START, &mut none).is_some());
        }
        assert_eq!(htb.dequeue(START, &mut none), None);
        let ready = START + Duration::from_s(at_once - 1);
        assert_eq!(htb.next_ready(START), Some(ready));
        assert_eq!(htb.dequeue(Instant::from_ps(ready.as_ps() - 1), &mut none), None);
        assert!(htb.dequeue(ready, &mut none).is_some());
    }
}

/// 8 kbit/s are a byte a millisecond: the debt of two packets of 1000 after a burst of 1000 is paid
/// after 1 s. With a tick of 300 ms the class is checked 1.2 s after the start, which is at a tick.
/// It then has 200 of its burst of 1000, sends one packet, owes 800, and is checked again after 2.1
/// s: ticks cost time, not rate.
#[test]
fn with_a_coarse_timer_a_class_sends_again_at_the_next_tick() {
    let mut config = by_number(vec![inner("all", None, kbit(8)), leaf("a", "all", kbit(8))]);
    config.timer = Duration::from_ms(300);
    let start = Instant::ZERO + Duration::from_ms(3000);
    let mut htb = built(&config);
    for _ in 0..10 {
        htb.enqueue(start, packet(1, 1000), &mut none);
    }
    let mut sent = Vec::new();
    for _ in 0..6 {
        let now = htb.next_ready(start).unwrap().max(start);
        let just_before = Instant::from_ps(now.as_ps() - 1);
        if now > start {
            assert_eq!(htb.dequeue(just_before, &mut none), None);
        }
        assert!(htb.dequeue(now, &mut none).is_some());
        sent.push((now - start).as_ms());
    }
    // Two at once, then when 1000, 2000, 3000 and 4000 ms have been paid.
    assert_eq!(sent, [0, 0, 1200, 2100, 3000, 4200]);
}

/// Sums over many ticks: no rate is lost as long as the burst holds the tokens of a tick.
#[test]
fn a_coarse_timer_costs_no_rate() {
    let mut config = by_number(vec![
        inner(
            "all",
            None,
            Share { burst: Some(WireBytes::new(2000)), cburst: Some(WireBytes::new(2000)), ..kbit(800) },
        ),
        leaf("a", "all", up_to(800, kbit(160))),
        leaf("b", "all", up_to(800, kbit(640))),
    ]);
    config.timer = Duration::from_ms(10);
    assert_rates(&config, &[1], &[0.0, 800.0, 0.0]);
    assert_rates(&config, &[1, 2], &[0.0, 160.0, 640.0]);
}

#[test]
fn unclassified_packets_go_first_and_unshaped_or_to_the_default() {
    let mut config = by_number(vec![inner("all", None, kbit(8)), leaf("a", "all", kbit(8))]);
    let sent = |config: &Config| -> Vec<u32> {
        let mut htb = built(config);
        for class in [1, 1, 7, 7, 7] {
            htb.enqueue(START, packet(class, 1000), &mut none);
        }
        std::iter::from_fn(|| htb.dequeue(START, &mut none)).map(|packet| packet.flow.index()).collect()
    };
    assert_eq!(sent(&config), [7, 7, 7, 1, 1]);
    config.tree.default = Some("a".into());
    assert_eq!(sent(&config), [1, 1]);
}

/// 1000 bytes of burst let two packets of 600 pass, and every class owes 200: 2 ms at 800 kbit/s,
/// 200 ms at 8 kbit/s. After 2 ms the root lends for the third packet, and the leaf still owes 198
/// of its own.
#[test]
fn counters_show_lenders_and_borrowers() {
    let config = by_number(vec![inner("all", None, kbit(800)), leaf("a", "all", up_to(800, kbit(8)))]);
    let mut htb = built(&config);
    for _ in 0..4 {
        htb.enqueue(START, packet(1, 600), &mut none);
    }
    assert!(htb.dequeue(START, &mut none).is_some());
    assert!(htb.dequeue(START, &mut none).is_some());
    let later = START + Duration::from_ms(2);
    assert_eq!(htb.next_ready(START), Some(later));
    assert!(htb.dequeue(later, &mut none).is_some());
    assert_eq!(htb.next_ready(later), Some(later + Duration::from_ms(6)));
    let mut counters = Vec::new();
    htb.counters(&mut |c| {
        if c.value > 0 && c.path.starts_with("classes") && c.kind == "htb" {
            counters.push(format!("{} {} {}", c.path, c.name, c.value));
        }
    });
    let expected = [
        "classes.0 sent_packets 3",
        "classes.0 sent_bytes 1800",
        "classes.0 sent_wire_bytes 1800",
        "classes.0 lent 1",
        "classes.0 overlimits 2",
        "classes.0 debt_bytes 600",
        "classes.0 ceil_debt_bytes 600",
        "classes.1 sent_packets 3",
        "classes.1 sent_bytes 1800",
        "classes.1 sent_wire_bytes 1800",
        "classes.1 lent 2",
        "classes.1 borrowed 1",
        "classes.1 overlimits 2",
        "classes.1 debt_bytes 198",
        "classes.1 ceil_debt_bytes 600",
    ];
    assert_eq!(counters, expected);
}

#[test]
fn a_configuration_that_htb_cannot_keep_is_refused() {
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config =
            by_number(vec![inner("all", None, kbit(800)), leaf("a", "all", kbit(300)), leaf("b", "all", kbit(500))]);
        assert_eq!(config.check(&plain()), Ok(()));
        change(&mut config);
        config.check(&plain()).unwrap_err().to_string()
    };
    let more = "class \"all\": the classes below it are guaranteed 801 kbit/s together, and it has 800 kbit/s";
    assert_eq!(refused(&|c| c.tree.classes[1].share = kbit(301)), more);
    let below = "class \"b\": a ceil of 400 kbit/s is below its rate of 500 kbit/s";
    assert_eq!(refused(&|c| c.tree.classes[2].share = up_to(400, kbit(500))), below);
    let small =
        "class \"a\": a burst of 999 wire bytes is smaller than the largest packet, which takes 1000 wire bytes";
    assert_eq!(refused(&|c| c.tree.classes[1].share.cburst = Some(WireBytes::new(999))), small);
    let quantum = "class \"a\": a quantum of zero: it would never have a turn";
    assert_eq!(refused(&|c| c.tree.classes[1].share.quantum = Some(WireBytes::ZERO)), quantum);
    let priority = "class \"b\": a priority of 8; it is from 0, the most urgent, to 7";
    assert_eq!(refused(&|c| c.tree.classes[2].share.priority = 8), priority);

    let config = by_number(vec![inner("all", None, kbit(800)), leaf("a", "all", kbit(300))]);
    assert_eq!(config.check_link(BitRate::from_kbit_per_s(800)), Ok(()));
    assert_eq!(
        config.check_link(BitRate::from_kbit_per_s(799)).unwrap_err().to_string(),
        "the classes on the link are guaranteed 800 kbit/s together, and the link has 799 kbit/s"
    );
}

/// tc: the rate in bytes a second over r2q, limited to 1000 to 200 000.
#[test]
fn the_default_quantum_is_that_of_tc() {
    for (kbit, bytes) in [(8, 1000), (800, 10_000), (100_000, 200_000)] {
        assert_eq!(quantum(BitRate::from_kbit_per_s(kbit), R2Q), bytes);
    }
    // 800 kbit/s are 100 000 bytes a second. An r2q of zero counts as 1.
    for (r2q, bytes) in [(5, 20_000), (1, 100_000), (0, 100_000)] {
        assert_eq!(quantum(BitRate::from_kbit_per_s(800), r2q), bytes);
    }
}

#[test]
fn values_at_their_limits_are_accepted() {
    let one_packet = Some(WireBytes::new(1000));
    let bursts = Share { burst: one_packet, cburst: one_packet, ..kbit(800) };
    for share in [at_priority(7, kbit(800)), up_to(800, kbit(800)), bursts] {
        let config = by_number(vec![inner("all", None, kbit(800)), leaf("a", "all", share)]);
        assert_eq!(config.check(&plain()), Ok(()));
    }
    let small = Share { burst: Some(WireBytes::new(999)), ..kbit(800) };
    assert!(by_number(vec![inner("all", None, kbit(800)), leaf("a", "all", small)]).check(&plain()).is_err());
}

/// One class, on the link.
fn alone(share: Share) -> Config {
    by_number(vec![Class { queue: Some(Spec::fifo(1000)), ..inner("a", None, share) }])
}

/// 8 kbit/s, packets of 1000: a burst of 3000 lets three pass and one on credit, if the burst of
/// the ceiling does too.
#[test]
fn the_smaller_burst_limits_packets_sent_at_once() {
    let at_once = |burst: Option<u64>, cburst: Option<u64>| {
        let share = Share { burst: burst.map(WireBytes::new), cburst: cburst.map(WireBytes::new), ..kbit(8) };
        let mut htb = built(&alone(share));
        for _ in 0..10 {
            htb.enqueue(START, packet(0, 1000), &mut none);
        }
        std::iter::from_fn(|| htb.dequeue(START, &mut none)).count()
    };
    assert_eq!(at_once(None, None), 2);
    assert_eq!(at_once(Some(3000), Some(3000)), 4);
    assert_eq!([at_once(Some(3000), None), at_once(None, Some(3000))], [2, 2]);
}

#[test]
fn unclassified_packets_are_limited_counted_and_ready() {
    let config = by_number(vec![inner("all", None, kbit(8)), leaf("a", "all", kbit(8))]);
    let mut htb = built(&Config { direct_limit: PacketCount::new(2), ..config });
    let mut dropped = Vec::new();
    for _ in 0..3 {
        htb.enqueue(START, packet(7, 500), &mut |_, packet: Meta, reason| dropped.push((packet.ip_len, reason)));
    }
    assert_eq!(dropped, [(500, DropReason::Tail)]);
    assert_eq!(htb.next_ready(START), Some(START));
    htb.enqueue(START, packet(1, 1000), &mut none);
    assert_eq!(htb.backlog(), Backlog { packets: PacketCount::new(3), bytes: ByteCount::new(2000) });
    assert_eq!(htb.dequeue(START, &mut none), Some(packet(7, 500)));
    let mut direct = None;
    htb.counters(&mut |counter| {
        if counter.name == "direct_packets" {
            direct = Some((counter.path.to_owned(), counter.value));
        }
    });
    assert_eq!(direct, Some((String::new(), 1)));
}

/// Both may send of their own. A packet of 500 leaves 500 of a turn of 1000, one more 0, and only
/// the third exceeds the quantum: the turn after that begins with 500. So one packet, then always
/// two.
#[test]
fn a_turn_ends_when_more_than_the_quantum_was_sent() {
    let wide = |share| Share { burst: Some(WireBytes::new(100_000)), cburst: Some(WireBytes::new(100_000)), ..share };
    let share = wide(in_turns_of(1000, kbit(400)));
    let mut htb =
        built(&by_number(vec![inner("all", None, wide(kbit(800))), leaf("a", "all", share), leaf("b", "all", share)]));
    for _ in 0..8 {
        for class in [1, 2] {
            htb.enqueue(START, packet(class, 500), &mut none);
        }
    }
    let order: Vec<u32> = (0..10).map(|_| htb.dequeue(START, &mut none).unwrap().flow.index()).collect();
    assert_eq!(order, [1, 2, 1, 1, 2, 2, 1, 1, 2, 2]);
}

/// With hysteresis three packets of 1000 depart at once, a debt of 2000. At 8 kbit/s that is paid
/// after 2 s. A debt of a burst, allowed while the class sends, does not allow it to begin again,
/// even after an empty queue.
#[test]
fn hysteresis_ends_when_the_class_may_not_send() {
    // Limited by its rate, and by its ceiling.
    let by_rate = alone(Share { cburst: Some(WireBytes::new(9000)), ..up_to(800, kbit(8)) });
    let by_ceil = alone(Share { burst: Some(WireBytes::new(9000)), ..kbit(8) });
    for config in [by_rate, by_ceil] {
        let mut htb = built(&Config { hysteresis: true, ..config });
        for _ in 0..3 {
            htb.enqueue(START, packet(0, 1000), &mut none);
            assert!(htb.dequeue(START, &mut none).is_some());
        }
        let (half, whole) = (START + Duration::from_s(1), START + Duration::from_s(2));
        htb.enqueue(half, packet(0, 1000), &mut none);
        assert_eq!(htb.next_ready(half), Some(whole));
        assert_eq!(htb.dequeue(half, &mut none), None);
        assert_eq!(overlimits(&htb), 1, "it was found to be over its limit once");
        assert!(htb.dequeue(whole, &mut none).is_some());
    }
}

fn overlimits(htb: &Htb<Meta>) -> u64 {
    let mut sum = 0;
    htb.counters(&mut |counter| sum += if counter.name == "overlimits" { counter.value } else { 0 });
    sum
}

/// A class on the link has no lender: out of tokens it is over its limit, whatever its ceiling.
#[test]
fn a_class_on_the_link_has_no_lender() {
    let mut htb = built(&alone(Share { cburst: Some(WireBytes::new(9000)), ..up_to(800, kbit(8)) }));
    for _ in 0..3 {
        htb.enqueue(START, packet(0, 1000), &mut none);
    }
    assert_eq!(std::iter::from_fn(|| htb.dequeue(START, &mut none)).count(), 2);
    assert_eq!(overlimits(&htb), 1);
}

#[test]
fn counters_come_in_the_order_of_the_configuration() {
    let htb = built(&by_number(vec![
        leaf("b", "all", kbit(300)),
        inner("all", None, kbit(800)),
        leaf("a", "all", kbit(300)),
    ]));
    let mut paths = Vec::new();
    htb.counters(&mut |counter| {
        if counter.kind == "htb" && counter.name == "lent" {
            paths.push(counter.path.to_owned());
        }
    });
    assert_eq!(paths, ["classes.0", "classes.1", "classes.2"]);
}
