//! What a file becomes.

use std::path::Path;

use lastmile_linklayer::{OamShare, preset};
use lastmile_model::{Echo, OpenedBy, Source};
use lastmile_packet::Protocol;
use lastmile_queueing::ack::cake::{Mode, Rules};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{clamp, collapsing, filter, pacing, sad};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::meter::policer::{Action, Coming, Remark, Rule, Then};
use lastmile_queueing::meter::{self, car, police, policer, tbf, trtcm};
use lastmile_queueing::sched::custom::{Count, Excess};
use lastmile_queueing::sched::{cbq, htb, priority, tree};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, ack, cake, fifo};
use lastmile_scenario::{Scenario, tcp_of};
use lastmile_tcp::{ByteCounting, Config, InitialWindow, Variant, WindowScale};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Ratio, WireBytes};

use crate::{LINE, parse, parse_with};

fn demo(overrides: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/upload-starves-download.toml");
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load(&path, &overrides).unwrap_or_else(|report| panic!("{report}"))
}

fn fifo_206_kb() -> Spec {
    Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(206_000)), drop: Overflow::Tail })
}

#[test]
fn the_demo_is_the_line_that_it_says() {
    let scenario = demo(&[]);
    let network = scenario.network();
    assert_eq!(scenario.name(), "An upload starves the download");
    assert_eq!((network.duration, network.seed), (Duration::from_s(180), 1));
    assert_eq!(network.record.interval, Some(Duration::from_ms(100)));
    let names: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["client", "cpe", "dslam", "gateway", "server"]);
    let access = scenario.access().unwrap();
    let (down, up) = (&network.links[access.down_link], &network.links[access.up_link]);
    assert_eq!((down.name.as_str(), up.name.as_str()), ("down", "up"));
    assert_eq!((names[down.from], names[down.to]), ("dslam", "cpe"));
    assert_eq!((names[up.from], names[up.to]), ("cpe", "dslam"));
    assert_eq!((down.rate, up.rate), (Some(BitRate::from_mbit_per_s(2)), Some(BitRate::from_kbit_per_s(512))));
    assert_eq!((down.link_layer, up.link_layer), (preset::BRIDGED_VCMUX_FCS.link, preset::BRIDGED_VCMUX_FCS.link));
    assert_eq!((down.queue.clone(), up.queue.clone()), (Spec::fifo(100), fifo_206_kb()));
    let [download, upload, ping] = &network.traffic[..] else { panic!("three traffics") };
    let Source::Bulk { sender, opened_by, bytes, .. } = &download.source else { panic!("a transfer") };
    assert_eq!((sender.variant, sender.receive_window), (Variant::Cubic, ByteCount::new(65_536)));
    assert_eq!((*opened_by, *bytes), (OpenedBy::Receiver, None));
    assert_eq!((names[download.from], names[download.to]), ("server", "client"));
    assert_eq!((names[upload.from], names[upload.to]), ("client", "server"));
    assert_eq!(
        (upload.start, upload.stop),
        (Instant::ZERO + Duration::from_s(60), Some(Instant::ZERO + Duration::from_s(120)))
    );
    assert!(matches!(upload.source, Source::Bulk { opened_by: OpenedBy::Sender, .. }));
    assert!(
        matches!(ping.source, Source::Ping { interval, size, .. } if interval == Duration::from_ms(200) && size == ByteCount::new(84))
    );
}

/// The probe that a comparison adds: as long as the file's ping, every 200 ms and never more than 1 %
/// of the upstream: 84 bytes without any framing are 672 bits, 1 % of 64 kbit/s in 1.05 s.
#[test]
fn a_probe_is_added_that_no_policy_knows_and_that_costs_little() {
    let parse = |more: &str| parse(&format!("{LINE}{more}")).unwrap().with_probe().network();
    let ping = "[[traffic]]\nkind = \"ping\"\nstart = \"1 s\"\n";
    let network = parse(ping);
    let probe = network.traffic.last().unwrap();
    assert_eq!((probe.name.as_str(), probe.dscp, probe.start), ("probe", 0, Instant::ZERO + Duration::from_s(1)));
    assert!(matches!(probe.source, Source::Ping { echo: Echo::Udp, .. }));
    let own = parse("[[traffic]]\nkind = \"ping\"\nprotocol = \"udp\"\n");
    assert_eq!(own.traffic.iter().filter(|traffic| matches!(traffic.source, Source::Ping { .. })).count(), 1);
    let network = parse_with(&format!("{LINE}{ping}"), &["access.up.rate=64 kbit/s"]).unwrap().with_probe().network();
    let up = network.links.iter().find(|link| link.name == "up").unwrap();
    let Source::Ping { interval, size, .. } = network.traffic.last().unwrap().source else { panic!("a probe") };
    assert_eq!(interval, Duration::from_ms(1050));
    assert_eq!(up.rate.unwrap().time_for(up.link_layer.on_wire(size)) * 100, interval);
}

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
    assert_eq!(scenario.network().links[scenario.access().unwrap().up_link].queue, sad);
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
        assert!(
            matches!(cake, Spec::CakeAckFilter(ack::cake::Config { limit, rules, .. }) if held(limit) && rules == Rules { mode: expected, exempt: Match::Never })
        );
    }
    let Spec::Priority(priority::Config { classes }) = queue("access.up.queue.kind=priority") else {
        panic!("a scheduler")
    };
    assert_eq!(classes.iter().map(|class| &class.matches).collect::<Vec<_>>(), [&Match::PureAck, &Match::Any]);
    assert!(classes.iter().all(|class| class.queue == fifo_206_kb()));
}

/// Each value of the removed key has one that replaces it, and each replacement reads.
#[test]
fn the_removed_key_remedy_names_what_replaces_it() {
    for (value, policy, queue) in [
        ("none", None, None),
        ("sad", Some("sad"), Some("{ kind = \"sad\", limit = ... }")),
        ("ack-filter", Some("ack-filter"), Some("{ kind = \"ack-filter\", limit = ... }")),
        ("ack-priority", Some("ack-priority"), Some("{ kind = \"priority\", limit = ... }")),
        (
            "sad-priority",
            Some("sad-priority"),
            Some(
                "{ kind = \"priority\", classes = [{ match = { pure_ack = true }, queue = { kind = \"sad\", limit = \
                 ... } }, { limit = ... }] }",
            ),
        ),
        ("prayer", None, None),
    ] {
        let text = LINE.replace("[access]\n", &format!("[access]\nremedy = \"{value}\"\n"));
        let report = parse(&text).expect_err("it is refused");
        let [only] = report.findings() else { panic!("{report}") };
        assert_eq!(only.headline(), "error: x.toml:3:1: unknown key \"remedy\" in [access]");
        let hint = only.hint.clone().unwrap();
        if let Some(policy) = policy {
            assert!(hint.contains(&format!("policy = \"{policy}\"")), "{hint}");
            parse(&LINE.replace("[access]\n", &format!("[access]\npolicy = \"{policy}\"\n"))).unwrap();
        }
        if let Some(queue) = queue {
            assert!(hint.contains(&format!("queue = {queue} in [access.up]")), "{hint}");
            let queue = queue.replace("...", "\"206 kB\"");
            parse(&LINE.replace("\"512 kbit/s\"", &format!("\"512 kbit/s\", queue = {queue}"))).unwrap();
        }
    }
    let report = parse_with(LINE, &["access.remedy=sad"]).expect_err("it is refused");
    assert_eq!(report.findings()[0].headline(), "error: --set access.remedy=sad: unknown key \"remedy\" in [access]");
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
         { meter = { kind = \"police\", rate = \"10 kbit/s\", burst = \"3000 wire bytes\" }, exceed = \"set-dscp-continue\", exceed_dscp = 8 }, \
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
        ..cake::Config::default()
    };
    let keys = ", bandwidth = \"480 kbit/s\", encapsulation = \"pppoa-vcmux\", diffserv = \"diffserv4\", isolation \
                = \"dual-srchost\", \
        rtt = \"50 ms\", memory = \"500 kB\", ack_filter = \"aggressive\"";
    assert_eq!(queue(keys), Spec::Cake(config));
}

/// 1500 bytes and 40 bytes over the demo's line: 32 and 2 cells (28 + 40 is 74 at least, 2 cells).
#[test]
fn the_base_round_trip_counts_transmission_propagation_and_processing() {
    let text = "duration = \"1 s\"\n[access]\nencapsulation = \"bridged-vcmux-fcs\"\n\
        down = { rate = \"2 Mbit/s\", delay = \"4 ms\" }\nup = { rate = \"512 kbit/s\", delay = \"4 ms\" }\n\
        lan = { encapsulation = \"ip\", rate = \"100 Mbit/s\" }\naggregation = { encapsulation = \"ip\" }\n\
        backbone = { encapsulation = \"ip\", delay = \"10 ms\" }\nprocessing = { dslam = \"1 ms\", client = \"2 \
                ms\" }\n\
        [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    let scenario = parse(text).unwrap();
    let rtt = scenario.base_rtt(0, ByteCount::new(1500), ByteCount::new(40)).unwrap();
    let propagation = 2 * (4 + 10) + 2 + 1 + 1; // the client takes the data; the DSLAM forwards data and ACK
    let line_ns = 32 * 424 * 500 + 2 * 424 * 1_000_000 / 512;
    let lan_ns = (1500 + 40) * 80;
    let core_ns = 2 * (1500 + 40) * 8;
    let expected = Duration::from_ms(propagation) + Duration::from_ns(line_ns + lan_ns + core_ns);
    assert_eq!(rtt.as_us(), expected.as_us());
    let (there, back) = scenario.ways(0);
    let names = |way: Option<Vec<usize>>| -> Vec<String> {
        way.unwrap().into_iter().map(|link| scenario.network_ref().links[link].name.clone()).collect()
    };
    assert_eq!(names(there), ["server-gateway", "gateway-dslam", "down", "cpe-client"]);
    assert_eq!(names(back), ["client-cpe", "up", "dslam-gateway", "gateway-server"]);
}

#[test]
fn what_a_direction_leaves_out_is_as_the_access_table_says() {
    let text = "duration = \"1 s\"\n[access]\nencapsulation = \"ipoa-llcsnap\"\noam = 27\nheader_compression = \"vj\"\n\
        down = { rate = \"2 Mbit/s\", encapsulation = \"ethernet\", header_compression = \"none\" }\n\
        up = { rate = \"512 kbit/s\", vj_slots = 64 }\n";
    let scenario = parse(text).unwrap();
    let access = scenario.access().unwrap();
    assert_eq!(access.up.link_layer, preset::IPOA_LLCSNAP.link.with_oam(OamShare::I_432).unwrap());
    assert_eq!(access.up.compression, Compression::Rfc1144 { slots: 64 });
    assert_eq!(access.down.link_layer, preset::ETHERNET.link);
    assert_eq!(access.down.compression, Compression::None);
    assert_eq!(access.up.config().rate, Some(BitRate::from_kbit_per_s(512)));
}

#[test]
fn tcp_keys_override_the_files_which_override_the_defaults() {
    let text = format!(
        "{LINE}[[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\ndscp = 8\ntcp = {{ mss = \"512 B\", byte_counting \
         = false, window_scale = 3 }}\n\
         [[traffic]]\nkind = \"persistent\"\ndirection = \"down\"\n\
         [tcp]\nvariant = \"tahoe\"\nmss = \"1024 B\"\ninitial_window = \"rfc3390\"\n"
    );
    let scenario = parse(&text).unwrap();
    let network = scenario.network();
    let own = tcp_of(&network.traffic[0]).unwrap();
    let expected = Config {
        variant: Variant::Tahoe,
        mss: 512,
        initial_window: InitialWindow::Rfc3390,
        byte_counting: ByteCounting::PerAck,
        window_scale: WindowScale::Shift(3),
        dscp: 8,
        receive_window: ByteCount::new(15 << 18),
        autotune: true,
        tso_deferral: true,
        delayed_ack: Duration::from_ms(200),
        quick_acks: true,
        read_delay: Duration::from_us(40),
        timestamps: true,
        ..Config::default()
    };
    assert_eq!(*own, expected);
    assert_eq!(tcp_of(&network.traffic[1]).unwrap().mss, 1024);
}

#[test]
fn links_go_both_ways_and_back_may_differ() {
    let text = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\nframing = \"atm\"\n\
        back = { rate = \"1 Mbit/s\", queue = { limit = \"50 cells\" } }\n[[link]]\nname = \"core\"\nfrom = \"b\"\nto = \"c\"\n\
        [[node]]\nname = \"b\"\nprocessing = \"1 ms\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\n";
    let network = parse(text).unwrap().network();
    let names: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["a-b", "b-a", "core", "core-back"]);
    let [there, back, core, _] = &network.links[..] else { panic!("four links") };
    assert_eq!((there.rate, back.rate, core.rate), (BitRate::from_bps(8_000_000), BitRate::from_bps(1_000_000), None));
    assert_eq!((there.link_layer, back.link_layer), (preset::AAL5.link, preset::AAL5.link));
    assert_eq!(there.queue, Spec::fifo(100));
    assert!(matches!(back.queue, Spec::Fifo(fifo::Config { limit: Limit::Cells(_), .. })));
    assert_eq!(network.nodes[there.to].processing, Duration::from_ms(1));
    assert_eq!(network.traffic[0].direction, "a to c");
}

#[test]
fn one_way_links_may_form_a_ring() {
    let link = |from, to| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\none_way = true\n");
    let ring = format!("duration = \"1 s\"\n{}{}{}", link("a", "b"), link("b", "c"), link("c", "a"));
    assert_eq!(parse(&ring).unwrap().network().links.len(), 3);
}

#[test]
fn sources_get_their_rates_and_intervals() {
    let text = format!(
        "{LINE}[[traffic]]\nkind = \"onoff\"\ndirection = \"up\"\nrate = \"100 kbit/s\"\non = \"100 ms\"\noff = \"300 ms\"\n\
         [[traffic]]\nkind = \"blast\"\ndirection = \"down\"\nrate = \"3 packets/s\"\n\
         [[traffic]]\nkind = \"blast\"\ndirection = \"down\"\nrate = \"8 kbit/s\"\nsize = \"100 B\"\n\
         [[traffic]]\nkind = \"voice\"\ndirection = \"up\"\n[[traffic]]\nkind = \"poisson\"\ndirection = \"up\"\nrate = \"1 kbit/s\"\n"
    );
    let network = parse(&text).unwrap().network();
    let [onoff, three, eight, voice, poisson] = &network.traffic[..] else { panic!("five") };
    assert!(matches!(onoff.source, Source::OnOff { peak, .. } if peak == BitRate::from_kbit_per_s(400)));
    assert!(
        matches!(three.source, Source::Constant { interval, kind: "blast", .. } if interval == Duration::from_ps(333_333_333_333))
    );
    assert!(matches!(eight.source, Source::Constant { interval, .. } if interval == Duration::from_ms(100)));
    assert!(
        matches!(voice.source, Source::Constant { interval, size, kind: "voice" } if interval == Duration::from_ms(20) && size == ByteCount::new(200))
    );
    assert!(matches!(poisson.source, Source::Poisson { size, .. } if size == ByteCount::new(1500)));
    let names: Vec<&str> = network.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["onoff", "blast", "blast2", "voice", "poisson"]);
}

#[test]
fn an_application_writes_full_segments_unless_told_otherwise() {
    let text = format!(
        "{LINE}[[traffic]]\nkind = \"writes\"\ndirection = \"down\"\nrate = \"1.966 Mbit/s\"\ntcp = {{ mss = \"1024 \
         B\" }}\n\
         [[traffic]]\nkind = \"writes\"\ndirection = \"up\"\nrate = \"8 kbit/s\"\nsize = \"1 MB\"\n"
    );
    let network = parse(&text).unwrap().network();
    let [down, up] = &network.traffic[..] else { panic!("two") };
    let Source::Writes { rate, size, opened_by, .. } = &down.source else { panic!("writes") };
    assert_eq!((*rate, *size), (BitRate::from_kbit_per_s(1966), ByteCount::new(1024)));
    assert_eq!(*opened_by, OpenedBy::Receiver, "the client opens");
    assert!(
        matches!(up.source, Source::Writes { size, opened_by: OpenedBy::Sender, .. } if size == ByteCount::new(1_000_000))
    );
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

#[test]
fn a_scenario_without_a_name_has_its_files() {
    let text = format!("{LINE}[[traffic]]\nkind = \"ping\"\n");
    assert_eq!(Scenario::parse("some/where/line-3.toml", &text, &[]).unwrap().name(), "line-3");
}

#[test]
fn a_file_may_be_odd_without_being_wrong() {
    let text = format!("{LINE}[[traffic]]\nkind = \"ping\"\nstart = \"10 s\"\n");
    assert_eq!(
        parse(&text).unwrap().warnings().to_string(),
        "warning: x.toml:7:9: traffic.0.start: 10 s is past the end of the run, so it never starts\n  |\n7 | start \
         = \"10 s\"\n  |         ^^^^^^\nhint: the run lasts 10 s"
    );
    let scenario = parse_with(&text, &["traffic.0.start=1s"]).unwrap();
    assert!(scenario.warnings().is_empty());
}

/// A file for `emulate` alone.
#[test]
fn a_line_alone_needs_no_duration() {
    let scenario = parse(&LINE.replace("duration = \"10 s\"\n", "")).unwrap();
    let config = scenario.access().unwrap().up.config();
    assert_eq!((config.rate, config.delay, config.loss_ppb), (Some(BitRate::from_kbit_per_s(512)), Duration::ZERO, 0));
}

#[test]
fn a_million_flows_are_one_traffic() {
    let text = format!("{LINE}[[traffic]]\nkind = \"persistent\"\ndirection = \"down\"\ncount = 1000000\n");
    assert_eq!(parse(&text).unwrap().network().traffic[0].count, 1_000_000);
}

/// The client opens a download, and an upload too; what is not named is left to the simulator.
#[test]
fn flows_have_the_names_that_the_file_gives_them() {
    let web = "kind = \"bulk\"\nclient = \"192.168.1.7\"\nserver = \"203.0.113.80\"\nserver_port = 80\n\
               client_port = 3000\nfirst_payload = \"GET /\"\nfirst_answer = \"HTTP/1.1 200 OK\"";
    let names = |direction: &str| {
        let text = format!("{LINE}[[traffic]]\ndirection = \"{direction}\"\n{web}");
        parse(&text).unwrap().network().traffic[0].names.clone()
    };
    let (down, up) = (names("down"), names("up"));
    assert_eq!((&down.from, &down.to), (&up.to, &up.from));
    assert_eq!((down.to.address, down.to.port), (Some("192.168.1.7".parse().unwrap()), Some(3000)));
    assert_eq!((down.from.port, &down.from.first_payload[..]), (Some(80), &b"HTTP/1.1 200 OK"[..]));
    assert_eq!(down.to.first_payload, b"GET /");
    let plain = parse(&format!("{LINE}[[traffic]]\nkind = \"ping\"")).unwrap().network();
    assert_eq!(plain.traffic[0].names, lastmile_model::Names::default());
}

/// Each class with its parent, its share and its rule; the parent of others has no queue.
#[test]
fn classes_of_a_tree_are_those_of_the_file() {
    let queue = |queue: &str| {
        let line = LINE.replace("up = { rate = \"512 kbit/s\" }", "[access.up]\nrate = \"512 kbit/s\"");
        let text = format!("{line}[[traffic]]\nkind = \"ping\"\n[access.up.queue]\n{queue}");
        let scenario = parse(&text).unwrap_or_else(|report| panic!("{report}"));
        let access = scenario.access().unwrap();
        scenario.network().links[access.up_link].queue.clone()
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
