use lastmile_units::{Duration, Instant};

use super::*;
use crate::sender::flight::Outstanding;
use crate::{CongestionConfig, Control, ControlAck, Controls, TimerConfig};

const MSS: u32 = 1000;

fn config(variant: Variant) -> Config {
    Config { variant, mss: MSS as u16, ..Config::default() }
}

fn acked(bytes: u64) -> Acked {
    Acked {
        now: Instant::ZERO,
        bytes,
        mss: MSS,
        after_timeout: false,
        least_rtt: Duration::from_ms(100),
        srtt: None,
        rtt: None,
        marked: 0,
    }
}

/// RFC 3465, section 2.3: after a timeout L = 1 whatever is set.
#[test]
fn slow_start_after_a_timeout_counts_one_segment_for_each_acknowledgement() {
    let config = Config {
        congestion: CongestionConfig { byte_counting: ByteCounting::Abc { limit: 8 }, ..CongestionConfig::default() },
        ..config(Variant::Reno)
    };
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.on_timeout(&config, Style::Reno, 20_000, MSS, Expiry::First);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (1000, 10_000));
    congestion.grow(&Acked { after_timeout: true, ..acked(5000) }, &config);
    assert_eq!(congestion.cwnd(), 2000);
    congestion.grow(&acked(5000), &config);
    assert_eq!(congestion.cwnd(), 7000);
}

/// RFC 5681, section 3.1: ssthresh is held when the timer has already retransmitted the segment; equation
/// 4: at least two segments.
#[test]
fn only_the_first_timeout_sets_the_threshold() {
    let config = config(Variant::NewReno);
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.on_timeout(&config, Style::NewReno, 9000, MSS, Expiry::First);
    assert_eq!(congestion.ssthresh(), 4500);
    congestion.on_timeout(&config, Style::NewReno, 1000, MSS, Expiry::Answered);
    assert_eq!(congestion.ssthresh(), 4500);
    congestion.on_timeout(&config, Style::NewReno, 1000, MSS, Expiry::First);
    assert_eq!(congestion.ssthresh(), 2000);
}

/// RFC 5681, section 3.1: at most half the flight. A recovery that the timer ends may have sent far more
/// than the window at its start.
#[test]
fn a_timeout_in_recovery_does_not_raise_the_threshold() {
    let config = config(Variant::NewReno);
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.on_fast_retransmit(&config, Style::NewReno, 20_000, MSS, true);
    assert_eq!(congestion.ssthresh(), 10_000);
    congestion.on_timeout(&config, Style::NewReno, 80_000, MSS, Expiry::InRecovery);
    assert_eq!(congestion.ssthresh(), 10_000, "not 40 000");
    congestion.on_timeout(&config, Style::NewReno, 8_000, MSS, Expiry::InRecovery);
    assert_eq!(congestion.ssthresh(), 4_000);
}

/// Linux reduces the window once for each repair, with every congestion control. RFC 5681, section 3.1, asks for at
/// most half of the flight: CUBIC, too, takes its part where it repairs by RFC 6675, 717/1024 of 14 segments.
#[test]
fn a_timeout_in_a_repair_of_linux_leaves_the_threshold() {
    let after = |variant, style| {
        let config = config(variant);
        let mut congestion = Congestion::new(&config, 1000, 0);
        congestion.set_window(20_000);
        congestion.on_fast_retransmit(&config, style, 20_000, MSS, true);
        let before = congestion.ssthresh();
        congestion.on_timeout(&config, style, 10_000, MSS, Expiry::InRecovery);
        assert_eq!(congestion.cwnd(), MSS);
        (before / MSS, congestion.ssthresh() / MSS)
    };
    for variant in [Variant::Sack, Variant::Dctcp, Variant::Prague, Variant::Ledbat] {
        assert_eq!(after(variant, Style::Rack), (10, 10), "{variant:?}");
        assert_eq!(after(variant, Style::Sack), (10, 5), "{variant:?}");
    }
    assert_eq!(after(Variant::Cubic, Style::Rack), (14, 14));
    assert_eq!(after(Variant::Cubic, Style::Sack), (14, 9));
}

/// RFC 6582, section 3.2, step 3: less than a segment acknowledged adds none back; a full acknowledgement
/// with little in flight allows no burst.
#[test]
fn newreno_deflates_by_what_is_acknowledged() {
    assert_eq!(newreno::deflated(12_000, 2000, MSS), 11_000);
    assert_eq!(newreno::deflated(12_000, 999, MSS), 11_001);
    assert_eq!(newreno::deflated(3000, 9000, MSS), 1000);
    assert_eq!(newreno::after_recovery(8000, 0, MSS), 2000);
    assert_eq!(newreno::after_recovery(8000, 3500, MSS), 4500);
    assert_eq!(newreno::after_recovery(8000, 9000, MSS), 8000);
}

/// RFC 9438, sections 4.6 and 4.7: beta = 0.7; after a loss below the last maximum the new one is 0.85 of the window.
#[test]
fn cubic_reduces_by_three_tenths_and_converges_fast() {
    let config = config(Variant::Cubic);
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.cwnd = 100_000;
    congestion.on_fast_retransmit(&config, Style::Sack, 100_000, MSS, true);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (70_000, 70_000));
    let plateau = |congestion: &mut Congestion| congestion.cubic_if_any().and_then(|cubic| cubic.w_max());
    assert_eq!(plateau(&mut congestion), Some(100));
    congestion.on_recovered(Style::Sack, 0, MSS);
    congestion.on_fast_retransmit(&config, Style::Sack, 70_000, MSS, true);
    assert_eq!(congestion.cwnd(), 49_000);
    assert_eq!(plateau(&mut congestion), Some(59));
}

/// Round trips of 40 ms, a repair that is undone, then nine of 46 ms in a round, more than an eighth longer. After a
/// fast retransmit HyStart goes on and knows the 40 ms. After a timeout it begins anew and takes 46 ms for the least.
#[test]
fn hystart_goes_on_after_an_undone_repair() {
    let config = config(Variant::Cubic);
    let trip = |ms: u64, us: u32, una: u64| RoundTrip {
        now: Instant::ZERO + Duration::from_ms(ms),
        us,
        outstanding: Outstanding { una, max: una + 20_000 },
        mss: MSS,
        srtt: Duration::from_us(u64::from(us)),
        paced: false,
    };
    for (timeout, expected) in [(false, Some(20_000)), (true, None)] {
        let mut congestion = Congestion::new(&config, 1000, 0);
        congestion.cwnd = 20_000;
        congestion.watch(&trip(0, 40_000, 1), &config);
        if timeout {
            congestion.on_timeout(&config, Style::Rack, 20_000, MSS, Expiry::First);
        } else {
            congestion.on_fast_retransmit(&config, Style::Rack, 20_000, MSS, true);
        }
        assert!(!congestion.watches(&config), "a threshold is set");
        congestion.restore(20_000, MAX_WINDOW);
        for n in 0..9 {
            assert!(congestion.watches(&config));
            congestion.watch(&trip(100 + 3 * n, 46_000, 40_000 + n), &config);
        }
        assert_eq!(Some(congestion.ssthresh()).filter(|ssthresh| *ssthresh < MAX_WINDOW), expected);
        // CUBIC knows the window at the loss, and forgets it at a timeout.
        let plateau = congestion.cubic_if_any().and_then(|cubic| cubic.w_max());
        assert_eq!(plateau, expected.map(|octets| octets / MSS));
    }
}

#[test]
fn a_window_never_passes_a_gibibyte() {
    let config = Config {
        congestion: CongestionConfig { byte_counting: ByteCounting::Abc { limit: 255 }, ..CongestionConfig::default() },
        ..config(Variant::Reno)
    };
    let mut congestion = Congestion::new(&config, 65_000, 0);
    for _ in 0..200 {
        congestion.grow(&Acked { mss: 65_000, ..acked(1 << 30) }, &config);
    }
    assert_eq!(congestion.cwnd(), 1 << 30);
}

/// Linux halves the window. RFC 5681 halves the flight, which is less after a slow start that the receive window
/// limited.
#[test]
fn a_sender_that_repairs_as_linux_does_halves_the_window() {
    let config =
        Config { timers: TimerConfig { rto: crate::Rto::Linux, ..TimerConfig::default() }, ..config(Variant::Sack) };
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.set_window(u64::from(37 * MSS));
    congestion.on_fast_retransmit(&config, Style::Rack, 20 * MSS, MSS, true);
    assert_eq!(congestion.ssthresh(), 18 * MSS, "whole segments");
    assert_eq!([3520, 3, 1].map(|cwnd| reno::halved(cwnd * MSS, MSS) / MSS), [1760, 2, 2]);
}

/// RFC 6582, section 3.2: half of the flight of eight segments, at a loss as at a timeout, for the same settings with a
/// peer that does not permit SACK.
#[test]
fn without_sack_the_flight_is_halved() {
    let config = config(Variant::Sack);
    let after = |respond: fn(&mut Congestion, &Config)| {
        let mut congestion = Congestion::new(&config, 1000, 0);
        congestion.set_window(u64::from(20 * MSS));
        respond(&mut congestion, &config);
        congestion.ssthresh() / MSS
    };
    assert_eq!(after(|one, config| one.on_fast_retransmit(config, Style::NewReno, 8 * MSS, MSS, true)), 4);
    assert_eq!(after(|one, config| one.on_timeout(config, Style::NewReno, 8 * MSS, MSS, Expiry::First)), 4);
    assert_eq!(after(|one, config| one.on_timeout(config, Style::Rack, 8 * MSS, MSS, Expiry::First)), 10);
}

/// Linux: idle for more than a timeout of 300 ms, 45 segments are halved at 301, 601 and 901 ms, to 22, 11 and 5, but
/// not below the initial ten. Three quarters are 22 + 11 segments.
#[test]
fn an_idle_time_halves_the_window_once_a_timeout() {
    let config = config(Variant::Sack);
    let at = |ms| Instant::ZERO + Duration::from_ms(ms);
    let after = |idle_ms: u64, ssthresh: u32| {
        let mut congestion = Congestion::new(&config, 1000, 0);
        (congestion.cwnd, congestion.ssthresh) = (45 * MSS, ssthresh);
        // The sender is asked several times while the segment waits.
        for _ in 0..2 {
            congestion.restart(at(1000 + idle_ms), at(1000), Duration::from_ms(300), (10 * MSS, MSS));
        }
        (congestion.cwnd() / MSS, congestion.ssthresh() / MSS)
    };
    assert_eq!([301, 600, 601, 901, 6000].map(|ms| after(ms, 5 * MSS).0), [22, 22, 11, 10, 10]);
    assert_eq!([5, 40].map(|segments| after(301, segments * MSS).1), [33, 40]);
}

/// Grows by a segment for each acknowledgement, and falls to a quarter.
#[derive(Default)]
struct Quarter {
    kinds: Vec<LossKind>,
}

impl Control for Quarter {
    fn on_ack(&mut self, ack: &ControlAck) -> (u32, u32) {
        (ack.cwnd + ack.mss, ack.ssthresh.min(50_000))
    }

    fn on_loss(&mut self, loss: &ControlLoss) -> u32 {
        self.kinds.push(loss.kind);
        if self.kinds.len() > 2 { 1 } else { loss.octets / 4 }
    }

    fn pacing_rate(&mut self) -> Option<u64> {
        Some(1000 * self.kinds.len() as u64)
    }
}

#[test]
fn a_control_of_the_caller_sets_window_threshold_and_rate() {
    let controls = Controls::new(|| Box::new(Quarter::default()));
    let config = config(Variant::Bbr).with_control(controls, true);
    assert_eq!((config.check(), config.variant, config.congestion.pacing), (Ok(()), Variant::Sack, true));
    let mut congestion = Congestion::new(&config, 1000, 0);
    congestion.grow(&acked(3000), &config);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (11_000, 50_000));
    // A sender that repairs as Linux does reduces the window, whatever is in flight: a quarter of 11 000, and of
    // 2 750 no less than a segment.
    congestion.on_fast_retransmit(&config, Style::Rack, 20_000, MSS, true);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (2_750, 2_750));
    congestion.on_timeout(&config, Style::Rack, 16_000, MSS, Expiry::First);
    assert_eq!((congestion.cwnd(), congestion.ssthresh()), (MSS, MSS));
    assert_eq!(congestion.law().and_then(Law::pacing_rate), Some(2000));
    congestion.on_ecn_echo(&config, Style::Rack, MSS);
    assert_eq!(congestion.ssthresh(), MSS, "no threshold is below a segment");
}

#[test]
fn a_control_of_the_caller_excludes_the_law_of_a_variant() {
    let controls = Controls::new(|| Box::new(Quarter::default()));
    let mut config = config(Variant::NewReno).with_control(controls, false);
    assert_eq!((config.check(), config.variant), (Ok(()), Variant::NewReno));
    config.variant = Variant::Cubic;
    assert_eq!(config.check().map_err(|error| error.field), Err("variant"));
}
