//! What limits a direction: windows, the application, and pauses.

use super::*;

/// A window of 8 000 bytes limits for 100 ms, one of 16 000 for 300 ms; the SYN-ACK offered 1 000 x 4.
#[test]
fn the_limiting_window_is_the_mean_over_the_time_for_which_it_limited() {
    let mut talk = Talk::open();
    talk.ack_with_window(150, 0, 2_000, &[]);
    (0..8).for_each(|number| talk.data(200, number));
    talk.ack_with_window(300, 8, 4_000, &[]);
    (8..24).for_each(|number| talk.data(300, number));
    talk.ack_with_window(600, 24, 16_000, &[]);
    let up = talk.up();
    assert_eq!(up.limits.shares.of(Limit::ReceiveWindow), Duration::from_ms(400));
    assert_eq!((up.window.limiting, up.window.max), (Some(14_000), Some(64_000)));
}

/// Three writes of a segment 10 ms apart, each the end of what the application has, and ACKs 4 ms before the next ones.
/// Without PSH, and after an ACK that is not 2 ms old, they may be a larger write that is paced or released.
#[test]
fn what_no_ack_releases_after_the_end_of_a_write_comes_from_the_application() {
    for (pushes, acked, own) in [(true, 6, 50), (false, 6, 0), (true, 10, 20)] {
        let mut talk = Talk::open();
        talk.ack(150, 0, &[]);
        for number in 0..3 {
            let at = 200 + 10 * u64::from(number);
            if pushes { talk.pushed_data(at, number) } else { talk.data(at, number) }
        }
        for number in 3..6 {
            let from = 220 + 10 * u64::from(number - 3);
            talk.ack(from + acked, number - 2, &[]);
            if pushes { talk.pushed_data(from + 10, number) } else { talk.data(from + 10, number) }
        }
        let shares = talk.up().limits.shares;
        // 100 ms before the first data are the application's as well.
        let expected = Duration::from_ms(100 + own);
        assert_eq!(shares.of(Limit::Application), expected, "{pushes} {acked}");
        assert_eq!(shares.of(Limit::CongestionWindow), Duration::from_ms(50 - own), "{pushes} {acked}");
    }
}

/// Linux marks the last segment of a packet of several with PSH, amid a write too.
#[test]
fn a_push_after_data_without_one_is_no_end_of_a_write() {
    let mut talk = Talk::open();
    talk.ack(150, 0, &[]);
    for number in 0..6 {
        let at = 200 + 10 * u64::from(number);
        if number % 2 == 1 { talk.pushed_data(at, number) } else { talk.data(at, number) }
    }
    let shares = talk.up().limits.shares;
    assert_eq!(shares.of(Limit::CongestionWindow), Duration::from_ms(50));
}

/// A write of one segment at a time: a window has two after the first ACK.
#[test]
fn a_segment_alone_is_less_than_any_window() {
    let mut talk = Talk::open();
    talk.ack(150, 0, &[]);
    for number in 0..10 {
        talk.pushed_data(200 + 100 * u64::from(number), number);
        talk.ack(300 + 100 * u64::from(number), number + 1, &[]);
    }
    let shares = talk.up().limits.shares;
    assert_eq!(shares.of(Limit::CongestionWindow), Duration::from_ms(100), "the first may be that of a window of one");
    assert_eq!(shares.of(Limit::Application), Duration::from_ms(1_000));
}

#[test]
fn a_closed_window_is_counted_and_its_probes_are_no_repeats() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    let closed =
        Meta { seq: SeqNumber::new(8), ack: SeqNumber::new(ISN).add(1 + MSS), flags: TcpFlags::ACK, ..Meta::default() };
    talk.packet(300, false, closed, Options::NONE, 0);
    for ms in [600, 1_200] {
        let probe = Meta {
            seq: SeqNumber::new(ISN).add(1 + MSS),
            ack: SeqNumber::new(8),
            flags: TcpFlags::ACK,
            ..Meta::default()
        };
        talk.packet(ms, true, probe, Options::NONE, 1);
        talk.packet(ms + 100, false, closed, Options::NONE, 0);
    }
    talk.ack(2_300, 1, &[]);
    talk.data(2_300, 1);
    talk.ack(2_400, 2, &[]);
    let up = talk.up();
    assert_eq!((up.repeats.probes, up.repeats.packets(), up.window.closings), (2, 0, 1));
    assert_eq!((up.window.closed, up.volume.bytes_new), (Duration::from_s(2), 2_000));
    assert!(up.limits.shares.of(Limit::ReceiveWindow) >= Duration::from_s(1));
}

/// RFC 7323, section 2.2: windows are scaled if both SYNs offer it, and a SYN-ACK offers it only in answer to an offer.
/// The raw windows are 16 000 of the server and 1000 of the client, the shift 2. Options that the capture cut after the
/// MSS tell nothing.
#[test]
fn a_scale_that_was_cut_from_a_syn_is_unknown() {
    let short = Options::syn(SynOptions { mss: Some(1460), ..SynOptions::default() });
    let cut = short.with_cut();
    let (none, unscaled) = ((None, None), (Some(16_000), Some(1_000)));
    for (options, expected) in [
        ([usual(), usual()], (Some(64_000), Some(4_000))),
        ([cut, usual()], (Some(64_000), None)),
        ([usual(), cut], none),
        ([cut, cut], none),
        ([short, cut], unscaled),
        ([cut, short], unscaled),
        // The cut was after the scale.
        ([usual().with_cut(), usual().with_cut()], (Some(64_000), Some(4_000))),
    ] {
        let mut talk = Talk::opened_with(100, 100, options);
        talk.data(200, 0);
        talk.ack(300, 1, &[]);
        for number in 1..21 {
            talk.data(300, number);
        }
        talk.ack(400, 21, &[]);
        let Connection { up, down, handshake, .. } = talk.end();
        assert_eq!((up.window.max, down.window.max), expected, "{options:?}");
        assert_eq!(handshake.cut, options.map(|options| options.is_cut()));
        // The 1000 bytes of the SYN-ACK, which are not scaled, are full until 300 ms. 20 kB exceed a window of 16 kB,
        // and of an unknown one nothing is said.
        let full = if expected == unscaled { 200 } else { 100 };
        assert_eq!(up.limits.shares.of(Limit::ReceiveWindow), Duration::from_ms(full), "{options:?}");
    }
}

/// The window is closed from 300 to 2300 ms.
#[test]
fn a_pause_waits_for_what_held_the_sender_the_longest() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack_with_window(300, 1, 0, &[]);
    talk.ack(2_300, 1, &[]);
    talk.data(2_350, 1);
    talk.ack(2_450, 2, &[]);
    talk.data(4_450, 2);
    talk.data(6_450, 2);
    talk.ack(6_550, 3, &[]);
    let pauses: Vec<_> = talk.up().events.pauses.iter().map(|pause| (pause.span.as_ms(), pause.limit)).collect();
    assert_eq!(pauses, [(2_150, Limit::ReceiveWindow), (2_100, Limit::Application), (2_000, Limit::Timer)]);
}

/// The data take 100 ms, and the application closes 3 s later.
#[test]
fn goodput_ends_with_the_last_payload_and_the_pause_before_a_fin_is_listed() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack(300, 1, &[]);
    let fin = Meta {
        seq: SeqNumber::new(ISN).add(1 + MSS),
        ack: SeqNumber::new(8),
        flags: TcpFlags::ACK.with(TcpFlags::FIN),
        ..Meta::default()
    };
    talk.packet(3_200, true, fin, Options::NONE, 0);
    let ack = Meta { seq: SeqNumber::new(8), ack: fin.seq.add(1), flags: TcpFlags::ACK, ..Meta::default() };
    talk.packet(3_300, false, ack, Options::NONE, 0);
    let up = talk.up();
    assert_eq!(up.active, Duration::from_ms(300));
    assert!((up.goodput_bps - 8_000.0 / 0.3).abs() < 1e-6);
    let pauses: Vec<_> = up.events.pauses.iter().map(|pause| (pause.span.as_ms(), pause.limit)).collect();
    assert_eq!(pauses, [(3_000, Limit::Application)]);
}

/// 3 segments are captured. With ACKs, the 2 acknowledged ones are the goodput.
#[test]
fn goodput_is_of_acknowledged_bytes_and_of_captured_ones_without_acks() {
    for (acks, expected) in [(true, 2_000), (false, 3_000)] {
        let mut talk = Talk::amid();
        for number in 0..3 {
            talk.data(100 * u64::from(number), number);
        }
        if acks {
            talk.ack(300, 2, &[]);
        }
        let up = talk.up();
        assert_eq!((up.volume.bytes_of_goodput, up.volume.bytes_new), (expected, 3_000));
        let seconds = if acks { 0.3 } else { 0.2 };
        assert!((up.goodput_bps - expected as f64 * 8.0 / seconds).abs() < 1e-6);
    }
}

/// The SYN is lost twice. Its timeouts are the client's, and the server's direction waits for the handshake.
#[test]
fn the_wait_for_a_syn_is_the_handshakes_in_both_directions() {
    let mut talk = Talk::amid();
    for ms in [0, 1_000, 3_000] {
        let syn = Meta { seq: SeqNumber::new(ISN), flags: TcpFlags::SYN, ..Meta::default() };
        talk.packet(ms, true, syn, usual(), 0);
    }
    let flags = TcpFlags::SYN.with(TcpFlags::ACK);
    let answer =
        Meta { seq: SeqNumber::new(7), ack: SeqNumber::new(ISN).add(1), flags, window: 1000, ..Meta::default() };
    talk.packet(3_100, false, answer, usual(), 0);
    talk.ack_of_client(3_100);
    let data = Meta { seq: SeqNumber::new(8), flags: TcpFlags::ACK, ..answer };
    talk.packet(3_200, false, data, Options::NONE, 1_000);
    let ack = Meta { seq: SeqNumber::new(ISN).add(1), ack: SeqNumber::new(1_008), flags: TcpFlags::ACK, ..data };
    talk.packet(3_200, true, ack, Options::NONE, 0);
    let Connection { up, down, .. } = talk.end();
    assert_eq!((up.repeats.timeouts, up.limits.shares.of(Limit::Timer)), (2, Duration::from_s(3)));
    assert_eq!(
        (down.active, down.limits.shares.of(Limit::Handshake)),
        (Duration::from_ms(3_200), Duration::from_ms(3_100))
    );
}

/// Next to the client, without timestamps: the handshake takes a second behind a queue, and later answers 60 ms. The
/// server sends at once, or 500 ms after the request that it acknowledges at once.
#[test]
fn a_slow_handshake_is_no_measure_of_later_answers() {
    for (requests, first, application) in [(false, 1_060, 0), (true, 1_560, 500)] {
        let mut talk = Talk::opened(1_000, 1_000);
        let request = if requests { 100 } else { 0 };
        let client = Meta { seq: SeqNumber::new(ISN).add(1), flags: TcpFlags::ACK, window: 16_000, ..Meta::default() };
        let ack = client.seq.add(u32::from(request));
        let server = Meta { seq: SeqNumber::new(8), ack, window: 1_000, ..client };
        if requests {
            talk.packet(1_000, true, Meta { ack: SeqNumber::new(8), ..client }, Options::NONE, request);
            talk.packet(1_060, false, server, Options::NONE, 0);
        }
        let client = Meta { seq: ack, ..client };
        for (ms, number) in [(first, 0), (first + 60, 1), (first + 120, 2)] {
            let seq = SeqNumber::new(8 + 1_000 * number);
            talk.packet(ms, false, Meta { seq, ..server }, Options::NONE, 1_000);
            talk.packet(ms, true, Meta { ack: seq.add(1_000), ..client }, Options::NONE, 0);
        }
        let limits = talk.end().down.limits;
        let spans = [Limit::Handshake, Limit::Application].map(|limit| limits.shares.of(limit).as_ms());
        assert_eq!((limits.basis, spans), (Some(Basis::RoundTrip), [60, application]), "{limits:?}");
        // Two spans between the segments, and one to the answer of the last.
        assert_eq!(limits.shares.total().as_ms(), 60 + application + 3 * 60, "{limits:?}");
    }
}

/// Within one host, with timestamps: the receiver closes its window at 300 ms for two seconds.
#[test]
fn a_window_that_was_closed_limits_a_sender_at_an_unknown_position() {
    let mut talk = Talk::opened(0, 0);
    for (ms, number) in [(100, 0), (2_300, 1), (2_400, 2)] {
        talk.stamped_data(ms, number, (ms as u32, if ms == 100 { 0 } else { 2_300 }));
        if ms == 100 {
            talk.options = Options::NONE.with_timestamps(100, 1);
            talk.ack_with_window(ms, number + 1, 0, &[]);
            talk.options = Options::NONE.with_timestamps(2_300, 1);
            talk.ack_with_window(2_300, number + 1, 16_000, &[]);
        } else {
            talk.stamped_ack(ms, number + 1, &[]);
        }
    }
    let limits = talk.up().limits;
    let spans = [Limit::ReceiveWindow, Limit::Application].map(|limit| limits.shares.of(limit).as_ms());
    assert_eq!((limits.basis, spans), (Some(Basis::Timestamps), [2_200, 100]), "{limits:?}");
}

/// Next to the client, without timestamps: the server waits 100 ms for the answer to its SYN, which show as the time
/// from the SYN to the first data. The time from the SYN of the client to that of the server is the same wait.
#[test]
fn the_handshake_of_a_distant_server_counts_once() {
    let mut talk = Talk::opened(100, 100);
    let server =
        Meta { seq: SeqNumber::new(8), ack: SeqNumber::new(ISN).add(1), flags: TcpFlags::ACK, ..Meta::default() };
    talk.packet(200, false, server, Options::NONE, 1000);
    let client = Meta { seq: SeqNumber::new(ISN).add(1), ack: SeqNumber::new(1008), ..server };
    talk.packet(200, true, client, Options::NONE, 0);
    let limits = talk.end().down.limits;
    assert_eq!((limits.basis, limits.shares.of(Limit::Handshake).as_ms()), (Some(Basis::RoundTrip), 100));
}
