//! Conditions on packets: what each key becomes, and what is refused.

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::Match;
use lastmile_queueing::ack::sad;
use lastmile_queueing::classify::{Bound, End, Pattern, Prefix};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_scenario::Diagnostic;
use lastmile_units::{BitRate, ByteCount, Duration};

use crate::parse;

fn line(condition: &str) -> String {
    format!(
        "duration = \"1 s\"\n[access]\ndown = {{ rate = \"2 Mbit/s\" }}\n[access.up]\nrate = \"512 kbit/s\"\n\
         queue = {{ kind = \"sad\", exempt = {{ {condition} }} }}"
    )
}

fn condition(text: &str) -> Match {
    let scenario = parse(&line(text)).unwrap_or_else(|report| panic!("{report}"));
    match &scenario.access().expect("an access line").up.queue {
        Spec::Sad(Over { config: sad::Config { exempt, .. }, .. }) => exempt.clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn becomes(text: &str, expected: &Match) {
    assert_eq!(condition(text), *expected, "{text}");
}

#[test]
fn every_key_becomes_a_condition() {
    let prefix = |text: &str, bits| Prefix::new(text.parse().unwrap(), bits).unwrap();
    becomes("sack_ack = true", &Match::SackAck);
    becomes("protocol = \"udp\"", &Match::Protocol(Protocol::Udp));
    becomes("protocol = 6", &Match::Protocol(Protocol::Tcp));
    becomes("protocol = 50", &Match::ProtocolNumber(50));
    becomes("port = 22", &Match::Port(End::Either, 22..=22));
    becomes("source_port = \"6881-6889\"", &Match::Port(End::Source, 6881..=6889));
    let ports = [80, 443].map(|port| Match::Port(End::Destination, port..=port));
    becomes("destination_port = [80, \"443\"]", &Match::OneOf(ports.to_vec()));
    becomes("address = \"192.0.2.7\"", &Match::Address(End::Either, prefix("192.0.2.7", 32)));
    becomes("source = \"10.1.2.3/8\"", &Match::Address(End::Source, prefix("10.0.0.0", 8)));
    becomes("destination = \"2001:db8::/32\"", &Match::Address(End::Destination, prefix("2001:db8::", 32)));
    becomes("dscp = \"ef\"", &Match::Dscp(46));
    becomes("dscp = [\"CS1\", 1]", &Match::OneOf(vec![Match::Dscp(8), Match::Dscp(1)]));
    becomes("tos = \"minimize-delay\"", &Match::TrafficClass { value: 0x10, mask: 0x1C });
    becomes("tos = 8", &Match::TrafficClass { value: 8, mask: 0xFF });
    becomes("tos = \"0x10/0x1e\"", &Match::TrafficClass { value: 0x10, mask: 0x1E });
    becomes("at_least = \"100 B\"", &Match::AtLeastBytes(100));
    becomes("tcp_flags = \"syn\"", &Match::TcpFlags(TcpFlags::SYN));
    let of = TcpFlags::SYN.with(TcpFlags::ACK);
    becomes("tcp_flags = \"syn !ack\"", &Match::TcpFlagsOf { set: TcpFlags::SYN, of });
    becomes("connection_bytes = \"> 1 MB\"", &Match::ConnectionBytes(Bound::Above, ByteCount::new(1_000_000)));
    becomes("connection_rate = \"<64 kbit/s\"", &Match::ConnectionRate(Bound::Below, BitRate::from_kbit_per_s(64)));
    let text = |text: &str, at| Match::FirstPayload(Pattern { bytes: text.into(), at });
    becomes("first_payload = \"BitTorrent protocol\"", &text("BitTorrent protocol", None));
    becomes("first_payload = { text = \"GET \", at = 0 }", &text("GET ", Some(0)));
    becomes("first_payload = { hex = \"13 426974\" }", &text("\u{13}Bit", None));
    becomes("ftp_data = false", &Match::Not(Box::new(Match::FtpData)));
}

/// In whatever order the keys stand, the bucket is asked last.
#[test]
fn of_several_keys_all_must_hold_and_buckets_come_last() {
    let limit = Match::NewConnections { bound: Bound::Below, count: 5, per: Duration::from_s(1) };
    let expected = Match::All(vec![Match::TcpFlags(TcpFlags::SYN), limit]);
    becomes("new_connections_per_host = \"< 5 /s\", tcp_flags = \"syn\"", &expected);
}

#[test]
fn what_is_no_condition_is_refused_with_what_would_be_one() {
    let refused = |text: &str, expected: &str| {
        let report = parse(&line(text)).expect_err(text);
        let said: Vec<String> = report.findings().iter().map(Diagnostic::headline).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        let (_, said) = said[0].split_once("access.up.queue.exempt").expect("the key is named");
        assert_eq!(said, expected, "{text}");
    };
    refused("port = 0", ".port: \"0\" is no port from 1 to 65535, and no range such as \"6881-6889\"");
    refused("port = \"90-80\"", ".port: ports from 90 to 80: the first is above the last");
    refused("port = []", ".port: an empty list, where at least one entry is expected");
    refused(
        "source = \"10.0.0.0/33\"",
        ".source: \"10.0.0.0/33\" is no address or prefix, such as \"192.0.2.1\", \"192.0.2.0/24\" \
         or \"2001:db8::/32\"",
    );
    refused("dscp = \"AF14\"", ".dscp: unknown code point \"AF14\"; did you mean \"AF11\"?");
    refused("dscp = 64", ".dscp: 64 is above 63");
    refused(
        "tos = \"minimise-delay\"",
        ".tos: unknown type of service \"minimise-delay\"; did you mean \"minimize-delay\"?",
    );
    refused("tcp_flags = \"sny\"", ".tcp_flags: unknown flag \"sny\"; did you mean \"syn\"?");
    refused("tcp_flags = \"syn !syn\"", ".tcp_flags: \"syn !syn\" has one flag twice");
    refused(
        "connection_bytes = \"100 kB\"",
        ".connection_bytes: \"100 kB\" does not begin with < or >, such as \"> 100 kB\"",
    );
    refused(
        "new_connections_per_host = \"< 0 /s\"",
        ".new_connections_per_host: \"0 /s\" is no number in a time, such as \"< 5 /s\" or \"> 100 /min\"",
    );
    refused("first_payload = \"\"", ": an empty pattern");
    refused(
        "first_payload = { hex = \"131\" }",
        ".first_payload: \"131\" is no hexadecimal bytes, such as \"13 42 69\"",
    );
    refused("first_payload = { txt = \"a\" }", ".first_payload: unknown key \"txt\"; known: text, hex, at");
    refused(
        "first_payload = { text = \"abc\", at = 510 }",
        ": a pattern that ends at byte 513; the first 512 bytes of a payload are looked at",
    );
}

/// Conditions that exclude one another, and those that look alike and do not.
#[test]
fn conditions_that_no_packet_meets_are_told() {
    let told = |text: &str| parse(&line(text)).unwrap_or_else(|report| panic!("{report}")).warnings().to_string();
    for (text, expected) in [
        (
            "pure_ack = true, at_least = \"1000 B\"",
            "exempt.at_least: no packet matches: a pure ACK has at most 120 bytes",
        ),
        ("at_least = \"200 B\", at_most = \"100 B\"", "exempt.at_least: no packet matches: it is above `at_most`"),
        (
            "protocol = \"udp\", tcp_flags = \"syn\"",
            "exempt.protocol: no packet matches: pure ACKs and flags are those of",
        ),
        ("protocol = \"icmp\", port = 22", "exempt.port: no packet matches: ports are those of TCP and UDP"),
    ] {
        let warning = told(text);
        assert!(warning.contains(expected), "{warning}");
    }
    for quiet in [
        "pure_ack = true, at_least = \"120 B\"",
        "pure_ack = false, at_least = \"1000 B\"",
        "protocol = \"tcp\", tcp_flags = \"syn\", port = 22",
        "protocol = \"udp\", source_port = 53",
        "protocol = 50",
    ] {
        assert_eq!(told(quiet), "", "{quiet}");
    }
}
