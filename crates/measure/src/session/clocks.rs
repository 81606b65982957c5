//! One-way delays from two clocks: offset and drift from the idle line.
//!
//! The difference of two clocks is visible only together with a delay. On the idle line the least
//! delays of a few seconds have no queue, and their difference between both directions is twice the
//! offset, if the least delay is equal both ways. That assumption shifts all one-way delays by a
//! constant; how they change under load does not depend on it. The line through the offsets of
//! several spans of the idle phase is the drift (minimum filtering; Paxson 1998), where it is above its
//! 95 % interval. A clock was set where the drift is faster than a crystal's beyond its interval, or an offset is
//! further from their mean than round trips differ.

use lastmile_theory::interval::student;

use crate::probe::Sample;
use crate::statistics::WAKE_UPS_S;

/// Spans of the idle phase, each with an offset.
const SPANS: u32 = 5;

/// Least standard deviation of an offset: its two delays include the wake-ups of both hosts.
const LEAST_NOISE_S: f64 = WAKE_UPS_S / 2.0;

/// Faster drift than any crystal has: a clock that was set, or delays that differ too much.
const MOST_DRIFT: f64 = 300e-6;

/// Replaces differences of clocks by delays, and returns their meaning. Without answers on the idle line, and where a
/// clock was set, the samples have no one-way delays.
pub(super) fn correct(samples: &mut [Sample], idle: Option<(f64, f64)>) -> String {
    match line(samples, idle) {
        Ok(Line { offset_s, drift }) => {
            let slope = drift.map_or(0.0, |(drift, _)| drift);
            for sample in samples.iter_mut() {
                let clock_s = offset_s + slope * sample.sent_s;
                sample.up_s = sample.up_s.map(|up_s| up_s - clock_s);
                sample.down_s = sample.down_s.map(|down_s| down_s + clock_s);
            }
            let assumed = "one-way delays assume that the least delay of the idle line is equal both ways";
            match drift {
                Some((drift, within)) => format!(
                    "{assumed}; the server's clock drifts by {:.1} ± {:.1} ppm (95 %) against this one",
                    drift * 1e6,
                    within * 1e6
                ),
                None => assumed.to_owned(),
            }
        }
        Err(reason) => {
            for sample in samples.iter_mut() {
                (sample.up_s, sample.down_s) = (None, None);
            }
            format!("no one-way delays: {reason}")
        }
    }
}

/// The difference of two clocks over time.
struct Line {
    /// At the start of the measurement.
    offset_s: f64,
    /// The drift and half of its 95 % interval. `None` where the drift is not above it: such a slope is noise, and
    /// would tilt the growth of delays under load.
    drift: Option<(f64, f64)>,
}

/// Offset and drift by least squares over spans of the idle phase.
///
/// # Errors
/// The reason in words: no span has answers, or no clock drifts so.
fn line(samples: &[Sample], idle: Option<(f64, f64)>) -> Result<Line, String> {
    let points = idle.map_or_else(Vec::new, |idle| offsets(samples, idle));
    let Some(count) = u32::try_from(points.len()).ok().filter(|count| *count > 0).map(f64::from) else {
        return Err("the clocks of both ends cannot be compared without answers on the idle line".to_owned());
    };
    let middle_s = points.iter().map(|(at_s, _)| at_s).sum::<f64>() / count;
    let offset_s = points.iter().map(|(_, offset_s)| offset_s).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(at_s, _)| (at_s - middle_s).powi(2)).sum();
    let drift = if spread > 0.0 {
        points.iter().map(|(at_s, own_s)| (at_s - middle_s) * (own_s - offset_s)).sum::<f64>() / spread
    } else {
        0.0
    };
    let residuals = points.iter().map(|(at_s, own_s)| own_s - offset_s - drift * (at_s - middle_s));
    let squares: f64 = residuals.map(|residual_s| residual_s.powi(2)).sum();
    // Two parameters are estimated. Five points may lie on a line by chance, and wake-ups move each.
    let freedom = count - 2.0;
    let within = student(freedom).map(|t| t * (squares / freedom).max(LEAST_NOISE_S.powi(2)).sqrt() / spread.sqrt());
    // Noise of the delays may look like such a drift, but moves no offset by more than round trips differ.
    let moved_s = points.iter().map(|(_, own_s)| (own_s - offset_s).abs()).fold(0.0, f64::max);
    let is_beyond_noise = within.is_some_and(|within| drift.abs() - within > MOST_DRIFT);
    if drift.abs() > MOST_DRIFT && (is_beyond_noise || moved_s > round_trips_differ_by(samples, idle)) {
        return Err(format!(
            "on the idle line the clocks of both ends seem to drift by {:.0} ppm against each other, which no clock \
             does: one of them was set, or the least delays differ too much",
            drift.abs() * 1e6
        ));
    }
    Ok(match within {
        Some(within) if within < drift.abs() => {
            Line { offset_s: offset_s - drift * middle_s, drift: Some((drift, within)) }
        }
        _ => Line { offset_s, drift: None },
    })
}

/// The longest less the shortest round-trip time of the idle phase, which a clock that is set at the other end does not
/// change.
fn round_trips_differ_by(samples: &[Sample], idle: Option<(f64, f64)>) -> f64 {
    let is_idle = |sample: &&Sample| idle.is_some_and(|(from_s, to_s)| (from_s..to_s).contains(&sample.sent_s));
    let times = || samples.iter().filter(is_idle).filter_map(|sample| sample.rtt_s);
    times().fold(0.0, f64::max) - times().fold(f64::INFINITY, f64::min)
}

/// The middle of each span of the idle phase that has answers, and half of the difference of its least delays.
fn offsets(samples: &[Sample], (from_s, to_s): (f64, f64)) -> Vec<(f64, f64)> {
    let span_s = (to_s - from_s) / f64::from(SPANS);
    let offset = |span: u32| -> Option<(f64, f64)> {
        let (from_s, to_s) = (from_s + span_s * f64::from(span), from_s + span_s * f64::from(span + 1));
        let here = || samples.iter().filter(|sample| (from_s..to_s).contains(&sample.sent_s));
        let least = |values: &mut dyn Iterator<Item = f64>| values.min_by(f64::total_cmp);
        let up_s = least(&mut here().filter_map(|sample| sample.up_s))?;
        let down_s = least(&mut here().filter_map(|sample| sample.down_s))?;
        Some((f64::midpoint(from_s, to_s), (up_s - down_s) / 2.0))
    };
    (0..SPANS).filter_map(offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with 5 ms each way, up to 1 ms of jitter, and a server's clock that is 1000 s ahead
    /// and runs 40 ppm fast; probes for 10 s idle and 10 s with 80 ms of queue upstream.
    fn samples(drift: f64) -> Vec<Sample> {
        (0..200)
            .map(|index| {
                let sent_s = f64::from(index) * 0.1;
                let queue_s = if sent_s >= 10.0 { 0.080 } else { 0.0 };
                let jitter = |factor: i32| f64::from((index * factor) % 11) * 1e-4;
                let (up_s, down_s) = (0.005 + queue_s + jitter(7), 0.005 + jitter(5));
                let clock_s = 1000.0 + drift * sent_s;
                let rtt_s = Some(up_s + down_s);
                Sample {
                    sent_s,
                    rtt_s,
                    up_s: Some(up_s + clock_s),
                    down_s: Some(down_s - clock_s),
                    ..Sample::default()
                }
            })
            .collect()
    }

    #[test]
    fn offset_and_drift_come_out_of_the_idle_line() {
        let mut samples = samples(40e-6);
        let words = correct(&mut samples, Some((0.0, 10.0)));
        // Each span's least jitter differs by up to 0.1 ms.
        let (_, numbers) = words.split_once("drifts by ").unwrap();
        let numbers: Vec<&str> = numbers.split(' ').collect();
        let [drift, within] = [numbers[0], numbers[2]].map(|number| number.parse::<f64>().unwrap());
        assert_eq!(&numbers[3..], ["ppm", "(95", "%)", "against", "this", "one"], "{words}");
        assert!((drift - 40.0).abs() < 10.0 && (drift - 40.0).abs() < within && within < 40.0, "{words}");
        for sample in &samples {
            let queue_s = if sample.sent_s >= 10.0 { 0.080 } else { 0.0 };
            let up_s = sample.up_s.unwrap();
            assert!((up_s - 0.0055 - queue_s).abs() < 0.0007, "{sample:?}");
            assert!((up_s + sample.down_s.unwrap() - sample.rtt_s.unwrap()).abs() < 1e-9, "{sample:?}");
        }
    }

    /// A probe in the middle of each fifth of an idle phase of this length, with 5 ms each way and these offsets, and
    /// one at 50 s.
    fn five(idle_s: f64, offsets_ms: [f64; 5]) -> Vec<Sample> {
        let sample = |(sent_s, offset_ms): (f64, f64)| {
            let (up_s, down_s) = (Some(0.005 + offset_ms * 1e-3), Some(0.005 - offset_ms * 1e-3));
            Sample { sent_s, rtt_s: Some(0.01), up_s, down_s, ..Sample::default() }
        };
        let spans = (0..5).map(|span| (f64::from(span) + 0.5) * idle_s / 5.0).zip(offsets_ms);
        spans.chain([(50.0, 0.0)]).map(sample).collect()
    }

    /// Offsets each 0.8 s. 0, 0.1, 0, 0.1 and 0 ms have no slope. 0, 0.15, 0.15, 0.35 and 0.4 ms have one of 0.1 ms in
    /// 0.8 s; the squares of their residuals sum to 0.007, so that it is known to 3.182 sqrt(0.007 / 3 / 6.4) 1e-3.
    #[test]
    fn a_drift_is_told_where_it_is_above_its_noise() {
        let told = |offsets_ms| correct(&mut five(4.0, offsets_ms), Some((0.0, 4.0)));
        let assumed = "one-way delays assume that the least delay of the idle line is equal both ways";
        assert_eq!(told([0.0, 0.1, 0.0, 0.1, 0.0]), assumed);
        // A straight line of 10 ppm, of which wake-ups hide 3.182 times 12.5 us in 2.53 s, which are 15.7 ppm.
        assert_eq!(told([0.0, 0.008, 0.016, 0.024, 0.032]), assumed);
        let straight = "; the server's clock drifts by 20.0 ± 15.7 ppm (95 %) against this one";
        assert_eq!(told([0.0, 0.016, 0.032, 0.048, 0.064]), format!("{assumed}{straight}"));
        let drifts = "; the server's clock drifts by 125.0 ± 60.8 ppm (95 %) against this one";
        assert_eq!(told([0.0, 0.15, 0.15, 0.35, 0.4]), format!("{assumed}{drifts}"));
    }

    /// 0, 0.4, -0.3, 0.5 and 0.6 ms each 2 s have a slope of 65 ppm, known to 3.182 sqrt(0.403 / 3 / 40) ms/s, which
    /// are 184 ppm. At 50 s that slope would be 2.9 ms above the mean of 0.24 ms.
    #[test]
    fn a_drift_within_its_noise_changes_no_delay() {
        let mut samples = five(10.0, [0.0, 0.4, -0.3, 0.5, 0.6]);
        let words = correct(&mut samples, Some((0.0, 10.0)));
        assert_eq!(words, "one-way delays assume that the least delay of the idle line is equal both ways");
        let last = samples[5];
        assert!((last.up_s.unwrap() - 0.00476).abs() < 1e-9, "{last:?}");
        assert!((last.down_s.unwrap() - 0.00524).abs() < 1e-9, "{last:?}");
        // 50 ppm without noise: 0.1 ms in 2 s, and 2.45 ms between 1 s and 50 s.
        let mut samples = five(10.0, [0.0, 0.1, 0.2, 0.3, 0.4]);
        assert!(correct(&mut samples, Some((0.0, 10.0))).contains("drifts by 50.0"));
        assert!((samples[5].up_s.unwrap() - 0.00255).abs() < 1e-9, "{:?}", samples[5]);
        // Two spans with answers show no noise.
        let mut samples = five(10.0, [0.0, 0.1, 0.2, 0.3, 0.4]);
        samples.drain(2..5);
        correct(&mut samples, Some((0.0, 10.0)));
        assert!((samples[2].up_s.unwrap() - 0.00495).abs() < 1e-9, "{:?}", samples[2]);
    }

    /// 0, 1, -1, 2 and 3 ms each 2 s have a slope of 14 / 40 ms/s.
    #[test]
    fn a_drift_that_no_clock_has_is_told() {
        let words = correct(&mut five(10.0, [0.0, 1.0, -1.0, 2.0, 3.0]), Some((0.0, 10.0)));
        let seems = "on the idle line the clocks of both ends seem to drift by 350 ppm against each other";
        let rest = "which no clock does: one of them was set, or the least delays differ too much";
        assert_eq!(words, format!("no one-way delays: {seems}, {rest}"));
    }

    /// The same offsets where round trips differ by 8 ms: the slope of 350 ppm is known to 3.182 sqrt(5.1 / 3 / 40)
    /// ms/s, which are 656 ppm. The mean offset is 1 ms.
    #[test]
    fn jitter_that_looks_like_a_drift_keeps_one_way_delays() {
        let jittery = |offsets_ms| {
            let mut samples = five(10.0, offsets_ms);
            samples[4].rtt_s = Some(0.018);
            let words = correct(&mut samples, Some((0.0, 10.0)));
            (words, samples[5].up_s)
        };
        let (words, last_s) = jittery([0.0, 1.0, -1.0, 2.0, 3.0]);
        assert_eq!(words, "one-way delays assume that the least delay of the idle line is equal both ways");
        assert!((last_s.unwrap() - 0.004).abs() < 1e-9, "{last_s:?}");
        // 0.8 ms in 2 s are 400 ppm without noise: its interval is 6.3 ppm.
        let (words, last_s) = jittery([0.0, 0.8, 1.6, 2.4, 3.2]);
        assert!(words.contains("seem to drift by 400 ppm") && last_s.is_none(), "{words}");
        // A clock that is set by 20 ms amid the phase: a slope of 3 000 ppm, known to 3 182 ppm.
        let (words, last_s) = jittery([0.0, 0.0, 20.0, 20.0, 20.0]);
        assert!(words.contains("one of them was set") && last_s.is_none(), "{words}");
    }

    #[test]
    fn a_clock_that_jumps_has_no_one_way_delays() {
        let mut samples = samples(0.0);
        for sample in samples.iter_mut().filter(|sample| sample.sent_s > 5.0) {
            sample.up_s = sample.up_s.map(|up_s| up_s + 3600.0);
            sample.down_s = sample.down_s.map(|down_s| down_s - 3600.0);
        }
        let words = correct(&mut samples, Some((0.0, 10.0)));
        assert!(words.starts_with("no one-way delays: on the idle line the clocks"), "{words}");
        assert!(samples.iter().all(|sample| sample.up_s.is_none() && sample.down_s.is_none()));
    }

    #[test]
    fn without_an_idle_line_there_is_nothing_to_compare() {
        let mut samples = samples(0.0);
        assert!(correct(&mut samples, None).starts_with("no one-way delays"));
    }
}
