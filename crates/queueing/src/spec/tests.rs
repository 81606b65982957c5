use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant, PacketCount, WireBytes};

use super::*;
use crate::Match;
use crate::ack::{clamp, handshakes, pacing, regenerator, sad};
use crate::classify::rules;
use crate::meter::{self, gcra, policer, tbf};
use crate::sched::tree::{self, Tree};
use crate::sched::{custom, htb, priority};

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn atm() -> LinkLayer {
    LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes")
}

fn sad(queue: Spec) -> Spec {
    Spec::Sad(Over {
        config: sad::Config { duplicates: sad::Duplicates::Keep, report: sad::Report::None, exempt: Match::Never },
        queue: Box::new(queue),
    })
}

fn tbf(burst: u64, queue: Spec) -> Spec {
    let (rate, burst, largest) = (BitRate::from_kbit_per_s(512), WireBytes::new(burst), ByteCount::new(1500));
    Spec::Tbf(Over {
        config: tbf::Config { rate, burst, peak: None, largest, catch_up: Duration::ZERO },
        queue: Box::new(queue),
    })
}

fn bucket(burst: u64) -> meter::Config {
    meter::Config::TokenBucket { rate: BitRate::from_kbit_per_s(512), burst: WireBytes::new(burst) }
}

fn rule(meter: meter::Config) -> policer::Rule {
    policer::Rule {
        matches: Match::Any,
        meter,
        coming: policer::Coming::Blind,
        largest: ByteCount::new(1500),
        conform: policer::Action::TRANSMIT,
        exceed: policer::Action::DROP,
        violate: policer::Action::DROP,
    }
}

fn class(matches: Match, queue: Spec) -> ClassSpec {
    ClassSpec { matches, queue }
}

fn refused(spec: &Spec, line: &LinkLayer) -> String {
    match spec.build::<Meta>(line) {
        Ok(_) => "nothing is wrong with it".into(),
        Err(error) => error.to_string(),
    }
}

fn regenerator(config: regenerator::Config, queue: Spec) -> Spec {
    Spec::AckRegenerator(Over { config, queue: Box::new(queue) })
}

#[test]
fn a_regenerator_that_could_not_work_is_refused() {
    use regenerator::{Config, Know, Release};
    let problem = |spec: Spec| spec.build::<Meta>(&plain()).map(|_| ()).map_err(|error| error.problem);
    assert_eq!(problem(regenerator(Config::default(), Spec::fifo(9))), Ok(()));
    let know = Know::Interpolate { stride: 0 };
    assert_eq!(problem(regenerator(Config { know, ..Config::default() }, Spec::fifo(9))), Err(Problem::ZeroStride));
    let hold = Duration::from_s(60);
    let release = Release::Paced { hold };
    let forgets = Err(Problem::ForgetsTooSoon { idle: hold, hold });
    assert_eq!(problem(regenerator(Config { release, ..Config::default() }, Spec::fifo(9))), forgets);
    let below = sad(regenerator(Config::default(), Spec::fifo(9)));
    assert_eq!(problem(below), Err(Problem::RegeneratorBelow));
    let above = regenerator(Config::default(), sad(Spec::fifo(9)));
    assert_eq!(problem(above), Ok(()));
}

#[test]
fn what_cannot_be_built_is_told_with_its_place() {
    let in_cells = Spec::Fifo(fifo::Config { limit: Limit::Cells(CellCount::new(100)), drop: Overflow::Tail });
    let no_cells = "a limit in cells, but this line sends no cells; give the limit in packets or bytes";
    assert_eq!(refused(&in_cells, &plain()), no_cells);
    assert!(in_cells.build::<Meta>(&atm()).is_ok());

    let classes = vec![class(Match::PureAck, Spec::fifo(10)), class(Match::Any, sad(in_cells))];
    let deep = tbf(2000, Spec::Priority(priority::Config { classes }));
    assert_eq!(refused(&deep, &plain()), format!("queue.classes.1.queue.queue: {no_cells}"));

    assert_eq!(refused(&sad(Spec::fifo(0)), &plain()), "queue: a limit of zero: no packet would ever pass");
    // 1508 bytes in 32 cells of 53.
    let small = "queue: a burst of 1500 wire bytes never lets the largest packet pass, which takes 1696 wire bytes";
    assert_eq!(refused(&sad(tbf(1500, Spec::fifo(10))), &atm()), small);
    assert_eq!(
        refused(&Spec::Priority(priority::Config { classes: vec![] }), &plain()),
        "0 classes; there must be from 1 to 16"
    );
    let many = Spec::Priority(priority::Config { classes: vec![class(Match::Any, Spec::fifo(1)); 17] });
    assert_eq!(refused(&many, &plain()), "17 classes; there must be from 1 to 16");
    let idle = custom::Class { class: class(Match::Any, Spec::fifo(1)), count: custom::Count::Bytes(WireBytes::ZERO) };
    let idle = Spec::Custom(custom::Config { classes: vec![idle], excess: custom::Excess::Carried });
    assert_eq!(refused(&idle, &plain()), "a count of zero: the queue would never send");
    let tree = |parent: Option<&str>, matches| Tree {
        classes: vec![tree::Class {
            name: "a".into(),
            parent: parent.map(Into::into),
            share: htb::Share::of(BitRate::from_kbit_per_s(512)),
            queue: Some(Spec::fifo(1)),
        }],
        rules: vec![tree::Rule { matches, class: "a".into() }],
        default: None,
    };
    let htb = |parent, matches| sad(Spec::Htb(htb::Config::new(tree(parent, matches))));
    assert!(htb(None, Match::Any).build::<Meta>(&plain()).is_ok());
    assert_eq!(refused(&htb(Some("b"), Match::Any), &plain()), "queue: class \"a\": its parent \"b\" is no class");
    assert_eq!(refused(&htb(None, Match::Dscp(64)), &plain()), "queue: a DSCP of 64; it is from 0 to 63");
    let dscp = Match::Not(Box::new(Match::All(vec![Match::Any, Match::Dscp(64)])));
    let odd = Spec::Priority(priority::Config { classes: vec![class(dscp, Spec::fifo(1))] });
    assert_eq!(refused(&odd, &plain()), "a DSCP of 64; it is from 0 to 63");
}

#[test]
fn policers_that_cannot_be_built_are_refused() {
    let over = |rules| Spec::Policer(Over { config: policer::Config { rules }, queue: Box::new(Spec::fifo(1)) });
    assert_eq!(refused(&over(vec![]), &plain()), "0 rules; there must be from 1 to 64");
    assert_eq!(refused(&over(vec![rule(bucket(1500)); 65]), &plain()), "65 rules; there must be from 1 to 64");
    // A packet that fits a burst of bytes does not fit one of cells: 1508 bytes in 32 cells of 53.
    assert!(over(vec![rule(bucket(1500))]).build::<Meta>(&plain()).is_ok());
    let never = "a burst of 1500 wire bytes never lets the largest packet conform, which takes 1696 wire bytes";
    assert_eq!(refused(&over(vec![rule(bucket(1500))]), &atm()), never);
    let exceed = policer::Action::mark(policer::Remark::Dscp(64));
    let marks = policer::Rule { exceed, ..rule(bucket(1500)) };
    assert_eq!(refused(&over(vec![marks]), &plain()), "a DSCP of 64; it is from 0 to 63");
    let gcra = gcra::Config { rate: BitRate::from_mbit_per_s(1), tolerance: Duration::from_s(1) };
    let cells = || over(vec![rule(meter::Config::Gcra(gcra))]);
    assert_eq!(refused(&cells(), &plain()), "a meter of cells, but this line sends no cells");
    assert!(cells().build::<Meta>(&atm()).is_ok());
}

#[test]
fn a_tree_has_a_greatest_depth() {
    let tree = |depth| (1..depth).fold(Spec::fifo(10), |below, _| sad(below));
    assert!(tree(Spec::MAX_DEPTH).build::<Meta>(&plain()).is_ok());
    assert!(refused(&tree(Spec::MAX_DEPTH + 1), &plain()).ends_with("more than 16 disciplines above one another"));
}

/// The whole tree at work: ACKs before data, one ACK of each flow, and every node says what it did.
#[test]
fn a_tree_does_what_it_says_and_tells_so() {
    let classes = vec![class(Match::PureAck, sad(Spec::fifo(10))), class(Match::Any, Spec::fifo(1))];
    let mut tree =
        Spec::Priority(priority::Config { classes }).build::<Meta>(&plain()).expect("nothing is wrong with it");
    let now = Instant::ZERO;
    let ack = |number| Meta {
        flow: FlowId::new(1),
        ack: SeqNumber::new(number),
        flags: TcpFlags::ACK,
        header_len: 40,
        ip_len: 40,
        ..Meta::default()
    };
    let data = Meta { flow: FlowId::new(2), ip_len: 1500, ..ack(0) };
    let mut dropped = 0;
    for packet in [data, data, ack(1), ack(2), ack(3)] {
        tree.enqueue(now, packet, &mut |_, _, _| dropped += 1);
    }
    let left: Vec<_> = std::iter::from_fn(|| tree.dequeue(now, &mut |_, _, _| dropped += 1)).collect();
    assert_eq!((left, dropped), (vec![Meta { class: Some(0), ..ack(3) }, Meta { class: Some(1), ..data }], 3));

    let mut told = Vec::new();
    tree.counters(&mut |c| {
        if c.value > 0 {
            told.push(format!("{} {} {} {}", c.path, c.kind, c.name, c.value));
        }
    });
    let expected = [
        "classes.0 priority sent_packets 1",
        "classes.0 priority sent_bytes 40",
        "classes.0.queue sad seen 3",
        "classes.0.queue sad dropped_ack_merged 2",
        "classes.0.queue sad rewritten 1",
        "classes.0.queue.queue fifo sent_packets 1",
        "classes.0.queue.queue fifo sent_bytes 40",
        "classes.1 priority sent_packets 1",
        "classes.1 priority sent_bytes 1500",
        "classes.1.queue fifo sent_packets 1",
        "classes.1.queue fifo sent_bytes 1500",
        "classes.1.queue fifo dropped_tail 1",
    ];
    assert_eq!(told, expected);
}

/// Where packets may be interrupted, the line asks the root of the tree for levels.
#[test]
fn what_lets_packets_through_as_they_come_tells_their_levels() {
    let two = || {
        let classes = vec![class(Match::PureAck, Spec::fifo(9)), class(Match::Any, Spec::fifo(9))];
        Box::new(Spec::Priority(priority::Config { classes }))
    };
    let target = clamp::Target::Window(ByteCount::new(10_000));
    let clamp = clamp::Config { target, mss: ByteCount::new(1460), exempt: Match::Never };
    let regenerator = regenerator::Config::default();
    let pacing =
        pacing::Config { rate: BitRate::from_mbit_per_s(1), max_hold: Duration::from_ms(100), exempt: Match::Never };
    let now = Instant::ZERO;
    let ack = Meta { flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() };
    let data = Meta { ip_len: 1500, ..ack };
    for tree in [
        *two(),
        Spec::Policer(Over { config: policer::Config { rules: vec![rule(bucket(10_000))] }, queue: two() }),
        Spec::WindowClamp(Over { config: clamp, queue: two() }),
        Spec::Witness(Over { config: handshakes::Config, queue: two() }),
        sad(*two()),
        Spec::AckRegenerator(Over { config: regenerator, queue: two() }),
        Spec::AckPacing(Over { config: pacing, queue: two() }),
        Spec::Rules(rules::Config { rules: Vec::new(), otherwise: 0, names: Vec::new(), queue: two() }),
    ] {
        let mut queue = tree.build::<Meta>(&plain()).expect("nothing is wrong with it");
        let mut drops = |_: Instant, _: Meta, reason| panic!("dropped: {reason:?}");
        let mut ready = Vec::new();
        for packet in [data, ack] {
            queue.enqueue(now, packet, &mut drops);
            ready.push(queue.level_ready(now));
        }
        assert_eq!(ready, [Some(1), Some(0)], "{tree:?}");
        assert_eq!(queue.standing(now), (queue.backlog(), Some(now)), "{tree:?}");
        for (packet, level) in [(ack, 0), (data, 1)] {
            let left = queue.dequeue(now, &mut drops).map(|packet| packet.ip_len);
            assert_eq!((left, queue.level_sent()), (Some(packet.ip_len), level), "{tree:?}");
        }
        for packet in [data, ack] {
            queue.enqueue(now, packet, &mut drops);
        }
        let urgent = [(); 2].map(|()| queue.dequeue_urgent(now, &mut drops).map(|packet| packet.ip_len));
        assert_eq!(urgent, [Some(40), None], "{tree:?}");
        assert_eq!(queue.dequeue(now, &mut drops).map(|packet| packet.ip_len), Some(1500), "{tree:?}");
    }
}

/// Each limit, quantum and time with which a managed or fair queue would do nothing, or not what it says.
#[test]
fn managed_and_fair_queues_that_could_not_work_are_refused() {
    use crate::aqm::{codel, pie};
    use crate::fair::{Among, FlowKeys, Per, fq_codel, fq_pie, sfq, wf2q_plus, wfq};
    let fine = fq_codel::Config::default();
    let (no_limit, no_quantum) = ("a limit of zero: no packet would ever pass", Problem::ZeroQuantum.to_string());
    let buckets = |count| FlowKeys::Buckets { count: std::num::NonZeroU32::new(count).expect("above zero"), seed: 1 };
    let refused = |spec: Spec| refused(&spec, &plain());
    let fq = |config| refused(Spec::FqCodel(config));
    assert_eq!(fq(fq_codel::Config { flows: buckets(Spec::MAX_BUCKETS), ..fine }), "nothing is wrong with it");
    assert_eq!(fq(fq_codel::Config { limit: PacketCount::ZERO, ..fine }), no_limit);
    assert_eq!(fq(fq_codel::Config { memory: ByteCount::ZERO, ..fine }), no_limit);
    assert_eq!(fq(fq_codel::Config { quantum: WireBytes::ZERO, ..fine }), no_quantum);
    let many = fq(fq_codel::Config { flows: buckets(Spec::MAX_BUCKETS + 1), ..fine });
    assert_eq!(many, Problem::Buckets(Spec::MAX_BUCKETS + 1).to_string());
    let times = "a target of 100 ms is not below the interval of 100 ms; RFC 8289 recommends 5 to 10 % of it";
    assert_eq!(fq(fq_codel::Config { target: fine.interval, ..fine }), times);
    assert_eq!(refused(Spec::Codel(codel::Config { target: fine.interval, ..codel::Config::default() })), times);
    let fine = fq_pie::Config::default();
    let fq = |config| refused(Spec::FqPie(config));
    assert_eq!(fq(fine), "nothing is wrong with it");
    assert_eq!(fq(fq_pie::Config { limit: PacketCount::ZERO, ..fine }), no_limit);
    assert_eq!(fq(fq_pie::Config { memory: ByteCount::ZERO, ..fine }), no_limit);
    assert_eq!(fq(fq_pie::Config { quantum: WireBytes::ZERO, ..fine }), no_quantum);
    assert_eq!(fq(fq_pie::Config { flows: buckets(Spec::MAX_BUCKETS + 1), ..fine }), many);
    let control = pie::Parameters { alpha: 33, ..fine.control };
    assert_eq!(fq(fq_pie::Config { control, ..fine }), "a gain of 33 sixteenths per second; it is at most 32");
    let fine = sfq::Config {
        flows: FlowKeys::Exact,
        per: Per::Flow,
        quantum: WireBytes::new(1500),
        perturb: Duration::ZERO,
        limit: PacketCount::new(100),
        depth: PacketCount::new(100),
        drop: Overflow::Tail,
    };
    let sfq = |config| refused(Spec::Sfq(config));
    assert_eq!(sfq(fine), "nothing is wrong with it");
    assert_eq!(sfq(sfq::Config { limit: PacketCount::ZERO, ..fine }), no_limit);
    assert_eq!(sfq(sfq::Config { depth: PacketCount::ZERO, ..fine }), no_limit);
    assert_eq!(sfq(sfq::Config { quantum: WireBytes::ZERO, ..fine }), no_quantum);
    let flows = |share, limit| Among::Flows { share, limit: PacketCount::new(limit), per: Per::Flow };
    assert_eq!(refused(Spec::Drr(flows(WireBytes::new(1), 1))), "nothing is wrong with it");
    assert_eq!(refused(Spec::Drr(flows(WireBytes::ZERO, 1))), no_quantum);
    assert_eq!(refused(Spec::Drr(flows(WireBytes::new(1), 0))), no_limit);
    let one = std::num::NonZeroU32::MIN;
    assert_eq!(
        refused(Spec::Wfq(wfq::Config(Among::Flows { share: one, limit: PacketCount::ZERO, per: Per::Flow }))),
        no_limit
    );
    assert_eq!(
        refused(Spec::Wf2qPlus(wf2q_plus::Config(Among::Flows {
            share: one,
            limit: PacketCount::ZERO,
            per: Per::Flow
        }))),
        no_limit
    );
    let class =
        |quantum| crate::fair::Class { class: class(Match::Any, Spec::fifo(1)), share: WireBytes::new(quantum) };
    assert_eq!(refused(Spec::Drr(Among::Classes(vec![class(1), class(0)]))), no_quantum);
    assert_eq!(refused(Spec::Drr(Among::Classes(vec![]))), "0 classes; there must be from 1 to 16");
}

/// A queue of 30 kB below regulators, shapers and rules: what results ask of the whole.
#[test]
fn a_queue_tells_its_limit_its_rate_and_whether_it_thins_acks() {
    let bytes = Limit::Bytes(ByteCount::new(30_000));
    let fifo = || Spec::Fifo(fifo::Config { limit: bytes, drop: Overflow::Tail });
    let rates = |queue: &Spec| queue.shapers().iter().map(|shaper| shaper.rate).min();
    let told = |queue: &Spec| (queue.limit(), rates(queue), queue.thins_acks());
    let rate = BitRate::from_kbit_per_s(512);
    assert_eq!(told(&fifo()), (Some(bytes), None, false));
    assert_eq!(told(&sad(fifo())), (Some(bytes), None, true));
    assert_eq!(told(&tbf(5_000, sad(fifo()))), (Some(bytes), Some(rate), true));
    let below =
        |queue: Spec| rules::Config { rules: Vec::new(), otherwise: 0, names: Vec::new(), queue: Box::new(queue) };
    assert_eq!(told(&Spec::Rules(below(tbf(5_000, fifo())))), (Some(bytes), Some(rate), false));
    let codel = Spec::Codel(crate::aqm::codel::Config { limit: bytes, ..Default::default() });
    assert_eq!(told(&codel), (Some(bytes), None, false));
    // Several queues have several limits.
    let classes = vec![class(Match::PureAck, sad(fifo())), class(Match::Any, fifo())];
    assert_eq!(told(&Spec::Priority(priority::Config { classes })), (None, None, true));
    let cake = |link_layer| crate::cake::Config { bandwidth: Some(rate), link_layer, ..Default::default() };
    assert_eq!(told(&Spec::Cake(cake(None))), (None, Some(rate), false));
    let of_later_line = Spec::Cake(cake(Some(atm())));
    assert_eq!(told(&of_later_line), (None, Some(rate), false));
    assert_eq!(of_later_line.shapers()[0].layer, Some(atm()));
}

/// A token bucket lets its burst pass beyond its rate. Packets without a class pass an HTB unshaped.
#[test]
fn shapers_tell_what_passes_beyond_their_rate() {
    let shapers = tbf(5_000, tbf(4_000, Spec::fifo(9))).shapers();
    let bursts: Vec<_> = shapers.iter().map(|shaper| shaper.burst).collect();
    assert_eq!(bursts, [Some(WireBytes::new(5_000)), Some(WireBytes::new(4_000))]);
    let leaf = |default: Option<&str>| {
        let class = tree::Class {
            name: "only".into(),
            parent: None,
            share: htb::Share::of(BitRate::from_kbit_per_s(100)),
            queue: Some(Spec::fifo(9)),
        };
        let tree = Tree { classes: vec![class], rules: Vec::new(), default: default.map(Into::into) };
        Spec::Htb(htb::Config::new(tree))
    };
    let rates = |queue: &Spec| queue.shapers().iter().map(|shaper| shaper.rate.as_bps()).collect::<Vec<_>>();
    assert_eq!((rates(&leaf(Some("only"))), rates(&leaf(None))), (vec![100_000], vec![]));
    // A class without a parent has nobody to borrow from.
    let Spec::Htb(mut config) = leaf(Some("only")) else { panic!("HTB") };
    config.tree.classes[0].share.ceil = Some(BitRate::from_kbit_per_s(500));
    assert_eq!(rates(&Spec::Htb(config.clone())), [100_000]);
    assert!(config.set_rate(BitRate::from_kbit_per_s(300)));
    assert_eq!(rates(&Spec::Htb(config)), [300_000]);
}
