//! A distribution of delays in fixed buckets that add up: minutes into hours, hours into years.
//!
//! The buckets are those of [`lastmile_analysis::buckets`], 32 for each power of two: a bucket is at most 1/32 of its
//! values wide. Their counts are in a map, since answers to questions hold many distributions of few values each. A
//! row of the store takes two or three bytes for each bucket with values in it.

use std::collections::BTreeMap;

use lastmile_analysis::buckets::{index, upper_end};

/// Buckets of a power of two, as a power of two.
const DIVISION: u32 = 5;

/// A distribution of delays in nanoseconds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Delays {
    counts: BTreeMap<u16, u64>,
    sum_ns: u128,
    max_ns: u64,
    /// Each delay, where all parts have them: quantiles are then exact. They are not stored.
    each_ns: Option<Vec<u64>>,
}

/// Bytes that are no distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("these bytes are no distribution of delays")]
pub struct NoDelays;

/// The bucket of a delay.
fn bucket_of(ns: u64) -> u16 {
    u16::try_from(index::<DIVISION>(ns)).expect("64 powers of two have fewer than 2048 buckets")
}

/// The largest delay of a bucket.
fn largest(bucket: u16) -> u64 {
    upper_end::<DIVISION>(bucket.into())
}

impl Delays {
    /// A distribution that keeps each delay.
    #[must_use]
    pub fn of_each() -> Self {
        Self { each_ns: Some(Vec::new()), ..Self::default() }
    }

    /// Adds one delay.
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Adds a delay that occurred `count` times.
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count > 0 {
            *self.counts.entry(bucket_of(ns)).or_default() += count;
            self.sum_ns += u128::from(ns) * u128::from(count);
            self.max_ns = self.max_ns.max(ns);
            self.each_ns.iter_mut().for_each(|each| each.extend((0..count).map(|_| ns)));
        }
    }

    /// Adds all delays of another distribution.
    pub fn add(&mut self, other: &Self) {
        match (&mut self.each_ns, &other.each_ns) {
            (Some(each), Some(more)) => each.extend(more),
            (None, Some(more)) if self.counts.is_empty() => self.each_ns = Some(more.clone()),
            _ if other.is_empty() => {}
            _ => self.each_ns = None,
        }
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The delays that are not in `before`, an earlier copy. The largest is known to its bucket.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let more = |(bucket, count): (&u16, &u64)| {
            let more = count - before.counts.get(bucket).unwrap_or(&0).min(count);
            (more > 0).then_some((*bucket, more))
        };
        let counts: BTreeMap<u16, u64> = self.counts.iter().filter_map(more).collect();
        let max_ns = counts.last_key_value().map_or(0, |(bucket, _)| largest(*bucket).min(self.max_ns));
        Self { counts, sum_ns: self.sum_ns.saturating_sub(before.sum_ns), max_ns, each_ns: None }
    }

    /// The number of delays.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// True without delays.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The largest delay, exactly; `None` without delays.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The mean, exactly; `None` without delays.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// The sum of all delays.
    #[must_use]
    pub const fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// The smallest delay that at least this share of all delays does not exceed; as the largest value of its bucket,
    /// and never more than the largest delay, where not each delay is known; `None` without delays. Nearest rank: at
    /// least one delay is counted.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "statistics only"
    )]
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let count = self.count();
        let rank = ((count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).clamp(1, count.max(1));
        if let Some(mut each) = self.each_ns.clone().filter(|each| !each.is_empty()) {
            return Some(*each.select_nth_unstable(rank as usize - 1).1);
        }
        let mut seen = 0;
        for (bucket, count) in &self.counts {
            seen += count;
            if seen >= rank {
                return Some(largest(*bucket).min(self.max_ns));
            }
        }
        None
    }

    /// The number of delays in the buckets whose values do not exceed `ns`.
    #[must_use]
    pub fn count_up_to(&self, ns: u64) -> u64 {
        self.counts.iter().filter(|(bucket, _)| largest(**bucket) <= ns).map(|(_, count)| count).sum()
    }

    /// The bytes for the store: sum, maximum, and for each bucket the distance from the preceding one and the count,
    /// all as base-128 numbers; empty without delays.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.is_empty() {
            return bytes;
        }
        write(&mut bytes, self.sum_ns);
        write(&mut bytes, self.max_ns.into());
        let mut before = 0;
        for (bucket, count) in &self.counts {
            write(&mut bytes, u128::from(bucket - before));
            write(&mut bytes, (*count).into());
            before = *bucket;
        }
        bytes
    }

    /// Reads what [`Delays::to_bytes`] has written.
    ///
    /// # Errors
    /// The bytes are cut short, or no such bytes.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, NoDelays> {
        let mut delays = Self::default();
        if bytes.is_empty() {
            return Ok(delays);
        }
        delays.sum_ns = read(&mut bytes)?;
        delays.max_ns = u64::try_from(read(&mut bytes)?).map_err(|_| NoDelays)?;
        let mut bucket = 0_u16;
        while !bytes.is_empty() {
            let distance = u16::try_from(read(&mut bytes)?).map_err(|_| NoDelays)?;
            bucket = bucket.checked_add(distance).filter(|bucket| *bucket <= bucket_of(u64::MAX)).ok_or(NoDelays)?;
            let count = u64::try_from(read(&mut bytes)?).map_err(|_| NoDelays)?;
            delays.counts.insert(bucket, count);
        }
        Ok(delays)
    }
}

/// Seven bits a byte, the least first; the highest bit says that more follow.
fn write(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 128 {
        bytes.push((number & 127) as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read(bytes: &mut &[u8]) -> Result<u128, NoDelays> {
    let mut number = 0_u128;
    for shift in (0..126).step_by(7) {
        let (byte, rest) = bytes.split_first().ok_or(NoDelays)?;
        *bytes = rest;
        number |= u128::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(number);
        }
    }
    Err(NoDelays)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_row_of_a_minute_is_small() {
        let mut minute = Delays::default();
        (0..60).for_each(|n| minute.record(20_000_000 + n * 50_000));
        assert!(minute.to_bytes().len() < 40, "{}", minute.to_bytes().len());
        assert!(Delays::default().to_bytes().is_empty());
    }

    #[test]
    fn bytes_that_are_none_are_refused() {
        let mut delays = Delays::default();
        delays.record_n(1_000_000, 3);
        let bytes = delays.to_bytes();
        assert_eq!(Delays::from_bytes(&bytes[..bytes.len() - 1]), Err(NoDelays));
        assert_eq!(Delays::from_bytes(&[0xff; 30]), Err(NoDelays));
        assert_eq!(Delays::from_bytes(&[1, 1, 0xff, 0xff, 3, 1]), Err(NoDelays), "beyond the last bucket");
    }

    proptest! {
        /// The percentile of the samples themselves, by nearest rank, lies in the bucket of the one that is read.
        #[test]
        fn percentiles_are_those_of_the_samples_within_a_bucket_however_they_were_added_up(
            samples in prop::collection::vec((any::<u64>(), 0..64_u32, 0..5_usize), 1..300),
            share in 0.0..1.0_f64,
        ) {
            let mut parts = vec![Delays::default(); 5];
            for (ns, shift, part) in &samples {
                parts[*part].record(ns >> shift);
            }
            let mut whole = Delays::default();
            for part in &parts {
                whole.add(&Delays::from_bytes(&part.to_bytes()).unwrap());
            }
            let mut sorted: Vec<u64> = samples.iter().map(|(ns, shift, _)| ns >> shift).collect();
            sorted.sort_unstable();
            let rank = ((sorted.len() as f64 * share).ceil() as usize).max(1);
            let exact = sorted[rank - 1];
            let read = whole.quantile_ns(share).unwrap();
            prop_assert!(exact <= read && read - exact <= exact / 32, "{} for {}", read, exact);
            prop_assert_eq!(whole.max_ns(), sorted.last().copied());
            prop_assert_eq!(whole.count(), sorted.len() as u64);
            prop_assert_eq!(whole.sum_ns(), sorted.iter().map(|ns| u128::from(*ns)).sum::<u128>());
        }
    }

    #[test]
    fn the_delays_since_a_copy_are_those_that_came_after_it() {
        let mut delays = Delays::default();
        delays.record(50_000_000);
        let before = delays.clone();
        assert!(delays.since(&before).is_empty());
        delays.record(1_000_000);
        delays.record(1_000_000);
        let since = delays.since(&before);
        assert_eq!((since.count(), since.sum_ns()), (2, 2_000_000));
        assert!((1_000_000..1_040_000).contains(&since.max_ns().unwrap()));
    }
}
