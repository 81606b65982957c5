//! The evidence that a repair was needless because segments were only late, and the state before it.
//!
//! Published: RFC 3522 and RFC 4015 (Eifel: an echo older than the first retransmission acknowledges the
//! original); RFC 3708 (DSACK reports every retransmitted octet as a duplicate); RFC 5682, section 3 (F-RTO
//! with SACK); all three together in P. Sarolahti and A. Kuznetsov, "Congestion Control in Linux TCP",
//! USENIX 2002, section 5.
//!
//! A retransmission of an earlier repair may be in flight when a repair begins. Its echo is no evidence: as in Linux
//! (`retrans_stamp`), the first retransmission is that of all in flight.
//!
//! Window and threshold are stored when a repair begins. If one of the three shows that no segment was
//! lost, both return to these values, or stay as they are if that is more, and all octets marked as lost
//! are in flight.
//!
//! After a timeout F-RTO retransmits the first segment and waits. If an acknowledgement or SACK then covers
//! octets that were sent once and before, the timeout was needless. If it covers only the retransmission,
//! new data are sent instead of the next repair, and the next acknowledgement decides: SACK blocks of the
//! new data alone show a loss.
//! Differs: as in Linux, one acknowledgement of octets sent once is enough for F-RTO (the RFC asks for two
//! in its step 2b), timeouts that interrupt a fast recovery have no F-RTO, and reports of duplicates count
//! until a window after the repair. F-RTO needs SACK; without it (NewReno) Eifel alone decides. Tahoe and
//! Reno predate all three and undo nothing. As in Linux, CUBIC begins a new curve at the restored window;
//! RFC 9438, section 4.9, would continue the old one. Unlike Linux, the sender does not learn of reordering
//! from it, and a fast recovery ends at once: Linux (`tcp_try_undo_partial`) waits until no retransmission is in
//! flight.
//! Cost: one test for each acknowledgement; boxed, 40 bytes.

use lastmile_packet::Meta;

/// The state from which a repair can be undone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Undo {
    /// Window and threshold before the repair.
    pub(crate) cwnd: u32,
    pub(crate) ssthresh: u32,
    /// Retransmitted octets that no DSACK has reported; `None` before the first retransmission of the repair.
    unreported: Option<u32>,
    /// The timestamp of the first retransmission in flight.
    first_retransmission: Option<u32>,
    /// The first octet not acknowledged when the repair began: reports below it concern an earlier one.
    from: u64,
    /// One past the highest octet sent when the repair ended.
    until: u64,
}

/// The duplicate that a DSACK reports. Offsets; negative before the SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Duplicate {
    pub(crate) left: i64,
    pub(crate) right: i64,
}

/// The evidence in an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) segment: &'a Meta,
    /// True if the ACK acknowledges new data.
    pub(crate) advanced: bool,
    /// True if SACK blocks of the ACK report octets that were not known to be held.
    pub(crate) sacked: bool,
    /// True if the ACK covers octets that were sent once and before the repair.
    pub(crate) original: bool,
    /// By the scoreboard it covers octets that the timeout marked as lost and that were not retransmitted.
    pub(crate) original_by_count: bool,
}

impl Undo {
    /// A repair begins with octets `una..max` in flight. `earlier`: the timestamp of the first retransmission that is
    /// in flight.
    pub(crate) fn new((cwnd, ssthresh): (u32, u32), una: u64, max: u64, earlier: Option<u32>) -> Self {
        Self { cwnd, ssthresh, unreported: None, first_retransmission: earlier, from: una, until: max }
    }

    /// The repair has ended with octets up to `max` sent.
    pub(super) fn on_repair_end(&mut self, max: u64) {
        self.until = max;
    }

    /// `len` octets are retransmitted at the time `timestamp`.
    pub(crate) fn on_retransmission(&mut self, len: u32, timestamp: u32) {
        self.unreported = Some(self.unreported.unwrap_or(0).saturating_add(len));
        self.first_retransmission.get_or_insert(timestamp);
    }

    /// RFC 3708, section 2: a DSACK reports a duplicate.
    pub(crate) fn on_dsack(&mut self, duplicate: Duplicate) {
        if duplicate.left >= self.from.cast_signed() {
            let reported = (duplicate.right - duplicate.left) as u32;
            self.unreported = self.unreported.map(|octets| octets.saturating_sub(reported));
        }
    }

    /// All octets in flight at the end of the repair are acknowledged: no more evidence can come.
    pub(super) fn has_expired(&self, una: u64) -> bool {
        self.until < una
    }

    /// The evidence shows that the repair was needless. `frto`: F-RTO is waiting for it.
    pub(super) fn is_disproved(&self, evidence: &Evidence<'_>, frto: bool) -> bool {
        self.is_reported()
            || (evidence.advanced && self.is_answered_by_original(evidence.segment))
            || (evidence.original && frto)
            || evidence.original_by_count
    }

    /// All retransmitted octets have arrived twice.
    fn is_reported(&self) -> bool {
        self.unreported == Some(0)
    }

    /// RFC 3522, section 3.2, step 4: the echo is from before the first retransmission.
    fn is_answered_by_original(&self, segment: &Meta) -> bool {
        let (Some((_, echo)), Some(first)) = (segment.options().timestamps(), self.first_retransmission) else {
            return false;
        };
        echo.wrapping_sub(first).cast_signed() < 0
    }
}
