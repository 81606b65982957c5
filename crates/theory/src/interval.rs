//! The mean of independent runs and its confidence interval by Student's t, for a few samples.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean and the half width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mean {
    /// Mean of the samples.
    pub mean: f64,
    /// Half width of the 95 % confidence interval (Student's t); `None` for a single sample.
    pub ci95: Option<f64>,
}

impl Mean {
    /// The mean of `samples`. `None` for no samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "numbers of runs")]
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() {
            return None;
        }
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let freedom = n - 1.0;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        Some(Self { mean, ci95: student(freedom).map(|t| t * (squares / freedom / n).sqrt()) })
    }
}

/// Standard errors in the half width of a 95 % interval: Student's t of 0.975. `None` without a degree of freedom.
#[must_use]
pub fn student(freedom: f64) -> Option<f64> {
    Some(StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five samples with mean 12 and standard deviation sqrt(2.5): t(0.975, 4) = 2.7764, so
    /// 2.7764 * sqrt(2.5 / 5) = 1.9632.
    #[test]
    fn the_interval_is_students() {
        let Mean { mean, ci95 } = Mean::of(&[10.0, 11.0, 12.0, 13.0, 14.0]).unwrap();
        assert!((mean - 12.0).abs() < 1e-12);
        assert!((ci95.unwrap() - 1.9632).abs() < 1e-4, "{ci95:?}");
        assert_eq!(Mean::of(&[3.0]), Some(Mean { mean: 3.0, ci95: None }));
        assert_eq!(Mean::of(&[]), None);
        let tabulated = [12.706, 4.303, 3.182];
        assert!((1..).zip(tabulated).all(|(freedom, t)| (student(f64::from(freedom)).unwrap() - t).abs() < 5e-4));
        assert_eq!(student(0.0), None);
    }
}
