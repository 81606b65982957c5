//! Ordered, disjoint ranges of offsets that SACK (RFC 2018) reported above the cumulative
//! acknowledgement.
//!
//! Cost: a search and a shift of the higher ranges; there is one range per hole.

/// The most ranges that are stored. Beyond, the highest are merged, which hides a hole far from its
/// repair.
const MOST: usize = 1024;

#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(i64, i64)>);

impl Ranges {
    /// Adds `left..right`. True if any of it is new.
    pub(crate) fn add(&mut self, left: i64, right: i64) -> bool {
        let from = self.0.partition_point(|range| range.1 < left);
        let to = self.0.partition_point(|range| range.0 <= right);
        if let Some(range) = self.0.get(from)
            && range.0 <= left
            && right <= range.1
        {
            return false;
        }
        let (mut low, mut high) = (left, right);
        if from < to {
            (low, high) = (low.min(self.0[from].0), high.max(self.0[to - 1].1));
        }
        self.0.splice(from..to, [(low, high)]);
        if self.0.len() > MOST
            && let Some((_, end)) = self.0.pop()
            && let Some(last) = self.0.last_mut()
        {
            last.1 = end;
        }
        true
    }

    /// Removes everything below `edge`.
    pub(crate) fn forget_below(&mut self, edge: i64) {
        let gone = self.0.partition_point(|range| range.1 <= edge);
        if gone > 0 {
            self.0.drain(..gone);
        }
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(edge);
        }
    }

    /// One past the highest offset in any range.
    pub(crate) fn highest(&self) -> Option<i64> {
        self.0.last().map(|(_, right)| *right)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes in all ranges.
    pub(crate) fn bytes(&self) -> i64 {
        self.0.iter().map(|(left, right)| right - left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_where_they_touch_and_what_is_acknowledged_goes() {
        let mut ranges = Ranges::default();
        assert!(ranges.add(10, 20) && ranges.add(30, 40) && !ranges.add(12, 18));
        assert_eq!((ranges.len(), ranges.bytes()), (2, 20));
        assert!(ranges.add(20, 30));
        assert_eq!((ranges.len(), ranges.bytes()), (1, 30));
        ranges.forget_below(15);
        assert_eq!(ranges.bytes(), 25);
        ranges.forget_below(50);
        assert_eq!(ranges.len(), 0);
    }
}
