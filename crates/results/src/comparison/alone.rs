//! The downloads without other traffic, with which rows are compared.

use crate::goodput::of_direction;
use crate::schema::Summary;

/// The goodput of all downloads of a run without other traffic, over any time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Alone {
    duration_s: f64,
    /// Over the whole run.
    whole_bps: f64,
    /// From, to, and the goodput between.
    phases: Vec<(f64, f64, f64)>,
}

impl Alone {
    /// The downloads of this run.
    #[must_use]
    pub fn of(summary: &Summary) -> Self {
        let phases = summary.phases.iter();
        let phases = phases.map(|phase| (phase.from_s, phase.to_s, of_direction(summary, Some(phase), "down")));
        Self {
            duration_s: summary.run.duration_s,
            whole_bps: of_direction(summary, None, "down"),
            phases: phases.collect(),
        }
    }

    /// The goodput between two times, bit/s: the mean over the phases between, or that of the whole run. `None` if the
    /// downloads had no part of that time.
    #[must_use]
    pub fn bps(&self, (from_s, to_s): (f64, f64)) -> Option<f64> {
        if self.phases.is_empty() || (from_s <= 0.0 && to_s >= self.duration_s) {
            return Some(self.whole_bps);
        }
        let within = self.phases.iter().map(|(from, to, bps)| ((to.min(to_s) - from.max(from_s)).max(0.0), bps));
        let (bits, seconds) = within.fold((0.0, 0.0), |(bits, sum), (span, bps)| (bits + span * bps, sum + span));
        (seconds > 0.0).then(|| bits / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow start at first: 3 Mbit/s for 5 s, then 15 Mbit/s.
    #[test]
    fn the_baseline_is_that_of_the_measured_time() {
        let phases = vec![(0.0, 5.0, 3e6), (5.0, 10.0, 15e6)];
        let alone = Alone { duration_s: 10.0, whole_bps: 9e6, phases };
        assert_eq!(alone.bps((5.0, 10.0)), Some(15e6));
        assert_eq!(alone.bps((4.0, 8.0)), Some(12e6));
        assert_eq!(alone.bps((0.0, 10.0)), Some(9e6));
        assert_eq!(alone.bps((10.0, 12.0)), None);
        assert_eq!(Alone { phases: Vec::new(), ..alone }.bps((5.0, 10.0)), Some(9e6));
    }
}
