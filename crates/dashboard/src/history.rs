//! The last hour of all series, in memory of a fixed size.
//!
//! A series is a column with a slot for each second of an hour. There are at most [`MOST_SERIES`]; a
//! series without a value for an hour makes way. So the memory has a bound, 15 MB, that neither the
//! running time nor the number of policies moves.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::report::{Mark, Report};

/// Reports that are kept: an hour of one a second.
pub const REPORTS: usize = 3600;

/// Series that are kept.
pub const MOST_SERIES: usize = 1024;

/// Marks that are kept.
pub const MOST_MARKS: usize = 100;

/// The last hour.
#[derive(Debug)]
pub struct History {
    /// Times of the reports, by slot.
    times: Box<[f64]>,
    columns: BTreeMap<Key, Column>,
    /// Reports so far.
    count: u64,
    /// Values that found no column.
    left_out: u64,
    marks: VecDeque<Mark>,
}

/// Group, chart and label.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
struct Key(String, &'static str, String);

#[derive(Debug)]
struct Column {
    values: Box<[f32]>,
    /// The number of the last report with a value.
    latest: u64,
}

/// The description in front of the numbers.
#[derive(Serialize)]
struct Head<'a> {
    reports: usize,
    columns: Vec<&'a Key>,
    marks: &'a VecDeque<Mark>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            times: vec![0.0; REPORTS].into(),
            columns: BTreeMap::new(),
            count: 0,
            left_out: 0,
            marks: VecDeque::new(),
        }
    }
}

impl History {
    /// Adds a report, in place of the oldest.
    #[expect(clippy::cast_precision_loss, reason = "milliseconds fit for 285 000 years")]
    pub fn push(&mut self, report: &Report) {
        let slot = (self.count % REPORTS as u64) as usize;
        self.count += 1;
        self.times[slot] = report.at_ms as f64;
        let oldest = self.count.saturating_sub(REPORTS as u64);
        self.columns.retain(|_, column| column.latest > oldest);
        self.columns.values_mut().for_each(|column| column.values[slot] = f32::NAN);
        for group in &report.groups {
            for chart in &group.charts {
                for series in &chart.series {
                    let Some(value) = series.value else { continue };
                    self.set(Key(group.id.clone(), chart.title, series.label.clone()), slot, value);
                }
            }
        }
    }

    fn set(&mut self, key: Key, slot: usize, value: f32) {
        if !self.columns.contains_key(&key) && self.columns.len() >= MOST_SERIES {
            self.left_out += 1;
            return;
        }
        let latest = self.count;
        let column =
            self.columns.entry(key).or_insert_with(|| Column { values: vec![f32::NAN; REPORTS].into(), latest });
        column.values[slot] = value;
        column.latest = latest;
    }

    /// Adds a mark, and forgets the oldest if there are too many.
    pub fn mark(&mut self, mark: Mark) {
        self.marks.push_back(mark);
        if self.marks.len() > MOST_MARKS {
            self.marks.pop_front();
        }
    }

    /// Values that were left out, since there were too many series.
    #[must_use]
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// All of it for a page, in the byte order of little-endian machines: the length of a head (u32), the
    /// head as JSON, padded with spaces so that what follows begins at a multiple of eight bytes, the
    /// times of all reports in milliseconds (f64), oldest first, and for each column of the head its
    /// values (f32), NaN for none.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let reports = usize::try_from(self.count).map_or(REPORTS, |count| count.min(REPORTS));
        let first = if reports < REPORTS { 0 } else { (self.count % REPORTS as u64) as usize };
        let head = Head { reports, columns: self.columns.keys().collect(), marks: &self.marks };
        let mut head = serde_json::to_vec(&head).expect("numbers and strings");
        head.resize((head.len() + 4).next_multiple_of(8) - 4, b' ');
        let mut out = Vec::with_capacity(4 + head.len() + reports * (8 + 4 * self.columns.len()));
        out.extend(u32::try_from(head.len()).expect("at most a thousand names").to_le_bytes());
        out.extend(head);
        let in_order = |slots: usize| (first..slots).chain(0..first);
        in_order(reports).for_each(|slot| out.extend(self.times[slot].to_le_bytes()));
        for column in self.columns.values() {
            in_order(reports).for_each(|slot| out.extend(column.values[slot].to_le_bytes()));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::{Chart, Group, Unit};

    fn report(at_ms: u64, labels: impl IntoIterator<Item = (String, f64)>) -> Report {
        let mut chart = Chart::new("rate", Unit::BitsPerSecond);
        labels.into_iter().for_each(|(label, value)| chart.push(label, Some(value)));
        let group = Group { id: "up".into(), title: "up: 1 Mbit/s".into(), charts: vec![chart] };
        Report { at_ms, groups: vec![group], ..Report::default() }
    }

    /// The head, the times, and the columns.
    fn decoded(bytes: &[u8]) -> (Value, Vec<f64>, Vec<Vec<f32>>) {
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let head: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        let reports = head["reports"].as_u64().unwrap() as usize;
        assert!((4 + length).is_multiple_of(8));
        let (times, values) = bytes[4 + length..].split_at(8 * reports);
        let times = times.chunks(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect();
        let values: Vec<f32> = values.chunks(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect();
        let columns = values.chunks(reports.max(1)).map(<[f32]>::to_vec).collect();
        (head, times, columns)
    }

    #[test]
    fn an_hour_is_kept_in_order_and_a_missing_value_is_none() {
        let mut history = History::default();
        history.push(&report(0, [("all".into(), 1.0)]));
        history.push(&report(1000, [("quick".into(), 5.0)]));
        let (head, times, columns) = decoded(&history.encode());
        assert_eq!(head["columns"], serde_json::json!([["up", "rate", "all"], ["up", "rate", "quick"]]));
        assert_eq!(times, [0.0, 1000.0]);
        // Debug shows NaN, which equals nothing.
        assert_eq!(format!("{columns:?}"), "[[1.0, NaN], [NaN, 5.0]]");
        for second in 2..5000 {
            history.push(&report(second * 1000, [("quick".into(), second as f64)]));
        }
        let (head, times, columns) = decoded(&history.encode());
        // The other series has had no value for an hour.
        assert_eq!(head["columns"], serde_json::json!([["up", "rate", "quick"]]));
        assert_eq!((times.len(), times[0], times[REPORTS - 1]), (REPORTS, 1_400_000.0, 4_999_000.0));
        assert!(columns[0].iter().zip(&times).all(|(value, at)| (f64::from(*value) * 1000.0 - at).abs() < 0.5));
    }

    /// Hours with a policy whose classes have other names every second.
    #[test]
    fn no_number_of_series_and_reports_takes_more_than_the_bound() {
        let mut history = History::default();
        for second in 0..3 * 3600_u64 {
            let labels = (0..3).map(|class| (format!("class {}", 3 * second + class), 1.0));
            history.push(&report(second * 1000, labels));
            history.mark(Mark { at_ms: second * 1000, words: "a policy".into() });
        }
        assert_eq!(history.columns.len(), MOST_SERIES);
        assert!(history.left_out() > 0);
        assert_eq!(history.marks.len(), MOST_MARKS);
        let names: usize = 64 * MOST_SERIES;
        assert!(history.encode().len() < 8 * REPORTS + 4 * REPORTS * MOST_SERIES + names + 64 * MOST_MARKS);
    }
}
