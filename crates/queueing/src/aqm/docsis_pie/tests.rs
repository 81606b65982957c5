use lastmile_linklayer::preset;
use lastmile_packet::Meta;
use lastmile_units::PacketCount;

use super::controller::{LARGEST, MAX_BURST, PERIOD, State};
use super::*;
use crate::aqm::pi::{ONE, percent};

fn ms(count: u64) -> Duration {
    Duration::from_ms(count)
}

fn at(count: u64) -> Instant {
    Instant::ZERO + ms(count)
}

/// 12 Mbit/s carry 1500 bytes in 1 ms.
const RATE: BitRate = BitRate::from_mbit_per_s(12);

fn config() -> Config {
    Config::of(RATE, Limit::Packets(PacketCount::new(300)))
}

fn pie(config: &Config) -> DocsisPie<Meta> {
    DocsisPie::new(config, &preset::IP.link).expect("a limit in packets")
}

fn packet(now: Instant, ip_len: u16) -> Meta {
    Meta { ip_len, arrived: now, ..Meta::default() }
}

/// The probability in 10^-12 after an update from `from` in 10^-12.
fn updated(from: u64, wait_before: Duration, wait: Duration) -> u64 {
    let mut controller = Controller::new(Config::TARGET);
    controller.probability = (u128::from(from) * u128::from(ONE)).div_ceil(1_000_000_000_000) as u64;
    controller.wait_before = wait_before;
    controller.update(wait);
    (u128::from(controller.probability) * 1_000_000_000_000 / u128::from(ONE)) as u64
}

/// RFC 8034, appendix A: a steady wait of 14 ms is 4 ms above the target: 0.25 * 0.004 = 0.001, divided by 2048 to 2
/// below 10 %, and multiplied by 2, 8 and 32 above.
#[test]
fn a_step_grows_with_the_probability() {
    for (from, times, by) in [
        (0, 1, 2048),
        (1_000_000, 1, 512),
        (10_000_000, 1, 128),
        (100_000_000, 1, 32),
        (1_000_000_000, 1, 8),
        (10_000_000_000, 1, 2),
        (100_000_000_000, 2, 1),
        (1_000_000_000_000, 8, 1),
    ] {
        let expected = from + 1_000_000_000 * times / by;
        let found = updated(from, ms(14), ms(14));
        assert!(found.abs_diff(expected) <= 1, "from {from}: {found}, not {expected}");
    }
    // Times 32 is 3.2 %, and a step has at most 2 %.
    assert!(updated(10_000_000_000_000, ms(14), ms(14)).abs_diff(10_020_000_000_000) <= 1);
}

/// At the target, and 2 ms more than before: 2.5 * 0.002 = 0.005, halved below 10 %.
#[test]
fn the_trend_has_twice_the_gain_of_pie() {
    assert!(updated(50_000_000_000, ms(8), ms(10)).abs_diff(52_500_000_000) <= 1);
}

/// 4 ms are below 5 ms: 0.05 less 0.25 * 0.006 / 2 is 0.04925, of which 98 % stay. 201 ms add 2 % to the step, which
/// has at most 2 %. 0.85 * 1024 / 64 = 13.6 is the largest.
#[test]
fn short_waits_decay_and_long_ones_raise_it() {
    assert!(updated(50_000_000_000, ms(4), ms(4)).abs_diff(48_265_000_000) <= 1);
    assert!(updated(500_000_000_000, ms(201), ms(201)).abs_diff(540_000_000_000) <= 1);
    assert!(updated(500_000_000_000, ms(200), ms(200)).abs_diff(520_000_000_000) <= 1);
    assert!(updated(13_599_000_000_000, ms(201), ms(201)).abs_diff(13_600_000_000_000) <= 100);
    assert_eq!(updated(1_000, ms(200), ms(0)), 0);
}

/// 30 000 bytes at 12 Mbit/s take 20 ms. With 3000 tokens and a peak of 24 Mbit/s: 1 ms for 3000 bytes, and 18 ms
/// for the rest. A packet takes its tokens, and they come back at the sustained rate: 1500 in 1 ms.
#[test]
fn the_wait_follows_from_backlog_tokens_and_rates() {
    let bytes = WireBytes::new;
    let burst = bytes(3000);
    let mut flow = ServiceFlow::new(&Config { peak: BitRate::from_mbit_per_s(24), burst, ..config() });
    assert_eq!(flow.wait(at(0), bytes(30_000)), ms(19));
    assert_eq!(flow.wait(at(0), bytes(1500)), Duration::from_us(500));
    flow.sent(at(0), bytes(1500));
    flow.sent(at(0), bytes(3000));
    assert_eq!(flow.wait(at(0), bytes(30_000)), ms(20));
    assert_eq!(flow.wait(at(1), bytes(30_000)), Duration::from_us(19_500));
    assert_eq!(flow.wait(at(1000), bytes(30_000)), ms(19));
    // Both parts are rounded down to a picosecond.
    let mut flat = ServiceFlow::new(&config());
    assert_eq!(flat.wait(at(0), bytes(30_000)), ms(20) - Duration::from_ps(1));
}

/// A queue that is active, with a wait of 100 ms and this probability.
fn congested(probability: u64, waiting: usize) -> DocsisPie<Meta> {
    let mut pie = pie(&config());
    for _ in 0..waiting {
        pie.enqueue(at(0), packet(at(0), 1024), &mut |_, packet, reason| panic!("{packet:?} dropped: {reason:?}"));
    }
    pie.controller.probability = probability;
    pie.controller.wait_before = ms(100);
    pie.controller.state = State::Active;
    pie
}

fn comes(pie: &mut DocsisPie<Meta>, size: u16) -> Result<(), DropReason> {
    let mut result = Ok(());
    pie.enqueue(at(0), packet(at(0), size), &mut |_, _, reason| result = Err(reason));
    result
}

/// Section 5.6: of packets of 1024 bytes 10 % are dropped at a probability of 10 %, of those of 256 bytes a quarter of
/// that. Drops are spread, so that the shares are close.
#[test]
fn the_probability_is_in_proportion_to_the_size() {
    let share = |size: u16| {
        let mut pie = congested(percent(10), 12);
        for _ in 0..40_000 {
            if comes(&mut pie, size).is_ok() {
                pie.dequeue(at(0), &mut |_, _, _| ());
            }
        }
        pie.dropped as f64 / 40_000.0
    };
    // Between two drops: 0.85 of a sum, and then a mean of one chance in ten (or in forty).
    assert!((share(1024) - 1.0 / (8.0 + 10.0)).abs() < 0.002, "{}", share(1024));
    assert!((share(256) - 1.0 / (33.0 + 40.0)).abs() < 0.001, "{}", share(256));
}

/// Appendix A: no early drop while at most 2048 bytes wait, nor while the wait was below 5 ms and the probability below
/// 20 %, nor in a burst.
#[test]
fn the_queue_is_left_alone_while_it_is_short_calm_or_in_a_burst() {
    let full = |pie: &mut DocsisPie<Meta>| pie.controller.accumulated = percent(850);
    for (waiting, outcome) in [(2, Ok(())), (3, Err(DropReason::Aqm))] {
        let mut pie = congested(ONE, waiting);
        full(&mut pie);
        assert_eq!(comes(&mut pie, 1024), outcome);
    }
    for (wait, outcome) in [(4, Ok(())), (5, Err(DropReason::Aqm))] {
        let mut pie = congested(percent(19), 3);
        full(&mut pie);
        pie.controller.wait_before = ms(wait);
        assert_eq!(comes(&mut pie, 1024), outcome);
    }
    let mut burst = congested(ONE, 3);
    full(&mut burst);
    burst.controller.burst_left = ms(1);
    assert_eq!(comes(&mut burst, 1024), Ok(()));
}

/// Section 5.3: 300 packets fit, so nothing is dropped until 100 wait. The first drop begins a burst of 142 ms: nine
/// updates of 16 ms.
#[test]
fn a_third_of_the_buffer_awakens_it_and_the_first_drop_begins_a_burst() {
    let mut pie = pie(&config());
    pie.controller.wait_before = ms(100);
    pie.controller.probability = ONE;
    for _ in 0..100 {
        assert_eq!(comes(&mut pie, 1024), Ok(()));
    }
    assert_eq!(pie.controller.state, State::Inactive);
    pie.controller.accumulated = percent(850);
    assert_eq!(comes(&mut pie, 1024), Err(DropReason::Aqm));
    assert_eq!(
        (pie.controller.state, pie.controller.burst_left, pie.controller.bursts()),
        (State::Active, MAX_BURST, 1)
    );
    assert_eq!(comes(&mut pie, 1024), Ok(()));
    let updates = (1..).find(|_| {
        pie.controller.update(ms(100));
        assert_eq!(pie.controller.probability, 0);
        pie.controller.burst_left.is_zero()
    });
    assert_eq!(updates, Some(9));
    pie.controller.update(ms(100));
    assert!(pie.controller.probability > 0);
}

/// Once nothing waits the state is quiescent, and inactive after more than a second: the 63rd update has 1.008 s. A
/// longer wait begins it anew.
#[test]
fn a_quiet_second_makes_it_inactive_again() {
    let mut controller = Controller::new(Config::TARGET);
    controller.state = State::Active;
    controller.update(Duration::ZERO);
    assert_eq!(controller.state, State::Quiescent { quiet: Duration::ZERO });
    for _ in 0..62 {
        controller.update(Duration::ZERO);
    }
    assert_eq!(controller.state, State::Quiescent { quiet: PERIOD.saturating_mul(62) });
    let mut disturbed = controller;
    disturbed.update(ms(6));
    assert_eq!(disturbed.state, State::Quiescent { quiet: Duration::ZERO });
    controller.update(Duration::ZERO);
    assert_eq!(controller.state, State::Inactive);
}

/// 12 Mbit/s carry 1024 bytes in 0.683 ms; they come each 0.5 ms and do not respond: 26.8 % are too many. The
/// probability holds only where the wait is at the target of 10 ms.
#[test]
fn the_excess_is_dropped_and_the_wait_is_at_the_target() {
    let mut pie = pie(&config());
    let (mut came, mut dropped, mut waits, mut sent) = (0_u64, 0_u64, Duration::ZERO, 0_u64);
    let (settled, end) = (at(60_000), at(120_000));
    let each = RATE.time_for(WireBytes::new(1024));
    let mut next_send = Instant::ZERO;
    for number in 0.. {
        let now = Instant::ZERO + Duration::from_us(500 * number);
        while next_send <= now {
            let departed = pie.dequeue(next_send, &mut |_, packet, _| panic!("{packet:?} dropped"));
            if let Some(packet) = departed.filter(|_| next_send >= settled) {
                (waits, sent) = (waits + next_send.since(packet.arrived), sent + 1);
            }
            next_send += each;
        }
        if now >= end {
            break;
        }
        let late = now >= settled;
        came += u64::from(late);
        pie.enqueue(now, packet(now, 1024), &mut |_, _, _| dropped += u64::from(late));
    }
    let (share, wait_ms) = (dropped as f64 / came as f64, waits.as_secs_f64() * 1e3 / sent as f64);
    assert!((share - (1.0 - 500.0 / 682.667)).abs() < 0.002, "{share}");
    assert!((wait_ms - 10.0).abs() < 0.7, "{wait_ms} ms");
}

/// A queue that was asked each period does what one does that nobody asked for a day.
#[test]
fn a_long_silence_is_made_up_for_at_once() {
    let (mut asked, mut left) = (congested(percent(60), 3), congested(percent(60), 3));
    for pie in [&mut asked, &mut left] {
        while pie.dequeue(at(1), &mut |_, _, _| ()).is_some() {}
    }
    for period in 0..6000 {
        asked.advance(at(16 * period));
    }
    for pie in [&mut asked, &mut left] {
        pie.advance(at(86_400_000));
    }
    assert_eq!(asked.controller, left.controller);
    assert_eq!((left.controller.probability, left.controller.state), (0, State::Inactive));
}

#[test]
fn what_cannot_work_is_refused() {
    let config = config();
    assert_eq!(Config { target: Duration::ZERO, ..config }.check(), Err(DocsisPieError::ZeroTarget));
    let (peak, sustained) = (BitRate::from_mbit_per_s(11), RATE);
    assert_eq!(Config { peak, ..config }.check(), Err(DocsisPieError::Peak { peak, sustained }));
    assert_eq!(config.check(), Ok(()));
    assert_eq!(LARGEST, 16 * percent(85));
}
