//! Losses that acknowledgements report, and their recovery.

use super::*;

/// RFC 5681, section 3.2: the third duplicate ACK sends the segment again; RFC 6582: partial ACKs
/// send the next.
#[test]
fn three_duplicate_acks_are_a_fast_retransmit_and_what_follows_is_of_its_recovery() {
    let mut talk = Talk::open();
    for number in 0..8 {
        talk.data(200, number);
    }
    for _ in 0..4 {
        talk.ack(300, 1, &[]);
    }
    talk.data(301, 1);
    talk.ack(400, 3, &[]);
    talk.data(401, 3);
    talk.ack(500, 8, &[]);
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts, repeats.packets()), (1, 1, 0, 2));
    assert_eq!((up.acks.duplicate, up.volume.bytes_repeated), (3, 2_000));
}

/// RFC 8985, section 6.2: with SACK a retransmission overtaken by a later segment is retransmitted
/// immediately.
#[test]
fn a_lost_retransmission_that_was_overtaken_is_part_of_the_recovery() {
    let mut talk = Talk::open();
    for number in 0..6 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 5)]);
    talk.data(300, 0);
    talk.data(350, 6);
    talk.ack(460, 0, &[(1, 7)]);
    talk.data(461, 0);
    talk.ack(600, 7, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (1, 1, 0));
}

/// RFC 8985, section 6.2: a cumulative ACK delivers the retransmission of segment 3, which was sent after
/// segment 7. So segment 7 is lost, without any SACK, and a recovery begins with the ACK that ends another.
#[test]
fn a_recovery_may_begin_with_the_ack_that_ends_another() {
    let mut talk = Talk::open();
    for number in 0..7 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 3), (4, 7)]);
    talk.data(300, 0);
    talk.data(301, 7);
    talk.data(320, 3);
    talk.ack(400, 3, &[(4, 7)]);
    talk.ack(420, 7, &[]);
    talk.data(420, 7);
    talk.ack(520, 8, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (2, 1, 0));
}

/// The repair of segment 0 is lost. Segment 6 overtakes it at 401 ms within the reordering window, so that the ACK of
/// segment 7 retransmits it, 145 ms after the repair. A smoothed round trip is 100 ms.
#[test]
fn a_reordering_window_postpones_the_repair_of_a_repair_to_a_later_ack() {
    let mut talk = Talk::open();
    for number in 0..6 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 5)]);
    talk.data(300, 0);
    talk.data(301, 6);
    talk.data(345, 7);
    talk.ack(401, 0, &[(1, 7)]);
    talk.ack(445, 0, &[(1, 8)]);
    talk.data(445, 0);
    talk.ack(545, 8, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (1, 1, 0));
}

/// RFC 7323, section 5: timestamps order the transmissions. Segments 1 and 2 are missing, so that the one above the
/// filled hole has none.
#[test]
fn a_segment_that_fills_a_part_of_a_hole_is_ordered_by_the_timestamp_above_it() {
    for (sent, expected) in [(260, (1, 0)), (120, (0, 1))] {
        let mut talk = Talk::open_at_receiver();
        talk.id = 0;
        talk.stamped_data(200, 0, (120, 0));
        talk.stamped_ack(200, 1, &[]);
        for number in 3..6 {
            talk.stamped_data(210, number, (130, 0));
        }
        talk.stamped_ack(210, 1, &[(3, 6)]);
        talk.stamped_data(340, 1, (sent, 210));
        talk.stamped_ack(340, 2, &[(3, 6)]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.lost_before_capture, repeats.out_of_order), expected, "sent at {sent} ms");
    }
}

/// Without timestamps, 150 ms from the sender: a packet that was overtaken by 180 ms, and a retransmission after 10 ms.
/// The sender counts its packets.
#[test]
fn a_segment_that_fills_a_hole_is_ordered_by_its_identification() {
    for (ms, id, expected) in [(480, 109, (0, 1)), (310, 112, (1, 0))] {
        let mut talk = Talk::open_at_receiver();
        for number in (0..12).filter(|number| *number != 9) {
            talk.id = 100 + number as u16;
            talk.data(300, number);
        }
        talk.ack(300, 9, &[(10, 12)]);
        talk.id = id;
        talk.data(ms, 9);
        talk.ack(ms, 12, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.lost_before_capture, repeats.out_of_order), expected, "identification {id}");
    }
}

/// Next to the receiver: segment 1 arrives behind 2 to 4, and its retransmission after the SACK of these.
#[test]
fn a_retransmission_of_what_has_arrived_after_evidence_of_a_loss_is_fast() {
    let mut talk = Talk::open_at_receiver();
    talk.id = 0;
    talk.data(300, 0);
    talk.ack(300, 1, &[]);
    for number in 2..5 {
        talk.data(310, number);
    }
    talk.ack(310, 1, &[(2, 5)]);
    talk.data(312, 1);
    talk.ack(312, 5, &[]);
    talk.data(460, 1);
    talk.ack(460, 5, &[(1, 2)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.out_of_order, repeats.fast, repeats.packets(), repeats.spurious), (1, 1, 1, 1));
}

/// RFC 8985, section 6.2: the second repair of segment 0 is acknowledged, and was sent after the repair of segment 4.
#[test]
fn a_repair_is_overtaken_by_what_is_acknowledged_too() {
    let mut talk = Talk::open();
    for number in 0..8 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 4)]);
    talk.data(300, 0);
    talk.ack(310, 0, &[(5, 8), (1, 4)]);
    talk.data(310, 4);
    talk.data(310, 8);
    talk.ack(410, 0, &[(5, 9), (1, 4)]);
    talk.data(410, 0);
    talk.ack(510, 4, &[(5, 9)]);
    talk.data(510, 4);
    talk.ack(610, 9, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (1, 3, 0));
}

/// Linux: a retransmission after a timeout that was lost and overtaken begins a fast recovery.
#[test]
fn the_repair_after_a_timeout_ends_with_a_lost_retransmission() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.data(700, 0);
    talk.ack(800, 1, &[(3, 4)]);
    talk.data(800, 1);
    talk.data(801, 4);
    talk.ack(901, 1, &[(3, 5)]);
    talk.data(901, 1);
    talk.ack(1_001, 5, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.after_timeout, repeats.fast), (1, 1, 1));
}

/// Segment 0 is lost. Blocks report segment 2 after 108 ms, 3 after 127 ms and 4 after 136 ms: the newest of each ACK
/// is a sample, as in Linux, and the handshake of 100 ms. The retransmission gives none without timestamps, nor do the
/// segments above it, whose cumulative ACK waited for it.
#[test]
fn a_segment_measures_the_round_trip_when_sack_first_reports_it() {
    let mut talk = Talk::open();
    for (number, ms) in [200, 201, 202, 203, 204].into_iter().enumerate() {
        talk.data(ms, number as u32);
    }
    talk.ack(310, 0, &[(1, 3)]);
    talk.ack(330, 0, &[(1, 4)]);
    talk.ack(331, 0, &[(1, 4)]);
    talk.ack(340, 0, &[(1, 5)]);
    talk.data(341, 0);
    talk.ack(600, 5, &[]);
    let trips = talk.up().delays.round_trips;
    // The histogram has two digits.
    let ms = |trip: Option<Duration>| trip.map(|trip| (trip.as_secs_f64() * 1e3).round());
    assert_eq!((trips.count, ms(trips.median), ms(trips.p95)), (4, Some(108.0), Some(136.0)));
}

/// Three duplicate ACKs amid a recovery begin another one of a sender without SACK (RFC 5681), and are part of it with
/// SACK (RFC 6675), which this sender shows later.
#[test]
fn a_sender_that_passes_over_sacked_segments_was_none_without_sack() {
    for (passes_over, expected) in [(false, (3, 0)), (true, (2, 2))] {
        let mut talk = Talk::open();
        for number in 0..8 {
            talk.data(200, number);
        }
        talk.ack(300, 0, &[(1, 3)]);
        talk.ack(300, 0, &[(1, 3), (4, 5)]);
        talk.ack(300, 0, &[(1, 3), (4, 6)]);
        talk.data(300, 0);
        talk.ack(400, 3, &[(4, 6)]);
        for right in 6..8 {
            talk.ack(400, 3, &[(4, right)]);
        }
        talk.ack(400, 3, &[(4, 8)]);
        talk.data(401, 3);
        talk.ack(500, 8, &[]);
        for number in 8..14 {
            talk.data(500, number);
        }
        talk.ack(600, 8, &[(9, 12), (13, 14)]);
        talk.data(600, 8);
        if passes_over {
            talk.data(600, 12);
        }
        talk.ack(700, 14, &[]);
        let up = talk.up();
        assert_eq!((up.repeats.fast, up.repeats.in_recovery), expected);
        assert_eq!(up.events.fast_retransmits_at.len() as u64, up.repeats.fast);
    }
}

/// Without SACK: jitter compresses the partial ACK and three duplicates (RFC 6582). The sender has gone on at a partial
/// ACK before, so that this is no second fast retransmit.
#[test]
fn duplicates_behind_a_partial_ack_begin_no_repair_of_newreno() {
    for (goes_on, expected) in [(true, (1, 2)), (false, (2, 0))] {
        let mut talk = Talk::open();
        for number in 0..12 {
            talk.data(200, number);
        }
        // The first announces another window than the SYN.
        (0..4).for_each(|_| talk.ack(300, 0, &[]));
        talk.data(300, 0);
        if goes_on {
            talk.ack(400, 1, &[]);
            talk.data(400, 1);
        }
        talk.ack(500, 4, &[]);
        (0..3).for_each(|_| talk.ack(500, 4, &[]));
        talk.data(500, 4);
        talk.ack(600, 12, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.in_recovery), expected, "{goes_on}");
    }
}
