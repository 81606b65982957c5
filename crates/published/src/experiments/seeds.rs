//! Random scenarios: the same run with several seeds, its mean and how far that can be trusted.

use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::reproduction::Means;
use crate::value::Values;

use super::ExperimentError;

/// The seeds of every random experiment.
pub(super) const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// Runs `once` with each seed.
///
/// Quantities are those of the first run that are numbers; the interval is Student's t for the mean of independent runs.
pub(super) fn over_seeds(once: impl Fn(u64) -> Result<Values, ExperimentError>) -> Result<Means, ExperimentError> {
    means_over(&SEEDS, once)
}

/// The same with these seeds.
pub(super) fn means_over(
    seeds: &[u64],
    once: impl Fn(u64) -> Result<Values, ExperimentError>,
) -> Result<Means, ExperimentError> {
    let runs = seeds.iter().map(|&seed| once(seed)).collect::<Result<Vec<Values>, _>>()?;
    Ok(means(&runs))
}

/// One quantity, measured with each seed.
#[derive(Clone, Default)]
pub(super) struct Sample(Vec<f64>);

impl Sample {
    /// Measures a quantity with each seed.
    pub(super) fn of(once: impl Fn(u64) -> Result<f64, ExperimentError>) -> Result<Self, ExperimentError> {
        SEEDS.iter().map(|&seed| once(seed)).collect::<Result<Vec<f64>, _>>().map(Self)
    }

    pub(super) fn mean(&self) -> f64 {
        mean_and_ci95(&self.0).0
    }

    /// True when this is less than the other: the 95 % confidence interval of the mean difference, seed by seed, lies above
    /// zero.
    pub(super) fn below(&self, other: &Self) -> bool {
        let differences: Vec<f64> = self.0.iter().zip(&other.0).map(|(one, other)| other - one).collect();
        let (mean, half_width) = mean_and_ci95(&differences);
        mean > half_width
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, half_width) = mean_and_ci95(&self.0);
        write!(f, "{mean:.1} \u{b1} {half_width:.1}")
    }
}

/// The means over runs, one with each seed. Quantities are those of the first run that are numbers.
pub(super) fn means(runs: &[Values]) -> Means {
    let mut means = Means::default();
    let Some(first) = runs.first() else { return means };
    for (name, _) in first.iter() {
        let samples: Vec<f64> = runs.iter().filter_map(|run| run.number(name)).collect();
        if samples.len() != runs.len() {
            continue;
        }
        let (mean, half_width) = mean_and_ci95(&samples);
        means.mean.set(name, super::significant(mean));
        // Less than a millionth of the mean is the rounding of the sum.
        let half_width = if half_width < mean.abs() * 1e-6 { 0.0 } else { super::significant(half_width) };
        means.ci95.set(name, half_width);
    }
    means
}

/// Mean, and half the width of its 95 % confidence interval; zero for a single sample, of which nothing can be said.
#[expect(clippy::cast_precision_loss, reason = "a handful of samples")]
fn mean_and_ci95(samples: &[f64]) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let freedom = n - 1.0;
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return (mean, 0.0) };
    let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / freedom;
    (mean, student.inverse_cdf(0.975) * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five samples with mean 12 and standard deviation sqrt(2.5): t(0.975, 4) = 2.7764, so 2.7764 * sqrt(2.5 / 5) = 1.9632.
    #[test]
    fn the_interval_is_students() {
        let (mean, half_width) = mean_and_ci95(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        assert!((mean - 12.0).abs() < 1e-12);
        assert!((half_width - 1.9632).abs() < 1e-4, "{half_width}");
        assert_eq!(mean_and_ci95(&[3.0]), (3.0, 0.0));
    }

    #[test]
    fn what_differs_the_same_way_with_every_seed_is_less() {
        let (low, high) = (Sample(vec![10.0, 50.0, 90.0]), Sample(vec![11.0, 51.5, 91.0]));
        assert!(low.below(&high), "by about one with each seed, although the seeds differ by 40");
        assert!(!high.below(&low));
        assert!(!low.below(&Sample(vec![9.0, 60.0, 90.0])), "by chance");
        assert!(!low.below(&low.clone()));
    }

    #[test]
    fn only_what_every_run_measured_has_a_mean() {
        let runs: Vec<Values> =
            vec![[("a_s", 1.0), ("b_s", 2.0)].into_iter().collect(), [("a_s", 3.0)].into_iter().collect()];
        let means = means(&runs);
        assert_eq!(means.mean.number("a_s"), Some(2.0));
        assert_eq!(means.mean.number("b_s"), None);
    }
}
