//! The networks that files describe.

use std::path::Path;

use lastmile_linklayer::{OamShare, preset};
use lastmile_model::{Echo, OpenedBy, Source, Steady};
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, fifo};
use lastmile_quic::{AckFrequency, Config as QuicConfig, CongestionControl};
use lastmile_scenario::Scenario;
use lastmile_tcp::{AckConfig, ByteCounting, Config, CongestionConfig, InitialWindow, Variant, WindowScale};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

use crate::{LINE, parse, parse_with};

pub(crate) fn demo(overrides: &[&str]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/upload-starves-download.toml");
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    Scenario::load(&path, &overrides).unwrap_or_else(|report| panic!("{report}"))
}

pub(crate) fn fifo_206_kb() -> Spec {
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
    assert_eq!((down.hop.name.as_str(), up.hop.name.as_str()), ("down", "up"));
    assert_eq!((names[down.from], names[down.to]), ("dslam", "cpe"));
    assert_eq!((names[up.from], names[up.to]), ("cpe", "dslam"));
    assert_eq!(
        (down.hop.line.rate, up.hop.line.rate),
        (Some(BitRate::from_mbit_per_s(2)), Some(BitRate::from_kbit_per_s(512)))
    );
    assert_eq!(
        (down.hop.line.link_layer, up.hop.line.link_layer),
        (preset::BRIDGED_VCMUX_FCS.link, preset::BRIDGED_VCMUX_FCS.link)
    );
    assert_eq!((down.hop.queue.clone(), up.hop.queue.clone()), (Spec::fifo(100), fifo_206_kb()));
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
    assert!(matches!(
        ping.source,
        Source::Ping { interval, size, .. } if interval == Duration::from_ms(200) && size == ByteCount::new(84)
    ));
}

/// The probe that a comparison adds: as long as the file's ping, every 200 ms and never more than 1 %
/// of the upstream: 84 bytes without any framing are 672 bits, 1 % of 64 kbit/s in 1.05 s.
#[test]
fn a_probe_is_added_that_no_policy_knows_and_that_costs_little() {
    let parse = |more: &str| parse(&format!("{LINE}{more}")).unwrap().with_probe().network();
    let ping = "[[traffic]]\nkind = \"ping\"\nstart = \"1 s\"\n";
    let network = parse(ping);
    let probe = network.traffic.last().unwrap();
    assert_eq!((probe.name.as_str(), probe.ip.dscp, probe.start), ("probe", 0, Instant::ZERO + Duration::from_s(1)));
    assert!(matches!(probe.source, Source::Ping { echo: Echo::Udp, .. }));
    let own = parse("[[traffic]]\nkind = \"ping\"\nprotocol = \"udp\"\n");
    assert_eq!(own.traffic.iter().filter(|traffic| matches!(traffic.source, Source::Ping { .. })).count(), 1);
    let network = parse_with(&format!("{LINE}{ping}"), &["access.up.rate=64 kbit/s"]).unwrap().with_probe().network();
    let up = network.links.iter().find(|link| link.hop.name == "up").unwrap();
    let Source::Ping { interval, size, .. } = network.traffic.last().unwrap().source else { panic!("a probe") };
    assert_eq!(interval, Duration::from_ms(1050));
    assert_eq!(up.hop.line.rate.unwrap().time_for(up.hop.line.link_layer.on_wire(size)) * 100, interval);
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
        way.unwrap().into_iter().map(|link| scenario.network_ref().links[link].hop.name.clone()).collect()
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
    assert_eq!(access.up.line.link_layer, preset::IPOA_LLCSNAP.link.with_oam(OamShare::I_432).unwrap());
    assert_eq!(access.up.line.compression, Compression::Rfc1144 { slots: 64 });
    assert_eq!(access.down.line.link_layer, preset::ETHERNET.link);
    assert_eq!(access.down.line.compression, Compression::None);
    assert_eq!(access.up.line.rate, Some(BitRate::from_kbit_per_s(512)));
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
    let own = network.traffic[0].tcp().next().unwrap();
    let expected = Config {
        variant: Variant::Tahoe,
        mss: 512,
        congestion: CongestionConfig {
            initial_window: InitialWindow::Rfc3390,
            byte_counting: ByteCounting::PerAck,
            tso_deferral: true,
            ..CongestionConfig::default()
        },
        window_scale: WindowScale::Shift(3),
        dscp: 8,
        receive_window: ByteCount::new(15 << 18),
        autotune: true,
        acks: AckConfig {
            delayed_ack: Duration::from_ms(200),
            quick_acks: true,
            read_delay: Duration::from_us(40),
            ..AckConfig::default()
        },
        timestamps: true,
        ..Config::default()
    };
    assert_eq!(*own, expected);
    assert_eq!(network.traffic[1].tcp().next().unwrap().mss, 1024);
}

#[test]
fn a_transfer_over_quic_has_its_settings_and_packets_of_the_path() {
    let text = format!(
        "{LINE}[[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\nbytes = \"1 MB\"\ndscp = 8\ntransport = \"quic\"\n\
         quic = {{ congestion = \"bbr\", max_ack_delay = \"10 ms\", connection_id = \"0 B\", \
         receive_window = \"1 MiB\", ack_frequency = {{ every = 10, max_delay = \"50 ms\", reordering = 3 }} }}\n\
         [[traffic]]\nkind = \"persistent\"\ndirection = \"down\"\ntransport = \"quic\"\n\
         [tcp]\nvariant = \"tahoe\"\n"
    );
    let scenario = parse(&text).unwrap();
    let network = scenario.network();
    let Source::Quic { quic, bytes, request, opened_by } = &network.traffic[0].source else { panic!("{network:?}") };
    let request_of_acks = AckFrequency { every: 10, max_delay: Some(Duration::from_ms(50)), reordering: 3 };
    let expected = QuicConfig {
        congestion: CongestionControl::Bbr,
        datagram: 1452,
        connection_id: 0,
        receive_window: ByteCount::new(1 << 20),
        max_ack_delay: Duration::from_ms(10),
        ack_frequency: Some(request_of_acks),
    };
    assert_eq!((quic.as_ref(), *bytes, *request, *opened_by), (&expected, Some(1_000_000), 0, OpenedBy::Sender));
    let Source::Quic { quic, bytes, opened_by, .. } = &network.traffic[1].source else { panic!("{network:?}") };
    assert_eq!((quic.as_ref(), *bytes, *opened_by), (&QuicConfig::default(), None, OpenedBy::Receiver));
    assert_eq!(network.traffic[0].tcp().next(), None);
    // A path of 1400 bytes leaves 1372 for a datagram.
    let narrow = LINE.replace("[access]\n", "[access]\nmtu = \"1400 B\"\n");
    let text = format!("{narrow}[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ntransport = \"quic\"\n");
    let scenario = parse(&text).unwrap();
    let Source::Quic { quic, .. } = &scenario.network_ref().traffic[0].source else { panic!("QUIC") };
    assert_eq!(quic.datagram, 1372);
}

#[test]
fn links_go_both_ways_and_back_may_differ() {
    let text = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\nframing = \"atm\"\n\
        back = { rate = \"1 Mbit/s\", queue = { limit = \"50 cells\" } }\n\
        [[link]]\nname = \"core\"\nfrom = \"b\"\nto = \"c\"\n\
        [[node]]\nname = \"b\"\nprocessing = \"1 ms\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\n";
    let network = parse(text).unwrap().network();
    let names: Vec<&str> = network.links.iter().map(|link| link.hop.name.as_str()).collect();
    assert_eq!(names, ["a-b", "b-a", "core", "core-back"]);
    let [there, back, core, _] = &network.links[..] else { panic!("four links") };
    assert_eq!(
        (there.hop.line.rate, back.hop.line.rate, core.hop.line.rate),
        (BitRate::from_bps(8_000_000), BitRate::from_bps(1_000_000), None)
    );
    assert_eq!((there.hop.line.link_layer, back.hop.line.link_layer), (preset::AAL5.link, preset::AAL5.link));
    assert_eq!(there.hop.queue, Spec::fifo(100));
    assert!(matches!(back.hop.queue, Spec::Fifo(fifo::Config { limit: Limit::Cells(_), .. })));
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
        "{LINE}[[traffic]]\nkind = \"onoff\"\ndirection = \"up\"\n\
         rate = \"100 kbit/s\"\non = \"100 ms\"\noff = \"300 ms\"\n\
         [[traffic]]\nkind = \"blast\"\ndirection = \"down\"\nrate = \"3 packets/s\"\n\
         [[traffic]]\nkind = \"blast\"\ndirection = \"down\"\nrate = \"8 kbit/s\"\nsize = \"100 B\"\n\
         [[traffic]]\nkind = \"voice\"\ndirection = \"up\"\n\
         [[traffic]]\nkind = \"poisson\"\ndirection = \"up\"\nrate = \"1 kbit/s\"\n"
    );
    let network = parse(&text).unwrap().network();
    let [onoff, three, eight, voice, poisson] = &network.traffic[..] else { panic!("five") };
    assert!(matches!(onoff.source, Source::OnOff { peak, .. } if peak == BitRate::from_kbit_per_s(400)));
    assert!(matches!(
        three.source,
        Source::Constant { interval, kind: Steady::Blast, .. } if interval == Duration::from_ps(333_333_333_333)
    ));
    assert!(matches!(eight.source, Source::Constant { interval, .. } if interval == Duration::from_ms(100)));
    assert!(matches!(
        voice.source,
        Source::Constant { interval, size, kind: Steady::Voice }
            if interval == Duration::from_ms(20) && size == ByteCount::new(200)
    ));
    assert!(matches!(poisson.source, Source::Poisson { size, .. } if size == ByteCount::new(1500)));
    let names: Vec<&str> = network.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["onoff", "blast", "blast2", "voice", "poisson"]);
}

#[test]
fn an_application_writes_full_segments_unless_told_otherwise() {
    let text = format!(
        "{LINE}[[traffic]]\nkind = \"writes\"\ndirection = \"down\"\nrate = \"1.966 Mbit/s\"\ntcp = {{ mss = \"1024 \
         B\" }}\n\
         [[traffic]]\nkind = \"writes\"\ndirection = \"up\"\nrate = \"8 kbit/s\"\nsize = \"1 MB\"\nfirst = \"37 \
         ms\"\n"
    );
    let network = parse(&text).unwrap().network();
    let [down, up] = &network.traffic[..] else { panic!("two") };
    let Source::Writes { rate, size, first, opened_by, .. } = &down.source else { panic!("writes") };
    assert_eq!((*rate, *size, *first), (BitRate::from_kbit_per_s(1966), ByteCount::new(1024), None));
    assert_eq!(*opened_by, OpenedBy::Receiver, "the client opens");
    assert!(matches!(
        up.source,
        Source::Writes { size, first: Some(first), opened_by: OpenedBy::Sender, .. }
            if size == ByteCount::new(1_000_000) && first == Duration::from_ms(37)
    ));
}

#[test]
fn a_scenario_without_a_name_has_its_files() {
    let text = format!("{LINE}[[traffic]]\nkind = \"ping\"\n");
    assert_eq!(Scenario::parse("some/where/line-3.toml", &text, &[]).unwrap().name(), "line-3");
}

#[test]
fn a_file_may_be_odd_without_being_wrong() {
    let text = format!("{LINE}[[traffic]]\nkind = \"ping\"\nstart = \"11 s\"\n");
    assert_eq!(
        parse(&text).unwrap().warnings().to_string(),
        "warning: x.toml:7:9: traffic.0.start: 11 s is past the end of the run, so it never starts\n  |\n7 | start \
         = \"11 s\"\n  |         ^^^^^^\nhint: the run lasts 10 s"
    );
    // What is due as a run ends is still sent.
    let at_the_end = parse_with(&text, &["traffic.0.start=10s"]).unwrap();
    assert_eq!(
        at_the_end.warnings().to_string(),
        "warning: --set traffic.0.start=10s: traffic.0.start: 10 s is the end of the run, so no time is left for it\n\
         hint: the run lasts 10 s"
    );
    let scenario = parse_with(&text, &["traffic.0.start=1s"]).unwrap();
    assert!(scenario.warnings().is_empty());
}

/// A file for `emulate` alone.
#[test]
fn a_line_alone_needs_no_duration() {
    let scenario = parse(&LINE.replace("duration = \"10 s\"\n", "")).unwrap();
    let config = scenario.access().unwrap().up.line.clone();
    assert_eq!(
        (config.rate, config.delay, config.loss),
        (Some(BitRate::from_kbit_per_s(512)), Duration::ZERO, Ratio::ZERO)
    );
}

#[test]
fn a_million_flows_are_one_traffic() {
    let text = format!("{LINE}[[traffic]]\nkind = \"persistent\"\ndirection = \"down\"\ncount = 1000000\n");
    assert_eq!(parse(&text).unwrap().network().traffic[0].count, 1_000_000);
}

/// Devices of a home: 192.168.1.0/24 and TEST-NET-3 (RFC 5737), or the prefix of RFC 3849.
#[test]
fn a_number_is_a_host_of_either_version_of_ip() {
    let addresses = |rest: &str| {
        let text = format!("{LINE}[[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\nclient = 7\nserver = 254\n{rest}");
        let names = parse(&text).unwrap().network().traffic[0].names.clone();
        [names.from, names.to].map(|end| end.address.unwrap().to_string())
    };
    assert_eq!(addresses(""), ["192.168.1.7", "203.0.113.254"]);
    assert_eq!(addresses("ipv6 = true"), ["2001:db8:1::7", "2001:db8:2::fe"]);
}

/// The fourth of four from 192.168.1.7 on. An address is one host for all.
#[test]
fn a_number_with_a_count_is_the_first_of_as_many_hosts() {
    let traffic = |rest: &str| format!("{LINE}[[traffic]]\nkind = \"web\"\n{rest}");
    let last = |rest: &str| {
        let names = parse(&traffic(rest)).unwrap().network().traffic[0].names.clone();
        [names.to, names.from].map(|end| end.address_of(3).map(|address| address.to_string()))
    };
    let four = [Some("192.168.1.10".into()), Some("203.0.113.254".into())];
    assert_eq!(last("count = 4\nclient = 7\nserver = 251"), four);
    assert_eq!(last("count = 4\nclient = \"192.168.1.7\"")[0], Some("192.168.1.7".into()));
    let error = parse(&traffic("count = 4\nserver = 252")).unwrap_err().to_string();
    assert!(error.contains("traffic.0.server: 4 hosts from number 252 on end above 254"), "{error}");
    let error = parse(&traffic("count = 4\nclient = \"nobody\"")).unwrap_err().to_string();
    assert_eq!(error.matches("is no IP address").count(), 1, "reported once: {error}");
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
