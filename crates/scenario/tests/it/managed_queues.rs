//! AQMs, fair queues and service curves as the file has them, in a line and in a class of a policy.

use std::path::Path;

use lastmile_packet::Meta;
use lastmile_queueing::aqm::codel::{CeThreshold, Selector};
use lastmile_queueing::aqm::{docsis_pie, pie};
use lastmile_queueing::fair::{Among, Per, fq_pie};
use lastmile_queueing::sched::hfsc::{ServiceCurve, Share};
use lastmile_queueing::spec::Spec;
use lastmile_scenario::Scenario;
use lastmile_scenario::policy::Policy;
use lastmile_units::{BitRate, ByteCount, Duration, Limit, PacketCount, Ratio, WireBytes};

use crate::refused::refused;
use crate::{LINE, parse};

fn with(queue: &str) -> String {
    let line = LINE.replace("{ rate = \"512 kbit/s\" }", &format!("{{ rate = \"512 kbit/s\", queue = {queue} }}"));
    format!("{line}[[traffic]]\nkind = \"ping\"\n")
}

fn queue(queue: &str) -> Spec {
    let scenario = parse(&with(queue)).unwrap_or_else(|report| panic!("{report}"));
    scenario.access().expect("an access line").up.queue.clone()
}

fn kbit(rate: u64) -> BitRate {
    BitRate::from_kbit_per_s(rate)
}

/// The service flow has the rate of the line, and the buffer 100 ms of it: 6400 bytes.
#[test]
fn docsis_pie_takes_its_rates_from_the_line_or_the_file() {
    let limit = Limit::Wire(WireBytes::new(6400));
    assert_eq!(queue("{ kind = \"docsis-pie\" }"), Spec::DocsisPie(docsis_pie::Config::of(kbit(512), limit)));
    let expected = docsis_pie::Config {
        target: Duration::from_ms(20),
        peak: kbit(900),
        burst: WireBytes::new(9000),
        seed: 3,
        ..docsis_pie::Config::of(kbit(400), Limit::Packets(PacketCount::new(9)))
    };
    let keys = "target = \"20 ms\", sustained = \"400 kbit/s\", peak = \"900 kbit/s\", burst = \"9000 wire bytes\"";
    let found = queue(&format!("{{ kind = \"docsis-pie\", {keys}, limit = \"9 packets\", seed = 3 }}"));
    assert_eq!(found, Spec::DocsisPie(expected));
    refused(
        &with("{ kind = \"docsis-pie\", peak = \"300 kbit/s\" }"),
        "error: x.toml:4:67: access.up.queue.peak: a peak rate of 300 kbit/s is below the sustained rate of 512 kbit/s",
    );
}

#[test]
fn fq_pie_has_the_keys_of_both_parents() {
    let Spec::FqPie(config) = queue("{ kind = \"fq-pie\" }") else { panic!("FQ-PIE") };
    let fq_pie::Config { per, quantum, limit, memory, control, ecn_prob, .. } = config;
    assert_eq!((per, quantum, limit), (Per::Flow, WireBytes::new(1500), PacketCount::new(10_240)));
    assert_eq!((memory, control), (ByteCount::new(32_000_000), pie::Parameters::default()));
    assert_eq!(Some(ecn_prob), Ratio::from_percent(10));
    let keys =
        "target = \"20 ms\", ecn = true, ecn_prob = \"5 %\", per = \"hosts\", seed = 7, quantum = \"300 wire bytes\"";
    let Spec::FqPie(config) = queue(&format!("{{ kind = \"fq-pie\", {keys} }}")) else { panic!("FQ-PIE") };
    let control = pie::Parameters { target: Duration::from_ms(20), ecn: true, seed: 7, ..pie::Parameters::default() };
    assert_eq!((config.control, config.per, config.quantum), (control, Per::Hosts, WireBytes::new(300)));
    assert_eq!(Some(config.ecn_prob), Ratio::from_percent(5));
    assert!(matches!(config.flows, lastmile_queueing::fair::FlowKeys::Buckets { seed: 7, .. }));
}

#[test]
fn fair_queues_are_per_flow_or_host() {
    for (word, per) in
        [("flow", Per::Flow), ("source", Per::Source), ("destination", Per::Destination), ("hosts", Per::Hosts)]
    {
        let of = |kind: &str| queue(&format!("{{ kind = \"{kind}\", per = \"{word}\" }}"));
        assert!(matches!(of("sfq"), Spec::Sfq(config) if config.per == per));
        assert!(matches!(of("fq-codel"), Spec::FqCodel(config) if config.per == per));
        assert!(matches!(of("drr"), Spec::Drr(Among::Flows { per: of, .. }) if of == per));
        assert!(
            matches!(of("wfq"), Spec::Wfq(config) if matches!(config.0, Among::Flows { per: of, .. } if of == per))
        );
    }
    refused(
        &with("{ kind = \"drr\", per = \"source\", classes = [{}] }"),
        "error: x.toml:4:59: both per and classes, which packets belong to by their match",
    );
}

/// 2 s at 512 kbit/s are 128 000 bytes.
#[test]
fn the_limit_of_a_fair_queue_may_be_a_time() {
    for kind in ["fq-codel", "fq-pie"] {
        let limit = match queue(&format!("{{ kind = \"{kind}\", limit = \"2 s\" }}")) {
            Spec::FqCodel(config) => config.limit,
            Spec::FqPie(config) => config.limit,
            other => panic!("{other:?}"),
        };
        assert_eq!(limit, PacketCount::new(85), "{kind}");
    }
}

#[test]
fn a_ce_threshold_may_be_of_some_packets_alone() {
    let threshold = |selector| Some(CeThreshold { delay: Duration::from_ms(1), selector });
    let codel = queue("{ kind = \"codel\", ce_threshold = \"1 ms\" }");
    assert!(matches!(codel, Spec::Codel(config) if config.ce_threshold == threshold(Selector::ALL)));
    let fq = queue("{ kind = \"fq-codel\", ce_threshold = \"1 ms\", ce_threshold_selector = \"0x01/0x03\" }");
    let ect1 = threshold(Selector { value: 1, mask: 3 });
    assert!(matches!(fq, Spec::FqCodel(config) if config.ce_threshold == ect1));
    assert!(matches!(queue("{ kind = \"fq-codel\" }"), Spec::FqCodel(config) if config.ce_threshold.is_none()));
    refused(
        &with("{ kind = \"fq-codel\", ce_threshold_selector = \"1/3\" }"),
        "error: x.toml:4:82: a selector without a ce_threshold, so nothing is marked",
    );
    refused(
        &with("{ kind = \"fq-codel\", ce_threshold = \"1 ms\", ce_threshold_selector = \"0x05/0x03\" }"),
        "error: x.toml:4:105: access.up.queue.ce_threshold_selector: a selector of 0x05/0x03: the value has bits that \
         the mask leaves out, so no packet fits",
    );
}

/// Rates, two pieces, and a packet within a time: 1500 bytes in 10 ms are 1.2 Mbit/s.
#[test]
fn curves_are_rates_or_two_pieces_or_a_packet_within_a_time() {
    let classes = "{ name = \"all\", ls = \"9 kbit/s\", \
                     ul = { m1 = \"600 kbit/s\", d = \"1 s\", m2 = \"500 kbit/s\" } }, \
                   { name = \"a\", parent = \"all\", match = { pure_ack = true }, \
                     sc = { d = \"5 ms\", m2 = \"50 kbit/s\" } }, \
                   { name = \"b\", parent = \"all\", \
                     rt = { umax = \"150 wire bytes\", dmax = \"10 ms\", rate = \"50 kbit/s\" } }";
    let Spec::Hfsc(config) = queue(&format!("{{ kind = \"hfsc\", default = \"b\", classes = [{classes}] }}")) else {
        panic!("HFSC")
    };
    let shares: Vec<Share> = config.tree.classes.iter().map(|class| class.share).collect();
    let (line, ms) = (|rate| Some(ServiceCurve::linear(kbit(rate))), Duration::from_ms);
    let late = Some(ServiceCurve::two_pieces(None, ms(5), kbit(50)));
    let limit = Some(ServiceCurve::two_pieces(Some(kbit(600)), ms(1000), kbit(500)));
    assert_eq!(shares[0], Share { real_time: None, link_share: line(9), upper_limit: limit });
    assert_eq!(shares[1], Share { real_time: late, link_share: late, upper_limit: None });
    let early = Some(ServiceCurve::two_pieces(Some(kbit(120)), ms(10), kbit(50)));
    assert_eq!(shares[2], Share { real_time: early, ..Share::default() });
    assert_eq!(config.tree.default.as_deref(), Some("b"));
}

#[test]
fn curves_that_cannot_be_kept_are_refused() {
    let class = |class: &str| with(&format!("{{ kind = \"hfsc\", classes = [{class}] }}"));
    refused(
        &class("{ name = \"a\" }"),
        "error: x.toml:4:65: access.up.queue.classes.a.ls: class \"a\": it has neither a real-time curve (rt) nor a \
         share (ls), so it would never send",
    );
    refused(
        &class("{ name = \"a\", rt = \"513 kbit/s\" }"),
        "error: x.toml:4:37: access.up.queue: the real-time curves ask for 513 kbit/s together at first, and the link \
         has 512 kbit/s",
    );
    refused(
        &class("{ name = \"a\", rt = \"5 kbit/s\", sc = \"5 kbit/s\" }"),
        "error: x.toml:4:101: both sc and one of rt and ls, which sc sets",
    );
    refused(
        &class("{ name = \"a\", ls = { m1 = \"5 kbit/s\", m2 = \"5 kbit/s\" } }"),
        "error: x.toml:4:84: access.up.queue.classes.a.ls: a curve is a rate, or { m1 = \"2 Mbit/s\", d = \"10 ms\", \
         m2 = \"1 Mbit/s\" }, or { umax = \"1500 wire bytes\", dmax = \"10 ms\", rate = \"1 Mbit/s\" }",
    );
    refused(
        &class("{ name = \"a\", ls = { m3 = \"5 kbit/s\" } }"),
        "error: x.toml:4:84: access.up.queue.classes.a.ls: unknown key \"m3\"; a curve is a rate, or \
         { m1 = \"2 Mbit/s\", d = \"10 ms\", m2 = \"1 Mbit/s\" }, or \
         { umax = \"1500 wire bytes\", dmax = \"10 ms\", rate = \"1 Mbit/s\" }",
    );
}

/// Each kind may be the queue of a class of a policy.
#[test]
fn classes_of_policies_have_these_queues() {
    let queues = [
        "{ kind = \"docsis-pie\" }",
        "{ kind = \"fq-pie\", per = \"source\" }",
        "{ kind = \"fq-codel\", per = \"source\", ce_threshold = \"1 ms\" }",
        "{ kind = \"hfsc\", classes = [{ name = \"a\", sc = \"10 kbit/s\" }, { name = \"b\", ls = \"10 kbit/s\" }] }",
    ];
    for queue in queues {
        let text = format!(
            "[line]\nup = \"512 kbit/s\"\ndown = \"2 Mbit/s\"\n\
             [[class]]\nname = \"all\"\nrate = \"90 %\"\nqueue = {queue}\n"
        );
        let policy = Policy::parse("p.toml", &text, None).unwrap_or_else(|report| panic!("{report}"));
        let layer = lastmile_linklayer::preset::IP.link;
        assert!(policy.up.build::<Meta>(&layer).is_ok(), "{queue}");
    }
}

fn shipped(name: &str, overrides: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/remedies").join(name);
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load(&path, &overrides).unwrap_or_else(|report| panic!("{report}"))
}

/// The mean round trip of the ping, in milliseconds.
fn round_trip(scenario: &Scenario) -> f64 {
    let outcome = lastmile_sim::run(&scenario.network()).expect("it runs");
    assert!(outcome.conservation.holds());
    let replies = &outcome.probes[0].replies;
    replies.iter().map(|(_, rtt)| rtt.as_secs_f64() * 1e3).sum::<f64>() / replies.len() as f64
}

/// An upload of 10 Mbit/s. The target of 10 ms is the mean wait of eight uploads; the window of one swings, and a
/// buffer of 100 ms without an AQM is mostly full.
#[test]
fn docsis_pie_holds_its_target_on_a_line() {
    let wait = |overrides: &[&str]| {
        round_trip(&shipped("docsis-pie.toml", overrides))
            - round_trip(&shipped("docsis-pie.toml", &["traffic.upload.start=59 s"]))
    };
    assert!((8.0..12.0).contains(&wait(&["traffic.upload.count=8"])));
    assert!((8.0..18.0).contains(&wait(&[])));
    assert!(wait(&["access.up.queue={limit=\"100 ms\"}"]) > 60.0);
}

/// One host with eight uploads, another with one: half of the line each by source address, a ninth for the other by
/// flow.
#[test]
fn a_host_has_its_share_on_a_line() {
    let share_of_one = |overrides: &[&str]| {
        let outcome = lastmile_sim::run(&shipped("fair-hosts.toml", overrides).network()).expect("it runs");
        let bytes = |name: &str| -> u64 {
            let flows = outcome.flows.iter().filter(|flow| flow.name.starts_with(name));
            flows.map(|flow| flow.bytes_delivered).sum()
        };
        bytes("one") as f64 / (bytes("one") + bytes("eight")) as f64
    };
    let (by_host, by_flow) = (share_of_one(&[]), share_of_one(&["access.up.queue.per=flow"]));
    assert!((0.44..0.52).contains(&by_host), "{by_host}");
    assert!((by_flow - 1.0 / 9.0).abs() < 0.005, "{by_flow}");
}
