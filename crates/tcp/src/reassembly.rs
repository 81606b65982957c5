//! What arrived out of order, and how it is reported (RFC 2018, RFC 2883).
//!
//! Differs: nothing that was reported is ever given up (no reneging). After blocks merge, fewer than fit may be reported
//! though more are held, as in Linux: the four that changed last are known, of which three are told beside timestamps.
//! Offsets are kept as their low halves, which the next expected one makes whole.
//! Cost: O(1) for a segment that extends or follows the highest range, else a binary search; boxed, made by the first
//! segment out of order; 40 bytes.

use lastmile_packet::Options;

use crate::ranges::{Low, Range, RangeSet};

#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    held: RangeSet,
    /// Starts of the ranges that changed last, the newest first (RFC 2018, section 4). After them what does not lie ahead of
    /// the octet expected next.
    recent: [Low; Options::MAX_SACK_BLOCKS],
}

// A box of 40 bytes takes 48 of the heap, one of 41 takes 64.
impl Reassembly {
    /// With `next` the octet expected next.
    pub(crate) fn new(next: u64) -> Self {
        Self { held: RangeSet::default(), recent: [Low::of(next); Options::MAX_SACK_BLOCKS] }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Reads a word.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.recent[0].near(0)
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Bytes `start..end` arrived ahead of `next`, whose turn it is. Returns whether any of them is new.
    pub(crate) fn insert(&mut self, next: u64, start: u64, end: u64) -> bool {
        let mut new = false;
        let merged = self.held.insert(Range { start, end }, |_| new = true);
        self.keep_recent(next, Some(merged));
        new
    }

    /// Bytes up to `next` arrived in turn: where the stream goes on, with what was held.
    pub(crate) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(first) = self.held.first(next)
            && first.start <= next
        {
            next = next.max(first.end);
            self.held.pop_first();
        }
        self.keep_recent(next, None);
        next
    }

    /// The range that changed comes first, those that it swallowed go (RFC 2018, section 4), and those whose turn came.
    fn keep_recent(&mut self, next: u64, changed: Option<Range>) {
        let mut recent = [Low::of(next); Options::MAX_SACK_BLOCKS];
        let swallowed = |start: Low| changed.is_some_and(|range| range.contains(start.near(next)));
        let kept = self.recent.into_iter().filter(|start| start.ahead_of(next) > 0 && !swallowed(*start));
        let starts = changed.map(|range| Low::of(range.start)).into_iter().chain(kept);
        for (slot, start) in recent.iter_mut().zip(starts) {
            *slot = start;
        }
        self.recent = recent;
    }

    /// The blocks for the next acknowledgement, as many as there is room for, a duplicate first (RFC 2883, section 4), then the
    /// range that the newest segment went into (RFC 2018, section 4). `next`: the octet expected next.
    pub(crate) fn blocks(&self, next: u64, duplicate: Option<Range>, blocks: &mut [Range]) -> usize {
        let recent = self.recent.into_iter().filter(|start| start.ahead_of(next) > 0);
        let held = recent.filter_map(|start| self.held.at_or_after(start.near(next)));
        let mut len = 0;
        for (block, range) in blocks.iter_mut().zip(duplicate.into_iter().chain(held)) {
            *block = range;
            len += 1;
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(next: u64, reassembly: &Reassembly) -> Vec<(u64, u64)> {
        blocks_after(next, None, reassembly)
    }

    fn blocks_after(next: u64, duplicate: Option<Range>, reassembly: &Reassembly) -> Vec<(u64, u64)> {
        let mut blocks = [Range { start: 0, end: 0 }; Options::MAX_SACK_BLOCKS];
        let len = reassembly.blocks(next, duplicate, &mut blocks);
        blocks[..len].iter().map(|range| (range.start, range.end)).collect()
    }

    /// RFC 2018, section 6, case 2: the first of eight segments of 500 bytes from 5000 is lost.
    #[test]
    fn the_first_block_grows_with_each_segment() {
        let mut reassembly = Reassembly::new(5000);
        for (start, expected) in [(5500, (5500, 6000)), (6000, (5500, 6500)), (6500, (5500, 7000))] {
            reassembly.insert(5000, start, start + 500);
            assert_eq!(blocks(5000, &reassembly), [expected]);
        }
    }

    /// RFC 2018, section 6, case 3: the second, fourth, sixth and last of eight segments are lost; then the fourth and
    /// the second arrive.
    #[test]
    fn the_block_of_the_newest_segment_comes_first() {
        let mut reassembly = Reassembly::new(5500);
        reassembly.insert(5500, 6000, 6500);
        assert_eq!(blocks(5500, &reassembly), [(6000, 6500)]);
        reassembly.insert(5500, 7000, 7500);
        assert_eq!(blocks(5500, &reassembly), [(7000, 7500), (6000, 6500)]);
        reassembly.insert(5500, 8000, 8500);
        assert_eq!(blocks(5500, &reassembly), [(8000, 8500), (7000, 7500), (6000, 6500)]);
        reassembly.insert(5500, 6500, 7000);
        assert_eq!(blocks(5500, &reassembly), [(6000, 7500), (8000, 8500)]);
        assert_eq!(reassembly.advance(6000), 7500);
        assert_eq!(blocks(7500, &reassembly), [(8000, 8500)]);
    }

    /// RFC 2018, section 4: as many blocks as possible, those that changed last; after them those that changed before. The
    /// fifth is forgotten.
    #[test]
    fn the_four_that_changed_last_are_told() {
        let mut reassembly = Reassembly::new(1000);
        for start in [2000, 4000, 6000, 8000, 10_000] {
            assert!(reassembly.insert(1000, start, start + 500));
        }
        let newest = [(10_000, 10_500), (8000, 8500), (6000, 6500), (4000, 4500)];
        assert_eq!(blocks(1000, &reassembly), newest);
        let duplicate = Range { start: 500, end: 1000 };
        assert_eq!(blocks_after(1000, Some(duplicate), &reassembly), [[(500, 1000)].as_slice(), &newest[..3]].concat());
        assert!(!reassembly.insert(1000, 4000, 4500));
        assert_eq!(blocks(1000, &reassembly), [(4000, 4500), (10_000, 10_500), (8000, 8500), (6000, 6500)]);
        assert_eq!(reassembly.advance(6000), 6500);
        assert_eq!(blocks(6500, &reassembly), [(10_000, 10_500), (8000, 8500)]);
        // The halves of offsets that are kept wrap.
        let far = (1 << 32) - 100;
        let mut reassembly = Reassembly::new(far);
        assert!(reassembly.insert(far, far + 200, far + 300));
        assert_eq!(blocks(far, &reassembly), [(far + 200, far + 300)]);
        assert_eq!(reassembly.advance(far + 200), far + 300);
        assert_eq!(blocks(far + 300, &reassembly), []);
    }

    /// RFC 2883, section 4.1.2: the duplicate is reported ahead of the block.
    #[test]
    fn a_duplicate_is_reported_ahead_of_the_others() {
        let mut reassembly = Reassembly::new(4000);
        reassembly.insert(4000, 4500, 5000);
        let duplicate = Range { start: 3000, end: 3500 };
        assert_eq!(blocks_after(4000, Some(duplicate), &reassembly), [(3000, 3500), (4500, 5000)]);
        assert_eq!(blocks(4000, &reassembly), [(4500, 5000)]);
    }
}
