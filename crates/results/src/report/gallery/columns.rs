//! Samples as columns of small differences, which compress well.

use std::collections::BTreeMap;

use super::exact::{Exact, multiple};
use crate::report::thinning::extremes;

/// Steps of a column from zero to its largest value: five digits.
const STEPS: f64 = 100_000.0;
/// Steps of the axis of time: a pixel at a zoom of a thousand.
const TIME_STEPS: f64 = 2_000_000.0;

/// Columns of whole numbers, each a multiple of its step.
#[derive(Default)]
pub(super) struct Columns {
    index: Vec<(usize, f64)>,
    bytes: Vec<u8>,
    /// Columns of times by their step and values: series that are sampled together share one.
    times: BTreeMap<(u64, Vec<i64>), usize>,
}

impl Columns {
    /// Adds `samples` over a horizontal axis of the length `span`: the columns of times and values.
    pub(super) fn add(&mut self, samples: &[(f64, f64)], span: f64) -> (usize, usize) {
        let time_step = if span > 0.0 { span / TIME_STEPS } else { 1.0 };
        let times: Vec<i64> = samples.iter().map(|(time, _)| multiple(*time, time_step)).collect();
        let time = self.shared(&Exact { step: time_step, multiples: times });
        let finite = samples.iter().map(|(_, value)| value.abs()).filter(|value| value.is_finite());
        let largest = finite.fold(0.0, f64::max);
        let step = if largest > 0.0 { largest / STEPS } else { 1.0 };
        let values: Vec<i64> = samples.iter().map(|(_, value)| multiple(*value, step)).collect();
        (time, self.push(&values, step))
    }

    /// Places and values of points, all of them.
    pub(super) fn points(&mut self, points: &[(f64, f64)]) -> (usize, usize) {
        let at = self.shared(&Exact::rounded(points.iter().map(|point| point.0)));
        (at, self.exact(&Exact::rounded(points.iter().map(|point| point.1))))
    }

    /// A column of its own.
    pub(super) fn exact(&mut self, values: &Exact) -> usize {
        self.push(&values.multiples, values.step)
    }

    /// The column of these values, which several lines may have.
    pub(super) fn shared(&mut self, values: &Exact) -> usize {
        let key = (values.step.to_bits(), values.multiples.clone());
        if let Some(known) = self.times.get(&key) {
            return *known;
        }
        let number = self.exact(values);
        self.times.insert(key, number);
        number
    }

    fn push(&mut self, values: &[i64], step: f64) -> usize {
        let mut before = 0;
        for value in values {
            let difference = value - before;
            before = *value;
            let mut rest = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
            while rest >= 0x80 {
                self.bytes.push(rest.to_le_bytes()[0] | 0x80);
                rest >>= 7;
            }
            self.bytes.push(rest.to_le_bytes()[0]);
        }
        self.index.push((values.len(), step));
        self.index.len() - 1
    }

    /// Number of values and step of each column, and the bytes of all.
    pub(super) fn finish(self) -> (Vec<(usize, f64)>, Vec<u8>) {
        (self.index, self.bytes)
    }
}

/// At most about `most` samples: the least and the largest of each equal part, in their order.
pub(super) fn thinned(samples: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if samples.len() <= most {
        return samples.to_vec();
    }
    let parts = (most / 2).max(1);
    samples.chunks(samples.len().div_ceil(parts)).flat_map(extremes).collect()
}

/// At most `most` samples: the mean of each part of equal length, at its end, since a sample describes the time before
/// it. Means over longer times are those of all samples.
pub(super) fn averaged(samples: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let parts = samples.chunks(samples.len().div_ceil(most.max(1)).max(1));
    let mean = |part: &[(f64, f64)]| part.iter().map(|(_, value)| value).sum::<f64>() / part.len() as f64;
    parts.filter_map(|part| Some((part.last()?.0, mean(part)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zigzag: 0, -1, 1, -2 are 0, 1, 2, 3; 300 has two bytes (Protocol Buffers, Encoding, Signed Integers).
    #[test]
    fn differences_are_zigzag_varints() {
        let mut columns = Columns::default();
        columns.push(&[0, -1, 0, -2, 148], 1.0);
        let (index, bytes) = columns.finish();
        assert_eq!((index, bytes), (vec![(5, 1.0)], vec![0, 1, 2, 3, 0xac, 0x02]));
    }

    #[test]
    fn series_of_equal_times_share_a_column_and_peaks_survive() {
        let mut columns = Columns::default();
        let mut samples: Vec<(f64, f64)> = (0..10_000).map(|n| (f64::from(n), 1.0)).collect();
        samples[4_321].1 = 7.0;
        let kept = thinned(&samples, 500);
        let (first, values) = columns.add(&kept, 10_000.0);
        let again = columns.add(&kept, 10_000.0);
        assert_eq!((first, values, again), (0, 1, (0, 2)));
        assert!(kept.len() <= 502 && kept.contains(&(4_321.0, 7.0)), "{}", kept.len());
    }

    /// 1000 s of a rate that is 8 in one of four samples: the least and the largest of four would have a mean of 4.
    #[test]
    fn means_of_parts_keep_the_mean() {
        let samples: Vec<(f64, f64)> =
            (1..=10_000).map(|n| (f64::from(n) / 10.0, if n % 4 == 0 { 8.0 } else { 0.0 })).collect();
        let kept = averaged(&samples, 6_000);
        assert_eq!((kept.len(), kept[0], kept[4_999]), (5_000, (0.2, 0.0), (1_000.0, 8.0 / 2.0)));
        let mean = kept.iter().map(|(_, value)| value).sum::<f64>() / 5_000.0;
        assert!((mean - 2.0).abs() < 1e-12, "{mean}");
        assert_eq!(averaged(&samples[..3], 400), samples[..3].to_vec());
        assert_eq!(averaged(&[], 400), Vec::new());
    }

    #[test]
    fn what_is_no_number_is_zero() {
        assert_eq!((multiple(f64::NAN, 1.0), multiple(2.6, 1.0), multiple(-2.6, 1.0)), (0, 3, -3));
    }
}
