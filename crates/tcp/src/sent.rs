//! When what is in flight went out: the round trips of the timer that Linux keeps.
//!
//! Published: RFC 6298, section 3 (Karn's algorithm), RFC 7323, section 4.2 (measuring at every acknowledgement), and P.
//! Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002: the kernel notes for each segment when
//! it went out, and each acknowledgement measures the oldest segment that it newly acknowledges, by its number or by
//! SACK. What went out twice is not measured.
//! Differs: what goes out in the same microsecond shares a note. All below the highest octet sent again counts as sent
//! again: repairs go upwards, so that only a rescue retransmission (RFC 6675, section 4, rule 4) makes a difference.
//! Cost: a store for each segment sent, a load for each acknowledgement; eight bytes a burst in flight.

use lastmile_units::{Duration, Instant};

use crate::list::List;
use crate::ranges::Low;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct SentTimes {
    /// In order of the stream, and of time.
    marks: List<Mark>,
    /// One past the highest octet sent again.
    again: Low,
    /// When the segment at the cumulative acknowledgement was last sent again; [`Micros::NEVER`]: it was not.
    first_again: Micros,
}

/// Octets up to `end`, from the mark before, went out at `at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Mark {
    end: Low,
    at: Micros,
}

/// A time in microseconds, as far as 71 minutes tell it. Zero is given up for "never".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Micros(u32);

impl Micros {
    const NEVER: Self = Self(0);

    #[inline]
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
        let mark = Mark { end: Low::of(end), at: Micros::of(now) };
        match self.marks.last() {
            Some(last) if last.at == mark.at => self.marks.set(self.marks.len() - 1, mark),
            _ => self.marks.push(mark),
        }
    }

    /// Octets `start..end` went out again.
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
        let first = self.marks.get(0)?;
        let mut passed = 0;
        while self.marks.get(passed).is_some_and(|mark| mark.end.ahead_of(to) <= 0) {
            passed += 1;
        }
        self.marks.remove(0..passed);
        if sent_once { Some(first.at.until(now)) } else { None }
    }

    /// The time since an octet in flight went out, if that was once.
    pub(crate) fn age(&self, now: Instant, octet: u64) -> Option<Duration> {
        if self.again.ahead_of(octet) > 0 {
            return None;
        }
        let index = self.marks.partition_point(|mark| mark.end.ahead_of(octet) <= 0);
        Some(self.marks.get(index)?.at.until(now))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn us(count: u64) -> Option<Duration> {
        Some(Duration::from_us(count))
    }

    #[test]
    fn an_acknowledgement_measures_the_oldest_segment_of_it() {
        let mut sent = SentTimes::default();
        for (sent_at, end) in [(100, 1001), (100, 2001), (250, 3001), (300, 4001)] {
            sent.note(at(sent_at), end);
        }
        assert_eq!(sent.marks.len(), 3, "a burst shares a mark");
        assert_eq!(sent.acknowledge(at(1100), 1, 1001), us(1000));
        assert_eq!(sent.acknowledge(at(1200), 1001, 3001), us(1100));
        assert_eq!(sent.acknowledge(at(1300), 3001, 4001), us(1000));
        assert_eq!((sent.marks.len(), sent.acknowledge(at(1300), 4001, 4002)), (0, None));
    }

    /// Karn's algorithm, for what was sent again and for what lies above it.
    #[test]
    fn what_was_sent_again_measures_nothing() {
        let mut sent = SentTimes::default();
        for (sent_at, end) in [(100, 1001), (200, 2001), (300, 3001)] {
            sent.note(at(sent_at), end);
        }
        sent.note_again(at(1000), 1, 1, 1001);
        assert_eq!(
            (sent.age(at(1100), 1), sent.age(at(1100), 1001), sent.age(at(1100), 2500)),
            (None, us(900), us(800))
        );
        assert!(sent.precedes_first_again(at(1100), Duration::from_us(101)));
        assert!(!sent.precedes_first_again(at(1100), Duration::from_us(100)));
        assert_eq!(sent.acknowledge(at(1100), 1, 2001), None);
        assert!(!sent.precedes_first_again(at(1100), Duration::from_us(900)), "another is first now");
        assert_eq!(sent.acknowledge(at(1200), 2001, 3001), us(900));
    }

    proptest! {
        /// Against a list of every octet's time.
        #[test]
        fn each_octet_has_the_time_at_which_it_went_out(
            base in prop_oneof![Just(1_u64), (1 << 32) - 300_u64..1 << 32],
            steps in proptest::collection::vec((0_u64..3, 1_u64..20, 0_u64..30), 1..60),
        ) {
            let mut sent = SentTimes { again: Low::of(base), ..SentTimes::default() };
            let mut times = std::collections::VecDeque::new();
            let (mut now, mut una) = (50, base);
            for (wait, len, acked) in steps {
                now += wait;
                times.extend(std::iter::repeat_n(now, len as usize));
                sent.note(at(now), una + times.len() as u64);
                for (index, &time) in times.iter().enumerate() {
                    prop_assert_eq!(sent.age(at(now + 7), una + index as u64), us(now + 7 - time));
                }
                let acked = acked.min(times.len() as u64);
                if acked > 0 {
                    prop_assert_eq!(sent.acknowledge(at(now), una, una + acked), us(now - times[0]));
                    times.drain(..acked as usize);
                    una += acked;
                }
            }
        }
    }
}
