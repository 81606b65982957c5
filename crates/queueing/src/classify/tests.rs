use lastmile_packet::{FlowId, Meta, Protocol, TcpFlags};

use super::*;

fn ack() -> Meta {
    Meta { ip_len: 40, header_len: 40, flags: TcpFlags::ACK, ..Meta::default() }
}

const NOW: Instant = Instant::ZERO;

fn condition(condition: &Match) -> Condition {
    condition.clone().into()
}

fn covers(what: &Match, packet: &Meta) -> bool {
    condition(what).matches(NOW, packet)
}

fn class(index: u16) -> ClassIndex {
    ClassIndex::new(index)
}

#[test]
fn the_first_rule_that_matches_decides_and_the_rest_falls_through() {
    let mut classifier: FirstMatch<Meta> = FirstMatch::new(class(9))
        .rule(condition(&Match::PureAck), class(0))
        .rule(condition(&Match::Protocol(Protocol::Tcp)), class(1))
        .rule(condition(&Match::Dscp(46)), class(2));
    let data = Meta { ip_len: 1500, ..ack() };
    let voice = Meta { protocol: Protocol::Udp, traffic_class: 46 << 2, ..data };
    let other = Meta { protocol: Protocol::Udp, ..data };
    assert_eq!(classifier.classify(NOW, &ack()), class(0));
    assert_eq!(classifier.classify(NOW, &data), class(1));
    assert_eq!(classifier.classify(NOW, &voice), class(2));
    assert_eq!(classifier.classify(NOW, &other), class(9));
}

#[test]
fn a_rule_may_keep_a_state() {
    let mut left = 2;
    let two_syns = move |packet: &Meta| {
        let takes = packet.flags.contains(TcpFlags::SYN) && left > 0;
        left -= i32::from(takes);
        takes
    };
    let mut classifier: FirstMatch<Meta> = FirstMatch::new(class(1)).rule(two_syns, class(0));
    let syn = Meta { flags: TcpFlags::SYN, ..ack() };
    let classes: Vec<_> = (0..3).map(|_| classifier.classify(NOW, &syn)).collect();
    assert_eq!(classes, [class(0), class(0), class(1)]);
}

#[test]
fn conditions_combine() {
    let small_tcp = Match::All(vec![Match::Protocol(Protocol::Tcp), Match::AtMostBytes(64)]);
    let either = Match::OneOf(vec![Match::Flow(FlowId::new(7)), Match::TcpFlags(TcpFlags::SYN)]);
    assert!(covers(&small_tcp, &ack()));
    assert!(!covers(&Match::Not(Box::new(small_tcp)), &ack()));
    assert!(!covers(&either, &ack()));
    assert!(covers(&either, &Meta { flow: FlowId::new(7), ..ack() }));
    // A UDP packet has no TCP flags, whatever stands in its metadata.
    assert!(!covers(&either, &Meta { flags: TcpFlags::SYN, protocol: Protocol::Udp, ..ack() }));
    assert!(covers(&Match::All(vec![]), &ack()) && !covers(&Match::OneOf(vec![]), &ack()));
}

/// Flow 0 goes from port 50 000 to port 49 152 ([`lastmile_packet::FlowAddresses::of_simulated`]), flow 1 back.
#[test]
fn ports_are_those_of_the_directory_and_only_tcp_and_udp_have_any() {
    let far = |end| Match::Port(end, 49_152..=49_999);
    let back = Meta { flow: FlowId::new(1), ..ack() };
    assert!(covers(&far(End::Destination), &ack()) && !covers(&far(End::Destination), &back));
    assert!(covers(&far(End::Source), &back) && !covers(&far(End::Source), &ack()));
    assert!(covers(&far(End::Either), &ack()) && covers(&far(End::Either), &back));
    assert!(!covers(&far(End::Either), &Meta { protocol: Protocol::EchoRequest, ..back }));
}
