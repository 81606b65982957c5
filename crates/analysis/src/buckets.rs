//! Values counted in buckets: mean and quantiles, to three significant digits as a rule.
//!
//! Published: the buckets of HdrHistogram (G. Tene, hdrhistogram.org). Each power of two is divided into
//! `1 << DIVISION` buckets, and each value below `2 << DIVISION` has one. `DIVISION` is 10 for three digits, 7 for two,
//! 4 for one.
//! Differs: a block of 256 buckets exists once a value falls into one of them. The crate `hdrhistogram` has an array
//! from zero to the largest value: 140 kB for a delay of 80 ms, which a run of a thousand flows clears and reads two
//! thousand times. The largest value is exact, and no result is larger. A property test compares all results with those
//! of the crate.
//!
//! Cost: a shift and two additions a value; 2 kB a block, of which delays within a factor of two take at most five.

/// Buckets of a block.
const BLOCK: usize = 256;

/// A distribution of values.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Buckets<const DIVISION: u32 = 10> {
    blocks: Vec<Option<Box<[u64; BLOCK]>>>,
    count: u64,
    max: u64,
}

/// Index of the bucket of a value.
#[must_use]
#[inline]
pub fn index<const DIVISION: u32>(value: u64) -> usize {
    let shift = (u64::BITS - 1 - DIVISION).saturating_sub(value.leading_zeros());
    ((shift as usize) << DIVISION) + (value >> shift) as usize
}

/// The smallest value of a bucket, and the number of its values.
fn range<const DIVISION: u32>(index: usize) -> (u64, u64) {
    let shift = (index >> DIVISION).saturating_sub(1);
    (((index - (shift << DIVISION)) as u64) << shift, 1 << shift)
}

/// The largest value of a bucket.
#[must_use]
pub fn upper_end<const DIVISION: u32>(index: usize) -> u64 {
    let (low, width) = range::<DIVISION>(index);
    low + (width - 1)
}

impl<const DIVISION: u32> Buckets<DIVISION> {
    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts a value `n` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, n: u64) {
        let index = index::<DIVISION>(value);
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
                    return upper_end::<DIVISION>(index).min(self.max);
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
            let (low, width) = range::<DIVISION>(index);
            sum + (low + width / 2) as f64 * count as f64 / self.count as f64
        });
        mean.min(self.max as f64)
    }

    /// The sum of all values, each taken as the middle of its bucket, at most that of as many of the largest value. A
    /// further value makes it no smaller.
    #[must_use]
    pub fn sum(&self) -> u128 {
        let each = self.counts().map(|(index, count)| {
            let (low, width) = range::<DIVISION>(index);
            u128::from(low + width / 2) * u128::from(count)
        });
        each.sum::<u128>().min(u128::from(self.max) * u128::from(self.count))
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

    /// The largest value of each bucket with values, in ascending order, and the number of its values.
    pub fn ends(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts().map(|(index, count)| (upper_end::<DIVISION>(index), count))
    }

    /// The values in other buckets, each as the largest value of its own; the largest value stays exact.
    #[must_use]
    pub fn to<const OTHER: u32>(&self) -> Buckets<OTHER> {
        let mut other = Buckets::default();
        self.ends().for_each(|(value, count)| other.record_n(value, count));
        Buckets { max: self.max, ..other }
    }

    /// The values that are not in `before`, an earlier copy. A copy of other values is not one: then all values.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut earlier = before.counts().peekable();
        let mut since = Self::default();
        for (index, count) in self.counts() {
            let then = earlier.next_if(|(earlier, _)| *earlier == index).map_or(0, |(_, count)| count);
            match count.checked_sub(then) {
                Some(0) => {}
                Some(more) => since.record_n(upper_end::<DIVISION>(index).min(self.max), more),
                None => return self.clone(),
            }
        }
        if earlier.next().is_some() { self.clone() } else { since }
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
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
            assert_eq!(range::<10>(index::<10>(value)), (low, width), "{value}");
        }
        assert_eq!(upper_end::<10>(index::<10>(u64::MAX)), u64::MAX);
    }

    #[test]
    fn blocks_without_values_take_no_memory() {
        let mut buckets = Buckets::<10>::default();
        [80_000_000, 81_000_000].into_iter().for_each(|value| buckets.record(value));
        assert_eq!(buckets.blocks.iter().flatten().count(), 1);
    }

    #[test]
    fn buckets_since_a_copy_are_those_of_the_values_after_it() {
        let mut buckets = Buckets::<4>::default();
        buckets.record(1_000_000);
        let before = buckets.clone();
        (1..=100).for_each(|ms| buckets.record(ms * 1_000_000));
        let since = buckets.since(&before);
        assert_eq!((since.len(), since.max()), (100, 100_000_000));
        for (quantile, ms) in [(0.5, 50.0), (0.99, 99.0)] {
            let shown = since.value_at_quantile(quantile) as f64 / 1e6;
            assert!((ms..ms * 1.0625).contains(&shown), "{quantile}: {shown}");
        }
        assert!(buckets.since(&buckets).is_empty());
        // The copy is of other values.
        assert_eq!(before.since(&buckets), before);
        assert_eq!(buckets.since(&Buckets::default()).len(), 101);
    }

    type Values = Vec<(u64, u32, u64)>;

    /// Every result is that of the crate with so many digits, bit by bit, if it is not above the largest value.
    fn check<const DIVISION: u32>(digits: u8, [first, second]: [&Values; 2], quantiles: &[f64]) {
        let of = |values: &Values| {
            let mut buckets = Buckets::<DIVISION>::default();
            let mut expected = Histogram::<u64>::new(digits).unwrap();
            for (random, shift, count) in values {
                buckets.record_n(random >> shift, *count);
                expected.record_n(random >> shift, *count).unwrap();
            }
            (buckets, expected)
        };
        let ((mut buckets, mut expected), (other, more)) = (of(first), of(second));
        buckets.add(&other);
        expected.add(&more).unwrap();
        let max = first.iter().chain(second).map(|(random, shift, _)| random >> shift).max().unwrap_or(0);
        // The uppermost bucket of all ends at 2^64 - 1 here and one earlier in the crate.
        let end = |value: u64| value.min(max).min(u64::MAX - 1);
        assert_eq!((buckets.len(), buckets.is_empty()), (expected.len(), expected.is_empty()));
        assert_eq!(buckets.max(), max);
        assert_eq!(buckets.mean().to_bits(), expected.mean().min(max as f64).to_bits());
        let each = expected.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        let sum = each.fold(0, |sum, (value, n)| sum + u128::from(expected.median_equivalent(value)) * u128::from(n));
        assert_eq!(buckets.sum(), sum.min(u128::from(max) * u128::from(expected.len())));
        for quantile in quantiles.iter().copied().chain([0.5, 0.95, 0.99, 0.999, 1.0]) {
            let [value, expected] = [buckets.value_at_quantile(quantile), expected.value_at_quantile(quantile)];
            assert_eq!(end(value), end(expected), "{quantile}");
        }
        let ends = expected.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value()));
        assert!(buckets.ends().map(|(value, count)| (value.min(u64::MAX - 1), count)).eq(ends));
    }

    proptest! {
        #[test]
        fn results_are_those_of_hdrhistogram(
            first in prop::collection::vec((any::<u64>(), 0_u32..64, 1_u64..50), 0..60),
            second in prop::collection::vec((any::<u64>(), 30_u32..64, 1_u64..50), 0..10),
            quantiles in prop::collection::vec(0.000_1_f64..1.1, 8),
        ) {
            check::<10>(3, [&first, &second], &quantiles);
            check::<7>(2, [&first, &second], &quantiles);
            check::<4>(1, [&first, &second], &quantiles);
            let mut fine = Buckets::<10>::default();
            let mut coarse = Buckets::<4>::default();
            for (random, shift, count) in &first {
                fine.record_n(random >> shift, *count);
                coarse.record_n(random >> shift, *count);
            }
            prop_assert_eq!(fine.to::<4>(), coarse);
        }
    }
}
