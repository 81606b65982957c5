use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::header::{ACK, FIN, PSH, RST, SYN, URG, ip_checksum, write16};
use super::*;

const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// The fields of a TCP/IP packet. `bytes` computes correct checksums.
#[derive(Clone, Debug)]
struct Packet {
    tos: u8,
    id: u16,
    fragment: u16,
    ttl: u8,
    ip_options: Vec<u8>,
    source: u8,
    port: u16,
    sequence: u32,
    ack: u32,
    reserved: u8,
    flags: u8,
    window: u16,
    urgent: u16,
    tcp_options: Vec<u8>,
    data: usize,
}

impl Packet {
    /// A pure ACK of connection `port`.
    fn ack(port: u16) -> Self {
        Self {
            tos: 0,
            id: 1000,
            fragment: 0x4000,
            ttl: 64,
            ip_options: vec![],
            source: 1,
            port,
            sequence: 1_000_000,
            ack: 5_000_000,
            reserved: 0,
            flags: ACK,
            window: 65_535,
            urgent: 0,
            tcp_options: vec![],
            data: 0,
        }
    }

    fn data(port: u16, data: usize) -> Self {
        Self { data, ..Self::ack(port) }
    }

    /// The following packet, with the IP ID one higher: the host sends to nobody else.
    fn next(&self) -> Self {
        Self { id: self.id.wrapping_add(1), ..self.clone() }
    }

    /// The next segment of bulk data.
    fn next_data(&self) -> Self {
        Self { sequence: self.sequence.wrapping_add(u32::try_from(self.data).unwrap()), ..self.next() }
    }

    /// The next ACK, which acknowledges `bytes` more.
    fn next_ack(&self, bytes: u32) -> Self {
        Self { ack: self.ack.wrapping_add(bytes), ..self.next() }
    }

    fn total_len(&self) -> u16 {
        let headers = 40 + self.ip_options.len() + self.tcp_options.len();
        u16::try_from(headers + self.data).unwrap()
    }

    fn header(&self) -> Vec<u8> {
        let (ip_words, tcp_words) = ((20 + self.ip_options.len()) / 4, (20 + self.tcp_options.len()) / 4);
        let mut bytes = vec![0x40 | u8::try_from(ip_words).unwrap(), self.tos];
        bytes.extend(self.total_len().to_be_bytes());
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([self.ttl, 6, 0, 0]);
        bytes.extend([10, 0, 0, self.source, 192, 0, 2, 7]);
        bytes.extend(&self.ip_options);
        let checksum = ip_checksum(&bytes);
        write16(&mut bytes, 10, checksum);
        let tcp = bytes.len();
        bytes.extend(self.port.to_be_bytes());
        bytes.extend(80_u16.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.ack.to_be_bytes());
        bytes.extend([u8::try_from(tcp_words).unwrap() << 4 | self.reserved, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(&self.tcp_options);
        let checksum = !tcp_sum(&bytes, &self.payload());
        write16(&mut bytes, tcp + 16, checksum);
        bytes
    }

    /// Payload bytes that depend on their sequence number, so that a misplaced segment differs.
    fn payload(&self) -> Vec<u8> {
        (0..self.data).map(|i| (self.sequence as usize + i).wrapping_mul(31) as u8).collect()
    }
}

/// One's complement sum over pseudo header, TCP header and payload (RFC 793): 0xffff when the
/// checksum is right.
fn tcp_sum(header: &[u8], payload: &[u8]) -> u16 {
    let tcp = usize::from(header[0] & 15) * 4;
    let length = header.len() - tcp + payload.len();
    let mut bytes = header[12..20].to_vec();
    bytes.extend([0, 6]);
    bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
    bytes.extend(&header[tcp..]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    let sum: u64 = bytes.chunks_exact(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
}

/// The frame for one packet.
#[derive(Clone, Debug)]
struct Frame {
    kind: FrameKind,
    header: Vec<u8>,
    payload: Vec<u8>,
}

impl Frame {
    fn is(&self, kind: FrameKind) -> bool {
        self.kind == kind
    }
}

fn send(compressor: &mut Compressor, packet: &Packet) -> Frame {
    let header = packet.header();
    let compressed = compressor.compress(&header, packet.total_len());
    let kind = compressed.kind();
    let sent = match compressed {
        Compressed::Ip => header.clone(),
        Compressed::UncompressedTcp { header, .. } => header.to_vec(),
        Compressed::CompressedTcp { header: short, replaces } => {
            assert_eq!(replaces, header.len());
            assert!((3..=MAX_COMPRESSED).contains(&short.len()));
            short.to_vec()
        }
    };
    assert_eq!(compressed.saved(), header.len() - sent.len());
    Frame { kind, header: sent, payload: packet.payload() }
}

/// The header restored at the far end, if its checksum lets TCP accept the packet.
fn receive(decompressor: &mut Decompressor, frame: &Frame) -> Result<Vec<u8>, Toss> {
    let whole: Vec<u8> = frame.header.iter().chain(&frame.payload).copied().collect();
    match frame.kind {
        FrameKind::Ip => Ok(frame.header.clone()),
        FrameKind::UncompressedTcp => decompressor.uncompressed(&whole).map(<[u8]>::to_vec),
        FrameKind::CompressedTcp => {
            let restored = decompressor.compressed(&whole, u16::try_from(whole.len()).unwrap())?;
            assert_eq!(restored.consumed, frame.header.len());
            Ok(restored.header.to_vec())
        }
    }
}

fn taken_by_tcp(header: &[u8], frame: &Frame) -> bool {
    tcp_sum(header, &frame.payload) == 0xffff
}

/// Both ends after `packet` was sent and received.
fn ends_after(packet: &Packet) -> (Compressor, Decompressor) {
    let (mut compressor, mut decompressor) = (Compressor::default(), Decompressor::default());
    let frame = send(&mut compressor, packet);
    assert!(frame.is(FrameKind::UncompressedTcp));
    assert_eq!(receive(&mut decompressor, &frame), Ok(packet.header()));
    (compressor, decompressor)
}

/// The bytes on the wire of `next` after `first`, checked to be restored correctly.
fn compressed_after(first: &Packet, next: &Packet) -> Vec<u8> {
    let (mut compressor, mut decompressor) = ends_after(first);
    let frame = send(&mut compressor, next);
    assert!(frame.is(FrameKind::CompressedTcp), "{next:?}");
    assert_eq!(receive(&mut decompressor, &frame), Ok(next.header()));
    frame.header
}

fn goes_uncompressed_after(first: &Packet, next: &Packet) {
    let (mut compressor, mut decompressor) = ends_after(first);
    let frame = send(&mut compressor, next);
    assert!(frame.is(FrameKind::UncompressedTcp), "{next:?}");
    assert_eq!(receive(&mut decompressor, &frame), Ok(next.header()));
}

fn goes_as_ip(packet: &Packet) {
    assert!(send(&mut Compressor::default(), packet).is(FrameKind::Ip), "{packet:?}");
}

fn checksum_of(packet: &Packet) -> [u8; 2] {
    let header = packet.header();
    let tcp = usize::from(header[0] & 15) * 4;
    [header[tcp + 16], header[tcp + 17]]
}

#[test]
fn bulk_data_takes_three_bytes() {
    let first = Packet::data(5000, 1460);
    let next = first.next_data();
    let [high, low] = checksum_of(&next);
    assert_eq!(compressed_after(&first, &next), [0x0f, high, low]);
    let pushed = Packet { flags: ACK | PSH, ..next };
    let [high, low] = checksum_of(&pushed);
    assert_eq!(compressed_after(&first, &pushed), [0x1f, high, low]);
}

#[test]
fn an_echoed_keystroke_takes_three_bytes() {
    let first = Packet::data(5000, 1);
    let next = Packet { ack: first.ack + 1, ..first.next_data() };
    let [high, low] = checksum_of(&next);
    assert_eq!(compressed_after(&first, &next), [0x0b, high, low]);
}

/// Mask, checksum, and the ACK number's growth: one byte up to 255, three above.
#[test]
fn a_pure_ack_in_steady_state_takes_four_bytes_or_six() {
    let first = Packet::ack(5000);
    for (growth, encoded) in [(1, vec![1]), (255, vec![255]), (256, vec![0, 1, 0]), (2_920, vec![0, 0x0b, 0x68])] {
        let next = first.next_ack(growth);
        let [high, low] = checksum_of(&next);
        assert_eq!(compressed_after(&first, &next), [vec![0x04, high, low], encoded].concat());
    }
}

#[test]
fn a_changed_window_and_an_ip_id_that_does_not_count_cost_their_bytes() {
    let first = Packet::ack(5000);
    let closing = Packet { window: first.window - 200, ..first.next_ack(200) };
    let [high, low] = checksum_of(&closing);
    assert_eq!(compressed_after(&first, &closing), [0x06, high, low, 0, 0xff, 0x38, 200]);
    let same_id = Packet { id: first.id, ..first.next_ack(200) };
    let [high, low] = checksum_of(&same_id);
    assert_eq!(compressed_after(&first, &same_id), [0x24, high, low, 200, 0, 0, 0]);
    let busy_host = Packet { id: first.id + 7, ..first.next_ack(200) };
    let [high, low] = checksum_of(&busy_host);
    assert_eq!(compressed_after(&first, &busy_host), [0x24, high, low, 200, 7]);
}

#[test]
fn every_number_in_its_long_form_makes_the_longest_header() {
    let first = Packet::data(5000, 10);
    let (mut compressor, mut decompressor) = ends_after(&first);
    // The next packet names its connection.
    receive(&mut decompressor, &send(&mut compressor, &Packet::ack(5001))).unwrap();
    let next = Packet {
        id: first.id.wrapping_sub(1),
        sequence: first.sequence + 65_535,
        ack: first.ack + 65_535,
        window: 0x7f00,
        flags: ACK | PSH,
        ..first
    };
    let frame = send(&mut compressor, &next);
    assert_eq!((frame.kind, frame.header.len()), (FrameKind::CompressedTcp, MAX_COMPRESSED));
    assert_eq!(receive(&mut decompressor, &frame), Ok(next.header()));
}

#[test]
fn taking_turns_costs_a_connection_number() {
    let (one, two) = (Packet::ack(5000), Packet::ack(5001));
    let (mut compressor, mut decompressor) = ends_after(&one);
    receive(&mut decompressor, &send(&mut compressor, &two)).unwrap();
    let lengths: Vec<usize> = [one.next_ack(200), two.next_ack(200), two.next_ack(200).next_ack(100)]
        .iter()
        .map(|packet| {
            let frame = send(&mut compressor, packet);
            assert_eq!(receive(&mut decompressor, &frame), Ok(packet.header()));
            frame.header.len()
        })
        .collect();
    assert_eq!(lengths, [5, 5, 4], "the third is of the same connection as the second");
}

#[test]
fn set_up_tear_down_and_fragments_are_left_alone() {
    let ack = Packet::ack(5000);
    for flags in [SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, 0, PSH] {
        goes_as_ip(&Packet { flags, ..ack.clone() });
    }
    for fragment in [0x2000, 0x0001, 0x1fff, 0x6000] {
        goes_as_ip(&Packet { fragment, ..ack.clone() });
    }
    let mut header = ack.header();
    assert_eq!(Compressor::default().compress(&header, 41), Compressed::Ip, "padding behind the packet");
    assert_eq!(Compressor::default().compress(&header[..39], 40), Compressed::Ip, "a header cut short");
    header[9] = 17;
    assert_eq!(Compressor::default().compress(&header, 40), Compressed::Ip, "UDP");
}

#[test]
fn a_repeated_ack_goes_uncompressed_and_data_after_an_ack_does_not() {
    let ack = Packet::ack(5000);
    goes_uncompressed_after(&ack, &ack.next());
    let data = Packet { data: 100, ..ack.next() };
    let [high, low] = checksum_of(&data);
    assert_eq!(compressed_after(&ack, &data), [0x00, high, low]);
    goes_uncompressed_after(&data, &data.next());
    goes_uncompressed_after(&data, &Packet { data: 0, ..data.next() });
}

#[test]
fn numbers_that_go_back_or_too_far_go_uncompressed() {
    let first = Packet::data(5000, 1460);
    goes_uncompressed_after(&first, &Packet { sequence: first.sequence - 1460, ..first.next() });
    goes_uncompressed_after(&first, &Packet { sequence: first.sequence + 65_536, ..first.next() });
    goes_uncompressed_after(&first, &Packet { ack: first.ack - 1, ..first.next() });
    goes_uncompressed_after(&first, &Packet { ack: first.ack + 65_536, ..first.next() });
    compressed_after(&first, &Packet { sequence: first.sequence + 65_535, ..first.next() });
}

#[test]
fn numbers_wrap_around() {
    let first = Packet { sequence: u32::MAX - 9, ack: u32::MAX, id: u16::MAX, ..Packet::data(5000, 1460) };
    let next = Packet { ack: 4, ..first.next_data() };
    assert_eq!((next.sequence, next.id), (1_450, 0));
    compressed_after(&first, &next);
}

#[test]
fn changes_that_have_no_number_go_uncompressed() {
    let first = Packet::data(5000, 100);
    let next = first.next_data();
    for changed in [
        Packet { tos: 1, ..next.clone() },
        Packet { fragment: 0, ..next.clone() },
        Packet { ttl: 63, ..next.clone() },
        Packet { flags: ACK | ECE, ..next.clone() },
        Packet { flags: ACK | CWR, ..next.clone() },
        Packet { reserved: 1, ..next.clone() },
        Packet { ip_options: vec![1, 1, 1, 0], ..next.clone() },
        Packet { tcp_options: vec![1, 1, 1, 0], ..next.clone() },
        Packet { urgent: 7, ..next.clone() },
    ] {
        goes_uncompressed_after(&first, &changed);
        goes_uncompressed_after(&changed, &Packet { id: changed.id.wrapping_add(1), ..next.clone() });
    }
}

/// S W U changed, or S A W U: these masks encode the special cases.
#[test]
fn changes_that_look_like_a_special_case_go_uncompressed() {
    let first = Packet::data(5000, 100);
    let changed = Packet { flags: ACK | URG, urgent: 5, window: 100, ..first.next_data() };
    goes_uncompressed_after(&first, &changed);
    goes_uncompressed_after(&first, &Packet { ack: first.ack + 1, ..changed });
}

/// The RFC's decompressor leaves URG set in the special cases: the long form clears it.
#[test]
fn after_urgent_data_the_long_form_is_used() {
    let first = Packet { flags: ACK | URG, urgent: 5, ..Packet::data(5000, 100) };
    let next = Packet { flags: ACK, ..first.next_data() };
    let [high, low] = checksum_of(&next);
    assert_eq!(compressed_after(&first, &next), [0x08, high, low, 100]);
}

/// RFC 7323 timestamps of a 1 ms clock, an ACK every 6 ms: no header of a download's ACKs is
/// compressed.
#[test]
fn changing_timestamps_leave_nothing_to_save() {
    let stamped = |packet: Packet, ms: u32| {
        let mut options = vec![1, 1, 8, 10];
        options.extend(ms.to_be_bytes());
        options.extend((ms - 5).to_be_bytes());
        Packet { tcp_options: options, ..packet }
    };
    let bytes = |clock_ms: u32| {
        let mut packet = Packet::ack(5000);
        let mut compressor = Compressor::default();
        (0..100_u32).fold(0, |sum, i| {
            packet = packet.next_ack(2_920);
            sum + send(&mut compressor, &stamped(packet.clone(), (10_000 + 6 * i) / clock_ms * clock_ms)).header.len()
        })
    };
    assert_eq!(bytes(1), 100 * 52);
    // A clock of 100 ms is constant over 16 or 17 ACKs: it ticks for 6 of these 100.
    assert_eq!(bytes(100), 6 * 52 + 94 * 6);
}

#[test]
fn the_connection_unused_for_longest_loses_its_slot() {
    let mut compressor = Compressor::new(2).unwrap();
    let [a, b, c] = [5000, 5001, 5002].map(Packet::ack);
    for packet in [&a, &b] {
        assert!(send(&mut compressor, packet).is(FrameKind::UncompressedTcp));
    }
    assert!(send(&mut compressor, &a.next_ack(1)).is(FrameKind::CompressedTcp));
    assert!(send(&mut compressor, &c).is(FrameKind::UncompressedTcp), "takes b's slot");
    assert!(send(&mut compressor, &a.next_ack(1).next_ack(1)).is(FrameKind::CompressedTcp));
    assert!(send(&mut compressor, &b.next_ack(1)).is(FrameKind::UncompressedTcp), "b was forgotten");
}

#[test]
fn sixteen_connections_keep_their_slots_and_a_seventeenth_costs_one() {
    let mut compressor = Compressor::default();
    let mut packets: Vec<Packet> = (0..16).map(|i| Packet::ack(5000 + i)).collect();
    for packet in &packets {
        send(&mut compressor, packet);
    }
    for packet in &mut packets {
        *packet = packet.next_ack(100);
        assert!(send(&mut compressor, packet).is(FrameKind::CompressedTcp));
    }
    send(&mut compressor, &Packet::ack(6000));
    assert!(send(&mut compressor, &packets[0].next_ack(100)).is(FrameKind::UncompressedTcp));
    assert!(send(&mut compressor, &packets[15].next_ack(100)).is(FrameKind::CompressedTcp));
}

#[test]
fn slots_are_from_1_to_256() {
    assert!(Compressor::new(0).is_none() && Compressor::new(257).is_none());
    assert!(Decompressor::new(0).is_none() && Decompressor::new(257).is_none());
    let (mut compressor, mut decompressor) = (Compressor::new(256).unwrap(), Decompressor::new(256).unwrap());
    for port in 0..600 {
        let packet = Packet::ack(port);
        let frame = send(&mut compressor, &packet);
        assert_eq!(receive(&mut decompressor, &frame), Ok(packet.header()));
    }
}

/// Phanse 2000, section 5.3: compression brings an ACK that PPP pushed into two cells back into one.
#[test]
fn a_compressed_ack_over_ppp_takes_one_cell() {
    let link = crate::preset::PPPOA_LLC.link;
    let cells = |bytes: usize| link.cells(lastmile_units::ByteCount::new(bytes as u64)).unwrap().as_u64();
    let first = Packet::ack(5000);
    assert_eq!(cells(first.header().len()), 2);
    assert_eq!(cells(compressed_after(&first, &first.next_ack(3_000)).len()), 1);
}

mod loss;
mod properties;
