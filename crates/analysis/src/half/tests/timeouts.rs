//! Retransmission and reordering timers.

use super::*;

/// RFC 6298 (5.5): each expiry doubles the timer. RFC 5681: afterwards ACKs open the window again.
#[test]
fn timeouts_in_a_row_are_counted_with_their_stall_and_their_waiting() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.data(1_200, 0);
    talk.data(3_200, 0);
    talk.ack(3_300, 1, &[]);
    talk.data(3_300, 1);
    talk.data(3_300, 2);
    talk.ack(3_400, 4, &[]);
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.timeouts, repeats.after_timeout, repeats.fast, repeats.most_in_a_row), (2, 2, 0, 2));
    assert_eq!(up.events.longest_stall, Duration::from_ms(3_100));
    assert_eq!(up.limits.shares.of(Limit::Timer), Duration::from_ms(3_000));
    // 1000 ms do not exceed a second.
    assert_eq!(up.events.pauses.iter().map(|pause| pause.span.as_ms()).collect::<Vec<_>>(), [2_000]);
}

/// RFC 6675, section 5: SACK indicates the loss; the retransmission is lost, and the timer
/// retransmits it.
#[test]
fn a_lost_retransmission_of_a_sack_recovery_is_a_timeout() {
    let mut talk = Talk::open();
    for number in 0..6 {
        talk.data(200, number);
    }
    for right in 2..6 {
        talk.ack(300, 0, &[(1, right)]);
    }
    talk.data(300, 0);
    talk.ack(310, 0, &[(1, 6)]);
    talk.data(900, 0);
    talk.ack(1_000, 6, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.timeouts, repeats.packets()), (1, 1, 2));
}

/// RFC 8985, section 6.2, step 5: the SACKed data do not suffice to distinguish a loss from
/// reordering, so the sender waits a quarter of a round trip or more without receiving anything. A
/// retransmission timer lasts for at least a round trip from the last new acknowledgement
/// (RFC 6298).
#[test]
fn a_reordering_timer_is_no_timeout_and_one_that_lasts_for_a_round_trip_is() {
    for (again_at, expected) in [(360, (1, 0)), (700, (0, 1))] {
        let mut talk = Talk::open();
        for number in 0..4 {
            talk.data(200, number);
        }
        talk.ack(300, 1, &[]);
        talk.ack(310, 1, &[(2, 3)]);
        talk.data(again_at, 1);
        talk.ack(again_at + 100, 4, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.timeouts), expected, "{again_at} ms");
    }
}

/// A reordering timer may also retransmit a lost repair.
#[test]
fn a_reordering_timer_sends_a_lost_repair_again() {
    let mut talk = Talk::open();
    for number in 0..6 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 5)]);
    talk.data(300, 0);
    talk.data(310, 6);
    talk.ack(350, 0, &[(1, 5), (6, 7)]);
    talk.data(390, 0);
    talk.ack(490, 7, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (1, 1, 0));
}

#[test]
fn a_syn_that_is_sent_again_is_a_timeout_and_one_with_another_number_a_new_connection() {
    let mut talk = Talk::amid();
    let syn = |isn| Meta { seq: SeqNumber::new(isn), flags: TcpFlags::SYN, ..Meta::default() };
    talk.packet(0, true, syn(1), Options::NONE, 0);
    talk.packet(1_000, true, syn(1), Options::NONE, 0);
    talk.packet(9_000, true, syn(77), Options::NONE, 0);
    let connections = talk.analysis.finish();
    assert_eq!(connections.iter().map(|connection| connection.up.repeats.packets()).collect::<Vec<_>>(), [1, 0]);
}

/// Next to the receiver, behind a queue: the sender answers after 150 ms, then after 300 ms, so that the whole round
/// trip is about 290 ms when segment 78 is lost. Its retransmission waits 85 ms for reordering. It is later than any
/// answer, but too early for a timer, which lasts a round trip from when the ACK of 2157 ms reached the sender. With
/// a timer of 500 ms the retransmission arrives at 2157 + 300 + 500 ms.
#[test]
fn next_to_the_receiver_a_timer_lasts_for_the_whole_round_trip() {
    for (again_at, sent, expected) in [(2_544, 2_394, (1, 0)), (2_957, 2_807, (0, 1))] {
        let mut talk = Talk::open_at_receiver();
        let mut number = 0;
        let mut before = 0;
        for from in [200, 350, 650, 950, 1_250, 1_550, 1_850] {
            for place in 0..10 {
                let at = from + place;
                talk.stamped_data(at, number, (at as u32 - 75, if before > 0 { (before + place) as u32 } else { 0 }));
                number += 1;
                talk.stamped_ack(at, number, &[]);
            }
            before = from;
        }
        assert_eq!(number, 70);
        for place in (0..10).filter(|place| *place != 8) {
            let at = 2_150 + place;
            talk.stamped_data(at, 70 + place as u32, (at as u32 - 150, 1_850 + place as u32));
            let (ack, blocks) = if place < 8 { (71 + place as u32, &[][..]) } else { (78, &[(79, 80)][..]) };
            talk.stamped_ack(at, ack, blocks);
        }
        talk.stamped_data(again_at, 78, (sent, 2_159));
        talk.stamped_ack(again_at, 80, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.timeouts, repeats.packets()), (expected.0, expected.1, 1), "{again_at} ms");
        assert_eq!(repeats.lost_before_capture, 1);
    }
}

/// RFC 8985, section 6.2, step 5, after an idle time: the timer of a timeout begins with the data after it, and
/// lasts for at least a smoothed round trip and 200 ms in Linux. That of the capture is 100 ms, and half of it sure.
#[test]
fn a_reordering_timer_after_an_idle_time_is_no_timeout() {
    for (again_at, expected) in [(1_127, (1, 0)), (1_195, (1, 0)), (1_240, (1, 0)), (1_260, (0, 1))] {
        let mut talk = Talk::open();
        talk.data(200, 0);
        talk.ack(300, 1, &[]);
        talk.data(1_000, 1);
        talk.data(1_000, 2);
        talk.ack(1_100, 1, &[(2, 3)]);
        talk.data(again_at, 1);
        talk.ack(again_at + 100, 3, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.timeouts, repeats.packets()), (expected.0, expected.1, 1), "{again_at} ms");
    }
}

/// Next to the receiver, whose sender is 150 ms away: a line holds ten segments and two retransmissions of the first by
/// a timer. All of them are acknowledged as they arrive, so that no loss was ever reported.
#[test]
fn retransmissions_of_what_has_arrived_are_timeouts_without_a_recovery() {
    let mut talk = Talk::open_at_receiver();
    for number in 0..10 {
        talk.data(1_500, number);
        talk.ack(1_500, number + 1, &[]);
    }
    for ms in [1_501, 1_502] {
        talk.data(ms, 0);
        talk.ack(ms, 10, &[(0, 1)]);
    }
    talk.data(1_660, 10);
    talk.ack(1_660, 11, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.packets(), repeats.spurious), (2, 2, 2));
}

/// RFC 5682: a timeout in a fast recovery, and one after which more was sent again, go on.
#[test]
fn a_timeout_in_a_recovery_goes_on() {
    let mut talk = Talk::open();
    a_repair_by_sack(&mut talk);
    for number in 8..16 {
        talk.data(402, number);
    }
    talk.ack(502, 8, &[(9, 12)]);
    talk.data(502, 8);
    talk.data(900, 8);
    talk.ack(1_000, 12, &[(13, 14)]);
    talk.data(1_000, 12);
    talk.ack(1_100, 16, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.timeouts, repeats.after_timeout), (2, 1, 1));
}

/// Nothing that was sent after the repair of segment 3 has arrived: only a timer sends it again so soon.
#[test]
fn a_repair_that_nothing_overtook_is_sent_again_by_a_timer() {
    let mut talk = Talk::open();
    for number in 0..7 {
        talk.data(200, number);
    }
    talk.ack(300, 0, &[(1, 3), (4, 5)]);
    talk.data(300, 0);
    talk.ack(495, 3, &[(4, 7)]);
    talk.data(495, 3);
    talk.data(500, 3);
    talk.ack(600, 7, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts), (1, 1, 1));
}

/// A repair that was overtaken is sent again at a time at which a timer may have expired. What the sender did with the
/// one before decides: it found it by the later arrival (RFC 8985), or left it to its timer (RFC 6675).
#[test]
fn a_sender_that_left_a_lost_repair_to_its_timer_does_so_again() {
    for (again, expected) in [(401, [2, 2, 0]), (900, [2, 0, 2])] {
        let mut talk = Talk::open();
        for number in 0..8 {
            talk.data(200, number);
        }
        talk.ack(300, 0, &[(1, 8)]);
        talk.data(300, 0);
        talk.data(301, 8);
        talk.ack(401, 0, &[(1, 9)]);
        talk.data(again, 0);
        talk.ack(again + 100, 9, &[]);
        for number in 9..17 {
            talk.data(1_000, number);
        }
        talk.ack(1_100, 9, &[(10, 17)]);
        talk.data(1_100, 9);
        talk.data(1_298, 17);
        talk.ack(1_398, 9, &[(10, 18)]);
        talk.data(1_402, 9);
        talk.ack(1_502, 18, &[]);
        let repeats = talk.up().repeats;
        assert_eq!([repeats.fast, repeats.in_recovery, repeats.timeouts], expected, "{again}");
    }
}

/// Without SACK and without Eifel (RFC 4015) a sender goes on after a timeout that an echo shows to be needless: no
/// timer expires at an ACK.
#[test]
fn a_sender_that_does_not_take_a_timeout_back_goes_on_after_it() {
    let mut talk = Talk::opened_with(100, 100, [Options::syn(SynOptions::default()); 2]);
    for number in 0..6 {
        talk.stamped_data(200, number, (200, 1));
    }
    talk.stamped_ack(300, 1, &[]);
    talk.stamped_data(300, 6, (300, 300));
    talk.stamped_data(700, 1, (700, 300));
    for number in 2..5 {
        talk.options = Options::NONE.with_timestamps(700 + number, 200);
        talk.ack(u64::from(700 + number), number, &[]);
        talk.stamped_data(u64::from(700 + number), number, (700 + number, 700 + number));
    }
    talk.stamped_ack(810, 7, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.after_timeout, repeats.fast), (1, 3, 0));
}
