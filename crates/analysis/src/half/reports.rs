//! Reports of duplicates (RFC 2883), and the retransmissions that they show to have been needless.
//!
//! A duplicate is a needless retransmission, or a copy that the network made. When more octets have been reported than
//! were retransmitted, the network duplicates, and reports tell nothing (RFC 3708, section 3).

use std::collections::VecDeque;

/// The most retransmissions that wait for a report.
const MOST: usize = 1_024;

/// The retransmissions of a direction without a report, and the extent of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports {
    unreported: VecDeque<(i64, i64)>,
    retransmitted: i64,
    reported: i64,
}

impl Reports {
    /// Records the retransmission of `start..end`.
    pub(super) fn note(&mut self, start: i64, end: i64) {
        if self.unreported.len() == MOST {
            self.unreported.pop_front();
        }
        self.unreported.push_back((start, end));
        self.retransmitted += end - start;
    }

    /// The number of retransmissions that a report of `left..right` shows to have been needless. `None`: the network
    /// duplicates.
    pub(super) fn needless(&mut self, left: i64, right: i64) -> Option<u64> {
        self.reported += right - left;
        if self.reported > self.retransmitted {
            return None;
        }
        // Of several retransmissions of a segment a report is about one.
        let mut named = Vec::new();
        self.unreported.retain(|&(start, end)| {
            let is_meant = start < right && left < end && !named.contains(&start);
            if is_meant {
                named.push(start);
            }
            !is_meant
        });
        Some(named.len() as u64)
    }

    /// Without a report the retransmission at `start` is known to have been needless. False if that was reported.
    pub(super) fn settle(&mut self, start: i64) -> bool {
        let found = self.unreported.iter().position(|retransmission| retransmission.0 == start);
        found.and_then(|at| self.unreported.remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_of_the_retransmissions_that_it_names() {
        let mut reports = Reports::default();
        for start in [1, 1001, 1001, 5001] {
            reports.note(start, start + 1000);
        }
        assert_eq!(reports.needless(3001, 3002), Some(0), "never retransmitted");
        assert_eq!(reports.needless(1, 2001), Some(2), "of two segments, the second twice");
        assert_eq!(reports.needless(1001, 1501), Some(1));
        assert!(reports.settle(5001) && !reports.settle(5001) && !reports.settle(1));
    }

    /// RFC 3708, section 3: duplicates without retransmissions are the network's.
    #[test]
    fn reports_of_more_than_was_retransmitted_tell_nothing() {
        let mut reports = Reports::default();
        assert_eq!(reports.needless(1, 1001), None);
        reports.note(2001, 3001);
        assert_eq!(reports.needless(2001, 3001), None, "2000 octets are reported, and 1000 were retransmitted");
        reports.note(4001, 5001);
        reports.note(5001, 6001);
        reports.note(6001, 7001);
        assert_eq!(reports.needless(4001, 5001), Some(1));
    }
}
