//! What the receiver holds beyond the cumulative acknowledgement, and what that says about the rest (RFC 6675).
//!
//! Offsets count the octets of the stream, SYN and FIN included; `una` is the first that is not acknowledged, so the
//! RFC's HighACK is `una - 1`. "High" numbers are kept as the offset one past the RFC's.
//! Differs: nothing in `IsLost`, `SetPipe` and `NextSeg`, but the pipe is kept instead of summed. `IsLost` holds for
//! all unSACKed octets below one edge, and that edge is the start of one of the three highest ranges or where more than
//! two segments are held above; so the lost octets below it follow from totals. After a timeout the scoreboard is kept
//! unless the receiver reneged (the octet at `una` was SACKed), as errata 1610 and section 5.1 permit, and just what
//! was sent before counts as lost until all of it is acknowledged.
//! Offsets are kept as their low halves, which one near them, `una`, makes whole: those that `una` has passed follow it.
//! Cost: O(ranges that change) for each acknowledgement, a binary search for each segment sent again; 56 bytes.

use crate::ranges::{Low, Range, RangeSet};

/// RFC 6675, section 2: DupThresh = 3.
pub(crate) const DUP_THRESH: u8 = 3;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Scoreboard {
    held: RangeSet,
    /// Octets in `held`.
    sacked: u32,
    /// All unSACKed octets below are lost.
    lost_edge: Low,
    /// How many those are, from the cumulative acknowledgement up.
    lost: u32,
    /// Below this everything counts as lost, since a timeout said so.
    timeout_edge: Low,
    /// One past HighRxt: what lies below and is not SACKed has been sent again.
    high_rxt: Low,
    /// Octets from `una` to `high_rxt` that are neither acknowledged nor SACKed.
    resent: u32,
    /// One past RescueRxt; below `una` while there is none.
    rescue: Low,
}

// A box of 56 bytes takes 64 of the heap, one of 57 takes 80.
impl Scoreboard {
    /// Nothing is held beyond `una`, nothing was sent again.
    pub(crate) fn new(una: u64) -> Self {
        let none = Low::of(una);
        Self {
            held: RangeSet::default(),
            sacked: 0,
            lost_edge: none,
            lost: 0,
            timeout_edge: none,
            high_rxt: none,
            resent: 0,
            rescue: Low::of(una.wrapping_sub(1)),
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

    /// RFC 6675, section 4, SetPipe: octets that are out and neither SACKed nor lost, and those that were sent again.
    pub(crate) fn pipe(&self, una: u64, max: u64) -> u64 {
        (max - una - u64::from(self.sacked)) - u64::from(self.lost) + u64::from(self.resent)
    }

    /// Records `left..right` as held, and tells `news` of each part that was not.
    pub(crate) fn insert(&mut self, left: u64, right: u64, mut news: impl FnMut(Range)) {
        let Self { held, sacked, lost, timeout_edge, high_rxt, resent, .. } = self;
        held.insert(Range { start: left, end: right }, |part| {
            *sacked += part.len() as u32;
            *resent -= below(part, *high_rxt);
            *lost -= below(part, *timeout_edge);
            news(part);
        });
    }

    /// The cumulative acknowledgement moved from `from` to `to`.
    pub(crate) fn advance(&mut self, from: u64, to: u64) {
        let mut gap = from;
        while let Some(range) = self.held.first(to)
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
        // What was passed stays near.
        for edge in [&mut self.lost_edge, &mut self.timeout_edge, &mut self.high_rxt] {
            if edge.ahead_of(to) < 0 {
                *edge = Low::of(to);
            }
        }
        if self.rescue.ahead_of(to) < 0 {
            self.rescue = Low::of(to.wrapping_sub(1));
        }
    }

    /// Octets `start..end`, not SACKed so far, are acknowledged.
    fn settle_gap(&mut self, start: u64, end: u64) {
        if start < end {
            let part = Range { start, end };
            self.resent -= below(part, self.high_rxt);
            self.lost -= below(part, self.timeout_edge);
        }
    }

    /// Brings what is lost up to date after changes. `una`: now.
    pub(crate) fn update(&mut self, una: u64, mss: u32) {
        if self.timeout_edge.ahead_of(una) > 0 {
            return;
        }
        // RFC 6675, section 4, IsLost: either DupThresh discontiguous ranges or more than (DupThresh - 1) * SMSS octets
        // lie above.
        let enough = (u64::from(DUP_THRESH) - 1) * u64::from(mss);
        let (mut above, mut count) = (0, 0);
        (self.lost_edge, self.lost) = (Low::of(una), 0);
        for range in self.held.descending(una) {
            above += range.len();
            count += 1;
            if count == DUP_THRESH || above > enough {
                self.lost_edge = Low::of(range.start);
                self.lost = (range.start - una) as u32 - (self.sacked - above as u32);
                break;
            }
        }
    }

    pub(crate) fn is_lost(&self, offset: u64) -> bool {
        self.lost_edge.ahead_of(offset) > 0
    }

    /// RFC 6675, section 5, step 3.1: nothing counts as sent again.
    pub(crate) fn forget_resent(&mut self, una: u64) {
        self.high_rxt = Low::of(una);
        self.resent = 0;
    }

    /// The retransmission timer expired: all up to `max` that is not SACKed is to be sent again.
    pub(crate) fn on_timeout(&mut self, una: u64, max: u64) {
        if self.held.first(una).is_some_and(|range| range.start <= una) {
            self.held.clear();
            self.sacked = 0;
        }
        self.forget_resent(una);
        self.timeout_edge = Low::of(max);
        self.lost_edge = Low::of(max);
        self.lost = (max - una) as u32 - self.sacked;
    }

    /// Octets that a timeout took for lost and that were not sent again.
    pub(crate) fn untouched(&self) -> u32 {
        self.lost.saturating_sub(self.resent)
    }

    /// The timeout was needless: what is not SACKed is in flight.
    pub(crate) fn forget_timeout(&mut self, una: u64) {
        self.timeout_edge = Low::of(una);
    }

    /// The part that begins at `una` goes out first: RFC 6675, section 5, step 4.3. At most `mss` octets.
    pub(crate) fn resend_first(&mut self, una: u64, max: u64, mss: u32) -> Range {
        self.forget_resent(una);
        let part = self.unsacked_from(una, max, mss);
        self.mark_resent(part);
        // Step 4.3: both HighRxt and RescueRxt.
        self.rescue = Low::of(part.end);
        part
    }

    /// RFC 6675, section 4, NextSeg, rule 1: the first lost octets that were not sent again.
    pub(crate) fn next_lost(&mut self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let part = self.next_unsacked(una, max, mss)?;
        if !self.is_lost(part.start) {
            return None;
        }
        self.mark_resent(part);
        Some(part)
    }

    /// Rule 3: the first octets that were not sent again and lie below something SACKed.
    pub(crate) fn next_suspect(&mut self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let part = self.next_unsacked(una, max, mss)?;
        if part.start >= self.held.last(una)?.start {
            return None;
        }
        self.mark_resent(part);
        Some(part)
    }

    /// Rule 4: once for each recovery, the highest octets that are out and not SACKed.
    pub(crate) fn rescue(&mut self, una: u64, max: u64, mss: u32, recovery_point: u64) -> Option<Range> {
        if self.rescue.ahead_of(una) >= 0 {
            return None;
        }
        let (floor, end) = match self.held.last(una) {
            Some(last) if last.end < max => (last.end, max),
            Some(last) => (self.held.descending(una).nth(1).map_or(una, |range| range.end), last.start),
            None => (una, max),
        };
        self.rescue = Low::of(recovery_point);
        Some(Range { start: floor.max(end.saturating_sub(u64::from(mss))), end })
    }

    fn mark_resent(&mut self, part: Range) {
        self.high_rxt = Low::of(part.end);
        self.resent += part.len() as u32;
    }

    fn next_unsacked(&self, una: u64, max: u64, mss: u32) -> Option<Range> {
        let from = self.high_rxt.near(una).max(una);
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

/// How much of `part` lies below `edge`.
fn below(part: Range, edge: Low) -> u32 {
    edge.ahead_of(part.start).clamp(0, part.len() as i64) as u32
}

#[cfg(test)]
mod tests;
