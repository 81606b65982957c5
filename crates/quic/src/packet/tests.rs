use proptest::prelude::*;

use super::*;

fn ack(ranges: &[(u64, u64)], delay_us: u64) -> AckFrame {
    let range = |&(first, last): &(u64, u64)| Range { start: first, end: last + 1 };
    let more = ranges[1..].iter().map(range).collect();
    AckFrame { first: range(&ranges[0]), more, delay: Duration::from_us(delay_us) }
}

/// RFC 9000, section 19.3: type, largest, delay, count and first range of one byte each; numbers from 64 on and delays
/// from 64 * 8 us on take two; the first range of 16 385 numbers is 16 384, which takes four.
#[test]
fn an_ack_frame_has_the_bytes_of_its_integers() {
    assert_eq!(ack(&[(0, 63)], 0).size(), 5);
    assert_eq!(ack(&[(0, 64)], 0).size(), 5 + 1 + 1);
    assert_eq!(ack(&[(60, 64)], 511).size(), 5 + 1);
    assert_eq!(ack(&[(60, 64)], 512).size(), 5 + 1 + 1);
    // 25 ms are 3125 units.
    assert_eq!(ack(&[(9_000, 10_000)], 25_000).size(), 1 + 2 + 2 + 1 + 2);
    assert_eq!(ack(&[(0, 16_384)], 0).size(), 1 + 4 + 1 + 1 + 4);
}

/// Section 19.3.1: the ranges 10 to 12 and 3 to 5 have the gap 10 - 5 - 2 = 3 and the length 2: one byte each. A gap of
/// 70 - 3 - 2 = 65 takes two.
#[test]
fn each_further_range_adds_gap_and_length() {
    assert_eq!(ack(&[(10, 12), (3, 5)], 0).size(), 5 + 2);
    assert_eq!(ack(&[(70, 70), (3, 3)], 0).size(), 6 + 3);
    assert_eq!(ack(&[(20, 20), (10, 12), (3, 5)], 0).size(), 5 + 2 + 2);
}

/// RFC 9000, appendix A.2: 0xac5c02 with 0xabe8b3 acknowledged has 29 519 numbers in flight and takes 16 bits;
/// 0xace8fe takes 18, that is three bytes.
#[test]
fn packet_numbers_have_the_lengths_of_the_rfc() {
    let len = |number, acked| Header { form: Form::Short, number, acked, connection_id: 8 }.number_len();
    assert_eq!(len(0x00ac_5c02, Some(0x00ab_e8b3)), 2);
    assert_eq!(len(0x00ac_e8fe, Some(0x00ab_e8b3)), 3);
    assert_eq!(len(0, None), 1);
    assert_eq!(len(127, None), 1);
    assert_eq!(len(128, None), 2);
    assert_eq!(len(228, Some(100)), 1);
    assert_eq!(len(229, Some(100)), 2);
}

/// RFC 9000, section 17.3.1: flags, connection ID, number; RFC 9001: 16 bytes of tag. An acknowledgement of one range
/// is 1 + 8 + 1 + 5 + 16 = 31 bytes, 59 with UDP and IPv4. Section 17.2.4: 1 + 4 + 9 + 9 + 2 and number and tag.
#[test]
fn headers_have_the_bytes_of_their_fields() {
    let header = Header { form: Form::Short, number: 5, acked: Some(0), connection_id: 8 };
    assert_eq!(header.packet_size(ack(&[(0, 63)], 0).size()), 31);
    assert_eq!(Header { connection_id: 0, ..header }.packet_size(5), 23);
    assert_eq!(Header { form: Form::Handshake, ..header }.overhead(), 25 + 1 + 16);
    assert_eq!(Header { form: Form::Initial, ..header }.overhead(), 26 + 1 + 16);
}

/// RFC 9000, section 14.1: an Initial packet fills a datagram of 1200 bytes. RFC 9001, section 5.4.2: number and
/// payload have 4 bytes, so a PING alone has two bytes of padding.
#[test]
fn short_packets_are_padded() {
    let header = Header { form: Form::Initial, number: 0, acked: None, connection_id: 8 };
    assert_eq!(header.packet_size(300), 1200);
    assert_eq!(header.packet_size(1300), 1300 + 43);
    let header = Header { form: Form::Short, ..header };
    assert_eq!(header.packet_size(1), 1 + 8 + 4 + 16);
}

/// RFC 9000, section 19.8: type, stream ID, no offset at 0, else its integer, and the length.
#[test]
fn a_stream_frame_has_its_header() {
    assert_eq!([0, 1, 64, 16_384, 1 << 30].map(Chunk::stream_header), [4, 5, 6, 8, 12]);
    assert_eq!([0, 64].map(Chunk::crypto_header), [4, 5]);
    let frames = Frames { streams: [Some(Chunk { start: 64, end: 164, fin: false }), None], ..Frames::default() };
    assert_eq!(frames.size(), 106);
}

/// Draft, section 4: type 0xaf in two bytes, sequence 0, threshold 9, 25 000 us in four bytes, reordering 3.
#[test]
fn control_frames_have_the_bytes_of_their_fields() {
    let request = AckFrequencyFrame { sequence: 0, threshold: 9, max_delay: Duration::from_ms(25), reordering: 3 };
    assert_eq!(Frames { ack_frequency: Some(request), ..Frames::default() }.size(), 2 + 1 + 1 + 4 + 1);
    // MAX_STREAM_DATA: type, stream, value; MAX_DATA: type, value. 6 MiB take four bytes.
    assert_eq!(Frames { max_data: Some(6 << 20), ..Frames::default() }.size(), 6 + 5);
    let flags = Flags { ping: true, handshake_done: true, immediate_ack: true };
    assert_eq!(Frames { flags, ..Frames::default() }.size(), 3);
}

/// 1452 - (1 + 8 + 1 + 16) - 8 = 1418 octets of the stream. An acknowledgement: 1 + 8 + 2 + 16 + 7 = 34.
#[test]
fn a_long_transfer_has_these_sizes() {
    assert_eq!(SteadySizes::new(1452, 8), SteadySizes { payload: 1418, ack: 34 });
}

proptest! {
    /// The reference encodes each integer of the frame by the definition: 2^(6 + 8 (2^n - 1)) values in 2^n bytes.
    #[test]
    fn the_size_of_an_ack_is_that_of_its_encoding(
        steps in proptest::collection::vec((1_u64..300, 1_u64..40_000), 1..33),
        delay in 0_u64..30_000,
    ) {
        let mut low = 0;
        let mut ranges = Vec::new();
        for (gap, len) in steps {
            ranges.push(Range { start: low, end: low + len });
            low += len + gap;
        }
        ranges.reverse();
        let bytes = |value: u64| (0..4).map(|n| 1_u64 << n).find(|bytes| value < 1 << (8 * bytes - 2)).unwrap();
        let frame = AckFrame { first: ranges[0], more: ranges[1..].to_vec(), delay: Duration::from_us(delay) };
        let mut expected = 1 + bytes(ranges[0].end - 1) + bytes(delay / 8) + bytes(ranges.len() as u64 - 1);
        expected += bytes(ranges[0].end - 1 - ranges[0].start);
        for pair in ranges.windows(2) {
            let (smallest_above, largest) = (pair[0].start, pair[1].end - 1);
            expected += bytes(smallest_above - largest - 2) + bytes(largest - pair[1].start);
        }
        prop_assert_eq!(frame.size(), expected);
    }
}
