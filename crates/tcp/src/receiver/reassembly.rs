//! The data that arrived out of order, and the SACK blocks that report them.
//!
//! Published: RFC 2018; RFC 2883 (reports of duplicates).
//! Differs: reported data are never discarded (no reneging). After blocks merge, fewer blocks than fit may
//! be reported though more ranges are held, as in Linux: the four ranges that changed last are known, and
//! three fit next to timestamps.
//! Cost: O(1) for a segment that extends or follows the highest range, else a binary search; boxed, 88 bytes.

use lastmile_packet::Options;

use super::autotune::Held;
use crate::ranges::{Range, RangeSet};

#[derive(Clone, Debug)]
pub(crate) struct Reassembly {
    held: RangeSet,
    /// Starts of the ranges that changed last, the newest first (RFC 2018, section 4). Zero, which is the SYN, is none.
    recent: [u64; Options::MAX_SACK_BLOCKS],
    /// A duplicate that the next acknowledgement reports (RFC 2883).
    duplicate: Option<Range>,
}

impl Reassembly {
    pub(super) fn new() -> Self {
        Self { held: RangeSet::default(), recent: [0; Options::MAX_SACK_BLOCKS], duplicate: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// No data are held and no duplicate is to be reported.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.duplicate.is_none()
    }

    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// The octets that are held.
    pub(super) fn octets(&self) -> u64 {
        self.held.octets()
    }

    /// The octets that are held, and how far they reach beyond `next`.
    pub(super) fn held(&self, next: u64) -> Held {
        Held { octets: self.octets(), span: self.held.last().map_or(0, |last| last.end - next) }
    }

    /// Octets `start..end` arrived beyond the next expected one. Returns whether any of them is new.
    pub(super) fn insert(&mut self, start: u64, end: u64) -> bool {
        let mut new = false;
        let merged = self.held.insert(Range { start, end }, |_| new = true);
        // The range that changed comes first, and ranges merged into it are removed (RFC 2018, section 4).
        let kept = self.recent.into_iter().filter(|&start| start > 0 && !merged.contains(start));
        self.set_recent(core::iter::once(merged.start).chain(kept));
        new
    }

    /// Octets up to `next` arrived in order. Returns the next expected octet after them and the held ones
    /// that follow.
    pub(super) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(first) = self.held.first()
            && first.start <= next
        {
            next = next.max(first.end);
            self.held.pop_first();
        }
        self.set_recent(self.recent.into_iter().filter(|&start| start > next));
        next
    }

    fn set_recent(&mut self, starts: impl Iterator<Item = u64>) {
        let mut recent = [0; Options::MAX_SACK_BLOCKS];
        for (slot, start) in recent.iter_mut().zip(starts) {
            *slot = start;
        }
        self.recent = recent;
    }

    /// The next acknowledgement reports a duplicate.
    pub(super) fn report_duplicate(&mut self, range: Range) {
        self.duplicate = Some(range);
    }

    /// The blocks of the next acknowledgement, as many as fit: a duplicate first (RFC 2883, section 4),
    /// then the range that the newest segment extended (RFC 2018, section 4). Returns their number.
    pub(super) fn take_blocks(&mut self, blocks: &mut [Range]) -> usize {
        let held = self.recent.into_iter().filter(|start| *start > 0).filter_map(|start| self.held.at_or_after(start));
        let mut len = 0;
        for (block, range) in blocks.iter_mut().zip(self.duplicate.take().into_iter().chain(held)) {
            *block = range;
            len += 1;
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(reassembly: &mut Reassembly) -> Vec<(u64, u64)> {
        let mut blocks = [Range { start: 0, end: 0 }; Options::MAX_SACK_BLOCKS];
        let len = reassembly.take_blocks(&mut blocks);
        blocks[..len].iter().map(|range| (range.start, range.end)).collect()
    }

    fn blocks_after(duplicate: Range, reassembly: &mut Reassembly) -> Vec<(u64, u64)> {
        reassembly.report_duplicate(duplicate);
        blocks(reassembly)
    }

    /// RFC 2018, section 6, case 2: the first of eight segments of 500 bytes from 5000 is lost.
    #[test]
    fn the_first_block_grows_with_each_segment() {
        let mut reassembly = Reassembly::new();
        for (start, expected) in [(5500, (5500, 6000)), (6000, (5500, 6500)), (6500, (5500, 7000))] {
            reassembly.insert(start, start + 500);
            assert_eq!(blocks(&mut reassembly), [expected]);
        }
    }

    /// RFC 2018, section 6, case 3: the second, fourth, sixth and last of eight segments are lost; then the
    /// fourth and the second arrive.
    #[test]
    fn the_block_of_the_newest_segment_comes_first() {
        let mut reassembly = Reassembly::new();
        reassembly.insert(6000, 6500);
        assert_eq!(blocks(&mut reassembly), [(6000, 6500)]);
        reassembly.insert(7000, 7500);
        assert_eq!(blocks(&mut reassembly), [(7000, 7500), (6000, 6500)]);
        reassembly.insert(8000, 8500);
        assert_eq!(blocks(&mut reassembly), [(8000, 8500), (7000, 7500), (6000, 6500)]);
        reassembly.insert(6500, 7000);
        assert_eq!(blocks(&mut reassembly), [(6000, 7500), (8000, 8500)]);
        assert_eq!(reassembly.advance(6000), 7500);
        assert_eq!(blocks(&mut reassembly), [(8000, 8500)]);
    }

    /// RFC 2018, section 4: as many blocks as possible, in the order of their last change. The fifth is forgotten.
    #[test]
    fn the_four_that_changed_last_are_reported() {
        let mut reassembly = Reassembly::new();
        for start in [2000, 4000, 6000, 8000, 10_000] {
            assert!(reassembly.insert(start, start + 500));
        }
        let newest = [(10_000, 10_500), (8000, 8500), (6000, 6500), (4000, 4500)];
        assert_eq!(blocks(&mut reassembly), newest);
        let duplicate = Range { start: 500, end: 1000 };
        assert_eq!(blocks_after(duplicate, &mut reassembly), [[(500, 1000)].as_slice(), &newest[..3]].concat());
        assert!(!reassembly.insert(4000, 4500));
        assert_eq!(blocks(&mut reassembly), [(4000, 4500), (10_000, 10_500), (8000, 8500), (6000, 6500)]);
        assert_eq!(reassembly.advance(6000), 6500);
        assert_eq!(blocks(&mut reassembly), [(10_000, 10_500), (8000, 8500)]);
    }

    /// RFC 2883, section 4.1.2: the duplicate is reported ahead of the block.
    #[test]
    fn a_duplicate_is_reported_ahead_of_the_others() {
        let mut reassembly = Reassembly::new();
        reassembly.insert(4500, 5000);
        let duplicate = Range { start: 3000, end: 3500 };
        assert_eq!(blocks_after(duplicate, &mut reassembly), [(3000, 3500), (4500, 5000)]);
        assert_eq!(blocks(&mut reassembly), [(4500, 5000)]);
    }
}
