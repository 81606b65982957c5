//! Files that are refused, and the whole text of each error.

use std::path::Path;

use lastmile_scenario::Scenario;

use crate::{LINE, parse_with, said};

/// The findings about `text`, each by its first line.
pub(crate) fn headlines(text: &str) -> Vec<String> {
    let report = crate::parse(text).expect_err(text);
    report.findings().iter().map(lastmile_scenario::Diagnostic::headline).collect()
}

#[track_caller]
pub(crate) fn refused(text: &str, headline: &str) {
    assert_eq!(headlines(text), [headline], "{text}");
}

pub(crate) fn traffic(rest: &str) -> String {
    format!("{LINE}[[traffic]]\n{rest}")
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_likely_meaning() {
    assert_eq!(
        said(
            "duration = \"10 s\"\n\n[access]\nencapsulaton = \"ip\"\ndown = { rate = \"2 Mbit/s\" }\nup = { rate \
             = \"512 kbit/s\" }\n"
        ),
        "error: x.toml:4:1: unknown key \"encapsulaton\" in [access]\n  |\n4 | encapsulaton = \"ip\"\n  | \
         ^^^^^^^^^^^^\nhint: did you mean \"encapsulation\"?"
    );
    assert_eq!(
        said(&traffic("name = \"up\"\nkind = \"bulk\"\ndirection = \"up\"\ninterval = \"1 s\"")),
        "error: x.toml:9:1: unknown key \"interval\" in [[traffic]] \"up\"\n  |\n9 | interval = \"1 s\"\n  | \
         ^^^^^^^^\nhint: kind \"bulk\" has no such key; \"voice\", \"ping\" has"
    );
}

#[test]
fn a_key_of_another_table_is_shown_with_its_place() {
    let half = "`delay` of access.down and of access.up, each half of the round trip";
    for key in ["rtt", "delay"] {
        let text = LINE.replace("[access]\n", &format!("[access]\n{key} = \"600 ms\"\n"));
        assert!(said(&text).ends_with(&format!("hint: {half}")), "{}", said(&text));
    }
    let bulk = traffic("name = \"web\"\nkind = \"bulk\"\ndirection = \"down\"\ntcp = \"bbr3\"");
    assert_eq!(
        said(&bulk),
        "error: x.toml:9:7: traffic.web.tcp is a text, where a table is expected\n  |\n9 | tcp = \"bbr3\"\n  |       \
         ^^^^^^\nhint: did you mean traffic.web.tcp.variant = \"bbr3\"?"
    );
}

#[test]
fn an_unknown_preset_is_shown_with_the_nearest() {
    let with = |name: &str| LINE.replace("[access]\n", &format!("[access]\nencapsulation = \"{name}\"\n"));
    assert_eq!(
        said(&with("bridged-vcmx")),
        "error: x.toml:3:17: unknown encapsulation \"bridged-vcmx\"\n  |\n3 | encapsulation = \"bridged-vcmx\"\n  \
         |                 ^^^^^^^^^^^^^^\nhint: did you mean \"bridged-vcmux\"?"
    );
    assert!(said(&with("l2tp/ethrnet")).ends_with("hint: did you mean \"l2tp/ethernet\"?"));
    assert!(said(&with("pppoe-ptm-vlan")).ends_with("hint: did you mean \"pppoe-ptm ether-vlan\"?"));
    assert!(said(&with("ptm")).ends_with("hint: did you mean \"bridged-ptm\", \"ipoe-ptm\" or \"pppoe-ptm\"?"));
    assert!(said(&with("carrier pigeon")).contains("hint: known: ip, slip, ipoa-vcmux, "));
    // Two presets have no sum, and bytes alone no framing that is meant.
    for text in ["pppoe-ptm aal5", "34", "ptm overhead", "pppoe-ptm overhead 2147483647 ether-vlan"] {
        assert!(said(&with(text)).contains("known: ip, slip, ") && said(&with(text)).contains("tc-cake(8)"), "{text}");
    }
}

#[test]
fn settings_of_the_other_transport_are_refused() {
    let bulk = |rest: &str| traffic(&format!("kind = \"bulk\"\ndirection = \"down\"\n{rest}"));
    refused(
        &bulk("quic = { congestion = \"bbr\" }"),
        "error: x.toml:8:8: traffic.0.quic: settings of another transport than \"tcp\"",
    );
    refused(
        &bulk("transport = \"quic\"\ntcp = { variant = \"bbr\" }"),
        "error: x.toml:9:7: traffic.0.tcp: settings of another transport than \"quic\"",
    );
    refused(&bulk("transport = \"sctp\""), "error: x.toml:8:13: unknown transport \"sctp\"");
}

#[test]
fn settings_of_quic_have_ranges() {
    let quic = |rest: &str| {
        traffic(&format!("kind = \"bulk\"\ndirection = \"down\"\ntransport = \"quic\"\nquic = {{ {rest} }}"))
    };
    let at = "error: x.toml:9:";
    let cases = [
        ("ack_frequency = {}", "missing key \"every\" in [traffic.0.quic.ack_frequency]"),
        ("ack_frequency = { every = 0 }", "traffic.0.quic.ack_frequency.every: 0 is below 1"),
        ("congestion = \"reno\"", "unknown congestion \"reno\""),
        ("connection_id = \"21 B\"", "traffic.0.quic.connection_id: 21 bytes is above 20 B"),
        ("datagram = \"1199 B\"", "traffic.0.quic.datagram: 1199 bytes is below 1200 B"),
        (
            "datagram = \"1473 B\"",
            "traffic.0.quic.datagram: datagrams of 1473 B make packets of 1501 B, and link \"client-cpe\" carries \
             packets up to 1500 B (its MTU)",
        ),
        (
            "max_ack_delay = \"0 ms\", ack_frequency = { every = 2 }",
            "traffic.0.quic.max_ack_delay: max_ack_delay must be above zero with a request of an ACK for several \
             packets",
        ),
        ("receive_window = \"1300 B\"", "traffic.0.quic.receive_window: receive_window must be at least a datagram"),
    ];
    for (rest, said) in cases {
        let headlines = headlines(&quic(rest));
        assert!(headlines.len() == 1 && headlines[0].starts_with(at) && headlines[0].contains(said), "{headlines:?}");
    }
    let without_mtu = |datagram: u16| {
        format!(
            "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\n\
             to = \"b\"\ntransport = \"quic\"\nipv6 = true\nquic = {{ datagram = \"{datagram} B\" }}\n"
        )
    };
    assert!(crate::parse(&without_mtu(65_487)).is_ok());
    let said = headlines(&without_mtu(65_488));
    let packet = "traffic.0.quic.datagram: datagrams of 65488 B make packets of 65536 B, and IP carries packets up to";
    assert!(said.len() == 1 && said[0].contains(packet), "{said:?}");
    let narrow = LINE.replace("[access]\n", "[access]\nmtu = \"1227 B\"\n");
    let text = format!("{narrow}[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ntransport = \"quic\"\n");
    let said = headlines(&text);
    assert!(said.iter().any(|line| line.contains("traffic.0.transport: QUIC needs packets of 1228 B")), "{said:?}");
}

#[test]
fn rates_and_units() {
    let with = |rate: &str| LINE.replace("\"512 kbit/s\"", rate);
    refused(
        &with("\"0 kbit/s\""),
        "error: x.toml:4:15: access.up.rate: \"0 kbit/s\" is zero; a bit rate is above zero, for example \"512 \
         kbit/s\"",
    );
    refused(
        &with("\"-1 kbit/s\""),
        "error: x.toml:4:15: access.up.rate: \"-1 kbit/s\" is negative; a bit rate is zero or more, for example \"512 \
         kbit/s\"",
    );
    refused(
        &with("512"),
        "error: x.toml:4:15: access.up.rate: \"512\" has no unit; write for example \"512 kbit/s\" (units: bit/s, \
         kbit/s, Mbit/s or Gbit/s)",
    );
    refused(
        &with("\"512 kb\""),
        "error: x.toml:4:15: access.up.rate: \"512 kb\" can be read in two ways; write \"512 kbit/s\" (kilobits) \
         or \"4096 kbit/s\" (kilobytes)",
    );
    refused(
        &with("\"20 ms\""),
        "error: x.toml:4:15: access.up.rate: \"20 ms\" is a time, where a bit rate is expected, for example \"512 \
         kbit/s\"",
    );
    refused(
        &with("[1]"),
        "error: x.toml:4:15: access.up.rate: a list, where a bit rate is expected, for example \"512 kbit/s\"",
    );
    refused(
        &LINE.replace("up = { rate = \"512 kbit/s\" }", "up = {}"),
        "error: x.toml:4:6: missing key \"rate\" in [access.up]",
    );
    refused(&LINE.replace("up = { rate = \"512 kbit/s\" }", ""), "error: x.toml:2:1: missing key \"up\" in [access]");
}

#[test]
fn durations() {
    let with = |duration: &str| LINE.replace("\"10 s\"", duration);
    refused(&with("\"0 s\""), "error: x.toml:1:12: duration: 0 s is below 1 us");
    refused(&with("\"1000 h\""), "error: x.toml:1:12: duration: 3600000 s is above 720 h");
    refused(
        &traffic("kind = \"ping\"").replace("duration = \"10 s\"\n", ""),
        "error: x.toml: missing key \"duration\" at the top level",
    );
}

#[test]
fn times_of_a_traffic() {
    refused(
        &traffic("kind = \"ping\"\nstart = \"5 s\"\nstop = \"5 s\""),
        "error: x.toml:8:8: traffic.0.stop: 5 s is not after its start",
    );
    refused(
        &traffic("kind = \"ping\"\nname = \"p\"\ninterval = \"0 s\""),
        "error: x.toml:8:12: traffic.p.interval: 0 s is below 1 us",
    );
}

#[test]
fn flows_without_number() {
    assert_eq!(
        said(&traffic("kind = \"bulk\"\ndirection = \"up\"\ncount = 1000000000")),
        "error: x.toml:8:9: 1000000000 flows are more than a run takes: 1000000\n  |\
         \n8 | count = 1000000000\n  |         ^^^^^^^^^^\n\
         hint: each flow takes up to 1 KiB of memory: a million take 1 GB"
    );
    refused(
        &traffic("kind = \"bulk\"\ndirection = \"up\"\ncount = 99999999999999999"),
        "error: x.toml:8:9: 99999999999999999 flows are more than a run takes: 1000000",
    );
    refused(
        &traffic("kind = \"bulk\"\ndirection = \"up\"\ncount = 0"),
        "error: x.toml:8:9: traffic.0.count: 0 is below 1",
    );
    refused(
        &traffic("kind = \"ping\"\ninterval = \"1 us\"\ncount = 2"),
        "error: x.toml:7:12: 20000000 pings in 10 s are more than a run keeps: 10000000",
    );
}

#[test]
fn samples_without_number() {
    refused(
        &format!("record = {{ interval = \"1 us\" }}\n{LINE}"),
        "error: x.toml:1:23: record.interval: 10000000 samples are more than a run keeps: 100000",
    );
}

#[test]
fn cells_where_there_are_none() {
    let with =
        |queue: &str| LINE.replace("{ rate = \"2 Mbit/s\" }", &format!("{{ rate = \"2 Mbit/s\", queue = {queue} }}"));
    let expected = "error: x.toml:3:47: access.down.queue.limit: a limit in cells, but this line sends no cells; \
                    give the limit in packets or bytes";
    refused(&with("{ limit = \"1000 cells\" }"), expected);
    refused(
        &with("{ limit = \"0 packets\" }"),
        "error: x.toml:3:47: access.down.queue.limit: a limit of 0 packets holds nothing",
    );
    refused(
        &with("{ kind = \"tbf\", rate = \"1 Mbit/s\", burst = \"1000 wire bytes\" }"),
        "error: x.toml:3:80: access.down.queue.burst: a burst of 1000 wire bytes never lets the largest packet \
         pass, which takes 1500 wire bytes",
    );
    refused(
        &with("{ kind = \"priority\", classes = [] }"),
        "error: x.toml:3:68: access.down.queue.classes: 0 classes; there are 1 to 16",
    );
    refused(
        &with("{ kind = \"sad\", limit = \"5 packets\", queue = { limit = \"6 packets\" } }"),
        "error: x.toml:3:61: both limit and a queue below, which has its own",
    );
    refused(&with("{ kind = \"codle\" }"), "error: x.toml:3:46: unknown kind \"codle\"");
    let deep = "{ kind = \"sad\", queue = ".repeat(20) + "{}" + &" }".repeat(20);
    let found = headlines(&with(&deep));
    assert_eq!(found.len(), 1);
    assert!(found[0].ends_with("more than 16 queues above one another"), "{found:?}");
}

#[test]
fn loops_of_links() {
    let link = |from: &str, to: &str| format!("[[link]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let file = |links: &[(&str, &str)]| {
        links.iter().fold("duration = \"1 s\"\n".to_owned(), |text, (from, to)| text + &link(from, to))
    };
    refused(&file(&[("a", "a")]), "error: x.toml:4:6: a loop of links: this one leads from \"a\" to itself");
    assert_eq!(
        said(&file(&[("a", "b"), ("b", "c"), ("c", "a")])),
        "error: x.toml:9:8: a loop of links: there are two ways, a -> b -> c and a -> c\n  |\
         \n9 | from = \"c\"\n  |        ^^^\n\
         hint: between two nodes there is one way: leave out a link, or make one of them one_way = true"
    );
    refused(
        &file(&[("a", "b"), ("a", "b")]),
        "error: x.toml:6:8: a loop of links: there are two ways, a -> b and a -> b",
    );
    let beside_the_line = format!("{LINE}[[link]]\nfrom = \"server\"\nto = \"client\"\n");
    refused(
        &beside_the_line,
        "error: x.toml:6:8: a loop of links: there are two ways, client -> cpe -> dslam -> gateway -> server and \
         client -> server",
    );
    let many: Vec<(String, String)> = (0..5000).map(|n| (format!("n{n}"), format!("n{}", n + 1))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    assert_eq!(headlines(&file(&many)).len(), 1);
}

#[test]
fn ends_that_are_not_there() {
    let islands = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\n[[link]]\nfrom = \"c\"\nto = \"d\"\n\
         [[traffic]]\nkind = \"bulk\"\n";
    refused(&format!("{islands}from = \"a\"\nto = \"c\""), "error: x.toml:10:8: no links lead from \"a\" to \"c\"");
    refused(&format!("{islands}from = \"a\"\nto = \"x\""), "error: x.toml:11:6: no node is called \"x\"");
    refused(&format!("{islands}from = \"a\"\nto = \"a\""), "error: x.toml:11:6: from and to are the same node");
    refused(&format!("{islands}from = \"a\""), "error: x.toml:10:8: from without to");
    refused(&format!("{islands}direction = \"up\""), "error: x.toml:10:13: direction without an [access] line");
    refused(&traffic("kind = \"bulk\""), "error: x.toml:6:8: no direction");
    refused(
        "duration = \"1 s\"\n[[traffic]]\nkind = \"ping\"",
        "error: x.toml: neither [access] nor a [[link]]: nothing to simulate",
    );
    let one_way = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\none_way = true\n[[traffic]]\nkind \
         = \"ping\"\nfrom = \"a\"\nto = \"b\"";
    refused(one_way, "error: x.toml:8:8: no links lead from \"b\" to \"a\"");
}

#[test]
fn names_that_are_taken() {
    refused(
        &traffic("kind = \"ping\"\nname = \"a\"\n[[traffic]]\nkind = \"ping\"\nname = \"a\""),
        "error: x.toml:10:8: a second traffic is called \"a\"",
    );
    refused(
        &traffic("kind = \"ping\"\nname = \"a\"\ncount = 3\n[[traffic]]\nkind = \"ping\"\nname = \"a-2\""),
        "error: x.toml:11:8: \"a-2\" is also the name of a flow of \"a\", which counts 3",
    );
    refused(&format!("{LINE}[[node]]\nname = \"cpe\""), "error: x.toml:6:8: a second node is called \"cpe\"");
    refused(
        &format!("{LINE}[[link]]\nname = \"up\"\nfrom = \"server\"\nto = \"far\""),
        "error: x.toml:6:8: a second link is called \"up\"",
    );
    refused(&traffic("kind = \"ping\"\nname = \"\""), "error: x.toml:7:8: traffic.0.name: a name is empty");
    refused(
        &traffic("kind = \"ping\"\nname = \"a/b\""),
        "error: x.toml:7:8: traffic.a/b.name: a name with '/'; every other printing character will do",
    );
}

#[test]
fn tcp_values() {
    let with = |tcp: &str| format!("tcp = {{ {tcp} }}\n{LINE}");
    refused(&with("variant = \"vegas\""), "error: x.toml:1:19: unknown variant \"vegas\"");
    refused(&with("mss = \"0 B\""), "error: x.toml:1:15: tcp.mss: 0 bytes is below 1 B");
    refused(
        &with("receive_window = \"2 GiB\""),
        "error: x.toml:1:26: tcp.receive_window: 2147483648 bytes is above 1 GiB",
    );
    refused(
        &with("window_scale = 15"),
        "error: x.toml:1:24: tcp.window_scale: 15 is not true, false, or a shift from 0 to 14",
    );
    refused(
        &with("initial_window = 0"),
        "error: x.toml:1:26: tcp.initial_window: 0 is not a number of segments from 1 to 65535, or \"rfc3390\"",
    );
    refused(
        &with("min_rto = \"10 s\", max_rto = \"1 s\""),
        "error: x.toml:1:19: tcp.min_rto: min_rto must be above zero and up to max_rto",
    );
    refused(
        &with("sack = 1"),
        "error: x.toml:1:16: tcp.sack: a whole number, where true or false is expected, without quotes",
    );
}

#[test]
fn contradictions() {
    refused(
        &traffic("kind = \"writes\"\ndirection = \"up\""),
        "error: x.toml:5:1: missing key \"rate\" in [[traffic]] 0",
    );
    refused(
        &traffic("kind = \"writes\"\ndirection = \"up\"\nrate = \"100 Mbit/s\"\nsize = \"10 B\""),
        "error: x.toml:8:8: traffic.0.rate: 10 bytes at 100 Mbit/s are handed over more than once in 1 us",
    );
    refused(
        &traffic("kind = \"writes\"\ndirection = \"up\"\nrate = \"1 Mbit/s\"\nrequest = \"1 B\""),
        "error: x.toml:9:1: unknown key \"request\" in [[traffic]] 0",
    );
    refused(&traffic("kind = \"onoff\"\ndirection = \"up\""), "error: x.toml:6:8: neither rate nor peak");
    refused(
        &traffic("kind = \"bulk\"\ndirection = \"up\"\nrequest = \"1 kB\""),
        "error: x.toml:8:11: a request in a transfer that its sender opens",
    );
    refused(
        &LINE.replace("[access]\n", "[access]\nremedy = \"sad\"\n"),
        "error: x.toml:3:1: unknown key \"remedy\" in [access]",
    );
    refused(
        &LINE.replace("[access]\n", "[access]\noam = 27\n"),
        "error: x.toml:3:7: access.oam: an OAM share with framing \"none\"; OAM cells need framing \"atm\"",
    );
    refused(
        &LINE.replace("[access]\n", "[access]\nencapsulation = { overhead = 600 }\n"),
        "error: x.toml:3:30: access.encapsulation.overhead: 600 is above 512",
    );
    refused(
        &LINE.replace("[access]\n", "[access]\nheader_compression = \"cslip\"\n"),
        "error: x.toml:3:22: unknown header_compression \"cslip\"",
    );
}

#[test]
fn an_override_is_refused_as_it_was_typed() {
    let text = traffic("kind = \"bulk\"\ndirection = \"up\"\nname = \"upload\"");
    let cases = [
        (
            "access.up.rate=0 kbit/s",
            "error: --set access.up.rate=0 kbit/s: access.up.rate: \"0 kbit/s\" is zero; a bit rate is above zero, \
             for example \"512 kbit/s\"",
        ),
        (
            "access.up.rat=1 Mbit/s",
            "error: --set access.up.rat=1 Mbit/s: unknown key \"rat\" in [access.up]\nhint: did you mean \"rate\"?",
        ),
        (
            "traffic.uplod.start=1s",
            "error: --set traffic.uplod.start=1s: no [[traffic]] is named \"uplod\"\nhint: did you mean \"upload\"?",
        ),
        (
            "acces.up.rate=1 Mbit/s",
            "error: --set acces.up.rate=1 Mbit/s: unknown key \"acces\" at the top level\nhint: did you \
             mean \"access\"?",
        ),
    ];
    for (argument, expected) in cases {
        assert_eq!(parse_with(&text, &[argument]).expect_err(argument).to_string(), expected);
    }
}

/// One error, although every traffic would be without its line.
/// Without a share no slot of any pattern is usable.
#[test]
fn a_share_of_nothing_is_the_mistake_and_not_the_pattern() {
    let text = "duration = \"1 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n\
                up = { rate = \"1 Mbit/s\", grants = { kind = \"lte\", share = \"0 %\" } }\n";
    assert!(said(text).contains("access.up.grants.share: no slot of the pattern may be used"), "{}", said(text));
}

#[test]
fn one_mistake_is_one_error() {
    let text = traffic("kind = \"bulk\"\ndirection = \"up\"")
        .replace("\"2 Mbit/s\"", "\"2 Mbit\"")
        .replace("2 Mbit\"", "2 Mb\"");
    assert_eq!(headlines(&text).len(), 1, "{:?}", headlines(&text));
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "duration = \"0 s\"\n[access]\nup = { rate = \"5\" }\n[[traffic]]\nkind = \"pong\"\n";
    let found = headlines(text);
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn files_that_cannot_be_read() {
    let load = |path: &Path| Scenario::load(path, &[]).expect_err("no scenario").to_string();
    assert_eq!(load(Path::new("no/such.toml")), "error: no/such.toml: no such file");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(load(folder).starts_with(&format!("error: {}: cannot be read: ", folder.display())));
    let temporary = std::env::temp_dir().join(format!("lastmile-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&temporary).unwrap();
    let path = temporary.join("latin1.toml");
    std::fs::write(&path, b"duration = \"1 s\"\nname = \"caf\xe9\"\n").unwrap();
    assert_eq!(load(&path), format!("error: {}: line 2 is no UTF-8 text", path.display()));
    std::fs::write(&path, vec![b'#'; 9 << 20]).unwrap();
    assert_eq!(load(&path), format!("error: {}: larger than 8 MiB: no scenario", path.display()));
    std::fs::remove_dir_all(&temporary).unwrap();
}

#[test]
fn names_of_flows() {
    let with = |rest: &str| traffic(&format!("kind = \"bulk\"\ndirection = \"down\"\n{rest}"));
    refused(
        &with("client = \"10.0.0.256\""),
        "error: x.toml:8:10: traffic.0.client: \"10.0.0.256\" is no IP address, such as \"192.0.2.1\" \
         or \"2001:db8::1\", and no number of a host",
    );
    refused(&with("client = 255"), "error: x.toml:8:10: traffic.0.client: 255 is no number of a host: 1 to 254");
    refused(
        &with("server = \"2001:db8::1\""),
        "error: x.toml:8:10: traffic.0.server: 2001:db8::1 is an IPv6 address, and its packets are IPv4",
    );
    refused(
        &with("server = \"192.0.2.1\"\nipv6 = true"),
        "error: x.toml:8:10: traffic.0.server: 192.0.2.1 is an IPv4 address, and its packets are IPv6",
    );
    refused(&with("server_port = 0"), "error: x.toml:8:15: traffic.0.server_port: 0 is below 1");
    refused(
        &with("client_port = 65000\ncount = 1000"),
        "error: x.toml:8:15: traffic.0.client_port: 1000 flows from port 65000 on end above 65535",
    );
}
