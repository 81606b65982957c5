//! Values counted in buckets: mean and quantiles to three significant digits.
//!
//! Published: the buckets of HdrHistogram (G. Tene, hdrhistogram.org) with three digits. Below 2048 each value has a
//! bucket; from there on each power of two is divided into 1024 buckets.
//! Differs: a block of 256 buckets exists once a value falls into one of them. The crate `hdrhistogram` has an array
//! from zero to the largest value: 140 kB for a delay of 80 ms, which a run of a thousand flows clears and reads two
//! thousand times. The largest value is exact, and no result is larger. A property test compares all results with those
//! of the crate.
//!
//! Cost: a shift and two additions a value; 2 kB a block, of which delays within a factor of two take at most five.

use hdrhistogram::Histogram;

/// Buckets of a power of two, as a power of two.
const DIVISION: u32 = 10;
/// Buckets of a block.
const BLOCK: usize = 256;

/// A distribution of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Buckets {
    blocks: Vec<Option<Box<[u64; BLOCK]>>>,
    count: u64,
    max: u64,
}

/// Index of the bucket of a value.
#[inline]
fn index(value: u64) -> usize {
    let shift = (u64::BITS - 1 - DIVISION).saturating_sub(value.leading_zeros());
    ((shift as usize) << DIVISION) + (value >> shift) as usize
}

/// The smallest value of a bucket, and the number of its values.
fn range(index: usize) -> (u64, u64) {
    let shift = (index >> DIVISION).saturating_sub(1);
    (((index - (shift << DIVISION)) as u64) << shift, 1 << shift)
}

impl Buckets {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `n` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, n: u64) {
        let index = index(value);
        self.count += n;
        self.max = self.max.max(value);
        match self.blocks.get_mut(index / BLOCK) {
            Some(Some(block)) => block[index % BLOCK] += n,
            _ => self.block(index / BLOCK)[index % BLOCK] += n,
        }
    }

    /// The block with this index, made if there is none.
    #[cold]
    #[inline(never)]
    fn block(&mut self, index: usize) -> &mut [u64; BLOCK] {
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, None);
        }
        self.blocks[index].get_or_insert_with(|| Box::new([0; BLOCK]))
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True without a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The buckets with values and their counts, in ascending order.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let blocks = self.blocks.iter().enumerate().filter_map(|(at, block)| Some((at * BLOCK, block.as_deref()?)));
        let counts = blocks.flat_map(|(first, block)| (first..).zip(block.iter().copied()));
        counts.filter(|(_, count)| *count > 0)
    }

    /// The upper end of the bucket up to which the share `quantile` of all values lies, at least one value; at most the
    /// largest value. 0 without a value.
    #[must_use]
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "statistics only")]
    pub fn value_at_quantile(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut sum = 0;
        for (at, block) in self.blocks.iter().enumerate() {
            let Some(block) = block.as_deref() else { continue };
            let all: u64 = block.iter().sum();
            if sum + all < wanted {
                sum += all;
                continue;
            }
            for (index, count) in (at * BLOCK..).zip(block) {
                sum += count;
                if sum >= wanted {
                    return upper_end(index).min(self.max);
                }
            }
        }
        0
    }

    /// The largest value; 0 without a value.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean of all values, each taken as the middle of its bucket, at most the largest value; 0 without a value.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean(&self) -> f64 {
        let mean = self.counts().fold(0.0, |sum, (index, count)| {
            let (low, width) = range(index);
            sum + (low + width / 2) as f64 * count as f64 / self.count as f64
        });
        mean.min(self.max as f64)
    }

    /// Adds the values of `other`.
    pub fn add(&mut self, other: &Self) {
        for (index, block) in other.blocks.iter().enumerate() {
            let Some(block) = block else { continue };
            self.block(index).iter_mut().zip(block.iter()).for_each(|(sum, count)| *sum += count);
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }
}

/// The largest value of a bucket.
fn upper_end(index: usize) -> u64 {
    let (low, width) = range(index);
    low + (width - 1)
}

/// Exact for three digits; values of coarser buckets count as the middle of theirs.
impl From<&Histogram<u64>> for Buckets {
    fn from(histogram: &Histogram<u64>) -> Self {
        let mut buckets = Self::default();
        for recorded in histogram.iter_recorded() {
            buckets.record_n(histogram.median_equivalent(recorded.value_iterated_to()), recorded.count_at_value());
        }
        buckets
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2^11 begins buckets of two values, 2^12 of four.
    #[test]
    fn each_value_has_a_bucket_up_to_2047_and_a_thousandth_of_itself_beyond() {
        for (value, low, width) in [
            (0, 0, 1),
            (1023, 1023, 1),
            (2047, 2047, 1),
            (2049, 2048, 2),
            (4098, 4096, 4),
            (u64::MAX, 2047 << 53, 1 << 53),
        ] {
            assert_eq!(range(index(value)), (low, width), "{value}");
        }
        assert_eq!(upper_end(index(u64::MAX)), u64::MAX);
    }

    #[test]
    fn blocks_without_values_take_no_memory() {
        let mut buckets = Buckets::default();
        [80_000_000, 81_000_000].into_iter().for_each(|value| buckets.record(value));
        assert_eq!(buckets.blocks.iter().flatten().count(), 1);
    }

    proptest! {
        /// Every result is that of the crate with three digits, bit by bit, if it is not above the largest value.
        #[test]
        fn results_are_those_of_hdrhistogram(
            first in prop::collection::vec((any::<u64>(), 0_u32..64, 1_u64..50), 0..60),
            second in prop::collection::vec((any::<u64>(), 30_u32..64, 1_u64..50), 0..10),
            quantiles in prop::collection::vec(0.000_1_f64..1.1, 8),
        ) {
            let mut buckets = Buckets::default();
            let mut expected = Histogram::<u64>::new(3).unwrap();
            for (random, shift, count) in &first {
                buckets.record_n(random >> shift, *count);
                expected.record_n(random >> shift, *count).unwrap();
            }
            let mut other = Histogram::<u64>::new(3).unwrap();
            for (random, shift, count) in &second {
                other.record_n(random >> shift, *count).unwrap();
            }
            buckets.add(&Buckets::from(&other));
            expected.add(&other).unwrap();
            let of = |list: &[(u64, u32, u64)]| list.iter().map(|(random, shift, _)| random >> shift).max();
            // Values of another histogram count as the middle of their buckets.
            let max = of(&first).max(of(&second).map(|value| other.median_equivalent(value))).unwrap_or(0);
            // The uppermost bucket of all ends at 2^64 - 1 here and one earlier in the crate.
            let end = |value: u64| value.min(max).min(u64::MAX - 1);
            prop_assert_eq!(buckets.len(), expected.len());
            prop_assert_eq!(buckets.is_empty(), expected.is_empty());
            prop_assert_eq!(buckets.max(), max);
            prop_assert_eq!(buckets.mean().to_bits(), expected.mean().min(max as f64).to_bits());
            for quantile in quantiles.into_iter().chain([0.5, 0.95, 0.99, 0.999, 1.0]) {
                let [value, expected] = [buckets.value_at_quantile(quantile), expected.value_at_quantile(quantile)];
                prop_assert_eq!(end(value), end(expected), "{}", quantile);
            }
        }
    }
}
