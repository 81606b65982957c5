//! The scoreboard of RFC 6675: the octets that the receiver holds beyond the cumulative acknowledgement,
//! and the losses that follow from them.
//!
//! Offsets count the octets of the stream, SYN and FIN included. `una` is the first octet that is not
//! acknowledged, so the RFC's HighACK is `una - 1`. The RFC's "high" numbers are stored as the offset one
//! past them.
//! Differs: `IsLost`, `SetPipe` and `NextSeg` give the RFC's results, but the pipe is kept and not summed.
//! `IsLost` holds for all octets below one edge that are not SACKed. This edge is the start of one of the
//! three highest ranges, or the point above which more than two segments are held; so totals give the lost
//! octets below it. After a timeout the scoreboard stays unless the receiver reneged (the octet at `una`
//! was SACKed), as errata 1610 and section 5.1 permit. All octets sent before the timeout then count as
//! lost until all of them are acknowledged.
//! Cost: O(ranges that change) for each acknowledgement, a binary search for each retransmission; boxed, 88 bytes.

use crate::ranges::{Range, RangeSet};

/// RFC 6675, section 2: DupThresh = 3.
pub(crate) const DUP_THRESH: u8 = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scoreboard {
    held: RangeSet,
    /// Octets in `held`.
    sacked: u32,
    /// All octets below that are not SACKed are lost.
    lost_edge: u64,
    /// The number of lost octets, from the cumulative acknowledgement up.
    lost: u32,
    /// Since a timeout, all octets below that are not SACKed count as lost.
    timeout_edge: u64,
    /// One past HighRxt: all octets below that are not SACKed have been retransmitted.
    high_rxt: u64,
    /// Octets from `una` to `high_rxt` that are neither acknowledged nor SACKed.
    retransmitted: u32,
    /// One past RescueRxt.
    rescue: Option<u64>,
}

impl Scoreboard {
    /// No octet is held beyond `una`, and none was retransmitted.
    pub(crate) fn new(una: u64) -> Self {
        Self {
            held: RangeSet::default(),
            sacked: 0,
            lost_edge: una,
            lost: 0,
            timeout_edge: una,
            high_rxt: una,
            retransmitted: 0,
            rescue: None,
        }
    }

    /// Octets that are SACKed.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Octets that are lost.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// RFC 6675, section 4, SetPipe: octets that are neither SACKed nor lost, plus the retransmitted ones.
    pub(crate) fn pipe(&self, una: u64, max: u64) -> u64 {
        (max - una - u64::from(self.sacked)) - u64::from(self.lost) + u64::from(self.retransmitted)
    }

    /// Records `left..right` as held, and calls `news` for each part that was not.
    pub(crate) fn insert(&mut self, left: u64, right: u64, mut news: impl FnMut(Range)) {
        let Self { held, sacked, lost, timeout_edge, high_rxt, retransmitted, .. } = self;
        held.insert(Range { start: left, end: right }, |part| {
            *sacked += part.len() as u32;
            *retransmitted -= below(part, *high_rxt);
            *lost -= below(part, *timeout_edge);
            news(part);
        });
    }

    /// The cumulative acknowledgement moved from `from` to `to`.
    pub(crate) fn advance(&mut self, from: u64, to: u64) {
        let mut gap = from;
        while let Some(range) = self.held.first()
            && range.start < to
        {
            self.settle_gap(gap, range.start);
            gap = range.end.min(to);
            self.sacked -= (gap - range.start) as u32;
            if range.end <= to {
                self.held.pop_first();
            } else {
                break;
            }
        }
        self.settle_gap(gap, to);
        self.held.trim_below(to);
    }

    /// Octets `start..end`, not SACKed so far, are acknowledged.
    fn settle_gap(&mut self, start: u64, end: u64) {
        if start < end {
            let part = Range { start, end };
            self.retransmitted -= below(part, self.high_rxt);
            self.lost -= below(part, self.timeout_edge);
        }
    }

    /// Recomputes the lost octets after changes.
    pub(crate) fn update(&mut self, una: u64, mss: u32) {
        if self.timeout_edge > una {
            return;
        }
        // RFC 6675, section 4, IsLost: either DupThresh discontiguous ranges or more than (DupThresh - 1) *
        // SMSS octets lie above.
        let enough = (u64::from(DUP_THRESH) - 1) * u64::from(mss);
        let (mut above, mut count) = (0, 0);
        (self.lost_edge, self.lost) = (una, 0);
        for range in self.held.descending() {
            above += range.len();
            count += 1;
            if count == DUP_THRESH || above > enough {
                self.lost_edge = range.start;
                self.lost = (range.start - una) as u32 - (self.sacked - above as u32);
                break;
            }
        }
    }

    pub(crate) fn is_lost(&self, offset: u64) -> bool {
        self.lost_edge > offset
    }

    /// RFC 6675, section 5, step 3.1: no octet counts as retransmitted.
    pub(crate) fn forget_retransmissions(&mut self, una: u64) {
        self.high_rxt = una;
        self.retransmitted = 0;
    }

    /// The retransmission timer expired: all octets up to `max` that are not SACKed are lost.
    pub(crate) fn on_timeout(&mut self, una: u64, max: u64) {
        if self.held.first().is_some_and(|range| range.start <= una) {
            self.held.clear();
            self.sacked = 0;
        }
        self.forget_retransmissions(una);
        self.timeout_edge = max;
        self.lost_edge = max;
        self.lost = (max - una) as u32 - self.sacked;
    }

    /// Lost octets that were not retransmitted.
    pub(crate) fn lost_not_retransmitted(&self) -> u32 {
        self.lost.saturating_sub(self.retransmitted)
    }

    /// The timeout was needless: octets that are not SACKed are in flight.
    pub(crate) fn forget_timeout(&mut self, una: u64) {
        self.timeout_edge = una;
    }

    /// RFC 6675, section 5, step 4.3: retransmits the segment at `una`, at most `mss` octets.
    pub(crate) fn retransmit_first(&mut self, una: u64, max: u64, mss: u32) -> Range {
        self.forget_retransmissions(una);
        let part = self.unsacked_from(una, max, mss);
        self.mark_retransmitted(part);
        // Step 4.3: both HighRxt and RescueRxt.
        self.rescue = Some(part.end);
        part
    }

    /// RFC 6675, section 4, NextSeg, rule 1: the first lost octets that were not retransmitted.
    pub(crate) fn next_lost(&mut self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let part = self.next_unsacked(una, max, mss)?;
        if !self.is_lost(part.start) {
            return None;
        }
        self.mark_retransmitted(part);
        Some(part)
    }

    /// Rule 3: the first octets below a SACKed one that were not retransmitted.
    pub(crate) fn next_suspect(&mut self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let part = self.next_unsacked(una, max, mss)?;
        if part.start >= self.held.last()?.start {
            return None;
        }
        self.mark_retransmitted(part);
        Some(part)
    }

    /// Rule 4: once for each recovery, the highest octets in flight that are not SACKed.
    pub(crate) fn rescue(&mut self, una: u64, max: u64, mss: u32, recovery_point: u64) -> Option<Range> {
        if self.rescue.is_some_and(|rescue| rescue >= una) {
            return None;
        }
        let (floor, end) = match self.held.last() {
            Some(last) if last.end < max => (last.end, max),
            Some(last) => (self.held.descending().nth(1).map_or(una, |range| range.end), last.start),
            None => (una, max),
        };
        self.rescue = Some(recovery_point);
        Some(Range { start: floor.max(end.saturating_sub(u64::from(mss))), end })
    }

    fn mark_retransmitted(&mut self, part: Range) {
        self.high_rxt = part.end;
        self.retransmitted += part.len() as u32;
    }

    fn next_unsacked(&self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let from = self.high_rxt.max(una);
        let start = match self.held.at_or_after(from) {
            Some(range) if range.contains(from) => range.end,
            _ => from,
        };
        if start < max { Some(self.unsacked_from(start, max, mss)) } else { None }
    }

    fn unsacked_from(&self, start: u64, max: u64, mss: u32) -> Range {
        let next = self.held.at_or_after(start).map_or(max, |range| range.start);
        Range { start, end: next.min(max).min(start + u64::from(mss)) }
    }
}

/// Octets of `part` below `edge`.
fn below(part: Range, edge: u64) -> u32 {
    edge.saturating_sub(part.start).min(part.len()) as u32
}

#[cfg(test)]
mod tests;
