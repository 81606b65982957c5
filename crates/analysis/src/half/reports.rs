//! Reports of duplicates (RFC 2883), and the retransmissions that they show to have been needless.
//!
//! A duplicate is a needless retransmission, or a copy that the network made. When more octets have been reported than
//! were retransmitted, the network duplicates, and reports tell nothing (RFC 3708, section 3).

use std::collections::VecDeque;

use lastmile_units::Instant;

/// The most retransmissions that wait for a report.
const MOST: usize = 1_024;

/// A retransmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: i64,
    end: i64,
    at: Instant,
    by_timeout: bool,
}

/// How many retransmissions were needless, and how many of these a timeout sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Needless {
    pub(super) all: u64,
    pub(super) timeouts: u64,
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
    pub(super) fn note(&mut self, at: Instant, (start, end): (i64, i64), by_timeout: bool) {
        if self.unreported.len() == MOST {
            self.unreported.pop_front();
        }
        self.unreported.push_back(Sent { start, end, at, by_timeout });
        self.retransmitted += end - start;
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
                needless.all += 1;
                needless.timeouts += u64::from(sent.by_timeout);
                self.unreported.remove(index);
            }
        }
        Some(needless)
    }

    /// Changes the cause of the retransmission of `start` at `at`. False if it is known to have been needless.
    pub(super) fn revise(&mut self, at: Instant, start: i64, by_timeout: bool) -> bool {
        let found = self.position(at, start).and_then(|place| self.unreported.get_mut(place));
        found.map(|sent| sent.by_timeout = by_timeout).is_some()
    }

    /// Without a report the retransmission of `start` at `at` is known to have been needless: nothing, if that was
    /// reported.
    pub(super) fn settle(&mut self, at: Instant, start: i64) -> Needless {
        let found = self.position(at, start).and_then(|place| self.unreported.remove(place));
        found.map_or_else(Needless::default, |sent| Needless { all: 1, timeouts: sent.by_timeout.into() })
    }

    fn position(&self, at: Instant, start: i64) -> Option<usize> {
        self.unreported.iter().rposition(|sent| (sent.at, sent.start) == (at, start))
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
            reports.note(at(10), (start, start + 1000), start == 1);
        }
        assert_eq!(reports.needless(3001, 3002), needless(0, 0), "never retransmitted");
        assert_eq!(reports.needless(1, 2001), needless(2, 1), "of two segments, the second twice");
        assert_eq!(reports.needless(1001, 1501), needless(1, 0));
        assert_eq!(reports.settle(at(10), 5001), Needless { all: 1, timeouts: 0 });
        for start in [5001, 1] {
            assert_eq!(reports.settle(at(10), start), Needless::default(), "that is known");
        }
    }

    /// A fast retransmission was needed, and the timeout that followed was not: report and echo are of the same one.
    #[test]
    fn a_report_is_of_the_latest_retransmission_of_a_segment() {
        let mut reports = Reports::default();
        reports.note(at(10), (1, 1001), false);
        reports.note(at(300), (1, 1001), true);
        assert_eq!(reports.needless(1, 1001), needless(1, 1));
        assert_eq!(reports.settle(at(300), 1), Needless::default());
    }

    #[test]
    fn a_cause_is_revised_until_a_report() {
        let mut reports = Reports::default();
        for (ms, by_timeout) in [(200, false), (600, true), (1_400, true)] {
            reports.note(at(ms), (1, 1001), by_timeout);
        }
        assert!(reports.revise(at(600), 1, false) && !reports.revise(at(700), 1, false));
        assert_eq!(reports.settle(at(1_400), 1), Needless { all: 1, timeouts: 1 }, "of three the last");
        assert_eq!(reports.settle(at(600), 1), Needless { all: 1, timeouts: 0 });
        assert!(!reports.revise(at(600), 1, true), "it is known to have been needless");
    }

    /// RFC 3708, section 3: duplicates without retransmissions are the network's.
    #[test]
    fn reports_of_more_than_was_retransmitted_tell_nothing() {
        let mut reports = Reports::default();
        assert_eq!(reports.needless(1, 1001), None);
        reports.note(at(0), (2001, 3001), false);
        assert_eq!(reports.needless(2001, 3001), None, "2000 octets are reported, and 1000 were retransmitted");
        reports.note(at(0), (4001, 5001), false);
        reports.note(at(0), (5001, 6001), false);
        reports.note(at(0), (6001, 7001), false);
        assert_eq!(reports.needless(4001, 5001), needless(1, 0));
    }
}
