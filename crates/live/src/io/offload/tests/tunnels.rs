//! Pieces in tunnels: what comes out is what the tunnel would have made of each segment.

use super::*;

/// The bytes between the outer IP header and the inner packet.
#[derive(Clone, Copy, Debug)]
enum Tunnel {
    /// IP in IP, 6in4 and their like.
    Bare,
    /// GRE with checksum, key and sequence number.
    Gre,
    /// GRE with Ethernet in it and nothing else.
    GreTap,
    /// VXLAN; with a checksum of UDP or without.
    Vxlan { checksum: bool },
    /// Geneve with options, at a port of its own, and a tag in the inner frame.
    Geneve,
    /// FOU: the inner packet right behind UDP.
    Fou,
}

const TUNNELS: [Tunnel; 7] = [
    Tunnel::Bare,
    Tunnel::Gre,
    Tunnel::GreTap,
    Tunnel::Vxlan { checksum: false },
    Tunnel::Vxlan { checksum: true },
    Tunnel::Geneve,
    Tunnel::Fou,
];

fn ip_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = Sum::ZERO.bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet[0] >> 4 == 6
}

/// The outer IP header for `carried`, in the packet of this number.
fn outer(ipv6: bool, protocol: u8, carried: &[u8], number: u16) -> Vec<u8> {
    let mut header = if ipv6 {
        let mut header = vec![0x60, 0, 0, 0];
        header.extend((carried.len() as u16).to_be_bytes());
        header.extend([protocol, 64]);
        header.extend([0x20, 1, 0xD, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].repeat(2));
        header
    } else {
        let mut header = vec![0x45, 0];
        header.extend((carried.len() as u16 + 20).to_be_bytes());
        header.extend(0xFFFE_u16.wrapping_add(number).to_be_bytes());
        header.extend([0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        ip_checksum(&mut header);
        header
    };
    header.extend_from_slice(carried);
    header
}

/// The sum of the pseudo-header of an outer packet whose transport is `protocol`.
fn pseudo_header(packet: &[u8], protocol: u8) -> Sum {
    let (addresses, at) = if is_ipv6(packet) { (&packet[8..40], 40) } else { (&packet[12..20], 20) };
    Sum::ZERO.bytes(addresses).word(u16::from(protocol)).word((packet.len() - at) as u16)
}

fn inner_ethernet(inner: &[u8], tag: &[u8]) -> Vec<u8> {
    let kind = if is_ipv6(inner) { [0x86, 0xDD] } else { [8, 0] };
    [&[2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 8], tag, &kind, inner].concat()
}

/// `inner` in a tunnel over IPv4 or IPv6, as the packet of this number, and where `inner` begins.
fn wrapped(tunnel: Tunnel, ipv6: bool, inner: &[u8], number: u16) -> (Vec<u8>, usize) {
    let udp = |port: u16, checksum: bool, carried: &[u8]| {
        let mut datagram = [50_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
        datagram.extend((carried.len() as u16 + 8).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend_from_slice(carried);
        let mut packet = outer(ipv6, 17, &datagram, number);
        if checksum {
            let at = packet.len() - datagram.len();
            let sum = pseudo_header(&packet, 17).bytes(&packet[at..]).checksum();
            packet[at + 6..at + 8].copy_from_slice(&(if sum == 0 { 0xFFFF } else { sum }).to_be_bytes());
        }
        packet
    };
    let packet = match tunnel {
        Tunnel::Bare => outer(ipv6, if is_ipv6(inner) { 41 } else { 4 }, inner, number),
        Tunnel::Gre => {
            let kind = if is_ipv6(inner) { [0x86, 0xDD] } else { [8, 0] };
            let mut gre = [&[0xB0, 0][..], &kind, &[0; 4], &77_u32.to_be_bytes()].concat();
            gre.extend((u32::MAX - 1).wrapping_add(number.into()).to_be_bytes());
            gre.extend_from_slice(inner);
            let checksum = Sum::ZERO.bytes(&gre).checksum();
            gre[4..6].copy_from_slice(&checksum.to_be_bytes());
            outer(ipv6, 47, &gre, number)
        }
        Tunnel::GreTap => outer(ipv6, 47, &[&[0, 0, 0x65, 0x58][..], &inner_ethernet(inner, &[])].concat(), number),
        Tunnel::Vxlan { checksum } => {
            udp(4789, checksum, &[&[8, 0, 0, 0, 0, 0, 42, 0][..], &inner_ethernet(inner, &[])].concat())
        }
        Tunnel::Geneve => {
            let header = [&[2, 0, 0x65, 0x58, 0, 0, 9, 0][..], &[1, 2, 3, 1, 5, 5, 5, 5]].concat();
            udp(6999, true, &[&header[..], &inner_ethernet(inner, &[0x81, 0, 0, 6])].concat())
        }
        Tunnel::Fou => udp(5555, true, inner),
    };
    let at = packet.len() - inner.len();
    (packet, at)
}

fn framed(packet: &[u8]) -> Vec<u8> {
    [ethernet(if is_ipv6(packet) { [0x86, 0xDD] } else { [8, 0] }), packet.to_vec()].concat()
}

/// A piece in a tunnel, as a host hands it over, and what is left to do.
fn piece_in(tunnel: Tunnel, outer_ipv6: bool, piece: &(Vec<u8>, Offload)) -> (Vec<u8>, Offload) {
    let (inner, Offload { checksum, segments }) = piece;
    // Lengths of the whole and a checksum that fits it are what the kernel puts there.
    let mut inner = inner.clone();
    if inner[0] >> 4 == 4 {
        ip_checksum(&mut inner[..20]);
    }
    let (packet, at) = wrapped(tunnel, outer_ipv6, &inner, 0);
    let by = at + 14;
    let checksum = checksum.map(|Checksum { start, at }| Checksum { start: start + by, at: at + by });
    (framed(&packet), Offload { checksum, segments: *segments })
}

proptest! {
    #[test]
    fn a_segment_in_a_tunnel_is_the_segment_that_the_tunnel_would_have_carried(
        payload in prop::collection::vec(any::<u8>(), 1..6000),
        (ipv6, tcp, outer_ipv6) in any::<(bool, bool, bool)>(),
        size in 8..2000_usize,
        which in 0..TUNNELS.len(),
    ) {
        prop_assume!(tcp || payload.len().div_ceil(size) <= 128);
        let tunnel = TUNNELS[which];
        let (inner, offload) = piece(ipv6, tcp, &[], &payload, 0x99);
        let transport = Some(if tcp { Transport::Tcp } else { Transport::Udp });
        let offload = Offload { segments: Some(Segments { transport, size, reduces: true }), ..offload };
        let (frame, outside) = piece_in(tunnel, outer_ipv6, &(inner.clone(), offload));
        let (out, done) = complete(outside, &frame);
        // This piece without a tunnel, each segment of which goes into the tunnel.
        let plain = framed(&inner);
        let by = 14;
        let checksum = offload.checksum.map(|Checksum { start, at }| Checksum { start: start + by, at: at + by });
        let (segments, _) = complete(Offload { checksum, ..offload }, &plain);
        prop_assert_eq!(done.segments as usize, segments.len());
        prop_assert_eq!(out.len(), segments.len(), "{:?} {:?}", tunnel, done);
        for (number, (out, segment)) in (0..).zip(out.iter().zip(&segments)) {
            let expected = framed(&wrapped(tunnel, outer_ipv6, &segment[14..], number).0);
            prop_assert_eq!(out, &expected, "{:?}", tunnel);
        }
    }

    /// AF_XDP says nothing of what is left to do. Behind UDP with a checksum at a port that no
    /// tunnel is known by nobody looks.
    #[test]
    fn an_open_checksum_is_recognised_in_a_tunnel(
        payload in prop::collection::vec(any::<u8>(), 1..600),
        (ipv6, tcp, outer_ipv6) in any::<(bool, bool, bool)>(),
        which in 0..5_usize,
    ) {
        let tunnel = TUNNELS[which];
        let whole = piece(ipv6, tcp, &[], &payload, 0x18);
        let (frame, offload) = piece_in(tunnel, outer_ipv6, &whole);
        let (finished, _) = complete(offload, &frame);
        // One outer checksum in 65 536 has the value of an open one.
        let outer = &packet_of(&frame)[..];
        let at = if is_ipv6(outer) { 40 } else { 20 };
        let looks_open = outer[at + 6..at + 8] == pseudo_header(outer, 17).fold().to_be_bytes();
        prop_assume!(!(matches!(tunnel, Tunnel::Vxlan { checksum: true }) && looks_open));
        let mut seen = frame.clone();
        prop_assert!(finish_if_partial(&mut seen), "{:?}", tunnel);
        prop_assert_eq!(&seen, &finished[0]);
        // So has one finished checksum.
        let field = offload.checksum.map(|checksum| checksum.at..checksum.at + 2).expect("it is open");
        prop_assume!(seen[field.clone()] != frame[field]);
        prop_assert!(!finish_if_partial(&mut seen));
        // A segment that was damaged on its way stays so.
        let last = seen.len() - 1;
        seen[last] ^= 1;
        let damaged = seen.clone();
        prop_assert!(!finish_if_partial(&mut seen));
        prop_assert_eq!(seen, damaged);
    }
}

/// The network number 9 of Geneve, behind the type 0x6558, reads as the length of an IPv6 packet: that of a frame of
/// one size.
#[test]
fn a_header_of_a_tunnel_that_looks_like_a_packet_is_passed_over() {
    for len in 2250..2350 {
        let (inner, offload) = piece(false, false, &[], &vec![7; len], 0);
        let segments = Some(Segments { transport: Some(Transport::Udp), size: 1000, reduces: true });
        let (frame, outside) = piece_in(Tunnel::Geneve, true, &(inner, Offload { segments, ..offload }));
        assert_eq!(complete(outside, &frame).0.len(), 3, "{len} bytes");
    }
}

/// Segments that the kernel has joined as they were: no checksum is open, and flags are those of each.
#[test]
fn joined_segments_come_apart_as_they_were() {
    for ipv6 in [false, true] {
        let payload: Vec<u8> = (0..2500_u32).map(|byte| byte as u8).collect();
        let (frame, offload) = piece(ipv6, true, &ethernet(if ipv6 { [0x86, 0xDD] } else { [8, 0] }), &payload, 0x18);
        let segments = Some(Segments { transport: Some(Transport::Tcp), size: 1000, reduces: true });
        let (out, done) = complete(Offload { checksum: None, segments }, &frame);
        assert_eq!((out.len(), done.segments, done.refused), (3, 3, 0));
        let (cut, _) = complete(Offload { segments, ..offload }, &frame);
        for (as_they_were, cut) in out.iter().zip(&cut) {
            let flags = |frame: &[u8]| Frame::ethernet(frame.to_vec()).0.meta().flags;
            assert_eq!(flags(as_they_were), TcpFlags::from_bits(0x18));
            assert_eq!(as_they_were.len(), cut.len());
            assert_eq!(checksums_hold(&packet_of(as_they_were)), Ok(true));
        }
    }
}

/// PPPoE in a tunnel would need a length that is not mended, and a tunnel in five tunnels is nobody's.
#[test]
fn what_cannot_be_followed_is_refused() {
    let payload = [7; 3000];
    let (inner, offload) = piece(false, true, &[], &payload, 0x10);
    let segments = Some(Segments { transport: Some(Transport::Tcp), size: 1000, reduces: true });
    let offload = Offload { segments, ..offload };
    let (frame, outside) = piece_in(Tunnel::GreTap, false, &(inner.clone(), offload));
    assert_eq!(complete(outside, &frame).1.segments, 3);
    let at = frame.len() - inner.len();
    let mut session = frame[..at - 2].to_vec();
    session.extend([0x88, 0x64, 0x11, 0, 0, 1]);
    session.extend((inner.len() as u16 + 2).to_be_bytes());
    session.extend([0, 0x21]);
    session.extend_from_slice(&frame[at..]);
    let len = (session.len() - 14) as u16;
    session[16..18].copy_from_slice(&len.to_be_bytes());
    ip_checksum(&mut session[14..34]);
    let open = outside.checksum.map(|Checksum { start, at }| Checksum { start: start + 8, at: at + 8 });
    assert_eq!(complete(Offload { checksum: open, segments }, &session).1.refused, 1);
    let mut deep = (inner, offload);
    for _ in 0..4 {
        let (frame, outside) = piece_in(Tunnel::Bare, false, &deep);
        let checksum = outside.checksum.map(|Checksum { start, at }| Checksum { start: start - 14, at: at - 14 });
        deep = (frame[14..].to_vec(), Offload { checksum, segments });
    }
    let moved = deep.1.checksum.map(|Checksum { start, at }| Checksum { start: start + 14, at: at + 14 });
    assert_eq!(complete(Offload { checksum: moved, segments }, &framed(&deep.0)).1.refused, 1);
}

/// The check value of CRC-32C for "123456789" is E3069283 (RFC 3720, appendix B.4 has others); SCTP
/// sends its lowest byte first.
#[test]
fn an_open_checksum_of_sctp_is_a_crc() {
    let mut sctp = [0x1F, 0x90, 0x23, 0x28, 0, 0, 0, 1, 0, 0, 0, 0].to_vec();
    sctp.extend([0, 3, 0, 17]);
    sctp.extend(b"some data!!!!");
    let mut packet = vec![0x45, 0, 0, (20 + sctp.len()) as u8, 0, 0, 0x40, 0, 64, 132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    ip_checksum(&mut packet);
    packet.extend(&sctp);
    let mut frame = framed(&packet);
    frame.extend([0xEE; 7]);
    let offload = Offload { checksum: Some(Checksum { start: 34, at: 42 }), segments: None };
    let (out, done) = complete(offload, &frame);
    assert_eq!(done.finished, 1);
    assert_eq!(out[0][frame.len() - 7..], [0xEE; 7], "padding is no part of the packet");
    let expected = bitwise_crc32c(&sctp).to_le_bytes();
    assert_eq!(out[0][42..46], expected);
    let mut seen = frame;
    assert!(finish_if_partial(&mut seen));
    assert_eq!(seen, out[0]);
    assert!(!finish_if_partial(&mut seen));
    assert_eq!(bitwise_crc32c(b"123456789"), 0xE306_9283);
}

/// Bit by bit, from the polynomial 1EDC6F41 in reverse.
fn bitwise_crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 })
    })
}

/// A checksum covers the last of the addresses of a routing header with segments left (RFC 8200, section 8.1), that of
/// the packet in a tunnel by segment routing (RFC 8754) its own.
#[test]
fn tcp_behind_a_routing_header_is_cut_where_its_destination_is_known() {
    let (frame, offload) = piece(true, true, &[], &[7; 2500], 0x18);
    let segments = Some(Segments { transport: Some(Transport::Tcp), size: 1000, reduces: false });
    let cut = |left: u8, next: u8, inner: &[u8], transport: usize| {
        let routing = [&[next, 2, 4, left, 0, 0, 0, 0][..], &[0x20; 16], inner].concat();
        let frame = [ethernet([0x86, 0xDD]), outer(true, 43, &routing, 0)].concat();
        let checksum = Some(Checksum { start: 14 + 40 + 24 + transport, at: 14 + 40 + 24 + transport + 16 });
        complete(Offload { checksum, segments }, &frame)
    };
    let (arrived, done) = cut(0, 6, &frame[40..], 0);
    assert_eq!((arrived.len(), done.refused), (3, 0));
    assert!(arrived.iter().all(|frame| checksums_hold(&packet_of(frame)) == Ok(true)));
    let (on_its_way, done) = cut(1, 6, &frame[40..], 0);
    assert_eq!((on_its_way.len(), done.refused), (0, 1));
    let (tunnelled, done) = cut(1, 41, &frame, offload.checksum.unwrap().start);
    assert_eq!((tunnelled.len(), done.refused), (3, 0));
    assert!(tunnelled.iter().all(|frame| checksums_hold(&frame[14 + 40 + 24..]) == Ok(true)));
}
