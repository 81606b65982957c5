//! Numbers and order of whole configurations. The scripts of the built-in policies are snapshots of
//! the command.

use lastmile_linklayer::preset;
use lastmile_queueing::ack::sad;
use lastmile_queueing::aqm::codel::{CeThreshold, Selector};
use lastmile_queueing::aqm::{docsis_pie, dualpi2, pie};
use lastmile_queueing::classify::{Bound, rules};
use lastmile_queueing::fair::{FlowKeys, Per, fq_codel, fq_pie, sfq};
use lastmile_queueing::meter::tbf;
use lastmile_queueing::sched::hfsc::{self, ServiceCurve};
use lastmile_queueing::sched::tree::{self, Tree as Named};
use lastmile_queueing::sched::{cbq, custom, htb, priority};
use lastmile_queueing::spec::{ClassSpec, Over};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_units::{Duration, PacketCount, Ratio, WireBytes};

use super::*;

fn kbit(kbit: u64) -> BitRate {
    BitRate::from_kbit_per_s(kbit)
}

/// Every command for any kernel: of a choice the command to try, and then both branches.
fn commands(steps: &[Step], into: &mut Vec<String>) {
    for step in steps {
        match step {
            Step::Heading(_) => {}
            Step::Run { command, .. } => into.push(command.as_words().join(" ")),
            Step::Choice { first, then, otherwise, .. } => {
                into.push(format!("try {}", first.as_words().join(" ")));
                commands(then, into);
                into.push("else".to_owned());
                commands(otherwise, into);
            }
        }
    }
}

/// The configuration on 512 kbit/s of bridged Ethernet in ATM cells.
fn of(queue: &Spec, names: &[&str]) -> (Configuration, Vec<String>) {
    at_rate(kbit(512), queue, names)
}

fn at_rate(rate: BitRate, queue: &Spec, names: &[&str]) -> (Configuration, Vec<String>) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let configuration = Configuration::new(&Request {
        name: "test",
        about: "",
        notes: vec![],
        up: Some(Direction { rate, layer: preset::BRIDGED_VCMUX_FCS.link, queue }),
        down: None,
        classes: &names,
        header: Device::Ethernet,
        largest: ByteCount::new(1500),
    });
    let mut all = Vec::new();
    commands(&configuration.steps, &mut all);
    (configuration, all)
}

fn ruled(rules: Vec<(Match, u16, bool)>, otherwise: u16, queue: Spec) -> Spec {
    let rules = rules.into_iter().map(|(matches, class, last)| rules::Rule { matches, class, last }).collect();
    Spec::Rules(rules::Config { rules, otherwise, names: Vec::new(), queue: Box::new(queue) })
}

fn class(number: u16) -> ClassSpec {
    ClassSpec { matches: Match::Class(number), queue: Spec::fifo(10) }
}

/// The warnings about the rules, and the tables that are tried.
fn tables(steps: &[Step]) -> (Vec<String>, Vec<String>) {
    let table = |step: &Step| match step {
        Step::Choice { about, first, otherwise, .. } => {
            let mut texts = vec![first.as_input()?.to_owned()];
            texts.extend(tables(otherwise).1);
            Some((about.clone(), texts))
        }
        _ => None,
    };
    steps.iter().find_map(table).unwrap_or_default()
}

/// Counts of 1 and 3 of 4 on 512 kbit/s: 128 and 384 kbit/s, and quanta of 1696 and 5088 bytes.
#[test]
fn turns_by_byte_counts_become_rates_and_quanta() {
    let of_count =
        |number, count| custom::Class { class: class(number), count: custom::Count::Bytes(WireBytes::new(count)) };
    let classes = vec![of_count(0, 1000), of_count(1, 3000)];
    let custom = Spec::Custom(custom::Config { classes, excess: custom::Excess::Carried });
    let (_, all) = of(&ruled(vec![(Match::PureAck, 0, false)], 1, custom), &["acks", "data"]);
    let line = "tc class add dev $DEV parent 1a57:1 classid";
    let rest = "ceil 512000bit burst 5088 cburst 5088 prio 0 quantum";
    assert!(all.contains(&format!("{line} 1a57:10 htb rate 128000bit {rest} 1696")), "{all:#?}");
    assert!(all.contains(&format!("{line} 1a57:11 htb rate 384000bit {rest} 5088")), "{all:#?}");
}

/// 30 % of 512 kbit/s without borrowing, the rest with; 153.6 kbit/s are whole bytes.
#[test]
fn a_class_of_cbq_borrows_by_its_ceiling() {
    let share =
        |share, borrow| cbq::Share { share, borrow, isolated: false, priority: 1, burst: Some(WireBytes::new(9000)) };
    let named = |name: &str, percent, borrow| tree::Class {
        name: name.into(),
        parent: None,
        share: share(cbq::Portion::Share(Ratio::from_percent(percent).unwrap()), borrow),
        queue: Some(Spec::fifo(10)),
    };
    let classes = vec![named("bounded", 30, false), named("free", 70, true)];
    let tree = Named { classes, rules: vec![], default: Some("free".into()) };
    let (configuration, all) =
        of(&Spec::Cbq(cbq::Config { tree, rate: kbit(512), largest: ByteCount::new(1500) }), &[]);
    let burst = "burst 9000 cburst 9000 prio 1 quantum";
    // 153 600 / 80 = 1920 bytes, and 4480.
    let below = "tc class add dev $DEV parent 1a57:1 classid";
    let bounded = format!("{below} 1a57:10 htb rate 153600bit ceil 153600bit {burst} 1920");
    let free = format!("{below} 1a57:11 htb rate 358400bit ceil 512000bit {burst} 4480");
    // Only a parent lends: a class of HTB without one has its rate alone.
    let line = "tc class add dev $DEV parent 1a57: classid 1a57:1 htb rate 512000bit ceil 512000bit burst";
    assert!(all.iter().any(|command| command.starts_with(line)), "{all:#?}");
    assert!(all.contains(&bounded) && all.contains(&free), "{all:#?}");
    assert_eq!(configuration.flood.map(|flood| flood.rate), Some(kbit(512)));
}

#[test]
fn priorities_are_bands_of_prio_or_else_classes_of_htb() {
    let (configuration, all) = of(
        &ruled(
            vec![(Match::PureAck, 0, false)],
            1,
            Spec::Priority(priority::Config { classes: vec![class(0), class(1)] }),
        ),
        &["acks", "data"],
    );
    let prio =
        "try tc qdisc add dev $DEV parent 1a57:1 handle 1a58: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1";
    let at = all.iter().position(|line| line == prio).unwrap_or_else(|| panic!("{all:#?}"));
    assert_eq!(all[at + 1], "tc qdisc add dev $DEV parent 1a58:1 handle 1a59: pfifo limit 10");
    let urgent = "tc class add dev $DEV parent 1a57:1 classid 1a57:10 htb rate 8000bit ceil 512000bit burst 5088 \
                  cburst 5088 prio 0 quantum 1696";
    assert!(all.contains(&urgent.to_owned()), "{all:#?}");
    // The default of the root is the line's class. Below it classes replace prio, and HTB takes no such default.
    let unmatched = "try tc filter add dev $DEV parent 1a57: protocol all u32 match u32 0 0 classid 1a57:11";
    assert_eq!(all.iter().filter(|line| *line == unmatched).count(), 1, "{all:#?}");
    let Some(Step::Choice { then, otherwise, .. }) = configuration.steps.last() else { panic!("prio, or else HTB") };
    assert!(!format!("{then:?}").contains("u32") && format!("{otherwise:?}").contains("u32"), "{all:#?}");
    // A band of prio is the class of its number; packets that no rule matches go to the last.
    for (steps, class, otherwise) in [(then, "1a58:1", "1a58:2"), (otherwise, "1a57:10", "1a57:11")] {
        let (_, texts) = tables(steps);
        assert!(
            texts[0].contains(&format!("meta mark & 0x80000000 != 0 meta priority set {class} accept")),
            "{texts:#?}"
        );
        assert!(texts[0].contains(&format!("meta priority set {otherwise}\n")), "{texts:#?}");
    }
}

/// Two final rules in their order, then the others, the last first.
#[test]
fn the_last_match_becomes_the_first() {
    let dscp = |dscp, last| (Match::Dscp(dscp), 0, last);
    let rules = vec![dscp(1, false), dscp(2, true), dscp(3, false), dscp(4, true)];
    let (configuration, _) =
        of(&ruled(rules, 0, Spec::Priority(priority::Config { classes: vec![class(0)] })), &["all"]);
    let Some(Step::Choice { otherwise, .. }) = configuration.steps.last() else { panic!("prio, or else HTB") };
    let (order, texts) = tables(otherwise);
    assert_eq!(order, ["DSCP 2 -> all", "DSCP 4 -> all", "DSCP 3 -> all", "DSCP 1 -> all", "all others -> all"]);
    let lines: Vec<&str> = texts[0].lines().map(str::trim).filter(|line| line.starts_with("ip dscp")).collect();
    let line = |dscp: u8| format!("ip dscp {dscp} meta priority set 1a57:10 accept");
    // In the chain of fragments, and in that of whole packets.
    assert_eq!(lines, [2, 4, 3, 1, 2, 4, 3, 1].map(line));
}

/// nft marks a connection's bytes. A connection's rate has no counterpart, and only that rule is
/// omitted.
#[test]
fn a_rule_that_cannot_be_told_is_left_out_and_said_to_be() {
    let bytes = Match::ConnectionBytes(Bound::Below, ByteCount::new(1000));
    let rate = Match::ConnectionRate(Bound::Above, kbit(64));
    let both = Match::All(vec![bytes.clone(), rate]);
    let rules = vec![(bytes, 0, false), (both, 0, false)];
    let share = |name: &str| tree::Class {
        name: name.into(),
        parent: None,
        share: htb::Share { ceil: Some(kbit(512)), ..htb::Share::of(kbit(256)) },
        queue: Some(Spec::fifo(10)),
    };
    let take = tree::Rule { matches: Match::Class(0), class: "a".into() };
    let tree = Named { classes: vec![share("a"), share("b")], rules: vec![take], default: Some("b".into()) };
    let (configuration, _) = of(&ruled(rules, 1, Spec::Htb(htb::Config::new(tree))), &["a", "b"]);
    assert_eq!(configuration.left_out.len(), 1, "{:?}", configuration.left_out);
    assert!(configuration.left_out[0].contains("the rate of a connection"), "{:?}", configuration.left_out);
    // HTB lends a class without a parent nothing, whatever its ceiling.
    assert_eq!(configuration.flood.map(|flood| flood.rate), Some(kbit(256)));
    let (about, texts) = tables(&configuration.steps);
    assert_eq!(about, ["less than 1000 bytes of its connection -> a", "all others -> b"]);
    assert_eq!(texts.iter().map(|text| text.contains("ct original bytes < 1000")).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn what_regulates_acks_becomes_an_ack_filter_or_a_fifo_of_its_limit() {
    let fifo = Spec::Fifo(fifo::Config { limit: Limit::Packets(PacketCount::new(400)), drop: Overflow::Tail });
    let sad = Spec::Sad(Over {
        config: sad::Config {
            duplicates: sad::Duplicates::default(),
            report: sad::Report::default(),
            exempt: Match::Never,
        },
        queue: Box::new(fifo),
    });
    let (configuration, all) = of(&sad, &[]);
    let at = all.iter().position(|line| line.contains("ack-filter-aggressive")).unwrap();
    assert!(all[at].starts_with("try tc qdisc add dev $DEV parent 1a57:1 handle 1a58: cake unlimited"), "{}", all[at]);
    assert_eq!(all[at + 2], "tc qdisc add dev $DEV parent 1a57:1 handle 1a58: pfifo limit 400");
    assert!(configuration.left_out[0].contains("Smart ACK Dropper"), "{:?}", configuration.left_out);
}

/// A guarantee in 10 ms and a share below a limit, all in whole bytes a second; without `sch_hfsc` the long-run rates
/// become those of HTB: 100 kbit/s of the guarantee, 400 at most, and nothing for the class with a share alone.
#[test]
fn hfsc_becomes_hfsc_or_classes_of_htb() {
    let line = |rate| Some(ServiceCurve::linear(kbit(rate)));
    let share = |real_time, rate, upper_limit| hfsc::Share { real_time, link_share: line(rate), upper_limit };
    let class = |name: &str, parent: Option<&str>, share, is_leaf: bool| tree::Class {
        name: name.into(),
        parent: parent.map(Into::into),
        share,
        queue: is_leaf.then(|| Spec::fifo(10)),
    };
    let concave = Some(ServiceCurve::two_pieces(Some(kbit(320)), Duration::from_ms(10), kbit(100)));
    let classes = vec![
        class("all", None, share(None, 8, line(400)), false),
        class("call", Some("all"), share(concave, 8, None), true),
        class("rest", Some("all"), share(None, 24, None), true),
    ];
    let rules = vec![tree::Rule { matches: Match::Class(0), class: "call".into() }];
    let tree = Named { classes, rules, default: None };
    let spec = ruled(vec![(Match::PureAck, 0, false)], 1, Spec::Hfsc(hfsc::Config { tree }));
    let (configuration, all) = of(&spec, &["call", "rest"]);
    let root = all.iter().position(|line| line.starts_with("try") && line.contains("hfsc default 0x12")).unwrap();
    assert!(all[root].contains("root handle 1a57: stab"), "{}", all[root]);
    let add = "tc class add dev $DEV parent 1a57:";
    let hfsc = [
        "classid 1a57:1 hfsc ls m2 512000bit ul m2 512000bit",
        "1 classid 1a57:10 hfsc ls m2 8000bit ul m2 400000bit",
        "10 classid 1a57:11 hfsc rt m1 320000bit d 10000us m2 100000bit ls m2 8000bit",
        "10 classid 1a57:12 hfsc ls m2 24000bit",
    ];
    for (line, words) in all[root + 1..].iter().zip(hfsc) {
        let gap = if words.starts_with("classid") { " " } else { "" };
        assert_eq!(*line, format!("{add}{gap}{words}"));
    }
    let htb = format!("{add}10 classid 1a57:11 htb rate 100000bit ceil 512000bit burst");
    assert!(all.iter().any(|line| line.starts_with(&htb)), "{all:#?}");
    assert!(all.iter().any(|line| line.contains("classid 1a57:10 htb rate 100000bit ceil 400000bit")), "{all:#?}");
    assert!(all.iter().any(|line| line.contains("classid 1a57:12 htb rate 8000bit ceil 512000bit")), "{all:#?}");
    assert_eq!(configuration.flood.map(|flood| flood.rate), Some(kbit(400)));
}

/// A policy with `share = "97 %"` is a token bucket over rules over a scheduler: the classes stay, below one of 496.64
/// kbit/s (97 % of 512), and the guarantee of HTB without `sch_hfsc` is within it.
#[test]
fn a_scheduler_below_a_token_bucket_keeps_its_classes_at_the_rate_of_the_bucket() {
    let share = hfsc::Share { link_share: Some(ServiceCurve::linear(kbit(100))), ..hfsc::Share::default() };
    let class = |name: &str| tree::Class { name: name.into(), parent: None, share, queue: Some(Spec::fifo(10)) };
    let tree = Named { classes: vec![class("acks"), class("rest")], rules: Vec::new(), default: None };
    let below = ruled(vec![(Match::PureAck, 0, false)], 1, Spec::Hfsc(hfsc::Config { tree }));
    let rate = BitRate::from_bps(496_640).unwrap();
    let config = tbf::Config {
        rate,
        burst: WireBytes::new(1696),
        peak: None,
        largest: ByteCount::new(1500),
        catch_up: Duration::ZERO,
    };
    let (configuration, all) = of(&Spec::Tbf(Over { config, queue: Box::new(below) }), &["acks", "rest"]);
    assert!(all.iter().any(|line| line.ends_with("classid 1a57:1 hfsc ls m2 496640bit ul m2 496640bit")), "{all:#?}");
    for class in
        ["1a57:10 hfsc ls m2 100000bit", "1a57:11 hfsc ls m2 100000bit", "1a57:10 htb rate 8000bit ceil 496640bit"]
    {
        assert!(all.iter().any(|line| line.contains(class)), "{class}: {all:#?}");
    }
    assert_eq!(configuration.left_out, Vec::<String>::new());
    assert_eq!(configuration.flood.map(|flood| flood.rate), Some(rate));
}

/// tc-pie(8) counts gains in sixteenths, and the burst is a constant of the kernel.
#[test]
fn pie_becomes_pie_or_a_short_fifo() {
    let control = pie::Parameters { max_burst: Duration::from_ms(100), ecn: true, ..pie::Parameters::default() };
    let config = pie::Config { control, ..pie::Config::default() };
    let (configuration, all) = of(&Spec::Pie(config), &[]);
    let at = all.iter().position(|line| line.contains(" pie ")).unwrap();
    assert!(
        all[at].ends_with("handle 1a58: pie limit 1000 target 15000us tupdate 15000us alpha 2 beta 20 ecn"),
        "{}",
        all[at]
    );
    assert_eq!(all[at + 2], "tc qdisc add dev $DEV parent 1a57:1 handle 1a58: pfifo limit 10");
    assert!(
        configuration.left_out[0].contains("spares bursts of 150 ms, not of 100 ms"),
        "{:?}",
        configuration.left_out
    );
}

/// Full packets take 32 cells, 1696 bytes: 737 of them are 100 ms of 100 Mbit/s, and three of 512 kbit/s. A limit that
/// is lower stays.
#[test]
fn a_fifo_in_place_of_an_aqm_holds_100_ms_or_ten_packets() {
    let fifo = |rate, packets| {
        let limit = Limit::Packets(PacketCount::new(packets));
        let (_, all) = at_rate(rate, &Spec::DocsisPie(docsis_pie::Config::of(rate, limit)), &[]);
        all.iter().find_map(|line| line.split_once("pfifo limit ")).map(|(_, limit)| limit.to_owned()).unwrap()
    };
    assert_eq!([fifo(kbit(100_000), 10_240), fifo(kbit(512), 10_240), fifo(kbit(512), 5)], ["737", "10", "5"]);
}

/// RFC 8034: 10 ms, 16 ms, and gains of 4/16 and 40/16 Hz, of which the kernel has at most 32/16.
#[test]
fn docsis_pie_becomes_pie_with_its_target_and_period() {
    let limit = Limit::Packets(PacketCount::new(500));
    let (configuration, all) = of(&Spec::DocsisPie(docsis_pie::Config::of(kbit(512), limit)), &[]);
    let at = all.iter().position(|line| line.contains(" pie ")).unwrap();
    assert!(all[at].ends_with("pie limit 500 target 10000us tupdate 16000us alpha 4 beta 32 noecn"), "{}", all[at]);
    assert_eq!(all[at + 2], "tc qdisc add dev $DEV parent 1a57:1 handle 1a58: pfifo limit 10");
    assert!(configuration.left_out[0].contains("DOCSIS-PIE"), "{:?}", configuration.left_out);
    assert!(format!("{:?}", configuration.steps).contains("(\"tupdate\", Ticks(16000))"), "{configuration:?}");
}

/// `sfq_change` of Linux: 127 packets of a flow, and as many flows as `flows` says, or else 128.
#[test]
fn sfq_has_the_numbers_that_the_kernel_makes_of_it() {
    let told = |limit, depth, count| {
        let flows = FlowKeys::Buckets { count: core::num::NonZeroU32::new(count).unwrap(), seed: 0 };
        let (limit, depth) = (PacketCount::new(limit), PacketCount::new(depth));
        let (per, quantum, perturb, drop) = (Per::Flow, WireBytes::new(1696), Duration::ZERO, Overflow::Tail);
        let queue = Spec::Sfq(sfq::Config { flows, per, quantum, perturb, limit, depth, drop });
        let (configuration, all) = of(&queue, &[]);
        let words = all.iter().find_map(|line| line.split_once(" sfq ")).unwrap().1.to_owned();
        let remarks = configuration.left_out.iter().map(|remark| remark.split_once("at most ").unwrap().1);
        (words, remarks.collect::<Vec<_>>().join(", "))
    };
    let sfq = |limit, depth, flows, divisor| {
        format!("limit {limit} depth {depth} quantum 1696 flows {flows} divisor {divisor}")
    };
    let remark = "127 packets of a flow, not 300".to_owned();
    assert_eq!(told(20_000, 300, 1000), (sfq(20_000, 127, 1000, 1024), remark));
    assert_eq!(told(300, 50, 4), (sfq(200, 50, 4, 4), "200 packets, not 300".to_owned()));
    assert_eq!(told(1000, 127, 65_536), (sfq(1000, 127, 65_408, 65_536), String::new()));
}

/// tc-fq_pie(8), and tc-flow(8) for hosts; FQ-CoDel with a threshold for ECT(1) alone.
#[test]
fn fair_queues_of_hosts_are_divided_by_the_flow_classifier() {
    let fq_pie = fq_pie::Config { per: Per::Source, ..fq_pie::Config::default() };
    let (_, all) = of(&Spec::FqPie(fq_pie), &[]);
    let at = all.iter().position(|line| line.contains("fq_pie")).unwrap();
    assert!(
        all[at].ends_with(
            "fq_pie limit 10240 quantum 1500 memory_limit 32000000 ecn_prob 10 target 15000us tupdate 15000us alpha 2 \
             beta 20 noecn"
        ),
        "{}",
        all[at]
    );
    let filter = "try tc filter add dev $DEV parent 1a58: protocol all prio 1 handle 1 flow hash keys src divisor 1024";
    assert_eq!(all[at + 1], filter);
    assert!(all.contains(&"tc qdisc add dev $DEV parent 1a57:1 handle 1a58: pfifo limit 10".to_owned()), "{all:#?}");

    let (delay, selector) = (Duration::from_ms(1), Selector { value: 0x01, mask: 0x03 });
    let ce_threshold = Some(CeThreshold { delay, selector });
    let (target, interval) = (Duration::from_ms(50), Duration::from_ms(200));
    let fq_codel = fq_codel::Config { ce_threshold, target, interval, ..fq_codel::Config::default() };
    let (_, all) = of(&Spec::FqCodel(fq_codel), &[]);
    let line = all.iter().find(|line| line.contains("fq_codel")).unwrap();
    assert!(line.ends_with("noecn ce_threshold 1000us ce_threshold_selector 0x01/0x03"), "{line}");
    assert!(all.iter().all(|line| !line.contains("flow hash")), "{all:#?}");
}

/// Each substitute with its consequences: ten packets of 32 cells take 265 ms at 512 kbit/s, and one and a half take
/// 39.75 ms.
/// The target is a difference of FQ-CoDel, not of the FIFO in its place.
#[test]
fn what_a_kernel_lacks_is_told_with_its_consequences() {
    fn choices<'a>(steps: &'a [Step], into: &mut Vec<(&'a str, &'a [String])>) {
        for step in steps {
            if let Step::Choice { first, lacking, otherwise, .. } = step {
                into.push((lacking, &first.remarks));
                choices(otherwise, into);
            }
        }
    }
    let lacking = |queue: &Spec| {
        let (configuration, _) = of(queue, &[]);
        let mut found = Vec::new();
        choices(&configuration.steps, &mut found);
        let queues = found.iter().filter(|(lacking, _)| lacking.contains("in its place"));
        let told: Vec<_> = queues.map(|(lacking, remarks)| ((*lacking).to_owned(), remarks.to_vec())).collect();
        (told, configuration.left_out)
    };
    let (told, left_out) = lacking(&Spec::FqCodel(fq_codel::Config::default()));
    let [(words, remarks)] = &told[..] else { panic!("{told:?}") };
    let consequence = "no AQM and no flow isolation, delays up to 265 ms at the full rate";
    assert_eq!(words, &format!("fq_codel: pfifo limit 10 in its place ({consequence})"));
    let [remark] = &remarks[..] else { panic!("{remarks:?}") };
    assert!(remark.contains("CoDel's target is 39.75 ms, one and a half packets"), "{remark}");
    assert!(left_out.contains(remark), "{left_out:?}");
    let filters = lastmile_queueing::cake::Config {
        ack_filter: Some(lastmile_queueing::ack::cake::Mode::Normal),
        ..Default::default()
    };
    // CAKE of a class is more than its ACK filter.
    let class = |queue| ClassSpec { matches: Match::Any, queue };
    let classes = vec![class(Spec::Cake(filters)), class(Spec::fifo(10))];
    let (told, _) = lacking(&Spec::Priority(priority::Config { classes }));
    assert!(told.iter().any(|(words, _)| words.starts_with("cake") && words.contains("no flow isolation")), "{told:?}");
    let (told, _) = lacking(&Spec::Pie(pie::Config::default()));
    assert_eq!(told[0].0, "pie: pfifo limit 10 in its place (no AQM, delays up to 265 ms at the full rate)");
}

/// tc-dualpi2(8) counts gains in hertz: 41/256 and 819/256.
#[test]
fn dualpi2_becomes_dualpi2_or_a_short_fifo() {
    let predicted = Some(BitRate::from_mbit_per_s(1));
    let config = dualpi2::Config { queue_protection: true, nqb: true, predicted, ..dualpi2::Config::default() };
    let (configuration, all) = of(&Spec::DualPi2(config), &[]);
    let at = all.iter().position(|line| line.contains(" dualpi2 ")).unwrap();
    assert!(
        all[at].ends_with(
            "dualpi2 limit 10000 target 15000us tupdate 16000us alpha 0.160156 beta 3.199219 coupling_factor 2 \
             step_thresh 1000us min_qlen_step 0 classic_protection 10%"
        ),
        "{}",
        all[at]
    );
    assert_eq!(all[at + 2], "tc qdisc add dev $DEV parent 1a57:1 handle 1a58: pfifo limit 10");
    assert!(configuration.left_out[0].contains("does not protect"), "{:?}", configuration.left_out);
    assert!(configuration.left_out[1].contains("NQB"), "{:?}", configuration.left_out);
    assert!(configuration.left_out[2].contains("predicted wait"), "{:?}", configuration.left_out);
}

/// 512 000 / (3 * 424) packets of 69 bytes, 26/27 of that with OAM cells. Over PTM 578 bytes are 600 of
/// frame, which are 609.375 on the wire in the mean and 610 by themselves.
#[test]
fn a_flood_has_the_rate_of_its_cells_or_blocks() {
    let flood = |rate, layer, by_cake| Flood { rate, layer, largest: ByteCount::new(1500), by_cake };
    let per_s = |flood: Flood, size| flood.packets_per_s(ByteCount::new(size));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
    let atm = preset::BRIDGED_VCMUX_FCS.link;
    assert!(near(per_s(flood(kbit(512), atm, false), 69), 512_000.0 / 1272.0));
    let oam = atm.with_oam(lastmile_linklayer::OamShare::I_432).unwrap();
    assert!(near(per_s(flood(kbit(2700), oam, false), 69), 2_600_000.0 / 1272.0));
    let ptm = preset::BRIDGED_PTM.link;
    assert!(near(per_s(flood(kbit(9750), ptm, false), 578), 2000.0));
    assert!(near(per_s(flood(kbit(9760), ptm, true), 578), 2000.0));
}

/// The root of the device stays as it is; received packets are shaped on their way through the intermediate device.
#[test]
fn a_download_alone_leaves_the_root_of_the_device() {
    let (queue, layer) = (Spec::Cake(lastmile_queueing::cake::Config::default()), preset::BRIDGED_VCMUX_FCS.link);
    let configuration = Configuration::new(&Request {
        name: "test",
        about: "",
        notes: vec![],
        up: None,
        down: Some(Direction { rate: kbit(2000), layer, queue: &queue }),
        classes: &[],
        header: Device::Ethernet,
        largest: ByteCount::new(1500),
    });
    let mut all = Vec::new();
    commands(&configuration.steps, &mut all);
    assert_eq!((configuration.flood, configuration.has_ifb), (None, true));
    assert_eq!(configuration.about[0], "The upstream is not shaped.");
    assert!(all.iter().all(|command| !command.contains("dev $DEV root")), "{all:#?}");
    assert!(
        all.iter()
            .any(|command| command.starts_with("tc qdisc add dev $IFB root handle 1a57: cake bandwidth 2000000bit")),
        "{all:#?}"
    );
}

/// Half-duplex gigabit Ethernet has frames of at least 520 bytes with its preamble; tc-cake(8) takes 256.
#[test]
fn cake_has_a_remark_on_bytes_that_it_does_not_count() {
    let layer = LinkLayer::new(38, Framing::None).unwrap().with_min_frame(520).unwrap();
    let config = lastmile_queueing::cake::Config { link_layer: Some(layer), ..Default::default() };
    let (configuration, all) = of(&Spec::Cake(config), &[]);
    assert!(all[0].ends_with(" noatm overhead 38 mpu 256"), "{all:#?}");
    let [remark] = &configuration.left_out[..] else { panic!("{:?}", configuration.left_out) };
    assert!(remark.starts_with("CAKE takes a minimum frame of at most 256 bytes, not 520"), "{remark}");
}
