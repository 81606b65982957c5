//! Losses found by time (RFC 8985), over a path that loses the segments chosen by the test and preserves the order.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_tcp::{Config, CongestionConfig, Endpoint, Open, RepairConfig, Stats, Variant};
use lastmile_units::{ByteCount, Duration, Instant};
use proptest::prelude::*;

const MSS: u64 = 1000;
const ISS: SeqNumber = SeqNumber::new(77);

/// The counters of a sender after `segments` full segments over a path of `delay` each way. `loses` decides
/// about each data segment, by its index in the stream and the number of its earlier transmissions.
fn run(config: &Config, segments: u64, delay: Duration, mut loses: impl FnMut(u64, u32) -> bool) -> Stats {
    let config = Arc::new(config.clone());
    let mut ends = [
        Endpoint::new(Arc::clone(&config), FlowId::new(0), Open::Active, ISS),
        Endpoint::new(config, FlowId::new(1), Open::Passive, SeqNumber::new(5)),
    ];
    let mut now = Instant::ZERO;
    let mut wire: BTreeMap<(Instant, u64), (usize, Meta)> = BTreeMap::new();
    let mut sent = BTreeMap::new();
    let mut count = 0;
    let mut latest = [now; 2];
    ends[0].connect(now);
    ends[0].write(segments * MSS);
    for _ in 0..1_000_000 {
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(segment) = end.poll_transmit(now) {
                let place = u64::from(segment.seq.distance_from(ISS.add(1))) / MSS;
                let data = from == 0 && segment.payload_len() > 0;
                let times = sent.entry(place).or_insert(0);
                if !data || !loses(place, *times) {
                    count += 1;
                    // Microseconds apart: RACK orders segments sent within one by their position in the stream.
                    latest[from] = (now + delay).max(latest[from] + Duration::from_us(2));
                    wire.insert((latest[from], count), (1 - from, segment));
                }
                *times += u32::from(data);
            }
        }
        if ends[0].acked() == segments * MSS {
            return ends[0].stats();
        }
        let arrival = wire.first_key_value().map(|((at, _), _)| *at);
        let timers = ends.iter().filter_map(Endpoint::next_timer);
        now = arrival.into_iter().chain(timers).min().expect("something happens until all is acknowledged");
        if arrival == Some(now) {
            let (_, (to, segment)) = wire.pop_first().expect("just seen");
            ends[to].on_segment(now, &segment);
        } else {
            ends.iter_mut().for_each(|end| end.on_timer(now));
        }
    }
    panic!("no end");
}

fn config() -> Config {
    Config { mss: MSS as u16, receive_window: ByteCount::new(1 << 20), ..Config::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Any part of a window of 40 may be lost except two segments at its end, which reveal the losses. The
    /// sender repairs all of them within a few round trips, retransmits only lost segments, and no timer
    /// expires.
    #[test]
    fn every_loss_is_found_and_nothing_else(
        lost in proptest::collection::vec(any::<bool>(), 38),
        delay_ms in 1_u64..300,
        cubic in any::<bool>(),
    ) {
        let variant = if cubic { Variant::Cubic } else { Variant::Sack };
        let initial_window = lastmile_tcp::InitialWindow::Segments(40);
        let congestion = CongestionConfig { initial_window, ..CongestionConfig::default() };
        let config = Config { congestion, variant, ..config() };
        let lose = |place: u64, times| times == 0 && lost.get(place as usize).copied().unwrap_or(false);
        let stats = run(&config, 400, Duration::from_ms(delay_ms), lose);
        let losses = lost.iter().filter(|lost| **lost).count() as u32;
        prop_assert_eq!((stats.retransmissions, stats.timeouts), (losses, 0));
        prop_assert!(stats.fast_retransmits <= 1);
    }

    /// One segment is lost several times. Each time a later transmission reveals the loss.
    #[test]
    fn a_repair_that_is_lost_is_found_without_a_timeout(
        place in 0_u64..90,
        times in 1_u32..5,
        delay_ms in 1_u64..300,
    ) {
        // Long enough for data to follow the last repair.
        let stats = run(&config(), 800, Duration::from_ms(delay_ms), |at, before| at == place && before < times);
        prop_assert_eq!((stats.retransmissions, stats.timeouts), (times, 0));
    }

    /// Without reordering, and if no timer expired, only lost segments are retransmitted.
    #[test]
    fn nothing_goes_again_that_was_not_lost(
        seed in any::<u64>(),
        rate in 1_u64..15,
        delay_ms in 1_u64..300,
    ) {
        let mut state = seed | 1;
        let mut losses = 0;
        let config = Config { repair: RepairConfig { tail_loss_probe: false, ..RepairConfig::default() }, ..config() };
        let stats = run(&config, 600, Duration::from_ms(delay_ms), |_, _| {
            // Knuth's multiplier, whose high bits are the most random.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let lost = (state >> 33) % 100 < rate;
            losses += u32::from(lost);
            lost
        });
        prop_assume!(stats.timeouts == 0);
        prop_assert_eq!(stats.retransmissions, losses);
    }
}

/// By counting (RFC 6675), only the timer finds such a loss.
#[test]
fn by_counting_a_lost_repair_waits_for_the_timer() {
    let config = Config {
        repair: RepairConfig { loss_detection: lastmile_tcp::LossDetection::Rfc6675, ..RepairConfig::default() },
        ..config()
    };
    let stats = run(&config, 400, Duration::from_ms(20), |place, before| place == 30 && before < 2);
    assert_eq!(stats.timeouts, 1);
}

/// The tail of a transfer is lost. A probe reveals it (RFC 8985, section 7); without one the timer expires.
#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let tail = |place: u64, before| place >= 97 && before == 0;
    let stats = run(&config(), 100, Duration::from_ms(20), tail);
    assert_eq!((stats.timeouts, stats.retransmissions), (0, 3));
    let without = run(
        &Config { repair: RepairConfig { tail_loss_probe: false, ..RepairConfig::default() }, ..config() },
        100,
        Duration::from_ms(20),
        tail,
    );
    assert_eq!(without.timeouts, 1);
}
