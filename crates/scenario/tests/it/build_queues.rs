//! Queues and classes as the file has them.

use lastmile_linklayer::preset;
use lastmile_packet::Protocol;
use lastmile_queueing::ack::cake::{Mode, Rules};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{clamp, collapsing, filter, pacing, sad};
use lastmile_queueing::meter::policer::{Action, Coming, Remark, Rule, Then};
use lastmile_queueing::meter::{self, car, police, policer, tbf, trtcm};
use lastmile_queueing::sched::custom::{Count, Excess};
use lastmile_queueing::sched::{cbq, htb, priority, tree};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, ack, cake, fifo};
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, Ratio, WireBytes};

use crate::build::{demo, fifo_206_kb};
use crate::{LINE, parse};

/// A kind of queue over the FIFO of the file keeps the FIFO's limit.
#[test]
fn a_kind_of_queue_is_one_override_away() {
    let sad = Spec::Sad(Over {
        config: sad::Config { duplicates: Duplicates::Keep, report: Report::None, exempt: Match::Never },
        queue: Box::new(fifo_206_kb()),
    });
    let queue = |argument: &str| demo(&[argument]).access().unwrap().up.queue.clone();
    assert_eq!(queue("access.up.queue.kind=sad"), sad);
    let scenario = demo(&["access.up.queue.kind=sad"]);
    assert_eq!(scenario.network().links[scenario.access().unwrap().up_link].hop.queue, sad);
    let held = |limit: Limit| limit == Limit::Bytes(ByteCount::new(206_000));
    assert!(
        matches!(queue("access.up.queue.kind=ack-filter"), Spec::AckFilter(filter::Config { limit, .. }) if held(limit))
    );
    let collapsing = queue("access.up.queue.kind=ack-collapsing");
    assert!(
        matches!(collapsing, Spec::AckCollapsing(collapsing::Config { limit, exempt: Match::Never, .. }) if held(limit))
    );
    for (mode, expected) in [("normal", Mode::Normal), ("aggressive", Mode::Aggressive)] {
        let mode = format!("access.up.queue.mode={mode}");
        let cake = demo(&["access.up.queue.kind=cake-ack-filter", &mode]).access().unwrap().up.queue.clone();
        assert!(matches!(
            cake,
            Spec::CakeAckFilter(ack::cake::Config { limit, rules, .. })
                if held(limit) && rules == Rules { mode: expected, exempt: Match::Never }
        ));
    }
    let Spec::Priority(priority::Config { classes }) = queue("access.up.queue.kind=priority") else {
        panic!("a scheduler")
    };
    assert_eq!(classes.iter().map(|class| &class.matches).collect::<Vec<_>>(), [&Match::PureAck, &Match::Any]);
    assert!(classes.iter().all(|class| class.queue == fifo_206_kb()));
}

/// The policer of Phanse 2000, table 5.11, and what it says by default.
#[test]
fn a_policer_is_as_the_file_says() {
    let text = LINE.replace(
        "\"512 kbit/s\"",
        "\"512 kbit/s\", queue = { kind = \"policer\", match = { protocol = \"udp\" }, \
         meter = { kind = \"car\", rate = \"10 kbit/s\", burst = \"1250 wire bytes\", extended_burst = \"2500 wire \
         bytes\" }, \
         limit = \"20 packets\" }",
    );
    let car =
        car::Config { rate: BitRate::from_kbit_per_s(10), burst: WireBytes::new(1250), extended: WireBytes::new(2500) };
    let rule = Rule {
        matches: Match::Protocol(Protocol::Udp),
        meter: meter::Config::Car(car),
        coming: Coming::Blind,
        largest: ByteCount::new(1500),
        conform: Action::TRANSMIT,
        exceed: Action::DROP,
        violate: Action::DROP,
    };
    let expected = |rules| Spec::Policer(Over { config: policer::Config { rules }, queue: Box::new(Spec::fifo(20)) });
    assert_eq!(parse(&text).unwrap().access().unwrap().up.queue, expected(vec![rule.clone()]));

    let text = LINE.replace(
        "\"512 kbit/s\"",
        "\"512 kbit/s\", queue = { kind = \"policer\", limit = \"20 packets\", rules = [ \
         { meter = { kind = \"police\", rate = \"10 kbit/s\", burst = \"3000 wire bytes\" }, \
         exceed = \"set-dscp-continue\", exceed_dscp = 8 }, \
         { match = { dscp = 8 }, colors = \"clp\", exceed = \"set-clp-transmit\", \
         meter = { kind = \"trtcm\", rate = \"10 kbit/s\", burst = \"3000 wire bytes\", peak = \"20 kbit/s\", \
         peak_burst = \"4000 wire bytes\" } }] }",
    );
    let rate = BitRate::from_kbit_per_s(10);
    let burst = WireBytes::new(3000);
    let police = police::Config { rate, burst, peak: None, mtu: WireBytes::new(1500) };
    let first = Rule {
        matches: Match::Any,
        meter: meter::Config::Police(police),
        exceed: Action { mark: Some(Remark::Dscp(8)), then: Then::Continue },
        ..rule.clone()
    };
    let (pir, pbs) = (BitRate::from_kbit_per_s(20), WireBytes::new(4000));
    let second = Rule {
        matches: Match::Dscp(8),
        meter: meter::Config::TrTcm(trtcm::Config { pir, pbs, cir: rate, cbs: burst }),
        coming: Coming::CellLossPriority,
        exceed: Action::mark(Remark::Clp),
        ..rule
    };
    assert_eq!(parse(&text).unwrap().access().unwrap().up.queue, expected(vec![first, second]));
}

#[test]
fn acks_are_paced_and_windows_clamped_over_a_fifo_or_any_other_queue() {
    let up = |overrides: &[&str]| demo(overrides).access().unwrap().up.queue.clone();
    let pacing = up(&["access.up.queue.kind=ack-pacing", "access.up.queue.rate=1 Mbit/s"]);
    let config =
        pacing::Config { rate: BitRate::from_mbit_per_s(1), max_hold: Duration::from_ms(100), exempt: Match::Never };
    assert_eq!(pacing, Spec::AckPacing(Over { config, queue: Box::new(fifo_206_kb()) }));

    let clamp = up(&["access.up.queue.kind=window-clamp", "access.up.queue.window=20 kB"]);
    let target = clamp::Target::Window(ByteCount::new(20_000));
    let config = clamp::Config { target, mss: ByteCount::new(1460), exempt: Match::Never };
    assert_eq!(clamp, Spec::WindowClamp(Over { config: config.clone(), queue: Box::new(fifo_206_kb()) }));

    let shared = ["access.up.queue.kind=window-clamp", "access.up.queue.rate=1 Mbit/s", "access.up.queue.rtt=40 ms"];
    let target = clamp::Target::Shared { rate: BitRate::from_mbit_per_s(1), rtt: Duration::from_ms(40), growth: None };
    let config = clamp::Config { target, ..config };
    assert_eq!(up(&shared), Spec::WindowClamp(Over { config, queue: Box::new(fifo_206_kb()) }));
}

#[test]
fn a_cake_is_as_the_file_says() {
    let queue = |keys: &str| {
        let text = LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {{ kind = \"cake\"{keys} }}"));
        parse(&text).unwrap().access().unwrap().up.queue.clone()
    };
    assert_eq!(queue(""), Spec::Cake(cake::Config::default()));
    let config = cake::Config {
        bandwidth: Some(BitRate::from_kbit_per_s(480)),
        link_layer: Some(preset::PPPOA_VCMUX.link),
        diffserv: cake::Diffserv::Four,
        isolation: cake::Isolation::DualSourceHost,
        rtt: Duration::from_ms(50),
        memory: Some(ByteCount::new(500_000)),
        ack_filter: Some(Mode::Aggressive),
        wash: true,
        ingress: true,
        ..cake::Config::default()
    };
    let keys = ", bandwidth = \"480 kbit/s\", encapsulation = \"pppoa-vcmux\", diffserv = \"diffserv4\", isolation \
                = \"dual-srchost\", \
        rtt = \"50 ms\", memory = \"500 kB\", ack_filter = \"aggressive\", wash = true, ingress = \
        true";
    assert_eq!(queue(keys), Spec::Cake(config));
}

#[test]
fn queues_nest() {
    let text = format!(
        "{LINE}[access.down.queue]\nkind = \"sad\"\nduplicates = \"count\"\nexempt = {{ dscp = 8, not = {{ protocol \
         = \"tcp\" }} }}\n\
         queue = {{ kind = \"tbf\", rate = \"1 Mbit/s\", burst = \"3000 wire bytes\", queue = {{ limit = \"7 \
         packets\", drop = \"head\" }} }}\n"
    )
    .replace("down = { rate = \"2 Mbit/s\" }", "down.rate = \"2 Mbit/s\"");
    let queue = parse(&text).unwrap_or_else(|report| panic!("{report}")).access().unwrap().down.queue.clone();
    let Spec::Sad(Over { config: sad::Config { duplicates: Duplicates::Count, report: Report::None, exempt }, queue }) =
        queue
    else {
        panic!("a SAD")
    };
    assert_eq!(exempt, Match::All(vec![Match::Dscp(8), Match::Not(Box::new(Match::Protocol(Protocol::Tcp)))]));
    let Spec::Tbf(Over { config: tbf::Config { largest, .. }, queue }) = *queue else { panic!("a TBF") };
    assert_eq!(largest, ByteCount::new(1500));
    assert_eq!(*queue, Spec::Fifo(fifo::Config { limit: Limit::Packets(PacketCount::new(7)), drop: Overflow::Head }));
}

/// Each class with its parent, its share and its rule; the parent of others has no queue.
#[test]
fn classes_of_a_tree_are_those_of_the_file() {
    let queue = |queue: &str| {
        let line = LINE.replace("up = { rate = \"512 kbit/s\" }", "[access.up]\nrate = \"512 kbit/s\"");
        let text = format!("{line}[[traffic]]\nkind = \"ping\"\n[access.up.queue]\n{queue}");
        let scenario = parse(&text).unwrap_or_else(|report| panic!("{report}"));
        let access = scenario.access().unwrap();
        scenario.network().links[access.up_link].hop.queue.clone()
    };
    let class = "{ name = \"line\", rate = \"500 kbit/s\" }, { name = \"acks\", parent = \"line\", rate = \"100 \
                 kbit/s\", \
                 ceil = \"500 kbit/s\", cburst = \"3000 wire bytes\", quantum = \"1600 wire bytes\", priority = 2, \
                 match = { pure_ack = true }, limit = \"7 packets\" }";
    let Spec::Htb(htb) = queue(&format!(
        "kind = \"htb\"\ndefault = \"acks\"\nhysteresis = true\ntimer = \"10 ms\"\nclasses = [{class}]"
    )) else {
        panic!("an HTB")
    };
    assert!(htb.hysteresis);
    assert_eq!(htb.timer, Duration::from_ms(10));
    let kbit = BitRate::from_kbit_per_s;
    let [line, acks] = &htb.tree.classes[..] else { panic!("two classes") };
    assert_eq!((line.name.as_str(), &line.parent, &line.queue), ("line", &None, &None));
    assert_eq!(line.share, htb::Share::of(kbit(500)));
    assert_eq!((acks.parent.as_deref(), &acks.queue), (Some("line"), &Some(Spec::fifo(7))));
    let share = htb::Share {
        ceil: Some(kbit(500)),
        cburst: Some(WireBytes::new(3000)),
        priority: 2,
        quantum: Some(WireBytes::new(1600)),
        ..htb::Share::of(kbit(100))
    };
    assert_eq!(acks.share, share);
    assert_eq!(htb.tree.rules, [tree::Rule { matches: Match::PureAck, class: "acks".into() }]);

    let class =
        "{ name = \"a\", share = \"40 %\", isolated = true }, { name = \"b\", share = \"9 kbit/s\", borrow = false }";
    let Spec::Cbq(cbq) = queue(&format!("kind = \"cbq\"\nrate = \"512 kbit/s\"\nclasses = [{class}]")) else {
        panic!("a CBQ")
    };
    let share = cbq::Share::of(cbq::Portion::Share(Ratio::from_percent(40).unwrap()));
    assert_eq!(cbq.tree.classes[0].share, cbq::Share { isolated: true, ..share });
    let share = cbq::Share::of(cbq::Portion::Rate(kbit(9)));
    assert_eq!(cbq.tree.classes[1].share, cbq::Share { borrow: false, ..share });

    let Spec::Custom(custom) = queue("kind = \"custom\"\nexcess = \"carried\"\nclasses = [{ packets = 3 }]") else {
        panic!("custom queueing")
    };
    assert_eq!(custom.excess, Excess::Carried);
    assert_eq!(custom.classes[0].count, Count::Packets(PacketCount::new(3)));
}
