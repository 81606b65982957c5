use lastmile_units::{Duration, Instant};

use super::*;
use crate::sender::delivery_rate::{LostSegment, Measured, RateSample};

const MSS: u64 = 1000;

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// A sender whose samples the test writes by hand.
struct Bench {
    bbr: Bbr3,
    pacing: Pacer,
    cwnd: u64,
    delivered: u64,
    lost: u64,
    now: u64,
    held_quanta: u64,
}

impl Bench {
    fn new() -> Self {
        let (bbr, pacing) = (Bbr3::new(10 * MSS, 1), Pacer::new());
        let mut bench = Self { bbr, pacing, cwnd: 10 * MSS, delivered: 0, lost: 0, now: 0, held_quanta: 3 };
        bench.bbr.begin(at(0), bench.cwnd, Some(Duration::from_ms(100)), &mut bench.pacing);
        bench
    }

    /// A round trip of 100 ms at this many octets/ms, of which `lost` octets were lost.
    fn round(&mut self, rate_per_ms: u64, in_flight: u64, lost: u64) {
        self.now += 100;
        let acked = rate_per_ms * 100;
        let (prior_delivered, prior_lost) = (self.delivered, self.lost);
        self.delivered += acked;
        self.lost += lost;
        let sample = RateSample {
            now: at(self.now),
            acked,
            newly_lost: lost,
            prior_in_flight: in_flight + acked,
            in_flight,
            delivered: self.delivered,
            lost: self.lost,
            segment: Some(Measured {
                prior_delivered,
                prior_lost,
                sent_in_flight: acked,
                delivered: acked,
                interval: Some(Duration::from_ms(100)),
                rtt: Some(Duration::from_ms(100)),
                app_limited: false,
                maybe_delayed: false,
            }),
        };
        let lost_segment = LostSegment { start: 0, end: lost, in_flight: acked, lost_since: lost, app_limited: false };
        let losses: &[LostSegment] = if lost > 0 { &[lost_segment] } else { &[] };
        let mut ack = ModelAck {
            sample: &sample,
            lost: losses,
            phase: RepairPhase::Open,
            pacing: &mut self.pacing,
            cwnd: self.cwnd,
            cwnd_limited: true,
            srtt: Some(Duration::from_ms(100)),
            mss: MSS,
            held_quanta: self.held_quanta,
        };
        self.bbr.on_ack(&mut ack);
        self.cwnd = ack.cwnd;
    }

    fn cruising() -> Self {
        let mut bench = Self::new();
        for rate in [100, 200, 400, 400, 400, 400] {
            bench.round(rate, 60 * MSS, 0);
        }
        while bench.bbr.state != State::Cruise {
            bench.round(400, 30 * MSS, 0);
        }
        bench
    }

    fn until(&mut self, state: State) {
        for _ in 0..80 {
            if self.bbr.state == state {
                return;
            }
            self.round(400, 39 * MSS, 0);
        }
        panic!("no {state:?}, but {:?}", self.bbr.state);
    }
}

/// Section 5.6.2: 10 000 octets in 100 ms, times 709/256.
#[test]
fn the_first_rate_is_the_window_over_the_round_trip() {
    assert_eq!(Bench::new().pacing.rate().map(OctetRate::octets_per_s), Some(100_000 * 709 / 256));
}

/// Section 5.5.8: where the product of rate and round trip is a segment, the window has the send quanta (of two
/// segments at least) that the hosts may hold: three with TCP, one with QUIC; and at least four segments.
#[test]
fn the_least_window_has_what_the_hosts_hold() {
    let window = |held_quanta| {
        let mut bench = Bench { held_quanta, ..Bench::new() };
        (0..20).for_each(|_| bench.round(10, 2 * MSS, 0));
        // A probe for more has two segments more.
        while bench.bbr.state != State::Cruise {
            bench.round(10, 2 * MSS, 0);
        }
        bench.cwnd / MSS
    };
    let (tcp, quic) = (window(3), window(1));
    assert_eq!((tcp, quic), (6, 4));
}

/// Section 5.3.1.2: three rounds without a quarter more; drain at half of the rate.
#[test]
fn startup_ends_at_a_plateau() {
    let mut bench = Bench::new();
    for rate in [100, 200, 400, 400, 400] {
        bench.round(rate, 60 * MSS, 0);
        assert_eq!(bench.bbr.state, State::Startup);
    }
    bench.round(400, 60 * MSS, 0);
    assert_eq!(bench.bbr.state, State::Drain);
    assert_eq!(bench.pacing.rate().map(OctetRate::octets_per_s), Some(400_000 / 2 * 99 / 100));
    bench.round(400, 40 * MSS, 0);
    assert_eq!(bench.bbr.state, State::Cruise, "40 segments are the product, and DOWN has nothing to drain");
}

/// Section 5.3.2: after three rounds drain ends whatever is in flight.
#[test]
fn drain_lasts_at_most_three_rounds() {
    let mut bench = Bench::new();
    for rate in [100, 200, 400, 400, 400, 400] {
        bench.round(rate, 90 * MSS, 0);
    }
    for _ in 0..3 {
        bench.round(400, 90 * MSS, 0);
        assert_eq!(bench.bbr.state, State::Drain);
    }
    bench.round(400, 90 * MSS, 0);
    assert_eq!(bench.bbr.state, State::Down);
}

/// Section 5.3.3: cruise, one round of refill, then up, at 2 to 3 s.
#[test]
fn a_cycle_refills_before_it_probes() {
    let mut bench = Bench::cruising();
    let began = bench.now;
    bench.until(State::Refill);
    let waited = bench.now - began;
    assert!((1500..=3200).contains(&waited), "{waited} ms");
    bench.round(400, 39 * MSS, 0);
    assert_eq!(bench.bbr.state, State::Up);
    assert_eq!(bench.pacing.rate().map(OctetRate::octets_per_s), Some(400_000 * 320 / 256 * 99 / 100));
}

/// Section 5.5.10.2: over 2 % lost in a probe sets the long-term bound, at least 0.7 of the product, and ends the
/// probe.
#[test]
fn a_probe_that_loses_too_much_sets_the_bound() {
    let mut bench = Bench::cruising();
    bench.until(State::Up);
    bench.round(400, 39 * MSS, 2 * MSS);
    assert_eq!(bench.bbr.state, State::Down);
    // Of 40 000 octets the first 38 000 were in flight; 2 % of them and of a part of the segment are lost: 775.
    assert_eq!(bench.bbr.bounds.long_flight, Some(38_000 + 38_000 * 2 / 98));
    assert!(bench.bbr.cycle.too_high);
    while bench.bbr.state != State::Cruise {
        assert_eq!(bench.bbr.state, State::Down);
        bench.round(400, 30 * MSS, 0);
    }
    bench.round(400, 30 * MSS, 0);
    // Section 2.5: 15 % are left to others.
    let bound = bench.bbr.bounds.long_flight.expect("a bound");
    assert_eq!(bench.cwnd, bound - bound * 15 / 100);
}

/// Section 5.5.10.3: a round with losses at other times lowers rate and flight to what was delivered, at most by 0.3.
#[test]
fn losses_outside_of_a_probe_lower_the_short_term_bounds() {
    let mut bench = Bench::cruising();
    bench.round(400, 30 * MSS, 0);
    for _ in 0..4 {
        bench.round(300, 30 * MSS, MSS);
    }
    // The largest rate of the round before counts: 300, which exceeds 0.7 * 400.
    assert_eq!(bench.bbr.bounds.rate.map(OctetRate::octets_per_s), Some(300_000));
    assert_eq!(bench.bbr.rates.used.octets_per_s(), 300_000);
    bench.until(State::Refill);
    assert_eq!(bench.bbr.bounds.rate, None, "a probe forgets them");
}

/// Section 5.3.4: after 5 s without a shorter round trip, half of the product for 200 ms and a round.
#[test]
fn probe_rtt_halves_the_flight() {
    let mut bench = Bench::cruising();
    for _ in 0..60 {
        bench.round(400, 39 * MSS, 0);
        if bench.bbr.state == State::ProbeRtt {
            break;
        }
    }
    assert_eq!(bench.bbr.state, State::ProbeRtt);
    assert_eq!(bench.cwnd, 20 * MSS);
    for _ in 0..4 {
        bench.round(200, 20 * MSS, 0);
    }
    assert_eq!(bench.bbr.state, State::Cruise);
    assert!(bench.cwnd > 35 * MSS, "{}", bench.cwnd);
}
