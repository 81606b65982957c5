//! Random scenarios: the same run with several seeds, its mean and how far that can be trusted.

use crate::reproduction::Means;
use crate::sample::Sample;
use crate::value::Values;

/// The seeds of every random experiment.
pub(crate) const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

/// The means over runs, one with each seed, of those quantities of the first run that are numbers.
/// The interval is Student's t for the mean of independent runs.
pub(crate) fn means(runs: &[Values]) -> Means {
    let mut means = Means::default();
    let Some(first) = runs.first() else { return means };
    for (name, _) in first.iter() {
        let samples: Vec<f64> = runs.iter().filter_map(|run| run.number(name)).collect();
        if samples.len() == runs.len() {
            means.push(name, Sample::from(samples));
        }
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_run_measured_has_a_mean() {
        let runs: Vec<Values> =
            vec![[("a_s", 1.0), ("b_s", 2.0)].into_iter().collect(), [("a_s", 3.0)].into_iter().collect()];
        let means = means(&runs);
        assert_eq!(means.mean.number("a_s"), Some(2.0));
        assert_eq!(means.mean.number("b_s"), None);
    }
}
