use proptest::prelude::*;

use super::*;
use crate::parse::parse;
use crate::testing::{ack_options, packet, pure_ack};
use crate::{NumberedFlows, Options, SackBlock, SeqNumber, checksums_hold, write_packet};

fn frame(bytes: &[u8]) -> Frame {
    Frame::new(bytes.to_vec()).0
}

fn ack_fields() -> impl Strategy<Value = AckFields> {
    (any::<u32>(), any::<u16>(), ack_options()).prop_map(|(ack, window, options)| AckFields {
        ack: SeqNumber::new(ack),
        window,
        options,
    })
}

/// A pure ACK from 10.0.0.1:1000 to 10.0.0.2:2000, ack 1, window 512, with these TCP options.
fn ack_with_options(options: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend([0x03, 0xE8, 0x07, 0xD0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0x10, 2, 0, 0, 0, 0, 0]);
    bytes.extend(options);
    bytes[3] = bytes.len() as u8;
    bytes[32] = ((20 + options.len()) * 4) as u8;
    let ip = Sum::ZERO.bytes(&bytes[..20]).checksum();
    bytes[10..12].copy_from_slice(&ip.to_be_bytes());
    let addresses = parse(&bytes).unwrap().key.addresses.ip;
    let tcp = Sum::ZERO.pseudo_header(&addresses, 6, bytes.len() as u16 - 20).bytes(&bytes[20..]).checksum();
    bytes[36..38].copy_from_slice(&tcp.to_be_bytes());
    assert_eq!(checksums_hold(&bytes), Ok(true));
    bytes
}

/// Sets right checksums in a whole TCP packet.
fn seal(bytes: &mut [u8]) {
    let parsed = parse(bytes).unwrap();
    let transport = usize::from(parsed.transport_offset);
    if !parsed.meta.mark.ipv6() {
        bytes[10..12].fill(0);
        let checksum = Sum::ZERO.bytes(&bytes[..transport]).checksum();
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes[transport + 16..transport + 18].fill(0);
    let len = (bytes.len() - transport) as u16;
    let sum = Sum::ZERO.pseudo_header(&parsed.key.addresses.ip, 6, len).bytes(&bytes[transport..]);
    bytes[transport + 16..transport + 18].copy_from_slice(&sum.checksum().to_be_bytes());
    assert_eq!(checksums_hold(bytes), Ok(true));
}

/// The metadata that a frame has before the payload's checksum is verified.
fn read_from_bytes(mut meta: Meta) -> Meta {
    if meta.protocol == Protocol::Tcp && meta.payload_len() > 0 {
        meta.mark.set_unverified();
    }
    meta
}

/// The NOPs follow the timestamps instead of preceding them.
#[test]
fn new_options_are_laid_out_anew_and_equal_ones_stay_as_they_are() {
    let unusual = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1];
    let mut frame = frame(&ack_with_options(&unusual));
    let mut newest = frame.meta().ack_fields();
    newest.ack = SeqNumber::new(99);
    frame.rewrite_ack(&newest);
    assert_eq!(frame.bytes()[28..32], [0, 0, 0, 99]);
    assert_eq!(frame.bytes()[40..], unusual);
    assert_eq!(checksums_hold(frame.bytes()), Ok(true));

    newest.options = Options::NONE.with_timestamps(3, 4);
    frame.rewrite_ack(&newest);
    assert_eq!(frame.bytes()[40..], [1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4]);
    assert_eq!(checksums_hold(frame.bytes()), Ok(true));
}

#[test]
fn an_ack_that_gains_a_sack_block_grows_by_twelve_bytes_and_shrinks_again() {
    let plain = ack_with_options(&[]);
    let mut frame = frame(&plain);
    let without = frame.meta().ack_fields();
    let block = SackBlock { left: SeqNumber::new(10), right: SeqNumber::new(20) };
    frame.rewrite_ack(&AckFields { options: Options::NONE.with_sack(&[block]), ..without });
    assert_eq!(frame.bytes().len(), 52);
    assert_eq!((frame.meta().ip_len, frame.meta().header_len), (52, 52));
    assert_eq!(frame.bytes()[2..4], [0, 52]);
    assert_eq!(frame.bytes()[32] >> 4, 8);
    assert_eq!(checksums_hold(frame.bytes()), Ok(true));
    frame.rewrite_ack(&without);
    assert_eq!(frame.bytes(), plain);
}

/// 100 steps of 1460 take three bytes, an option of six, two words.
#[test]
fn a_list_is_put_in_and_taken_out_again() {
    let plain = ack_with_options(&[8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1]);
    let mut frame = frame(&plain);
    let without = frame.meta().ack_fields();
    let mut list = AckList::EMPTY;
    assert!((0..100).all(|_| list.push(1460, AckList::MAX_OPTION_BYTES)));
    frame.rewrite_ack(&AckFields { options: without.options.with_list(&list), ..without });
    assert_eq!((frame.meta().ip_len, frame.meta().header_len, frame.bytes().len()), (60, 60, 60));
    assert_eq!(frame.bytes()[20..28], [30, 6, 0xA7, 0xB4, 0x0B, 100, 0, 0]);
    assert_eq!(frame.bytes()[48..], plain[40..], "the TCP options stay as they were");
    assert_eq!(checksums_hold(frame.bytes()), Ok(true));
    let (parsed, _) = Frame::new(frame.bytes().to_vec());
    assert_eq!((parsed.meta().list(), parsed.meta().is_pure_ack()), (list, true));
    frame.rewrite_ack(&without);
    assert_eq!(frame.bytes(), plain);
}

/// A router alert (RFC 2113) occupies the list's position.
#[test]
fn beside_another_ip_option_there_is_no_list() {
    let plain = ack_with_options(&[]);
    let mut bytes = [&plain[..20], &[148, 4, 0, 0], &plain[20..]].concat();
    (bytes[0], bytes[3]) = (0x46, 44);
    bytes[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(&bytes[..24]).checksum();
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = frame(&bytes);
    assert!(frame.meta().is_pure_ack() && !frame.takes_list());
    let mut list = AckList::EMPTY;
    assert!(list.push(1460, AckList::MAX_OPTION_BYTES));
    let before = frame.meta().ack_fields();
    frame.rewrite_ack(&AckFields { options: before.options.with_list(&list), ..before });
    assert_eq!(frame.bytes(), bytes);
}

#[test]
fn what_stands_behind_a_packet_stays_there() {
    let packet = ack_with_options(&[]);
    let mut padded = frame(&[&packet[..], &[1, 2, 3]].concat());
    assert_eq!(
        (padded.packet_bytes(), padded.trailer(), padded.meta().payload_len()),
        (&packet[..], &[1, 2, 3][..], 0)
    );
    let without = padded.meta().ack_fields();
    let block = SackBlock { left: SeqNumber::new(10), right: SeqNumber::new(20) };
    padded.rewrite_ack(&AckFields { options: Options::NONE.with_sack(&[block]), ..without });
    assert_eq!((padded.meta().ip_len, padded.bytes().len(), padded.trailer()), (52, 55, &[1, 2, 3][..]));
    assert_eq!(checksums_hold(padded.packet_bytes()), Ok(true));
    padded.rewrite_ack(&without);
    assert_eq!(padded.bytes(), [&packet[..], &[1, 2, 3]].concat());
}

#[test]
fn bytes_that_cannot_be_read_become_a_frame_that_passes_untouched() {
    for bytes in [vec![], vec![0x45, 0, 0], vec![0xF0; 70_000]] {
        let (frame, key) = Frame::new(bytes.clone());
        assert!(key.is_err());
        assert_eq!(frame.meta().protocol, Protocol::Other);
        assert_eq!(usize::from(frame.meta().ip_len), bytes.len().min(65_535));
        assert!(!frame.meta().is_pure_ack());
        assert_eq!(frame.into_bytes(), bytes);
    }
}

/// RFC 3168, section 5: ECT(1) and ECT(0) become CE; CE and Not-ECT are unchanged.
#[test]
fn only_a_capable_packet_is_marked_and_its_dscp_stays() {
    for (before, after, marked) in [(0xB8, 0xB8, false), (0xB9, 0xBB, true), (0xBA, 0xBB, true), (0xBB, 0xBB, true)] {
        let mut bytes = ack_with_options(&[]);
        bytes[1] = before;
        bytes[10..12].fill(0);
        let sum = Sum::ZERO.bytes(&bytes[..20]).checksum();
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        let mut frame = frame(&bytes);
        let mut simulated = *frame.meta();
        assert_eq!((frame.mark_ce(), simulated.mark_ce()), (marked, marked));
        assert_eq!((frame.bytes()[1], frame.meta().traffic_class, simulated.traffic_class), (after, after, after));
        assert_eq!(checksums_hold(frame.bytes()), Ok(true));
    }
}

/// A fragment has an IP header, and no readable bytes behind it.
#[test]
fn what_the_bytes_do_not_have_is_not_set() {
    let mut fragment = ack_with_options(&[]);
    fragment[6] = 0x20;
    let mut fragment = frame(&fragment);
    let before = fragment.clone();
    fragment.set_window(1);
    assert_eq!(fragment, before);
    fragment.set_dscp(46);
    assert_eq!(fragment.bytes()[1], 46 << 2);

    let mut unreadable = frame(&[0x45, 0, 0]);
    unreadable.set_dscp(46);
    assert!(!unreadable.mark_ce());
    assert_eq!((unreadable.bytes(), unreadable.meta().traffic_class), (&[0x45, 0, 0][..], 0));
}

/// A debug build panics on the broken contract.
#[cfg(not(debug_assertions))]
#[test]
fn a_packet_that_is_no_pure_ack_stays_as_it_is() {
    let mut bytes = ack_with_options(&[]);
    bytes[33] |= 0x01;
    let mut fin = frame(&bytes);
    let newest = AckFields { ack: SeqNumber::new(5), ..fin.meta().ack_fields() };
    fin.rewrite_ack(&newest);
    assert_eq!(fin.bytes(), bytes);
}

proptest! {
    #[test]
    fn a_frame_keeps_its_bytes((meta, addresses) in packet()) {
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let (frame, key) = Frame::new(bytes.clone());
        prop_assert_eq!(frame.bytes(), &bytes);
        prop_assert_eq!(*frame.meta(), read_from_bytes(meta));
        let segment = frame.segment().map(|segment| *segment);
        prop_assert_eq!(segment, (meta.protocol == Protocol::Tcp).then(|| read_from_bytes(meta)));
        prop_assert_eq!(frame.meta().pure_ack().is_some(), meta.is_pure_ack());
        prop_assert_eq!(key.unwrap().addresses, addresses);
        prop_assert_eq!(frame.key(&NumberedFlows), Some(key.unwrap()));
        prop_assert_eq!(frame.payload(&NumberedFlows).len(), usize::from(meta.payload_len()));
        let mut headers = [0; MAX_HEADER_LEN];
        prop_assert_eq!(frame.headers(&NumberedFlows, &mut headers), usize::from(meta.header_len));
        prop_assert!(bytes.starts_with(&headers[..usize::from(meta.header_len)]));
    }

    #[test]
    fn after_a_rewrite_everything_is_as_if_written_anew(
        (meta, addresses) in pure_ack(),
        newest in prop::collection::vec(ack_fields(), 1..4),
    ) {
        let mut expected = meta;
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let mut frame = frame(&bytes);
        for newest in &newest {
            frame.rewrite_ack(newest);
            expected.rewrite_ack(newest);
            write_packet(&expected, &addresses, &mut bytes);
            prop_assert_eq!(checksums_hold(frame.bytes()), Ok(true));
            prop_assert_eq!(frame.bytes(), &bytes);
            prop_assert_eq!(*frame.meta(), expected);
            prop_assert_eq!(frame.meta().ack_fields(), *newest);
        }
    }

    #[test]
    fn after_a_mark_and_a_clamp_everything_is_as_if_written_anew(
        (meta, addresses) in packet(),
        window in any::<u16>(),
        dscp in 0..64u8,
    ) {
        let mut expected = meta;
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let mut frame = frame(&bytes);
        expected.set_window(window);
        frame.set_window(window);
        expected.set_dscp(dscp);
        frame.set_dscp(dscp);
        prop_assert_eq!(frame.mark_ce(), expected.mark_ce());
        write_packet(&expected, &addresses, &mut bytes);
        prop_assert_eq!(checksums_hold(frame.bytes()), Ok(true));
        prop_assert_eq!(frame.bytes(), &bytes);
        prop_assert_eq!(*frame.meta(), read_from_bytes(expected));
        prop_assert_eq!((frame.meta().dscp(), frame.meta().ecn() & 1 == 1), (dscp, meta.ecn() != 0));
    }

    /// Bytes that no rewrite touches, among them TTL, flow label and urgent pointer, which the
    /// writer never sets.
    #[test]
    fn all_other_bytes_stay((meta, addresses) in pure_ack(), newest in ack_fields(), noise in any::<[u8; 4]>()) {
        let mut meta = meta;
        meta.rewrite_ack(&AckFields { options: meta.options().without_list(), ..meta.ack_fields() });
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        let transport = if meta.mark.ipv6() { 40 } else { 20 };
        if meta.mark.ipv6() {
            bytes[2..4].copy_from_slice(&noise[..2]);
            bytes[7] = noise[2];
        } else {
            bytes[8] = noise[2];
        }
        bytes[transport + 18..transport + 20].copy_from_slice(&noise[..2]);
        seal(&mut bytes);
        let newest = AckFields { options: newest.options.without_list(), ..newest };
        let mut frame = frame(&bytes);
        frame.rewrite_ack(&newest);
        let ip_touched = if meta.mark.ipv6() { vec![4, 5] } else { vec![2, 3, 10, 11] };
        let tcp_touched = [8, 9, 10, 11, 12, 14, 15, 16, 17].map(|at| transport + at);
        for (at, (after, before)) in frame.bytes().iter().zip(&bytes).take(transport + 20).enumerate() {
            if !ip_touched.contains(&at) && !tcp_touched.contains(&at) {
                prop_assert_eq!(after, before, "byte {}", at);
            }
        }
    }

    /// One bit of a segment is inverted: in the IPv4 header, in the addresses, in TCP header or
    /// payload.
    #[test]
    fn nothing_is_learned_from_a_damaged_segment(
        (meta, addresses) in prop_oneof![packet(), pure_ack()],
        bit in any::<prop::sample::Index>(),
        window in any::<u16>(),
        dscp in 0..64u8,
    ) {
        prop_assume!(meta.protocol == Protocol::Tcp);
        let mut bytes = Vec::new();
        write_packet(&meta, &addresses, &mut bytes);
        // No checksum covers the start of an IPv6 header, nor its list.
        let first = match meta.mark.ipv6() { true => 40 + usize::from(meta.options().list_header_bytes(true)),
            false => 0 };
        let bit = 8 * first + bit.index(8 * (bytes.len() - first));
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut frame = frame(&bytes);
        prop_assert_eq!((frame.segment(), frame.meta().pure_ack()), (None, None));
        prop_assert_eq!(frame.clone().into_bytes(), bytes.clone());
        let same_kind = frame.meta().protocol == Protocol::Tcp;
        prop_assert_eq!(frame.meta().is_damaged(), same_kind && frame.meta().payload_len() == 0);
        // Damage that the packet arrived with stays detectable.
        if same_kind {
            frame.set_window(window);
            frame.set_dscp(dscp);
            prop_assert_eq!(checksums_hold(frame.bytes()), Ok(false));
        }
    }
}

/// A debug build panics on the broken contract.
#[cfg(not(debug_assertions))]
#[test]
fn a_damaged_ack_is_not_rewritten() {
    let mut bytes = ack_with_options(&[]);
    bytes[28] ^= 1;
    let mut damaged = frame(&bytes);
    damaged.rewrite_ack(&AckFields { window: 7, ..damaged.meta().ack_fields() });
    assert_eq!(damaged.bytes(), bytes);
}
