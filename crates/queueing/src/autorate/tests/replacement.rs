//! Two pingers and two spare reflectors, 2 and 3.

use super::*;

fn two_of_four() -> Config {
    let mut config = config();
    config.pings.no_pingers = 2;
    config.idle.sustained_idle_sleep_thr = None;
    config
}

fn start(config: &Config) -> Controller {
    Controller::new(config, 2, Instant::ZERO).expect("valid")
}

/// A reply with these delays in milliseconds, which replaces a reflector: its number, its successor's, and why.
fn replied(controller: &mut Controller, at: u64, reflector: usize, delays: [u64; 2]) -> Option<(usize, usize, Reason)> {
    let replacement = controller.response(ms(at), reflector, Delay::OneWay(delays.map(Duration::from_ms)));
    replacement.map(|Replacement { old, new, reason }| (old, new, reason))
}

/// Reflector 0 replies each 100 ms until this time: when another is replaced, which, and by which.
fn alone_until(controller: &mut Controller, end: u64) -> Vec<(u64, usize, usize, Reason)> {
    let reply = |at| replied(controller, at, 0, [20, 20]).map(|(old, new, reason)| (at, old, new, reason));
    (100..=end).step_by(100).filter_map(reply).collect()
}

/// Checks follow more than 1 s after one another, at 1.1 s and so on, and each finds no reply for more than 1 s. The
/// third offence replaces the reflector. Its successor begins without offences, and it is the last of the spares.
#[test]
fn three_offences_of_sixty_checks_replace_a_reflector() {
    let mut controller = start(&two_of_four());
    let expected = [(3_300, 1, 2), (6_600, 2, 3), (9_900, 3, 1)];
    assert_eq!(alone_until(&mut controller, 10_000), expected.map(|(at, old, new)| (at, old, new, Reason::Offences)),);
    assert_eq!([0, 1, 2].map(|pinger| controller.reflector(pinger)), [Some(0), Some(1), None]);
}

/// Of three checks two: an offence at 1.1 s, none at 2.2 and 3.3 s, and again at 4.4 and 5.5 s. The offence of 1.1 s
/// has left the window by 4.4 s.
#[test]
fn an_offence_leaves_the_window() {
    let mut config = two_of_four();
    config.health.reflector_misbehaving_detection_window = 3;
    config.health.reflector_misbehaving_detection_thr = 2;
    let mut controller = start(&config);
    assert_eq!(alone_until(&mut controller, 2_100), []);
    assert_eq!(replied(&mut controller, 2_150, 1, [20, 20]), None);
    let mut later = |at, reflector| replied(&mut controller, at, reflector, [20, 20]);
    assert_eq!([2_200, 3_250].map(|at| later(at, 1)), [None; 2]);
    assert_eq!([3_300, 4_400].map(|at| later(at, 0)), [None; 2]);
    assert_eq!(later(5_500, 0), Some((1, 2, Reason::Offences)));
}

/// One reflector is replaced at a check; the other at the next.
#[test]
fn a_check_replaces_one_reflector() {
    let mut controller = start(&two_of_four());
    let mut busy = |at| {
        let sent = controller.sent.map(|sent| WireBytes::new(sent.as_u64() + 1_000_000));
        controller.monitor(ms(at), sent).map(|Replacement { old, new, .. }| (old, new))
    };
    // Loads without replies are no stall.
    assert_eq!([1_001, 2_002, 3_003].map(&mut busy), [None, None, Some((0, 2))]);
    assert_eq!(busy(4_004), Some((1, 3)));
}

/// Sums of both baselines that are 20 and 21 ms apart, compared after a minute. A reflector that returns has its
/// earlier baseline, above which three replies of 71 ms are delayed.
#[test]
fn a_longer_baseline_than_the_shortest_replaces_a_reflector() {
    for (delays, expected) in [([30, 30], None), ([30, 31], Some((1, 2, Reason::Baseline)))] {
        let mut controller = start(&two_of_four());
        assert_eq!(replied(&mut controller, 59_900, 0, [20, 20]), None);
        assert_eq!(replied(&mut controller, 60_000, 1, delays), None);
        assert_eq!(replied(&mut controller, 60_901, 0, [20, 20]), expected);
        assert_eq!(controller.reflector(1), Some(if expected.is_some() { 2 } else { 1 }));
        assert_eq!(replied(&mut controller, 60_902, 1, [500, 500]), None, "no reply of a replaced one counts");
    }
    let mut controller = start(&two_of_four());
    replied(&mut controller, 1, 1, [30, 31]);
    let returned = alone_until(&mut controller, 9_900).last().copied();
    assert_eq!(returned, Some((9_900, 3, 1, Reason::Offences)));
    (0..3).for_each(|number| assert_eq!(replied(&mut controller, 9_901 + number, 1, [71, 30]), None));
    assert_eq!(kbit(&controller)[0], 9_900);
}

/// Excesses of 50 ms have means of 4 750, 9 048 and 12 938 us (0.095 of each, 0.905 of the mean before); 10 ms more
/// than the least is too much. While a direction has a high load no excess counts.
#[test]
fn more_delay_than_the_least_replaces_a_reflector() {
    for (count, is_loaded, expected) in [(2, false, None), (3, false, Some((1, 2, Reason::Excess))), (3, true, None)] {
        let mut controller = start(&two_of_four());
        replied(&mut controller, 100, 0, [20, 20]);
        replied(&mut controller, 100, 1, [20, 20]);
        load(&mut controller, ms(200), if is_loaded { 10_000 } else { 20 });
        (0..count).for_each(|number| assert_eq!(replied(&mut controller, 201 + number, 1, [20, 70]), None));
        assert_eq!(replied(&mut controller, 60_001, 0, [20, 20]), expected);
    }
}

/// Each hour one, the pingers in turns; a spare is in use again after the others.
#[test]
fn each_hour_another_reflector_is_replaced() {
    let mut config = two_of_four();
    config.health.reflector_response_deadline = Duration::from_s(10_000);
    config.health.reflector_comparison_interval = Duration::from_s(20_000);
    let mut controller = start(&config);
    let mut reply = |at, reflector| replied(&mut controller, at, reflector, [20, 20]);
    assert_eq!(reply(3_600_000, 1), None);
    assert_eq!(reply(3_601_001, 1), Some((0, 2, Reason::Rotation)));
    assert_eq!(reply(7_202_002, 2), Some((1, 3, Reason::Rotation)));
    assert_eq!(reply(10_803_003, 2), Some((2, 0, Reason::Rotation)));
}

/// Two offences, at 2.301 and 62.4 s, and then the pings sleep. After they wake at 200 s, the next check follows after
/// 600 ms, the time of two pings, and 1 s.
#[test]
fn sleep_is_no_offence() {
    let mut config = Config { idle: Idle::default(), ..two_of_four() };
    config.health.reflector_comparison_interval = Duration::from_s(20_000);
    let mut controller = start(&config);
    assert_eq!(alone_until(&mut controller, 1_000), []);
    load_both(&mut controller, ms(2_300), [20, 20]);
    let mut later = |at| replied(&mut controller, at, 0, [20, 20]);
    assert_eq!([2_301, 62_400].map(&mut later), [None; 2]);
    assert!(!controller.is_pinging());
    load(&mut controller, ms(200_000), 10_000);
    assert!(controller.is_pinging());
    assert_eq!(replied(&mut controller, 201_600, 0, [20, 20]), None, "1.6 s is not more than 1.6 s");
    assert_eq!(replied(&mut controller, 201_601, 0, [20, 20]), Some((1, 2, Reason::Offences)));
}
