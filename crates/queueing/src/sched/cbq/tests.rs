use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};
use lastmile_units::{Duration, PacketCount, Serialiser};

use super::*;
use crate::sched::tree::{Class, Rule};
use crate::spec::Spec;
use crate::{DropReason, Fifo, Match, Overflow};

const LINK: BitRate = BitRate::from_kbit_per_s(800);

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).unwrap()
}

fn percent(share: u32) -> Share {
    Share::of(Portion::Share(Ratio::from_percent(share).unwrap()))
}

fn bounded(share: Share) -> Share {
    Share { borrow: false, ..share }
}

fn isolated(share: Share) -> Share {
    Share { isolated: true, ..share }
}

fn at_priority(priority: u8, share: Share) -> Share {
    Share { priority, ..share }
}

fn leaf(name: &str, parent: Option<&str>, share: Share) -> Class<Share> {
    Class { name: name.into(), parent: parent.map(Into::into), share, queue: Some(Spec::fifo(1000)) }
}

fn inner(name: &str, parent: Option<&str>, share: Share) -> Class<Share> {
    Class { queue: None, ..leaf(name, parent, share) }
}

/// Packets of flow n belong to the nth class.
fn by_number(classes: Vec<Class<Share>>) -> Config {
    let leaves = classes.iter().enumerate().filter(|(_, class)| class.queue.is_some());
    let rule = |(number, class): (usize, &Class<Share>)| Rule {
        matches: Match::Flow(FlowId::new(number as u32)),
        class: class.name.clone(),
    };
    let rules = leaves.map(rule).collect();
    Config { largest: ByteCount::new(1000), ..Config::new(Tree { classes, rules, default: None }, LINK) }
}

fn none(_: Instant, packet: Meta, reason: DropReason) {
    panic!("{packet:?} dropped: {reason:?}");
}

/// Per cent of the link that each class gets in 100 s, when those of `backlogged` always have
/// packets of 1000 bytes.
fn shares(config: &Config, backlogged: &[u32]) -> Vec<f64> {
    let leaves = config.tree.classes.iter().filter(|class| class.queue.is_some());
    let fifo = |_| -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(1000), Overflow::Tail)) };
    let mut cbq = Cbq::new(config, leaves.map(fifo).collect(), &Environment::new(plain())).unwrap();
    let mut bytes = vec![0; config.tree.classes.len()];
    for class in backlogged {
        for _ in 0..2 {
            let packet = Meta { flow: FlowId::new(*class), ip_len: 1000, ..Meta::default() };
            cbq.enqueue(Instant::ZERO, packet, &mut none);
        }
    }
    let mut line = Serialiser::new(LINK);
    let mut now = Instant::ZERO;
    while now < Instant::ZERO + Duration::from_s(100) {
        if let Some(sent) = cbq.dequeue(now, &mut none) {
            bytes[sent.flow.index() as usize] += u64::from(sent.ip_len);
            cbq.enqueue(now, sent, &mut none);
            now += line.advance(WireBytes::new(u64::from(sent.ip_len)));
        } else {
            now = cbq.next_ready(now).expect("the backlog is not empty");
        }
    }
    // 10 000 bytes are 0.1 % of 100 s at 800 kbit/s.
    bytes.iter().map(|bytes| *bytes as f64 / 100_000.0).collect()
}

#[track_caller]
fn assert_shares(config: &Config, backlogged: &[u32], expected: &[f64]) {
    let shares = shares(config, backlogged);
    // A burst of 20 packets is 0.2 %.
    let near = shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() <= 0.25);
    assert!(near && shares.len() == expected.len(), "{shares:?}, expected {expected:?}");
}

/// Kalyanaraman and others: data has a share G of the upstream, ACKs the rest, and neither gets
/// more.
#[test]
fn a_bounded_class_has_its_share_and_no_more() {
    let config = by_number(vec![leaf("data", None, bounded(percent(40))), leaf("acks", None, bounded(percent(60)))]);
    assert_shares(&config, &[0, 1], &[40.0, 60.0]);
    assert_shares(&config, &[0], &[40.0, 0.0]);
    assert_shares(&config, &[1], &[0.0, 60.0]);
}

#[test]
fn a_class_that_borrows_uses_unused_capacity_of_the_other() {
    let config = by_number(vec![leaf("data", None, percent(40)), leaf("acks", None, bounded(percent(60)))]);
    assert_shares(&config, &[0, 1], &[40.0, 60.0]);
    assert_shares(&config, &[0], &[100.0, 0.0]);
}

/// 30 % are unallocated: the more urgent borrower gets all of it, or both share it by their shares.
#[test]
fn borrowing_follows_priority_and_then_shares() {
    let tree = |priority| {
        by_number(vec![
            leaf("a", None, at_priority(1, percent(20))),
            leaf("b", None, at_priority(priority, percent(50))),
        ])
    };
    assert_shares(&tree(0), &[0, 1], &[20.0, 80.0]);
    assert_shares(&tree(1), &[0, 1], &[20.0 + 30.0 * 2.0 / 7.0, 50.0 + 30.0 * 5.0 / 7.0]);
}

/// No other class uses what an isolated class leaves unused, and the isolated class may still
/// borrow.
#[test]
fn unused_capacity_of_an_isolated_class_is_lost() {
    let config = by_number(vec![
        leaf("alone", None, isolated(percent(30))),
        leaf("rest", None, percent(50)),
        leaf("other", None, percent(20)),
    ]);
    assert_shares(&config, &[1], &[0.0, 70.0, 0.0]);
    assert_shares(&config, &[0], &[100.0, 0.0, 0.0]);
    assert_shares(&config, &[0, 1, 2], &[30.0, 50.0, 20.0]);
}

/// Floyd and Van Jacobson, figure 1, reduced: the unused capacity of one class of an agency goes to
/// that agency first.
#[test]
fn unused_capacity_goes_to_siblings_first() {
    let config = by_number(vec![
        inner("us", None, percent(60)),
        leaf("mail", Some("us"), percent(20)),
        leaf("web", Some("us"), percent(40)),
        leaf("them", None, percent(40)),
    ]);
    assert_shares(&config, &[1, 3], &[0.0, 60.0, 0.0, 40.0]);
    assert_shares(&config, &[1, 2, 3], &[0.0, 20.0, 40.0, 40.0]);
}

/// A bounded family limits its members to its share, whatever they borrow from each other.
#[test]
fn a_bounded_family_stays_within_its_share() {
    let config = by_number(vec![
        inner("us", None, bounded(percent(60))),
        leaf("mail", Some("us"), percent(20)),
        leaf("web", Some("us"), bounded(isolated(percent(30)))),
        leaf("them", None, percent(40)),
    ]);
    assert_shares(&config, &[1], &[0.0, 30.0, 0.0, 0.0]);
    assert_shares(&config, &[1, 2], &[0.0, 30.0, 30.0, 0.0]);
}

#[test]
fn shares_beyond_the_available_rate_are_refused() {
    let refused = |classes| by_number(classes).check(&plain()).unwrap_err().to_string();
    let over = vec![leaf("a", None, percent(60)), leaf("b", None, percent(41))];
    let link = "the classes on the link are guaranteed 808 kbit/s together, and the link has 800 kbit/s";
    assert_eq!(refused(over), link);
    let over = vec![inner("a", None, percent(10)), leaf("b", Some("a"), Share::of(Portion::Rate(LINK)))];
    let class = "class \"a\": the classes below it are guaranteed 800 kbit/s together, and it has 80 kbit/s";
    assert_eq!(refused(over), class);
    assert_eq!(refused(vec![leaf("a", None, percent(0))]), "class \"a\": its share is less than a bit per second");
    let burst = Share { burst: Some(WireBytes::new(999)), ..percent(10) };
    let small =
        "class \"a\": a burst of 999 wire bytes is smaller than the largest packet, which takes 1000 wire bytes";
    assert_eq!(refused(vec![leaf("a", None, burst)]), small);
    let priority = "class \"a\": a priority of 8; it is from 0, the most urgent, to 7";
    assert_eq!(refused(vec![leaf("a", None, at_priority(8, percent(10)))]), priority);
}

/// Packets of 1000 bytes that a bounded class of this burst sends at once.
fn at_once(burst: Option<u64>) -> usize {
    let config = by_number(vec![leaf("a", None, Share { burst: burst.map(WireBytes::new), ..bounded(percent(10)) })]);
    let fifo: Node<Meta> = Box::new(Fifo::in_packets(PacketCount::new(1000), Overflow::Tail));
    let mut cbq = Cbq::new(&config, vec![fifo], &Environment::new(plain())).unwrap();
    for _ in 0..100 {
        cbq.enqueue(Instant::ZERO, Meta { ip_len: 1000, ..Meta::default() }, &mut none);
    }
    std::iter::from_fn(|| cbq.dequeue(Instant::ZERO, &mut none)).count()
}

/// 20 packets by default (`maxburst` of tc-cbq), and one on credit.
#[test]
fn a_pause_earns_a_burst() {
    assert_eq!([at_once(None), at_once(Some(5000)), at_once(Some(1000))], [21, 6, 2]);
}

/// One member reserves the whole share of its family: the family has nothing to lend, not even to
/// that member.
#[test]
fn a_share_reserved_for_an_isolated_class_is_not_lent() {
    let family = |share| by_number(vec![inner("us", None, share), leaf("web", Some("us"), isolated(percent(60)))]);
    assert_shares(&family(bounded(percent(60))), &[1], &[0.0, 60.0]);
    assert_shares(&family(percent(60)), &[1], &[0.0, 100.0]);
}

/// 20 % are its own, 40 % it borrows from the family, which pays for them and has no more.
#[test]
fn an_isolated_class_that_borrows_is_charged_to_its_lender() {
    let config = by_number(vec![
        inner("us", None, bounded(percent(60))),
        leaf("web", Some("us"), isolated(percent(20))),
        leaf("mail", Some("us"), percent(40)),
    ]);
    // A burst of the class, and one of the family: 0.4 %.
    let alone = shares(&config, &[1])[1];
    assert!((59.9..60.5).contains(&alone), "{alone}");
    assert_shares(&config, &[1, 2], &[0.0, 20.0, 40.0]);
}

#[test]
fn packets_without_a_matching_rule_go_to_the_last_class() {
    let config = by_number(vec![leaf("a", None, percent(40)), leaf("b", None, percent(60))]);
    let fifo = || -> Node<Meta> { Box::new(Fifo::in_packets(PacketCount::new(10), Overflow::Tail)) };
    let mut cbq = Cbq::new(&config, vec![fifo(), fifo()], &Environment::new(plain())).unwrap();
    cbq.enqueue(Instant::ZERO, Meta { flow: FlowId::new(9), ip_len: 1000, ..Meta::default() }, &mut none);
    assert!(cbq.dequeue(Instant::ZERO, &mut none).is_some());
    let mut sent = Vec::new();
    cbq.counters(&mut |counter| {
        if counter.kind == "cbq" && counter.name == "sent_packets" {
            sent.push((counter.path.to_owned(), counter.value));
        }
    });
    assert_eq!(sent, [("classes.0".to_owned(), 0), ("classes.1".to_owned(), 1)]);
}
