//! The peaks of a queue of cells: the most between two times at which it had drained.

use super::trial::Trial;

/// Peaks of a queue, in cells.
pub(super) struct Peaks(Vec<f64>);

/// The peaks of a link's queue: a queue has drained with at most `drained` cells, and a peak has more than `least`.
pub(super) fn of(run: &Trial, link: &str, drained: f64, least: f64) -> Peaks {
    let samples: Vec<f64> = run.samples("queue_cells", link).map(|(_, cells)| cells).collect();
    Peaks::between(&samples, drained, least)
}

/// Percent of all samples of a link's queue for which `is_so` holds.
pub(super) fn share_pct(run: &Trial, link: &str, is_so: impl Fn(f64) -> bool) -> f64 {
    let samples: Vec<f64> = run.samples("queue_cells", link).map(|(_, cells)| cells).collect();
    100.0 * samples.iter().filter(|cells| is_so(**cells)).count() as f64 / samples.len().max(1) as f64
}

impl Peaks {
    fn between(samples: &[f64], drained: f64, least: f64) -> Self {
        let between = samples.split(|cells| *cells <= drained);
        Self(between.map(|cells| cells.iter().copied().fold(0.0, f64::max)).filter(|peak| *peak > least).collect())
    }

    pub(super) fn count(&self) -> f64 {
        self.0.len() as f64
    }

    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(super) fn max(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// Percent of the peaks that have at least `cells`.
    pub(super) fn reaching_pct(&self, cells: f64) -> f64 {
        100.0 * self.0.iter().filter(|peak| **peak >= cells).count() as f64 / self.0.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_lies_between_two_times_at_which_the_queue_had_drained() {
        let samples = [0.0, 400.0, 700.0, 500.0, 10.0, 200.0, 0.0, 0.0, 300.0, 290.0];
        let peaks = Peaks::between(&samples, 20.0, 283.0);
        assert_eq!(peaks.0, [700.0, 300.0], "200 cells are no peak");
        assert!((peaks.reaching_pct(600.0) - 50.0).abs() < 1e-9);
        assert!(Peaks::between(&[0.0, 5.0], 20.0, 283.0).0.is_empty());
    }
}
