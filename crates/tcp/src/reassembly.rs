//! What arrived out of order, and how it is reported (RFC 2018, RFC 2883).
//!
//! Differs: nothing that was reported is ever given up (no reneging). After blocks merge, fewer than three may be
//! reported though more are held, as in Linux: the three reported are those that changed last.
//! Offsets are kept as their low halves, which the next expected one makes whole.
//! Cost: O(1) for a segment that extends or follows the highest range, else a binary search; boxed, made by the first
//! segment out of order; 40 bytes.

use lastmile_packet::Options;

use crate::ranges::{Low, Range, RangeSet};

#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    held: RangeSet,
    /// Starts of the ranges that changed last, the newest first; RFC 2018, section 4.
    recent: [Low; Options::MAX_SACK_BLOCKS],
    recent_len: u8,
    /// A FIN came, ahead of its turn or in it. Where the stream ends the owner keeps, as few need to know.
    pub(crate) finished: bool,
    /// A duplicate is to be reported in the next acknowledgement (RFC 2883). The owner keeps which.
    pub(crate) duplicate: bool,
}

// A box of 40 bytes takes 48 of the heap, one of 41 takes 64.
const _: () = assert!(size_of::<Reassembly>() <= 40, "of very many receivers most hold something at times");

impl Reassembly {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Reads a word.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        u64::from(self.recent_len)
    }

    /// True when there is nothing left to remember.
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty() && !self.duplicate && !self.finished
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Bytes `start..end` arrived ahead of their turn. Returns whether any of them is new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> bool {
        let mut new = false;
        let merged = self.held.insert(Range { start, end }, |_| new = true);
        self.note(merged);
        new
    }

    /// The range that changed comes first, those that it swallowed go (RFC 2018, section 4).
    fn note(&mut self, merged: Range) {
        let mut recent = [Low::of(merged.start); Options::MAX_SACK_BLOCKS];
        let mut len = 1;
        for &start in &self.recent[..usize::from(self.recent_len)] {
            if len < recent.len() && !merged.contains(start.near(merged.start)) {
                recent[len] = start;
                len += 1;
            }
        }
        self.recent = recent;
        self.recent_len = len as u8;
    }

    /// Bytes up to `next` arrived in turn: where the stream goes on, with what was held.
    pub(crate) fn advance(&mut self, mut next: u64) -> u64 {
        while let Some(first) = self.held.first(next)
            && first.start <= next
        {
            next = next.max(first.end);
            self.held.pop_first();
        }
        let mut len = 0;
        for index in 0..usize::from(self.recent_len) {
            let start = self.recent[index];
            if start.ahead_of(next) > 0 {
                self.recent[len] = start;
                len += 1;
            }
        }
        self.recent_len = len as u8;
        next
    }

    /// The blocks for the next acknowledgement, at most three, a duplicate first (RFC 2883, section 4), then the range
    /// that the newest segment went into (RFC 2018, section 4). `next`: the octet expected next.
    pub(crate) fn blocks(
        &self,
        next: u64,
        duplicate: Option<Range>,
        blocks: &mut [Range; Options::MAX_SACK_BLOCKS],
    ) -> usize {
        let mut len = 0;
        if let Some(duplicate) = duplicate {
            blocks[0] = duplicate;
            len = 1;
        }
        for &start in &self.recent[..usize::from(self.recent_len)] {
            if len == blocks.len() {
                break;
            }
            if let Some(range) = self.held.at_or_after(start.near(next)) {
                blocks[len] = range;
                len += 1;
            }
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(reassembly: &Reassembly) -> Vec<(u64, u64)> {
        blocks_after(None, reassembly)
    }

    fn blocks_after(duplicate: Option<Range>, reassembly: &Reassembly) -> Vec<(u64, u64)> {
        let mut blocks = [Range { start: 0, end: 0 }; 3];
        let len = reassembly.blocks(4000, duplicate, &mut blocks);
        blocks[..len].iter().map(|range| (range.start, range.end)).collect()
    }

    /// RFC 2018, section 6, case 2: the first of eight segments of 500 bytes from 5000 is lost.
    #[test]
    fn the_first_block_grows_with_each_segment() {
        let mut reassembly = Reassembly::default();
        for (start, expected) in [(5500, (5500, 6000)), (6000, (5500, 6500)), (6500, (5500, 7000))] {
            reassembly.insert(start, start + 500);
            assert_eq!(blocks(&reassembly), [expected]);
        }
    }

    /// RFC 2018, section 6, case 3: the second, fourth, sixth and last of eight segments are lost; then the fourth and
    /// the second arrive.
    #[test]
    fn the_block_of_the_newest_segment_comes_first() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(6000, 6500);
        assert_eq!(blocks(&reassembly), [(6000, 6500)]);
        reassembly.insert(7000, 7500);
        assert_eq!(blocks(&reassembly), [(7000, 7500), (6000, 6500)]);
        reassembly.insert(8000, 8500);
        assert_eq!(blocks(&reassembly), [(8000, 8500), (7000, 7500), (6000, 6500)]);
        reassembly.insert(6500, 7000);
        assert_eq!(blocks(&reassembly), [(6000, 7500), (8000, 8500)]);
        assert_eq!(reassembly.advance(6000), 7500);
        assert_eq!(blocks(&reassembly), [(8000, 8500)]);
    }

    /// RFC 2883, section 4.1.2: the duplicate is reported ahead of the block.
    #[test]
    fn a_duplicate_is_reported_ahead_of_the_others() {
        let mut reassembly = Reassembly::default();
        reassembly.insert(4500, 5000);
        let duplicate = Range { start: 3000, end: 3500 };
        assert_eq!(blocks_after(Some(duplicate), &reassembly), [(3000, 3500), (4500, 5000)]);
        assert_eq!(blocks(&reassembly), [(4500, 5000)]);
    }
}
