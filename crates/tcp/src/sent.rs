//! When what is in flight went out, and what became of it: one ring for the timer that Linux keeps and for the finding of
//! losses by time.
//!
//! Published: RFC 6298, section 3 (Karn's algorithm), RFC 7323, section 4.2 (measuring at every acknowledgement), and P.
//! Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002: the kernel notes for each segment when
//! it went out, and each acknowledgement measures the oldest segment that it newly acknowledges, by its number or by
//! SACK. What went out twice is not measured. For RACK (RFC 8985, section 5.2) each mark tells besides whether its octets
//! went out again, are lost, or are SACKed.
//! Differs: what goes out in the same microsecond shares a mark, and times are told apart within nine minutes. Where losses
//! are found by counting, all below the highest octet sent again counts as sent again: repairs go upwards, so that only a
//! rescue retransmission (RFC 6675, section 4, rule 4) makes a difference.
//! Cost: a store for each segment sent, a load for each acknowledgement; eight bytes a burst in flight. While something is
//! SACKED or lost, a look at every mark below what was delivered last for each acknowledgement.

mod fate;

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use crate::ranges::{Low, Range};
pub(crate) use fate::Fate;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SentTimes {
    /// In order of the stream.
    marks: VecDeque<Mark>,
    /// One past the highest octet sent again.
    again: Low,
    /// When the segment at the cumulative acknowledgement was last sent again, where losses are found by counting;
    /// [`Micros::NEVER`]: it was not.
    first_again: Micros,
}

/// Octets up to `end`, from the mark before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Mark {
    end: Low,
    fate: Fate,
}

/// Octets of one fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) range: Range,
    pub(crate) fate: Fate,
}

/// What RACK compares with: the segment sent last of those that were delivered, and how old another may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) latest: Fate,
    pub(crate) latest_end: Low,
    /// Older ones, sent before it, are lost: RACK.rtt and the reordering window, in microseconds.
    pub(crate) due_us: u32,
}

/// A time in microseconds, as far as 71 minutes tell it. Zero is given up for "never".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Micros(u32);

impl Micros {
    const NEVER: Self = Self(0);

    fn of(now: Instant) -> Self {
        Self(((now.as_ps() / 1_000_000) as u32).max(1))
    }

    fn until(self, now: Instant) -> Duration {
        Duration::from_us(u64::from(Self::of(now).0.wrapping_sub(self.0)))
    }
}

impl SentTimes {
    /// Octets up to `end` went out for the first time.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant, end: u64) {
        let mark = Mark { end: Low::of(end), fate: Fate::sent(now) };
        match self.marks.back_mut() {
            Some(last) if last.fate == mark.fate => *last = mark,
            _ => self.marks.push_back(mark),
        }
    }

    /// Octets `start..end` went out again, and losses are found by counting.
    pub(crate) fn note_again(&mut self, now: Instant, una: u64, start: u64, end: u64) {
        self.again = Low::of(self.again.near(una).max(end));
        if start == una {
            self.first_again = Micros::of(now);
        }
    }

    /// The cumulative acknowledgement moved from `from` to `to`. Returns the time since the oldest octet of it went out,
    /// if that was once.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Instant, from: u64, to: u64) -> Option<Duration> {
        self.first_again = Micros::NEVER;
        let sent_once = self.again.ahead_of(from) <= 0;
        if self.again.ahead_of(to) < 0 {
            self.again = Low::of(to);
        }
        let first = self.marks.front().copied()?;
        let mut passed = 0;
        while self.marks.get(passed).is_some_and(|mark| mark.end.ahead_of(to) <= 0) {
            passed += 1;
        }
        self.marks.drain(..passed);
        if sent_once { Some(first.fate.age(now)) } else { None }
    }

    /// The time since an octet in flight went out, if that was once.
    pub(crate) fn age(&self, now: Instant, octet: u64) -> Option<Duration> {
        if self.again.ahead_of(octet) > 0 {
            return None;
        }
        Some(self.marks.get(self.find(octet)).copied()?.fate.age(now))
    }

    /// One past the highest octet sent again.
    pub(crate) fn again(&self, near: u64) -> u64 {
        self.again.near(near)
    }

    /// Whether something that went out `age` ago did so before the segment at the cumulative acknowledgement was sent
    /// again.
    pub(crate) fn precedes_first_again(&self, now: Instant, age: Duration) -> bool {
        self.first_again != Micros::NEVER && age > self.first_again.until(now)
    }

    /// The time since the segment at the cumulative acknowledgement last went out.
    #[inline]
    pub(crate) fn first_age(&self, now: Instant) -> Duration {
        self.marks.front().map_or(Duration::ZERO, |mark| mark.fate.age(now))
    }
}

/// For RACK: the marks tell of each octet in flight what became of it.
impl SentTimes {
    /// As [`acknowledge`](Self::acknowledge); `each` is told of all that was acknowledged.
    pub(crate) fn settle(&mut self, from: u64, to: u64, mut each: impl FnMut(Part)) {
        if self.again.ahead_of(to) < 0 {
            self.again = Low::of(to);
        }
        let (mut start, mut passed) = (from, 0);
        while start < to
            && let Some(mark) = self.marks.get(passed).copied()
        {
            let end = mark.end.near(from);
            each(Part { range: Range { start, end: end.min(to) }, fate: mark.fate });
            passed += usize::from(end <= to);
            start = end;
        }
        self.marks.drain(..passed);
    }

    /// Octets of `range`, above `una`, are SACKed; `each` is told of those that were not.
    pub(crate) fn hold(&mut self, una: u64, range: Range, each: impl FnMut(Part)) {
        self.mark(una, range, Fate::HELD, each);
    }

    /// Octets of `range` went out again, and are in flight.
    pub(crate) fn send_again(&mut self, now: Instant, una: u64, range: Range, each: impl FnMut(Part)) {
        self.again = Low::of(self.again.near(una).max(range.end));
        self.mark(una, range, Fate::sent_again(now), each);
    }

    /// What of `range` is not SACKed has this fate from now on; `each` is told of it, and of its fate before.
    fn mark(&mut self, una: u64, range: Range, fate: Fate, mut each: impl FnMut(Part)) {
        let (mut index, mut start) = (self.find(range.start), range.start);
        while start < range.end
            && let Some(mark) = self.marks.get(index).copied()
        {
            if !mark.fate.is_held() {
                let part = Range { start, end: mark.end.near(una).min(range.end) };
                each(Part { range: part, fate: mark.fate });
                index = self.carve(index, una, part, fate);
            }
            start = self.end_of(index, una);
            index += 1;
        }
    }

    /// RFC 8985, section 6.2, step 5: what went out before the latest that was delivered and long enough ago is lost;
    /// `each` is told of it. Returns for how long others must be waited for, in microseconds; zero: for none.
    pub(crate) fn lose(&mut self, now: Instant, una: u64, bounds: Bounds, mut each: impl FnMut(Part)) -> u32 {
        let lag = bounds.latest.age_us(now);
        let (mut index, mut start, mut wait) = (0, una, 0);
        while let Some(Mark { end, fate }) = self.marks.get(index).copied() {
            if !fate.is_held() && !fate.is_lost() {
                let (age, end) = (fate.age_us(now), end.near(una));
                // Of those that went out at the same time the higher ones did so later; a repair may have followed new data.
                let end = if age == lag { end.min(bounds.latest_end.near(una)) } else { end };
                let follows = age == lag && fate.is_again() && !bounds.latest.is_again();
                if age < lag || follows || end <= start {
                    // First transmissions go out in order: all above are later still.
                    if !fate.is_again() {
                        break;
                    }
                } else if age >= bounds.due_us {
                    let part = Range { start, end };
                    each(Part { range: part, fate });
                    index = self.carve(index, una, part, fate.lost());
                } else {
                    wait = wait.max(bounds.due_us - age);
                }
            }
            start = self.end_of(index, una);
            index += 1;
        }
        wait
    }

    /// RFC 8985, section 6.3: the timer expired. The first `mss` octets are lost, and all that went out `due_us` ago or
    /// longer; `each` is told of what was not before. A receiver that does not hold the first octet, which it SACKed,
    /// may hold none.
    pub(crate) fn expire(&mut self, now: Instant, una: u64, mss: u32, due_us: u32, mut each: impl FnMut(Part)) {
        let reneged = self.marks.front().is_some_and(|mark| mark.fate.is_held());
        let (mut index, mut start) = (0, una);
        while let Some(mark) = self.marks.get(index).copied() {
            let (fate, end) = (mark.fate, mark.end.near(una));
            if fate.is_held() && reneged {
                let part = Range { start, end };
                each(Part { range: part, fate });
                index = self.carve(index, una, part, Fate::sent_again(now).lost());
            } else if !fate.is_held() && !fate.is_lost() {
                let old = fate.age_us(now) >= due_us;
                let part = Range { start, end: if old { end } else { end.min(una + u64::from(mss)) } };
                if part.start < part.end {
                    each(Part { range: part, fate });
                    index = self.carve(index, una, part, fate.lost());
                }
            }
            start = self.end_of(index, una);
            index += 1;
        }
    }

    /// What was taken for lost is in flight.
    pub(crate) fn forgive(&mut self) {
        for index in 0..self.marks.len() {
            if let Some(mark) = self.marks.get(index).copied().filter(|mark| !mark.fate.is_held()) {
                self.marks[index] = Mark { fate: mark.fate.not_lost(), ..mark };
            }
        }
    }

    /// The first octets that are lost, at most `mss`.
    pub(crate) fn first_lost(&self, una: u64, mss: u32) -> Option<Range> {
        let mut index = (0..self.marks.len()).find(|&index| self.is_lost(index))?;
        let start = if index == 0 { una } else { self.end_of(index - 1, una) };
        let most = start + u64::from(mss);
        while self.end_of(index, una) < most && self.is_lost(index + 1) {
            index += 1;
        }
        Some(Range { start, end: self.end_of(index, una).min(most) })
    }

    /// Octets that are SACKed, and that are lost.
    pub(crate) fn sums(&self, una: u64) -> (u32, u32) {
        let (mut start, mut held, mut lost) = (una, 0, 0);
        for mark in self.marks.iter() {
            let end = mark.end.near(una);
            held += if mark.fate.is_held() { end - start } else { 0 };
            lost += if mark.fate.is_lost() { end - start } else { 0 };
            start = end;
        }
        (held as u32, lost as u32)
    }

    fn is_lost(&self, index: usize) -> bool {
        self.marks.get(index).is_some_and(|mark| mark.fate.is_lost())
    }

    /// The mark of an octet in flight.
    fn find(&self, octet: u64) -> usize {
        self.marks.partition_point(|mark| mark.end.ahead_of(octet) <= 0)
    }

    fn end_of(&self, index: usize, una: u64) -> u64 {
        self.marks.get(index).map_or(una, |mark| mark.end.near(una))
    }

    /// `part`, which lies within one mark, has another fate now. Returns where its mark is.
    fn carve(&mut self, mut index: usize, una: u64, part: Range, fate: Fate) -> usize {
        let Some(mark) = self.marks.get(index).copied() else { return index };
        let start = if index == 0 { una } else { self.end_of(index - 1, una) };
        if start < part.start {
            self.marks.insert(index, Mark { end: Low::of(part.start), ..mark });
            index += 1;
        }
        if mark.end == Low::of(part.end) {
            self.marks[index] = Mark { fate, ..mark };
        } else {
            self.marks.insert(index, Mark { end: Low::of(part.end), fate });
        }
        let same = |mark: Option<Mark>| mark.is_some_and(|mark| mark.fate == fate);
        if same(self.marks.get(index + 1).copied()) {
            self.marks.remove(index);
        }
        if index > 0 && same(self.marks.get(index - 1).copied()) {
            index -= 1;
            self.marks.remove(index);
        }
        index
    }
}

#[cfg(test)]
mod tests;
