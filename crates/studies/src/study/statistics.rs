//! Means over seeds, and paired differences between two values of a key.
//!
//! All points of a study have the same seeds, so two runs that differ in one key have the same random numbers. The
//! interval of their difference is that of the paired t test.

use std::collections::BTreeMap;

use lastmile_theory::interval::Mean;

/// The mean of a measure at a point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean over the seeds.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; `None` for a single seed.
    pub ci95: Option<f64>,
    /// Number of seeds.
    pub seeds: usize,
}

impl Estimate {
    /// The estimate of samples; `None` for none.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let Mean { mean, ci95 } = Mean::of(samples)?;
        Some(Self { mean, ci95, seeds: samples.len() })
    }

    /// True if half the interval is at most this share of the mean. A single seed has no interval.
    #[must_use]
    pub fn is_within(&self, share: f64) -> bool {
        self.ci95.is_some_and(|ci95| ci95 <= share * self.mean.abs())
    }
}

/// The difference `other - one` over the seeds that both have; `None` without such a seed.
#[must_use]
pub fn paired(one: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Option<Estimate> {
    let differences: Vec<f64> = other.iter().filter_map(|(seed, value)| Some(value - one.get(seed)?)).collect();
    Estimate::of(&differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Differences 1 and 3: mean 2, standard error 1, t(0.975, 1) = 12.706. Seed 9 is in one of them only.
    #[test]
    fn differences_are_those_of_equal_seeds() {
        let one = BTreeMap::from([(1, 10.0), (2, 20.0), (9, 0.0)]);
        let other = BTreeMap::from([(1, 11.0), (2, 23.0)]);
        let found = paired(&one, &other).unwrap();
        assert_eq!((found.mean, found.seeds), (2.0, 2));
        assert!((found.ci95.unwrap() - 12.706).abs() < 1e-3, "{found:?}");
        assert_eq!(paired(&one, &BTreeMap::new()), None);
    }

    #[test]
    fn one_seed_is_never_narrow_enough() {
        let one = Estimate::of(&[1.0]).unwrap();
        assert!(!one.is_within(1.0) && one.ci95.is_none());
        assert!(Estimate::of(&[1.0, 1.0]).unwrap().is_within(0.0));
        assert!(!Estimate::of(&[1.0, 2.0]).unwrap().is_within(0.5));
    }
}
