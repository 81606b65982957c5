//! Tail loss probes, and probes without data.

use super::*;

/// RFC 8985, section 7: no ACK for two round trips, so the last segment is retransmitted; its SACK
/// then starts a recovery.
#[test]
fn a_tail_loss_probe_repeats_the_last_of_several_segments() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.ack(300, 2, &[]);
    talk.data(500, 3);
    talk.ack(600, 2, &[(3, 4)]);
    talk.data(626, 2);
    talk.ack(700, 4, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.tail_probes, repeats.fast, repeats.timeouts), (1, 1, 0));
}

/// RFC 8985, section 7: a timer that runs since the first segment may send a probe earlier than a round trip after
/// the last ACK. Only a probe repeats the last of several segments while no ACK reports a loss, with and without a SYN.
#[test]
fn a_tail_loss_probe_may_be_soon_and_is_no_repair() {
    for captured in [true, false] {
        let mut talk = if captured { Talk::open() } else { Talk::amid() };
        for number in 0..4 {
            talk.data(200, number);
        }
        talk.ack(300, 2, &[]);
        talk.data(300, 4);
        talk.data(398, 4);
        talk.ack(410, 5, &[]);
        let up = talk.up();
        let repeats = up.repeats;
        assert_eq!((repeats.tail_probes, repeats.fast, repeats.timeouts), (1, 0, 0), "SYN: {captured}");
        assert_eq!(up.limits.shares.of(Limit::Recovery), Duration::ZERO);
    }
}

/// RFC 8985, section 7.2: a probe is sent after two smoothed round trips of 100 ms and 200 ms for a delayed ACK, or
/// earlier. RFC 6298 (5.5): a timeout doubles the timer. It runs from the ACK of 300 ms.
#[test]
fn a_retransmission_of_the_only_segment_is_a_probe_unless_its_timer_is_long_or_doubles() {
    let plain = Options::syn(SynOptions { mss: Some(1460), window_scale: Some(2), sack_permitted: false });
    for (options, again_at, expected) in [
        (usual(), &[600][..], (1, &[][..])),
        (usual(), &[600, 890], (1, &[890])),
        (usual(), &[600, 1_200], (0, &[600, 1_200])),
        (usual(), &[600, 890, 1_470], (1, &[890, 1_470])),
        (usual(), &[900], (0, &[900])),
        (usual(), &[900, 1_500], (1, &[1_500])),
        (usual(), &[900, 2_100], (0, &[900, 2_100])),
        // Linux doubles up to 120 s.
        (usual(), &[900, 2_100, 4_500, 6_900], (0, &[900, 2_100, 4_500, 6_900])),
        (plain, &[600], (0, &[600])),
        (plain, &[600, 890], (0, &[600, 890])),
    ] {
        let mut talk = Talk::opened_with(100, 100, [options; 2]);
        talk.data(200, 0);
        talk.data(200, 1);
        talk.ack(300, 1, &[]);
        again_at.iter().for_each(|ms| talk.data(*ms, 1));
        let answered = again_at.last().unwrap() + 100;
        talk.ack(answered, 2, &[]);
        let up = talk.up();
        let at: Vec<u64> = up.events.timeouts_at.iter().map(|at| at.since(Instant::ZERO).as_ms()).collect();
        assert_eq!((up.repeats.tail_probes, &at[..]), expected, "{again_at:?}");
        let timeouts = at.len() as u64;
        assert_eq!((up.repeats.timeouts, up.repeats.most_in_a_row), (timeouts, timeouts), "{again_at:?}");
        // The answer to a probe is the timer's too, that to a timeout the recovery's.
        let timer = if timeouts == 0 { answered } else { answered - 100 } - 300;
        assert_eq!(up.limits.shares.of(Limit::Timer), Duration::from_ms(timer), "{again_at:?}");
    }
}

/// RFC 8985, section 7: segments 1 to 3 are lost. The probe of 480 ms repeats the last, and its answer of 580 ms begins
/// the recovery.
#[test]
fn the_wait_for_a_tail_loss_probe_and_its_answer_is_the_timers() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data(200, number);
    }
    talk.ack(300, 1, &[]);
    talk.data(480, 3);
    talk.ack(580, 1, &[(3, 4)]);
    talk.data(580, 1);
    talk.data(580, 2);
    talk.ack(680, 4, &[]);
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.tail_probes, repeats.fast, repeats.in_recovery, repeats.packets()), (1, 1, 1, 3));
    let of = |limit| up.limits.shares.of(limit);
    assert_eq!((of(Limit::Timer), of(Limit::Recovery)), (Duration::from_ms(280), Duration::from_ms(100)));
    assert_eq!(of(Limit::Application), Duration::from_ms(100), "from the handshake to the data");
}

/// Linux probes a closed window and an idle connection without data, one octet back. At the first octet it is the
/// number of the SYN. An ACK from before the FIN is late.
#[test]
fn probes_without_data_are_counted() {
    let mut talk = Talk::open();
    let empty = |octet: u32| {
        let seq = SeqNumber::new(ISN).add(octet);
        Meta { seq, ack: SeqNumber::new(8), flags: TcpFlags::ACK, window: 1000, ..Meta::default() }
    };
    talk.packet(150, true, empty(0), Options::NONE, 0);
    talk.data(200, 0);
    talk.packet(210, true, empty(MSS), Options::NONE, 0);
    talk.ack_with_window(300, 1, 0, &[]);
    for ms in [500, 900] {
        talk.packet(ms, true, empty(MSS), Options::NONE, 0);
        talk.ack_with_window(ms + 100, 1, 0, &[]);
    }
    talk.packet(950, true, empty(1 + MSS), Options::NONE, 0);
    let fin = Meta { flags: TcpFlags::ACK.with(TcpFlags::FIN), ..empty(1 + MSS) };
    talk.packet(1_000, true, fin, Options::NONE, 0);
    talk.packet(1_100, false, Meta { ack: fin.seq.add(1), seq: SeqNumber::new(8), ..empty(0) }, Options::NONE, 0);
    talk.packet(1_200, true, empty(1 + MSS), Options::NONE, 0);
    let up = talk.up();
    assert_eq!((up.repeats.probes, up.repeats.packets(), up.volume.bytes_probed), (3, 0, 0));
}

/// RFC 3522: the ACK of 601 ms is sooner than a round trip after the probe of 600 ms.
#[test]
fn a_probe_whose_original_was_late_is_spurious_and_no_spurious_timeout() {
    let mut talk = Talk::open();
    talk.data(300, 0);
    talk.data(600, 0);
    talk.ack(601, 1, &[]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.tail_probes, repeats.spurious, repeats.spurious_timeouts), (1, 1, 0));
}

/// A packet of this octet alone.
fn octet(talk: &mut Talk, ms: u64, octet: u32) {
    let meta = Meta { seq: SeqNumber::new(ISN).add(octet), ack: SeqNumber::new(8), ..Meta::default() };
    talk.packet(ms, true, Meta { flags: TcpFlags::ACK, window: 1000, ..meta }, Options::NONE, 1);
}

/// RFC 9293, section 3.8.6.1: the receiver refuses the octet after the first segment at 500 ms, and has room for it at
/// 900 ms.
#[test]
fn an_octet_of_a_probe_that_the_receiver_accepts_was_captured() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack_with_window(300, 1, 0, &[]);
    octet(&mut talk, 500, 1 + MSS);
    talk.ack_with_window(600, 1, 0, &[]);
    octet(&mut talk, 900, 1 + MSS);
    let ack = SeqNumber::new(ISN).add(2 + MSS);
    let open = Meta { seq: SeqNumber::new(8), ack, flags: TcpFlags::ACK, window: 1_000, ..Meta::default() };
    talk.packet(1_000, false, open, Options::NONE, 0);
    let rest = Meta { seq: ack, ack: SeqNumber::new(8), flags: TcpFlags::ACK, ..Meta::default() };
    talk.packet(1_000, true, rest, Options::NONE, MSS as u16);
    talk.packet(1_100, false, Meta { ack: ack.add(MSS), ..open }, Options::NONE, 0);
    let up = talk.up();
    let volume = up.volume;
    assert_eq!((volume.bytes_acknowledged, volume.bytes_unseen), (2_001, 0));
    assert_eq!((volume.bytes_new, volume.bytes_probed, up.repeats.probes), (2_001, 1, 2));
    assert_eq!(up.repeats.packets(), 0);
}

/// RFC 2883: each keep-alive repeats an octet, and is reported as a duplicate; and so is a needless retransmission.
#[test]
fn reports_of_keep_alives_hide_no_needless_retransmission() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack(300, 1, &[]);
    let at = |offset: u32| SeqNumber::new(ISN).add(offset);
    for ms in [10_000, 20_000, 30_000] {
        octet(&mut talk, ms, MSS);
        let meta = Meta { seq: SeqNumber::new(8), ack: at(1 + MSS), flags: TcpFlags::ACK, ..Meta::default() };
        let report = Options::NONE.with_sack(&[SackBlock { left: at(MSS), right: at(1 + MSS) }]);
        talk.packet(ms + 100, false, Meta { window: 16_000, ..meta }, report, 0);
    }
    talk.data(40_000, 1);
    talk.data(41_000, 1);
    talk.ack(41_100, 2, &[]);
    talk.ack(41_110, 2, &[(1, 2)]);
    let repeats = talk.up().repeats;
    assert_eq!((repeats.probes, repeats.packets(), repeats.timeouts, repeats.spurious), (3, 1, 1, 1));
}
