//! Estimates with 95 % intervals from samples that depend on each other.
//!
//! Delays and rates of one connection follow each other: a queue that is full stays full for a while. An interval
//! that takes them for independent is too narrow by several times, and two measurements of one line then contradict
//! each other. Means take batches (Law and Kelton, *Simulation Modeling and Analysis*, batch means): of the longest
//! batches of which there are eight, and of those up to a fifth shorter, the widest interval counts. Short batches
//! would be wrong in both directions: where samples follow each other they seem more certain than they are, and where
//! a stall and the burst after it fall into two of them they seem less certain. Medians take order statistics of a
//! sample as large as the effective one, with the integrated autocorrelation time of the indicator "below the median"
//! (Geyer 1992, initial positive sequence).

use lastmile_theory::interval::Mean;

use crate::report::{Delays, Estimate};

/// 95 % of a normal law, in standard errors.
pub(crate) const Z: f64 = 1.96;

/// The least number of batches of an interval, so also of samples whose interval takes account of their order.
pub(crate) const FEWEST: usize = 8;

/// The mean of `samples`, in their order of time; `None` for none. Fewer than eight samples have an
/// interval as if they were independent, and one sample has none.
#[must_use]
pub fn mean(samples: &[f64]) -> Option<Estimate> {
    let value = Mean::of(samples)?.mean;
    let half = widest(samples.len(), |size| Mean::of(&samples.chunks_exact(size).map(average).collect::<Vec<f64>>()));
    Some(Estimate { value, low: value - half, high: value + half })
}

/// The rate of `parts`, each an amount and its time, in their order: all amounts over all times; `None` for no time.
///
/// Parts of equal length have the interval of [`mean`] over their rates. Otherwise it is that of a ratio of two means
/// (Law and Kelton, the regenerative method), so that a part weighs as much as its time.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "numbers of batches")]
pub fn rate(parts: &[(f64, f64)]) -> Option<Estimate> {
    let sum = |parts: &[(f64, f64)]| parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    let (amount, time) = sum(parts);
    if time <= 0.0 {
        return None;
    }
    let value = amount / time;
    let half = widest(parts.len(), |size| {
        let batches: Vec<(f64, f64)> = parts.chunks_exact(size).map(sum).collect();
        let (amount, time) = sum(&batches);
        let (rate, length) = (amount / time, time / batches.len() as f64);
        // Their mean is zero, and that of one batch of the mean length is the error of its rate.
        let errors = batches.iter().map(|(amount, time)| (amount - rate * time) / length);
        Mean::of(&errors.collect::<Vec<f64>>())
    });
    Some(Estimate { value, low: value - half, high: value + half })
}

/// The widest half interval of the lengths of batch that `count` samples may have.
fn widest(count: usize, of: impl Fn(usize) -> Option<Mean>) -> f64 {
    // Of fewer samples each is a batch.
    let longest = (count / FEWEST).max(1);
    let sizes = (4 * longest).div_ceil(5)..=longest;
    sizes.filter_map(|size| of(size)?.ci95).fold(0.0, f64::max)
}

/// The median of `samples`, in their order of time; `None` for none.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "numbers of samples")]
#[expect(clippy::cast_possible_truncation, reason = "held within the number of samples")]
pub fn median(samples: &[f64]) -> Option<Estimate> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = quantile(&sorted, 0.5)?;
    let n = sorted.len() as f64;
    let below: Vec<f64> = samples.iter().map(|sample| if *sample <= value { 0.5 } else { -0.5 }).collect();
    // The standard deviation of the share of samples below the median, in samples.
    let spread = 1.96 * (0.25 * n * correlation_time(&below)).sqrt();
    let low = (n / 2.0 - spread).floor().max(0.0) as usize;
    let high = ((n / 2.0 + spread).ceil() as usize).min(sorted.len() - 1);
    Some(Estimate { value, low: sorted[low.min(high)], high: sorted[high] })
}

/// The value that a share of `sorted` does not exceed, between samples by proportion; `None` for
/// no samples.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "numbers of samples")]
#[expect(clippy::cast_possible_truncation, reason = "held within the number of samples")]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (last as f64 * share).max(0.0);
    let (lower, upper) = ((at.floor() as usize).min(last), (at.ceil() as usize).min(last));
    Some(sorted[lower] + (sorted[upper] - sorted[lower]) * (at - at.floor()))
}

/// The mean of the samples that are not above the 95th percentile: the single-sided trimmed mean
/// of draft-ietf-ippm-responsiveness; `None` for no samples.
#[must_use]
pub fn trimmed_mean(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = quantile(&sorted, 0.95)?;
    let kept: Vec<f64> = sorted.into_iter().filter(|sample| *sample <= most).collect();
    Some(average(&kept))
}

/// Half-width below which the interval of a median delay does not fall: a delay includes the wake-ups of both hosts,
/// and their median differs from session to session. Standard deviation of 20 sessions on an idle emulated line: 11 us.
pub(crate) const WAKE_UPS_S: f64 = 25e-6;

/// The order statistics of delays in their order of time; `None` for none.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "numbers of samples")]
pub fn delays(samples: &[f64]) -> Option<Delays> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let steps: Vec<f64> = samples.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let Estimate { value, low, high } = median(samples)?;
    let p50_s = Estimate { value, low: low.min(value - WAKE_UPS_S), high: high.max(value + WAKE_UPS_S) };
    Some(Delays {
        count: samples.len() as u64,
        min_s: *sorted.first()?,
        p50_s,
        p95_s: quantile(&sorted, 0.95)?,
        p99_s: quantile(&sorted, 0.99)?,
        max_s: *sorted.last()?,
        mean_s: sorted.iter().sum::<f64>() / sorted.len() as f64,
        jitter_s: if steps.is_empty() { 0.0 } else { average(&steps) },
    })
}

#[expect(clippy::cast_precision_loss, reason = "numbers of samples")]
fn average(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// The number of successive samples that count as one independent sample; at least 1.
#[expect(clippy::cast_precision_loss, reason = "numbers of samples")]
pub(crate) fn correlation_time(samples: &[f64]) -> f64 {
    let n = samples.len();
    let mean = average(samples);
    let at = |lag: usize| -> f64 {
        let pairs = samples.iter().zip(&samples[lag..]);
        pairs.map(|(early, late)| (early - mean) * (late - mean)).sum::<f64>() / n as f64
    };
    let variance = at(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let mut time = -1.0;
    for lag in (0..n.saturating_sub(1)).step_by(2) {
        let pair = (at(lag) + at(lag + 1)) / variance;
        if pair <= 0.0 {
            break;
        }
        time += 2.0 * pair;
    }
    time.clamp(1.0, n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence of a linear congruential generator, so that tests are equal everywhere.
    struct Noise(u64);

    impl Noise {
        /// Uniform between 0 and 1.
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// An autoregressive series around 0 whose successive values correlate by `by`.
        fn series(&mut self, by: f64, len: usize) -> Vec<f64> {
            let mut value = 0.0;
            let mut step = || {
                // The sum of twelve uniform numbers has variance 1.
                let normal = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
                value = by * value + (1.0 - by * by).sqrt() * normal;
                value
            };
            for _ in 0..50 {
                step();
            }
            (0..len).map(|_| step()).collect()
        }
    }

    /// The share of 400 series whose interval contains the true value, 0.
    fn coverage(by: f64, len: usize, estimate: fn(&[f64]) -> Option<Estimate>) -> f64 {
        let mut noise = Noise(7);
        let held = (0..400).filter(|_| {
            let Estimate { low, high, .. } = estimate(&noise.series(by, len)).unwrap();
            low <= 0.0 && 0.0 <= high
        });
        held.count() as f64 / 400.0
    }

    /// The interval of independent samples would contain the mean in 50 % of these series.
    #[test]
    fn intervals_of_correlated_samples_contain_the_truth() {
        for by in [0.0, 0.5, 0.8] {
            let (means, medians) = (coverage(by, 200, mean), coverage(by, 200, median));
            assert!(means > 0.91 && medians > 0.90, "{by}: {means} of means, {medians} of medians");
        }
    }

    #[test]
    fn an_interval_of_independent_samples_is_not_wasteful() {
        let mut noise = Noise(3);
        let samples = noise.series(0.0, 400);
        let Estimate { low, high, .. } = mean(&samples).unwrap();
        // Two standard errors of 400 samples with variance 1 are 0.1.
        assert!(high - low < 0.4, "{low} to {high}");
    }

    /// Samples of a rate with stalls, whose bytes are in the next sample: their sum has the errors of its ends alone.
    /// Ten batches of 5 have a variance of 2/25 each, thus a half interval of 2.26 times the root of 0.008, or 0.20,
    /// and 8 of 6 have 0.20: the wider of the two has 0.24 in the mean. With batches of 3 and 4 next to them it would
    /// be 0.28.
    #[test]
    fn a_stall_and_the_burst_after_it_do_not_widen_an_interval() {
        let mut noise = Noise(11);
        let halves = (0..400).map(|_| {
            let stalls = noise.series(0.0, 51);
            let rates: Vec<f64> = stalls.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let Estimate { value, high, .. } = mean(&rates).unwrap();
            high - value
        });
        let half = halves.sum::<f64>() / 400.0;
        assert!((0.20..0.25).contains(&half), "{half}");
    }

    #[test]
    fn few_samples_have_no_sharp_figures() {
        assert_eq!(mean(&[]), None);
        assert_eq!(median(&[]), None);
        let one = mean(&[3.0]).unwrap();
        assert_eq!((one.low, one.high), (3.0, 3.0));
        let three = median(&[1.0, 9.0, 2.0]).unwrap();
        assert_eq!((three.value, three.low, three.high), (2.0, 1.0, 9.0));
    }

    #[test]
    fn the_rate_of_equal_parts_is_the_mean_of_their_rates() {
        let mut noise = Noise(5);
        for len in [1, 2, 7, 8, 50, 133] {
            let rates: Vec<f64> = noise.series(0.5, len).iter().map(|value| 10.0 + value).collect();
            let parts: Vec<(f64, f64)> = rates.iter().map(|rate| (rate * 0.2, 0.2)).collect();
            let (mean, rate) = (mean(&rates).unwrap(), rate(&parts).unwrap());
            for (mean, rate) in [(mean.value, rate.value), (mean.low, rate.low), (mean.high, rate.high)] {
                assert!((mean - rate).abs() < 1e-9, "{len}: {mean} and {rate}");
            }
        }
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[(0.0, 0.0)]), None);
    }

    /// 8 in 4 s, 1 in 1 s and 2 in 1 s: 11 in 6 s. The errors are 8 - 22/3, 1 - 11/6 and 2 - 11/6, over a mean length
    /// of 2 s: 4/12, -5/12 and 1/12. Their standard deviation is the root of 21 over 12, so with t(0.975, 2) = 4.3027
    /// and the root of 3 the interval is 0.9486 on either side. That of the rates 2, 1 and 2 would be 1.4342.
    #[test]
    fn a_part_weighs_as_much_as_its_time() {
        let Estimate { value, low, high } = rate(&[(8.0, 4.0), (1.0, 1.0), (2.0, 1.0)]).unwrap();
        assert!((value - 11.0 / 6.0).abs() < 1e-12, "{value}");
        assert!((value - low - 0.9486).abs() < 1e-4 && (high - value - 0.9486).abs() < 1e-4, "{low} to {high}");
    }

    /// 1 to 100: the 95th percentile is 95.05, the mean of 1 to 95 is 48.
    #[test]
    fn a_trimmed_mean_leaves_the_upper_twentieth_out() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(trimmed_mean(&samples), Some(48.0));
    }

    #[test]
    fn delays_are_order_statistics() {
        let delays = delays(&[0.010, 0.030, 0.020]).unwrap();
        assert_eq!((delays.count, delays.min_s, delays.p50_s.value, delays.max_s), (3, 0.010, 0.020, 0.030));
        let equal = super::delays(&[0.010; 50]).unwrap().p50_s;
        assert_eq!((equal.low, equal.high), (0.010 - WAKE_UPS_S, 0.010 + WAKE_UPS_S));
        assert!((delays.jitter_s - 0.015).abs() < 1e-12 && (delays.mean_s - 0.020).abs() < 1e-12);
    }
}
