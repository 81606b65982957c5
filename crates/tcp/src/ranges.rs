//! A set of byte ranges of a stream: what a receiver holds out of order, what a sender knows to be held.
//!
//! Offsets of a stream have 64 bits, and all that is kept here lies within a window of another, 2^30 bytes at most (RFC
//! 7323, section 2.3): four bytes of an offset are stored, and one nearby gives the rest.
//! Cost: inserting at the end or the front is O(1), elsewhere a binary search and a shift of the shorter side.

use std::collections::VecDeque;

/// Bytes `start..end` of a stream, never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Range {
    pub(crate) fn len(self) -> u64 {
        self.end - self.start
    }

    pub(crate) fn contains(self, offset: u64) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

/// The low half of an offset. One less than 2^31 bytes away tells the other half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Low(u32);

impl Low {
    #[inline]
    pub(crate) fn of(offset: u64) -> Self {
        Self(offset as u32)
    }

    /// The whole offset, by one that is near it.
    #[inline]
    pub(crate) fn near(self, other: u64) -> u64 {
        other.wrapping_add_signed(self.ahead_of(other))
    }

    /// How far it lies ahead of one that is near it; negative: behind.
    #[inline]
    pub(crate) fn ahead_of(self, other: u64) -> i64 {
        i64::from(self.0.wrapping_sub(other as u32).cast_signed())
    }
}

/// A range, in low halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Span {
    start: Low,
    end: Low,
}

impl Span {
    pub(crate) fn of(range: Range) -> Self {
        Self { start: Low::of(range.start), end: Low::of(range.end) }
    }

    pub(crate) fn near(self, other: u64) -> Range {
        let start = self.start.near(other);
        Range { start, end: self.end.near(start) }
    }
}

/// Disjoint ranges in order, with a gap between any two. Where a method asks for an offset that is `near`, that is any
/// within 2^30 bytes of all that is held.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct RangeSet {
    spans: VecDeque<Span>,
}

impl RangeSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(crate) fn first(&self, near: u64) -> Option<Range> {
        self.spans.front().map(|span| span.near(near))
    }

    pub(crate) fn last(&self, near: u64) -> Option<Range> {
        self.spans.back().map(|span| span.near(near))
    }

    pub(crate) fn clear(&mut self) {
        self.spans = VecDeque::new();
    }

    /// From the highest down.
    pub(crate) fn descending(&self, near: u64) -> impl Iterator<Item = Range> + '_ {
        self.spans.iter().rev().map(move |span| span.near(near))
    }

    pub(crate) fn pop_first(&mut self) {
        self.spans.pop_front();
    }

    /// The first range that ends after `offset`, which is near.
    pub(crate) fn at_or_after(&self, offset: u64) -> Option<Range> {
        // Mostly asked about the front or beyond the end.
        match self.first(offset) {
            Some(first) if first.end > offset => return Some(first),
            _ => {}
        }
        let index = self.spans.partition_point(|span| span.near(offset).end <= offset);
        self.spans.get(index).map(|span| span.near(offset))
    }

    /// Cuts away all below `offset`, which is near.
    pub(crate) fn trim_below(&mut self, offset: u64) {
        while let Some(first) = self.first(offset)
            && first.start < offset
        {
            if first.end > offset {
                self.spans[0] = Span::of(Range { start: offset, end: first.end });
                return;
            }
            self.pop_first();
        }
    }

    /// Adds `range`, which is near, tells `new` of each part that was not there, and returns the range that it is now
    /// part of.
    pub(crate) fn insert(&mut self, range: Range, mut new: impl FnMut(Range)) -> Range {
        let first = self.first_touching(range.start);
        let mut after = first;
        let mut merged = range;
        let mut covered = range.start;
        while let Some(held) = self.spans.get(after).map(|span| span.near(range.start))
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
            self.spans.insert(first, Span::of(merged));
        } else {
            self.spans[first] = Span::of(merged);
            self.spans.drain(first + 1..after);
        }
        merged
    }

    /// Index of the first range that ends at or after `start`.
    fn first_touching(&self, start: u64) -> usize {
        let count = self.len();
        // Arrivals mostly extend or follow the last range.
        match self.last(start) {
            None => 0,
            Some(last) if last.end < start => count,
            Some(last) if last.start <= start => count - 1,
            Some(_) => self.spans.partition_point(|span| span.near(start).end < start),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where a stream may be: at its beginning, and where the low half wraps.
    fn base() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0_u64), ((1_u64 << 32) - 200)..(1 << 32), (5_u64 << 32) - 100..5 << 32]
    }

    #[test]
    fn the_low_half_tells_the_whole_within_two_gibibytes_either_way() {
        for offset in [0, 1, (1_u64 << 32) - 1, 1 << 32, (7 << 32) + 5] {
            for away in [0, 1, (1_i64 << 31) - 1, -(1 << 31) + 1] {
                let Some(other) = offset.checked_add_signed(away) else { continue };
                assert_eq!(Low::of(offset).near(other), offset, "{offset} by {other}");
            }
        }
    }

    proptest! {
        /// Against a set of single bytes.
        #[test]
        fn a_range_set_holds_exactly_what_was_inserted(
            base in base(),
            inserts in proptest::collection::vec((0_u64..200, 1_u64..30), 1..60),
            trim in 0_u64..120,
            pops in 0_usize..4,
        ) {
            let mut set = RangeSet::default();
            let mut bytes = std::collections::BTreeSet::new();
            for (start, len) in inserts {
                let start = base + start;
                let mut new = Vec::new();
                let merged = set.insert(Range { start, end: start + len }, |part| new.extend(part.start..part.end));
                let expected: Vec<u64> = (start..start + len).filter(|byte| !bytes.contains(byte)).collect();
                prop_assert_eq!(new, expected);
                bytes.extend(start..start + len);
                prop_assert!(merged.start <= start && merged.end >= start + len);
                prop_assert!(set.at_or_after(start) == Some(merged));
            }
            let trim = base + trim;
            set.trim_below(trim);
            bytes.retain(|&byte| byte >= trim);
            for _ in 0..pops {
                let Some(first) = set.first(base) else { break };
                set.pop_first();
                bytes.retain(|&byte| byte >= first.end);
            }
            let mut held = Vec::new();
            let mut previous: Option<u64> = None;
            for range in set.descending(base) {
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
