//! Packets that the capture or the network missed, copied or reordered.

use super::*;

#[test]
fn what_the_network_duplicates_or_reorders_is_no_repeat() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.id -= 1;
    talk.data(200, 0);
    talk.id += 1;
    talk.data(201, 2);
    talk.id -= 2;
    talk.data(201, 1);
    talk.ack(300, 3, &[]);
    let up = talk.up();
    assert_eq!((up.repeats.duplicated, up.repeats.out_of_order, up.repeats.packets()), (1, 1, 0));
    assert_eq!((up.volume.bytes_new, up.volume.bytes_repeated), (3_000, 1_000));
}

/// A loss before the capture shows as a hole; the packet that fills it after three duplicate ACKs
/// is its retransmission.
#[test]
fn a_repeat_of_what_was_lost_before_the_capture_is_known_by_its_hole() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    for number in 2..6 {
        talk.data(200, number);
    }
    for _ in 0..4 {
        talk.ack(300, 1, &[]);
    }
    talk.data(301, 1);
    talk.ack(400, 6, &[]);
    let up = talk.up();
    assert_eq!((up.repeats.fast, up.repeats.lost_before_capture, up.volume.bytes_new), (1, 1, 6_000));
    // The hole delayed its ACK: only the SYN and the first segment were measured.
    assert_eq!(up.delays.round_trips.count, 2);
}

/// A capture that begins in the middle: the side with the larger port counts as the opener.
#[test]
fn without_a_syn_windows_are_not_known_and_the_rest_is() {
    let mut talk = Talk::amid();
    talk.data(0, 3);
    talk.data(1, 4);
    talk.ack(50, 5, &[]);
    let connection = talk.end();
    assert_eq!(connection.opener, crate::Opener::Guessed);
    assert_eq!((connection.up.volume.bytes_acknowledged, connection.up.window.max), (2_000, None));
    assert_eq!(connection.up.initial_window, None);
}

/// Segments 5 to 9 were sent before the capture, and 5 and 8 of them were lost.
#[test]
fn retransmissions_of_data_from_before_the_capture_belong_to_their_recovery() {
    let mut talk = Talk::amid();
    for number in 10..15 {
        talk.data(0, number);
    }
    talk.ack(1, 5, &[]);
    talk.ack(2, 5, &[(6, 8)]);
    talk.ack(3, 5, &[(9, 11), (6, 8)]);
    talk.data(3, 5);
    talk.data(4, 8);
    talk.ack(50, 8, &[(9, 11)]);
    talk.ack(51, 15, &[]);
    talk.data(52, 15);
    talk.ack(100, 16, &[]);
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.packets()), (1, 1, 2));
    assert_eq!((repeats.lost_before_capture, repeats.out_of_order), (0, 0));
    assert_eq!((up.volume.bytes_acknowledged, up.max_in_flight), (6_000, 10_000));
    assert_eq!(up.limits.shares.of(Limit::Handshake), Duration::ZERO);
    // Data from before the capture measure no round trip: segment 10 does by its SACK, and the last one.
    assert_eq!((up.delays.round_trips.count, up.delays.round_trips.least), (2, Some(Duration::from_ms(3))));
}

/// The capture begins with the ACK of the segments before the 5th.
#[test]
fn data_before_the_first_captured_ones_are_no_loss_before_the_capture() {
    let mut talk = Talk::amid();
    talk.ack(0, 5, &[]);
    talk.data(0, 10);
    talk.ack(1, 5, &[(6, 10)]);
    talk.data(2, 5);
    talk.ack(50, 11, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.packets(), repeats.lost_before_capture), (1, 1, 0));
}

/// Segment 5 was sent before the capture. No ACK reports a loss, and none comes for a second.
#[test]
fn a_retransmission_of_data_from_before_the_capture_after_silence_is_a_timeout() {
    let mut talk = Talk::amid();
    talk.data(0, 10);
    talk.ack(1, 5, &[]);
    talk.data(1_001, 5);
    talk.ack(1_050, 11, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.packets()), (1, 1));
}

/// Next to the receiver: segment 1 is overtaken by its retransmission, and arrives 60 ms after it. Its timestamp tells
/// so, in that of a packet of two segments as well.
#[test]
fn an_original_that_its_retransmission_overtook_is_out_of_order() {
    for (sent, expected) in [(150, (1, 0, 1)), (330, (0, 1, 2))] {
        let mut talk = Talk::open_at_receiver();
        talk.stamped_data(300, 0, (150, 0));
        talk.stamped_ack(300, 1, &[]);
        for number in 2..12 {
            talk.stamped_data(300, number, (150, 0));
            talk.stamped_ack(300, 1, &[(2, number + 1)]);
        }
        talk.stamped_data(450, 1, (300, 300));
        talk.stamped_ack(450, 12, &[]);
        talk.stamped_data(510, 1, (sent, 300));
        talk.stamped_ack(510, 12, &[(1, 2)]);
        let repeats = talk.up().repeats;
        let counted = (repeats.out_of_order, repeats.lost_before_capture, repeats.packets());
        assert_eq!(counted, expected, "sent at {sent}");
    }
}

/// IPv6 has no identifications: equal timestamps within less than a round trip are a copy. A round trip is 100 ms, and
/// the clock of the sender ticks every 250 ms. Before the first ACK of data only a timer retransmits.
#[test]
fn a_copy_without_an_identification_is_known_by_its_timestamp() {
    for (again_at, sent, expected) in [(210, 0, 1), (299, 0, 1), (301, 0, 0), (210, 1, 0)] {
        let mut talk = Talk::open();
        talk.id = 0;
        talk.stamped_data(200, 0, (0, 1));
        talk.id = 0;
        talk.stamped_data(again_at, 0, (sent, 1));
        talk.stamped_ack(400, 1, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.duplicated, repeats.packets()), (expected, 1 - expected), "{again_at} {sent}");
    }
}

/// Segments 1, 2 and 5 were missed by the capture, and the last of these behind all that it has.
#[test]
fn acknowledged_octets_of_holes_were_missed_by_the_capture() {
    let mut talk = Talk::open();
    for number in [0, 3, 4] {
        talk.data(200, number);
    }
    talk.ack(300, 2, &[]);
    assert_eq!(talk.analysis.clone().finish()[0].up.volume.bytes_unseen, 1_000);
    talk.ack(300, 6, &[]);
    let volume = talk.up().volume;
    assert_eq!((volume.bytes_new, volume.bytes_unseen, volume.bytes_acknowledged), (3_000, 3_000, 6_000));
}

/// A packet of the side that opened, with this number of octets, or a FIN of theirs.
fn up(talk: &mut Talk, ms: u64, offset: u32, payload: u16, flags: TcpFlags) {
    let meta = Meta { seq: SeqNumber::new(ISN).add(offset), ack: SeqNumber::new(8), flags, ..Meta::default() };
    talk.packet(ms, true, meta, Options::NONE, payload);
}

/// The packet of the other side that acknowledges the octets before `offset`.
fn down(talk: &mut Talk, ms: u64, offset: u32, flags: TcpFlags) {
    let (seq, ack) = (SeqNumber::new(8), SeqNumber::new(ISN).add(offset));
    talk.packet(ms, false, Meta { seq, ack, flags, window: 1_000, ..Meta::default() }, Options::NONE, 0);
}

const FIN: TcpFlags = TcpFlags::FIN.with(TcpFlags::ACK);

/// Of an upload of 2 000 octets the capture has the receiver's packets alone: the last octet that it acknowledges is
/// the FIN, alone at 900 ms or together with data, where the receiver closes as well.
#[test]
fn a_fin_that_the_capture_missed_is_no_octet_of_data() {
    for (acks, end, expected) in [
        (vec![(0, 1), (100, 2_001), (900, 2_002)], FIN, (2_000, 2_000, 100)),
        (vec![(0, 1), (100, 1_001), (200, 2_002)], FIN, (2_000, 2_000, 200)),
        (vec![(0, 1), (100, 2_001), (900, 2_002)], TcpFlags::ACK, (2_001, 2_001, 900)),
        (vec![(0, 1), (100, 2_001), (900, 2_002)], TcpFlags::RST, (2_001, 2_001, 900)),
    ] {
        let mut talk = Talk::amid();
        for &(ms, offset) in &acks {
            down(&mut talk, ms, offset, TcpFlags::ACK);
        }
        down(&mut talk, 901, 2_002, end);
        let way = talk.up();
        let (volume, active) = (way.volume, Duration::from_ms(expected.2));
        assert_eq!((volume.bytes_acknowledged, volume.bytes_unseen), (expected.0, expected.1), "{acks:?} {end:?}");
        assert_eq!(way.active, active, "{acks:?} {end:?}");
        assert_eq!((way.has_packets(), way.has_acks(), way.limits.basis), (false, true, None));
    }
    // With its data the capture knows the FIN itself, and an octet that it missed before a reset is one.
    let mut talk = Talk::open();
    up(&mut talk, 200, 1, 1_000, FIN);
    down(&mut talk, 300, 1_002, FIN);
    let volume = talk.up().volume;
    assert_eq!((volume.bytes_acknowledged, volume.bytes_unseen), (1_000, 0));
}

/// Of a download the capture has the data alone, with one segment again: no ACK shows a cause or a limit.
#[test]
fn without_acks_no_cause_and_no_limit_is_known() {
    let mut talk = Talk::amid();
    for (ms, number) in [(0, 0), (1, 1), (900, 1), (901, 2)] {
        talk.data(ms, number);
    }
    let way = talk.up();
    assert_eq!((way.has_packets(), way.has_acks(), way.limits.basis), (true, false, None));
    assert_eq!((way.repeats.packets(), way.repeats.unknown), (1, 1));
    assert!(way.limits.shares.total().is_zero());
}

/// The window closes at 300 ms, and the capture ends 700 ms later.
#[test]
fn a_window_that_stays_closed_is_closed_to_the_end_of_the_capture() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack_with_window(300, 1, 0, &[]);
    talk.ack_with_window(1_000, 1, 0, &[]);
    let window = talk.up().window;
    assert_eq!((window.closings, window.closed), (1, Duration::from_ms(700)));
}

/// Next to the receiver, without timestamps, with a handshake of 150 ms: a repair may be a quarter faster. A packet
/// that fills the hole of 201 ms sooner was overtaken.
#[test]
fn a_repair_may_come_sooner_than_the_handshake_took() {
    for (ms, expected) in [(313, (0, 1)), (314, (1, 0))] {
        let mut talk = Talk::open_at_receiver();
        talk.id = 0;
        talk.data(200, 0);
        talk.data(201, 2);
        talk.ack(201, 1, &[(2, 3)]);
        talk.data(ms, 1);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.packets(), repeats.out_of_order), expected, "{ms}");
    }
}
