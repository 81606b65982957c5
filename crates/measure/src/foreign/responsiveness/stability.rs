//! When a series of values has become stable, by draft-ietf-ippm-responsiveness-09, section 5.4.
//!
//! Values arrive once each interval of [`INTERVAL`]. The first moving average is that of the first four values. A
//! series is stable once the standard deviation of four moving averages is below 5 % of the newest: with the seventh
//! value at the earliest.

use std::collections::VecDeque;
use std::time::Duration;

/// Time between two values (`ID`): that of version -08. Version -09 has 5 s "for now", with which a test of two
/// directions needs more than a minute.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Values of a moving average, and moving averages that are compared (`MAD`).
pub const MOVING_AVERAGE: usize = 4;
/// Largest standard deviation as a share of the moving average (`SDT`).
pub const TOLERANCE: f64 = 0.05;

/// The latest values and their moving averages.
#[derive(Clone, Default, Debug)]
pub struct Stability {
    values: VecDeque<f64>,
    averages: VecDeque<f64>,
}

impl Stability {
    /// Adds the value of an interval: whether the series is stable now.
    pub fn add(&mut self, value: f64) -> bool {
        push(&mut self.values, value);
        if self.values.len() == MOVING_AVERAGE {
            push(&mut self.averages, mean(self.values.make_contiguous()));
        }
        agree(self.averages.make_contiguous())
    }
}

/// Whether these are enough values, and their standard deviation is below the tolerance of the newest.
#[must_use]
pub fn agree(values: &[f64]) -> bool {
    values.len() == MOVING_AVERAGE && values.last().is_some_and(|newest| deviation(values) < TOLERANCE * newest)
}

fn push(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == MOVING_AVERAGE {
        values.pop_front();
    }
    values.push_back(value);
}

#[expect(clippy::cast_precision_loss, reason = "at most four values")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[expect(clippy::cast_precision_loss, reason = "at most four values")]
fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stable_at(values: &[f64]) -> Option<usize> {
        let mut stability = Stability::default();
        values.iter().position(|&value| stability.add(value))
    }

    /// The fourth value completes the first average, and the seventh the fourth average.
    #[test]
    fn constant_values_are_stable_after_four_whole_averages() {
        assert_eq!(stable_at(&[10.0; 6]), None);
        assert_eq!(stable_at(&[10.0; 9]), Some(6));
    }

    /// The averages of four values are 7.5, 10, 10 and 10 with the seventh value: their deviation is 1.08, above 5 % of
    /// 10. With the eighth value 7.5 has left them.
    #[test]
    fn a_ramp_is_stable_once_it_has_left_the_averages() {
        assert_eq!(stable_at(&[0.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0]), Some(7));
    }

    /// The averages are 25 and zeros. With zeros in front of the first value, four averages would be 25.
    #[test]
    fn a_burst_at_the_start_is_not_stable() {
        let mut values = [0.0; 12];
        values[0] = 100.0;
        assert_eq!(stable_at(&values), None);
    }

    #[test]
    fn values_that_grow_or_are_zero_are_not_stable() {
        let growing: Vec<f64> = (0..20).map(|n| 1.3_f64.powi(n)).collect();
        assert_eq!(stable_at(&growing), None);
        assert_eq!(stable_at(&[0.0; 20]), None);
    }

    /// Each average of four values is 95: the fourth one comes with the seventh value.
    #[test]
    fn noise_within_the_average_does_not_count() {
        let values: Vec<f64> = [110.0, 90.0, 100.0, 80.0].into_iter().cycle().take(12).collect();
        assert_eq!(stable_at(&values), Some(6));
    }
}
