//! Schedulers that share a link among classes: delay of urgent packets, and ceilings.

use std::num::NonZeroU32;

use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::cake::{self, Isolation};
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::fair::{self, Among, FlowKeys, Per, fq_codel, fq_pie, sfq, wf2q_plus, wfq};
use lastmile_queueing::line::{self, Line, TransmissionSink};
use lastmile_queueing::random::Stream;
use lastmile_queueing::sched::tree::{Class, Rule, Tree};
use lastmile_queueing::sched::{cbq, custom, htb, priority};
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_queueing::{Discipline as _, Match, Node, Overflow};
use lastmile_units::{BitRate, Duration, Instant, PacketCount, Ratio, Serialiser, WireBytes};
use proptest::prelude::*;

use crate::contract::atm;
use crate::traffic::Probe;

/// The upstream of an ADSL line.
const LINE: BitRate = BitRate::from_kbit_per_s(512);
const URGENT: u32 = 0;
/// 1500 bytes on the wire: 32 cells.
const LARGEST: WireBytes = WireBytes::new(32 * 53);

/// One packet of the load: time since the last, class, size.
type Arrival = (Duration, u32, u16);

/// Offers packets to a line with this queue, and returns the queueing delay of each packet sent.
fn waits(queue: &Spec, load: impl IntoIterator<Item = Arrival>) -> Vec<(u32, Duration)> {
    struct Waits(Vec<(u32, Duration)>);
    impl DropSink<Probe> for Waits {
        fn dropped(&mut self, _: Instant, packet: Probe, _: DropReason) {
            assert_ne!(packet.flow.index(), URGENT, "urgent packets have a queue with enough space");
        }
    }
    impl TransmissionSink<Probe> for Waits {
        fn transmitted(&mut self, _: Instant, _: Instant, waited: Duration, packet: &Probe) {
            self.0.push((packet.flow.index(), waited));
        }
    }
    let config = line::Config::new(Some(LINE), atm(), Duration::ZERO);
    let mut line = Line::new(&config, queue.build(&atm()).expect("a tree that can be built"), Stream::new(1, "any"));
    let (mut now, mut waits) = (Instant::ZERO, Waits(Vec::new()));
    for (gap, class, ip_len) in load {
        let next = now + gap;
        while let Some(due) = line.next_transmission().filter(|due| *due <= next) {
            line.transmit(due, &mut waits);
        }
        now = next;
        let packet =
            Meta { flow: FlowId::new(class), protocol: Protocol::Udp, ip_len, arrived: now, ..Meta::default() };
        line.enqueue(now, packet.into(), &mut waits);
        while line.take_arrival(now, &mut waits).is_some() {}
    }
    while let Some(due) = line.next_transmission() {
        line.transmit(due, &mut waits);
    }
    waits.0
}

fn rules(names: &[&str]) -> Vec<Rule> {
    let rule = |(number, name): (usize, &&str)| Rule {
        matches: Match::Flow(FlowId::new(number as u32)),
        class: (*name).into(),
    };
    names.iter().enumerate().map(rule).collect()
}

fn tree<S>(share: impl Fn(&str) -> S) -> Tree<S> {
    let class = |name: &str, parent: Option<&str>| Class {
        name: name.into(),
        parent: parent.map(Into::into),
        share: share(name),
        queue: parent.map(|_| Spec::fifo(50)),
    };
    let names = ["urgent", "web", "bulk"];
    let mut classes = vec![class("line", None)];
    classes.extend(names.iter().map(|name| class(name, Some("line"))));
    Tree { classes, rules: rules(&names), default: None }
}

/// `line` kbit/s in all; the urgent class is guaranteed `urgent`, and the others `rest` each.
fn htb(line: u64, urgent: u64, rest: u64, hysteresis: bool) -> Spec {
    let share = |name: &str| {
        let (rate, priority) = match name {
            "line" => (line, 0),
            "urgent" => (urgent, 0),
            "web" => (rest, 1),
            _ => (rest, 2),
        };
        let ceil = Some(BitRate::from_kbit_per_s(line));
        htb::Share { ceil, priority, ..htb::Share::of(BitRate::from_kbit_per_s(rate)) }
    };
    Spec::Htb(htb::Config { hysteresis, ..htb::Config::new(tree(share)) })
}

fn cbq() -> Spec {
    let share = |name: &str| {
        let (percent, priority) = match name {
            "line" => (100, 0),
            "urgent" => (20, 0),
            "web" => (50, 1),
            _ => (30, 1),
        };
        let share = Ratio::from_percent(percent).expect("a share");
        cbq::Share { priority, ..cbq::Share::of(cbq::Portion::Share(share)) }
    };
    Spec::Cbq(cbq::Config::new(tree(share), LINE))
}

fn priority() -> Spec {
    let class = |number| ClassSpec { matches: Match::Flow(FlowId::new(number)), queue: Spec::fifo(50) };
    Spec::Priority(priority::Config { classes: (0..3).map(class).collect() })
}

/// Packets of the lower classes at up to many times the rate of the line, and now and then a single
/// urgent one: at most 160 bytes (4 cells) in 50 ms, 34 kbit/s, well within a share of 20 %.
fn load() -> impl Strategy<Value = Vec<Arrival>> {
    let size = prop_oneof![Just(1500_u16), Just(40), 40..=1500_u16];
    let other = (0..20_000_u64, 1..3_u32, size).prop_map(|(us, class, size)| (Duration::from_us(us), class, size));
    let urgent = (40..=160_u16).prop_map(|size| (Duration::from_ms(50), URGENT, size));
    prop::collection::vec(prop_oneof![12 => other, 1 => urgent], 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

    /// For any load, urgent packets wait at most for the packet on the wire: 26.5 ms for 1500
    /// bytes.
    #[test]
    fn a_lone_urgent_packet_waits_for_one_packet_at_most(load in load()) {
        let disciplines = [
            priority(),
            cbq(),
            htb(512, 102, 205, false),
            htb(480, 102, 150, false),
            // Hysteresis does not delay a packet within its rate.
            htb(480, 102, 150, true),
        ];
        for discipline in disciplines {
            for (class, waited) in waits(&discipline, load.iter().copied()) {
                prop_assert!(class != URGENT || waited <= LINE.time_for(LARGEST), "{waited} in {discipline:?}");
            }
        }
    }

    /// In any interval a leaf sends at most its ceiling's earnings plus the ceiling's burst and one
    /// packet; with hysteresis a burst more.
    #[test]
    fn no_class_exceeds_its_ceiling_by_more_than_its_burst(
        load in prop::collection::vec((0..5_000_u64, 0..3_u32, 40..=1500_u16), 1..200),
        ceil in 60..500_u64,
        cburst in 1696..10_000_u64,
        hysteresis in any::<bool>(),
    ) {
        let (cburst, ceil) = (WireBytes::new(cburst), BitRate::from_kbit_per_s(ceil));
        let share = |name: &str| match name {
            "line" => htb::Share::of(LINE),
            _ => htb::Share { ceil: Some(ceil), cburst: Some(cburst), ..htb::Share::of(BitRate::from_kbit_per_s(60)) },
        };
        let spec = Spec::Htb(htb::Config { hysteresis, ..htb::Config::new(tree(share)) });
        let mut discipline = spec.build::<Probe>(&atm()).expect("a tree that can be built");
        let mut now = Instant::ZERO;
        let mut sent: [Vec<(Instant, WireBytes)>; 3] = Default::default();
        let mut ignored = |_, _, _| ();
        let mut load = load.into_iter().peekable();
        loop {
            let ready = discipline.next_ready(now).map(|ready| ready.max(now));
            let arrival = load.peek().map(|(us, ..)| now + Duration::from_us(*us));
            match (ready, arrival) {
                (None, None) => break,
                (Some(ready), arrival) if arrival.is_none_or(|arrival| ready <= arrival) => {
                    now = ready;
                    if let Some(packet) = discipline.dequeue(now, &mut ignored) {
                        let wire = atm().on_wire(packet.ip_bytes());
                        sent[packet.flow.index() as usize].push((now, wire));
                    }
                }
                _ => {
                    let (us, class, ip_len) = load.next().expect("an arrival was seen");
                    now += Duration::from_us(us);
                    let packet = Meta { flow: FlowId::new(class), ip_len, ..Meta::default() };
                    discipline.enqueue(now, packet.into(), &mut ignored);
                }
            }
        }
        let bursts = if hysteresis { 2 } else { 1 };
        for sent in &sent {
            for (first, &(start, _)) in sent.iter().enumerate() {
                let mut before_the_last = 0;
                for &(end, size) in &sent[first..] {
                    let span_ps = u128::from(end.since(start).as_ps() + 1);
                    let earned = u128::from(ceil.as_bps()) * span_ps / 1_000_000_000_000;
                    let most = bursts * u128::from(cburst.bits()) + earned;
                    prop_assert!(
                        u128::from(before_the_last) <= most,
                        "{before_the_last} bits by {end}, at most {most}"
                    );
                    before_the_last += size.bits();
                }
            }
        }
    }
}

/// A root at 90 % of the line, and negligible rates of the leaves: everything is borrowed from the
/// root. Urgent packets then wait until the root has paid for the previous packet, 1696 bytes at
/// 460.8 kbit/s: 29.4 ms. With hysteresis it pays for a burst more, when it pays.
#[test]
fn hysteresis_makes_those_who_borrow_wait_a_burst_longer() {
    let root = BitRate::from_bps(460_800).expect("a rate");
    let longest = |hysteresis| {
        let share = |name: &str| {
            let rate = if name == "line" { root } else { BitRate::from_kbit_per_s(1) };
            let priority = u8::from(name != "urgent");
            htb::Share { ceil: Some(root), priority, ..htb::Share::of(rate) }
        };
        let queue = Spec::Htb(htb::Config { hysteresis, ..htb::Config::new(tree(share)) });
        // Bursts of their own are spent in the first second; the next packet of their own rate is
        // due after 13.
        let bulk = (0..1000).map(|_| (Duration::from_ms(10), 2, 1500));
        let load = bulk.enumerate().flat_map(|(n, packet)| {
            let urgent = (n % 7 == 3).then_some((Duration::from_us(137), URGENT, 100));
            std::iter::once(packet).chain(urgent)
        });
        let waits = waits(&queue, load);
        waits
            .into_iter()
            .filter(|(class, _)| *class == URGENT)
            .skip(20)
            .map(|(_, waited)| waited)
            .max()
            .expect("urgent")
    };
    let (without, with) = (longest(false), longest(true));
    assert!(without <= root.time_for(LARGEST) + Duration::from_ps(1), "{without}");
    assert!(with > without, "{with}, without hysteresis {without}");
    assert!(with <= root.time_for(LARGEST) * 2 + Duration::from_ps(1), "{with}");
}

/// Sizes of packets.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    /// 40, 576 and 1500 bytes in turn, for any class.
    Mixed,
    /// Each class has one of the three.
    ByClass,
}

/// Shares of the bytes on the wire in 200 s, when the three classes always have packets, of 40, 576
/// and 1500 bytes.
fn shares(queue: &Spec, of: Sizes) -> [f64; 3] {
    const SIZES: [u16; 3] = [40, 576, 1500];
    let mut discipline = queue.build::<Probe>(&atm()).expect("a tree that can be built");
    let mut none = |_, _, reason: DropReason| panic!("dropped: {reason:?}");
    let mut sizes = SIZES.into_iter().cycle();
    let mut offer = |discipline: &mut Node<Probe>, now, class| {
        let ip_len = match of {
            Sizes::Mixed => sizes.next().expect("a cycle"),
            Sizes::ByClass => SIZES[class as usize],
        };
        discipline.enqueue(
            now,
            Meta { flow: FlowId::new(class), ip_len, arrived: now, ..Meta::default() }.into(),
            &mut none,
        );
    };
    let mut now = Instant::ZERO;
    for class in [0, 0, 1, 1, 2, 2] {
        offer(&mut discipline, now, class);
    }
    let (mut line, mut sent, mut total) = (Serialiser::new(LINE), [0; 3], 0);
    while now < Instant::ZERO + Duration::from_s(200) {
        match discipline.dequeue(now, &mut |_, _, reason| panic!("dropped: {reason:?}")) {
            Some(packet) => {
                let wire = atm().on_wire(packet.ip_bytes());
                sent[packet.flow.index() as usize] += wire.as_u64();
                total += wire.as_u64();
                offer(&mut discipline, now, packet.flow.index());
                now += line.advance(wire);
            }
            None => now = discipline.next_ready(now).expect("the backlog is not empty"),
        }
    }
    sent.map(|sent| sent as f64 / total as f64)
}

fn in_turns(unit: u64) -> Spec {
    let class = |number: u32| custom::Class {
        class: ClassSpec { matches: Match::Flow(FlowId::new(number)), queue: Spec::fifo(50) },
        count: custom::Count::Bytes(WireBytes::new(unit * [20, 50, 30][number as usize])),
    };
    Spec::Custom(custom::Config { classes: (0..3).map(class).collect(), excess: custom::Excess::Carried })
}

fn fair<S>(share: impl Fn(u32) -> S) -> Among<S> {
    let class = |number: u32| fair::Class {
        class: ClassSpec { matches: Match::Flow(FlowId::new(number)), queue: Spec::fifo(50) },
        share: share([20, 50, 30][number as usize]),
    };
    Among::Classes((0..3).map(class).collect())
}

/// By deficits, with quanta above and below the largest packet, and by tags.
fn fair_queueing() -> [Spec; 4] {
    let quanta = |unit| fair(|share| WireBytes::new(unit * u64::from(share)));
    let weights = || fair(|share| NonZeroU32::new(share).expect("a weight"));
    [
        Spec::Drr(quanta(100)),
        Spec::Drr(quanta(3)),
        Spec::Wfq(wfq::Config(weights())),
        Spec::Wf2qPlus(wf2q_plus::Config(weights())),
    ]
}

/// A fifth, a half and three tenths, by turns, by tokens, by both, and by fair queueing.
#[test]
fn classes_that_always_have_packets_get_their_shares() {
    let percent = |name: &str| match name {
        "line" => 100,
        "urgent" => 20,
        "web" => 50,
        _ => 30,
    };
    let share = |name: &str| Ratio::from_percent(percent(name)).expect("a share");
    let cbq = |borrow| {
        let share = |name: &str| cbq::Share { borrow, ..cbq::Share::of(cbq::Portion::Share(share(name))) };
        Spec::Cbq(cbq::Config::new(tree(share), LINE))
    };
    // In all 90 % of the line, so that the tree decides and not the line: all guaranteed, or nearly
    // all shared by quanta.
    let root = BitRate::from_bps(460_800).expect("a rate");
    let htb = |part: Ratio, quantum| {
        let share = |name: &str| {
            let rate = share(name).of_rate(root).expect("a rate");
            let rate = if name == "line" { rate } else { part.of_rate(rate).expect("a rate") };
            let quantum = Some(WireBytes::new(quantum * u64::from(percent(name))));
            htb::Share { ceil: Some(root), quantum, ..htb::Share::of(rate) }
        };
        Spec::Htb(htb::Config::new(tree(share)))
    };
    let tenth = Ratio::from_percent(10).expect("a tenth");
    let classful =
        [in_turns(1), in_turns(100), cbq(false), cbq(true), htb(Ratio::ONE, 100), htb(tenth, 100), htb(tenth, 3)];
    for queue in classful.into_iter().chain(fair_queueing()) {
        assert_shares(&queue, [0.2, 0.5, 0.3]);
    }
}

/// Within 1 %, for all sizes.
#[track_caller]
fn assert_shares(queue: &Spec, expected: [f64; 3]) {
    for of in [Sizes::Mixed, Sizes::ByClass] {
        for (share, expected) in shares(queue, of).into_iter().zip(expected) {
            assert!((share / expected - 1.0).abs() < 0.01, "{share}, expected {expected}, {of:?}, in {queue:?}");
        }
    }
}

/// A third for each flow: with queues of their own or in buckets, by quanta above and below the
/// largest packet, with and without a rate.
#[test]
fn flows_that_always_have_packets_get_equal_shares() {
    let (limit, one) = (PacketCount::new(100), NonZeroU32::MIN);
    let buckets = FlowKeys::Buckets { count: NonZeroU32::new(1024).expect("above zero"), seed: 1 };
    let mut specs = vec![
        Spec::Wfq(wfq::Config(Among::Flows { share: one, limit, per: Per::Flow })),
        Spec::Wf2qPlus(wf2q_plus::Config(Among::Flows { share: one, limit, per: Per::Flow })),
    ];
    for quantum in [LARGEST, WireBytes::new(300)] {
        specs.push(Spec::Drr(Among::Flows { share: quantum, limit, per: Per::Flow }));
        for flows in [FlowKeys::Exact, buckets] {
            let (perturb, depth, drop) = (Duration::ZERO, limit, Overflow::Tail);
            specs.push(Spec::Sfq(sfq::Config { flows, per: Per::Flow, quantum, perturb, limit, depth, drop }));
            specs.push(Spec::FqCodel(fq_codel::Config { flows, quantum, limit, ..fq_codel::Config::default() }));
            specs.push(Spec::FqPie(fq_pie::Config { flows, quantum, limit, ..fq_pie::Config::default() }));
        }
    }
    // A long round-trip time, so that two queued packets cause no drop.
    let rtt = Duration::from_s(10);
    for bandwidth in [None, BitRate::from_bps(460_800)] {
        let isolation = Isolation::Flows;
        specs.push(Spec::Cake(cake::Config { bandwidth, isolation, rtt, ..cake::Config::default() }));
    }
    for queue in &specs {
        assert_shares(queue, [1.0 / 3.0; 3]);
    }
}
