//! Whole transfers over paths that lose, reorder and duplicate.

use std::cell::RefCell;
use std::rc::Rc;

use lastmile_quic::{AckFrequency, Config, CongestionControl, Form, Packet};
use lastmile_units::{ByteCount, Duration, Instant};
use proptest::prelude::*;

use crate::pair::{CLIENT, Fate, Pair, SERVER};

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_s(count)
}

fn controls() -> impl Strategy<Value = CongestionControl> {
    prop_oneof![
        Just(CongestionControl::NewReno),
        Just(CongestionControl::Cubic),
        Just(CongestionControl::Bbr),
        Just(CongestionControl::Bbr3),
    ]
}

fn requests() -> impl Strategy<Value = Option<AckFrequency>> {
    let request = (1_u32..30, 0_u8..4, 1_u64..100).prop_map(|(every, reordering, delay)| AckFrequency {
        every,
        max_delay: Some(Duration::from_ms(delay)),
        reordering,
    });
    proptest::option::of(request)
}

/// A path whose fates follow from the bits of a hash of the packet's place in the run.
fn path(seed: u64, lost: u64, late: u64, twice: u64) -> impl FnMut(usize, Instant, &Packet) -> Fate {
    let mut state = seed | 1;
    move |_, _, _| {
        // xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let roll = (state >> 20) % 100;
        if roll < lost {
            Fate::Lost
        } else if roll < lost + late {
            Fate::Late(Duration::from_ms(1 + (state >> 40) % 30))
        } else if roll < lost + late + twice {
            Fate::Twice
        } else {
            Fate::Arrives
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Up to 20 % of losses in both directions, and reordering and copies: all octets arrive both ways, no packet
    /// number is used twice (the pair checks), and nothing is left in flight.
    #[test]
    fn all_octets_arrive(
        congestion in controls(),
        ack_frequency in requests(),
        seed in any::<u64>(),
        (lost, late, twice) in (0_u64..20, 0_u64..20, 0_u64..10),
        (up, down) in (1_u64..120_000, 0_u64..400_000),
        window in 2_000_u64..1_000_000,
    ) {
        let config = Config { congestion, ack_frequency, receive_window: ByteCount::new(window), ..Config::default() };
        let mut pair = Pair::new(config, Duration::from_ms(15), Box::new(path(seed, lost, late, twice)));
        pair.ends[CLIENT].write(up);
        pair.ends[CLIENT].close();
        pair.ends[SERVER].write(down);
        pair.ends[CLIENT].connect(Instant::ZERO);
        pair.run(seconds(40_000));
        prop_assert_eq!((pair.ends[SERVER].delivered(), pair.ends[CLIENT].delivered()), (up, down));
        prop_assert!(pair.ends.iter().all(|end| end.is_done() && end.in_flight() == 0), "{}", pair.log);
        prop_assert!(pair.ends[SERVER].acked() == down && pair.ends[CLIENT].acked() == up);
    }
}

/// Without losses nothing is sent twice, and a download needs an acknowledgement for every second packet.
#[test]
fn a_clean_path_needs_no_retransmission() {
    for congestion in
        [CongestionControl::NewReno, CongestionControl::Cubic, CongestionControl::Bbr, CongestionControl::Bbr3]
    {
        let config = Config { congestion, ..Config::default() };
        let mut pair = Pair::new(config, Duration::from_ms(20), Box::new(|_, _, _| Fate::Arrives));
        pair.ends[CLIENT].write(300);
        pair.ends[CLIENT].close();
        pair.ends[SERVER].write(2_000_000);
        pair.ends[CLIENT].connect(Instant::ZERO);
        pair.run(seconds(100));
        let (sent, received) = (*pair.ends[SERVER].stats(), *pair.ends[CLIENT].stats());
        assert_eq!((sent.retransmitted_bytes, sent.lost_packets, sent.probe_timeouts), (0, 0, 0), "{congestion:?}");
        assert_eq!((sent.data_bytes_sent, pair.ends[CLIENT].delivered()), (2_000_000, 2_000_000));
        let most = sent.data_packets / 2 + 30;
        assert!((sent.data_packets / 2..most).contains(&received.acks_sent), "{congestion:?}: {received:?} {sent:?}");
        assert_eq!(received.acks_sent, sent.acks_received);
    }
}

/// RFC 9000, section 17.4: with packets on the way at all times, the bit of each end changes once a round trip of
/// 2 * 20 ms, also where one packet of ten is overtaken.
#[test]
fn the_spin_bit_changes_once_a_round_trip() {
    let seen = Rc::new(RefCell::new([const { Vec::new() }; 2]));
    let changes = Rc::clone(&seen);
    let mut bits = [false; 2];
    let fate = move |end: usize, now: Instant, packet: &Packet| {
        if packet.form == Form::Short && packet.spin != bits[end] {
            bits[end] = packet.spin;
            changes.borrow_mut()[end].push(now);
        }
        if packet.number % 10 == 9 { Fate::Late(Duration::from_us(300)) } else { Fate::Arrives }
    };
    let mut pair = Pair::new(Config::default(), Duration::from_ms(20), Box::new(fate));
    pair.ends[SERVER].write_forever();
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(seconds(2));
    for changes in seen.borrow().iter() {
        assert!((45..50).contains(&changes.len()), "{changes:?}");
        let trips = changes.windows(2).map(|pair| pair[1].since(pair[0]).as_us());
        let trips: Vec<u64> = trips.skip(2).collect();
        assert!(trips.iter().all(|trip| (40_000..42_000).contains(trip)), "{trips:?}");
    }
}

/// One acknowledgement for ten packets: a tenth of them, and those of the first round trip.
#[test]
fn a_request_reduces_acknowledgements() {
    let request = AckFrequency { every: 10, max_delay: None, reordering: 3 };
    let config = Config { ack_frequency: Some(request), ..Config::default() };
    let mut pair = Pair::new(config, Duration::from_ms(20), Box::new(|_, _, _| Fate::Arrives));
    pair.ends[CLIENT].close();
    pair.ends[SERVER].write(2_000_000);
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(seconds(100));
    let packets = pair.ends[SERVER].stats().data_packets;
    let acks = pair.ends[CLIENT].stats().acks_sent;
    assert_eq!(pair.ends[CLIENT].delivered(), 2_000_000);
    assert!((packets / 10..packets / 10 + 30).contains(&acks), "{acks} for {packets} packets");
}

/// RFC 9002, section 7.6: an outage of three seconds is many probe timeouts long. The window falls to two packets once,
/// and the transfer goes on.
#[test]
fn an_outage_is_persistent_congestion() {
    let outage = Instant::ZERO + Duration::from_ms(500)..Instant::ZERO + Duration::from_ms(3500);
    let fate = move |_, now: Instant, _: &Packet| if outage.contains(&now) { Fate::Lost } else { Fate::Arrives };
    let mut pair = Pair::new(Config::default(), Duration::from_ms(20), Box::new(fate));
    pair.ends[CLIENT].write(20_000_000);
    pair.ends[CLIENT].close();
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(seconds(100));
    let stats = pair.ends[CLIENT].stats();
    assert_eq!((pair.ends[SERVER].delivered(), stats.persistent_congestions), (20_000_000, 1), "{stats:?}");
    assert!(stats.probe_timeouts >= 4, "{stats:?}");
}

/// Draft, section 5: IMMEDIATE_ACK has one byte, and a full probe leaves room for it.
#[test]
fn a_probe_with_new_data_is_a_datagram_and_no_more() {
    let outage = Instant::ZERO + Duration::from_ms(500)..Instant::ZERO + Duration::from_ms(1500);
    let sizes = Rc::new(RefCell::new(Vec::new()));
    let probes = Rc::clone(&sizes);
    let fate = move |_, now: Instant, packet: &Packet| {
        if packet.frames.flags.immediate_ack {
            probes.borrow_mut().push(packet.size);
        }
        if outage.contains(&now) { Fate::Lost } else { Fate::Arrives }
    };
    let request = AckFrequency { every: 10, max_delay: None, reordering: 1 };
    let config = Config { ack_frequency: Some(request), ..Config::default() };
    let mut pair = Pair::new(config, Duration::from_ms(20), Box::new(fate));
    pair.ends[SERVER].write_forever();
    pair.ends[CLIENT].connect(Instant::ZERO);
    pair.run(seconds(2));
    let full = sizes.borrow().iter().filter(|size| **size == 1452).count();
    assert!(full >= 4, "{:?}", sizes.borrow());
}

/// Flow control lets 100 kB a round trip pass. That is as full as the path gets, so that BBR ends its startup and
/// drains it, as over TCP.
#[test]
fn flow_control_is_no_lack_of_data_for_bbr() {
    for congestion in [CongestionControl::Bbr, CongestionControl::Bbr3] {
        let config = Config { congestion, receive_window: ByteCount::new(100_000), ..Config::default() };
        let mut pair = Pair::new(config, Duration::from_ms(50), Box::new(|_, _, _| Fate::Arrives));
        pair.ends[CLIENT].write(100_000_000);
        pair.ends[CLIENT].connect(Instant::ZERO);
        pair.run(seconds(3));
        let phase = pair.ends[CLIENT].model_phase();
        assert!(phase.is_some_and(|phase| phase.starts_with("probe")), "{congestion:?}: {phase:?}");
    }
}
