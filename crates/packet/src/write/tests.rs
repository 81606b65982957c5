use etherparse::{IcmpEchoHeader, Icmpv4Type, Icmpv6Type, NetSlice, SlicedPacket, TcpOptionElement, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::testing::packet;
use crate::{SackBlock, SeqNumber, SynOptions, TcpFlags, checksums_hold, parse, parse_headers};

fn v4() -> FlowAddresses {
    let ip = IpAddresses::new("192.0.2.1".parse().unwrap(), "198.51.100.2".parse().unwrap()).unwrap();
    FlowAddresses { ip, source_port: 40_000, destination_port: 80 }
}

fn v6() -> FlowAddresses {
    let ip = IpAddresses::new("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()).unwrap();
    FlowAddresses { ip, source_port: 40_000, destination_port: 80 }
}

fn tcp(flags: TcpFlags, options: Options, payload_len: u16) -> Meta {
    let mut meta = Meta { flags, seq: SeqNumber::new(1), window: 64_240, ..Meta::default() };
    meta.set_options(options);
    meta.header_len = header_len(Protocol::Tcp, false, &options);
    meta.ip_len = u16::from(meta.header_len) + payload_len;
    meta
}

fn option_bytes(options: Options) -> Vec<u8> {
    let mut out = Vec::new();
    write_packet(&tcp(TcpFlags::SYN, options, 0), &v4(), &mut out);
    out[40..].to_vec()
}

const ALL_SYN: SynOptions = SynOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true };

/// The SYN options of Linux 6.1: `mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 7`, 20 bytes; without
/// timestamps `mss 1460,nop,nop,sackOK,nop,wscale 7`, 12 bytes.
#[test]
fn a_syn_is_laid_out_as_linux_does() {
    let with_timestamps = option_bytes(Options::syn(ALL_SYN).with_timestamps(1, 0));
    assert_eq!(with_timestamps, [2, 4, 5, 0xB4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
    assert_eq!(option_bytes(Options::syn(ALL_SYN)), [2, 4, 5, 0xB4, 1, 1, 4, 2, 1, 3, 3, 7]);
}

/// RFC 2018, section 3, and RFC 7323, appendix A: both options after two NOPs, 12 and 4 + 8n bytes.
#[test]
fn timestamps_and_three_sack_blocks_fill_the_header() {
    let block = |n| SackBlock { left: SeqNumber::new(n), right: SeqNumber::new(n + 1) };
    let options = Options::NONE.with_timestamps(0x0102_0304, 0x0506_0708).with_sack(&[block(16), block(32), block(48)]);
    let bytes = option_bytes(options);
    assert_eq!(bytes.len(), 40);
    assert_eq!(bytes[..16], [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 5, 26]);
    assert_eq!(bytes[16..24], [0, 0, 0, 16, 0, 0, 0, 17]);
}

/// The whole of a pure ACK, its checksums summed by hand: IP 0x4500 + 0x0028 + 0x4000 + 0x4006 +
/// 0xC000 + 0x0201 + 0xC633 + 0x6402 = 0x2B164, folded 0xB166, complement 0x4E99. TCP adds the
/// pseudo-header (0xC000 + 0x0201 + 0xC633 + 0x6402 + 6 + 20) and 0x9C40 + 0x0050 + 1 + 2 +
/// 0x5010 + 0xFAF0: 0x3D3E3 in all, folded 0xD3E6, complement 0x2C19.
#[test]
fn a_pure_ack_has_these_40_bytes() {
    let mut meta = tcp(TcpFlags::ACK, Options::NONE, 0);
    meta.ack = SeqNumber::new(2);
    let mut out = vec![1, 2, 3];
    write_packet(&meta, &v4(), &mut out);
    let ip = [0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0x4E, 0x99, 192, 0, 2, 1, 198, 51, 100, 2];
    let tcp = [0x9C, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 0xFA, 0xF0, 0x2C, 0x19, 0, 0];
    assert_eq!(out, [ip, tcp].concat());
}

/// RFC 768: a checksum that computes to 0 is sent as 0xFFFF. The test searches for a source port
/// that causes it.
#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    for ip in [v4().ip, v6().ip] {
        let meta = Meta {
            protocol: Protocol::Udp,
            header_len: header_len(Protocol::Udp, ip.is_ipv6(), &Options::NONE),
            ip_len: 100,
            ..Meta::default()
        };
        let mut out = [0; MAX_HEADER_LEN];
        let checksums: Vec<u16> = (0..=u16::MAX)
            .map(|source_port| {
                let len = write_headers(&meta, &FlowAddresses { ip, source_port, destination_port: 9 }, &mut out);
                u16::from_be_bytes([out[len - 2], out[len - 1]])
            })
            .collect();
        assert!(!checksums.contains(&0));
        // 65 536 ports give each of the 65 535 sums, one of them twice: the ports 0 and 0xFFFF.
        assert!(checksums.contains(&0xFFFF));
    }
}

#[test]
fn other_protocols_are_written_as_experimental() {
    let mut out = Vec::new();
    write_packet(&Meta { protocol: Protocol::Other, header_len: 20, ip_len: 33, ..Meta::default() }, &v4(), &mut out);
    assert_eq!((out.len(), out[9]), (33, 253));
}

#[test]
fn a_payload_that_does_not_fit_beside_the_headers_is_cut() {
    let meta = Meta { header_len: 20, ip_len: u16::MAX, ..tcp(TcpFlags::ACK, Options::NONE, 0) };
    let mut out = Vec::new();
    write_packet(&meta, &v6(), &mut out);
    assert_eq!(out.len(), usize::from(u16::MAX));
    assert_eq!(checksums_hold(&out), Ok(true));
}

fn check_tcp(tcp: &etherparse::TcpSlice<'_>, meta: &Meta, addresses: &FlowAddresses) {
    assert_eq!(tcp.source_port(), addresses.source_port);
    assert_eq!(tcp.destination_port(), addresses.destination_port);
    assert_eq!(tcp.sequence_number(), meta.seq.raw());
    assert_eq!(tcp.acknowledgment_number(), meta.ack.raw());
    assert_eq!(tcp.window_size(), meta.window);
    let bits = [tcp.fin(), tcp.syn(), tcp.rst(), tcp.psh(), tcp.ack(), tcp.urg(), tcp.ece(), tcp.cwr()];
    let flags = bits.iter().enumerate().fold(0, |flags, (bit, set)| flags | u8::from(*set) << bit);
    assert_eq!(flags, meta.flags.bits());
    let mut options = Options::NONE;
    let mut syn = SynOptions::default();
    for element in tcp.options_iterator() {
        match element.expect("etherparse reads the option") {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => syn.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => syn.window_scale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => syn.sack_permitted = true,
            TcpOptionElement::SelectiveAcknowledgement(first, more) => {
                let blocks: Vec<SackBlock> = [Some(first)]
                    .into_iter()
                    .chain(more)
                    .flatten()
                    .map(|(left, right)| SackBlock { left: SeqNumber::new(left), right: SeqNumber::new(right) })
                    .collect();
                options = options.with_sack(&blocks);
            }
            TcpOptionElement::Timestamp(value, echo_reply) => options = options.with_timestamps(value, echo_reply),
        }
    }
    assert_eq!(options.timestamps(), meta.options().timestamps());
    assert_eq!(options.sack_blocks().collect::<Vec<_>>(), meta.options().sack_blocks().collect::<Vec<_>>());
    assert_eq!(syn, meta.options().syn_options());
}

fn check_ip(net: &NetSlice<'_>, meta: &Meta, addresses: &FlowAddresses) {
    match net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            assert_eq!(header.total_len(), meta.ip_len);
            assert_eq!(header.identification(), meta.ip_id);
            assert_eq!((header.dcp().value(), header.ecn().value()), (meta.dscp(), meta.ecn()));
            assert_eq!(header.source_addr(), addresses.ip.source());
            assert_eq!(header.destination_addr(), addresses.ip.destination());
            assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            assert_eq!(header.payload_length(), meta.ip_len - 40);
            assert_eq!(header.traffic_class(), meta.traffic_class);
            assert_eq!(header.source_addr(), addresses.ip.source());
            assert_eq!(header.destination_addr(), addresses.ip.destination());
        }
        NetSlice::Arp(_) => panic!("an IP packet"),
    }
}

fn check_echo(request: bool, header: IcmpEchoHeader, meta: &Meta, addresses: &FlowAddresses) {
    assert_eq!(request, meta.protocol == Protocol::EchoRequest);
    assert_eq!(header.id, if request { addresses.source_port } else { addresses.destination_port });
    assert_eq!(u32::from(header.seq), meta.seq.raw());
}

/// The transport checksum as etherparse computes it equals the one in the packet.
fn check_transport(packet: &SlicedPacket<'_>, bytes: &[u8], meta: &Meta, addresses: &FlowAddresses) {
    let payload = vec![0; usize::from(meta.payload_len())];
    let (v4, v6) = match packet.net.as_ref().expect("an IP header") {
        NetSlice::Ipv4(ip) => (Some(ip.header().to_header()), None),
        NetSlice::Ipv6(ip) => (None, Some(ip.header().to_header())),
        NetSlice::Arp(_) => panic!("an IP packet"),
    };
    match packet.transport.as_ref() {
        Some(TransportSlice::Tcp(tcp)) => {
            check_tcp(tcp, meta, addresses);
            let header = tcp.to_header();
            let expected = match (&v4, &v6) {
                (Some(ip), _) => header.calc_checksum_ipv4(ip, &payload),
                (_, Some(ip)) => header.calc_checksum_ipv6(ip, &payload),
                _ => unreachable!("one of both"),
            };
            assert_eq!(Ok(tcp.checksum()), expected.map_err(|_| ()));
            assert_eq!(tcp.payload(), payload);
        }
        Some(TransportSlice::Udp(udp)) => {
            assert_eq!(udp.source_port(), addresses.source_port);
            assert_eq!(udp.destination_port(), addresses.destination_port);
            let header = udp.to_header();
            let expected = match (&v4, &v6) {
                (Some(ip), _) => header.calc_checksum_ipv4(ip, &payload),
                (_, Some(ip)) => header.calc_checksum_ipv6(ip, &payload),
                _ => unreachable!("one of both"),
            };
            assert_eq!(Ok(udp.checksum()), expected.map_err(|_| ()));
        }
        Some(TransportSlice::Icmpv4(icmp)) => {
            match icmp.icmp_type() {
                Icmpv4Type::EchoRequest(header) => check_echo(true, header, meta, addresses),
                Icmpv4Type::EchoReply(header) => check_echo(false, header, meta, addresses),
                other => panic!("{other:?} is no echo"),
            }
            assert_eq!(icmp.icmp_type().calc_checksum(&payload), icmp.checksum());
        }
        Some(TransportSlice::Icmpv6(icmp)) => {
            match icmp.icmp_type() {
                Icmpv6Type::EchoRequest(header) => check_echo(true, header, meta, addresses),
                Icmpv6Type::EchoReply(header) => check_echo(false, header, meta, addresses),
                other => panic!("{other:?} is no echo"),
            }
            let ip = v6.expect("ICMPv6 runs over IPv6");
            assert!(icmp.is_checksum_valid(ip.source, ip.destination));
        }
        Some(TransportSlice::Igmp(_)) => panic!("IGMP is never written"),
        None => assert_eq!(meta.protocol, Protocol::Other),
    }
    assert_eq!(bytes.len(), usize::from(meta.ip_len));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back((meta, addresses) in packet()) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let parsed = parse(&bytes).unwrap();
        prop_assert_eq!(parsed.meta, meta);
        prop_assert_eq!(parsed.key.addresses, addresses);
        prop_assert_eq!(checksums_hold(&bytes), Ok(true));
    }

    #[test]
    fn headers_alone_are_those_of_the_whole_packet((meta, addresses) in packet()) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let mut headers = [0xAA; MAX_HEADER_LEN];
        let len = write_headers(&meta, &addresses, &mut headers);
        prop_assert_eq!(len, usize::from(meta.header_len));
        prop_assert_eq!(&headers[..len], &bytes[..len]);
        prop_assert_eq!(written_len(&headers), bytes.len());
        prop_assert!(bytes[len..].iter().all(|byte| *byte == 0));
        prop_assert_eq!(parse_headers(&headers[..len]).unwrap().meta, meta);
    }

    #[test]
    fn etherparse_reads_the_same_and_finds_the_checksums_right((meta, addresses) in packet()) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let packet = SlicedPacket::from_ip(&bytes).unwrap();
        check_ip(packet.net.as_ref().unwrap(), &meta, &addresses);
        check_transport(&packet, &bytes, &meta, &addresses);
    }
}
