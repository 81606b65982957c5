//! Defaults of today: TCP, MTU, buffers, hops; words and lists that a file may use.

use std::num::NonZeroU16;

use lastmile_model::{OpenedBy, Source};
use lastmile_queueing::fifo;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_scenario::Scenario;
use lastmile_tcp::{Config, Variant, WindowScale};
use lastmile_units::{BitRate, ByteCount, Limit, PacketCount, WireBytes};

const DOWNLOAD: &str = "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\ndirection = \"down\"\n";

fn parsed(text: &str) -> Scenario {
    Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"))
}

fn refused(text: &str) -> String {
    Scenario::parse("f", text, &[]).expect_err("the file is wrong").to_string()
}

fn line(down: &str, up: &str) -> String {
    format!("duration = \"9 s\"\naccess = {{ down = {{ {down} }}, up = {{ {up} }} }}\n")
}

fn tcp(text: &str) -> Config {
    parsed(text).network_ref().traffic[0].tcp().next().expect("a transfer").clone()
}

/// A window of 64 KiB for each 40 ms would be 13 Mbit/s.
#[test]
fn jumbo_frames_fill_a_line() {
    let link = "rate = \"100 Mbit/s\"\ndelay = \"20 ms\"\nmtu = \"9000 B\"\nqueue = { limit = \"200 packets\" }\n";
    let traffic = "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\nfrom = \"s\"\nto = \"c\"\ntcp = { mss = \"8948 B\" }\n";
    let scenario = parsed(&format!("duration = \"9 s\"\n[[link]]\nfrom = \"s\"\nto = \"c\"\n{link}{traffic}"));
    let outcome = lastmile_sim::Simulation::new(scenario.network_ref(), None).unwrap().finish();
    let mbit = outcome.flows[0].bytes_delivered as f64 * 8.0 / 9e6;
    assert!((90.0..100.0).contains(&mbit), "{mbit}");
}

/// RFC 2001 and 2988, one word; keys next to it override it.
#[test]
fn an_era_is_one_word() {
    let text = format!(
        "{}{DOWNLOAD}tcp = {{ era = \"1999\", min_rto = \"2 s\" }}\n",
        line("rate = \"8 Mbit/s\"", "rate = \"1 Mbit/s\"")
    );
    let config = tcp(&text);
    assert_eq!((config.variant, config.window_scale, config.mss), (Variant::Reno, WindowScale::Off, 1460));
    assert_eq!((config.sack, config.timestamps, config.congestion.limited_transmit), (false, false, false));
    assert_eq!(config.timers.min_rto.as_ms(), 2000);
    assert_eq!(config.timers.initial_rto.as_ms(), 3000);
    let line = line("rate = \"8 Mbit/s\"", "rate = \"1 Mbit/s\"");
    assert_eq!(tcp(&format!("{line}{DOWNLOAD}tcp = {{ era = 1999 }}\n")).variant, Variant::Reno, "as --set has it");
    let wrong = refused(&format!("{line}{DOWNLOAD}tcp = {{ era = \"2010\" }}\n"));
    assert!(wrong.contains("traffic.a.tcp.era: \"2010\" is not \"today\" or \"1999\""), "{wrong}");
}

/// 1500 - 20 - 20 - 12, and 8 less over PPPoE (RFC 2516); the least of all links on the way counts, both ways.
#[test]
fn the_segment_size_follows_from_the_mtu_of_the_path() {
    let mss = |down: &str, up: &str, rest: &str| tcp(&format!("{}{DOWNLOAD}{rest}", line(down, up))).mss;
    let (ptm, pppoe) =
        ("rate = \"9 Mbit/s\", encapsulation = \"bridged-ptm\"", "rate = \"9 Mbit/s\", encapsulation = \"pppoe-ptm\"");
    assert_eq!(mss(ptm, ptm, ""), 1448);
    assert_eq!(mss(pppoe, pppoe, ""), 1440);
    assert_eq!(mss(ptm, pppoe, ""), 1440);
    assert_eq!(mss(pppoe, pppoe, "tcp = { timestamps = false }\n"), 1452);
    assert_eq!(mss(pppoe, pppoe, "ipv6 = true\n"), 1420);
    assert_eq!(mss("rate = \"9 Mbit/s\", mtu = \"576 B\"", ptm, ""), 576 - 52);
}

/// An `mtu` of `[access]` or of a link is that of both directions, whatever their encapsulations, unless a direction
/// has its own.
#[test]
fn an_mtu_of_both_directions_outlives_the_encapsulation_of_one() {
    let pppoe = "rate = \"6 Mbit/s\", encapsulation = \"pppoe-llcsnap-fcs\"";
    let both = |mtu: &str, down: &str| {
        format!("duration = \"9 s\"\naccess = {{ {mtu} down = {{ {pppoe}{down} }}, up = {{ {pppoe} }} }}\n{DOWNLOAD}")
    };
    let mtus = |text: &str| {
        let scenario = parsed(text);
        let access = scenario.access().expect("an access line");
        [&access.down, &access.up].map(|hop| hop.line.link_layer.mtu().map_or(0, NonZeroU16::get))
    };
    for (mtu, bytes) in [("", 1492), ("mtu = \"1500 B\",", 1500), ("mtu = \"1400 B\",", 1400)] {
        assert_eq!(mtus(&both(mtu, "")), [bytes; 2]);
        assert_eq!(tcp(&both(mtu, "")).mss, bytes - 52);
    }
    assert_eq!(mtus(&both("mtu = \"1400 B\",", ", mtu = \"1300 B\"")), [1300, 1400]);
    // The encapsulation of [access] has an MTU that is not stated.
    assert_eq!(mtus(&both("encapsulation = \"ethernet\",", "")), [1492; 2]);
    let link = "duration = \"9 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nmtu = \"1400 B\"\n\
                back = { encapsulation = \"pppoe-ptm\" }\n";
    let scenario = parsed(link);
    let back = &scenario.network_ref().links[1].hop.line.link_layer;
    assert_eq!(back.mtu().map(NonZeroU16::get), Some(1400));
}

/// Packets of 1500 bytes take 33 cells (RFC 2684: 1544 / 48), those of 1492 bytes too: 1448 or 1440 bytes of payload in
/// 1749 on the wire.
#[test]
fn a_download_has_the_segments_of_the_stated_mtu() {
    let pppoe = "encapsulation = \"pppoe-llcsnap-fcs\"";
    let goodput = |mtu: &str| {
        let text = format!(
            "duration = \"60 s\"\naccess = {{ {mtu} down = {{ rate = \"6 Mbit/s\", {pppoe} }}, \
             up = {{ rate = \"800 kbit/s\", {pppoe} }} }}\n{DOWNLOAD}"
        );
        let outcome = lastmile_sim::Simulation::new(parsed(&text).network_ref(), None).unwrap().finish();
        outcome.flows[0].bytes_delivered as f64 * 8.0 / 60.0
    };
    for (mtu, payload, wire) in [("mtu = \"1500 B\",", 1448.0, 1749.0), ("", 1440.0, 1696.0)] {
        let (carried, most) = (goodput(mtu), 6e6 * payload / wire);
        assert!((0.99 * most..=most).contains(&carried), "{mtu}: {carried} of {most}");
    }
}

#[test]
fn a_packet_larger_than_the_mtu_is_refused() {
    let pppoe = line("rate = \"9 Mbit/s\", encapsulation = \"pppoe-ptm\"", "rate = \"9 Mbit/s\"");
    let report = refused(&format!("{pppoe}{DOWNLOAD}tcp = {{ mss = \"1448 B\" }}\n"));
    let expected = "traffic.a.tcp.mss: segments of 1448 B make packets of 1500 B, and link \"down\" carries packets \
                    up to 1492 B (its MTU)";
    assert!(report.contains(expected), "{report}");
    let blast = "[[traffic]]\nkind = \"blast\"\ndirection = \"down\"\nrate = \"9 packets/s\"\n";
    let report = refused(&format!("{pppoe}{blast}size = \"1500 B\"\n"));
    assert!(report.contains("size: link \"down\" carries packets up to 1492 B (its MTU)"), "{report}");
    let scenario = parsed(&format!("{pppoe}{blast}"));
    let Source::Constant { size, .. } = scenario.network_ref().traffic[0].source else { panic!("a blast") };
    assert_eq!(size, ByteCount::new(1492), "the default fits");
    // Only the way of the packets counts; a ping has an answer of its size.
    let narrow_up = line("rate = \"9 Mbit/s\"", "rate = \"9 Mbit/s\", encapsulation = \"pppoe-ptm\"");
    let scenario = parsed(&format!("{narrow_up}{blast}size = \"1500 B\"\n"));
    let Source::Constant { size, .. } = scenario.network_ref().traffic[0].source else { panic!("a blast") };
    assert_eq!(size, ByteCount::new(1500));
    let report = refused(&format!("{narrow_up}[[traffic]]\nkind = \"ping\"\nsize = \"1500 B\"\n"));
    assert!(report.contains("size: link \"up\" carries packets up to 1492 B (its MTU)"), "{report}");
}

fn limits(text: &str) -> Vec<(String, Limit)> {
    let scenario = parsed(text);
    let limit = |queue: &Spec| match queue {
        Spec::Fifo(fifo::Config { limit, .. }) => *limit,
        other => panic!("{other:?}"),
    };
    scenario.network_ref().links.iter().map(|link| (link.hop.name.clone(), limit(&link.hop.queue))).collect()
}

/// 100 ms at 40 Mbit/s are 500 000 bytes on the wire; 100 packets of 1500 bytes are more at 8 Mbit/s, and less at 40.
#[test]
fn a_buffer_is_given_in_time_or_has_at_least_100_ms() {
    let limit =
        |text: &str, name: &str| limits(text).into_iter().find(|(link, _)| link == name).map(|(_, limit)| limit);
    let given = line("rate = \"40 Mbps\", queue = { limit = \"20 ms\" }", "rate = \"8 Mbit/s\"");
    assert_eq!(limit(&given, "down"), Some(Limit::Wire(WireBytes::new(100_000))));
    assert_eq!(limit(&given, "up"), Some("100 packets".parse().unwrap()));
    let unsaid = line("rate = \"40 Mbit/s\"", "rate = \"8 Mbit/s\"");
    assert_eq!(limit(&unsaid, "down"), Some(Limit::Wire(WireBytes::new(500_000))));
    let slow = line("rate = \"64 kbit/s\", queue = { limit = \"1 ms\" }", "rate = \"8 Mbit/s\"");
    assert_eq!(limit(&slow, "down"), Some(Limit::Wire(WireBytes::new(1500))), "one packet fits");
    let link = "duration = \"9 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"40 Mbit/s\"\nqueue = { limit = \"20 \
         ms\" }\nback = { rate = \"4 Mbit/s\" }\n";
    assert_eq!(limit(link, "b-a"), Some(Limit::Wire(WireBytes::new(10_000))), "each way at its own rate");
    let unrated = refused("duration = \"9 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nqueue = { limit = \"20 ms\" }\n");
    assert!(unrated.contains("20 ms of a link without a rate has no size"), "{unrated}");
}

/// The kind of a queue that leaves out its limit changes nothing of it: 500 000 bytes at 40 Mbit/s, and 100 packets at
/// 8 Mbit/s. A shaper holds 100 ms of its own rate; the queues within another one, and classes, hold 100 packets.
#[test]
fn a_named_kind_has_the_limit_of_a_line_without_a_queue() {
    let queue = |rate: &str, keys: &str| {
        let scenario = parsed(&line("rate = \"8 Mbit/s\"", &format!("rate = \"{rate}\", queue = {{ {keys} }}")));
        scenario.network_ref().links.iter().find(|link| link.hop.name == "up").unwrap().hop.queue.clone()
    };
    let (time, packets) = (Limit::Wire(WireBytes::new(500_000)), Limit::Packets(PacketCount::new(100)));
    let below = |queue: Spec| queue.below().into_iter().map(|queue| queue.limit().unwrap()).collect::<Vec<_>>();
    for kind in ["fifo", "ack-filter", "ack-collapsing", "cake-ack-filter", "red"] {
        let keys = format!("kind = \"{kind}\"");
        assert_eq!(queue("40 Mbit/s", &keys).limit(), Some(time), "{kind}");
        assert_eq!(queue("8 Mbit/s", &keys).limit(), Some(packets), "{kind}");
        assert_eq!(queue("40 Mbit/s", &format!("{keys}, limit = \"7 packets\"")).limit(), "7 packets".parse().ok());
    }
    assert_eq!(queue("40 Mbit/s", "").limit(), Some(time));
    for (keys, limits) in [
        ("kind = \"sad\"", &[time] as &[_]),
        ("kind = \"window-clamp\", window = \"64 kB\"", &[time]),
        ("kind = \"priority\"", &[time, time]),
        ("kind = \"sad\", queue = { kind = \"fifo\" }", &[packets]),
        ("kind = \"priority\", classes = [{}, { queue = { kind = \"fifo\" } }]", &[packets, packets]),
        ("kind = \"drr\", classes = [{}]", &[packets]),
        ("kind = \"htb\", classes = [{ name = \"a\", rate = \"39 Mbit/s\" }]", &[packets]),
        ("kind = \"tbf\", rate = \"20 Mbit/s\", burst = \"3000 wire bytes\"", &[Limit::Wire(WireBytes::new(250_000))]),
    ] {
        assert_eq!(below(queue("40 Mbit/s", keys)), limits, "{keys}");
    }
    assert_eq!(queue("40 Mbit/s", "kind = \"codel\"").limit(), "1000 packets".parse().ok());
    let link = "duration = \"9 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"40 Mbit/s\"\nqueue.kind = \"fifo\"\n\
                back = { rate = \"4 Mbit/s\" }\n";
    assert_eq!(limits(link), [("a-b".to_owned(), time), ("b-a".to_owned(), packets)]);
    let access = line("rate = \"8 Mbit/s\" }, lan = { queue = { kind = \"fifo\" }", "rate = \"1 Mbit/s\"");
    let lan = limits(&access).into_iter().find(|(name, _)| name == "cpe-client").map(|(_, limit)| limit);
    assert_eq!(lan, Some(Limit::Wire(WireBytes::new(12_500_000))), "100 ms at 1 Gbit/s");
}

/// A packet waits up to 30 ms for a request opportunity, 560 ms for the answer and 30 ms for a slot: with 100 ms more
/// that is 270 000 bytes at 3 Mbit/s. The wait of a cable at 8 Mbit/s, 6 ms, leaves 100 packets.
#[test]
fn a_buffer_of_a_granted_line_holds_what_waits_for_a_grant() {
    let limit =
        |up: &str| limits(&line("rate = \"8 Mbit/s\"", up)).into_iter().find(|(link, _)| link == "up").unwrap().1;
    let satellite = limit("rate = \"3 Mbit/s\", grants = \"satellite\"");
    assert_eq!(satellite, Limit::Wire(WireBytes::new(270_000)));
    assert_eq!(limit("rate = \"8 Mbit/s\", grants = \"docsis-3.1\""), "100 packets".parse().unwrap());
}

/// A shaper or a class is emptied at its own rate.
#[test]
fn a_time_behind_a_shaper_counts_at_the_rate_of_the_shaper() {
    let up = "rate = \"40 Mbit/s\", queue = { kind = \"tbf\", rate = \"8 Mbit/s\", burst = \"3000 wire bytes\", \
              limit = \"100 ms\" }";
    let scenario = parsed(&line("rate = \"40 Mbit/s\"", up));
    let link = scenario.network_ref().links.iter().find(|link| link.hop.name == "up").unwrap();
    let Spec::Tbf(Over { queue, .. }) = &link.hop.queue else { panic!("{:?}", link.hop.queue) };
    assert!(
        matches!(**queue, Spec::Fifo(fifo::Config { limit: Limit::Wire(bytes), .. }) if bytes.as_u64() == 100_000),
        "{queue:?}"
    );
}

#[test]
fn no_hop_around_the_line_is_slower_than_the_line() {
    for (down, lines) in [("100 Mbit/s", 1_u64), ("1 Gbit/s", 1), ("10 Gbit/s", 1), ("100 Mbit/s", 50)] {
        let text = format!(
            "duration = \"9 s\"\naccess = {{ lines = {lines}, down = {{ rate = \"{down}\" }}, up = {{ rate = \"1 \
             Mbit/s\" }} }}\n"
        );
        let rate: BitRate = down.parse().unwrap();
        for link in &parsed(&text).network_ref().links {
            let needed = match link.hop.name.as_str() {
                "server-gateway" | "gateway-dslam" => rate.as_bps() * lines,
                name if name.starts_with("cpe-client") => rate.as_bps(),
                _ => 1,
            };
            assert!(
                link.hop.line.rate.unwrap().as_bps() > needed || link.hop.name.starts_with("down"),
                "{down} x {lines}: {}",
                link.hop.name
            );
        }
    }
}

#[test]
fn any_traffic_may_go_both_ways_and_on_a_list_of_lines() {
    let access =
        "duration = \"9 s\"\naccess = { lines = 4, down = { rate = \"8 Mbit/s\" }, up = { rate = \"1 Mbit/s\" } }\n";
    let names =
        |text: String| -> Vec<String> { parsed(&text).network_ref().traffic.iter().map(|t| t.name.clone()).collect() };
    let call = "[[traffic]]\nname = \"call\"\nkind = \"voice\"\ndscp = \"EF\"\ndirection = \"both\"\n";
    assert_eq!(
        names(format!("{access}{call}line = [3, 4]\n")),
        ["call-line-3-down", "call-line-3-up", "call-line-4-down", "call-line-4-up"]
    );
    assert_eq!(names(format!("{access}{call}line = 2\n")), ["call-down", "call-up"]);
    let scenario = parsed(&format!("{access}{call}line = 2\n"));
    assert!(scenario.network_ref().traffic.iter().all(|traffic| traffic.ip.dscp == 46));
    assert!(refused(&format!("{access}{call}line = [3, 5]\n")).contains("there is no line 5; [access] has lines = 4"));
    assert!(refused(&format!("{access}{call}line = [3, 3]\n")).contains("line 3 is listed twice"));
    let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"both\"\nline = 1\n";
    let opened: Vec<_> = parsed(&format!("{access}{bulk}"))
        .network_ref()
        .traffic
        .iter()
        .map(lastmile_model::Traffic::opened_by)
        .collect();
    assert_eq!(opened, [OpenedBy::Receiver, OpenedBy::Sender], "the client opens both");
}

#[test]
fn a_misspelt_node_is_one_message() {
    let text = format!(
        "{}[[link]]\nfrom = \"sever\"\nto = \"cdn\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"cdn\"\nto = \"client\"\n",
        line("rate = \"9 Mbit/s\"", "rate = \"9 Mbit/s\"")
    );
    let report = refused(&text);
    assert!(report.contains("node \"sever\" is not linked to the rest of the network"), "{report}");
    assert!(report.contains("did you mean \"server\"?"), "{report}");
    assert_eq!(report.matches("error:").count(), 1, "{report}");
}

/// The file sets the version, a traffic may differ; packets of unstated size have 20 bytes more.
#[test]
fn all_traffic_of_a_file_is_ipv6_unless_it_says_otherwise() {
    let line = line("rate = \"9 Mbit/s\"", "rate = \"1 Mbit/s\"");
    let text = format!(
        "ipv6 = true\n{line}[[traffic]]\nkind = \"ping\"\n\
         [[traffic]]\nkind = \"voice\"\ndirection = \"up\"\nipv6 = false\n\
         [[traffic]]\nkind = \"voice\"\nname = \"six\"\ndirection = \"up\"\n\
         [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\n\
         [[traffic]]\nkind = \"game\"\n"
    );
    let network = parsed(&text).network();
    let versions: Vec<bool> = network.traffic.iter().map(|traffic| traffic.ip.ipv6).collect();
    assert_eq!(versions, [true, false, true, true, true]);
    let size = |index: usize| match &network.traffic[index].source {
        Source::Ping { size, .. } | Source::Constant { size, .. } => size.as_u64(),
        Source::Game(game) => game.commands.size.location.as_u64(),
        other => panic!("{other:?}"),
    };
    assert_eq!([0, 1, 2, 4].map(size), [104, 200, 220, 100]);
    assert!(network.traffic[3].tcp().all(|tcp| tcp.ipv6 && tcp.mss == 1428));
    let old = refused(&format!("{line}{DOWNLOAD}tcp = {{ ipv6 = true }}\n"));
    assert!(old.contains("ipv6 = true is a key of a [[traffic]]"), "{old}");
    let replay = format!("{line}[[traffic]]\nkind = \"replay\"\nfile = \"a.pcap\"\ndirection = \"up\"\nipv6 = true\n");
    let replay = refused(&replay);
    assert!(replay.contains("traffic.0.ipv6: a replay has the packets of its capture"), "{replay}");
    let short = format!("{line}[[traffic]]\nkind = \"ping\"\nipv6 = true\nsize = \"47 B\"\n");
    assert!(
        refused(&short).contains("traffic.0.size: 47 bytes are less than 48 bytes of headers"),
        "{}",
        refused(&short)
    );
}
