use std::net::{Ipv4Addr, Ipv6Addr};

use lastmile_packet::{
    FlowAddresses, Frame, IpAddresses, Meta, Options, Packet, Protocol, SeqNumber, TcpFlags, checksums_hold,
    header_len, write_packet,
};
use proptest::prelude::*;

use lastmile_packet::checksum::Sum;

use super::*;

mod tunnels;

const MAC: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn addresses(ipv6: bool) -> FlowAddresses {
    let ip = if ipv6 {
        IpAddresses::V6 { source: Ipv6Addr::LOCALHOST, destination: Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 7) }
    } else {
        IpAddresses::V4 { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) }
    };
    FlowAddresses { ip, source_port: 40_000, destination_port: 80 }
}

/// A frame as a host with offloads hands it over: in one piece, the sum of the pseudo-header alone
/// in the checksum field.
fn piece(ipv6: bool, tcp: bool, link: &[u8], payload: &[u8], flags: u8) -> (Vec<u8>, Offload) {
    let protocol = if tcp { Protocol::Tcp } else { Protocol::Udp };
    let options = if tcp { Options::NONE.with_timestamps(7, 8) } else { Options::NONE };
    let header_len = header_len(protocol, ipv6, &options);
    let mut meta =
        Meta { protocol, header_len, ip_len: u16::from(header_len) + payload.len() as u16, ..Meta::default() };
    meta.seq = SeqNumber::new(u32::from(tcp) * 0xFFFF_FF00);
    meta.flags = TcpFlags::from_bits(if tcp { flags } else { 0 });
    if ipv6 {
        meta.mark.set_ipv6();
    } else {
        meta.ip_id = 0xFFFF;
    }
    meta.set_options(options);
    let mut packet = Vec::new();
    write_packet(&meta, &addresses(ipv6), &mut packet);
    let from = packet.len() - payload.len();
    packet[from..].copy_from_slice(payload);
    let transport = if ipv6 { 40 } else { 20 };
    let (protocol, at) = if tcp { (6, transport + 16) } else { (17, transport + 6) };
    let len = (packet.len() - transport) as u16;
    let partial = Sum::ZERO.pseudo_header(&addresses(ipv6).ip, protocol, len).fold();
    packet[at..at + 2].copy_from_slice(&partial.to_be_bytes());
    let checksum = Checksum { start: link.len() + transport, at: link.len() + at };
    ([link, &packet].concat(), Offload { checksum: Some(checksum), segments: None })
}

fn ethernet(ether_type: [u8; 2]) -> Vec<u8> {
    [&MAC[..], &ether_type].concat()
}

fn complete(offload: Offload, frame: &[u8]) -> (Vec<Vec<u8>>, Offloads) {
    let (mut out, mut done) = (Vec::new(), Offloads::default());
    offload.complete(&mut frame.to_vec(), &mut Vec::new(), &mut done, &mut |frame| out.push(frame.to_vec()));
    (out, done)
}

fn packet_of(frame: &[u8]) -> Vec<u8> {
    Frame::ethernet(frame.to_vec()).0.packet_bytes().to_vec()
}

/// linux/virtio_net.h: flags, GSO type, header length, segment size, start and offset of the checksum.
#[test]
fn the_header_in_front_says_what_is_left_to_do() {
    let header = |flags: u8, kind: u8, words: [u16; 4]| {
        let mut header = [flags, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        for (to, word) in header[2..].chunks_exact_mut(2).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        Offload::read(&header)
    };
    assert_eq!(header(0, 0, [0; 4]), Offload::default());
    // DATA_VALID: the device has checked the checksum; nothing to do.
    assert_eq!(header(2, 0, [0; 4]), Offload::default());
    let checksum = Some(Checksum { start: 34, at: 50 });
    assert_eq!(header(1, 0, [0, 0, 34, 16]), Offload { checksum, segments: None });
    for (kind, transport) in
        [(1, Some(Transport::Tcp)), (4 | ECN, Some(Transport::Tcp)), (5, Some(Transport::Udp)), (3, None)]
    {
        let segments = Some(Segments { transport, size: 1448, reduces: kind & 0x80 != 0 });
        assert_eq!(header(1, kind, [66, 1448, 34, 16]), Offload { checksum, segments });
    }
    let moved = header(1, 0, [0, 0, 34, 16]).moved(4);
    assert_eq!(moved.checksum, Some(Checksum { start: 38, at: 54 }));
}

#[test]
fn a_partial_checksum_is_finished() {
    for (ipv6, ether_type) in [(false, [0x08, 0x00]), (true, [0x86, 0xDD])] {
        for tcp in [false, true] {
            let (frame, offload) = piece(ipv6, tcp, &ethernet(ether_type), b"some data", 0x18);
            assert_eq!(checksums_hold(&packet_of(&frame)), Ok(false), "left to the device");
            let (out, done) = complete(offload, &frame);
            assert_eq!(done, Offloads { finished: 1, ..Offloads::default() });
            assert_eq!(checksums_hold(&packet_of(&out[0])), Ok(true));
        }
    }
    let (frame, _) = piece(false, true, &ethernet([8, 0]), b"", 0x10);
    assert_eq!(complete(Offload::default(), &frame), (vec![frame], Offloads::default()), "as it is");
}

/// Of the two words for a sum of zero, UDP transmits 0xFFFF and TCP zero.
#[test]
fn a_sum_of_zero_is_all_ones_in_udp_alone() {
    for (tcp, field, word) in [(false, 14 + 20 + 6, 0xFFFF), (true, 14 + 20 + 16, 0)] {
        let words = (0..=u16::MAX).map(|payload| {
            let (frame, offload) = piece(false, tcp, &ethernet([8, 0]), &payload.to_be_bytes(), 0x18);
            let (out, _) = complete(offload, &frame);
            u16::from_be_bytes([out[0][field], out[0][field + 1]])
        });
        assert_eq!(words.filter(|sum| [0, 0xFFFF].contains(sum)).collect::<Vec<_>>(), [word], "{tcp}");
    }
}

/// Where nobody says that a checksum is partial, it shows.
#[test]
fn a_partial_checksum_is_recognised_and_nothing_else_is_touched() {
    for (ipv6, ether_type) in [(false, [0x08, 0x00]), (true, [0x86, 0xDD])] {
        for tcp in [false, true] {
            let (mut frame, offload) = piece(ipv6, tcp, &ethernet(ether_type), b"some data", 0x18);
            let (finished, _) = complete(offload, &frame);
            frame.extend([0; 3]);
            assert!(finish_if_partial(&mut frame), "padding is no part of the sum");
            assert_eq!(frame[..frame.len() - 3], finished[0]);
            assert!(!finish_if_partial(&mut frame), "it is finished");
            let last = frame.len() - 4;
            frame[last] ^= 1;
            let damaged = frame.clone();
            assert!(!finish_if_partial(&mut frame), "damaged, not unfinished");
            assert_eq!(frame, damaged);
        }
    }
    for mut other in [ethernet([8, 6]), ethernet([8, 0]), vec![0; 3], [ethernet([8, 0]), vec![0x4F; 20]].concat()] {
        assert!(!finish_if_partial(&mut other));
    }
}

/// The field that is outside of the frame, or before what it sums.
#[test]
fn a_checksum_that_is_not_in_the_frame_is_refused() {
    for checksum in [Checksum { start: 14, at: 59 }, Checksum { start: 61, at: 70 }, Checksum { start: 20, at: 14 }] {
        let offload = Offload { checksum: Some(checksum), segments: None };
        assert_eq!(complete(offload, &[0; 60]), (vec![], Offloads { refused: 1, ..Offloads::default() }));
    }
}

/// 2500 bytes in pieces of 1000, with CWR, PSH, ACK and FIN, around the end of the sequence numbers
/// and identifications.
#[test]
fn tcp_segments_go_on_where_the_last_ended() {
    let payload: Vec<u8> = (0..2500_u32).map(|byte| byte as u8).collect();
    let (frame, offload) = piece(false, true, &ethernet([8, 0]), &payload, 0x99);
    let segments = Some(Segments { transport: Some(Transport::Tcp), size: 1000, reduces: true });
    let (out, done) = complete(Offload { segments, ..offload }, &frame);
    assert_eq!(done, Offloads { cut: 1, segments: 3, ..Offloads::default() });
    let expected = [
        (0xFFFF_FF00_u32, 0x90, 0xFFFF, 1000),
        (0xFFFF_FF00_u32.wrapping_add(1000), 0x10, 0, 1000),
        (0xFFFF_FF00_u32.wrapping_add(2000), 0x19, 1, 500),
    ];
    let mut joined = Vec::new();
    for (bytes, (seq, flags, ip_id, len)) in out.iter().zip(expected) {
        let (segment, key) = Frame::ethernet(bytes.clone());
        assert_eq!(key.unwrap().addresses, addresses(false));
        let meta = segment.meta();
        assert_eq!((meta.seq, meta.flags), (SeqNumber::new(seq), TcpFlags::from_bits(flags)));
        assert_eq!((meta.ip_id, usize::from(meta.payload_len())), (ip_id, len));
        assert_eq!(meta.options().timestamps(), Some((7, 8)));
        assert_eq!(checksums_hold(segment.packet_bytes()), Ok(true));
        joined.extend_from_slice(&bytes[bytes.len() - len..]);
    }
    assert_eq!(joined, payload);
}

/// AE and CWR are set: 6 of the counter of RFC 9768, which would be 4 without CWR. The kernel sets the bit 0x80 with
/// ECN by RFC 3168 alone.
#[test]
fn each_segment_keeps_the_counter_of_accurate_ecn() {
    for (kind, cwr) in [(0x01, [true, true, true]), (0x81, [true, false, false])] {
        let (mut frame, offload) = piece(false, true, &ethernet([8, 0]), &[7; 2500], 0x90);
        frame[14 + 20 + 12] |= 1;
        let mut header = [1, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        let Checksum { start, at } = offload.checksum.unwrap();
        for (to, word) in header[4..].chunks_exact_mut(2).zip([1000, start, at - start]) {
            to.copy_from_slice(&(word as u16).to_ne_bytes());
        }
        let (out, _) = complete(Offload::read(&header), &frame);
        let bits = |frame: &Vec<u8>| (frame[14 + 20 + 12] & 1 != 0, frame[14 + 20 + 13] & 0x80 != 0);
        assert_eq!(out.iter().map(bits).collect::<Vec<_>>(), cwr.map(|cwr| (true, cwr)), "{kind:#x}");
        assert!(out.iter().all(|frame| checksums_hold(&packet_of(frame)) == Ok(true)));
    }
}

#[test]
fn udp_becomes_datagrams_with_lengths_of_their_own() {
    let (frame, offload) = piece(true, false, &ethernet([0x86, 0xDD]), &[9; 700], 0);
    let segments = Some(Segments { transport: Some(Transport::Udp), size: 300, reduces: false });
    let (out, _) = complete(Offload { segments, ..offload }, &frame);
    let lengths: Vec<_> = out.iter().map(|frame| u16::from_be_bytes([frame[58], frame[59]])).collect();
    assert_eq!(lengths, [308, 308, 108]);
    assert!(out.iter().all(|frame| checksums_hold(&packet_of(frame)) == Ok(true)));
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let (frame, offload) = piece(false, true, &ethernet([8, 0]), &[1; 3000], 0x10);
    let of = |transport, size| Offload { segments: Some(Segments { transport, size, reduces: false }), ..offload };
    let refused = (vec![], Offloads { refused: 1, ..Offloads::default() });
    assert_eq!(complete(of(None, 1000), &frame), refused, "the fragments of a datagram, a tunnel");
    assert_eq!(complete(of(Some(Transport::Tcp), 0), &frame), refused);
    assert_eq!(complete(of(Some(Transport::Tcp), 7), &frame), refused, "no host asks for so many");
    assert_eq!(
        complete(Offload { checksum: None, ..of(Some(Transport::Udp), 1000) }, &frame),
        refused,
        "it has no UDP"
    );
    assert_eq!(complete(of(Some(Transport::Tcp), 1000), &frame[..40]), refused);
    let mut arp = frame.clone();
    arp[13] = 6;
    assert_eq!(complete(of(Some(Transport::Tcp), 1000), &arp), refused);
    let mut odd = frame;
    odd[14] = 0x46;
    assert_eq!(complete(of(Some(Transport::Tcp), 1000), &odd), refused, "the transport header is elsewhere");
}

proptest! {
    /// The segments of any link hold the payload in order, each sound.
    #[test]
    fn segments_are_sound_and_join_to_the_payload(
        payload in prop::collection::vec(any::<u8>(), 1..9000),
        (ipv6, tcp, tagged, pppoe) in any::<(bool, bool, bool, bool)>(),
        size in 8..3000_usize,
    ) {
        prop_assume!(tcp || payload.len().div_ceil(size) <= 128);
        let headers = if ipv6 { 40 } else { 20 } + if tcp { 32 } else { 8 };
        let mut link = MAC.to_vec();
        if tagged {
            link.extend([0x81, 0, 0, 5]);
        }
        if pppoe {
            link.extend([0x88, 0x64, 0x11, 0, 0, 1]);
            link.extend(((headers + payload.len() + 2) as u16).to_be_bytes());
            link.extend(if ipv6 { [0, 0x57] } else { [0, 0x21] });
        } else {
            link.extend(if ipv6 { [0x86, 0xDD] } else { [8, 0] });
        }
        let (frame, offload) = piece(ipv6, tcp, &link, &payload, 0x18);
        let transport = Some(if tcp { Transport::Tcp } else { Transport::Udp });
        let segments = Some(Segments { transport, size, reduces: false });
        let (out, done) = complete(Offload { segments, ..offload }, &frame);
        prop_assert_eq!(done.segments as usize, payload.len().div_ceil(size));
        let mut joined = Vec::new();
        for bytes in out {
            let (segment, key) = Frame::ethernet(bytes.clone());
            prop_assert!(key.is_ok(), "{:?}", key);
            prop_assert_eq!(segment.bytes(), bytes);
            prop_assert_eq!(checksums_hold(segment.packet_bytes()), Ok(true));
            joined.extend_from_slice(&segment.packet_bytes()[headers..]);
        }
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn no_frame_and_no_header_panic(header in any::<[u8; 10]>(), frame in prop::collection::vec(any::<u8>(), 0..200)) {
        let small: [u8; 10] = std::array::from_fn(|at| if at % 2 == 1 && at > 1 { 0 } else { header[at] & 0x7F });
        for header in [header, small] {
            let (out, done) = complete(Offload::read(&header), &frame);
            prop_assert_eq!(out.is_empty(), done.refused == 1);
            finish_if_partial(&mut frame.clone());
        }
    }
}
