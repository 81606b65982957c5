mod properties;

use lastmile_packet::{
    FlowAddresses, FlowDirectory, FlowId, FlowKey, IpAddresses, Meta, Options, Protocol, SackBlock, SeqNumber, TcpFlags,
};
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount};

use proptest::prelude::*;

use std::sync::Arc;

use super::*;
use crate::classify::{Bound, Condition, End, Matcher as _, Pattern, Prefix};
use crate::fifo;
use crate::sched::priority;
use crate::spec::ClassSpec;
use crate::{Limit, Overflow};

/// Flow 0 is ssh from 10.0.1.1, flow 2 the web, flow 4 FTP control of 10.0.1.2, flow 6 its data
/// connection, flow 8 BitTorrent.
struct World;

const CONNECTIONS: [(&str, u16, &str, u16, &str, &str); 5] = [
    ("10.0.1.1", 40_000, "192.0.2.22", 22, "SSH-2.0-client", "SSH-2.0-server"),
    ("10.0.1.1", 40_001, "192.0.2.80", 80, "GET / HTTP/1.1", "HTTP/1.1 200 OK"),
    ("10.0.1.2", 40_002, "192.0.2.21", 21, "USER anonymous", "227 Entering Passive Mode (192,0,2,21,25,46)."),
    ("10.0.1.2", 40_003, "192.0.2.21", 6446, "", ""),
    ("10.0.1.3", 40_004, "198.51.100.7", 51_413, "\u{13}BitTorrent protocol", ""),
];

impl FlowDirectory for World {
    fn addresses(&self, flow: FlowId) -> FlowAddresses {
        let (source, source_port, destination, destination_port, ..) = CONNECTIONS[flow.index() as usize / 2];
        let ip = IpAddresses::new(source.parse().unwrap(), destination.parse().unwrap()).unwrap();
        let there = FlowAddresses { ip, source_port, destination_port };
        if flow.index().is_multiple_of(2) { there } else { there.reversed() }
    }

    fn first_payload(&self, flow: FlowId) -> &[u8] {
        let (.., first, answer) = CONNECTIONS[flow.index() as usize / 2];
        if flow.index().is_multiple_of(2) { first.as_bytes() } else { answer.as_bytes() }
    }
}

fn packet(flow: u32, flags: TcpFlags, payload: u16) -> Meta {
    Meta { flow: FlowId::new(flow), flags, header_len: 40, ip_len: 40 + payload, ..Meta::default() }
}

fn ack(flow: u32) -> Meta {
    packet(flow, TcpFlags::ACK, 0)
}

fn data(flow: u32) -> Meta {
    packet(flow, TcpFlags::ACK, 1000)
}

fn syn(flow: u32) -> Meta {
    packet(flow, TcpFlags::SYN, 0)
}

fn environment() -> Environment {
    Environment::default().with_flows(Arc::new(World))
}

/// Rules over four classes; packets of class n that come are counted by the class.
struct Bench {
    rules: Node<Meta>,
    now: Instant,
}

impl Bench {
    fn new(rules: &[(Match, u16)]) -> Self {
        Self::with(rules.iter().map(|(matches, class)| Rule { matches: matches.clone(), class: *class, last: false }))
    }

    fn with(rules: impl IntoIterator<Item = Rule>) -> Self {
        let class = |number| ClassSpec {
            matches: Match::Class(number),
            queue: Spec::Fifo(fifo::Config { limit: Limit::Packets(PacketCount::new(1)), drop: Overflow::Tail }),
        };
        let queue = Box::new(Spec::Priority(priority::Config { classes: (0..4).map(class).collect() }));
        let spec = Spec::Rules(Config { rules: rules.into_iter().collect(), otherwise: 3, names: Vec::new(), queue });
        Self { rules: spec.build_in(&environment()).unwrap(), now: Instant::ZERO }
    }

    /// The class that `packet` gets: that of which a packet leaves.
    fn class_of(&mut self, packet: Meta) -> usize {
        let before = self.sent();
        self.rules.enqueue(self.now, packet, &mut |_, _, _| panic!("every class has room for one"));
        assert!(self.rules.dequeue(self.now, &mut |_, _, _| {}).is_some());
        let after = self.sent();
        (0..4).find(|class| after[*class] > before[*class]).unwrap()
    }

    fn sent(&self) -> [u64; 4] {
        let mut sent = [0; 4];
        for (class, sent) in sent.iter_mut().enumerate() {
            *sent = self.counter(&format!("queue.classes.{class}"), "sent_packets");
        }
        sent
    }

    fn counter(&self, path: &str, name: &str) -> u64 {
        let mut found = None;
        self.rules.counters(&mut |counter| {
            if (counter.path, counter.name) == (path, name) {
                found = Some(counter.value);
            }
        });
        found.unwrap()
    }
}

#[test]
fn the_last_rule_that_matches_decides_unless_one_before_it_is_final() {
    let rule = |matches, class, last| Rule { matches, class, last };
    let mut bench = Bench::with([
        rule(Match::Protocol(Protocol::Tcp), 2, false),
        rule(Match::PureAck, 1, true),
        rule(Match::AtMostBytes(2000), 0, false),
    ]);
    assert_eq!(bench.class_of(data(0)), 0, "re-marked by the third");
    assert_eq!(bench.class_of(ack(0)), 1, "the third is never asked");
    assert_eq!(bench.class_of(Meta { protocol: Protocol::Udp, ip_len: 3000, ..data(0) }), 3, "what no rule matches");
    let hits = |index| {
        let path = format!("rules.{index}");
        (bench.counter(&path, "matched"), bench.counter(&path, "decided"))
    };
    assert_eq!([hits(0), hits(1), hits(2)], [(2, 0), (1, 1), (1, 1)]);
    assert_eq!(bench.counter("", "unmatched"), 1);
}

#[test]
fn addresses_and_ports_by_end() {
    let prefix = |text: &str, bits| Prefix::new(text.parse().unwrap(), bits).unwrap();
    let mut bench = Bench::new(&[
        (Match::Port(End::Either, 80..=80), 0),
        (Match::Port(End::Destination, 22..=22), 1),
        (Match::Address(End::Source, prefix("198.51.100.0", 24)), 2),
    ]);
    assert_eq!([2, 3, 0, 1, 8, 9].map(|flow| bench.class_of(data(flow))), [0, 0, 1, 3, 3, 2]);
    assert!(prefix("2001:db8:1::", 33).contains("2001:db8:7fff::1".parse().unwrap()));
    assert!(!prefix("2001:db8:1::", 33).contains("2001:db8:8000::1".parse().unwrap()));
    assert!(prefix("0.0.0.0", 0).contains("203.0.113.9".parse().unwrap()));
    assert!(!prefix("0.0.0.0", 0).contains("::1".parse().unwrap()), "another family");
    assert_eq!(Prefix::new("10.0.0.0".parse().unwrap(), 33), None);
    assert_eq!(prefix("10.1.2.3", 8).to_string(), "10.0.0.0/8");
}

#[test]
fn code_points_flags_lengths_and_sack() {
    let flags = Match::TcpFlagsOf { set: TcpFlags::SYN, of: TcpFlags::SYN.with(TcpFlags::ACK) };
    let mut bench = Bench::new(&[
        (Match::TrafficClass { value: 0x10, mask: 0x1C }, 0),
        (flags, 1),
        (Match::All(vec![Match::AtLeastBytes(500), Match::AtMostBytes(900)]), 2),
        (Match::SackAck, 0),
    ]);
    // Low delay (RFC 1349) with a precedence of 6 and an ECN field of ECT(0) is low delay all the same.
    assert_eq!(bench.class_of(Meta { traffic_class: 0b1101_0010, ..ack(0) }), 0);
    assert_eq!(bench.class_of(Meta { traffic_class: 0b1101_1010, ..ack(0) }), 3);
    assert_eq!(bench.class_of(syn(0)), 1);
    assert_eq!(bench.class_of(packet(1, TcpFlags::SYN.with(TcpFlags::ACK), 0)), 3);
    assert_eq!([499, 500, 900, 901].map(|len| bench.class_of(packet(0, TcpFlags::ACK, len - 40))), [3, 2, 2, 3]);
    let block = SackBlock { left: SeqNumber::new(10), right: SeqNumber::new(20) };
    let mut sack = Meta { ip_len: 52, header_len: 52, ..ack(0) };
    sack.set_options(Options::NONE.with_sack(&[block]));
    assert_eq!(bench.class_of(sack), 0);
    assert_eq!(bench.class_of(Meta { protocol: Protocol::Udp, ..syn(0) }), 3, "UDP has no flags");
}

/// Segments of 1040 bytes: the third brings a connection to 3120 bytes. Its second direction counts with the first.
#[test]
fn a_connection_is_known_by_its_bytes_and_by_its_rate() {
    let mut bench = Bench::new(&[
        (Match::ConnectionBytes(Bound::Below, ByteCount::new(3000)), 0),
        (Match::ConnectionRate(Bound::Above, BitRate::from_bps(8 * 2000).unwrap()), 1),
    ]);
    assert_eq!([0, 1, 0, 2].map(|flow| bench.class_of(data(flow))), [0, 0, 3, 0]);
    // 3120 bytes came in the first second; none in the second.
    bench.now += Duration::from_ms(1500);
    assert_eq!(bench.class_of(data(0)), 1);
    bench.now += Duration::from_ms(1000);
    assert_eq!(bench.class_of(data(0)), 3, "1040 bytes in the last whole second are below 2000");
    bench.now += Duration::from_s(5);
    assert_eq!(bench.class_of(data(0)), 3);
}

/// Five at once and then one each 200 ms, for each host on its own.
#[test]
fn new_connections_are_counted_for_each_host() {
    let limit = Match::NewConnections { bound: Bound::Below, count: 5, per: Duration::from_s(1) };
    // The bucket comes last in spite of its place: what is no SYN to port 80 takes nothing from it.
    let mut bench = Bench::new(&[(Match::All(vec![limit, Match::Port(End::Destination, 80..=80)]), 0)]);
    for _ in 0..9 {
        assert_eq!((bench.class_of(syn(0)), bench.class_of(ack(2))), (3, 3));
    }
    let six: Vec<usize> = (0..6).map(|_| bench.class_of(syn(2))).collect();
    assert_eq!(six, [0, 0, 0, 0, 0, 3]);
    bench.now += Duration::from_ms(199);
    assert_eq!(bench.class_of(syn(2)), 3);
    bench.now += Duration::from_ms(1);
    assert_eq!((bench.class_of(syn(2)), bench.class_of(syn(2))), (0, 3));

    let above = Match::NewConnections { bound: Bound::Above, count: 2, per: Duration::from_s(60) };
    let mut bench = Bench::new(&[(above, 0)]);
    assert_eq!(
        [2, 0, 8, 2, 8].map(|flow| bench.class_of(syn(flow))),
        [3, 3, 3, 0, 3],
        "10.0.1.1 thrice, 10.0.1.3 twice"
    );
}

#[test]
fn first_payload_bytes_tell_what_a_connection_is_from_then_on() {
    let pattern = |text: &str, at| Match::FirstPayload(Pattern { bytes: text.into(), at });
    let mut bench = Bench::new(&[
        (pattern("BitTorrent protocol", Some(1)), 0),
        (pattern("HTTP/1.", Some(0)), 1),
        (pattern("HTTP/1.", None), 2),
    ]);
    assert_eq!(bench.class_of(syn(8)), 3, "nothing is known yet");
    assert_eq!((bench.class_of(data(8)), bench.class_of(ack(8)), bench.class_of(ack(9))), (0, 0, 0));
    // The answer of a simulated server is known without its packets; the request holds the text in the middle.
    assert_eq!((bench.class_of(syn(2)), bench.class_of(ack(2))), (3, 2));
    let mut bench = Bench::new(&[(pattern("HTTP/1.", Some(0)), 1)]);
    assert_eq!((bench.class_of(ack(2)), bench.class_of(data(0))), (1, 3));
}

/// 227 announces port 25 * 256 + 46 = 6446.
#[test]
fn ftp_data_is_found_through_its_control_connection() {
    let mut bench = Bench::new(&[(Match::FtpData, 0)]);
    assert_eq!(bench.class_of(syn(6)), 3, "not announced yet");
    let mut bench = Bench::new(&[(Match::FtpData, 0)]);
    assert_eq!((bench.class_of(ack(4)), bench.class_of(syn(6)), bench.class_of(data(7))), (3, 0, 0));
}

/// Rules below rules: the inner ones decide for what stands below them.
#[test]
fn each_list_of_rules_has_classes_of_its_own() {
    let class = |number, queue| ClassSpec { matches: Match::Class(number), queue };
    let rules = |matches, class, queue| {
        let queue = Box::new(queue);
        Spec::Rules(Config {
            rules: vec![Rule { matches, class, last: false }],
            otherwise: 0,
            names: Vec::new(),
            queue,
        })
    };
    let inner = Spec::Priority(priority::Config { classes: vec![class(0, Spec::fifo(1)), class(1, Spec::fifo(1))] });
    let inner = rules(Match::Any, 1, inner);
    let outer = Spec::Priority(priority::Config { classes: vec![class(1, Spec::fifo(1)), class(0, inner)] });
    let mut tree = rules(Match::PureAck, 1, outer).build_in::<Meta>(&environment()).unwrap();
    for packet in [data(0), ack(0)] {
        tree.enqueue(Instant::ZERO, packet, &mut |_, _, _| panic!("there is room"));
    }
    let left: Vec<Meta> = std::iter::from_fn(|| tree.dequeue(Instant::ZERO, &mut |_, _, _| {})).collect();
    assert_eq!(left, [ack(0), data(0)].map(|packet| Meta { class: Some(1), ..packet }));
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |matches: Match, count: usize| {
        let rule = Rule { matches, class: 0, last: false };
        let config =
            Config { rules: vec![rule; count], otherwise: 0, names: Vec::new(), queue: Box::new(Spec::fifo(1)) };
        Spec::Rules(config).build_in::<Meta>(&environment()).err().expect("it is refused").to_string()
    };
    let pattern = |bytes: Vec<u8>, at| Match::FirstPayload(Pattern { bytes, at });
    assert_eq!(refused(Match::Not(Box::new(Match::Dscp(64))), 1), "a DSCP of 64; it is from 0 to 63");
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let ports = Match::Port(End::Source, 90..=80);
    assert_eq!(refused(ports, 1), "ports from 90 to 80: the first is above the last");
    assert_eq!(refused(pattern(vec![], None), 1), "an empty pattern");
    let far = "a pattern that ends at byte 513; the first 512 bytes of a payload are looked at";
    assert_eq!(refused(pattern(vec![1; 3], Some(510)), 1), far);
    let many = Match::OneOf((0..65).map(|byte| pattern(vec![byte], None)).collect());
    assert_eq!(refused(many, 1), "65 patterns of first payload bytes; there are at most 64");
    let none = Match::NewConnections { bound: Bound::Above, count: 0, per: Duration::from_s(1) };
    assert_eq!(refused(none, 1), "new connections: from 1 to 1000000 in 1 ms to 1 h can be counted");
    assert_eq!(refused(Match::Any, 257), "257 rules; there are at most 256");
    let class = Match::All(vec![Match::PureAck, Match::Not(Box::new(Match::Class(2)))]);
    let why = "a rule that asks for the class 2, which rules assign: only queues below them may ask";
    assert_eq!(refused(class, 1), why);
}

/// RFC 9293, section 3.5: a SYN without ACK opens. Other packets take nothing from its bucket.
#[test]
fn only_a_syn_without_ack_opens_a_connection() {
    let limit = Match::NewConnections { bound: Bound::Below, count: 1, per: Duration::from_s(1) };
    let mut bench = Bench::new(&[(limit, 0)]);
    let others = [
        packet(0, TcpFlags::SYN.with(TcpFlags::ACK), 0),
        packet(0, TcpFlags::RST, 0),
        Meta { protocol: Protocol::Udp, ..syn(0) },
    ];
    assert_eq!(others.map(|other| bench.class_of(other)), [3; 3]);
    assert_eq!((bench.class_of(syn(0)), bench.class_of(syn(0))), (0, 3));
}

/// Two in a second: one is back after 500 ms, both after 1 s, and no more after 1.4 s.
#[test]
fn a_bucket_of_connections_holds_no_more_than_its_count() {
    let limit = Match::NewConnections { bound: Bound::Below, count: 2, per: Duration::from_s(1) };
    let mut bench = Bench::new(&[(limit, 0)]);
    assert_eq!(bench.class_of(syn(0)), 0);
    bench.now += Duration::from_ms(1400);
    assert_eq!([0; 3].map(|flow| bench.class_of(syn(flow))), [0, 0, 3]);
}

/// The server's own packet says where it waits, and what the client says is heard as well as what the server answers.
#[test]
fn both_ends_of_a_control_connection_are_heard() {
    let mut bench = Bench::new(&[(Match::FtpData, 0)]);
    assert_eq!((bench.class_of(data(5)), bench.class_of(syn(6))), (3, 0));
}

/// The request holds both texts, the answer the second at its beginning.
#[test]
fn each_direction_is_looked_at_and_each_pattern_remembered() {
    let pattern = |text: &str, at| Match::FirstPayload(Pattern { bytes: text.into(), at });
    let both = Match::All(vec![pattern("GET ", Some(0)), pattern("HTTP/1.", None)]);
    let mut bench = Bench::new(&[(both, 0)]);
    assert_eq!(bench.class_of(data(2)), 0);
    let mut bench = Bench::new(&[(pattern("HTTP/1.", Some(0)), 1)]);
    assert_eq!(bench.class_of(data(2)), 1);
}

/// 64 patterns, of which the first is there and the others are not: each has an answer of its own.
#[test]
fn as_many_patterns_as_there_may_be_are_told_apart() {
    let pattern = |text: String| Match::FirstPayload(Pattern { bytes: text.into_bytes(), at: None });
    let none = (1..64).map(|number| (pattern(format!("nothing {number}")), 1));
    let rules: Vec<_> = std::iter::once((pattern("GET".into()), 0)).chain(none).collect();
    assert_eq!(Bench::new(&rules).class_of(data(2)), 0);
}

/// Seconds count from the first packet of the connection: 40 bytes in the first, 1040 in the
/// second, none in the next two.
#[test]
fn the_seconds_of_a_connection_begin_with_its_first_packet() {
    let mut bench = Bench::new(&[(Match::ConnectionRate(Bound::Above, BitRate::from_bps(8 * 1000).unwrap()), 1)]);
    assert_eq!(bench.class_of(ack(0)), 3);
    bench.now += Duration::from_ms(1500);
    assert_eq!(bench.class_of(data(0)), 3);
    bench.now += Duration::from_ms(600);
    assert_eq!(bench.class_of(ack(0)), 1);
    bench.now += Duration::from_ms(2000);
    assert_eq!(bench.class_of(ack(0)), 3);
}

#[test]
fn a_list_has_256_rules_at_most() {
    let rules = |count| {
        let rule = Rule { matches: Match::Any, class: 0, last: false };
        check(&Config { rules: vec![rule; count], otherwise: 0, names: Vec::new(), queue: Box::new(Spec::fifo(1)) })
    };
    assert_eq!((rules(256), rules(257)), (Ok(()), Err(MatchError::Rules(257))));
}

/// By direction: rules that the connection of flow 0 leaves open, rules that a segment of data with
/// this TOS byte matches without evaluation, and rules that it may match.
fn kept(conditions: Vec<Match>, traffic_class: u8) -> [[Vec<usize>; 3]; 2] {
    let queue = crate::Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
    let rule = |matches| Rule { matches, class: 0, last: false };
    let rules: Vec<Rule> = conditions.into_iter().map(rule).collect();
    let mut rules: Rules<Meta, crate::Fifo<Meta>> = Rules::new(&rules, 1, &environment(), queue);
    [data(0), data(1)].map(|packet| {
        let packet = Meta { traffic_class, ..packet };
        for _ in 0..2 {
            rules.enqueue(Instant::ZERO, packet, &mut |_, _, _| {});
        }
        let mut found = None;
        let mut facts = rules.observer.observe(Instant::ZERO, &packet, &mut found);
        match *facts.connection.as_mut().unwrap().kept() {
            Kept::Open { open, last: Some((_, verdict)) } => {
                [open, verdict.matched, verdict.possible].map(Iterator::collect)
            }
            other => panic!("{other:?}"),
        }
    })
}

/// Flow 0 goes to port 22, flow 1 back.
#[test]
fn a_connection_keeps_the_verdict_of_ports_addresses_and_protocol() {
    let to_ssh = || Match::Port(End::Destination, 22..=22);
    let host = Match::Address(End::Source, Prefix::new("10.0.1.1".parse().unwrap(), 32).unwrap());
    let new = || Match::NewConnections { bound: Bound::Below, count: 1, per: Duration::from_s(1) };
    let udp = || Match::Protocol(Protocol::Udp);
    let conditions = vec![
        to_ssh(),
        Match::All(vec![to_ssh(), Match::PureAck]),
        host,
        Match::OneOf(vec![udp(), Match::PureAck]),
        Match::All(vec![new(), udp()]),
        Match::All(vec![Match::OneOf(vec![new()]), udp()]),
        Match::FtpData,
        Match::AtMostBytes(100),
        Match::All(vec![to_ssh(), Match::Dscp(46)]),
        Match::FirstPayload(Pattern { bytes: b"SSH".to_vec(), at: None }),
    ];
    // A bucket in an `All` is evaluated last; the one within counts before UDP is asked for.
    let there = [vec![0, 1, 2, 3, 5, 7, 8, 9], vec![0, 2, 8, 9], vec![0, 2, 7, 8, 9]];
    assert_eq!(kept(conditions, 46 << 2), [there, [vec![3, 5, 7, 9], vec![9], vec![7, 9]]]);
}

/// 46 is EF: a packet of another look is not decided as the last.
#[test]
fn a_verdict_holds_for_packets_of_its_look() {
    let mut bench = Bench::new(&[(Match::Port(End::Either, 22..=22), 0), (Match::Dscp(46), 1), (Match::PureAck, 2)]);
    let marked = |packet| Meta { traffic_class: 46 << 2, ..packet };
    let packets =
        [data(0), data(0), data(0), marked(data(0)), marked(data(0)), ack(0), data(0), marked(ack(1)), data(1)];
    assert_eq!(packets.map(|packet| bench.class_of(packet)), [0, 0, 0, 1, 1, 2, 0, 2, 0]);
}

/// The request shows its pattern with the third packet of its look.
#[test]
fn a_pattern_changes_the_verdict_of_a_look() {
    let mut tracker = super::super::tracker::Tracker::new(environment().hash_key);
    assert!(tracker.look_for(&Pattern { bytes: b"GET".to_vec(), at: None }).is_some());
    let mut direction = tracker.observe(Instant::ZERO, &syn(2), &key(2), &World);
    let look = Look::of(&syn(2));
    *direction.kept() = Kept::Open { open: RuleSet::default(), last: Some((look, Verdict::default())) };
    let mut direction = tracker.observe(Instant::ZERO, &data(2), &key(2), &World);
    assert!(matches!(direction.kept(), Kept::Open { last: None, .. }));
}

fn key(flow: u32) -> FlowKey {
    FlowKey { addresses: World.addresses(FlowId::new(flow)), protocol: 6 }
}

/// A connection that opens counts with whoever asks first: in the midst of a condition that is
/// before the code point, right in an `All` it is last, after what leaves no question.
#[test]
fn new_connections_are_counted_by_conditions_that_do_not_match() {
    let new = || Match::NewConnections { bound: Bound::Below, count: 1, per: Duration::from_s(10) };
    let midst = Match::All(vec![Match::OneOf(vec![new()]), Match::Dscp(1)]);
    let right = Match::All(vec![new(), Match::Dscp(1)]);
    let marked = Meta { traffic_class: 1 << 2, ..syn(2) };
    let mut bench = Bench::new(&[(midst, 0)]);
    assert_eq!([bench.class_of(syn(0)), bench.class_of(marked)], [3, 3]);
    let mut bench = Bench::new(&[(right, 0)]);
    assert_eq!([bench.class_of(syn(0)), bench.class_of(marked)], [3, 0]);
}
