use proptest::prelude::*;

use super::*;
use crate::tcp::write_options;
use crate::testing::packet;
use crate::{EcnBytes, EcnLayout, EcnOrder, Options, SackBlock, SeqNumber, SynOptions, write_packet};

/// An IPv4 packet of these parts, with checksums of 0.
fn v4(protocol: u8, ip_options: &[u8], fragment: u16, transport: &[u8]) -> Vec<u8> {
    let header_len = 20 + ip_options.len();
    let mut bytes = vec![0x40 | (header_len / 4) as u8, 0, 0, (header_len + transport.len()) as u8, 0, 9];
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(ip_options);
    bytes.extend(transport);
    bytes
}

/// An IPv6 packet of these parts, with checksums of 0.
fn v6(next_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next_header, 64];
    bytes.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    bytes.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    bytes.extend(rest);
    bytes
}

/// A pure ACK from port 1000 to 2000 with these options.
fn ack(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x03, 0xE8, 0x07, 0xD0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0x10, 2, 0, 0, 0, 0, 0];
    bytes[12] = ((20 + options.len()) * 4) as u8;
    bytes.extend(options);
    bytes
}

fn read_options(options: &[u8]) -> Options {
    let parsed = parse(&v4(6, &[], 0, &ack(options))).unwrap();
    assert_eq!(usize::from(parsed.meta.header_len), 40 + options.len());
    parsed.meta.options()
}

#[test]
fn ipv4_options_are_passed_over() {
    let parsed = parse(&v4(6, &[0x94, 4, 0, 0], 0, &ack(&[]))).unwrap();
    assert_eq!((parsed.transport_offset, parsed.meta.header_len), (24, 44));
    assert_eq!((parsed.key.addresses.source_port, parsed.key.addresses.destination_port), (1000, 2000));
    assert!(parsed.meta.is_pure_ack());
}

#[test]
fn fragments_are_not_looked_into() {
    // More fragments; the second fragment; DF without a fragment.
    for (fragment, protocol) in [(0x2000, Protocol::Other), (0x0001, Protocol::Other), (0x4000, Protocol::Tcp)] {
        let parsed = parse(&v4(6, &[], fragment, &ack(&[]))).unwrap();
        assert_eq!(parsed.meta.protocol, protocol);
        assert_eq!(parsed.key.protocol, 6);
        assert_eq!(parsed.key.addresses.source_port == 0, protocol == Protocol::Other);
    }
    let mut fragment = vec![6, 0, 0, 0, 0, 0, 0, 1];
    fragment.extend(ack(&[]));
    let parsed = parse(&v6(44, &fragment)).unwrap();
    assert_eq!((parsed.meta.protocol, parsed.meta.header_len), (Protocol::Other, 40));
}

/// RFC 8200, section 4.1: hop-by-hop, destination options, routing, destination options, then TCP.
#[test]
fn ipv6_extension_headers_are_walked_over() {
    let mut rest = vec![60, 0, 1, 4, 0, 0, 0, 0];
    rest.extend([43, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    rest.extend([60, 0, 4, 0, 0, 0, 0, 0]);
    rest.extend([6, 0, 1, 4, 0, 0, 0, 0]);
    rest.extend(ack(&[]));
    let mut bytes = v6(0, &rest);
    let parsed = parse(&bytes).unwrap();
    assert_eq!((parsed.meta.protocol, parsed.transport_offset, parsed.key.protocol), (Protocol::Tcp, 80, 6));
    assert!(parsed.meta.is_pure_ack());

    // A routing header with segments left: the checksum covers the last hop, not the destination.
    bytes[40 + 24 + 3] = 1;
    assert_eq!(parse(&bytes).unwrap().meta.protocol, Protocol::Other);
}

#[test]
fn what_is_authenticated_or_encrypted_or_unknown_is_other() {
    for next_header in [51, 50, 59, 135, 253] {
        let mut rest = vec![6, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        rest.extend(ack(&[]));
        let parsed = parse(&v6(next_header, &rest)).unwrap();
        assert_eq!((parsed.meta.protocol, parsed.key.protocol), (Protocol::Other, next_header));
    }
    // ICMP belongs to IPv4, ICMPv6 to IPv6; ICMP time exceeded is no echo.
    assert_eq!(parse(&v4(58, &[], 0, &[128; 8])).unwrap().meta.protocol, Protocol::Other);
    assert_eq!(parse(&v6(1, &[8; 8])).unwrap().meta.protocol, Protocol::Other);
    assert_eq!(parse(&v4(1, &[], 0, &[11, 0, 0, 0, 0, 0, 0, 0])).unwrap().meta.protocol, Protocol::Other);
}

#[test]
fn a_chain_of_extensions_too_long_for_the_metadata_is_other() {
    let mut rest = vec![60, 20, 1, 4];
    rest.resize(168, 0);
    rest[0] = 6;
    rest.extend(ack(&[]));
    let parsed = parse(&v6(60, &rest)).unwrap();
    assert_eq!((parsed.meta.protocol, parsed.meta.header_len), (Protocol::Other, 40));
}

/// A SYN of macOS: `mss 1460,nop,wscale 6,nop,nop,TS,sackOK,eol`, 24 bytes where Linux takes 20.
#[test]
fn other_layouts_of_known_options_are_understood() {
    let options = read_options(&[2, 4, 5, 0xB4, 1, 3, 3, 6, 1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 0, 4, 2, 0, 0]);
    let syn = SynOptions { mss: Some(1460), window_scale: Some(6), sack_permitted: true };
    assert_eq!(options, Options::syn(syn).with_timestamps(5, 0));
}

#[test]
fn sack_blocks_are_read_in_order_beside_timestamps() {
    let options = read_options(&[
        1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 18, 0, 0, 0, 9, 0, 0, 0, 10, 0, 0, 0, 5, 0, 0, 0, 6,
    ]);
    let block = |n| SackBlock { left: SeqNumber::new(n), right: SeqNumber::new(n + 1) };
    assert_eq!(options, Options::NONE.with_timestamps(1, 2).with_sack(&[block(9), block(5)]));
    assert!(!options.has_unknown());
}

/// The options of a Linux receiver without timestamps that holds four ranges: `nop,nop,sack 4`, 36
/// bytes.
#[test]
fn a_fourth_sack_block_is_read_and_written() {
    let mut bytes = vec![1, 1, 5, 34];
    bytes.extend((0..8u32).flat_map(u32::to_be_bytes));
    let options = read_options(&bytes);
    assert_eq!((options.sack_count(), options.has_unknown(), options.header_bytes()), (4, false, 36));
    assert_eq!((options.timestamps(), options.syn_options()), (None, SynOptions::default()));
    let edges: Vec<u32> = options.sack_blocks().flat_map(|block| [block.left.raw(), block.right.raw()]).collect();
    assert_eq!(edges, [0, 1, 2, 3, 4, 5, 6, 7]);
    let mut written = [0; Options::MAX_BYTES];
    let len = write_options(&mut written, &options);
    assert_eq!(written[..len], bytes);
}

/// Linux 7 writes kind 174 behind the timestamps: `nop,nop,TS,accecn1 e1b ceb e0b,nop`, and fewer counters where the
/// others have not moved (`tcp_options_write`). RFC 9768, section 3.2.3, permits each length and both orders.
#[test]
fn an_accecn_option_of_any_order_and_length_is_read_and_written() {
    let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let counters = [0, 0, 1, 0, 0, 9, 0x12, 0x34, 0x56];
    let bytes = |kind: u8, count: usize| {
        let mut bytes = stamps.to_vec();
        bytes.extend([kind, 2 + 3 * count as u8]);
        bytes.extend(&counters[..3 * count]);
        bytes.resize(bytes.len().next_multiple_of(4), 1);
        bytes
    };
    for (kind, order) in [(172, EcnOrder::Ect0First), (174, EcnOrder::Ect1First)] {
        for count in 0..=3 {
            let bytes = bytes(kind, count);
            let options = read_options(&bytes);
            assert!(!options.has_unknown(), "{bytes:?}");
            assert_eq!(options.accecn_layout(), EcnLayout::new(order, count as u8));
            assert_eq!((options.timestamps(), usize::from(options.header_bytes())), (Some((1, 2)), bytes.len()));
            let mut written = [0; Options::MAX_BYTES];
            let len = write_options(&mut written, &options);
            assert_eq!(written[..len], bytes);
        }
    }
    let of_linux = EcnBytes { ect1: 1, ce: 9, ect0: 0x12_3456 };
    assert_eq!(read_options(&bytes(174, 3)).accecn(), Some(of_linux));
    assert_eq!(read_options(&bytes(174, 2)).accecn(), None, "not all counters");
}

#[test]
fn what_is_not_understood_makes_the_options_unknown() {
    let cases: [(&str, &[u8]); 13] = [
        ("an AccECN option with half a counter", &[172, 4, 0, 1]),
        ("an AccECN option of four counters", &[174, 14, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1]),
        ("two AccECN options", &[174, 5, 0, 0, 1, 172, 5, 0, 0, 1, 1, 1]),
        ("multipath TCP, RFC 8684", &[30, 4, 0, 0]),
        ("a second window scale", &[3, 3, 7, 3, 3, 7, 1, 1]),
        ("timestamps of a wrong length", &[8, 8, 0, 0, 0, 0, 0, 0]),
        ("an MSS of a wrong length", &[2, 3, 5, 1]),
        ("SACK without a block", &[5, 2, 1, 1]),
        ("half a SACK block", &[5, 6, 0, 0, 0, 1, 1, 1]),
        ("a length of 0", &[1, 1, 8, 0]),
        ("a length of 1", &[1, 1, 253, 1]),
        ("a length past the header", &[1, 1, 8, 10]),
        ("a kind without its length", &[1, 1, 1, 253]),
    ];
    for (case, bytes) in cases {
        assert!(read_options(bytes).has_unknown(), "{case}");
    }
    assert!(!read_options(&[1, 1, 1, 0]).has_unknown());
    assert!(!read_options(&[0, 172, 172, 172]).has_unknown(), "what stands behind the end is padding");
}

#[test]
fn sack_blocks_and_options_of_a_syn_contradict_each_other() {
    let options = read_options(&[2, 4, 5, 0xB4, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    assert_eq!((options.sack_count(), options.has_unknown()), (1, true));
    assert_eq!(options.syn_options(), SynOptions::default());
}

/// Accurate ECN (RFC 9768) uses one of the four bits next to the data offset; the others are reserved.
#[test]
fn reserved_bits_keep_a_segment_from_being_a_pure_ack() {
    for (bit, pure) in [(0, true), (1, true), (2, false), (4, false), (8, false)] {
        let mut bytes = v4(6, &[], 0, &ack(&[]));
        bytes[32] |= bit;
        assert_eq!(parse(&bytes).unwrap().meta.is_pure_ack(), pure, "{bit}");
    }
}

#[test]
fn lengths_that_contradict_the_packet_are_errors_with_their_place() {
    let length = |offset, field, value| Err(ParseError::Length { offset, field, value });
    let sound = v4(6, &[], 0, &ack(&[]));
    let with = |at: usize, value: u8| {
        let mut bytes = sound.clone();
        bytes[at] = value;
        parse(&bytes)
    };
    assert_eq!(with(0, 0x44), length(0, "IHL", 4));
    assert_eq!(with(3, 19), length(2, "total length", 19));
    assert_eq!(with(32, 0x40), length(32, "data offset", 4));
    assert_eq!(with(32, 0x60), length(32, "data offset", 6));
    assert_eq!(with(0, 0x55), Err(ParseError::Version { version: 5 }));
    // The TCP header is whole, but the packet's length in the IP header ends inside it.
    assert_eq!(with(3, 39), Err(ParseError::Truncated { offset: 39, needed: 40 }));
    assert_eq!(parse(&v4(17, &[], 0, &[0, 1, 0, 2, 0, 7, 0, 0])), length(24, "UDP length", 7));
    assert_eq!(parse(&v4(17, &[], 0, &[0, 1, 0, 2, 0, 9, 0, 0])), length(24, "UDP length", 9));
    assert_eq!(with(0, 0x44).unwrap_err().to_string(), "IHL at byte 0 is 4, which does not fit the packet");
}

#[test]
fn jumbograms_and_packets_beyond_65535_bytes_are_errors() {
    let mut bytes = v6(0, &[6, 0, 0xC2, 4, 0, 1, 0, 0]);
    bytes[4..6].fill(0);
    assert_eq!(parse(&bytes), Err(ParseError::Length { offset: 4, field: "payload length", value: 0 }));
    bytes[4..6].fill(0xFF);
    assert_eq!(parse(&bytes), Err(ParseError::Length { offset: 4, field: "payload length", value: 65_535 }));
}

#[test]
fn udp_may_be_shorter_than_its_packet() {
    // RFC 9868: four bytes of options behind a datagram of 9 bytes.
    let mut bytes = v4(17, &[], 0, &[0, 1, 0, 2, 0, 9, 0, 0, 7, 0, 0, 0, 0]);
    let ip = Sum::ZERO.bytes(&bytes[..20]).checksum();
    bytes[10..12].copy_from_slice(&ip.to_be_bytes());
    let parsed = parse(&bytes).unwrap();
    assert_eq!((parsed.meta.protocol, parsed.meta.payload_len()), (Protocol::Udp, 5));
    assert_eq!(checksums_hold(&bytes), Ok(true), "over IPv4 a checksum of 0 is none");
    let udp = Sum::ZERO.pseudo_header(&parsed.key.addresses.ip, 17, 9).bytes(&bytes[20..29]).checksum();
    bytes[26..28].copy_from_slice(&udp.to_be_bytes());
    assert_eq!(checksums_hold(&bytes), Ok(true));
    bytes[28] ^= 1;
    assert_eq!(checksums_hold(&bytes), Ok(false));
}

#[test]
fn udp_over_ipv6_needs_a_checksum() {
    assert_eq!(checksums_hold(&v6(17, &[0, 1, 0, 2, 0, 8, 0, 0])), Ok(false));
}

proptest! {
    #[test]
    fn bytes_that_end_early_are_truncated_at_their_end((meta, addresses) in packet(),
        cut in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let cut = cut.index(bytes.len());
        match parse(&bytes[..cut]) {
            Err(ParseError::Truncated { offset, needed }) => prop_assert!(offset == cut && needed > cut && needed
                <= bytes.len()),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert_eq!(parse_headers(&bytes[..cut]).is_ok(), cut >= usize::from(meta.header_len));
    }

    #[test]
    fn a_flipped_bit_is_found_by_the_checksums((meta, addresses) in packet(), bit in any::<prop::sample::Index>()) {
        prop_assume!(meta.protocol != Protocol::Other && !meta.mark.ipv6());
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        // A flipped bit in type, length or checksum of UDP or ICMP may turn the packet into another
        // kind.
        let unchanged_sort = parse(&bytes).is_ok_and(|parsed| parsed.meta.protocol == meta.protocol);
        prop_assume!(unchanged_sort && !(meta.protocol == Protocol::Udp && bytes[26..28] == [0, 0]));
        prop_assert_eq!(checksums_hold(&bytes), Ok(false));
    }

    #[test]
    fn noise_never_panics_and_lengths_never_lie(mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in 4..=6u8) {
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 0x0F;
        }
        if let Ok(Parsed { meta, transport_offset, .. }) = parse(&bytes) {
            prop_assert!(u16::from(meta.header_len) <= meta.ip_len);
            prop_assert!(transport_offset <= meta.header_len);
            prop_assert!(usize::from(meta.ip_len) <= bytes.len());
            checksums_hold(&bytes).unwrap();
        }
    }

    #[test]
    fn sound_packets_with_a_changed_byte_never_panic((meta, addresses) in packet(),
        at in any::<prop::sample::Index>(), value: u8) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let at = at.index(bytes.len().min(100));
        bytes[at] = value;
        if let Ok(Parsed { meta, .. }) = parse(&bytes) {
            prop_assert!(u16::from(meta.header_len) <= meta.ip_len);
        }
    }
}

#[test]
fn what_is_usual_takes_the_short_way() {
    let stamps = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let datagram = [0, 53, 0, 54, 0, 9, 0, 0, 1];
    let usual = [v4(6, &[], 0x4000, &ack(&[])), v4(6, &[], 0, &ack(&stamps)), v4(17, &[], 0, &datagram)];
    let sack = [1, 1, 5, 10, 0, 0, 0, 7, 0, 0, 0, 9];
    let unusual = [
        v4(6, &[], 0x2000, &ack(&[])),
        v4(6, &[1, 1, 1, 1], 0, &ack(&[])),
        v4(6, &[], 0, &ack(&sack)),
        v4(17, &[], 0, &datagram[..8]),
        v6(6, &ack(&[])),
    ];
    let is_usual = |bytes: &Vec<u8>| read_usual(bytes, &mut Meta::default()).is_some();
    assert!(usual.iter().all(is_usual));
    assert!(!unusual.iter().any(is_usual));
}

proptest! {
    /// The fast path agrees with the full parser on valid packets and on packets with a few bytes
    /// changed or cut off. Where it returns nothing, the metadata are unchanged.
    #[test]
    fn the_short_way_is_the_long_one(
        udp in any::<bool>(),
        stamped in any::<bool>(),
        payload in 0..40_usize,
        changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..3),
        cut in prop::option::weighted(0.2, 0..80_usize),
    ) {
        let options: &[u8] = if stamped { &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8] } else { &[] };
        let mut transport = if udp { vec![0, 53, 0, 54, 0, 8 + payload as u8, 0, 0] } else { ack(options) };
        transport.extend(std::iter::repeat_n(0xAB, payload));
        let mut bytes = v4(if udp { 17 } else { 6 }, &[], 0, &transport);
        for (at, byte) in changes {
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        bytes.truncate(cut.unwrap_or(usize::MAX));
        let before = Meta { ip_id: 4711, seq: SeqNumber::new(5), ..Meta::default() };
        let (mut short, mut long) = (before, before);
        match read_usual(&bytes, &mut short) {
            Some(found) => {
                prop_assert_eq!(read(&bytes, &mut long), Ok(found));
                prop_assert_eq!(short, long);
            }
            None => prop_assert_eq!(short, before),
        }
        let (mut short, mut long) = (before, before);
        match read_usual_headers(&bytes, &mut short) {
            Some(found) => {
                prop_assert_eq!(read_headers(&bytes, &mut long), Ok(found));
                prop_assert_eq!(short, long);
            }
            None => prop_assert_eq!(short, before),
        }
    }
}
