//! Properties of every meter: no interval above its bound, and exactly its rate in the long run.

use lastmile_units::Duration;
use proptest::prelude::*;

use super::*;

const PS_PER_S: u128 = 1_000_000_000_000;

/// A rate that does not divide a second into whole picoseconds a bit.
const RATE: BitRate = BitRate::from_kbit_per_s(777);
const BURST: WireBytes = WireBytes::new(3180);
const CELL: WireBytes = WireBytes::new(53);

/// Every kind of meter at [`RATE`], and the most bytes that it calls green at once.
fn meters() -> Vec<(Config, WireBytes)> {
    let peak = BitRate::from_kbit_per_s(1_999);
    // 59 cells early make 60 at once, the 3180 bytes of the others.
    let tolerance = Duration::from_ps(u64::try_from((59 * 424 * PS_PER_S).div_ceil(777_000)).expect("32 ms"));
    let doubled = WireBytes::new(2 * BURST.as_u64());
    vec![
        (Config::TokenBucket { rate: RATE, burst: BURST }, BURST),
        (Config::Car(car::Config { rate: RATE, burst: BURST, extended: BURST }), BURST),
        // The debt is at most the extended burst.
        (Config::Car(car::Config { rate: RATE, burst: BURST, extended: doubled }), WireBytes::new(3 * BURST.as_u64())),
        (Config::SrTcm(srtcm::Config { cir: RATE, cbs: BURST, ebs: BURST }), BURST),
        (Config::TrTcm(trtcm::Config { pir: peak, pbs: doubled, cir: RATE, cbs: BURST }), BURST),
        (Config::Gcra(gcra::Config { rate: RATE, tolerance }), BURST),
        (Config::Police(police::Config { rate: RATE, burst: BURST, peak: Some(peak), mtu: BURST }), BURST),
    ]
}

fn green(meter: &mut Meter, now: Instant, size: WireBytes) -> bool {
    meter.conform(now, size, Color::Green) == Color::Green
}

proptest! {
    /// In every interval at most burst + rate * interval is green, to within a bit of the picosecond
    /// at either end.
    #[test]
    fn no_span_holds_more_than_the_burst_and_the_rate(
        arrivals in prop::collection::vec((0..60_000_000_000_u64, 1..31_u64), 1..120),
    ) {
        for (config, burst) in meters() {
            let mut meter = config.meter();
            let mut now = Instant::ZERO;
            let mut passed: Vec<(u64, u128)> = Vec::new();
            for &(gap, cells) in &arrivals {
                now += Duration::from_ps(gap);
                let size = WireBytes::new(cells * CELL.as_u64());
                if green(&mut meter, now, size) {
                    passed.push((now.as_ps(), u128::from(size.bits()) * PS_PER_S));
                }
            }
            let rate = u128::from(RATE.as_bps());
            for from in 0..passed.len() {
                let mut sent = 0;
                for &(end, bits) in &passed[from..] {
                    sent += bits;
                    let most = u128::from(burst.bits()) * PS_PER_S + rate * u128::from(end - passed[from].0 + 1);
                    prop_assert!(sent <= most, "{config:?}");
                }
            }
        }
    }
}

/// Cells at intervals of 0.1 ms, 4.24 Mbit/s, for 100 s: a meter that takes them one by one passes
/// the rate to within one cell, plus its initial burst. CAR restarts its sum at each exceeding
/// packet and lends on: it passes the rate as well, and ends at most its debt ahead.
#[test]
fn in_the_long_run_exactly_the_rate_conforms() {
    const ARRIVALS: u64 = 1_000_000;
    for (config, burst) in meters() {
        let mut meter = config.meter();
        let cells =
            (0..ARRIVALS).filter(|&n| green(&mut meter, Instant::from_ps(n * 100_000_000), CELL)).count() as u64;
        let earned = RATE.as_bps() * 100 / 8;
        let most = (earned + burst.as_u64()) / 53;
        let least = (earned + BURST.as_u64()) / 53 - 1;
        assert!((least..=most).contains(&cells), "{config:?}: {cells} cells, from {least} to {most}");
    }
}

/// The excess bucket of a single rate marker fills only with the overflow of the first, so that
/// yellow and green together keep the one rate.
#[test]
fn one_rate_pays_for_green_and_yellow() {
    let config = srtcm::Config { cir: RATE, cbs: BURST, ebs: BURST };
    let mut meter = SrTcm::new(&config);
    let cells = (0..1_000_000_u64)
        .filter(|&n| meter.conform(Instant::from_ps(n * 100_000_000), CELL, Color::Green) != Color::Red)
        .count() as u64;
    let earned = RATE.as_bps() * 100 / 8;
    let most = (earned + 2 * BURST.as_u64()) / 53;
    assert!((most - 1..=most).contains(&cells), "{cells}");
}

/// Two rates: green keeps the committed one, green and yellow together the peak one.
#[test]
fn two_rates_pay_for_green_and_for_both() {
    let pir = BitRate::from_kbit_per_s(1_999);
    let mut meter = TrTcm::new(&trtcm::Config { pir, pbs: BURST, cir: RATE, cbs: BURST });
    let mut counts = [0_u64; 3];
    for n in 0..1_000_000_u64 {
        counts[meter.conform(Instant::from_ps(n * 100_000_000), CELL, Color::Green) as usize] += 1;
    }
    let most = |rate: BitRate| (rate.as_bps() * 100 / 8 + BURST.as_u64()) / 53;
    // A green token earned while the peak bucket is short is kept.
    assert!((most(RATE) - 1..=most(RATE)).contains(&counts[0]), "{counts:?}");
    assert!((most(pir) - 1..=most(pir)).contains(&(counts[0] + counts[1])), "{counts:?}");
}
