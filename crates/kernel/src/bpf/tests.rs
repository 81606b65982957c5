//! Programs in the interpreter, compared with the conditions of the datapath on equal bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use lastmile_linklayer::stab::Device;
use lastmile_packet::{
    FlowAddresses, Frame, IpAddresses, Meta, Options, Protocol, SackBlock, SeqNumber, TcpFlags, header_len,
    write_packet,
};
use lastmile_queueing::classify::rules;
use lastmile_queueing::classify::{Bound, Prefix};
use lastmile_queueing::{Condition, End, Environment, Match, Matcher as _};
use lastmile_units::{ByteCount, Instant};
use proptest::prelude::*;

use super::*;
use crate::order;

const DEVICES: [Device; 3] = [Device::Ethernet, Device::TaggedEthernet, Device::Ip];

/// The packet behind the headers of this kind of device.
fn frame(packet: &[u8], device: Device) -> Vec<u8> {
    let mut frame = vec![0xee; device.header() as usize];
    if let Some(at) = frame.len().checked_sub(2) {
        let ethertype: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        frame[at..].copy_from_slice(&ethertype.to_be_bytes());
    }
    frame.extend_from_slice(packet);
    frame
}

fn addresses() -> impl Strategy<Value = FlowAddresses> {
    // Few values of each field, so that conditions match sometimes.
    let v4 = (0..4_u32, 0..4_u32).prop_map(|(source, destination)| IpAddresses::V4 {
        source: Ipv4Addr::from_bits(0x0a00_0000 + source * 0x0001_0001),
        destination: Ipv4Addr::from_bits(0x0a00_0000 + destination * 0x0001_0001),
    });
    let host = |number: u128| Ipv6Addr::from_bits((0x2001_0db8 << 96) | number << 62 | number);
    let v6 = (0..4_u128, 0..4_u128).prop_map(move |(source, destination)| IpAddresses::V6 {
        source: host(source),
        destination: host(destination),
    });
    (prop_oneof![v4, v6], 20..25_u16, 20..25_u16).prop_map(|(ip, source_port, destination_port)| FlowAddresses {
        ip,
        source_port,
        destination_port,
    })
}

fn options() -> impl Strategy<Value = Options> {
    let block = SackBlock { left: SeqNumber::new(1), right: SeqNumber::new(9) };
    (0..=3_usize, any::<bool>()).prop_map(move |(blocks, timestamps)| {
        let options = Options::NONE.with_sack(&vec![block; blocks]);
        if timestamps { options.with_timestamps(1, 2) } else { options }
    })
}

fn protocol() -> impl Strategy<Value = Protocol> {
    prop_oneof![
        6 => Just(Protocol::Tcp),
        2 => Just(Protocol::Udp),
        1 => Just(Protocol::EchoRequest),
        1 => Just(Protocol::EchoReply),
        1 => Just(Protocol::Other),
    ]
}

/// The bytes of a packet.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop_oneof![3 => Just(0x10_u8), 1 => any::<u8>()];
    let payload = prop_oneof![2 => Just(0_u16), 1 => 0..8_u16, 1 => 0..1400_u16];
    // The first fragment has an offset of 0; DF may be set on a whole packet.
    let fragment = prop_oneof![8 => Just(None), 1 => Just(Some(0x2000)), 1 => Just(Some(0x4000)),
        1 => any::<u16>().prop_map(Some)];
    (addresses(), protocol(), flags, options(), payload, any::<u8>(), fragment).prop_map(
        |(addresses, protocol, flags, options, payload, traffic_class, fragment)| {
            let mut meta = Meta { protocol, traffic_class, flags: TcpFlags::from_bits(flags), ..Meta::default() };
            if protocol == Protocol::Tcp {
                meta.set_options(options);
            }
            let header = header_len(protocol, addresses.ip.is_ipv6(), &meta.options());
            meta.header_len = header;
            meta.ip_len = u16::from(header) + payload;
            let mut bytes = Vec::new();
            write_packet(&meta, &addresses, &mut bytes);
            if let (Some(fragment), false) = (fragment, addresses.ip.is_ipv6()) {
                bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
            }
            bytes
        },
    )
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Source), Just(End::Destination), Just(End::Either)]
}

fn prefix() -> impl Strategy<Value = Prefix> {
    let v4 = (0..4_u32, 0..=32_u8)
        .prop_map(|(host, bits)| (IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + host * 0x0001_0001)), bits));
    let v6 = (0..4_u128, 0..=128_u8)
        .prop_map(|(host, bits)| (IpAddr::from(Ipv6Addr::from_bits((0x2001_0db8 << 96) | host << 62 | host)), bits));
    prop_oneof![v4, v6].prop_map(|(address, bits)| Prefix::new(address, bits).unwrap())
}

fn condition() -> impl Strategy<Value = Match> {
    let flags = || any::<u8>().prop_map(TcpFlags::from_bits);
    let plain = prop_oneof![
        Just(Match::Any),
        Just(Match::Never),
        Just(Match::PureAck),
        Just(Match::SackAck),
        protocol().prop_map(Match::Protocol),
        prop_oneof![Just(6_u8), Just(17), Just(1), Just(58), Just(253)].prop_map(Match::ProtocolNumber),
        (0..64_u8).prop_map(Match::Dscp),
        any::<(u8, u8)>().prop_map(|(value, mask)| Match::TrafficClass { value, mask }),
        flags().prop_map(Match::TcpFlags),
        (flags(), flags()).prop_map(|(set, of)| Match::TcpFlagsOf { set, of }),
        (0..120_u16).prop_map(Match::AtMostBytes),
        (0..120_u16).prop_map(Match::AtLeastBytes),
        (end(), 19..26_u16, 0..4_u16).prop_map(|(end, from, more)| Match::Port(end, from..=from + more)),
        (end(), prefix()).prop_map(|(end, prefix)| Match::Address(end, prefix)),
    ];
    plain.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Match::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Match::All),
            prop::collection::vec(inner, 0..4).prop_map(Match::OneOf),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Datapath and program assign a packet to the same class, on every kind of device.
    #[test]
    fn a_program_names_the_class_that_the_rules_name(
        list in prop::collection::vec((condition(), any::<bool>()), 0..8),
        packets in prop::collection::vec(packet(), 1..8),
    ) {
        let rules: Vec<rules::Rule> = list
            .iter()
            .zip(1..)
            .map(|((matches, last), class)| rules::Rule { matches: matches.clone(), class, last: *last })
            .collect();
        let marks = Marks::default();
        let told: Vec<Rule<'_>> = order::first_match(&rules)
            .into_iter()
            .map(|place| Rule { matches: &rules[place].matches, class: rules[place].class.into() })
            .collect();
        for bytes in packets {
            let (packet, read) = Frame::new(bytes.clone());
            prop_assert!(read.is_ok());
            let mut named = 99;
            for rule in &rules {
                if Condition::new(&rule.matches, &Environment::default()).matches(Instant::ZERO, &packet) {
                    named = rule.class;
                    if rule.last {
                        break;
                    }
                }
            }
            for device in DEVICES {
                let program = Program::new(&told, 99, device, &marks);
                prop_assert_eq!(machine::run(&program, &frame(&bytes, device), 0), u32::from(named), "{:?}", device);
            }
        }
    }

    /// Any bytes produce a result: that of a frame without IP, or none for a truncated one.
    #[test]
    fn no_bytes_keep_a_program_from_its_end(bytes in prop::collection::vec(any::<u8>(), 0..120),
        matches in condition()) {
        let rules = [Rule { matches: &matches, class: 1 }];
        for device in DEVICES {
            let answer = machine::run(&Program::new(&rules, 2, device, &Marks::default()), &bytes, 0);
            prop_assert!(answer <= 2);
        }
    }
}

/// ACK sizes that a size filter misses: 52 bytes with timestamps, 64 and 72 with SACK blocks.
#[test]
fn an_ack_is_pure_whatever_its_options_are_and_data_never_is() {
    let rules = [Rule { matches: &Match::PureAck, class: 1 }];
    let program = Program::new(&rules, 2, Device::Ethernet, &Marks::default());
    let block = SackBlock { left: SeqNumber::new(1), right: SeqNumber::new(9) };
    let ip = IpAddresses::V4 { source: Ipv4Addr::LOCALHOST, destination: Ipv4Addr::LOCALHOST };
    let addresses = FlowAddresses { ip, source_port: 1, destination_port: 2 };
    let of = |options: Options, flags, payload: u16| {
        let mut meta = Meta { flags, ..Meta::default() };
        meta.set_options(options);
        meta.header_len = header_len(Protocol::Tcp, false, &meta.options());
        meta.ip_len = u16::from(meta.header_len) + payload;
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        (bytes.len(), machine::run(&program, &frame(&bytes, Device::Ethernet), 0))
    };
    let stamped = Options::NONE.with_timestamps(1, 2);
    assert_eq!(of(Options::NONE, TcpFlags::ACK, 0), (40, 1));
    assert_eq!(of(stamped, TcpFlags::ACK, 0), (52, 1));
    assert_eq!(of(stamped.with_sack(&[block]), TcpFlags::ACK, 0), (64, 1));
    assert_eq!(of(stamped.with_sack(&[block, block]), TcpFlags::ACK, 0), (72, 1));
    assert_eq!(of(Options::NONE, TcpFlags::ACK, 1), (41, 2));
    assert_eq!(of(Options::NONE, TcpFlags::ACK, 12), (52, 2), "12 bytes of payload are no timestamps");
    for flag in [TcpFlags::SYN, TcpFlags::FIN, TcpFlags::RST] {
        assert_eq!(of(Options::NONE, TcpFlags::ACK.with(flag), 0), (40, 2));
    }
}

/// The bit of a mark replaces the condition.
#[test]
fn a_mark_says_what_nft_has_found() {
    let bytes = Match::ConnectionBytes(Bound::Below, ByteCount::new(500_000));
    let listed = [rules::Rule { matches: bytes.clone(), class: 0, last: false }];
    let marks = Marks::of_rules(&listed);
    let program = Program::new(&[Rule { matches: &bytes, class: 1 }], 2, Device::Ip, &marks);
    let packet = frame(&[[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253].as_slice(), &[0; 10]].concat(), Device::Ip);
    let run = |mark| machine::run(&program, &packet, mark);
    assert_eq!([0, 1 << 24, 1 << 25, 0xffff_ffff].map(run), [2, 1, 2, 1]);
}

/// Three parts: the headers, a rule, the default.
#[test]
fn a_program_is_written_as_tc_reads_it() {
    let program = Program::new(
        &[Rule { matches: &Match::PureAck, class: 0x1a57_0010 }],
        0x1a57_0011,
        Device::Ethernet,
        &Marks::default(),
    );
    let lines = program.lines();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], format!("{},", program.len()));
    // M[2] is TCP, M[6] is only ACK, M[7] is 0: the class.
    assert_eq!(lines[2], "96 0 0 2,21 0 5 1,96 0 0 6,21 0 3 16,96 0 0 7,21 0 1 0,6 0 0 441909264,");
    assert_eq!(lines[3], "6 0 0 441909265");
}
