use lastmile_packet::{FlowId, Meta, Protocol, TcpFlags};
use lastmile_units::{ByteCount, Duration};

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
    // A UDP packet has no TCP flags, whatever its metadata hold.
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

#[test]
fn protocol_numbers_signals_and_sack() {
    let datagram = Meta { protocol: Protocol::Udp, ..ack() };
    // TCP is 6 and UDP 17 (IANA).
    assert!(covers(&Match::ProtocolNumber(6), &ack()) && !covers(&Match::ProtocolNumber(17), &ack()));
    assert!(covers(&Match::ProtocolNumber(17), &datagram) && !covers(&Match::ProtocolNumber(6), &datagram));
    let mut list = lastmile_packet::AckList::EMPTY;
    assert!(list.push(1000, lastmile_packet::AckList::MAX_BYTES));
    assert!(covers(&Match::PureAck, &lastmile_packet::Packet::signal(&ack(), &list)));
    let block = lastmile_packet::SackBlock::default();
    let mut sack = Meta { ip_len: 52, header_len: 52, ..ack() };
    sack.set_options(lastmile_packet::Options::NONE.with_sack(&[block]));
    assert!(covers(&Match::SackAck, &sack));
    assert!(!covers(&Match::SackAck, &Meta { ip_len: 1500, ..sack }), "data is no pure ACK");
}

#[test]
fn flags_and_masks_are_looked_at_whole() {
    let both = TcpFlags::SYN.with(TcpFlags::ACK);
    assert!(!covers(&Match::TcpFlags(both), &ack()));
    assert!(covers(&Match::TcpFlags(both), &Meta { flags: both, ..ack() }));
    // Bits of the value that the mask leaves out do not count.
    let low_delay = Match::TrafficClass { value: 0xF0, mask: 0x10 };
    assert!(covers(&low_delay, &Meta { traffic_class: 0x10, ..ack() }));
    let far = Match::Port(End::Either, 49_152..=49_999);
    assert!(covers(&far, &Meta { protocol: Protocol::Udp, ..ack() }));
}

/// A connection of 40 bytes is neither below nor above 40 bytes; headers count. An echo is of no connection.
#[test]
fn bounds_are_strict_and_count_ip_bytes() {
    use lastmile_units::ByteCount;
    let bytes = |bound, count| Match::ConnectionBytes(bound, ByteCount::new(count));
    for packet in [ack(), Meta { protocol: Protocol::Udp, ..ack() }] {
        assert!(!covers(&bytes(Bound::Below, 40), &packet) && covers(&bytes(Bound::Below, 41), &packet));
        assert!(!covers(&bytes(Bound::Above, 40), &packet) && covers(&bytes(Bound::Above, 39), &packet));
    }
    assert!(!covers(&bytes(Bound::Above, 0), &Meta { protocol: Protocol::EchoRequest, ..ack() }));
}

#[test]
fn prefixes_of_all_bits_hold_one_address() {
    for (one, other, bits) in [("192.0.2.1", "192.0.2.0", 32), ("2001:db8::1", "2001:db8::", 128)] {
        let prefix = Prefix::new(one.parse().unwrap(), bits).expect("as many bits as an address has");
        assert!(prefix.contains(one.parse().unwrap()) && !prefix.contains(other.parse().unwrap()));
        assert_eq!(Prefix::new(one.parse().unwrap(), bits + 1), None);
    }
}

#[test]
fn the_first_512_bytes_are_looked_at() {
    let pattern = |at| Pattern { bytes: vec![7], at };
    let payload = |at: usize| (0..600).map(|n| if n == at { 7 } else { 0 }).collect::<Vec<u8>>();
    assert!(pattern(None).is_in(&payload(511)) && !pattern(None).is_in(&payload(512)));
    assert!(pattern(Some(511)).is_in(&payload(511)) && !pattern(Some(511)).is_in(&payload(510)));
}

#[test]
fn a_pattern_is_found_behind_its_own_beginning_and_at_the_very_end() {
    let is_in = |bytes: &[u8], text: &[u8]| Pattern { bytes: bytes.to_vec(), at: None }.is_in(text);
    for (pattern, text) in [(b"aab", b"aaab".as_slice()), (b"aab", b"aab"), (b"\0\0\x01", b"\0\0\0\x01\0")] {
        assert!(is_in(pattern, text));
    }
    for text in [b"aaba".as_slice(), b"aab", b"ab", b""] {
        assert!(!is_in(b"aabb", text));
    }
}

#[test]
fn what_can_just_be_is_allowed() {
    use lastmile_units::Duration;
    let pattern = |bytes, at| Match::FirstPayload(Pattern { bytes, at });
    assert_eq!(pattern(vec![1, 2], Some(510)).check(), Ok(()));
    assert_eq!(Match::OneOf((0..64).map(|byte| pattern(vec![byte], None)).collect()).check(), Ok(()));
    let opened = |count, per| Match::NewConnections { bound: Bound::Below, count, per }.check();
    assert_eq!((opened(1, Duration::from_ms(1)), opened(1_000_000, Duration::from_s(3600))), (Ok(()), Ok(())));
    for (count, per) in [(1, Duration::from_us(999)), (1, Duration::from_s(3601)), (1_000_001, Duration::from_s(1))] {
        assert_eq!(opened(count, per), Err(MatchError::NewConnections));
    }
}

/// Two packets of 40 bytes make a connection of more than 50. One-packet connections, more than are
/// remembered, switch that off for nobody.
#[test]
fn a_flood_of_connections_forgets_none_that_goes_on() {
    let mut more_than_one = condition(&Match::ConnectionBytes(Bound::Above, ByteCount::new(50)));
    let mut of = |connection: u32| more_than_one.matches(NOW, &Meta { flow: FlowId::new(2 * connection), ..ack() });
    assert!(!of(0) && of(0));
    for connection in 1..200_000 {
        assert!(!of(connection));
    }
    assert!(of(0), "it was settled");
    assert!(!of(200_000) && of(200_000), "a new one is remembered");
    assert!(!of(1), "of a single packet, long ago: forgotten");
}

/// 256 simulated connections have one host: one new connection a minute each.
#[test]
fn a_flood_of_hosts_empties_the_bucket_of_none() {
    let limit = Match::NewConnections { bound: Bound::Below, count: 1, per: Duration::from_s(60) };
    let mut takes = condition(&limit);
    let mut opens =
        |host: u32| takes.matches(NOW, &Meta { flow: FlowId::new(2 * 256 * host), flags: TcpFlags::SYN, ..ack() });
    assert!(opens(0) && !opens(0));
    for host in 1..10_000 {
        assert!(opens(host), "{host}");
    }
    assert!(!opens(0), "its bucket is empty still");
}
