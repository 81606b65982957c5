//! Reports of duplicates (RFC 2883), and the retransmissions that they show to have been needless.
//!
//! A duplicate is a needless retransmission, or a copy that the network made. When more octets have been reported than
//! were retransmitted, the network duplicates, and reports tell nothing (RFC 3708, section 3). An echo from before a
//! retransmission also shows that it was needless (RFC 3522); its report, if it comes later, is of the same one.

use std::collections::VecDeque;

use lastmile_units::Instant;

use crate::timestamps;

/// The most retransmissions that wait for a report.
const MOST: usize = 1_024;

/// A retransmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: i64,
    end: i64,
    at: Instant,
    timestamp: Option<u32>,
    by_timeout: bool,
    /// True if an answer has shown it.
    is_needless: bool,
}

/// How many retransmissions were needless, and how many of these a timeout sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Needless {
    pub(super) all: u64,
    pub(super) timeouts: u64,
}

impl Needless {
    fn add(&mut self, sent: Sent) {
        self.all += u64::from(!sent.is_needless);
        self.timeouts += u64::from(!sent.is_needless && sent.by_timeout);
    }
}

/// The retransmissions of a direction without a report, and the extent of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    unreported: VecDeque<Sent>,
    retransmitted: i64,
    reported: i64,
}

impl Reports {
    /// Records the retransmission of `start..end` at `at`.
    pub(super) fn note(&mut self, at: Instant, (start, end): (i64, i64), timestamp: Option<u32>, by_timeout: bool) {
        if self.unreported.len() == MOST {
            self.unreported.pop_front();
        }
        self.unreported.push_back(Sent { start, end, at, timestamp, by_timeout, is_needless: false });
        self.retransmitted += end - start;
    }

    /// Records that a probe repeats so many octets, of which a report comes as well.
    pub(super) fn repeated(&mut self, octets: i64) {
        self.retransmitted += octets;
    }

    /// The retransmissions that a report of `left..right` shows to have been needless. `None`: the network duplicates.
    pub(super) fn needless(&mut self, left: i64, right: i64) -> Option<Needless> {
        self.reported += right - left;
        if self.reported > self.retransmitted {
            return None;
        }
        // Of several retransmissions of a segment a report is about one: the latest, since an earlier one was needed
        // where the segment was lost.
        let (mut named, mut needless) = (Vec::new(), Needless::default());
        for index in (0..self.unreported.len()).rev() {
            let sent = self.unreported[index];
            if sent.start < right && left < sent.end && !named.contains(&sent.start) {
                named.push(sent.start);
                needless.add(sent);
                self.unreported.remove(index);
            }
        }
        Some(needless)
    }

    /// Changes the cause of the retransmission of `start` at `at`. False if it is known to have been needless.
    pub(super) fn revise(&mut self, at: Instant, start: i64, by_timeout: bool) -> bool {
        let is_it = |sent: &&mut Sent| (sent.at, sent.start, sent.is_needless) == (at, start, false);
        self.unreported.iter_mut().rfind(is_it).map(|sent| sent.by_timeout = by_timeout).is_some()
    }

    /// An answer shows that the retransmission of `start` at `at` was needless, and with an `echo` all others of
    /// `start` with a later timestamp. Returns those of which this is new.
    pub(super) fn settle(&mut self, at: Instant, start: i64, echo: Option<u32>) -> Needless {
        let mut needless = Needless::default();
        for sent in self.unreported.iter_mut().filter(|sent| sent.start == start) {
            let is_later = echo.zip(sent.timestamp).is_some_and(|(echo, own)| timestamps::is_before(echo, own));
            if sent.at == at || is_later {
                needless.add(*sent);
                sent.is_needless = true;
            }
        }
        needless
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO.saturating_add(Duration::from_ms(ms))
    }

    fn needless(all: u64, timeouts: u64) -> Option<Needless> {
        Some(Needless { all, timeouts })
    }

    #[test]
    fn a_report_is_of_the_retransmissions_that_it_names() {
        let mut reports = Reports::default();
        for start in [1, 1001, 1001, 5001] {
            reports.note(at(10), (start, start + 1000), None, start == 1);
        }
        assert_eq!(reports.needless(3001, 3002), needless(0, 0), "never retransmitted");
        assert_eq!(reports.needless(1, 2001), needless(2, 1), "of two segments, the second twice");
        assert_eq!(reports.needless(1001, 1501), needless(1, 0));
        assert_eq!(reports.settle(at(10), 5001, None), Needless { all: 1, timeouts: 0 });
        for start in [5001, 1] {
            assert_eq!(reports.settle(at(10), start, None), Needless::default(), "that is known");
        }
    }

    /// A fast retransmission was needed, and the timeout that followed was not: report and echo are of the same one.
    #[test]
    fn a_report_is_of_the_latest_retransmission_of_a_segment() {
        for echo_comes_first in [false, true] {
            let mut reports = Reports::default();
            reports.note(at(10), (1, 1001), None, false);
            reports.note(at(300), (1, 1001), None, true);
            let found = if echo_comes_first {
                [Some(reports.settle(at(300), 1, None)), reports.needless(1, 1001)]
            } else {
                [reports.needless(1, 1001), Some(reports.settle(at(300), 1, None))]
            };
            assert_eq!(found, [needless(1, 1), needless(0, 0)]);
        }
    }

    /// A repair, and three timeouts after it whose answers were lost until the last. Its echo is of the repair.
    #[test]
    fn an_echo_is_of_all_retransmissions_after_it() {
        let mut reports = Reports::default();
        for (ms, by_timeout) in [(10, false), (300, true), (900, true), (2_000, true)] {
            reports.note(at(ms), (1, 1001), Some(ms.try_into().unwrap()), by_timeout);
        }
        assert_eq!(reports.settle(at(2_000), 1, Some(10)), Needless { all: 3, timeouts: 3 });
        assert_eq!(reports.needless(1, 1001), needless(0, 0));
    }

    #[test]
    fn a_cause_is_revised_until_a_report() {
        let mut reports = Reports::default();
        for (ms, by_timeout) in [(200, false), (600, true), (1_400, true)] {
            reports.note(at(ms), (1, 1001), None, by_timeout);
        }
        assert!(reports.revise(at(600), 1, false) && !reports.revise(at(700), 1, false));
        assert_eq!(reports.settle(at(1_400), 1, None), Needless { all: 1, timeouts: 1 }, "of three the last");
        assert_eq!(reports.settle(at(600), 1, None), Needless { all: 1, timeouts: 0 });
        assert!(!reports.revise(at(600), 1, true), "it is known to have been needless");
    }

    /// RFC 3708, section 3: duplicates without retransmissions are the network's.
    #[test]
    fn reports_of_more_than_was_retransmitted_tell_nothing() {
        let mut reports = Reports::default();
        assert_eq!(reports.needless(1, 1001), None);
        reports.note(at(0), (2001, 3001), None, false);
        assert_eq!(reports.needless(2001, 3001), None, "2000 octets are reported, and 1000 were retransmitted");
        for start in [4001, 5001, 6001] {
            reports.note(at(0), (start, start + 1000), None, false);
        }
        assert_eq!(reports.needless(4001, 5001), needless(1, 0));
    }
}
