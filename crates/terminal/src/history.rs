//! The values of series over the latest snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::snapshot::Snapshot;

/// Values kept for each series: more than the columns of wide terminals.
const LENGTH: usize = 1024;

/// The values of each series, by title of its panel and its own label.
#[derive(Default, Debug)]
pub(crate) struct History {
    values: BTreeMap<(String, String), VecDeque<Option<f64>>>,
    times: VecDeque<Instant>,
}

impl History {
    /// Adds the values of `snapshot`. A series without a value in it gets a gap; one that has only
    /// gaps is forgotten.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, now: Instant) {
        push(&mut self.times, now);
        let columns = self.times.len();
        for values in self.values.values_mut() {
            push(values, None);
        }
        for panel in &snapshot.panels {
            for series in &panel.series {
                let values = self.values.entry((panel.title.clone(), series.label.clone())).or_default();
                // A new series begins now.
                values.resize(columns, None);
                if let Some(last) = values.back_mut() {
                    *last = series.value.filter(|value| value.is_finite());
                }
            }
        }
        self.values.retain(|_, values| values.iter().any(Option::is_some));
    }

    /// The latest `columns` values, the newest last. A gap is `None`.
    pub(crate) fn latest(&self, panel: &str, label: &str, columns: usize) -> Vec<Option<f64>> {
        let Some(values) = self.values.get(&(panel.to_owned(), label.to_owned())) else { return Vec::new() };
        values.range(values.len().saturating_sub(columns)..).copied().collect()
    }

    /// The mean interval between snapshots: the time of one column.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let (first, last) = (self.times.front()?, self.times.back()?);
        let intervals = u32::try_from(self.times.len() - 1).ok().filter(|count| *count > 0)?;
        Some(last.duration_since(*first) / intervals)
    }
}

fn push<T>(ring: &mut VecDeque<T>, value: T) {
    if ring.len() == LENGTH {
        ring.pop_front();
    }
    ring.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Panel, Series, Unit};

    fn snapshot(values: &[(&str, Option<f64>)]) -> Snapshot {
        let series = values.iter().map(|(label, value)| Series::new(*label, Unit::Count, *value)).collect();
        Snapshot { panels: vec![Panel::new("up", series)], ..Snapshot::default() }
    }

    #[test]
    fn series_that_come_and_go_keep_their_columns() {
        let mut history = History::default();
        let begin = Instant::now();
        for (index, values) in [
            &[("rate", Some(1.0))] as &[_],
            &[("rate", None), ("delay", Some(5.0))],
            &[("delay", Some(6.0))],
            &[("rate", Some(f64::NAN)), ("delay", None)],
        ]
        .iter()
        .enumerate()
        {
            history.add(&snapshot(values), begin + Duration::from_millis(250) * u32::try_from(index).unwrap());
        }
        assert_eq!(history.latest("up", "rate", 9), [Some(1.0), None, None, None]);
        assert_eq!(history.latest("up", "delay", 9), [None, Some(5.0), Some(6.0), None]);
        assert_eq!(history.latest("up", "delay", 2), [Some(6.0), None]);
        assert_eq!(history.latest("down", "delay", 2), []);
        assert_eq!(history.interval(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn memory_is_bounded_and_old_series_are_forgotten() {
        let mut history = History::default();
        history.add(&snapshot(&[("old", Some(1.0))]), Instant::now());
        for _ in 0..2 * LENGTH {
            history.add(&snapshot(&[("new", Some(1.0))]), Instant::now());
        }
        assert_eq!(history.latest("up", "new", usize::MAX).len(), LENGTH);
        assert_eq!(history.values.len(), 1);
        assert_eq!(history.times.len(), LENGTH);
    }
}
