//! The sender's response to congestion: one reduction for each window of data, which the next new segment reports.
//!
//! Published: RFC 3168, section 6.1.2.
//!
//! Losses and marks of one window of data call for one reduction. Any reduction is reported by CWR: that of a fast
//! retransmit, of a timeout and of a repaired tail loss too. A receiver echoes a mark until it sees CWR.
//! Differs: nothing. Linux answers two marks that the RFC leaves unanswered: one whose echo ends a repair, and one
//! after a tail loss that a probe repaired. Both are of the window that the loss has reduced.
//! Cost: a comparison for each segment of a connection with ECN.

use super::accecn::AccEcnSender;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct EcnResponse {
    /// One past the highest octet sent at the last reduction; zero without one.
    reduced_until: u64,
    /// One past the highest octet sent at the last reduction for a mark; zero without one.
    answered_until: u64,
    /// The next new segment carries CWR.
    cwr_due: bool,
    /// Accurate ECN, if agreed.
    pub(crate) accecn: Option<Box<AccEcnSender>>,
}

impl EcnResponse {
    /// `accecn`: Accurate ECN, if agreed.
    pub(crate) fn new(accecn: Option<Box<AccEcnSender>>) -> Self {
        Self { accecn, ..Self::default() }
    }

    /// The loss of the octet `lost` may reduce the window. False: a reduction for a mark has answered its window of
    /// data already. The octet at `answered_until` was sent after that reduction, so that its loss is a new one.
    ///
    /// A reduction for a loss does not count here: each variant says itself which losses are one.
    pub(crate) fn allows_reduction(&self, lost: u64) -> bool {
        self.answered_until <= lost
    }

    /// A loss reduces the window with octets up to `max` sent.
    pub(crate) fn on_reduction(&mut self, max: u64) {
        self.reduced_until = max;
        self.cwr_due = true;
    }

    /// An echo came. True: it calls for a reduction, at most one for each window of data.
    ///
    /// At `una` equal to `reduced_until` the acknowledgement covers only octets from before the reduction, and so does
    /// its echo. `una` is at least 1: the SYN is acknowledged.
    pub(crate) fn on_echo(&mut self, una: u64, max: u64) -> bool {
        if self.reduced_until >= una {
            return false;
        }
        self.on_reduction(max);
        self.answered_until = max;
        true
    }

    /// The reduction for a loss was needless (Linux: `tcp_ecn_withdraw_cwr`). Those for marks stay.
    pub(crate) fn on_undo(&mut self) {
        self.reduced_until = self.answered_until;
        self.cwr_due = false;
    }

    /// A segment of new data is sent. True: it carries CWR.
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3168, section 6.1.2: an echo for octets sent before a loss reduced the window calls for nothing.
    #[test]
    fn a_loss_answers_the_marks_of_its_window() {
        let mut ecn = EcnResponse::default();
        ecn.on_reduction(9001);
        assert!(ecn.take_cwr() && !ecn.take_cwr(), "one segment carries CWR");
        assert!(!ecn.on_echo(9001, 12_001));
        assert!(ecn.on_echo(9002, 12_001));
        assert!(ecn.take_cwr());
    }

    /// Octet 9001 is the first that was sent after the reduction for a mark. Reno's two losses of a window are two.
    #[test]
    fn a_mark_answers_the_losses_of_its_window_and_a_loss_does_not() {
        let mut ecn = EcnResponse::default();
        ecn.on_reduction(5001);
        assert!(ecn.allows_reduction(4001));
        assert!(ecn.on_echo(6001, 9001));
        assert_eq!([8001, 9001].map(|lost| ecn.allows_reduction(lost)), [false, true]);
    }

    #[test]
    fn an_undone_reduction_leaves_that_for_a_mark() {
        let mut ecn = EcnResponse::default();
        assert!(ecn.on_echo(1, 5001));
        ecn.on_reduction(9001);
        ecn.on_undo();
        assert!(!ecn.take_cwr());
        assert!(!ecn.on_echo(5001, 9001));
        assert!(ecn.on_echo(5002, 9001));
    }
}
