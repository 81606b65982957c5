use lastmile_linklayer::preset;
use lastmile_packet::{FlowId, Meta};

use super::super::tree::{self, Rule};
use super::*;
use crate::Match;

fn kbit(rate: u64) -> BitRate {
    BitRate::from_kbit_per_s(rate)
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn line(rate: u64) -> Option<ServiceCurve> {
    Some(ServiceCurve::linear(kbit(rate)))
}

/// `rate` after `ms` with `first`, all in kbit/s.
fn curve(first: u64, ms: u64, rate: u64) -> Option<ServiceCurve> {
    Some(ServiceCurve::two_pieces(BitRate::from_bps(first * 1000), Duration::from_ms(ms), kbit(rate)))
}

/// A class of each name below the parent after the slash; a leaf has the flow of its number.
fn config(classes: &[(&str, Share)]) -> Config {
    let parts = |name: &str| {
        name.rsplit_once('/').map_or((None, name.to_owned()), |(above, name)| (Some(above.to_owned()), name.to_owned()))
    };
    let is_inner = |name: &str| classes.iter().any(|(other, _)| parts(other).0.as_deref() == Some(name));
    let class = |(name, share): &(&str, Share)| {
        let (parent, name) = parts(name);
        let queue = (!is_inner(&name)).then(|| Spec::fifo(10_000));
        tree::Class { name, parent, share: *share, queue }
    };
    let rule = |(number, (name, _)): (usize, &(&str, Share))| {
        let (_, name) = parts(name);
        (!is_inner(&name)).then(|| Rule { matches: Match::Flow(FlowId::new(number as u32)), class: name })
    };
    let rules = classes.iter().enumerate().filter_map(rule).collect();
    Config { tree: Tree { classes: classes.iter().map(class).collect(), rules, default: None } }
}

fn build(classes: &[(&str, Share)]) -> Node<Meta> {
    Spec::Hfsc(config(classes)).build(&preset::IP.link).expect("a tree that can be built")
}

fn put(scheduler: &mut Node<Meta>, now: Instant, class: u32, count: usize, ip_len: u16) {
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for _ in 0..count {
        let packet = Meta { flow: FlowId::new(class), ip_len, arrived: now, ..Meta::default() };
        scheduler.enqueue(now, packet, &mut none);
    }
}

/// Serves a line of `rate` from `now` on until nothing waits or `end`: the class of each packet, and when it has been
/// transmitted.
fn serve(scheduler: &mut Node<Meta>, rate: BitRate, now: Instant, end: Instant) -> Vec<(u32, Instant)> {
    let (mut now, mut sent) = (now, Vec::new());
    while let Some(ready) = scheduler.next_ready(now) {
        now = now.max(ready);
        if now >= end {
            break;
        }
        let packet = scheduler.dequeue(now, &mut |_, _, _| ()).expect("a packet at the promised time");
        now += rate.time_for(preset::IP.link.on_wire(packet.ip_bytes()));
        sent.push((packet.flow.index(), now));
    }
    sent
}

fn bytes_of(sent: &[(u32, Instant)], class: u32) -> usize {
    sent.iter().filter(|(of, _)| *of == class).count()
}

/// Figure 2 of the paper, in other numbers. Both classes are guaranteed 400 kbit/s, in which 1500 bytes take 30 ms.
/// Class 1 has a concave curve, 4 Mbit/s for 3 ms, so that its deadline is after 3 ms; class 2 is convex, and its
/// deadline is 30 ms after a pause of 20 ms. On 8 Mbit/s, with 1.5 ms a packet, the bulk of class 0 fills the rest.
#[test]
fn delay_does_not_depend_on_rate() {
    let rt = |real_time| Share { real_time, ..Share::default() };
    let bulk = Share { link_share: line(1000), ..Share::default() };
    let mut scheduler = build(&[("bulk", bulk), ("short", rt(curve(4000, 3, 400))), ("late", rt(curve(0, 20, 400)))]);
    put(&mut scheduler, ms(0), 0, 20, 1500);
    for class in [2, 1] {
        put(&mut scheduler, ms(0), class, 2, 1500);
    }
    let sent = serve(&mut scheduler, kbit(8000), ms(0), ms(100));
    let order: Vec<u32> = sent.iter().map(|(class, _)| *class).collect();
    // Both are eligible at once, and the earlier deadline goes first. The second packets are eligible when the curves
    // reach 1500 bytes: of class 1 at 3 ms, of the line of class 2 at 30 ms.
    assert_eq!(order[..4], [1, 2, 1, 0]);
    let second_late = sent.iter().filter(|(class, _)| *class == 2).nth(1).expect("two packets").1;
    assert_eq!(second_late, Instant::ZERO + Duration::from_us(31_500));
}

/// A leaf with nothing but a guarantee gets it, and no more: packet n of 1500 bytes is eligible when 1 Mbit/s have
/// carried n of them, which is each 12 ms.
#[test]
fn a_guarantee_is_met_exactly_and_not_exceeded() {
    let share = Share { real_time: line(1000), ..Share::default() };
    let mut scheduler = build(&[("call", share)]);
    put(&mut scheduler, ms(5), 0, 4, 1500);
    let mut times = Vec::new();
    let mut now = ms(5);
    while let Some(ready) = scheduler.next_ready(now) {
        now = now.max(ready);
        assert!(scheduler.dequeue(now, &mut |_, _, _| ()).is_some());
        times.push(now);
    }
    assert_eq!(times, [5, 17, 29, 41].map(ms));
}

/// 1 to 3 below "left", which has half of the link; the other half is right's. Then right ends, and left's children
/// have all in the same proportion.
#[test]
fn the_link_is_divided_by_the_tree() {
    let ls = |rate| Share { link_share: line(rate), ..Share::default() };
    let mut scheduler = build(&[("left", ls(100)), ("right", ls(100)), ("left/a", ls(1)), ("left/b", ls(3))]);
    for (class, count) in [(1, 100), (2, 400), (3, 400)] {
        put(&mut scheduler, ms(0), class, count, 1000);
    }
    let sent = serve(&mut scheduler, kbit(8000), ms(0), ms(400));
    let first = &sent[..200];
    assert!([(1, 100), (2, 25), (3, 75)].iter().all(|(class, count)| bytes_of(first, *class).abs_diff(*count) <= 1));
    let rest = &sent[200..400];
    assert!([(1, 0), (2, 50), (3, 150)].iter().all(|(class, count)| bytes_of(rest, *class).abs_diff(*count) <= 1));
}

/// Sizes differ: bytes are shared, not packets. 500 bytes against 1500 at equal weights.
#[test]
fn shares_are_of_bytes() {
    let ls = Share { link_share: line(100), ..Share::default() };
    let mut scheduler = build(&[("small", ls), ("large", ls)]);
    put(&mut scheduler, ms(0), 0, 300, 500);
    put(&mut scheduler, ms(0), 1, 100, 1500);
    let sent = serve(&mut scheduler, kbit(8000), ms(0), ms(100));
    assert!(bytes_of(&sent, 0).abs_diff(3 * bytes_of(&sent, 1)) <= 3, "{}", bytes_of(&sent, 0));
}

/// Class 0 has the link alone for a second, and is not punished for it: from then on each has every second packet. Nor
/// does class 1 gain by pauses: it comes back each 10 ms with one packet, and has no more than that.
#[test]
fn a_class_that_used_what_others_left_is_not_punished() {
    let ls = Share { link_share: line(100), ..Share::default() };
    let mut scheduler = build(&[("early", ls), ("late", ls)]);
    put(&mut scheduler, ms(0), 0, 3000, 1000);
    let alone = serve(&mut scheduler, kbit(8000), ms(0), ms(1000));
    assert_eq!(bytes_of(&alone, 0), 1000);
    put(&mut scheduler, ms(1000), 1, 100, 1000);
    let both = serve(&mut scheduler, kbit(8000), ms(1000), ms(1100));
    assert!(bytes_of(&both, 0).abs_diff(50) <= 1, "{}", bytes_of(&both, 0));
    let begins = both.iter().position(|(class, _)| *class == 1).expect("it is served");
    assert!(begins <= 2, "{begins}");
}

/// 1 Mbit/s at most: packets of 1500 bytes at 0, and then each 12 ms; next to it the other
/// class has the rest. A guarantee has no limit.
#[test]
fn an_upper_limit_holds_back_a_share_but_not_a_guarantee() {
    let limited = Share { link_share: line(1000), upper_limit: line(1000), ..Share::default() };
    let mut scheduler = build(&[("limited", limited)]);
    put(&mut scheduler, ms(0), 0, 4, 1500);
    let mut now = ms(0);
    let mut times = Vec::new();
    while let Some(ready) = scheduler.next_ready(now) {
        now = now.max(ready);
        assert!(scheduler.dequeue(now, &mut |_, _, _| ()).is_some());
        times.push(now);
    }
    assert_eq!(times, [0, 12, 24, 36].map(ms));

    let other = Share { link_share: line(1000), ..Share::default() };
    let mut scheduler = build(&[("limited", limited), ("other", other)]);
    for class in [0, 1] {
        put(&mut scheduler, ms(0), class, 2000, 1500);
    }
    let sent = serve(&mut scheduler, kbit(12_000), ms(0), ms(1200));
    assert!(bytes_of(&sent, 0).abs_diff(100) <= 1, "{}", bytes_of(&sent, 0));
    assert!(bytes_of(&sent, 1).abs_diff(1100) <= 1, "{}", bytes_of(&sent, 1));

    let guaranteed = Share { real_time: line(4000), ..limited };
    let mut scheduler = build(&[("limited", guaranteed), ("other", other)]);
    for class in [0, 1] {
        put(&mut scheduler, ms(0), class, 2000, 1500);
    }
    let sent = serve(&mut scheduler, kbit(12_000), ms(0), ms(1200));
    assert!(bytes_of(&sent, 0).abs_diff(400) <= 2, "{}", bytes_of(&sent, 0));
}

/// The limit of an inner class holds for its children together, and the line waits.
#[test]
fn an_upper_limit_holds_for_all_classes_below() {
    let ls = Share { link_share: line(100), ..Share::default() };
    let root = Share { upper_limit: line(1000), ..ls };
    let mut scheduler = build(&[("root", root), ("root/a", ls), ("root/b", ls)]);
    for class in [1, 2] {
        put(&mut scheduler, ms(0), class, 500, 1500);
    }
    let sent = serve(&mut scheduler, kbit(12_000), ms(0), ms(1200));
    assert!(sent.len().abs_diff(101) <= 1 && bytes_of(&sent, 1).abs_diff(50) <= 1, "{}", sent.len());
}

/// A packet without a rule goes to the default class, or to the last leaf.
#[test]
fn packets_without_a_rule_go_to_the_default_class() {
    let ls = Share { link_share: line(100), ..Share::default() };
    for (default, number) in [(None, 1), (Some("a".to_owned()), 0)] {
        let mut config = config(&[("a", ls), ("b", ls)]);
        config.tree.default = default;
        let mut scheduler: Node<Meta> = Spec::Hfsc(config).build(&preset::IP.link).expect("a tree");
        put(&mut scheduler, ms(0), 77, 1, 100);
        let sent = scheduler.dequeue(ms(0), &mut |_, _, _| ()).expect("a packet");
        assert_eq!(sent.class, Some(number));
    }
}

#[test]
fn counters_tell_the_criteria_apart() {
    let both = Share { real_time: line(1000), link_share: line(1000), ..Share::default() };
    let mut scheduler = build(&[("root", Share { link_share: line(1), ..Share::default() }), ("root/a", both)]);
    put(&mut scheduler, ms(0), 1, 3, 1500);
    while scheduler.dequeue(ms(0), &mut |_, _, _| ()).is_some() {}
    let mut seen = Vec::new();
    scheduler.counters(&mut |counter| {
        if counter.value > 0 && counter.kind == "hfsc" && counter.name != "sent_wire_bytes" {
            seen.push(format!("{} {} {}", counter.path, counter.name, counter.value));
        }
    });
    // One packet is eligible at 0; the others are shares.
    let of = |path| {
        [("sent_packets", 3), ("sent_bytes", 4500), ("sent_real_time", 1)]
            .map(|(name, value)| format!("{path} {name} {value}"))
    };
    assert_eq!(seen, [of("classes.0"), of("classes.1")].concat());
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let (rt, ls) =
        (Share { real_time: line(100), ..Share::default() }, Share { link_share: line(100), ..Share::default() });
    let refused = |classes: &[(&str, Share)]| config(classes).check().expect_err("it is refused").to_string();
    assert!(refused(&[("a", Share::default())]).contains("would never send"));
    assert!(refused(&[("a", rt), ("a/b", ls)]).contains("guarantee nothing"));
    assert!(refused(&[("a", Share::default()), ("a/b", ls)]).contains("no share (ls)"));
    assert!(refused(&[("a", Share { upper_limit: line(100), ..rt })]).contains("limits shares"));
    let empty = Share { real_time: curve(100, 0, 100), ..Share::default() };
    assert!(refused(&[("a", empty)]).contains("no time (d)"));
    assert_eq!(config(&[("a", ls), ("a/b", Share { upper_limit: line(1), ..ls })]).check(), Ok(()));
}

/// 600 and 400 kbit/s fill 1 Mbit/s; a first piece may exceed it if a convex curve makes room, and each end of a piece
/// counts: 2 Mbit/s for 10 ms are 20 000 bit, and the link has 10 000.
#[test]
fn guarantees_beyond_the_link_are_refused() {
    let check = |curves: &[Option<ServiceCurve>]| {
        let classes: Vec<(String, Share)> = (0..)
            .zip(curves)
            .map(|(number, real_time)| (format!("c{number}"), Share { real_time: *real_time, ..Share::default() }))
            .collect();
        let classes: Vec<(&str, Share)> = classes.iter().map(|(name, share)| (&**name, *share)).collect();
        config(&classes).check_link(kbit(1000)).map_err(|error| error.to_string())
    };
    assert_eq!(check(&[line(600), line(400)]), Ok(()));
    let refused = |curves: &[Option<ServiceCurve>]| check(curves).expect_err("it is refused");
    assert_eq!(
        refused(&[line(600), line(401)]),
        "the real-time curves ask for 1.001 Mbit/s together at first, and the link has 1 Mbit/s"
    );
    assert!(refused(&[curve(2000, 10, 100)]).contains("2 Mbit/s together at first"));
    // 900 kbit/s for 10 ms, and then a convex 200 next to it from 5 ms on: (9000 + 1000) bit by 10 ms are all right.
    assert_eq!(check(&[curve(900, 10, 500), curve(0, 5, 200)]), Ok(()));
    // From 5 ms on 900 and 400: 9000 + 2000 bit by 10 ms.
    assert!(refused(&[curve(900, 10, 500), curve(0, 5, 400)]).contains("1.1 Mbit/s together in the first 10 ms"));
    assert!(refused(&[curve(100, 10, 600), curve(0, 5, 500)]).contains("1.1 Mbit/s together in the long run"));
}
