//! Hand-made conversations, packet by packet: the client 10.0.0.1 sends to a server, and the
//! capture is at the client.

use lastmile_packet::{
    FlowAddresses, FlowId, FlowKey, Meta, Options, Parsed, SackBlock, SeqNumber, SynOptions, TcpFlags,
};
use lastmile_units::{Duration, Instant};

use crate::{Analysis, Connection, Direction, Limit};

const MSS: u32 = 1000;

/// The initial sequence number, chosen so that the 5000th byte wraps.
const ISN: u32 = u32::MAX - 5_000;

struct Talk {
    analysis: Analysis,
    options: Options,
    id: u16,
}

impl Talk {
    /// The handshake: 0 to 100 ms.
    fn open() -> Self {
        Self::opened(100, 100)
    }

    /// The handshake next to the receiver: the client answers after 150 ms.
    fn open_at_receiver() -> Self {
        Self::opened(0, 150)
    }

    /// A handshake with the SYN-ACK and the client's ACK at these times, in ms.
    fn opened(answered: u64, acknowledged: u64) -> Self {
        Self::opened_with(answered, acknowledged, [usual(); 2])
    }

    /// The same with these options of the SYN and of the SYN-ACK.
    fn opened_with(answered: u64, acknowledged: u64, [offer, answer_options]: [Options; 2]) -> Self {
        let mut talk = Self::amid();
        talk.packet(0, true, Meta { seq: SeqNumber::new(ISN), flags: TcpFlags::SYN, ..Meta::default() }, offer, 0);
        let answer = Meta {
            seq: SeqNumber::new(7),
            ack: SeqNumber::new(ISN).add(1),
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: 1000,
            ..Meta::default()
        };
        talk.packet(answered, false, answer, answer_options, 0);
        talk.ack_of_client(acknowledged);
        talk
    }

    /// A capture that begins amid the connection.
    fn amid() -> Self {
        Self { analysis: Analysis::new(), options: Options::NONE, id: 1 }
    }

    /// A segment sent at `sent` that echoes `echo`.
    fn stamped_data(&mut self, ms: u64, number: u32, (sent, echo): (u32, u32)) {
        self.options = Options::NONE.with_timestamps(sent, echo);
        self.data(ms, number);
    }

    /// An ACK with the capture's time as its timestamp.
    fn stamped_ack(&mut self, ms: u64, number: u32, blocks: &[(u32, u32)]) {
        self.options = Options::NONE.with_timestamps(ms as u32, 1);
        self.ack(ms, number, blocks);
    }

    fn packet(&mut self, ms: u64, up: bool, meta: Meta, options: Options, payload: u16) {
        let forward = FlowAddresses::of_simulated(FlowId::new(0));
        let addresses = if up { forward } else { forward.reversed() };
        let header_len = 40 + options.header_bytes();
        let mut meta = Meta { header_len, ip_len: u16::from(header_len) + payload, ip_id: self.id, ..meta };
        meta.set_options(options);
        self.id += 1;
        let key = FlowKey { addresses, protocol: 6 };
        let at = Instant::ZERO.saturating_add(Duration::from_ms(ms));
        self.analysis.packet(at, &Parsed { meta, key, transport_offset: 20 });
    }

    fn ack_of_client(&mut self, ms: u64) {
        let meta =
            Meta { seq: SeqNumber::new(ISN).add(1), ack: SeqNumber::new(8), flags: TcpFlags::ACK, ..Meta::default() };
        self.packet(ms, true, meta, Options::NONE, 0);
    }

    /// Sends the `number`th full segment, counted from 0.
    fn data(&mut self, ms: u64, number: u32) {
        self.flagged_data(ms, number, TcpFlags::ACK);
    }

    /// The same at the end of a write.
    fn pushed_data(&mut self, ms: u64, number: u32) {
        self.flagged_data(ms, number, TcpFlags::ACK.with(TcpFlags::PSH));
    }

    fn flagged_data(&mut self, ms: u64, number: u32, flags: TcpFlags) {
        let meta = Meta {
            seq: SeqNumber::new(ISN).add(1 + number * MSS),
            ack: SeqNumber::new(8),
            flags,
            window: 1000,
            ..Meta::default()
        };
        self.packet(ms, true, meta, self.options, MSS as u16);
    }

    /// Acknowledges all segments before the `number`th, with SACK blocks `left..right` of segments
    /// above.
    fn ack(&mut self, ms: u64, number: u32, blocks: &[(u32, u32)]) {
        self.ack_with_window(ms, number, 16_000, blocks);
    }

    /// The same with this window in units of 4.
    fn ack_with_window(&mut self, ms: u64, number: u32, window: u16, blocks: &[(u32, u32)]) {
        let at = |number: u32| SeqNumber::new(ISN).add(1 + number * MSS);
        let blocks: Vec<SackBlock> =
            blocks.iter().map(|&(left, right)| SackBlock { left: at(left), right: at(right) }).collect();
        let meta = Meta { seq: SeqNumber::new(8), ack: at(number), flags: TcpFlags::ACK, window, ..Meta::default() };
        let options = self.options.with_sack(&blocks);
        self.packet(ms, false, meta, options, 0);
    }

    fn end(self) -> Connection {
        let mut connections = self.analysis.finish();
        assert_eq!(connections.len(), 1);
        connections.remove(0)
    }

    fn up(self) -> Direction {
        self.end().up
    }
}

/// The usual options of a SYN.
fn usual() -> Options {
    Options::syn(SynOptions { mss: Some(1460), window_scale: Some(2), sack_permitted: true })
}

#[test]
fn numbers_wrap_and_every_byte_is_new_once() {
    let mut talk = Talk::open();
    for number in 0..10 {
        talk.data(200 + u64::from(number), number);
    }
    talk.ack(300, 10, &[]);
    let connection = talk.end();
    assert_eq!(connection.handshake.took, Some(Duration::from_ms(100)));
    assert_eq!(connection.handshake.syn.unwrap().0.mss, Some(1460));
    let up = connection.up;
    assert_eq!((up.volume.bytes_new, up.volume.bytes_repeated, up.volume.bytes_acknowledged), (10_000, 0, 10_000));
    assert_eq!((up.initial_window, up.max_in_flight, up.repeats.packets()), (Some(10_000), 10_000, 0));
    // The SYN took 100 ms, the last segment 91.
    assert_eq!((up.delays.round_trips.count, up.delays.round_trips.least), (2, Some(Duration::from_ms(91))));
    // 16 000 in units of 4.
    assert_eq!(up.window.max, Some(64_000));
    // 80 000 bits from 0 to 300 ms.
    assert!((up.goodput_bps - 80_000.0 / 0.3).abs() < 1e-6);
}

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

#[test]
fn what_the_network_duplicates_or_reorders_is_no_repeat() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.id -= 1;
    talk.data(200, 0);
    talk.data(201, 2);
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

/// Zhang, Shenker and Clark 1991: ACKs that queued behind one another arrive at shorter distances
/// than their data were sent.
#[test]
fn acks_closer_than_their_data_are_compressed() {
    let mut talk = Talk::open();
    for number in 0..5 {
        talk.data(200 + 10 * u64::from(number), number);
    }
    for number in 1..6 {
        talk.ack(400 + u64::from(number), number, &[]);
    }
    let up = talk.up();
    assert_eq!((up.acks.spaced, up.acks.compressed), (4, 4));
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

/// RFC 7323, section 5: timestamps order the transmissions. Segments 1 and 2 are missing, so that the one above the
/// filled hole has none.
#[test]
fn a_segment_that_fills_a_part_of_a_hole_is_ordered_by_the_timestamp_above_it() {
    for (sent, expected) in [(260, (1, 0)), (120, (0, 1))] {
        let mut talk = Talk::open_at_receiver();
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
    // Data from before the capture measure no round trip, only the last segment does.
    assert_eq!((up.delays.round_trips.count, up.delays.round_trips.least), (1, Some(Duration::from_ms(48))));
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

/// Next to the receiver: segment 1 arrives behind 2 to 4, and its retransmission after the SACK of these.
#[test]
fn a_retransmission_of_what_has_arrived_after_evidence_of_a_loss_is_fast() {
    let mut talk = Talk::open_at_receiver();
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

/// Before segmentation by a device: packets of 22, of two and of one segment of 1460 bytes.
#[test]
fn segments_of_a_packet_before_segmentation_count_each() {
    let mut talk = Talk::open();
    let mut offset = 1;
    for segments in [22, 2, 1] {
        let meta = Meta { seq: SeqNumber::new(ISN).add(offset), flags: TcpFlags::ACK, ..Meta::default() };
        talk.packet(200, true, meta, Options::NONE, 1_460 * segments);
        offset += 1_460 * u32::from(segments);
    }
    let volume = talk.up().volume;
    assert_eq!((volume.data_packets, volume.segments, volume.packets_of_several), (3, 25, 2));
}

/// Segments 0 to 7, of which 1 and 5 are lost. Their repair passes over what was SACKed.
fn a_repair_by_sack(talk: &mut Talk) {
    for number in 0..8 {
        talk.data(200, number);
    }
    for right in 3..6 {
        talk.ack(300, 1, &[(2, right)]);
    }
    talk.ack(301, 1, &[(6, 8), (2, 5)]);
    talk.data(302, 1);
    talk.data(302, 5);
    talk.ack(402, 8, &[]);
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
        talk.data(1_101, 17);
        talk.ack(1_398, 9, &[(10, 18)]);
        talk.data(1_402, 9);
        talk.ack(1_502, 18, &[]);
        let repeats = talk.up().repeats;
        assert_eq!([repeats.fast, repeats.in_recovery, repeats.timeouts], expected, "{again}");
    }
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
