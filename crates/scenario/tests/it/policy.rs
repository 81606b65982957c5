//! Policies: the ready ones, what they become on a line, and what is refused.

use std::path::Path;

use lastmile_linklayer::{Framing, LinkLayer, PRESETS, preset};
use lastmile_packet::Meta;
use lastmile_queueing::sched::hfsc::{ServiceCurve, Share};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{DropReason, fifo};
use lastmile_scenario::policy::{Line, Policy, Position, ready};
use lastmile_scenario::{Diagnostic, Scenario};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Limit, WireBytes};

mod refused;

use refused::class;

fn ready(name: &str, line: Option<Line>) -> Policy {
    Policy::load(name, None, line).unwrap_or_else(|report| panic!("{name}: {report}"))
}

#[test]
fn every_ready_policy_stands_on_every_link_layer() {
    for name in ready::NAMES {
        for preset in PRESETS {
            // The last two have no room for the ACKs of a full download.
            let rates = [(256, 512), (512, 2000), (768, 8000), (10_000, 100_000), (256, 16_000), (1_000, 200_000)];
            for (up, down) in rates.map(|(up, down)| (BitRate::from_kbit_per_s(up), BitRate::from_kbit_per_s(down))) {
                let policy = ready(name, Some(Line::steady(up, down, preset.link, preset.link)));
                assert!(policy.up.build::<Meta>(&preset.link).is_ok(), "{name} over {}", preset.name);
                assert!(policy.warnings.is_empty(), "{name} over {}: {}", preset.name, policy.warnings);
                assert!(!policy.about.is_empty());
                let guaranteed: u64 = policy.classes.iter().filter_map(|class| class.rate).map(BitRate::as_bps).sum();
                assert!(guaranteed <= up.as_bps(), "{name} over {}", preset.name);
            }
        }
    }
}

/// 2 Mbit/s in packets of 1500 + 36 bytes, 32 cells or 1696 bytes each, and an ACK of 40 + 36 bytes in
/// two cells or 106 for every 1.5 of them: 2 000 000 * 106 / 1696 / 1.5 = 83 333.3 bit/s.
/// Half of one bit per second is no rate, and a packet shorter than the overhead that is taken off is still a byte.
#[test]
fn absurd_lines_have_a_policy_or_an_error() {
    let taken_off = LinkLayer::new(-64, Framing::None).unwrap();
    for name in ready::NAMES {
        let layer = preset::IP.link;
        let one = BitRate::from_bps(1).unwrap();
        let line = Line::steady(one, one, layer, layer);
        if let Err(report) = Policy::load(name, None, Some(line)) {
            let words = ["less than a bit per second", "nothing is left of 1 bit/s"];
            assert!(words.iter().any(|words| report.to_string().contains(words)), "{name}: {report}");
        }
        let (up, down) = (BitRate::from_kbit_per_s(1_000), BitRate::from_kbit_per_s(10_000));
        ready(name, Some(Line::steady(up, down, taken_off, taken_off)));
    }
}

#[test]
fn the_rate_of_the_acks_is_what_a_full_download_needs() {
    let layer = preset::BRIDGED_VCMUX_FCS.link;
    let (up, down) = (BitRate::from_kbit_per_s(512), BitRate::from_kbit_per_s(2000));
    let policy = ready("ack-priority", Some(Line::steady(up, down, layer, layer)));
    let ack = policy.ack.expect("an ACK class");
    assert_eq!((ack.packet.as_u64(), ack.ack.as_u64(), ack.needed), (1696, 106, Some(ack.rate)));
    assert_eq!(ack.rate.as_bps(), 83_334);
    let rest = &policy.classes[1];
    assert_eq!((rest.rate.unwrap().as_bps(), rest.ceil), (512_000 - 83_334, up));
}

/// 16 Mbit/s in packets of 1500 bytes, and an ACK of 40 bytes for every 1.5 of them: 284 445 bit/s of 256 000. They
/// have half of the line, and the others what is left.
#[test]
fn acks_that_need_more_than_the_line_leave_half_of_it() {
    let layer = preset::IP.link;
    let (up, down) = (BitRate::from_kbit_per_s(256), BitRate::from_kbit_per_s(16_000));
    let policy = ready("ack-priority", Some(Line::steady(up, down, layer, layer)));
    let ack = policy.ack.expect("an ACK class");
    assert_eq!((ack.rate.as_bps(), ack.needed.unwrap().as_bps()), (128_000, 284_445));
    assert_eq!(policy.classes[1].rate.unwrap().as_bps(), 128_000);
}

/// Packets over PPPoE have at most 1492 bytes (RFC 2516, section 7).
#[test]
fn a_policy_counts_with_packets_that_the_line_carries() {
    let layer = LinkLayer::from_name("pppoe-ptm").unwrap();
    let (up, down) = (BitRate::from_kbit_per_s(10_000), BitRate::from_kbit_per_s(50_000));
    let policy = ready("ack-priority", Some(Line::steady(up, down, layer, layer)));
    let packet = policy.ack.expect("an ACK class").packet;
    assert_eq!(packet, layer.on_wire(ByteCount::new(1492)));
    assert_ne!(packet, layer.on_wire(ByteCount::new(1500)));
}

/// Brouer 2005, section 9.3, listing B.27: 340 kbit/s for the ACKs of 767, percentages of the 427 that
/// are left, ceilings of 767, all in whole kbit/s rounded down.
#[test]
fn the_production_classes_have_the_published_rates() {
    let text = ready::text("adsl-optimizer")
        .unwrap()
        .replace("up = \"768 kbit/s\"", "up = \"767 kbit/s\"")
        .replace("factor = 1.5", "rate = \"340 kbit/s\"");
    let policy = Policy::parse("published.toml", &text, None).unwrap();
    let kbit = |rate: BitRate| rate.as_bps() / 1000;
    let classes: Vec<_> = policy
        .classes
        .iter()
        .map(|class| (class.name.as_str(), kbit(class.rate.unwrap()), kbit(class.ceil), class.priority))
        .collect();
    let published = [
        ("ack", 340, 767, 1),
        ("interactive", 85, 153, 0),
        ("good", 119, 613, 4),
        ("bulk", 93, 613, 4),
        ("default", 85, 728, 4),
        ("bad", 42, 767, 7),
    ];
    assert_eq!(classes, published);
    // Computed from the wire of his 8 Mbit/s line the reservation is close to his 340: 8 000 000 * 106 / 1696 / 1.5.
    let computed = ready("adsl-optimizer", None).ack.unwrap();
    assert_eq!((computed.rate.as_bps(), computed.packet.as_u64()), (333_334, 1696));
}

const HFSC: &str = "[line]\nup = \"1 Mbit/s\"\ndown = \"10 Mbit/s\"\n\
    [scheduler]\nkind = \"hfsc\"\n\
    [[class]]\nname = \"call\"\nrate = \"130 kbit/s\"\ndelay = \"20 ms\"\nceil = \"50 %\"\n\
    [[class]]\nname = \"default\"\nrate = \"390 kbit/s\"\n\
    [[rule]]\nclass = \"call\"\nmatch = { dscp = \"EF\" }\n";

/// 1500 bytes in 20 ms are 600 kbit/s at first, next to which the default class may have 390 kbit/s of the line.
#[test]
fn hfsc_guarantees_a_delay_that_the_rate_of_the_class_would_not() {
    let policy = Policy::parse("own.toml", HFSC, None).unwrap_or_else(|report| panic!("{report}"));
    let Spec::Rules(rules) = &policy.up else { panic!("{:?}", policy.up) };
    let Spec::Hfsc(hfsc) = &*rules.queue else { panic!("{:?}", rules.queue) };
    let kbit = BitRate::from_kbit_per_s;
    let linear = |rate| Some(ServiceCurve::linear(kbit(rate)));
    let call = ServiceCurve::two_pieces(Some(kbit(600)), Duration::from_ms(20), kbit(130));
    let expected = [
        ("line", Share { real_time: None, link_share: linear(1000), upper_limit: linear(1000) }),
        ("call", Share { real_time: Some(call), link_share: linear(130), upper_limit: linear(500) }),
        ("default", Share { real_time: linear(390), link_share: linear(390), upper_limit: None }),
    ];
    let classes: Vec<_> = hfsc.tree.classes.iter().map(|class| (class.name.as_str(), class.share)).collect();
    assert_eq!(classes, expected);
}

#[test]
fn a_scenario_takes_a_policy_by_name_or_by_file() {
    let text = |policy: &str| crate::LINE.replace("[access]\n", &format!("[access]\npolicy = \"{policy}\"\n"));
    let scenario = crate::parse(&text("sad-cbq")).unwrap();
    let access = scenario.access().unwrap();
    assert!(matches!(&access.up.queue, Spec::Rules(rules) if matches!(*rules.queue, Spec::Cbq(_))));
    assert_eq!(access.up.queue, scenario.network().links[access.up_link].hop.queue);
    assert_eq!(access.policy.as_ref().unwrap().name, "sad-cbq");

    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policy-by-file");
    std::fs::create_dir_all(&dir).unwrap();
    let own =
        "[scheduler]\nkind = \"none\"\nqueue = { limit = \"7 packets\" }\n[down]\nqueue = { limit = \"9 packets\" }";
    std::fs::write(dir.join("own.toml"), own).unwrap();
    std::fs::write(dir.join("scenario.toml"), text("own.toml")).unwrap();
    let scenario = Scenario::load(&dir.join("scenario.toml"), &[]).unwrap_or_else(|report| panic!("{report}"));
    let access = scenario.access().unwrap();
    assert_eq!(access.up.queue, Spec::fifo(7));
    let network = scenario.network();
    let queue =
        |name: &str| &network.links.iter().find(|link| link.hop.name == name).expect("a link of this name").hop.queue;
    assert_eq!((queue("up"), queue("middlebox-down")), (&Spec::fifo(7), &Spec::fifo(9)));
    assert_eq!(*queue("down"), access.down.queue, "the queue of the DSLAM is as the scenario has it");

    let refused = |policy: &str| {
        let report = crate::parse(&text(policy)).expect_err("it is refused");
        (report.findings()[0].headline(), report.findings()[0].hint.clone().unwrap_or_default())
    };
    assert_eq!(
        refused("sad-cqb"),
        (
            "error: x.toml:3:10: access.policy: \"sad-cqb\": no policy of this name".into(),
            "did you mean \"sad-cbq\"?".into()
        )
    );
    assert_eq!(refused("gone.toml").0, "error: x.toml:3:10: access.policy: \"gone.toml\": no such file");
}

/// `none` clears the policy of a file: the line's own queue stays.
#[test]
fn a_policy_of_none_is_no_policy() {
    let scenario = crate::parse(&crate::LINE.replace("[access]\n", "[access]\npolicy = \"none\"\n")).unwrap();
    let bare = crate::parse(crate::LINE).unwrap();
    assert!(scenario.access().unwrap().policy.is_none());
    assert_eq!(scenario.access().unwrap().up.queue, bare.access().unwrap().up.queue);
    assert_eq!(scenario.network().links.len(), bare.network().links.len());
}

/// At 40 Mbit/s a queue of a ready policy lets 250 ms wait as it does at 512 kbit/s: 1 250 000 and 16
/// 000 bytes on the wire.
#[test]
fn limits_of_ready_policies_are_times() {
    let layer = preset::IP.link;
    for (up, bytes) in [(512, 16_000), (40_000, 1_250_000)] {
        let up = BitRate::from_kbit_per_s(up);
        let down = BitRate::from_kbit_per_s(100_000);
        let line = Line::steady(up, down, layer, layer);
        let limit = Limit::Wire(WireBytes::new(bytes));
        assert!(matches!(ready("fifo", Some(line)).up, Spec::Fifo(fifo::Config { limit: own, .. }) if own == limit));
        for name in ready::NAMES {
            let in_bytes = |line: &str| line.contains("limit") && line.contains("kB");
            assert!(!ready::text(name).unwrap().lines().any(in_bytes), "{name}: a limit of some line's bytes");
        }
    }
}

/// SQM's margins: 95 % up and 90 % down, a middlebox before the modem. On 512 kbit/s a packet of 1500
/// bytes takes 24.67 ms of the 486.4, 19.67 above CoDel's 5.
#[test]
fn what_people_deploy_shapes_both_ways() {
    let layer = preset::IP.link;
    let (up, down) = (BitRate::from_kbit_per_s(512), BitRate::from_kbit_per_s(2000));
    for name in ["cake", "fq-codel-sqm"] {
        let policy = ready(name, Some(Line::steady(up, down, layer, layer)));
        let behind = policy.down.expect("a queue behind the downstream");
        assert_eq!((policy.place, policy.rate.map(BitRate::as_bps)), (Position::Middlebox, Some(486_400)), "{name}");
        assert_eq!(behind.rate.map(BitRate::as_bps), Some(1_800_000), "{name}");
        if let Some(queue) = policy.classes.first().and_then(|class| class.queue.clone()) {
            let Spec::FqCodel(codel) = queue else { panic!("{queue:?}") };
            assert_eq!((codel.target.as_us(), codel.interval.as_us()), (24_671, 119_671));
        }
    }
}

/// `get_htb_burst` of sqm-scripts: 1 ms of the shaper's rate. 38 of 40 Mbit/s up send 4750 bytes, 45 of 50 down 5625.
/// Of less than a packet it makes one, as at 486.4 kbit/s, where 1 ms is 60 bytes.
#[test]
fn bursts_of_sqm_are_what_the_shaper_sends_in_a_millisecond() {
    let layer = preset::IP.link;
    for (up, down, expected) in [(40_000, 50_000, [4750, 5625]), (512, 2000, [1500, 1500])] {
        let [up, down] = [up, down].map(BitRate::from_kbit_per_s);
        let policy = ready("fq-codel-sqm", Some(Line::steady(up, down, layer, layer)));
        let bursts = policy.classes.iter().map(|class| [class.burst, class.cburst].map(WireBytes::as_u64));
        assert_eq!(bursts.collect::<Vec<_>>(), [[1500; 2], [expected[0]; 2], [expected[0]; 2]]);
        let Some(Spec::Tbf(tbf)) = policy.down.map(|down| down.queue) else { panic!("a token bucket") };
        assert_eq!(tbf.config.burst.as_u64(), expected[1]);
        let Spec::Drain(drain) = &policy.up else { panic!("one packet at a time") };
        let Spec::Rules(rules) = &*drain.queue else { panic!("rules") };
        let Spec::Htb(htb) = &*rules.queue else { panic!("HTB") };
        let line = htb.tree.classes[0].share;
        assert_eq!([line.burst, line.cburst], [Some(WireBytes::new(expected[0])); 2]);
    }
}

/// 0 kbit/s of SQM: a direction without a rate is not shaped, and the other is as with both rates.
#[test]
fn a_direction_without_a_rate_is_not_shaped() {
    let layer = preset::IP.link;
    let (up, down) = (BitRate::from_kbit_per_s(512), BitRate::from_kbit_per_s(2000));
    for name in ["cake", "fq-codel-sqm"] {
        let both = ready(name, Some(Line::steady(up, down, layer, layer)));
        let upload = ready(name, Some(Line::steady(up, None, layer, layer)));
        assert_eq!((upload.of_middlebox().0, upload.down), (both.of_middlebox().0, None), "{name}");
        assert!(matches!(ready(name, Some(Line::steady(up, None, layer, layer))).of_middlebox().1, Spec::Fifo(_)));
        let download = ready(name, Some(Line::steady(None, down, layer, layer)));
        assert_eq!((download.down.as_ref(), download.rate), (both.down.as_ref(), None), "{name}");
        assert!(matches!(download.of_middlebox().0, Spec::Fifo(_)) && download.classes.is_empty());
    }
    // Its regulators of ACKs are for the sake of the download.
    let regulated = ready("full-both-ways", Some(Line::steady(None, down, layer, layer)));
    assert!(matches!(regulated.of_middlebox().0, Spec::WindowClamp(_)));
    let refused = |name, line| Policy::load(name, None, Some(line)).expect_err(name).to_string();
    let unknown = refused("full-both-ways", Line::steady(up, None, layer, layer));
    assert!(unknown.contains("the ACKs of a download whose rate is unknown"), "{unknown}");
    let steered = refused("cake-autorate", Line::steady(up, None, layer, layer));
    assert!(steered.contains("autorate: a direction is not shaped"), "{steered}");
    // The policy has no [down].
    let none = refused("sad", Line::steady(None, down, layer, layer));
    assert!(none.contains("neither direction is shaped"), "{none}");
    let own = "line = { down = \"2 Mbit/s\" }\nscheduler = { kind = \"none\" }\ndown = { share = \"90 %\" }\n";
    let own = Policy::parse("p", own, None).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!((own.rate, own.down.and_then(|down| down.rate)), (None, Some(BitRate::from_kbit_per_s(1800))));
}

/// `share` of `[down]` is what shapes the downstream. 95 % of 512 kbit/s, and 90 % of 2 Mbit/s.
#[test]
fn a_downstream_that_no_share_holds_back_is_not_shaped() {
    let layer = preset::IP.link;
    let [up, down] = [512, 2000].map(BitRate::from_kbit_per_s);
    let on_line = |name| ready(name, Some(Line::steady(up, down, layer, layer)));
    let (cake, fifo) = (on_line("cake"), on_line("fifo"));
    assert_eq!(cake.shapers(), [BitRate::from_bps(486_400), BitRate::from_bps(1_800_000)]);
    assert_eq!((cake.shaped_line(), cake.unshaped_down()), ([Some(up), Some(down)], None));
    assert_eq!((fifo.shapers(), fifo.shaped_line()), ([Some(up), None], [Some(up), None]));
    assert_eq!(fifo.unshaped_down().as_deref(), Some("fifo has no [down]: the downstream is not shaped"));
    assert_eq!(ready("fifo", Some(Line::steady(up, None, layer, layer))).unshaped_down(), None);
    let queue = format!("{LINE}[scheduler]\nkind = \"none\"\n[down]\nqueue = {{ kind = \"fifo\" }}\n");
    let queue = Policy::parse("p", &queue, None).unwrap_or_else(|report| panic!("{report}"));
    assert_eq!(queue.shaped_line(), [Some(up), None]);
    assert!(queue.unshaped_down().unwrap().ends_with(" has no share in [down]: the downstream is not shaped"));
}

/// Brouer 2005, section 9.3 and listing B.27: `sfq perturb 10` in every class, with these limits.
#[test]
fn the_production_classes_have_the_published_queues() {
    let policy = ready("adsl-optimizer", None);
    let queues = policy.classes.iter().map(|class| match &class.queue {
        Some(Spec::Sfq(sfq)) => (class.name.as_str(), sfq.limit.as_u64(), sfq.perturb.as_ms()),
        other => panic!("{}: {other:?}", class.name),
    });
    let published = [("ack", 50), ("interactive", 50), ("good", 64), ("bulk", 128), ("default", 64), ("bad", 128)];
    assert!(queues.eq(published.map(|(name, limit)| (name, limit, 10_000))));
}

pub(crate) const LINE: &str = "[line]\nup = \"512 kbit/s\"\ndown = \"2 Mbit/s\"\n";

pub(crate) fn headlines(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(Diagnostic::headline).collect()
}

#[track_caller]
pub(crate) fn refused(text: &str, headline: &str) {
    let report = Policy::parse("p.toml", &format!("{LINE}{text}"), None).expect_err(text);
    assert_eq!(headlines(report.findings()), [headline], "{text}");
}

/// The largest packet takes 1500 wire bytes here; the class with the least rate sends one of them in its turn.
#[test]
fn each_scheduler_has_its_classes() {
    let with = |kind: &str| {
        let classes = class("slow", "rate = \"20 %\"\npriority = 7") + &class("fast", "rate = \"60 %\"\npriority = 0");
        let text = format!("{LINE}[scheduler]\nkind = \"{kind}\"\n{classes}[[rule]]\nclass = \"slow\"\n");
        match Policy::parse("p.toml", &text, None).unwrap().up {
            Spec::Rules(rules) => *rules.queue,
            other => panic!("{other:?}"),
        }
    };
    let Spec::Custom(custom) = with("custom") else { panic!("custom queueing") };
    let counts: Vec<String> = custom.classes.iter().map(|class| format!("{:?}", class.count)).collect();
    assert_eq!(counts.len(), 2);
    assert!(counts[0].contains("1500") && counts[1].contains("4500"), "{counts:?}");
    let Spec::Priority(priority::Config { classes }) = with("priority") else { panic!("priorities") };
    assert_eq!(classes[0].matches, lastmile_queueing::Match::Class(1), "the most urgent first");
    let Spec::Htb(htb) = with("htb") else { panic!("HTB") };
    assert_eq!(htb.tree.classes[2].share.rate, BitRate::from_bps(307_200).unwrap());
    assert_eq!(htb.largest, ByteCount::new(1500));
    assert!(matches!(with("cbq"), Spec::Cbq(cbq) if cbq.tree.classes.len() == 3));
}

/// A middlebox before and behind the line: the queues of modem and DSLAM stay, and the ways lead through it.
#[test]
fn a_middlebox_stands_between_the_line_and_the_lan() {
    let text = crate::LINE.replace("[access]\n", "[access]\npolicy = \"full-both-ways\"\n");
    let scenario = crate::parse(&text).unwrap();
    let (network, access) = (scenario.network(), scenario.access().unwrap());
    let names = |from: usize, to: usize| -> Vec<String> {
        let way = scenario.way(from, to).expect("a way");
        way.into_iter().map(|link| network.links[link].hop.name.clone()).collect()
    };
    assert_eq!(
        names(access.server, access.client),
        ["server-gateway", "gateway-dslam", "down", "middlebox-down", "cpe-client"]
    );
    assert_eq!(
        names(access.client, access.server),
        ["client-cpe", "middlebox-up", "up", "dslam-gateway", "gateway-server"]
    );
    let policy = access.policy.as_ref().unwrap();
    for (name, queue) in [("middlebox-down", &policy.down.as_ref().unwrap().queue), ("middlebox-up", &policy.up)] {
        let link = network.links.iter().find(|link| link.hop.name == name).unwrap();
        assert_eq!((&link.hop.queue, link.hop.line.rate), (queue, None), "{name} shapes, and takes no time itself");
    }
    assert_eq!(network.links[access.up_link].hop.queue, access.up.queue);
    assert!(matches!(access.up.queue, Spec::Fifo(_)));

    let several = crate::parse(&text.replace("policy =", "lines = 3\npolicy =")).unwrap().network();
    for (number, line) in several.lines.iter().enumerate() {
        let name = |index: usize| several.links[index].hop.name.clone();
        assert_eq!((name(line.down), name(line.up)), (format!("down-{}", number + 1), format!("up-{}", number + 1)));
    }
}

#[test]
fn the_reference_is_printed_from_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/policy.md");
    let printed = lastmile_scenario::policy::render_reference();
    let again = "cargo run -p lastmile-scenario --example policy-reference > docs/reference/policy.md";
    assert!(std::fs::read_to_string(path).is_ok_and(|text| text == printed), "print it again: {again}");
}

/// Bulk waits, and the policy is read again: an echo request that comes now leaves before what waits, both ways.
#[test]
fn urgent_packets_go_before_the_backlog_of_an_earlier_policy() {
    use lastmile_packet::Protocol;
    use lastmile_queueing::{Discipline as _, DropReason, Handover};
    use lastmile_units::{Duration, Instant};

    let mbit = BitRate::from_mbit_per_s;
    let layer = LinkLayer::from_name("pppoe-ptm").unwrap();
    let line = Line::steady(mbit(10), mbit(50), layer, layer);
    for name in ["full-both-ways", "adsl-optimizer"] {
        let policy = ready(name, Some(line));
        let down = policy.down.as_ref().map(|down| &down.queue);
        for spec in [Some(&policy.up), down].into_iter().flatten() {
            let bulk = Meta { ip_len: 1492, header_len: 28, protocol: Protocol::Udp, ..Meta::default() };
            let mut none = |_: Instant, packet: Meta, reason: DropReason| panic!("{name}: {packet:?} {reason:?}");
            let mut earlier = spec.build::<Meta>(&layer).unwrap();
            for _ in 0..20 {
                earlier.enqueue(Instant::ZERO, bulk, &mut none);
            }
            let mut queue = Handover::new(earlier, spec.build::<Meta>(&layer).unwrap());
            let echo = Meta { ip_len: 84, protocol: Protocol::EchoRequest, ..bulk };
            queue.enqueue(Instant::ZERO, bulk, &mut none);
            queue.enqueue(Instant::ZERO, echo, &mut none);
            // Within what three full packets take of the slower direction.
            let mut left = Vec::new();
            for us in 0..4_000 {
                let now = Instant::ZERO + Duration::from_us(us);
                while let Some(packet) = queue.dequeue(now, &mut none) {
                    left.push(packet.ip_len);
                }
            }
            assert!(left.contains(&84), "{name}: {left:?}");
        }
    }
}

/// Packets of an unknown kind wait in classes, with any discipline in front of the scheduler.
#[test]
fn the_backlog_of_a_policy_is_that_of_its_classes() {
    let layer = preset::BRIDGED_VCMUX_FCS.link;
    let (up, down) = (BitRate::from_kbit_per_s(512), BitRate::from_kbit_per_s(2000));
    for name in ready::NAMES {
        let policy = ready(name, Some(Line::steady(up, down, layer, layer)));
        let mut queue = policy.of_middlebox().0.build::<Meta>(&layer).unwrap();
        for _ in 0..20 {
            let packet = Meta { ip_len: 1000, ..Meta::default() };
            queue.enqueue(Instant::ZERO, packet, &mut |_: Instant, _: Meta, _: DropReason| {});
        }
        let mut classes = Vec::new();
        queue.class_backlogs(&mut |number, backlog| classes.push((number, backlog.bytes.as_u64())));
        let numbered = {
            let mut numbered = Vec::new();
            queue.counters(&mut |counter| {
                let class = counter.path.split_once("classes.").and_then(|(_, class)| class.parse::<usize>().ok());
                numbered.extend(class.filter(|class| !numbered.contains(class)));
            });
            numbered
        };
        let expected =
            if policy.classes.is_empty() || numbered.is_empty() { 0 } else { queue.backlog().bytes.as_u64() };
        assert_eq!(classes.iter().map(|(_, bytes)| bytes).sum::<u64>(), expected, "{name}: {classes:?}");
        assert!(classes.iter().all(|(number, _)| numbered.contains(number)), "{name}: {classes:?}, {numbered:?}");
    }
}
