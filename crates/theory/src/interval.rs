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
        let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return Some(Self { mean, ci95: None }) };
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / freedom;
        Some(Self { mean, ci95: Some(student.inverse_cdf(0.975) * (variance / n).sqrt()) })
    }
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
    }
}
