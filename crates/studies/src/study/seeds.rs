//! The seeds of each point: a number, or as many as make an interval narrow.

use super::statistics::Estimate;
use crate::error::Error;
use crate::variant::check_seeds;

/// Seeds until half of a measure's 95 % interval is at most a share of its mean.
#[derive(Clone, PartialEq, Debug)]
pub struct Until {
    /// The measure, such as `download_bps`. A point where no run has it keeps its first seeds.
    pub measure: String,
    /// The share of the mean.
    pub share: f64,
    /// The first seeds of a point, not more than `at_most`.
    pub at_least: u64,
    /// The most seeds of a point.
    pub at_most: u64,
}

/// The seeds of each point, from that of the scenario on.
#[derive(Clone, PartialEq, Debug)]
pub enum Seeds {
    /// A number of seeds.
    Count(u64),
    /// Until an interval is narrow enough.
    Until(Until),
}

impl Until {
    /// The measure where none is given, over an access line or over a network without one.
    #[must_use]
    pub fn usual_measure(over_line: bool) -> &'static str {
        if over_line { "download_bps" } else { "goodput_bps" }
    }

    /// The least number of 100 intervals of normal samples that hold the mean, whatever their spread. It grows with the
    /// first seeds.
    fn least_coverage(&self) -> u32 {
        match self.at_least {
            0..=3 => 87,
            4..=9 => 91,
            _ => 93,
        }
    }

    /// The seeds of a point after a round with `wanted` of them, which gave these samples: half as many more, unless
    /// the interval is narrow.
    pub(super) fn after(&self, wanted: u64, samples: &[f64]) -> u64 {
        let is_narrow = Estimate::of(samples).is_none_or(|estimate| estimate.is_within(self.share));
        if is_narrow { wanted } else { (wanted + (wanted / 2).max(1)).min(self.at_most) }
    }
}

impl Seeds {
    /// The measure that decides about the number of seeds, if one does.
    pub(super) fn measure(&self) -> Option<&String> {
        match self {
            Self::Count(_) => None,
            Self::Until(until) => Some(&until.measure),
        }
    }

    /// Refuses more seeds from the first on than there are.
    pub(super) fn check(&self, first: u64) -> Result<(), Error> {
        check_seeds(
            first,
            match self {
                Self::Count(count) => *count,
                Self::Until(until) => until.at_most,
            },
        )
    }

    /// In a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Count(1) => "One seed for each point.".to_owned(),
            Self::Count(count) => format!("Means of {count} seeds, with 95 % intervals."),
            Self::Until(until) => format!(
                "Means with 95 % intervals. A point has {} to {} seeds, until the half-width of {} is at most {} of \
                 its mean. Since it stops where the spread looks small, its interval holds the mean in {} to 95 of \
                 100 cases of normal samples, and in far fewer where a few runs differ from the others, as by an \
                 outage.",
                until.at_least,
                until.at_most,
                until.measure,
                lastmile_results::format::percent(until.share),
                until.least_coverage()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng as _, SeedableRng as _};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    fn until(share: f64, at_least: u64) -> Until {
        Until { measure: "download_bps".to_owned(), share, at_least, at_most: 64 }
    }

    /// Nine runs agree, as without an outage, and the tenth has nothing.
    #[test]
    fn a_point_gets_half_as_many_seeds_more() {
        let samples = [[1.0; 9].as_slice(), &[0.0]].concat();
        assert_eq!(until(0.05, 10).after(10, &samples[..9]), 10);
        let next = |wanted: u64| until(0.05, 10).after(wanted, &samples);
        assert_eq!([10, 15, 22, 33, 49, 64].map(next), [15, 22, 33, 49, 64, 64]);
        assert_eq!(until(0.05, 10).after(10, &[]), 10, "no run has the measure");
    }

    /// Samples with a mean of 1 and a standard deviation of some 2 shares, for which fewest intervals hold the mean.
    #[test]
    fn intervals_hold_the_mean_of_normal_samples_as_often_as_is_said() {
        const STUDIES: u32 = 10_000;
        for (at_least, spread) in [(2, 1.5), (4, 1.75), (10, 2.0)] {
            let until = until(0.02, at_least);
            let mut random = Pcg64Mcg::seed_from_u64(1);
            let mut unit = || -> f64 { (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 };
            let mut normal = || (-2.0 * (1.0 - unit()).ln()).sqrt() * (std::f64::consts::TAU * unit()).cos();
            let mut held = 0;
            for _ in 0..STUDIES {
                let (mut samples, mut wanted) = (Vec::new(), at_least);
                while (samples.len() as u64) < wanted {
                    samples.resize_with(wanted as usize, || 1.0 + spread * until.share * normal());
                    wanted = until.after(wanted, &samples);
                }
                let Estimate { mean, ci95, .. } = Estimate::of(&samples).unwrap();
                held += u32::from((mean - 1.0).abs() <= ci95.unwrap());
            }
            let (held, least) = (f64::from(held) / f64::from(STUDIES) * 100.0, f64::from(until.least_coverage()));
            assert!((least..least + 1.5).contains(&held), "{at_least}: {held} of 100, {least} are said");
            let said = Seeds::Until(until).in_words();
            assert!(
                said.contains(&format!("holds the mean in {least} to 95 of 100 cases of normal samples")),
                "{said}"
            );
        }
    }
}
