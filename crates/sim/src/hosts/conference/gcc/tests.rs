use lastmile_queueing::random::Stream;

use super::*;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn control() -> Gcc {
    let kbit = BitRate::from_kbit_per_s;
    Gcc::new(kbit(300), [kbit(100), kbit(2_500)])
}

/// Packets of 1000 bytes every 20 ms, 400 kbit/s, whose delay grows by `growth_us` from one to the next. A report
/// covers five of them.
fn feed(control: &mut Gcc, (from, packets): (u64, u64), growth_us: u64, lost: impl Fn(u64) -> bool) {
    for first in (from..from + packets).step_by(5) {
        let reports: Vec<Report> = (first..first + 5)
            .map(|number| {
                let sent = at(number * 20_000);
                let arrived = sent + Duration::from_us(30_000 + (number - from) * growth_us);
                Report { sent, arrived: (!lost(number)).then_some(arrived), size: 1_000 }
            })
            .collect();
        control.on_reports(at((first + 5) * 20_000 + 50_000), &reports, Duration::from_ms(60));
    }
}

/// The rate rises by 8 % a second, and no higher than 1.5 times the 400 kbit/s that arrive.
#[test]
fn without_growing_delay_the_rate_rises_by_8_percent_a_second() {
    let mut control = control();
    feed(&mut control, (0, 255), 0, |_| false);
    // 5.0 s between the first and the last report.
    let expected = 300e3 * libm::pow(1.08, 5.0);
    assert!((control.rate() / expected - 1.0).abs() < 0.005, "{} of {expected}", control.rate());
    feed(&mut control, (255, 1_000), 0, |_| false);
    assert!((control.rate() / 600e3 - 1.0).abs() < 0.03, "{}", control.rate());
}

/// The first group moves the estimate by gain x residual: predicted variance 0.1 + 0.001, noise 1: 0.101 / 1.101.
#[test]
fn the_filter_has_the_gain_of_kalman() {
    let mut detector = Detector::new();
    let group = |ms: u64, delay_ms: u64| Group {
        first_sent: at(ms * 1000),
        last_sent: at(ms * 1000),
        last_arrived: at((ms + delay_ms) * 1000),
    };
    detector.on_group(&group(0, 30), &group(20, 31));
    assert!((detector.growth - 0.101 / 1.101).abs() < 1e-12, "{}", detector.growth);
    assert!((detector.variance - 0.101 * (1.0 - 0.101 / 1.101)).abs() < 1e-12, "{}", detector.variance);
    // |0.0917| is below the threshold of 12.5 ms, which falls by 21 ms x 0.00018 x 12.408.
    assert!((detector.threshold - (12.5 - 21.0 * 0.00018 * (12.5 - 0.101 / 1.101))).abs() < 1e-9);
}

/// A queue that grows by 20 ms from packet to packet is over-use: packets arrive every 40 ms, 200 kbit/s, of which
/// 0.85 are 170 kbit/s.
#[test]
fn a_growing_queue_lowers_the_rate_to_a_share_of_what_arrives() {
    let mut control = control();
    feed(&mut control, (0, 100), 0, |_| false);
    let before = control.rate();
    feed(&mut control, (100, 200), 20_000, |_| false);
    assert!(control.rate() < 0.75 * before, "{} after {before}", control.rate());
    assert!((control.rate() / 170e3 - 1.0).abs() < 0.15, "{}", control.rate());
}

/// sqrt(400 x 500 000) = 14 142 bit/s, and sqrt(2500 x 500 000) = 35 355 bit/s.
#[test]
fn the_band_around_the_rate_of_an_over_use_is_three_deviations() {
    let mut control = control();
    control.note_maximum(500e3);
    assert!((control.maximum.unwrap().band() - 3.0 * 14_142.0).abs() < 3.0);
    // Rates 40 kbit/s from the mean: the variance rises from 400 towards 40 000^2 / 500 000 = 3200, up to 2500.
    for up in [true, false].into_iter().cycle().take(200) {
        let mean = control.maximum.unwrap().mean;
        control.note_maximum(mean + if up { 40e3 } else { -40e3 });
    }
    let maximum = control.maximum.unwrap();
    assert!((maximum.variance - 2_500.0).abs() < 1e-9 && (maximum.mean / 500e3 - 1.0).abs() < 0.01);
    // A rate below the band begins anew.
    control.note_maximum(300e3);
    assert!((control.maximum.unwrap().mean - 300e3).abs() < 1e-9);
}

/// 120 kbit/s are frames of 4000 bits. Half of one in 10.1 s, the round trip and 100 ms, is 4 bit/s in 20 ms.
#[test]
fn near_the_rate_of_an_over_use_a_report_raises_the_rate_by_at_least_1000_bit_per_s() {
    let mut control = control();
    control.note_maximum(300e3);
    control.by_delay = 120e3;
    control.increase(20.0, Some(300e3), Duration::from_s(10));
    assert!((control.by_delay - 121e3).abs() < 1e-6, "{}", control.by_delay);
}

/// Independent losses of 3 %: one window in 170 of 1.1 s, 55 packets, loses more than 10 %, and each second one fewer
/// than 2 %.
#[test]
fn losses_between_2_and_10_percent_hold_the_rate() {
    for seed in 1..=8 {
        let mut random = Stream::new(seed, "losses");
        let lost: Vec<bool> = (0..3_000).map(|_| random.uniform() < 0.03).collect();
        let mut control = control();
        feed(&mut control, (0, 3_000), 0, |number| lost[number as usize]);
        // Undisturbed, the rate reaches 1.5 times the 400 kbit/s of which 3 % are lost.
        assert!(control.rate() > 560e3, "{} by the losses, {} by the delay", control.by_loss, control.by_delay);
    }
}

/// Three of the first 20 packets are lost, and none of the next 35: 5 % of the second that is judged.
#[test]
fn the_losses_of_a_second_are_judged_once() {
    let mut control = control();
    feed(&mut control, (0, 500), 0, |number| matches!(number % 55, 3 | 7 | 11));
    assert_eq!(control.lowered, None);
    assert!((control.by_loss - 2.5e6).abs() < 1.0, "{}", control.by_loss);
}

/// Growth of 15 ms a group against a threshold of 12.5 ms. Groups 33 ms apart: half of the first interval is
/// 16.5 ms, more than 10 ms, and a second group is needed. Groups 6 ms apart: 3, 9 and 15 ms.
#[test]
fn an_over_use_takes_10_ms_and_two_groups() {
    for (interval, groups) in [(33.0, 2), (6.0, 3)] {
        let mut detector = Detector { growth: 15.0, intervals: [interval].into(), ..Detector::new() };
        let signals: Vec<Signal> = (0..groups)
            .map(|_| {
                detector.detect(15.0, interval, interval);
                detector.signal
            })
            .collect();
        let expected = (1..=groups).map(|group| if group < groups { Signal::Normal } else { Signal::Overuse });
        assert_eq!(signals, expected.collect::<Vec<_>>(), "groups {interval} ms apart");
    }
}

/// 20 % of losses leave 0.9 of the rate for each second that is judged.
#[test]
fn many_losses_lower_the_rate_and_few_do_not() {
    let mut few = control();
    feed(&mut few, (0, 255), 0, |number| number % 25 == 3);
    assert!(few.rate() > 400e3, "4 %: {}", few.rate());
    let mut many = control();
    feed(&mut many, (0, 255), 0, |number| number % 5 == 3);
    assert!(many.rate() < 250e3, "20 %: {}", many.rate());
}
