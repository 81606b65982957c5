//! Repairs that later packets show to be needless.

use super::*;

/// RFC 2883, section 4.1.1: the first block lies below the cumulative acknowledgement.
#[test]
fn a_report_of_a_duplicate_makes_a_repeat_spurious() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.data(200, 1);
    talk.data(1_300, 0);
    talk.ack(1_400, 2, &[(0, 1)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.spurious), (1, 1));
}

/// RFC 3522: the echo of a timestamp from before the retransmission. Without timestamps: an answer
/// 1 ms after it.
#[test]
fn an_answer_to_the_original_makes_a_timeout_spurious() {
    for timestamps in [true, false] {
        let mut talk = Talk::open();
        let stamped = |value, echo| {
            if timestamps { Options::NONE.with_timestamps(value, echo) } else { Options::NONE }
        };
        talk.options = stamped(200, 1);
        talk.data(200, 0);
        talk.options = stamped(1_300, 1);
        talk.data(1_300, 0);
        talk.options = stamped(1, 200);
        talk.ack(1_301, 1, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.timeouts, repeats.spurious_timeouts), (1, 1), "timestamps: {timestamps}");
    }
}

/// RFC 5682, section 3: after a timeout a SACK of what was sent once ends the repair, if the sender uses SACK.
#[test]
fn after_an_answer_to_what_was_sent_once_a_timeout_is_over() {
    for (uses_sack, expected) in [(true, [2, 1, 0]), (false, [0, 1, 1])] {
        let mut talk = Talk::open();
        if uses_sack {
            a_repair_by_sack(&mut talk);
        } else {
            (0..8).for_each(|number| talk.data(302, number));
            talk.ack(402, 8, &[]);
        }
        for number in 8..12 {
            talk.data(402, number);
        }
        talk.data(900, 8);
        talk.ack(1_000, 9, &[(10, 11)]);
        talk.data(1_000, 12);
        talk.data(1_000, 13);
        talk.ack(1_100, 9, &[(12, 14), (10, 11)]);
        talk.data(1_100, 9);
        talk.ack(1_200, 14, &[]);
        let repeats = talk.up().repeats;
        assert_eq!([repeats.fast, repeats.timeouts, repeats.after_timeout], expected, "{uses_sack}");
        assert_eq!(repeats.spurious_timeouts, 0, "what the timer sent was lost");
    }
}

/// RFC 3522 and RFC 4015: an echo from before the retransmission ends the repair; what follows is another.
#[test]
fn a_repair_that_timestamps_show_to_be_needless_is_over() {
    let mut talk = Talk::open();
    for number in 0..10 {
        talk.stamped_data(200, number, (200, 1));
    }
    talk.stamped_ack(300, 0, &[(1, 4)]);
    talk.stamped_data(300, 0, (300, 300));
    // The original of segment 0 was late.
    talk.options = Options::NONE.with_timestamps(310, 200);
    talk.ack(310, 4, &[]);
    talk.ack(320, 4, &[(5, 9)]);
    talk.stamped_data(320, 4, (320, 320));
    talk.options = Options::NONE.with_timestamps(420, 320);
    talk.ack(420, 10, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts, repeats.spurious), (2, 0, 0, 1));
}

/// RFC 3708: reports of all that was retransmitted end the repair, one of a part does not.
#[test]
fn a_repair_that_reports_show_to_be_needless_is_over() {
    for (repaired, expected) in [(&[8][..], (3, 1)), (&[8, 12][..], (2, 3))] {
        let mut talk = Talk::open();
        a_repair_by_sack(&mut talk);
        for number in 8..20 {
            talk.data(402, number);
        }
        talk.ack(500, 8, &[(13, 14), (9, 12)]);
        for number in repaired {
            talk.data(500, *number);
        }
        talk.ack(501, 14, &[]);
        talk.ack(600, 14, &[(8, 9)]);
        talk.ack(610, 14, &[(15, 19)]);
        talk.data(610, 14);
        talk.ack(710, 20, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.in_recovery), expected, "{repaired:?}");
    }
}

/// Without timestamps: the timer was too early, and expired twice. Reports tell so of both.
#[test]
fn a_report_of_what_a_timer_sent_makes_the_timeout_spurious() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.data(700, 0);
    talk.data(1_700, 0);
    talk.ack(2_100, 4, &[]);
    talk.ack(2_600, 4, &[(0, 1)]);
    assert_eq!(talk.analysis.clone().finish()[0].up.repeats.spurious_timeouts, 1);
    talk.ack(2_600, 4, &[(0, 1)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.spurious, repeats.spurious_timeouts), (2, 2, 2));
}

/// The ACK comes too early for an answer to the retransmission, and reports it as well.
#[test]
fn a_timeout_that_two_signs_show_to_be_spurious_counts_once() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.ack(300, 1, &[]);
    talk.data(700, 1);
    talk.ack(705, 4, &[(1, 2)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.timeouts, repeats.spurious, repeats.spurious_timeouts), (1, 1, 1));
}

/// The answers to three timeouts are lost. An ACK of later data echoes the repair, which came before them, and reports
/// the last.
#[test]
fn an_echo_of_a_repair_makes_all_timeouts_after_it_spurious() {
    let mut talk = Talk::open();
    for number in 0..6 {
        talk.stamped_data(200, number, (200, 1));
    }
    talk.stamped_ack(300, 0, &[(1, 4)]);
    for ms in [300, 900, 1_700, 3_300] {
        talk.stamped_data(u64::from(ms), 0, (ms, 300));
    }
    talk.options = Options::NONE.with_timestamps(3_400, 300);
    talk.ack(3_400, 6, &[(0, 1)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.timeouts, repeats.spurious, repeats.spurious_timeouts), (1, 3, 3, 3));
}
