//! A set of ranges: octets of a stream that a receiver holds out of order and a sender's record of them, or packet
//! numbers.
//!
//! Offsets have 64 bits, so that they never wrap. Nearly all insertions are at an end, which a `BTreeMap` would
//! search for, and allocate.
//!
//! Cost: inserting at the end or the front is O(1), elsewhere a binary search and a shift of the shorter side.

use std::collections::VecDeque;

/// Octets `start..end` of a stream, never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first octet.
    pub start: u64,
    /// One past the last octet.
    pub end: u64,
}

impl Range {
    /// The number of octets.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// True if `offset` is one of its octets.
    #[must_use]
    pub fn contains(self, offset: u64) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

/// Disjoint ranges in order, with a gap between any two.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RangeSet {
    ranges: VecDeque<Range>,
}

impl RangeSet {
    /// True for a set without octets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The number of ranges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The number of octets in all ranges.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.descending().map(Range::len).sum()
    }

    /// The lowest range.
    #[must_use]
    pub fn first(&self) -> Option<Range> {
        self.ranges.front().copied()
    }

    /// The highest range.
    #[must_use]
    pub fn last(&self) -> Option<Range> {
        self.ranges.back().copied()
    }

    /// Removes all octets.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// From the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range> + '_ {
        self.ranges.iter().rev().copied()
    }

    /// Removes the lowest range.
    pub fn pop_first(&mut self) {
        self.ranges.pop_front();
    }

    /// The first range that ends after `offset`.
    #[must_use]
    pub fn at_or_after(&self, offset: u64) -> Option<Range> {
        // Most queries concern the first range.
        match self.first() {
            Some(first) if first.end > offset => return Some(first),
            _ => {}
        }
        let index = self.ranges.partition_point(|range| range.end <= offset);
        self.ranges.get(index).copied()
    }

    /// Removes all octets below `offset`.
    pub fn trim_below(&mut self, offset: u64) {
        while let Some(first) = self.ranges.front_mut()
            && first.start < offset
        {
            if first.end > offset {
                first.start = offset;
                return;
            }
            self.pop_first();
        }
    }

    /// Adds `range`, calls `new` for each part that the set did not hold, and returns the range that now contains it.
    pub fn insert(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        let first = self.first_touching(range.start);
        let mut after = first;
        let mut merged = range;
        let mut covered = range.start;
        while let Some(held) = self.ranges.get(after).copied()
            && held.start <= range.end
        {
            if covered < held.start {
                new(Range { start: covered, end: held.start });
            }
            covered = covered.max(held.end);
            merged = Range { start: merged.start.min(held.start), end: merged.end.max(held.end) };
            after += 1;
        }
        if covered < range.end {
            new(Range { start: covered, end: range.end });
        }
        if first == after {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..after);
        }
        merged
    }

    /// Index of the first range that ends at or after `start`.
    fn first_touching(&self, start: u64) -> usize {
        let count = self.len();
        // Most arrivals extend or follow the last range.
        match self.last() {
            None => 0,
            Some(last) if last.end < start => count,
            Some(last) if last.start <= start => count - 1,
            Some(_) => self.ranges.partition_point(|range| range.end < start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The reference is a set of single octets.
        #[test]
        fn a_range_set_holds_exactly_what_was_inserted(
            inserts in proptest::collection::vec((0_u64..200, 1_u64..30), 1..60),
            trim in 0_u64..120,
            pops in 0_usize..4,
        ) {
            let mut set = RangeSet::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, len) in inserts {
                                let mut new = Vec::new();
                let merged = set.insert(Range { start, end: start + len }, |part| new.extend(part.start..part.end));
                let expected: Vec<u64> = (start..start + len).filter(|byte| !bytes.contains(byte)).collect();
                prop_assert_eq!(new, expected);
                bytes.extend(start..start + len);
                prop_assert!(merged.start <= start && merged.end >= start + len);
                prop_assert!(set.at_or_after(start) == Some(merged));
            }
            set.trim_below(trim);
            bytes.retain(|&byte| byte >= trim);
            for _ in 0..pops {
                let Some(first) = set.first() else { break };
                set.pop_first();
                bytes.retain(|&byte| byte >= first.end);
            }
            let mut held = Vec::new();
            let mut previous: Option<u64> = None;
            for range in set.descending() {
                prop_assert!(range.start < range.end);
                prop_assert!(previous.is_none_or(|above| range.end < above), "a gap between any two");
                previous = Some(range.start);
                held.extend((range.start..range.end).rev());
            }
            held.reverse();
            prop_assert_eq!(set.is_empty(), held.is_empty());
            prop_assert_eq!(held, bytes.into_iter().collect::<Vec<_>>());
        }
    }
}
