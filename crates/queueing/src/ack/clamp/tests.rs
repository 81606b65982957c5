use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{Meta, Options, SynOptions};
use lastmile_units::PacketCount;

use super::*;
use crate::{DropReason, Fifo, Overflow};

const NOW: Instant = Instant::ZERO;

fn clamp_to(target: Target) -> WindowClamp<Fifo<Meta>> {
    let environment = Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead"));
    let config = Config { target, mss: ByteCount::new(1460), exempt: Match::Flow(FlowId::new(7)) };
    let queue = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
    WindowClamp::new(&config, &environment, queue).expect("segments of 1460 bytes")
}

fn to_bytes(window: u64) -> WindowClamp<Fifo<Meta>> {
    clamp_to(Target::Window(ByteCount::new(window)))
}

/// The window behind the clamp.
fn pass(clamp: &mut WindowClamp<Fifo<Meta>>, now: Instant, packet: Meta) -> u16 {
    let mut none = |_, packet, reason: DropReason| panic!("{packet:?} dropped: {reason:?}");
    clamp.enqueue(now, packet, &mut none);
    let left = clamp.dequeue(now, &mut none).expect("it goes on");
    assert_eq!(left, Meta { window: left.window, ..packet }, "nothing but the window changes");
    assert!(left.window <= packet.window, "and that is only lowered");
    left.window
}

fn segment(flow: u32, number: u32, window: u16) -> Meta {
    let ack = SeqNumber::new(u32::MAX - 5000).add(number);
    let flow = FlowId::new(flow);
    Meta { flow, ack, window, flags: TcpFlags::ACK, header_len: 40, ip_len: 40, ..Meta::default() }
}

fn ack(number: u32, window: u16) -> Meta {
    segment(1, number, window)
}

/// The SYN-ACK of a flow, its window `window`, its shift agreed.
fn syn_ack(flow: u32, window: u16, shift: Option<u8>) -> Meta {
    let mut syn = segment(flow, 0, window);
    syn.flags = TcpFlags::ACK.with(TcpFlags::SYN);
    syn.set_options(Options::syn(SynOptions { window_scale: shift, ..SynOptions::default() }));
    syn
}

fn count(clamp: &WindowClamp<Fifo<Meta>>, name: &str) -> u64 {
    let mut value = None;
    clamp.counters(&mut |counter| {
        if counter.name == name {
            value = Some(counter.value);
        }
    });
    value.expect(name)
}

/// 20 000 bytes are 156.25 units of 128.
#[test]
fn a_window_is_lowered_to_the_target_rounded_up_to_the_unit_of_the_flow() {
    let mut clamp = to_bytes(20_000);
    assert_eq!(pass(&mut clamp, NOW, syn_ack(1, 65_535, Some(7))), 20_000);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 512)), 157);
    assert_eq!(pass(&mut clamp, NOW, ack(1460, 100)), 100);
    assert_eq!(pass(&mut clamp, NOW, ack(2920, 0)), 0);
    let data = Meta { ip_len: 1500, ..ack(4380, 9000) };
    assert_eq!(pass(&mut clamp, NOW, data), 157);
    assert_eq!((count(&clamp, "seen"), count(&clamp, "clamped")), (5, 3));
}

#[test]
fn without_the_option_the_unit_is_a_byte() {
    let mut clamp = to_bytes(20_000);
    pass(&mut clamp, NOW, syn_ack(1, 65_535, None));
    assert_eq!(pass(&mut clamp, NOW, ack(0, 65_535)), 20_000);
    for shift in [None, Some(0)] {
        let mut clamp = to_bytes(20_000);
        let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 65_535, shift) };
        assert_eq!(pass(&mut clamp, NOW, syn), 20_000);
        assert_eq!(pass(&mut clamp, NOW, ack(0, 65_535)), 20_000);
    }
}

/// A client's SYN: its offer may be refused where the answer is not seen. A refusal would allow 30
/// 000 bytes from 0 on, so 31 461 and more prove that it was agreed.
#[test]
fn an_offered_shift_counts_once_it_is_proved() {
    let mut clamp = to_bytes(20_000);
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 10_000, Some(7)) };
    pass(&mut clamp, NOW, syn);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 30_000)), 30_000);
    assert_eq!(pass(&mut clamp, NOW, ack(31_460, 1000)), 1000);
    assert_eq!(count(&clamp, "passed_unconfirmed_scale"), 2);
    // The first window allowed 128 times as much, and is not taken back: 30 000 * 128 from 0 on.
    assert_eq!(pass(&mut clamp, NOW, ack(34_000, 30_000)), 29_735);
    assert_eq!(pass(&mut clamp, NOW, ack(3_840_000, 30_000)), 157);
    assert_eq!(count(&clamp, "kept_open"), 1);
}

/// The SYN of a client, and its answer seen by a witness in the other direction: flow 0, and its
/// reverse 1.
fn answered(clamp: &mut WindowClamp<Fifo<Meta>>, shift: Option<u8>) -> Meta {
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(0, 65_535, Some(7)) };
    pass(clamp, NOW, syn);
    let answer = Meta { ack: syn.seq.add(1), ..syn_ack(1, 65_535, shift) };
    let queue = Fifo::in_packets(PacketCount::new(100), Overflow::Tail);
    let mut witness = crate::ack::Witness::new(&clamp.environment, queue);
    let mut none = |_, packet, reason: DropReason| panic!("{packet:?} dropped: {reason:?}");
    witness.enqueue(NOW, answer, &mut none);
    segment(0, 0, 512)
}

#[test]
fn the_answer_of_the_other_direction_decides_on_the_offer() {
    let mut clamp = to_bytes(20_000);
    let first = answered(&mut clamp, Some(2));
    // The shift is the client's own, not that of the answer.
    assert_eq!(pass(&mut clamp, NOW, first), 157);
    assert_eq!((count(&clamp, "answered"), count(&clamp, "passed_unconfirmed_scale")), (1, 0));

    let mut clamp = to_bytes(20_000);
    let first = answered(&mut clamp, None);
    assert_eq!(pass(&mut clamp, NOW, first), 512);
    assert_eq!(pass(&mut clamp, NOW, Meta { window: 65_535, ack: first.ack.add(1460), ..first }), 20_000);
    assert_eq!(count(&clamp, "answered"), 1);
}

/// A segment after the SYN, but before its answer, belongs to an earlier connection, or takes
/// another path than the answer.
#[test]
fn a_late_answer_is_not_used() {
    let mut clamp = to_bytes(20_000);
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(0, 65_535, Some(7)) };
    pass(&mut clamp, NOW, syn);
    assert_eq!(pass(&mut clamp, NOW, segment(0, 0, 512)), 512);
    assert_eq!(count(&clamp, "answered"), 0);
    assert_eq!(count(&clamp, "passed_unconfirmed_scale"), 1);
}

#[test]
fn a_refused_shift_is_never_applied() {
    let mut clamp = to_bytes(20_000);
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 65_535, Some(7)) };
    pass(&mut clamp, NOW, syn);
    for number in 0..200 {
        assert_eq!(pass(&mut clamp, NOW, ack(number * 1460, 65_535)), 65_535);
    }
}

/// RFC 9293, section 3.8.6: the right edge stays at 60 000 (1 window of 60 000 from 0) until it has
/// been reached.
#[test]
fn an_advertised_window_is_not_taken_back() {
    let mut clamp = to_bytes(60_000);
    pass(&mut clamp, NOW, syn_ack(1, 65_535, None));
    assert_eq!(pass(&mut clamp, NOW, ack(0, 60_000)), 60_000);
    clamp.target = Target::Window(ByteCount::new(20_000));
    assert_eq!(pass(&mut clamp, NOW, ack(10_000, 60_000)), 50_000);
    assert_eq!(pass(&mut clamp, NOW, ack(39_000, 60_000)), 21_000);
    assert_eq!(pass(&mut clamp, NOW, ack(41_000, 60_000)), 20_000);
    // A reordered ACK: the edge is at 61 000.
    assert_eq!(pass(&mut clamp, NOW, ack(40_000, 60_000)), 21_000);
    // A receiver that takes its window back is not corrected.
    assert_eq!(pass(&mut clamp, NOW, ack(42_000, 5000)), 5000);
    assert_eq!(count(&clamp, "kept_open"), 3);
}

#[test]
fn a_window_is_never_lowered_below_a_segment() {
    let mut clamp = to_bytes(100);
    assert_eq!(pass(&mut clamp, NOW, syn_ack(1, 65_535, None)), 1460);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 65_535)), 1460);
    assert_eq!(pass(&mut clamp, NOW, ack(1460, 536)), 536);
}

/// RFC 5681, section 2: three ACKs of equal number and window cause a fast retransmit.
#[test]
fn a_duplicate_stays_one_after_a_change_of_target() {
    let mut clamp = to_bytes(20_000);
    pass(&mut clamp, NOW, syn_ack(1, 65_535, None));
    let windows = [30_000, 10_000, 50_000].map(|target| {
        clamp.target = Target::Window(ByteCount::new(target));
        pass(&mut clamp, NOW, ack(5000, 60_000))
    });
    assert_eq!(windows, [30_000; 3]);
    assert_eq!(count(&clamp, "clamped"), 4, "the SYN too");
}

/// The application reads while no data arrives: without this rule every update would look like a
/// duplicate.
#[test]
fn a_window_update_does_not_become_a_duplicate() {
    let mut clamp = to_bytes(20_000);
    pass(&mut clamp, NOW, syn_ack(1, 65_535, None));
    let windows = [30_000, 40_000, 40_000, 50_000].map(|window| pass(&mut clamp, NOW, ack(5000, window)));
    assert_eq!(windows, [20_000, 20_001, 20_001, 20_002]);
    assert_eq!(pass(&mut clamp, NOW, ack(6000, 50_000)), 20_000);
    assert_eq!(count(&clamp, "kept_apart"), 2);
}

#[test]
fn windows_of_unknown_meaning_pass_and_are_counted() {
    let mut clamp = to_bytes(2000);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 60_000)), 60_000);
    assert_eq!(pass(&mut clamp, NOW, syn_ack(7, 60_000, None)), 60_000);
    assert_eq!(pass(&mut clamp, NOW, segment(7, 0, 60_000)), 60_000);
    pass(&mut clamp, NOW, syn_ack(1, 60_000, None));
    let mut signed = ack(0, 60_000);
    signed.set_options(Options::NONE.with_unknown());
    assert_eq!(pass(&mut clamp, NOW, signed), 60_000);
    // The sender has learned that window.
    assert_eq!(pass(&mut clamp, NOW, ack(1000, 60_000)), 59_000);
    assert_eq!(pass(&mut clamp, NOW, Meta { flags: TcpFlags::ACK.with(TcpFlags::RST), ..ack(0, 60_000) }), 60_000);
    assert_eq!(pass(&mut clamp, NOW, Meta { flags: TcpFlags::FIN, ..ack(90_000, 60_000) }), 60_000, "says nothing");
    assert_eq!(pass(&mut clamp, NOW, Meta { protocol: Protocol::Udp, ..ack(0, 60_000) }), 60_000);
    for (name, value) in [
        ("passed_unknown_scale", 1),
        ("passed_exempt", 2),
        ("passed_unknown_options", 1),
        ("passed_flags", 2),
        ("passed_not_tcp", 1),
    ] {
        assert_eq!(count(&clamp, name), value, "{name}");
    }
}

#[test]
fn a_silent_flow_is_forgotten_since_its_number_may_be_reused() {
    let mut clamp = to_bytes(2000);
    pass(&mut clamp, NOW, syn_ack(1, 60_000, Some(2)));
    let later = NOW + FORGOTTEN_AFTER;
    assert_eq!(pass(&mut clamp, later, ack(0, 60_000)), 60_000);
    assert_eq!(pass(&mut clamp, later, ack(1460, 60_000)), 60_000);
    assert_eq!(count(&clamp, "passed_unknown_scale"), 2);
}

/// 8 Mbit/s in 40 ms: 40 000 bytes, shared by the flows that have acknowledged new data within a
/// second or two. Whole segments of 1460 that hold 40 000 bytes, or half of them, plus one: 28 + 1
/// and 14 + 1.
#[test]
fn active_flows_share_the_bytes_of_a_round_trip() {
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let mut clamp =
        clamp_to(Target::Shared { rate: BitRate::from_mbit_per_s(8), rtt: Duration::from_ms(40), growth: None });
    for flow in [1, 2] {
        pass(&mut clamp, NOW, syn_ack(flow, 1000, None));
    }
    assert_eq!(pass(&mut clamp, at(0), segment(1, 1000, 60_000)), 42_340);
    assert_eq!(pass(&mut clamp, at(0), segment(2, 1000, 60_000)), 21_900);
    // Not taken back at once.
    assert_eq!(pass(&mut clamp, at(10), segment(1, 11_000, 60_000)), 32_340);
    assert_eq!(pass(&mut clamp, at(20), segment(1, 30_000, 60_000)), 21_900);
    // Flow 2 repeats its ACK: not active.
    assert_eq!(pass(&mut clamp, at(900), segment(2, 1000, 60_000)), 21_900);
    assert_eq!(pass(&mut clamp, at(1010), segment(1, 50_000, 60_000)), 42_340);
}

/// 8 Mbit/s: a handshake of 20 ms and 5 ms more are 25 000 bytes, 17 full segments begun and one
/// more. A hundredth of 500 ms later these are 5 ms more, and after 1.5 s the 40 ms of the target.
/// A flow without a handshake time gets the whole target at once.
#[test]
fn windows_begin_at_the_handshake_time_and_grow_by_a_share_of_elapsed_time() {
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let growth = Growth { slack: Duration::from_ms(5), share: Ratio::from_percent(1).expect("a share") };
    let of =
        |growth| clamp_to(Target::Shared { rate: BitRate::from_mbit_per_s(8), rtt: Duration::from_ms(40), growth });
    let segments = |count: u16| (count + 1) * 1460;
    let opened = |clamp: &mut WindowClamp<Fifo<Meta>>, syns: &[u64]| {
        for ms in syns {
            let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 1000, None) };
            pass(clamp, at(*ms), syn);
        }
        pass(clamp, at(20), segment(1, 0, 60_000))
    };
    let mut clamp = of(Some(growth));
    assert_eq!(opened(&mut clamp, &[0]), segments(18));
    assert_eq!(pass(&mut clamp, at(520), segment(1, 100_000, 60_000)), segments(21));
    assert_eq!(pass(&mut clamp, at(1520), segment(1, 200_000, 60_000)), segments(28));
    assert_eq!(pass(&mut clamp, at(9000), segment(1, 300_000, 60_000)), segments(28));
    assert_eq!(opened(&mut of(None), &[0]), segments(28));
    assert_eq!(opened(&mut of(Some(growth)), &[0, 10]), segments(28), "which SYN was answered is not known");
    let mut far = of(Some(growth));
    pass(&mut far, at(0), syn_ack(1, 1000, None));
    assert_eq!(pass(&mut far, at(20), segment(1, 0, 60_000)), segments(28), "the far end opened");
}

/// A handshake of 600 ms where 40 ms are configured: 400 kbit/s are 30 000 bytes, 21 full segments
/// begun and one more; after 15 s and later a quarter more bytes, 26 segments and one more.
#[test]
fn a_path_that_is_longer_than_configured_has_a_window_of_its_own() {
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let growth = Some(Growth { slack: Duration::ZERO, share: Ratio::from_percent(1).expect("a share") });
    let rate = BitRate::from_kbit_per_s(400);
    let mut clamp = clamp_to(Target::Shared { rate, rtt: Duration::from_ms(40), growth });
    pass(&mut clamp, at(0), Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 1000, None) });
    let mut after = |ms, number| pass(&mut clamp, at(ms), segment(1, number, 60_000));
    assert_eq!(after(600, 0), 22 * 1460);
    assert_eq!(after(15_700, 100_000), 27 * 1460);
    assert_eq!(after(60_000, 200_000), 27 * 1460);
}

#[test]
fn a_segment_has_bytes() {
    let environment = Environment::new(LinkLayer::new(0, Framing::None).expect("no overhead"));
    let new = |mss| {
        let target = Target::Window(ByteCount::new(1));
        WindowClamp::new(&Config { target, mss: ByteCount::new(mss), exempt: Match::Never }, &environment, ()).is_some()
    };
    assert!(!new(0) && new(1) && new(65_535) && !new(65_536));
}

/// RFC 7323, section 2.3: a shift above 14 counts as 14. 2^20 bytes are 64 units of 2^14.
#[test]
fn a_shift_above_14_counts_as_14() {
    let mut clamp = to_bytes(1 << 20);
    assert_eq!(pass(&mut clamp, NOW, syn_ack(1, 65_535, Some(15))), 65_535);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 65_535)), 64);
    let mut clamp = to_bytes(1 << 20);
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 65_535, Some(15)) };
    pass(&mut clamp, NOW, syn);
    pass(&mut clamp, NOW, ack(0, 10));
    // More than 65 535 + 1460 acknowledged: the shift was agreed.
    assert_eq!(pass(&mut clamp, NOW, ack(70_000, 10)), 10);
    assert_eq!(pass(&mut clamp, NOW, ack(1_000_000, 65_535)), 64);
}

/// The SYN allowed 10 000 bytes from 0 on. If the shift was refused, the sender could still have
/// sent those, whatever a later window.
#[test]
fn bytes_that_earlier_windows_allowed_prove_no_shift() {
    let syn = |window| Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, window, Some(7)) };
    let mut clamp = to_bytes(20_000);
    pass(&mut clamp, NOW, syn(10_000));
    assert_eq!(pass(&mut clamp, NOW, ack(0, 100)), 100);
    assert_eq!(pass(&mut clamp, NOW, ack(9000, 60_000)), 60_000);
    // 30 000 from 0 on, of which the receiver takes back a part at 1000.
    let mut clamp = to_bytes(20_000);
    pass(&mut clamp, NOW, syn(1000));
    assert_eq!(
        [(0, 30_000), (1000, 100)].map(|(number, window)| pass(&mut clamp, NOW, ack(number, window))),
        [30_000, 100]
    );
    assert_eq!(pass(&mut clamp, NOW, ack(20_000, 60_000)), 60_000);
}

/// RFC 9293, section 3.8.6. The SYN of a client allowed 60 000 bytes from its first acknowledgement
/// on, before the target fell.
#[test]
fn the_window_of_a_clients_syn_is_not_taken_back() {
    let mut clamp = to_bytes(60_000);
    let syn = Meta { flags: TcpFlags::SYN, ack: SeqNumber::new(0), ..syn_ack(1, 65_535, None) };
    assert_eq!(pass(&mut clamp, NOW, syn), 60_000);
    clamp.target = Target::Window(ByteCount::new(20_000));
    assert_eq!(pass(&mut clamp, NOW, ack(0, 30_000)), 30_000);
    assert_eq!(pass(&mut clamp, NOW, ack(10_000, 60_000)), 50_000);
    assert_eq!(pass(&mut clamp, NOW, ack(11_000, 5000)), 5000, "the receiver's own doing");
    assert_eq!(count(&clamp, "kept_open"), 2);
}

/// The sender's state is that of 5000, though 4000 arrives after it; the edge is the higher of
/// both.
#[test]
fn an_overtaken_ack_changes_no_duplicate_and_may_raise_the_edge() {
    let mut clamp = to_bytes(30_000);
    pass(&mut clamp, NOW, syn_ack(1, 1000, None));
    assert_eq!(pass(&mut clamp, NOW, ack(5000, 60_000)), 30_000);
    assert_eq!(pass(&mut clamp, NOW, ack(4000, 60_000)), 31_000);
    clamp.target = Target::Window(ByteCount::new(50_000));
    assert_eq!(pass(&mut clamp, NOW, ack(5000, 60_000)), 30_000, "the same again");
    // 4000 and 50 000: at least 48 000 from 6000 on.
    assert_eq!(pass(&mut clamp, NOW, ack(4000, 60_000)), 50_000);
    clamp.target = Target::Window(ByteCount::new(10_000));
    assert_eq!(pass(&mut clamp, NOW, ack(6000, 60_000)), 48_000);
}

/// The signed SYN may have any scale: the earlier known one is not used.
#[test]
fn a_syn_that_cannot_be_read_makes_the_scale_unknown() {
    let mut clamp = to_bytes(2000);
    pass(&mut clamp, NOW, syn_ack(1, 60_000, None));
    let mut signed = syn_ack(1, 60_000, None);
    signed.set_options(Options::NONE.with_unknown());
    assert_eq!(pass(&mut clamp, NOW, signed), 60_000);
    assert_eq!(pass(&mut clamp, NOW, ack(90_000, 60_000)), 60_000);
    assert_eq!(count(&clamp, "passed_unknown_scale"), 1);
}

#[test]
fn an_active_flow_is_not_forgotten() {
    let mut clamp = to_bytes(2000);
    pass(&mut clamp, NOW, syn_ack(1, 60_000, None));
    for minute in (9..60).step_by(9) {
        let later = NOW + Duration::from_s(60 * minute);
        assert_eq!(pass(&mut clamp, later, ack(10_000 * minute as u32, 60_000)), 2000);
    }
}

/// 40 000 bytes for all flows. Two flows that go on keep half each, check after check; one that
/// stops has none a second later.
#[test]
fn a_share_lasts_for_as_long_as_the_flow_is_active() {
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let mut clamp =
        clamp_to(Target::Shared { rate: BitRate::from_mbit_per_s(8), rtt: Duration::from_ms(40), growth: None });
    for flow in [1, 2] {
        pass(&mut clamp, NOW, syn_ack(flow, 1000, None));
        pass(&mut clamp, NOW, segment(flow, 100_000, 60_000));
    }
    for (ms, number) in [(600, 200_000), (1200, 300_000), (1800, 400_000), (2400, 500_000)] {
        let windows = [1, 2].map(|flow| pass(&mut clamp, at(ms), segment(flow, number, 60_000)));
        assert_eq!(windows, [21_900, 21_900], "{ms} ms");
    }
    // A flow that is opened again counts once.
    pass(&mut clamp, at(2400), syn_ack(1, 1000, None));
    assert_eq!(pass(&mut clamp, at(2400), segment(1, 600_000, 60_000)), 21_900);
    let mut clamp =
        clamp_to(Target::Shared { rate: BitRate::from_mbit_per_s(8), rtt: Duration::from_ms(40), growth: None });
    for flow in [1, 2] {
        pass(&mut clamp, NOW, syn_ack(flow, 1000, None));
        pass(&mut clamp, NOW, segment(flow, 100_000, 60_000));
    }
    assert_eq!(pass(&mut clamp, at(1000), segment(1, 200_000, 60_000)), 42_340);
}

/// RFC 7323, section 2.2: 65 535 in the SYN-ACK are bytes, 65 535 in the next segment units of 128,
/// so it is no duplicate.
#[test]
fn a_window_field_equal_to_that_of_the_syn_has_its_own_unit() {
    let mut clamp = to_bytes(20_000);
    assert_eq!(pass(&mut clamp, NOW, syn_ack(1, 65_535, Some(7))), 20_000);
    assert_eq!(pass(&mut clamp, NOW, ack(0, 65_535)), 157);
    assert_eq!((pass(&mut clamp, NOW, ack(0, 65_535)), count(&clamp, "kept_apart")), (157, 0));
}
