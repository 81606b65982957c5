//! Effects of a loss, and recovery from it.

use super::*;

#[test]
fn data_behind_a_lost_segment_fails_its_checksum_until_the_retransmission() {
    let mut packet = Packet::data(5000, 1460);
    let (mut compressor, mut decompressor) = ends_after(&packet);
    let mut sent = vec![];
    for number in 0..10 {
        packet = packet.next_data();
        let frame = send(&mut compressor, &packet);
        assert!(frame.is(FrameKind::CompressedTcp));
        sent.push(packet.clone());
        if number == 3 {
            continue;
        }
        let header = receive(&mut decompressor, &frame).expect("nobody told of the loss");
        assert_eq!(taken_by_tcp(&header, &frame), number < 3, "segment {number}");
        assert_eq!(header == packet.header(), number < 3, "segment {number}");
    }
    // The fourth packet is not acknowledged: the sender times out and returns to a lower sequence
    // number, which has no encoding.
    let again = Packet { id: packet.id + 1, ..sent[3].clone() };
    let frame = send(&mut compressor, &again);
    assert!(frame.is(FrameKind::UncompressedTcp));
    assert_eq!(receive(&mut decompressor, &frame), Ok(again.header()));
    let next = again.next_data();
    let frame = send(&mut compressor, &next);
    assert!(frame.is(FrameKind::CompressedTcp));
    let header = receive(&mut decompressor, &frame).unwrap();
    assert_eq!(header, next.header());
    assert!(taken_by_tcp(&header, &frame));
}

/// A lost ACK invalidates all ACKs after it. The sender's timeout causes a duplicate ACK, which is
/// sent uncompressed.
#[test]
fn acks_behind_a_lost_ack_fail_until_a_duplicate_comes_uncompressed() {
    let mut ack = Packet::ack(5000);
    let (mut compressor, mut decompressor) = ends_after(&ack);
    for number in 0..10 {
        ack = ack.next_ack(2_920);
        let frame = send(&mut compressor, &ack);
        assert!(frame.is(FrameKind::CompressedTcp));
        if number > 0 {
            let header = receive(&mut decompressor, &frame).unwrap();
            assert!(!taken_by_tcp(&header, &frame), "ACK {number} is of a number too low by 2920");
        }
    }
    let duplicate = ack.next();
    let frame = send(&mut compressor, &duplicate);
    assert!(frame.is(FrameKind::UncompressedTcp));
    assert_eq!(receive(&mut decompressor, &frame), Ok(duplicate.header()));
    let next = duplicate.next_ack(2_920);
    let frame = send(&mut compressor, &next);
    assert!(frame.is(FrameKind::CompressedTcp));
    assert_eq!(receive(&mut decompressor, &frame), Ok(next.header()));
}

#[test]
fn after_a_line_error_frames_are_tossed_until_one_names_its_connection() {
    let (one, two) = (Packet::ack(5000), Packet::ack(5001));
    let (mut compressor, mut decompressor) = ends_after(&one);
    receive(&mut decompressor, &send(&mut compressor, &two)).unwrap();
    // The lost packet is of connection one and has a bad FCS. The next packets are of connection
    // one too and omit the number.
    let lost = one.next_ack(100);
    send(&mut compressor, &lost);
    decompressor.line_error();
    let behind = lost.next_ack(100);
    let frame = send(&mut compressor, &behind);
    assert_eq!(receive(&mut decompressor, &frame), Err(Toss::AfterError));
    // A packet that names connection two is accepted.
    let unharmed = two.next_ack(100);
    let frame = send(&mut compressor, &unharmed);
    assert_eq!(receive(&mut decompressor, &frame), Ok(unharmed.header()));
    // A packet that names connection one is accepted by the decompressor, but its header is wrong:
    // the checksum fails.
    let named = behind.next_ack(100);
    let frame = send(&mut compressor, &named);
    let header = receive(&mut decompressor, &frame).unwrap();
    assert!(!taken_by_tcp(&header, &frame));
}

/// ACK number and window that change by opposite amounts leave the checksum unchanged.
#[test]
fn a_lost_ack_that_closed_the_window_by_as_much_as_it_acknowledged_goes_unseen() {
    let first = Packet::ack(5000);
    let (mut compressor, mut decompressor) = ends_after(&first);
    let lost = Packet { window: first.window - 1_000, ..first.next_ack(1_000) };
    send(&mut compressor, &lost);
    let next = lost.next_ack(2_000);
    let frame = send(&mut compressor, &next);
    let header = receive(&mut decompressor, &frame).unwrap();
    assert!(taken_by_tcp(&header, &frame), "the sum is right");
    let stale = Packet { ack: next.ack - 1_000, window: next.window + 1_000, id: next.id - 1, ..next.clone() };
    let (ours, expected) = (&header[20..36], &stale.header()[20..36]);
    assert_eq!(ours, expected, "an older ACK number with the same right edge: harmless, but not what was sent");
}

#[test]
fn the_ip_id_lags_behind_by_what_was_lost() {
    // Only the IP ID changes with data right after an ACK, so its loss affects nothing else.
    let ack = Packet::ack(5000);
    let (mut compressor, mut decompressor) = ends_after(&ack);
    let lost = Packet { data: 1, ..ack.next() };
    send(&mut compressor, &lost);
    let next = Packet { ack: lost.ack + 10, ..lost.next_data() };
    let frame = send(&mut compressor, &next);
    let header = receive(&mut decompressor, &frame).unwrap();
    assert!(taken_by_tcp(&header, &frame));
    assert_eq!(header[20..], next.header()[20..]);
    assert_eq!(header[4..6], (next.id - 1).to_be_bytes());
}

#[test]
fn bad_frames_say_what_is_wrong_and_leave_the_slot_alone() {
    let first = Packet::ack(5000);
    let (mut compressor, mut decompressor) = ends_after(&first);
    let next = first.next_ack(2_920);
    let frame = send(&mut compressor, &next);
    for cut in 0..frame.header.len() {
        let mut copy = decompressor.clone();
        assert_eq!(copy.compressed(&frame.header[..cut], u16::try_from(cut).unwrap()), Err(Toss::Truncated), "{cut}");
        assert_eq!(copy.compressed(&frame.header, 6), Err(Toss::AfterError), "{cut}");
    }
    let slot = decompressor_slot(&first);
    assert_eq!(decompressor.compressed(&[0x40, 16, 0, 0], 4), Err(Toss::NoSuchSlot(16)));
    assert_eq!(decompressor.compressed(&[0x40, slot + 1, 0, 0], 4), Err(Toss::EmptySlot));
    let too_long = [&[0x40 | frame.header[0], slot], &frame.header[1..]].concat();
    assert_eq!(decompressor.compressed(&too_long, u16::MAX), Err(Toss::TooLong));
    assert_eq!(decompressor.uncompressed(&first.header()[..30]), Err(Toss::Malformed));
    let named = u16::try_from(too_long.len()).unwrap();
    assert_eq!(decompressor.compressed(&too_long, named).map(|r| r.header.to_vec()), Ok(next.header()));
    assert_eq!(Toss::NoSuchSlot(16).to_string(), "names slot 16, which does not exist");
}

fn decompressor_slot(packet: &Packet) -> u8 {
    match Compressor::default().compress(&packet.header(), packet.total_len()) {
        Compressed::UncompressedTcp { slot, .. } => slot,
        other => panic!("{other:?}"),
    }
}
