use lastmile_linklayer::preset;
use lastmile_packet::Meta;
use lastmile_units::Duration;

use super::control::Controller;
use super::*;
use crate::aqm::pi::ONE;

const NONE: Controller = Controller { probability: 0, wait_before: Duration::ZERO, burst_left: Duration::ZERO };

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

fn at(count: u64) -> Instant {
    Instant::ZERO + ms(count)
}

/// The probability in 10^-12 after one update from `from` in 10^-12.
fn updated(from: u64, wait_before: Duration, wait: Duration) -> u64 {
    let picos = |probability: u64| (u128::from(probability) * 1_000_000_000_000 / u128::from(ONE)) as u64;
    let probability = (u128::from(from) * u128::from(ONE)).div_ceil(1_000_000_000_000) as u64;
    let mut controller = Controller { probability, wait_before, ..NONE };
    controller.update(&Parameters::default(), wait);
    picos(controller.probability)
}

/// RFC 8033, section 4.2. A steady wait of 31 ms is 16 ms above the target: 0.125 * 0.016 = 0.002,
/// divided by 2048 to 1.
#[test]
fn a_step_is_smaller_the_smaller_the_probability() {
    for (from, divisor) in [
        (0, 2048),
        (1_000_000, 512),
        (10_000_000, 128),
        (100_000_000, 32),
        (1_000_000_000, 8),
        (10_000_000_000, 2),
        (100_000_000_000, 1),
    ] {
        let expected = from + 2_000_000_000 / divisor;
        let found = updated(from, ms(31), ms(31));
        assert!(found.abs_diff(expected) <= 1, "from {from}: {found}, not {expected}");
    }
}

/// At the target, and 4 ms more than before: 1.25 * 0.004 = 0.005, halved below 10 %. 4 ms less take as much.
#[test]
fn the_trend_counts_at_the_target_too() {
    assert!(updated(50_000_000_000, ms(11), ms(15)).abs_diff(52_500_000_000) <= 1);
    assert!(updated(50_000_000_000, ms(19), ms(15)).abs_diff(47_500_000_000) <= 1);
}

/// From 0 to 200 ms: 0.125 * 0.185 + 1.25 * 0.2 = 0.273; above 10 % a step has at most 2 % (section
/// 5.5), and 1 is the end.
#[test]
fn a_step_is_capped_and_the_probability_bounded() {
    assert!(updated(100_000_000_000, ms(0), ms(200)).abs_diff(120_000_000_000) <= 1);
    assert_eq!(updated(990_000_000_000, ms(0), ms(200)), 1_000_000_000_000);
    assert_eq!(updated(1_000, ms(200), ms(0)), 0);
}

/// While nothing waits: 0.5 less 0.125 * 0.015 = 0.498125, less a 64th.
#[test]
fn the_probability_decays_while_nothing_waits() {
    assert!(updated(500_000_000_000, ms(0), ms(0)).abs_diff(490_341_796_875) <= 1);
}

fn pie(config: &Config) -> Pie<Meta> {
    Pie::new(config, &preset::IP.link).expect("a limit in packets")
}

fn packet(now: Instant, ecn: u8) -> Meta {
    Meta { ip_len: 1500, traffic_class: ecn, arrived: now, ..Meta::default() }
}

/// A queue of `waiting` packets with a wait of 100 ms and this probability.
fn congested(config: &Config, probability: u64, waiting: usize) -> Pie<Meta> {
    let mut pie = pie(config);
    for _ in 0..waiting {
        pie.enqueue(at(0), packet(at(0), 0), &mut |_, packet, reason| panic!("{packet:?} dropped: {reason:?}"));
    }
    pie.control.controller = Controller { probability, wait_before: ms(100), burst_left: Duration::ZERO };
    pie.control.accumulated = percent(850);
    pie
}

fn comes(pie: &mut Pie<Meta>, ecn: u8) -> Result<(), DropReason> {
    let mut result = Ok(());
    pie.enqueue(at(0), packet(at(0), ecn), &mut |_, _, reason| result = Err(reason));
    result
}

/// Section 4.1: nothing is dropped early while at most two packets wait, nor while the wait was short
/// and the probability below 20 %, nor during a burst.
#[test]
fn the_queue_is_left_alone_while_it_is_short_calm_or_in_a_burst() {
    let config = Config::default();
    assert_eq!(comes(&mut congested(&config, ONE, 2), 0), Ok(()));
    assert_eq!(comes(&mut congested(&config, ONE, 3), 0), Err(DropReason::Aqm));
    let mut calm = congested(&config, percent(19), 3);
    calm.control.controller.wait_before = ms(7);
    assert_eq!(comes(&mut calm, 0), Ok(()));
    calm.control.controller.wait_before = ms(8);
    assert_eq!(comes(&mut calm, 0), Err(DropReason::Aqm));
    let mut burst = congested(&config, ONE, 3);
    burst.control.controller.burst_left = ms(1);
    assert_eq!(comes(&mut burst, 0), Ok(()));
}

/// 150 ms are ten periods of 15 ms; a quiet phase gives them back (section 4.4).
#[test]
fn a_burst_of_150_ms_is_spared_after_a_quiet_phase() {
    let config = Parameters::default();
    let mut controller = Controller { burst_left: config.max_burst, ..NONE };
    for left in (0..10).rev() {
        controller.update(&config, ms(60));
        assert_eq!(controller.burst_left, ms(15 * left));
    }
    assert!(controller.probability > 0);
    for _ in 0..1000 {
        controller.update(&config, Duration::ZERO);
    }
    assert_eq!(controller, Controller { burst_left: config.max_burst, ..NONE });
}

/// Section 5.1: ECN-capable packets (2: ECT(0)) are marked below 10 %, and dropped from there on;
/// others are always dropped.
#[test]
fn marks_take_the_place_of_drops_below_10_percent() {
    let control = Parameters { ecn: true, ..Parameters::default() };
    let config = Config { control, ..Config::default() };
    let mut below = congested(&config, percent(9), 5);
    assert_eq!(comes(&mut below, 2), Ok(()));
    assert_eq!((below.marked, below.backlog().packets), (1, PacketCount::new(6)));
    assert_eq!(comes(&mut congested(&config, percent(9), 5), 0), Err(DropReason::Aqm));
    assert_eq!(comes(&mut congested(&config, percent(10), 5), 2), Err(DropReason::Aqm));
}

/// Section 5.4: at 10 % no packet is dropped until nine came (0.9), and the 85th (8.5) is, whatever was drawn.
#[test]
fn drops_are_spread() {
    let config = Config::default();
    for seed in 1..100 {
        let control = Parameters { seed, ..config.control };
        let mut pie = congested(&Config { control, ..config }, percent(10), 3);
        pie.control.accumulated = 0;
        let first = (1..).find(|_| comes(&mut pie, 0).is_err()).expect("one is dropped");
        assert!((9..=85).contains(&first), "{first}");
    }
}

/// 12 Mbit/s carry 1500 bytes in 1 ms; they come each 0.8 ms, whatever is dropped. A fifth is too much,
/// so the probability that holds is 20 %, and it holds only where the wait is at the target: 15 ms.
#[test]
fn a_fifth_too_much_is_dropped_and_the_wait_stays_at_the_target() {
    let mut pie = pie(&Config::default());
    let (mut came, mut dropped, mut waits, mut sent) = (0_u64, 0_u64, Duration::ZERO, 0_u64);
    let (end, settled) = (Duration::from_s(120), Duration::from_s(60));
    let mut next_send = Instant::ZERO;
    for number in 0.. {
        let now = Instant::ZERO + Duration::from_us(800 * number);
        while next_send <= now {
            if let Some(packet) = pie.dequeue(next_send, &mut |_, packet, _| panic!("{packet:?} dropped"))
                && next_send >= Instant::ZERO + settled
            {
                (waits, sent) = (waits + next_send.since(packet.arrived), sent + 1);
            }
            next_send += ms(1);
        }
        if now >= Instant::ZERO + end {
            break;
        }
        let late = now >= Instant::ZERO + settled;
        came += u64::from(late);
        pie.enqueue(now, packet(now, 0), &mut |_, _, _| dropped += u64::from(late));
    }
    let share = dropped as f64 / came as f64;
    let wait_ms = waits.as_secs_f64() * 1e3 / sent as f64;
    assert!((share - 0.2).abs() < 0.002, "{share}");
    assert!((wait_ms - 15.0).abs() < 0.5, "{wait_ms} ms");
}

/// A queue that was asked each period does what one does that nobody asked for a day.
#[test]
fn a_long_silence_is_made_up_for_at_once() {
    let config = Config::default();
    let (mut asked, mut left) = (congested(&config, percent(60), 3), congested(&config, percent(60), 3));
    let day = Instant::ZERO + Duration::from_s(86_400);
    for pie in [&mut asked, &mut left] {
        while pie.dequeue(at(1), &mut |_, _, _| ()).is_some() {}
    }
    for period in 0..100_000 {
        asked.control.advance(Instant::ZERO + config.control.period.saturating_mul(period), &config.control);
    }
    for pie in [&mut asked, &mut left] {
        pie.control.advance(day, &config.control);
        let next = pie.control.clock.next();
        assert!(next.is_some_and(|next| next > day && next.since(day) <= config.control.period));
    }
    assert_eq!(asked.control, left.control);
    assert_eq!(left.control.controller, Controller { burst_left: config.control.max_burst, ..NONE });
}

#[test]
fn what_cannot_work_is_refused() {
    let config = Parameters::default();
    let refused = |config: Parameters| config.check().expect_err("it is refused");
    assert_eq!(refused(Parameters { target: Duration::ZERO, ..config }), PieError::ZeroTarget);
    assert_eq!(refused(Parameters { period: Duration::ZERO, ..config }), PieError::ZeroPeriod);
    assert_eq!(refused(Parameters { alpha: 33, ..config }), PieError::Gain(33));
    assert_eq!(refused(Parameters { beta: 33, ..config }), PieError::Gain(33));
    assert_eq!(config.check(), Ok(()));
}
