//! Round trips of a ping: their mean, extremes, shares and mode.

use std::fmt;

use super::trial::Trial;

/// Round trips, in ms, in order of size.
#[derive(Clone, Default)]
pub(crate) struct RoundTrips(Vec<f64>);

impl RoundTrips {
    /// The round trips of a ping that departed from one time to another.
    pub(crate) fn of(trial: &Trial, ping: &str, from_s: f64, to_s: f64) -> Self {
        Self::new(trial.round_trips(ping).filter(|(at, _)| (from_s..to_s).contains(at)).map(|(_, took)| took))
    }

    /// The round trips of a ping in several runs together.
    pub(crate) fn all<'a>(runs: impl IntoIterator<Item = &'a Trial>, ping: &str, from_s: f64, to_s: f64) -> Self {
        Self::new(runs.into_iter().flat_map(|trial| Self::of(trial, ping, from_s, to_s).0))
    }

    fn new(times: impl Iterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(crate) fn min(&self) -> f64 {
        self.0.first().copied().unwrap_or_default()
    }

    pub(crate) fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }

    /// The time that this share of them does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let place = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// Percent that took at most `ms`.
    pub(crate) fn within_pct(&self, ms: f64) -> f64 {
        100.0 * self.0.partition_point(|time| *time <= ms) as f64 / self.0.len().max(1) as f64
    }

    /// The middle of the fullest millisecond.
    pub(crate) fn mode(&self) -> f64 {
        let mut best = (0, 0.0);
        let mut rest = self.0.as_slice();
        while let Some(first) = rest.first() {
            let millisecond = first.floor();
            let count = rest.partition_point(|time| time.floor() <= millisecond);
            if count > best.0 {
                best = (count, millisecond + 0.5);
            }
            rest = &rest[count..];
        }
        best.1
    }
}

impl fmt::Display for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.1}, at most {:.1} ms", self.mean(), self.max())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten times: 1.2, 2.1, 2.2, 2.3, and 5 to 10.
    #[test]
    fn round_trips_tell_their_shares_and_where_most_of_them_are() {
        let trips = RoundTrips::new([5.0, 2.1, 2.2, 6.0, 1.2, 7.0, 2.3, 8.0, 9.0, 10.0].into_iter());
        assert_eq!(trips.count(), 10);
        let expected = [
            (trips.min(), 1.2),
            (trips.max(), 10.0),
            (trips.mean(), 5.28),
            (trips.quantile(0.1), 1.2),
            (trips.quantile(0.5), 5.0),
            (trips.quantile(0.99), 10.0),
            (trips.within_pct(1.0), 0.0),
            (trips.within_pct(2.3), 40.0),
            (trips.within_pct(9.9), 90.0),
            // The three between 2 and 3.
            (trips.mode(), 2.5),
        ];
        for (place, (ours, expected)) in expected.into_iter().enumerate() {
            assert!((ours - expected).abs() < 1e-9, "{place}: {ours}, not {expected}");
        }
    }
}
