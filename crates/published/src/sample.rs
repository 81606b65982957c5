//! One quantity, measured with each seed: its mean, its 95 % confidence interval, and comparisons seed by seed.

use std::fmt;

use lastmile_theory::interval::Mean;

/// One quantity, measured with each seed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sample(Vec<f64>);

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval; zero for a single measurement.
    pub half_width: f64,
}

impl From<Vec<f64>> for Sample {
    fn from(values: Vec<f64>) -> Self {
        Self(values)
    }
}

impl Sample {
    /// A figure that was measured once, or that a publication prints.
    #[must_use]
    pub fn single(value: f64) -> Self {
        Self(vec![value])
    }

    /// True when nothing was measured.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.estimate().mean
    }

    /// The largest value of all seeds.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Mean and interval: Student's t for the mean of independent runs.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let Some(Mean { mean, ci95 }) = Mean::of(&self.0) else {
            return Estimate { mean: 0.0, half_width: 0.0 };
        };
        let half_width = ci95.unwrap_or(0.0);
        // Less than a millionth of the largest value is the rounding of the sum.
        let largest = self.0.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
        Estimate { mean, half_width: if half_width < largest * 1e-6 { 0.0 } else { half_width } }
    }

    /// This and another, seed by seed. A single measurement stands for each seed.
    #[must_use]
    pub fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let of = |sample: &Self, place: usize| sample.0.get(place).or(sample.0.first()).copied();
        let count = match (self.0.len(), other.0.len()) {
            (0, _) | (_, 0) => 0,
            (1, count) | (count, 1) => count,
            (one, another) => one.min(another),
        };
        (0..count).filter_map(|place| Some(combine(of(self, place)?, of(other, place)?))).collect::<Vec<_>>().into()
    }

    /// The difference from another, seed by seed.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        self.with(other, |one, other| one - other)
    }

    /// The ratio to another, seed by seed.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        self.with(other, |one, other| one / other)
    }

    /// The larger of this and another, seed by seed.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.with(other, f64::max)
    }

    /// Every value changed in the same manner.
    #[must_use]
    pub fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        Self(self.0.iter().map(|value| of(*value)).collect())
    }
}

impl Estimate {
    /// True when the whole interval lies above `least`.
    #[must_use]
    pub fn is_above(self, least: f64) -> bool {
        self.mean - self.half_width > least
    }

    /// True when no part of the interval lies above `most`.
    #[must_use]
    pub fn is_at_most(self, most: f64) -> bool {
        self.mean + self.half_width <= most
    }

    /// True when the whole interval lies below `most`.
    #[must_use]
    pub fn is_below(self, most: f64) -> bool {
        self.mean + self.half_width < most
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.estimate().fmt(f)
    }
}

/// With two significant digits of the interval, at least; three decimals at most.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(if self.half_width >= 1.0 || self.mean.abs() >= 100.0 {
            1
        } else if self.mean.abs() >= 10.0 {
            2
        } else {
            3
        });
        let Self { mean, half_width } = self;
        write!(f, "{mean:.decimals$} \u{b1} {half_width:.decimals$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five samples with mean 12 and standard deviation sqrt(2.5): t(0.975, 4) = 2.7764, so 2.7764
    /// * sqrt(2.5 / 5) = 1.9632.
    #[test]
    fn the_interval_is_students() {
        let Estimate { mean, half_width } = Sample(vec![10.0, 11.0, 12.0, 13.0, 14.0]).estimate();
        assert!((mean - 12.0).abs() < 1e-12);
        assert!((half_width - 1.9632).abs() < 1e-4, "{half_width}");
        assert_eq!(Sample::single(3.0).estimate(), Estimate { mean: 3.0, half_width: 0.0 });
    }

    /// Student 1908, "The probable error of a mean": additional hours of sleep of ten patients by
    /// two soporifics. Textbooks give the mean difference as 1.58 h and its 95 % confidence
    /// interval as 0.70 to 2.46 h.
    #[test]
    fn the_interval_of_a_difference_is_the_textbooks() {
        let first = Sample(vec![0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]);
        let second = Sample(vec![1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]);
        let Estimate { mean, half_width } = second.minus(&first).estimate();
        assert!((mean - 1.58).abs() < 1e-9);
        assert!((mean - half_width - 0.700_114).abs() < 1e-5, "{half_width}");
        assert!((mean + half_width - 2.459_886).abs() < 1e-5, "{half_width}");
    }

    #[test]
    fn differences_are_taken_seed_by_seed() {
        let (low, high) = (Sample(vec![10.0, 50.0, 90.0]), Sample(vec![11.0, 51.5, 91.0]));
        let lead = high.minus(&low).estimate();
        assert!(lead.is_above(0.0), "by about one with each seed, although the seeds differ by 40");
        assert!(!lead.is_above(1.0) && !lead.is_below(1.0), "one lies in the interval");
        assert!(!Sample(vec![9.0, 60.0, 90.0]).minus(&low).estimate().is_above(0.0), "by chance");
        assert_eq!(low.minus(&Sample::single(10.0)), Sample(vec![0.0, 40.0, 80.0]), "one figure for each seed");
        assert!(low.minus(&Sample::default()).is_empty());
    }
}
