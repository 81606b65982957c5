//! The times at which the octets in flight were transmitted, and which of them are SACKed or lost. Linux's
//! retransmission timer and RACK share this record.
//!
//! Published: RFC 6298, section 3 (Karn's algorithm); RFC 7323, section 4.2 (a measurement at every
//! acknowledgement); RFC 8985, section 5.2 (state of a segment); P. Sarolahti and A. Kuznetsov, "Congestion
//! Control in Linux TCP", USENIX 2002.
//!
//! Each acknowledgement measures the oldest segment that it newly acknowledges, by its number or by SACK.
//! Retransmitted segments are not measured.
//!
//! Differs: segments sent in the same microsecond share a record. Where losses are found by counting (RFC 6675), all
//! octets below the highest retransmitted one count as retransmitted. Repairs proceed upwards, so only a rescue
//! retransmission (RFC 6675, section 4, rule 4) makes a difference.
//! Cost: one store for each segment sent, one load for each acknowledgement; 16 bytes for each burst in flight. While
//! octets are SACKed or lost, each acknowledgement visits every record below the highest delivered octet.

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use super::segment_state::{SegmentState, Transmission, micros};
use crate::ranges::Range;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Transmissions {
    /// In order of the stream.
    records: VecDeque<Record>,
    /// Octets in flight that are SACKed.
    sacked: u32,
    /// Octets in flight that are lost and not retransmitted since.
    lost: u32,
    /// One past the highest retransmitted octet.
    retransmitted: u64,
    /// When the segment at the cumulative acknowledgement was last retransmitted, in microseconds; only
    /// where losses are found by counting.
    first_retransmitted_us: Option<u32>,
}

/// Octets up to `end`, from the end of the record before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    end: u64,
    state: SegmentState,
}

/// Octets in one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) range: Range,
    pub(crate) state: SegmentState,
}

/// The criterion of RACK for a loss (RFC 8985, section 6.2, step 5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossBounds {
    /// The most recent transmission that was delivered (RACK.xmit_ts), and one past its last octet (RACK.end_seq).
    pub(crate) newest: Transmission,
    pub(crate) newest_end: u64,
    /// Transmissions before `newest` and at least this old are lost: RACK.rtt and the reordering window.
    pub(crate) due_us: u32,
}

impl Transmissions {
    /// Octets up to `end` were transmitted for the first time.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, end: u64) {
        let record = Record { end, state: SegmentState::Sent(Transmission::first(now)) };
        match self.records.back_mut() {
            Some(last) if last.state == record.state => last.end = end,
            _ => self.records.push_back(record),
        }
    }

    /// Octets of `range` were retransmitted, where losses are found by counting.
    pub(crate) fn on_retransmitted(&mut self, now: Instant, una: u64, range: Range) {
        self.retransmitted = self.retransmitted.max(range.end);
        if range.start == una {
            self.first_retransmitted_us = Some(micros(now));
        }
    }

    /// The cumulative acknowledgement moved from `from` to `to`. Returns the age of the oldest octet that
    /// it covers, unless that was retransmitted.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Instant, from: u64, to: u64) -> Option<Duration> {
        self.first_retransmitted_us = None;
        let first = self.records.front()?.state;
        while self.records.front().is_some_and(|record| record.end <= to) {
            self.records.pop_front();
        }
        match first {
            SegmentState::Sent(sent) if self.retransmitted <= from => Some(sent.age(now)),
            _ => None,
        }
    }

    /// The time since an octet in flight was transmitted, unless it was retransmitted.
    pub(crate) fn age(&self, now: Instant, octet: u64) -> Option<Duration> {
        if self.retransmitted > octet {
            return None;
        }
        match self.records.get(self.find(octet))?.state {
            SegmentState::Sent(sent) => Some(sent.age(now)),
            SegmentState::Sacked => None,
        }
    }

    /// One past the highest retransmitted octet.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Octets in flight that are SACKed.
    #[inline]
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Octets in flight that are lost and not retransmitted since.
    #[inline]
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// A transmission of this age precedes the last retransmission of the segment at the cumulative acknowledgement.
    pub(crate) fn precedes_first_retransmission(&self, now: Instant, age: Duration) -> bool {
        self.first_retransmitted_us.is_some_and(|at| age > Duration::from_us(u64::from(micros(now).wrapping_sub(at))))
    }

    /// The time since the segment at the cumulative acknowledgement was last transmitted; zero if nothing
    /// is in flight. `None`: a receiver that SACKed this segment has reneged, and its time is not known.
    #[inline]
    pub(crate) fn first_age(&self, now: Instant) -> Option<Duration> {
        match self.records.front().map(|record| record.state) {
            None => Some(Duration::ZERO),
            Some(SegmentState::Sent(sent)) => Some(sent.age(now)),
            Some(SegmentState::Sacked) => None,
        }
    }
}

/// The operations of RACK. Each calls `each` with the parts whose state it changes, in their state before.
impl Transmissions {
    /// The cumulative acknowledgement moved from `from` to `to`.
    pub(crate) fn settle(&mut self, from: u64, to: u64, mut each: impl FnMut(Part)) {
        let mut start = from;
        while start < to
            && let Some(Record { end, state }) = self.records.front().copied()
        {
            let part = Part { range: Range { start, end: end.min(to) }, state };
            if let Some(count) = self.count_of(state) {
                *count -= part.range.len() as u32;
            }
            each(part);
            if end <= to {
                self.records.pop_front();
            }
            start = end;
        }
    }

    /// The receiver reports `range` in a SACK block.
    pub(crate) fn sack(&mut self, una: u64, range: Range, each: impl FnMut(Part)) {
        self.set_state(una, range, SegmentState::Sacked, each);
    }

    /// Octets of `range` were retransmitted and are in flight.
    pub(crate) fn retransmit(&mut self, now: Instant, una: u64, range: Range) {
        self.retransmitted = self.retransmitted.max(range.end);
        self.set_state(una, range, SegmentState::Sent(Transmission::again(now)), |_| ());
    }

    /// Gives all octets of `range` that are not SACKed this state.
    fn set_state(&mut self, una: u64, range: Range, state: SegmentState, mut each: impl FnMut(Part)) {
        let (mut index, mut start) = (self.find(range.start), range.start);
        while start < range.end
            && let Some(record) = self.records.get(index).copied()
        {
            if record.state != SegmentState::Sacked {
                let part = Range { start, end: record.end.min(range.end) };
                each(Part { range: part, state: record.state });
                index = self.carve(index, una, part, state);
            }
            start = self.end_of(index, una);
            index += 1;
        }
    }

    /// RFC 8985, section 6.2, step 5: marks as lost what was sent before the newest delivered transmission
    /// and long enough ago. Returns the longest time in microseconds after which another may have to be
    /// marked, if any.
    pub(crate) fn mark_lost(
        &mut self,
        now: Instant,
        una: u64,
        bounds: LossBounds,
        mut each: impl FnMut(Range, Transmission),
    ) -> Option<u32> {
        let lag = bounds.newest.age_us(now);
        let (mut index, mut start, mut wait) = (0, una, None);
        while let Some(Record { end, state }) = self.records.get(index).copied() {
            if let SegmentState::Sent(sent) = state
                && !sent.lost
            {
                let age = sent.age_us(now);
                // Among octets sent at the same time the higher ones were sent later; a retransmission may
                // have followed new data.
                let end = if age == lag { end.min(bounds.newest_end) } else { end };
                let follows = age == lag && sent.retransmitted && !bounds.newest.retransmitted;
                if age < lag || follows || end <= start {
                    // First transmissions are in order: those above are later still.
                    if !sent.retransmitted {
                        break;
                    }
                } else if age >= bounds.due_us {
                    each(Range { start, end }, sent);
                    index = self.carve(index, una, Range { start, end }, lost(sent));
                } else {
                    wait = wait.max(Some(bounds.due_us - age));
                }
            }
            start = self.end_of(index, una);
            index += 1;
        }
        wait
    }

    /// RFC 8985, section 6.3: the retransmission timer expired. Marks as lost the first `mss` octets and
    /// all that were transmitted at least `due_us` ago. If the first octet is SACKed, the receiver has
    /// reneged, and no SACK counts. Calls `each` with the octets that it marks.
    pub(crate) fn expire(&mut self, now: Instant, una: u64, mss: u32, due_us: u32, mut each: impl FnMut(Range)) {
        let reneged = self.records.front().is_some_and(|record| record.state == SegmentState::Sacked);
        let (mut index, mut start) = (0, una);
        while let Some(Record { end, state }) = self.records.get(index).copied() {
            match state {
                SegmentState::Sacked if reneged => {
                    each(Range { start, end });
                    index = self.carve(index, una, Range { start, end }, lost(Transmission::again(now)));
                }
                SegmentState::Sent(sent) if !sent.lost => {
                    let old = sent.age_us(now) >= due_us;
                    let end = if old { end } else { end.min(una + u64::from(mss)) };
                    if start < end {
                        each(Range { start, end });
                        index = self.carve(index, una, Range { start, end }, lost(sent));
                    }
                }
                _ => {}
            }
            start = self.end_of(index, una);
            index += 1;
        }
    }

    /// The repair was needless: no octet is lost.
    pub(crate) fn clear_lost(&mut self) {
        for record in &mut self.records {
            if let SegmentState::Sent(sent) = &mut record.state {
                sent.lost = false;
            }
        }
        self.lost = 0;
    }

    /// The first lost octets, at most `mss`.
    pub(crate) fn first_lost(&self, una: u64, mss: u32) -> Option<Range> {
        let mut index = (0..self.records.len()).find(|&index| self.is_lost(index))?;
        let start = if index == 0 { una } else { self.end_of(index - 1, una) };
        let most = start + u64::from(mss);
        while self.end_of(index, una) < most && self.is_lost(index + 1) {
            index += 1;
        }
        Some(Range { start, end: self.end_of(index, una).min(most) })
    }

    fn is_lost(&self, index: usize) -> bool {
        matches!(self.records.get(index), Some(Record { state: SegmentState::Sent(sent), .. }) if sent.lost)
    }

    /// Index of the record of an octet in flight.
    fn find(&self, octet: u64) -> usize {
        self.records.partition_point(|record| record.end <= octet)
    }

    fn end_of(&self, index: usize, una: u64) -> u64 {
        self.records.get(index).map_or(una, |record| record.end)
    }

    /// The sum that counts octets in this state.
    fn count_of(&mut self, state: SegmentState) -> Option<&mut u32> {
        match state {
            SegmentState::Sacked => Some(&mut self.sacked),
            SegmentState::Sent(sent) if sent.lost => Some(&mut self.lost),
            SegmentState::Sent(_) => None,
        }
    }

    /// Gives `part`, which lies within the record at `index`, another state. Returns the index of its record.
    fn carve(&mut self, mut index: usize, una: u64, part: Range, state: SegmentState) -> usize {
        let Some(record) = self.records.get(index).copied() else { return index };
        let len = part.len() as u32;
        if let Some(count) = self.count_of(record.state) {
            *count -= len;
        }
        if let Some(count) = self.count_of(state) {
            *count += len;
        }
        let start = if index == 0 { una } else { self.end_of(index - 1, una) };
        if start < part.start {
            self.records.insert(index, Record { end: part.start, ..record });
            index += 1;
        }
        if record.end == part.end {
            self.records[index].state = state;
        } else {
            self.records.insert(index, Record { end: part.end, state });
        }
        let same = |record: Option<&Record>| record.is_some_and(|record| record.state == state);
        if same(self.records.get(index + 1)) {
            self.records.remove(index);
        }
        if index > 0 && same(self.records.get(index - 1)) {
            index -= 1;
            self.records.remove(index);
        }
        index
    }
}

fn lost(mut sent: Transmission) -> SegmentState {
    sent.lost = true;
    SegmentState::Sent(sent)
}

#[cfg(test)]
mod tests;
