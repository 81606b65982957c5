use lastmile_units::Ratio;

use super::*;

mod replacement;

/// Both directions alike: 2, 10 and 20 Mbit/s. 1500 bytes take 1200 us at the base rate, so a reply is delayed above
/// 31.2 ms, rises are full up to 11.2 ms and reductions from 61.2 ms on.
fn rates() -> [Rates; 2] {
    let [min, base, max] = [2, 10, 20].map(BitRate::from_mbit_per_s);
    [Rates { min, base, max, largest: WireBytes::new(1500) }; 2]
}

/// The baseline is the shortest delay, so that the excess of a reply is known.
fn config() -> Config {
    let baseline = Baseline { alpha_baseline_increase: Ratio::ZERO, alpha_baseline_decrease: Ratio::ONE };
    Config { baseline, ..Config::new(rates()) }
}

fn controller(config: &Config) -> Controller {
    Controller::new(config, 0, Instant::ZERO).expect("valid")
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

fn kbit(controller: &Controller) -> [u64; 2] {
    controller.rates().map(|rate| rate.as_bps() / 1000)
}

/// A reply at `at` whose downstream delay exceeds the baseline of 20 ms by `excess_us`, its upstream delay by none.
fn reply(controller: &mut Controller, at: Instant, excess_us: u64) {
    controller.response(at, 0, Delay::OneWay([20_000 + excess_us, 20_000].map(Duration::from_us)));
}

/// A load of so many kbit/s down since the last measurement, 200 ms ago, and of 20 kbit/s up, which is no stall.
fn load(controller: &mut Controller, at: Instant, down_kbit: u64) {
    load_both(controller, at, [down_kbit, 20]);
}

fn load_both(controller: &mut Controller, at: Instant, kbit: [u64; 2]) {
    controller.monitored = Instant::from_ps(at.as_ps() - Duration::from_ms(200).as_ps());
    let sent = [0, 1].map(|index| WireBytes::new(controller.sent[index].as_u64() + kbit[index] * 200 / 8));
    controller.monitor(at, sent);
}

#[test]
fn the_defaults_are_those_of_the_script() {
    let config = Config::new(rates());
    assert_eq!(config.pings.response_interval(), Duration::from_ms(50));
    assert_eq!(config.stall_detection_timeout(), Duration::from_ms(250));
    assert_eq!(kbit(&controller(&config)), [10_000; 2]);
}

/// 0.9 of a shorter delay and 0.1 of the baseline, which is 100 ms at first; 0.001 of a longer one. A microsecond is
/// the unit: 20 819.2 is 20 819, and an excess below 1 ms changes nothing.
#[test]
fn a_baseline_falls_fast_and_rises_slowly() {
    let baseline = Baseline::default();
    assert_eq!(baseline.moved(100_000, 20_000), 28_000);
    assert_eq!(baseline.moved(28_000, 20_000), 20_800);
    assert_eq!(baseline.moved(20_800, 40_000), 20_819);
    assert_eq!(baseline.moved(20_819, 21_818), 20_819);
    assert_eq!(baseline.moved(20_819, 21_819), 20_820);
}

#[test]
fn each_direction_has_half_of_a_round_trip() {
    assert_eq!(Delay::RoundTrip(Duration::from_us(40_001)).one_way_us(), [20_000; 2]);
}

/// 4 % more for each measurement, not for each reply, and only after the refractory period since the start.
#[test]
fn a_high_load_raises_the_rate_once_a_measurement() {
    let mut controller = controller(&config());
    load(&mut controller, ms(200), 10_000);
    reply(&mut controller, ms(300), 0);
    assert_eq!(kbit(&controller), [10_000, 10_000]);
    reply(&mut controller, ms(301), 0);
    assert_eq!(kbit(&controller), [10_400, 10_000]);
    reply(&mut controller, ms(350), 0);
    assert_eq!(kbit(&controller), [10_400, 10_000]);
    load(&mut controller, ms(400), 10_400);
    reply(&mut controller, ms(401), 0);
    assert_eq!(kbit(&controller), [10_816, 10_000]);
}

/// Loads are whole percent: 75.99 % are 75, which is not above 75.
#[test]
fn a_load_is_high_above_three_quarters() {
    for (down, rate) in [(7_599, 10_000), (7_600, 10_400)] {
        let mut controller = controller(&config());
        load(&mut controller, ms(400), down);
        reply(&mut controller, ms(401), 0);
        assert_eq!(kbit(&controller)[0], rate, "{down}");
    }
}

/// Six replies with 20 ms of excess: (31.2 - 20) of (31.2 - 11.2) are 560 thousandths of 4 %. None is delayed, and
/// without load a rate at its base stays.
#[test]
fn a_rise_shrinks_with_the_mean_excess() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(10), 0);
    (1..=6).for_each(|number| reply(&mut controller, ms(50 * number), 20_000));
    load(&mut controller, ms(400), 10_000);
    reply(&mut controller, ms(401), 20_000);
    assert_eq!(kbit(&controller), [10_224, 10_000]);
}

/// Three of six replies are delayed. Their mean excess, 20 ms, is below the threshold: 1 % less. Then rest: another
/// reduction follows after more than 300 ms, of six replies with 40 ms. At 9.9 Mbit/s the packet takes 1212 us:
/// (40 - 31.212) of 30 ms are 292 thousandths from 0.99 to 0.75, 0.91992.
#[test]
fn bufferbloat_lowers_the_rate_by_the_mean_excess() {
    let mut controller = controller(&config());
    (0..3).for_each(|number| reply(&mut controller, ms(350 + number), 0));
    (0..2).for_each(|number| reply(&mut controller, ms(400 + number), 40_000));
    assert_eq!(kbit(&controller), [10_000, 10_000]);
    reply(&mut controller, ms(450), 40_000);
    assert_eq!(kbit(&controller), [9_900, 10_000]);
    (0..4).for_each(|number| reply(&mut controller, ms(600 + 50 * number), 40_000));
    assert_eq!(kbit(&controller), [9_900, 10_000]);
    reply(&mut controller, ms(751), 40_000);
    assert_eq!(kbit(&controller), [9_107, 10_000]);
}

/// From 61.2 ms of mean excess on: a quarter less.
#[test]
fn a_large_excess_lowers_the_rate_by_a_quarter() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(10), 0);
    (0..6).for_each(|number| reply(&mut controller, ms(100 + number), 61_200));
    assert_eq!(kbit(&controller), [10_000, 10_000]);
    reply(&mut controller, ms(301), 61_200);
    assert_eq!(kbit(&controller), [7_500, 10_000]);
}

/// 31.2 ms are not more than 31.2 ms.
#[test]
fn an_excess_at_the_threshold_is_no_delay() {
    for (excess, rate) in [(31_200, 10_000), (31_201, 9_900)] {
        let mut controller = controller(&config());
        reply(&mut controller, ms(10), 0);
        (0..3).for_each(|number| reply(&mut controller, ms(400 + number), excess));
        assert_eq!(kbit(&controller)[0], rate, "{excess}");
    }
}

/// Bufferbloat goes before a high load, which raises nothing for 300 ms after it.
#[test]
fn a_high_load_waits_after_bufferbloat() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(10), 0);
    (0..2).for_each(|number| reply(&mut controller, ms(100 + number), 40_000));
    load(&mut controller, ms(390), 10_000);
    reply(&mut controller, ms(400), 40_000);
    assert_eq!(kbit(&controller)[0], 9_900);
    (0..6).for_each(|number| reply(&mut controller, ms(500 + number), 0));
    assert_eq!(kbit(&controller)[0], 9_900);
    reply(&mut controller, ms(701), 0);
    assert_eq!(kbit(&controller)[0], 9_900 * 104 / 100);
}

/// 1 % for each second, from above and from below, and not past the base rate.
#[test]
fn a_low_load_returns_to_the_base_rate() {
    let mut controller = controller(&config());
    load(&mut controller, ms(400), 10_000);
    reply(&mut controller, ms(401), 0);
    load(&mut controller, ms(600), 3_000);
    reply(&mut controller, ms(1_401), 0);
    assert_eq!(kbit(&controller)[0], 10_400);
    reply(&mut controller, ms(1_402), 0);
    assert_eq!(kbit(&controller)[0], 10_296);
    (3..9).for_each(|second| reply(&mut controller, ms(1_402 * second), 0));
    assert_eq!(kbit(&controller)[0], 10_000);
    (0..3).for_each(|number| reply(&mut controller, ms(20_000 + number), 40_000));
    (0..4).for_each(|number| reply(&mut controller, ms(20_300 + number), 0));
    assert_eq!(kbit(&controller)[0], 9_900);
    for (second, rate) in [(22, 9_999), (24, 10_000), (26, 10_000)] {
        reply(&mut controller, ms(1000 * second), 0);
        assert_eq!(kbit(&controller)[0], rate);
    }
}

#[test]
fn rates_stay_within_their_limits() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(10), 0);
    (2..60).for_each(|number| {
        load(&mut controller, ms(200 * number), 40_000);
        reply(&mut controller, ms(200 * number + 1), 0);
    });
    assert_eq!(kbit(&controller), [20_000, 10_000]);
    (40..120).for_each(|number| reply(&mut controller, ms(301 * number), 90_000));
    assert_eq!(kbit(&controller), [2_000, 10_000]);
}

/// 200 ms, or ten times the largest packets of both directions: at 100 kbit/s each takes 120 ms.
#[test]
fn loads_are_measured_over_ten_packets_at_least() {
    assert_eq!(controller(&config()).next_monitor(), ms(200));
    let [min, base, max] = [100; 3].map(BitRate::from_kbit_per_s);
    let slow = [Rates { min, base, max, largest: WireBytes::new(1500) }; 2];
    assert_eq!(controller(&Config::new(slow)).next_monitor(), ms(2_400));
}

/// No pings after more than 60 s without load. A load above 2 Mbit/s wakes them; the time until their first replies
/// is no stall.
#[test]
fn pings_sleep_without_load() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(1_000), 0);
    reply(&mut controller, ms(61_000), 0);
    assert!(controller.is_pinging());
    reply(&mut controller, ms(61_001), 0);
    assert!(!controller.is_pinging());
    (0..9).for_each(|number| reply(&mut controller, ms(61_400 + number), 90_000));
    load(&mut controller, ms(62_000), 2_000);
    assert!(!controller.is_pinging());
    load(&mut controller, ms(63_000), 2_001);
    assert!(controller.is_pinging());
    // Replies during sleep do not count: the window has none of them.
    reply(&mut controller, ms(63_600), 90_000);
    reply(&mut controller, ms(63_650), 90_000);
    assert_eq!(kbit(&controller), [10_000, 10_000]);
    load_both(&mut controller, ms(63_850), [0, 0]);
    assert!(matches!(controller.state, State::Running { .. }));
}

#[test]
fn pings_never_sleep_without_the_function() {
    let mut config = config();
    config.idle.sustained_idle_sleep_thr = None;
    let mut controller = controller(&config);
    (0..100).for_each(|second| reply(&mut controller, ms(1_000 * second), 0));
    assert!(controller.is_pinging());
}

/// After more than 250 ms without a reply and without load in a direction, the first reply only ends the stall.
#[test]
fn the_reply_that_ends_a_stall_is_not_counted() {
    let mut controller = controller(&config());
    reply(&mut controller, ms(350), 0);
    load_both(&mut controller, ms(600), [5_000, 10]);
    assert!(matches!(controller.state, State::Running { .. }));
    load_both(&mut controller, ms(601), [5_000, 10]);
    assert!(matches!(controller.state, State::Stalled { .. }), "the upstream has no load");
    (0..3).for_each(|number| reply(&mut controller, ms(700 + number), 40_000));
    assert_eq!(kbit(&controller)[0], 10_000, "two of the three count");
    reply(&mut controller, ms(710), 40_000);
    assert_eq!(kbit(&controller)[0], 9_900);
}

#[test]
fn a_load_in_both_directions_is_no_stall_and_ends_one() {
    let mut controller = controller(&config());
    load_both(&mut controller, ms(251), [11, 11]);
    assert!(matches!(controller.state, State::Running { .. }));
    load_both(&mut controller, ms(451), [11, 0]);
    assert!(matches!(controller.state, State::Stalled { .. }));
    load_both(&mut controller, ms(651), [11, 11]);
    assert!(matches!(controller.state, State::Running { .. }));
}

/// 10 s after the last reply, 9.75 s after the stall began, where that is asked for.
#[test]
fn a_long_stall_may_enforce_the_least_rates() {
    for (enforces, rate) in [(false, 10_000), (true, 2_000)] {
        let mut config = config();
        config.idle.min_shaper_rates_enforcement = enforces;
        let mut controller = controller(&config);
        controller.monitor(ms(251), [WireBytes::ZERO; 2]);
        controller.monitor(ms(251 + 9_750), [WireBytes::ZERO; 2]);
        assert_eq!(kbit(&controller), [10_000; 2]);
        controller.monitor(ms(251 + 9_751), [WireBytes::ZERO; 2]);
        assert_eq!(kbit(&controller), [rate; 2]);
    }
}

#[test]
fn each_reflector_has_its_own_baseline() {
    let mut controller = controller(&config());
    controller.response(ms(310), 0, Delay::OneWay([20, 20].map(Duration::from_ms)));
    for reflector in 1..6 {
        controller.response(ms(400), reflector, Delay::OneWay([90, 90].map(Duration::from_ms)));
    }
    assert_eq!(kbit(&controller), [10_000; 2]);
}

#[test]
fn a_configuration_without_effect_is_refused() {
    let refused = |change: fn(&mut Config)| {
        let mut config = config();
        change(&mut config);
        Controller::new(&config, 0, Instant::ZERO).map(|_| ()).expect_err("refused").to_string()
    };
    assert_eq!(
        refused(|config| config.rates[1].max = BitRate::from_mbit_per_s(9)),
        "a minimum of 2 Mbit/s and a maximum of 9 Mbit/s around a base rate of 10 Mbit/s; rates are 1 kbit/s or more, \
         in order"
    );
    assert_eq!(
        refused(|config| config.detection.bufferbloat_detection_thr = 7),
        "7 delayed replies out of 6; it is 1 or more, and at most the window"
    );
    assert_eq!(
        refused(|config| config.health.reflector_misbehaving_detection_thr = 61),
        "61 offences out of 60; it is 1 or more, and at most the window"
    );
    assert_eq!(
        refused(|config| config.pings.no_pingers = 0),
        "no pings: the number of reflectors and the time between pings are above zero"
    );
}
