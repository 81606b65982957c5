use proptest::prelude::*;

use super::*;
use crate::testing::{ack_list, ack_options, packet, pure_ack};
use crate::{AckFields, Frame, NumberedFlows, Packet, Protocol, SeqNumber, checksums_hold, write_packet};

const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

/// An IPv4 packet of UDP with no payload: 28 bytes.
fn udp() -> Vec<u8> {
    let mut bytes = vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    bytes.extend([0, 7, 0, 9, 0, 8, 0, 0]);
    bytes
}

fn frame(link: &[u8], packet: &[u8]) -> Vec<u8> {
    [&ADDRESSES, link, packet].concat()
}

/// Start of the packet, whether PPPoE precedes it, and its end.
fn found(bytes: &[u8]) -> (usize, bool, Result<usize, FrameError>) {
    let Located { prefix, end } = locate(bytes);
    (usize::from(prefix.len), prefix.pppoe, end)
}

#[test]
fn the_packet_begins_behind_the_ethertype_and_its_tags() {
    let ip = udp();
    for (link, start) in [
        (&[0x08, 0x00][..], 14),
        // IEEE 802.1Q: priority 5, VLAN 100.
        (&[0x81, 0x00, 0xA0, 0x64, 0x08, 0x00], 18),
        // IEEE 802.1ad: service tag 200, then 100.
        (&[0x88, 0xA8, 0x00, 0xC8, 0x81, 0x00, 0x00, 0x64, 0x08, 0x00], 22),
        // Two tags of 802.1Q.
        (&[0x81, 0x00, 0x00, 0xC8, 0x81, 0x00, 0x00, 0x64, 0x08, 0x00], 22),
    ] {
        let bytes = frame(link, &ip);
        assert_eq!(found(&bytes), (start, false, Ok(start + 28)), "{link:02x?}");
    }
    let three = [0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0];
    assert_eq!(
        found(&frame(&three, &ip)),
        (22, false, Err(FrameError::NotIp { offset: 20, protocol: 0x8100 })),
        "a third tag is not read"
    );
}

/// RFC 2516, section 4 and the example of section 6: version 1, type 1, code 0, session 0x1234,
/// length 30 = 28 + 2.
#[test]
fn the_packet_of_a_pppoe_session_ends_where_pppoe_says() {
    let session = [0x88, 0x64, 0x11, 0x00, 0x12, 0x34, 0x00, 30, 0x00, 0x21];
    let mut bytes = frame(&session, &udp());
    assert_eq!(found(&bytes), (22, true, Ok(50)));
    bytes.extend([0; 10]);
    assert_eq!(found(&bytes), (22, true, Ok(50)), "padding of Ethernet is none of PPPoE's");

    let tagged = [&[0x81, 0x00, 0x00, 0x07][..], &session].concat();
    assert_eq!(found(&frame(&tagged, &udp())), (26, true, Ok(54)));
    let twice = [&[0x88, 0xA8, 0x00, 0x08][..], &tagged].concat();
    assert_eq!(found(&frame(&twice, &udp())), (30, true, Ok(58)));
}

#[test]
fn what_carries_no_ip_says_what_it_carries() {
    for (link, start, offset, protocol) in [
        (&[0x08, 0x06][..], 14, 12, 0x0806),
        (&[0x88, 0x63, 0x11, 0x09], 14, 12, 0x8863),
        (&[0x00, 0x26, 0x42, 0x42, 0x03], 14, 12, 0x0026),
        (&[0x81, 0x00, 0x00, 0x01, 0x08, 0x06], 18, 16, 0x0806),
        // LCP in a session: the length counts from the end of the Ethernet header.
        (&[0x88, 0x64, 0x11, 0x00, 0, 1, 0, 10, 0xC0, 0x21], 14, 20, 0xC021),
    ] {
        let (frame, key) = Frame::ethernet(frame(link, &[1; 40]));
        let error = key.unwrap_err();
        assert_eq!(error, FrameError::NotIp { offset, protocol });
        assert!(error.is_not_ip());
        assert_eq!(frame.meta().protocol, Protocol::Other);
        assert_eq!(usize::from(frame.meta().ip_len), frame.bytes().len() - start);
    }
}

#[test]
fn runts_and_contradictions_pass_untouched() {
    let session = |version_type, code, length, protocol: [u8; 2], packet: &[u8]| {
        frame(&[0x88, 0x64, version_type, code, 0, 1, 0, length, protocol[0], protocol[1]], packet)
    };
    let bad_pppoe = FrameError::Pppoe { offset: 14 };
    for (bytes, ip_len, error) in [
        (vec![], 0, FrameError::Truncated { len: 0, needed: 14 }),
        (vec![0xFF; 13], 0, FrameError::Truncated { len: 13, needed: 14 }),
        (frame(&[0x81, 0x00, 0x00], &[]), 0, FrameError::Truncated { len: 15, needed: 18 }),
        (frame(&[0x88, 0x64, 0x11, 0, 0, 1, 0], &[]), 5, FrameError::Truncated { len: 19, needed: 22 }),
        (frame(&[0x08, 0x00], &[]), 0, FrameError::Packet(ParseError::Truncated { offset: 0, needed: 1 })),
        (frame(&[0x86, 0xDD], &udp()), 28, FrameError::Version { offset: 14, version: 4 }),
        (session(0x21, 0, 30, [0, 0x21], &udp()), 36, bad_pppoe),
        (session(0x11, 7, 30, [0, 0x21], &udp()), 36, bad_pppoe),
        (session(0x11, 0, 31, [0, 0x21], &udp()), 36, bad_pppoe),
        (session(0x11, 0, 1, [0, 0x21], &udp()), 36, bad_pppoe),
        (session(0x11, 0, 30, [0, 0x57], &udp()), 36, FrameError::Version { offset: 22, version: 4 }),
        // PPPoE ends before the IP packet does.
        (
            session(0x11, 0, 29, [0, 0x21], &udp()),
            28,
            FrameError::Packet(ParseError::Truncated { offset: 27, needed: 28 }),
        ),
    ] {
        let (mut frame, key) = Frame::ethernet(bytes.clone());
        assert_eq!(key, Err(error), "{bytes:02x?}");
        assert!(!error.is_not_ip());
        frame.set_dscp(46);
        assert_eq!((frame.meta().ip_len, frame.meta().protocol), (ip_len, Protocol::Other), "{bytes:02x?}");
        assert_eq!(frame.into_bytes(), bytes);
    }
}

/// A frame of 60 bytes, the shortest that a device sends, around a packet of 28.
#[test]
fn padding_of_a_readable_frame_stays_and_counts_for_nothing() {
    let padded = frame(&[0x08, 0x00], &[&udp()[..], &[0; 18]].concat());
    assert_eq!(padded.len(), 60);
    let (frame, key) = Frame::ethernet(padded.clone());
    assert!(key.is_ok());
    assert_eq!((frame.bytes(), frame.meta().ip_len), (&padded[..], 28));
    assert_eq!((frame.packet_bytes(), frame.trailer()), (&udp()[..], &[0; 18][..]));
}

/// Headers of a link; those of a PPPoE session lack the length.
fn link() -> impl Strategy<Value = (Vec<u8>, bool)> {
    let tag = (prop_oneof![Just(VLAN), Just(SERVICE_VLAN)], any::<u16>());
    (any::<[u8; 12]>(), prop::collection::vec(tag, 0..=2), any::<bool>(), any::<u16>()).prop_map(
        |(addresses, tags, pppoe, session)| {
            let mut link = addresses.to_vec();
            for (kind, tag) in tags {
                link.extend(kind.to_be_bytes());
                link.extend(tag.to_be_bytes());
            }
            if pppoe {
                link.extend(PPPOE_SESSION.to_be_bytes());
                link.extend(PPPOE_DATA);
                link.extend(session.to_be_bytes());
            }
            (link, pppoe)
        },
    )
}

/// The bytes behind a packet: the padding of PPP, which the PPPoE length counts, and the rest.
#[derive(Clone, Default, Debug)]
struct Behind {
    padding: Vec<u8>,
    trailer: Vec<u8>,
}

fn behind() -> impl Strategy<Value = Behind> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..46);
    (bytes(), bytes()).prop_map(|(padding, trailer)| Behind { padding, trailer })
}

/// The expected frame around this packet.
fn around((link, pppoe): &(Vec<u8>, bool), packet: &[u8], behind: &Behind) -> Vec<u8> {
    let ipv6 = packet[0] >> 4 == 6;
    let mut frame = link.clone();
    if *pppoe {
        frame.extend(((packet.len() + behind.padding.len()) as u16 + 2).to_be_bytes());
        frame.extend(if ipv6 { PPP_IPV6 } else { PPP_IPV4 }.to_be_bytes());
    } else {
        frame.extend(if ipv6 { IPV6 } else { IPV4 }.to_be_bytes());
    }
    frame.extend(packet);
    frame.extend(&behind.padding);
    frame.extend(&behind.trailer);
    frame
}

proptest! {
    #[test]
    fn a_packet_reads_the_same_in_a_frame_as_alone((meta, addresses) in packet(), link in link(), behind in behind()) {
        let mut packet = Vec::new();
        write_packet(&meta, &addresses, &mut packet);
        let whole = around(&link, &packet, &behind);
        let (frame, key) = Frame::ethernet(whole.clone());
        let (alone, alone_key) = Frame::new(packet);
        prop_assert_eq!(key.unwrap(), alone_key.unwrap());
        prop_assert_eq!(frame.bytes(), whole);
        prop_assert_eq!(frame.packet_bytes(), alone.bytes());
        prop_assert_eq!(frame.trailer(), [behind.padding, behind.trailer].concat());
        prop_assert_eq!(frame.meta(), alone.meta());
        prop_assert_eq!(frame.segment(), alone.segment());
        prop_assert_eq!(frame.payload(&NumberedFlows), alone.payload(&NumberedFlows));
        let mut headers = [[0; crate::MAX_HEADER_LEN]; 2];
        let lengths = [&frame, &alone].map(|frame| frame.meta().header_len);
        prop_assert_eq!(frame.headers(&NumberedFlows, &mut headers[0]), usize::from(lengths[0]));
        alone.headers(&NumberedFlows, &mut headers[1]);
        prop_assert_eq!(headers[0], headers[1]);
    }

    /// Every change to a packet in a frame results in the frame that would be built around the
    /// changed packet.
    #[test]
    fn a_packet_changes_the_same_in_a_frame_as_alone(
        (meta, addresses) in pure_ack(),
        link in link(),
        (ack, window, dscp) in (any::<u32>(), any::<u16>(), 0..64_u8),
        options in ack_options(),
        list in ack_list(40),
        behind in behind(),
    ) {
        let mut packet = Vec::new();
        write_packet(&meta, &addresses, &mut packet);
        let (mut frame, mut alone) = (Frame::ethernet(around(&link, &packet, &behind)).0, Frame::new(packet).0);
        let newest = AckFields { ack: SeqNumber::new(ack), window, options };
        for frame in [&mut frame, &mut alone] {
            frame.set_dscp(dscp);
            frame.mark_ce();
            frame.rewrite_ack(&newest);
            frame.set_window(window ^ 0xFF);
        }
        prop_assert_eq!(checksums_hold(frame.packet_bytes()), Ok(true));
        prop_assert_eq!(frame.bytes(), around(&link, alone.bytes(), &behind));
        prop_assert_eq!(frame.meta(), alone.meta());
        prop_assert_eq!(&frame.duplicate(), &frame);
        let signals = [frame.signal(&list), alone.signal(&list)];
        prop_assert_eq!(signals[0].bytes(), around(&link, signals[1].bytes(), &Behind::default()));
        prop_assert_eq!(signals[0].meta(), signals[1].meta());
        let (read, _) = Frame::ethernet(signals[0].bytes().to_vec());
        prop_assert_eq!(read.bytes(), signals[0].bytes());
    }

    #[test]
    fn no_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..100), link in link()) {
        for bytes in [bytes.clone(), [link.0, bytes].concat()] {
            let (frame, _) = Frame::ethernet(bytes.clone());
            prop_assert_eq!(frame.bytes(), bytes);
        }
    }
}
