//! Hand-made conversations, captured next to the server: the client 10.0.0.1 sends, 20 ms away each
//! way without queues. The clocks of both hosts are that of the capture.

use lastmile_packet::{
    FlowAddresses, FlowId, FlowKey, Meta, Options, Parsed, SackBlock, SeqNumber, SynOptions, TcpFlags,
};
use lastmile_units::{Duration, Instant};

use crate::{Analysis, Basis, Direction, Limit, Vantage};

const MSS: u32 = 1000;

struct Talk {
    analysis: Analysis,
    id: u16,
    /// The time of packets within their millisecond.
    within: Duration,
}

impl Talk {
    /// The handshake, from 0 to 60 ms.
    fn open() -> Self {
        let mut talk = Self { analysis: Analysis::new(), id: 1, within: Duration::ZERO };
        let options = Options::syn(SynOptions { mss: Some(1460), window_scale: Some(2), sack_permitted: true });
        let syn = Meta { flags: TcpFlags::SYN, ..Meta::default() };
        talk.packet(20, true, syn, options.with_timestamps(0, 0), 0);
        let flags = TcpFlags::SYN.with(TcpFlags::ACK);
        let answer = Meta { ack: SeqNumber::new(1), flags, window: 16_000, ..Meta::default() };
        talk.packet(20, false, answer, options.with_timestamps(20, 0), 0);
        talk.client_ack((40, 60), 0, 20);
        talk
    }

    fn packet(&mut self, ms: u32, up: bool, meta: Meta, options: Options, payload: u32) {
        let forward = FlowAddresses::of_simulated(FlowId::new(0));
        let addresses = if up { forward } else { forward.reversed() };
        let header_len = 40 + options.header_bytes();
        let mut meta = Meta { header_len, ip_len: u16::from(header_len) + payload as u16, ip_id: self.id, ..meta };
        meta.set_options(options);
        self.id += 1;
        let at = Instant::ZERO + Duration::from_ms(u64::from(ms)) + self.within;
        self.analysis.packet(at, &Parsed { meta, key: FlowKey { addresses, protocol: 6 }, transport_offset: 20 });
    }

    /// The client's ACK of `bytes` of the server, sent and captured at these times.
    fn client_ack(&mut self, (sent, ms): (u32, u32), bytes: u32, echo: u32) {
        let meta = Meta { seq: SeqNumber::new(1), ack: SeqNumber::new(1 + bytes), ..ack() };
        self.packet(ms, true, meta, Options::NONE.with_timestamps(sent, echo), 0);
    }

    /// The client's segment of this number, sent and captured at these times, with the last ACK that
    /// it had received.
    fn data(&mut self, (sent, ms): (u32, u32), number: u32, echo: u32) {
        let meta = Meta { seq: SeqNumber::new(1 + number * MSS), ack: SeqNumber::new(1), ..ack() };
        self.packet(ms, true, meta, Options::NONE.with_timestamps(sent, echo), MSS);
    }

    /// The server's ACK of all segments before this number, with SACK blocks of segments.
    fn ack(&mut self, ms: u32, number: u32, blocks: &[(u32, u32)]) {
        let at = |number: u32| SeqNumber::new(1 + number * MSS);
        let blocks: Vec<_> =
            blocks.iter().map(|(left, right)| SackBlock { left: at(*left), right: at(*right) }).collect();
        let meta = Meta { seq: SeqNumber::new(1), ack: at(number), ..ack() };
        self.packet(ms, false, meta, Options::NONE.with_timestamps(ms, 1).with_sack(&blocks), 0);
    }

    fn up(self) -> Direction {
        let mut connections = self.analysis.finish();
        assert_eq!(connections.len(), 1);
        let up = connections.remove(0).up;
        assert_eq!((up.position.vantage, up.limits.basis), (Vantage::Receiver, Some(Basis::Timestamps)));
        up
    }
}

fn ack() -> Meta {
    Meta { flags: TcpFlags::ACK, window: 16_000, ..Meta::default() }
}

/// A request of equal size every second. The ACKs of the answer, which lasts for 800 ms, echo ever
/// newer packets of the server.
#[test]
fn a_client_that_reads_its_answer_has_nothing_to_send() {
    let mut talk = Talk::open();
    let mut answered = 0;
    for number in 0..10 {
        let from = 1_000 + 1_000 * number;
        talk.data((from - 20, from), number, if number == 0 { 20 } else { from - 160 });
        for segment in 0..8 {
            let ms = from + 100 * segment;
            let meta = Meta { seq: SeqNumber::new(1 + answered), ack: SeqNumber::new(1 + (number + 1) * MSS), ..ack() };
            talk.packet(ms, false, meta, Options::NONE.with_timestamps(ms, from - 20), MSS);
            answered += MSS;
            talk.client_ack((ms + 20, ms + 40), answered, ms);
        }
    }
    let up = talk.up();
    // 40 ms of each second until the ACK is back.
    assert!((up.limits.shares.share(Limit::Application) - 0.95).abs() < 0.02, "{:?}", up.limits.shares);
    assert!(up.events.longest_stall <= Duration::from_ms(41), "{:?}", up.events.longest_stall);
}

/// A window of one segment, which waits 160 ms in a queue before the capture.
#[test]
fn a_segment_in_a_queue_is_no_idle_application() {
    let mut talk = Talk::open();
    talk.data((40, 60), 0, 20);
    talk.ack(60, 1, &[]);
    let mut echo = 60;
    for number in 1..50 {
        let arrives = echo + 200;
        talk.data((echo + 20, arrives), number, echo);
        talk.ack(arrives, number + 1, &[]);
        echo = arrives;
    }
    let up = talk.up();
    assert!(up.limits.shares.share(Limit::Application) < 0.01, "{:?}", up.limits.shares);
    assert!(up.limits.shares.share(Limit::CongestionWindow) > 0.98, "{:?}", up.limits.shares);
}

/// Four segments leave at once and are acknowledged as they arrive, before the sender has an ACK.
#[test]
fn the_initial_window_is_what_the_sender_sent_before_an_ack_reached_it() {
    let mut talk = Talk::open();
    for number in 0..4 {
        talk.data((40, 60 + number), number, 20);
        talk.ack(60 + number, number + 1, &[]);
    }
    for number in 4..12 {
        talk.data((80 + number, 100 + number), number, 63);
        talk.ack(100 + number, number + 1, &[]);
    }
    assert_eq!(talk.up().initial_window, Some(4 * u64::from(MSS)));
}

/// Segment 1 is lost, and segment 2, 500 ms later, reveals it.
#[test]
fn data_that_were_lost_before_the_capture_were_in_flight() {
    let mut talk = Talk::open();
    talk.data((40, 60), 0, 20);
    talk.ack(60, 1, &[]);
    talk.data((540, 560), 2, 60);
    talk.ack(560, 1, &[(2, 3)]);
    let up = talk.up();
    assert_eq!(up.limits.shares.of(Limit::Application), Duration::ZERO, "{:?}", up.limits.shares);
}

/// Segments 1, 5 and 9 of 13 are lost. The retransmissions arrive with three new segments between each
/// two, which cause duplicate ACKs.
#[test]
fn retransmissions_that_arrive_one_by_one_are_one_repair() {
    let mut talk = Talk::open();
    for number in (0..13).filter(|number| number % 4 != 1) {
        talk.data((40, 60 + number), number, 20);
        match number {
            0 => talk.ack(60, 1, &[]),
            2..=4 => talk.ack(60 + number, 1, &[(2, number + 1)]),
            6..=8 => talk.ack(60 + number, 1, &[(6, number + 1), (2, 5)]),
            _ => talk.ack(60 + number, 1, &[(10, number + 1), (6, 9), (2, 5)]),
        }
    }
    let mut next = 13;
    for (place, hole) in [1, 5, 9].into_iter().enumerate() {
        let at = 104 + 10 * place as u32;
        talk.data((92, at), hole, 72);
        let below = if hole == 9 { next } else { hole + 4 };
        talk.ack(at, below, &[]);
        if hole < 9 {
            for more in 0..3 {
                talk.data((92, at + 1 + more), next, 72);
                next += 1;
                talk.ack(at + 1 + more, below, &[(10, next)]);
            }
        }
    }
    let repeats = talk.up().repeats;
    assert_eq!((repeats.fast, repeats.in_recovery, repeats.timeouts, repeats.packets()), (1, 2, 0, 3));
}

/// Segment 1 is lost, and so is 7, the last before its repair. The ACK of the repair makes the sender retransmit 7,
/// before (RFC 8985) or after the reports of new data above it have arrived: then these may be of another loss.
#[test]
fn what_a_repair_retransmits_before_other_evidence_is_a_part_of_it() {
    for (reports, expected) in [(0, (1, 1)), (3, (2, 0))] {
        let mut talk = Talk::open();
        for number in (0..7).filter(|number| *number != 1) {
            talk.data((40, 60 + number), number, 20);
            let reported = [(2, number + 1)];
            talk.ack(60 + number, 1, &reported[..usize::from(number > 1)]);
        }
        talk.data((84, 104), 1, 64);
        talk.ack(104, 7, &[]);
        for more in 0..3 {
            talk.data((86 + more, 106 + more), 8 + more, 66);
            talk.ack(106 + more, 7, &[(8, 9 + more)]);
        }
        let sent = 125 + reports;
        talk.data((sent, sent + 20), 7, if reports == 0 { 104 } else { 105 + reports });
        talk.ack(sent + 20, 11, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.in_recovery), expected, "after {reports} reports");
    }
}

/// The same retransmission, 600 ms after the hole: sent at once and late by a queue, or sent late.
#[test]
fn a_timeout_is_told_by_the_clock_of_the_sender() {
    for (sent, expected) in [(86, (1, 0)), (646, (0, 1))] {
        let mut talk = Talk::open();
        for number in (0..6).filter(|number| *number != 1) {
            talk.data((40, 60 + number), number, 20);
            talk.ack(60 + number, 1, if number > 1 { &[(2, 6)][..] } else { &[] });
        }
        talk.data((sent, 666), 1, 65);
        talk.ack(666, 6, &[]);
        let repeats = talk.up().repeats;
        assert_eq!((repeats.fast, repeats.timeouts, repeats.packets()), (expected.0, expected.1, 1), "sent at {sent}");
    }
}

/// Segments 0 to 9 with the identifications from 100 on, each after the ACK of the one before.
fn ten_windows_of_one_segment() -> Talk {
    let mut talk = Talk::open();
    let mut echo = 60;
    for number in 0..10 {
        talk.id = 100 + number as u16;
        talk.data((echo, echo + 20), number, if number == 0 { 20 } else { echo - 20 });
        talk.ack(echo + 20, number + 1, &[]);
        echo += 40;
    }
    talk
}

/// Windows of one segment. The first transmission of the last is lost: its place in the numbers of the packets is free.
#[test]
fn the_timer_of_a_segment_that_was_lost_before_the_capture_is_no_idle_application() {
    // RFC 6298 in Linux: a round trip of 40 ms and 200 ms. With SACK the first retransmission is a probe, whose answer
    // takes 40 ms. Without a free number the wait is the application's.
    // The handshake takes 40 ms, and the first data follow 20 ms later.
    for (lost, expected) in [(1, [40, 20, 280]), (0, [40, 260, 0])] {
        let mut talk = ten_windows_of_one_segment();
        talk.id = 110 + lost;
        // The ACK of the segment before arrived at 440.
        talk.data((700, 720), 10, 440);
        talk.ack(720, 11, &[]);
        let up = talk.up();
        let shares = up.limits.shares;
        let limits = [Limit::Handshake, Limit::Application, Limit::Timer];
        assert_eq!(limits.map(|limit| shares.of(limit).as_ms()), expected, "{lost}");
        assert_eq!((up.repeats.tail_probes, up.repeats.packets()), (lost.into(), lost.into()));
    }
}

/// The ACK of the only segment is lost after the capture, and its timer sends it again: its sender was not idle.
#[test]
fn an_ack_that_the_sender_did_not_echo_has_not_reached_it() {
    let mut talk = Talk::open();
    talk.data((40, 60), 0, 20);
    talk.ack(60, 1, &[]);
    talk.data((600, 620), 0, 20);
    talk.ack(620, 1, &[]);
    talk.data((640, 660), 1, 620);
    talk.ack(660, 2, &[]);
    let up = talk.up();
    assert_eq!(up.limits.shares.of(Limit::Application), Duration::ZERO, "{:?}", up.limits.shares);
}

/// ACKs wait in a queue after the capture, for up to 60 ms: one of all that was sent may do so too.
#[test]
fn an_ack_in_a_queue_is_no_idle_application() {
    let mut talk = Talk::open();
    let (mut number, mut at) = (0, 40);
    let mut echo = 20;
    for delay in [10, 60, 10, 60, 10, 60, 10, 60, 10] {
        talk.data((at, at + 20), number, echo);
        talk.data((at, at + 21), number + 1, echo);
        talk.ack(at + 20, number + 1, &[]);
        // The next two leave with the first ACK, and the second is still under way.
        echo = at + 20;
        talk.ack(at + 21, number + 2, &[]);
        at += 40 + delay;
        number += 2;
    }
    // The last ACK waited for 50 ms.
    let last = echo + 1;
    talk.data((last + 70, last + 90), number, last);
    talk.ack(last + 90, number + 1, &[]);
    let up = talk.up();
    assert!(up.limits.shares.of(Limit::Application) <= Duration::from_ms(2), "{:?}", up.limits.shares);
}

/// An outage: segments 10 to 29 are lost, and the timer's first retransmission too. Its second arrives after 720 ms.
/// New data then show the hole, and no ACK reported a loss before.
#[test]
fn what_ends_a_silence_after_losses_before_the_capture_is_a_timeout() {
    let mut talk = ten_windows_of_one_segment();
    // The ACK of segment 9 arrived at 460.
    talk.id = 131;
    talk.data((1_160, 1_180), 10, 440);
    talk.ack(1_180, 11, &[]);
    talk.id = 132;
    talk.data((1_200, 1_220), 30, 1_180);
    talk.ack(1_220, 11, &[(30, 31)]);
    for (place, number) in (11..30).enumerate() {
        let at = 1_260 + place as u32;
        talk.id = 133 + place as u16;
        talk.data((at - 20, at), number, 1_220);
        talk.ack(at, if number == 29 { 31 } else { number + 1 }, if number == 29 { &[] } else { &[(30, 31)] });
    }
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.timeouts, repeats.after_timeout, repeats.fast, repeats.in_recovery), (1, 19, 0, 0));
    assert_eq!((repeats.lost_before_capture, up.volume.bytes_new), (20, 31_000));
    // Until its ACK.
    assert_eq!(up.events.longest_stall, Duration::from_ms(740));
}

/// Five segments a millisecond over a round trip of 40 ms, each acknowledged on arrival. An echo stands for five ACKs,
/// of which the sender had one to five: a window of 200 segments is full, one that grows by 4 bytes a millisecond may
/// be, and one of 207 has room.
#[test]
fn a_window_is_full_whichever_ack_of_a_timestamp_released_the_data() {
    // For 200 ms; the 16 000 bytes of the SYN-ACK's window are full for 37 ms before. The last of five packets is sure.
    for (window, growth, limit, least) in [
        (50_000, 0, Limit::ReceiveWindow, 37 + 200),
        (50_000, 1, Limit::Window, 160),
        (51_750, 0, Limit::CongestionWindow, 200),
    ] {
        let mut talk = Talk::open();
        for ms in 0..240 {
            for place in 0..5 {
                talk.within = Duration::from_us(200 * u64::from(place));
                let number = 5 * ms + place;
                talk.data((40 + ms, 60 + ms), number, if ms < 40 { 20 } else { 20 + ms });
                let (ack_number, window) = (SeqNumber::new(1 + (number + 1) * MSS), window + growth * ms as u16);
                let meta = Meta { seq: SeqNumber::new(1), ack: ack_number, window, ..ack() };
                talk.packet(60 + ms, false, meta, Options::NONE.with_timestamps(60 + ms, 1), 0);
            }
        }
        let shares = talk.up().limits.shares;
        assert!(shares.of(limit) >= Duration::from_ms(least), "{window} {growth}: {shares:?}");
    }
}
