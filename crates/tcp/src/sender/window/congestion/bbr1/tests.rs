use lastmile_units::{Duration, Instant};

use super::*;
use crate::sender::delivery_rate::Measured;

const MSS: u64 = 1000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// A sender whose samples the test writes by hand.
struct Bench {
    bbr: Bbr1,
    pacing: Pacer,
    cwnd: u64,
    delivered: u64,
    lost: u64,
    now: u64,
}

impl Bench {
    fn new() -> Self {
        let (bbr, pacing) = (Bbr1::new(10 * MSS, 1), Pacer::new());
        let mut bench = Self { bbr, pacing, cwnd: 10 * MSS, delivered: 0, lost: 0, now: 0 };
        bench.bbr.begin(at(0), bench.cwnd, Some(Duration::from_ms(100)), &mut bench.pacing);
        bench
    }

    /// A round trip of 100 ms, acknowledged at once: this many segments at this rate, with this much in flight after.
    fn round(&mut self, segments: u64, rate_per_ms: u64, in_flight: u64, newly_lost: u64) {
        self.now += 100;
        let acked = segments * MSS;
        let prior_delivered = self.delivered;
        self.delivered += acked;
        self.lost += newly_lost;
        let sample = RateSample {
            now: at(self.now),
            acked,
            newly_lost,
            prior_in_flight: in_flight + acked,
            in_flight,
            delivered: self.delivered,
            lost: self.lost,
            segment: Some(Measured {
                prior_delivered,
                prior_lost: 0,
                sent_in_flight: acked,
                delivered: rate_per_ms * 100,
                interval: Some(Duration::from_ms(100)),
                rtt: Some(Duration::from_ms(100)),
                app_limited: false,
                maybe_delayed: false,
            }),
        };
        let mut ack = ModelAck {
            sample: &sample,
            lost: &[],
            phase: RepairPhase::Open,
            pacing: &mut self.pacing,
            cwnd: self.cwnd,
            cwnd_limited: true,
            srtt: Some(Duration::from_ms(100)),
            mss: MSS,
            held_quanta: 3,
        };
        self.bbr.on_ack(&mut ack);
        self.cwnd = ack.cwnd;
    }
}

/// `bbr_init_pacing_rate_from_rtt`: 10 000 octets in 100 ms, times 739/256, less 1 %.
#[test]
fn the_first_rate_is_the_window_over_the_round_trip() {
    let bench = Bench::new();
    assert_eq!(bench.pacing.rate().map(OctetRate::octets_per_s), Some(100_000 * 739 / 256 * 99 / 100));
}

/// `bbr_check_full_bw_reached`: three rounds with less than a quarter more. Then `DRAIN`, until no more than the
/// product is in flight: 100 octets/ms * 100 ms, and three bursts of a segment.
#[test]
fn startup_ends_after_three_rounds_without_growth() {
    let mut bench = Bench::new();
    for rate in [50, 100] {
        bench.round(10, rate, 20 * MSS, 0);
        assert_eq!(bench.bbr.mode, Mode::Startup);
    }
    for _ in 0..2 {
        bench.round(10, 120, 60 * MSS, 0);
        assert_eq!(bench.bbr.mode, Mode::Startup);
    }
    bench.round(10, 124, 60 * MSS, 0);
    assert_eq!(bench.bbr.mode, Mode::Drain);
    assert_eq!(bench.pacing.rate().map(OctetRate::octets_per_s), Some(124_000 * 88 / 256 * 99 / 100));
    bench.round(10, 124, 10 * MSS, 0);
    assert_eq!(bench.bbr.mode, Mode::ProbeBw);
}

/// `bbr_set_cwnd` in `PROBE_BW`: twice 12 400 octets are 24.8 segments, rounded up to 25, and three bursts, of a
/// single segment below 1.2 Mbit/s; the sum is even. Twelve segments acknowledged at once allow twelve more at most.
#[test]
fn the_window_is_twice_the_product_and_bursts() {
    let mut bench = Bench::new();
    for rate in [50, 100, 124, 124, 124, 124] {
        bench.round(10, rate, 10 * MSS, 0);
    }
    assert_eq!(bench.bbr.mode, Mode::ProbeBw);
    for _ in 0..30 {
        bench.round(12, 124, 12 * MSS, 0);
    }
    let extra = bench.bbr.aggregation.allowance(bench.bbr.rate(), MSS);
    assert!(extra <= 12 * MSS, "no more than arrives at once: {extra}");
    let even = (25 * MSS + extra + 3 * MSS).next_multiple_of(2 * MSS);
    assert!((even..=even + 2 * MSS).contains(&bench.cwnd), "{} of {even}", bench.cwnd);
}

/// `bbr_pacing_gain`: the phases of `PROBE_BW` follow one another, each for a round trip: 5/4, 3/4 and six at 1.
#[test]
fn the_cycle_has_one_phase_above_and_one_below() {
    let mut bench = Bench::new();
    for rate in [50, 100, 124, 124, 124, 124] {
        bench.round(10, rate, 10 * MSS, 0);
    }
    let mut gains = Vec::new();
    for _ in 0..40 {
        // Enough is in flight for the phase at 5/4 to end, and little enough for the one at 3/4.
        let in_flight = if bench.bbr.pacing_gain > Gain::ONE { 30 } else { 11 };
        bench.round(12, 124, in_flight * MSS, 0);
        bench.now += 1;
        if bench.bbr.mode == Mode::ProbeBw {
            gains.push(bench.bbr.pacing_gain);
        }
    }
    let first = gains.iter().position(|&gain| gain == CYCLE[0]).expect("a phase at 5/4");
    for (index, gain) in gains[first..].iter().enumerate() {
        assert_eq!(*gain, CYCLE[index % 8], "phase {index} of {gains:?}");
    }
    assert!(gains.len() > first + 16);
}

/// `bbr_lt_bw_sampling`: two intervals with a third lost at one rate show a policer.
#[test]
fn a_policer_is_found_by_two_equal_intervals() {
    let mut bench = Bench::new();
    for rate in [50, 100, 124, 124, 124, 124] {
        bench.round(10, rate, 10 * MSS, 0);
    }
    let mut rounds = 0;
    while bench.bbr.long_term.rate().is_none() {
        bench.round(10, 124, 10 * MSS, 5 * MSS);
        rounds += 1;
        assert!(rounds < 40, "no policer was found");
    }
    // Ten segments in each round trip of 100 ms.
    assert_eq!(bench.bbr.rate().octets_per_s(), 100_000);
    assert!(rounds >= 8, "two intervals of four rounds at least: {rounds}");
    // tcp_bbr.c: 48 rounds later it probes.
    for _ in 0..60 {
        bench.round(10, 124, 10 * MSS, 0);
    }
    assert!(bench.bbr.long_term.rate().is_none());
}

/// `bbr_packets_in_net_at_edt`, `bbr_ack_aggregation_cwnd`: at 124 octets/ms, 1488 are delivered in 12 ms and 12 400 in
/// 100 ms, which are one segment and twelve.
#[test]
fn deliveries_count_in_whole_segments() {
    let mut bench = Bench::new();
    for rate in [50, 100, 124, 124, 124, 124] {
        bench.round(10, rate, 10 * MSS, 0);
    }
    for _ in 0..3 {
        bench.round(14, 124, 14 * MSS, 0);
    }
    assert_eq!(bench.bbr.aggregation.allowance(bench.bbr.rate(), MSS), 12 * MSS);
    let mut pacing = Pacer::new();
    pacing.set_rate(OctetRate::from_octets_per_s(100_000));
    for len in [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1200] {
        pacing.on_sent(at(bench.now), len, 1);
    }
    assert_eq!(pacing.departure(at(0)), at(bench.now + 12));
    let sample = RateSample {
        now: at(bench.now),
        acked: 0,
        newly_lost: 0,
        prior_in_flight: 0,
        in_flight: 0,
        delivered: 0,
        lost: 0,
        segment: None,
    };
    let ack = ModelAck {
        sample: &sample,
        lost: &[],
        phase: RepairPhase::Open,
        pacing: &mut pacing,
        cwnd: 0,
        cwnd_limited: true,
        srtt: None,
        mss: MSS,
        held_quanta: 3,
    };
    bench.bbr.pacing_gain = Gain::ONE;
    assert_eq!(bench.bbr.in_flight_at_departure(&ack, 10 * MSS), 9 * MSS);
}
