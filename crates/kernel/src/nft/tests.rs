//! Tables for lists of rules. `crates/live/tests/it/kernel_rules.rs` compares what the kernel makes
//! of such a table with the datapath, packet by packet.

use lastmile_packet::{Protocol, TcpFlags};
use lastmile_queueing::End;
use lastmile_queueing::classify::{Bound, Prefix};
use lastmile_units::{ByteCount, Duration};

use super::*;

fn handle(minor: u32) -> Handle {
    Handle { major: 0x1a57, minor }
}

/// The lines of the rules: between the class for all others, three lines about fragments and marks,
/// and the end of the chain.
fn lines_for(device: &'static str, conditions: &[Match], memory: Memory) -> Vec<String> {
    let rules: Vec<Rule<'_>> =
        conditions.iter().zip(0x10..).map(|(matches, minor)| Rule { matches, class: handle(minor) }).collect();
    let command = command(device, &rules, handle(0x20), memory);
    let lines = command.as_input().unwrap().lines().map(str::trim);
    let from = lines.skip_while(|line| *line != "meta priority set 1a57:20").skip(4);
    let mut lines: Vec<String> = from.take_while(|line| *line != "}").map(str::to_owned).collect();
    assert_eq!(lines.pop().unwrap(), "accept");
    lines
}

fn port(end: End, port: u16) -> Match {
    Match::Port(end, port..=port)
}

#[test]
fn a_conjunction_is_one_line_and_alternatives_are_several() {
    let tcp = || Match::Protocol(Protocol::Tcp);
    let web = Match::OneOf(vec![port(End::Destination, 443), port(End::Destination, 80)]);
    let conditions = [Match::All(vec![tcp(), web]), Match::All(vec![Match::Dscp(46), tcp()]), Match::Any, Match::Never];
    let expected = [
        "meta l4proto 6 meta l4proto { tcp, udp } th dport { 80, 443 } meta priority set 1a57:10 accept",
        "meta l4proto 6 ip dscp 46 meta priority set 1a57:11 accept",
        "meta l4proto 6 ip6 dscp 46 meta priority set 1a57:11 accept",
        "meta priority set 1a57:12 accept",
    ];
    assert_eq!(lines_for(DEVICE, &conditions, Memory::Kept), expected);
}

#[test]
fn a_negation_and_all_but_the_last_alternatives_take_a_bit_of_the_mark() {
    let either = |number| port(End::Either, number);
    let condition = Match::All(vec![either(1), Match::Not(Box::new(Match::ProtocolNumber(17))), either(2)]);
    let ports = |field: &str, port: u16| format!("meta l4proto {{ tcp, udp }} th {field} {port}");
    let set = |bit: &str| format!("meta mark set meta mark | {bit}");
    let both = "meta mark & 0x01000000 != 0 meta mark & 0x02000000 == 0";
    let expected = [
        "meta mark set meta mark & 0x80ffffff".to_owned(),
        format!("{} {}", ports("sport", 1), set("0x01000000")),
        format!("{} {}", ports("dport", 1), set("0x01000000")),
        format!("meta l4proto 17 {}", set("0x02000000")),
        format!("{both} {} meta priority set 1a57:10 accept", ports("sport", 2)),
        format!("{both} {} meta priority set 1a57:10 accept", ports("dport", 2)),
    ];
    assert_eq!(lines_for(DEVICE, &[condition], Memory::None), expected);
}

/// nft refuses such lines, and no packet would match them.
#[test]
fn a_line_asks_for_one_family_and_one_transport_protocol() {
    let v4 = Match::Address(End::Source, "10.0.0.1".parse().map(|host| Prefix::new(host, 32).unwrap()).unwrap());
    let syn = Match::TcpFlags(TcpFlags::SYN);
    let udp = Match::Protocol(Protocol::Udp);
    let conditions =
        [Match::All(vec![v4.clone(), Match::Dscp(1)]), Match::All(vec![syn.clone(), udp]), Match::All(vec![v4, syn])];
    let expected = [
        "ip saddr 10.0.0.1/32 ip dscp 1 meta priority set 1a57:10 accept",
        "ip saddr 10.0.0.1/32 tcp flags & 0x02 == 0x02 meta priority set 1a57:12 accept",
    ];
    assert_eq!(lines_for(DEVICE, &conditions, Memory::None), expected);
}

/// Seven bits are left for the parts of a rule.
#[test]
fn a_rule_with_more_parts_than_bits_has_an_obstacle() {
    let not = |number| Match::Not(Box::new(Match::ProtocolNumber(number)));
    assert_eq!(obstacle(&Match::All((0..7).map(not).collect()), Memory::None), None);
    let why = Some("more parts than the mark has bits for");
    assert_eq!(obstacle(&Match::All((0..8).map(not).collect()), Memory::None), why);
}

/// 40 to 80 bytes for IPv4 by the length of the TCP header; an ACK with timestamps has 52.
#[test]
fn a_pure_ack_has_the_length_of_its_headers() {
    let lines = pure_ack();
    assert_eq!(lines.len(), 22);
    assert!(lines[6].starts_with("tcp doff 8 ip hdrlength 5 ip length 52 "), "{}", lines[6]);
    assert!(lines[7].starts_with("tcp doff 8 ip6 nexthdr tcp ip6 length 32 "), "{}", lines[7]);
    let rules = [Rule { matches: &Match::Not(Box::new(Match::PureAck)), class: handle(1) }];
    let text = command(DEVICE, &rules, handle(2), Memory::None).as_input().unwrap().to_owned();
    assert!(text.contains("tcp flags & (fin | syn | rst | psh | ack | urg) == ack jump pure-ack"), "{text}");
    assert!(text.contains("meta mark & 0x80000000 == 0 meta priority set 1a57:1 accept"), "{text}");
}

/// No header behind IP is read in a fragment: what depends on one never holds, and its negation always does.
#[test]
fn fragments_have_addresses_and_lengths_alone() {
    let matches = [
        Match::Not(Box::new(Match::Protocol(Protocol::Tcp))),
        Match::OneOf(vec![port(End::Source, 80), Match::ProtocolNumber(6)]),
        Match::PureAck,
    ];
    let rules: Vec<Rule<'_>> =
        matches.iter().zip(1..).map(|(matches, minor)| Rule { matches, class: handle(minor) }).collect();
    let text = command(IFB, &rules, handle(9), Memory::None).as_input().unwrap().to_owned();
    let fragments = "    chain fragments {
        meta priority set 1a57:1 fwd to \"$IFB\"
        meta l4proto 6 meta priority set 1a57:2 fwd to \"$IFB\"
        fwd to \"$IFB\"
    }
";
    assert!(text.contains(fragments), "{text}");
    assert!(text.starts_with("table netdev $TABLE {\n") && text.contains("hook ingress device \"$DEV\""), "{text}");
}

#[test]
fn connections_and_hosts_are_asked_for_where_they_are_tracked() {
    let bytes = Match::ConnectionBytes(Bound::Below, ByteCount::new(1000));
    let opens = Match::NewConnections { bound: Bound::Below, count: 5, per: Duration::from_s(1) };
    let limited = Match::All(vec![opens.clone(), Match::TcpFlags(TcpFlags::SYN)]);
    let conditions = [bytes.clone(), limited, Match::FtpData];
    let lines = lines_for(DEVICE, &conditions, Memory::Kept);
    let own = "ct direction original ct original bytes < 1000 meta priority set 1a57:10 accept";
    assert_eq!(lines[0], format!("meta l4proto {{ tcp, udp }} {own}"));
    // The limit comes last: it counts what meets the rest.
    let limit = "update @hosts0-ip { ip saddr limit rate 5/second burst 5 packets } meta priority set 1a57:11 accept";
    assert_eq!(lines[2], format!("tcp flags & 0x02 == 0x02 tcp flags & 0x12 == 0x02 {limit}"));
    assert_eq!(lines[4], "ct helper \"ftp\" meta priority set 1a57:12 accept");
    assert!(lines_for(DEVICE, &conditions, Memory::None).is_empty());
    for condition in [bytes, opens, Match::FtpData] {
        assert_eq!(obstacle(&condition, Memory::Kept), None);
        assert_eq!(obstacle(&condition, Memory::None), Some("connections and hosts: nothing tracks them here"));
        let rules = [Rule { matches: &condition, class: handle(1) }];
        assert!(asks_for_memory(&rules));
    }
}
