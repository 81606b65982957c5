//! Proportional rate reduction (PRR): the congestion window while a loss is repaired follows the delivered data.
//!
//! Published: RFC 9937, section 6; it replaces RFC 6937.
//!
//! While more is in flight than the threshold, ssthresh/RecoverFS octets may be sent for each octet
//! delivered, so that the window shrinks over a round trip and ends at the threshold. Once less is in
//! flight, because the losses exceed the reduction, as much may be sent as was delivered (packet
//! conservation). Each acknowledgement that moves SND.UNA and reports no new loss then allows one more
//! segment. RFC 6675 would send up to the threshold at once, into a queue that has just overflowed.
//!
//! Differs: allowances are rounded up to whole segments, as in Linux, which counts segments. The answer to
//! an ECN echo is that of RFC 3168, at once. Without SACK the window is that of RFC 5681 and RFC 6582. The
//! octets delivered and sent since the repair began are not counted: both are differences of totals.
//! Cost: a division for each acknowledgement in a repair; boxed, 24 bytes.

/// The repair under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prr {
    /// Octets in flight when it began, without those SACKed before (RecoverFS). At least 1.
    flight: u64,
    /// Octets delivered before its first acknowledgement.
    delivered_before: u64,
    /// Octets sent before it began.
    sent_before: u64,
}

/// The totals of a connection, in octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// The receiver is known to hold them.
    pub(crate) delivered: u64,
    /// Sent, retransmissions included.
    pub(crate) sent: u64,
}

/// The findings of an acknowledgement in a repair. Octets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Newly delivered octets (DeliveredData); not zero.
    pub(crate) delivered: u64,
    /// Octets that are neither acknowledged nor SACKed nor lost.
    pub(crate) in_flight: u64,
    pub(crate) ssthresh: u64,
    /// SND.UNA advances, and no octet is newly lost (SafeACK).
    pub(crate) safe: bool,
    pub(crate) mss: u64,
}

impl Prr {
    /// A repair begins with `outstanding` octets not acknowledged, `sacked` of them SACKed, at an
    /// acknowledgement that newly delivered `delivered` octets.
    pub(crate) fn begin(outstanding: u64, sacked: u64, delivered: u64, before: Progress) -> Self {
        Self {
            // The octets that this acknowledgement delivers were in flight.
            flight: (outstanding.saturating_sub(sacked) + delivered).max(1),
            delivered_before: before.delivered.saturating_sub(delivered),
            sent_before: before.sent,
        }
    }

    /// RFC 9937, section 6.2: the octets that may be sent at this acknowledgement (sndcnt).
    pub(crate) fn allows(&self, progress: Progress, step: Step) -> u64 {
        let Step { delivered, in_flight, ssthresh, safe, mss } = step;
        // prr_delivered and prr_out.
        let delivered_in_all = progress.delivered.saturating_sub(self.delivered_before);
        let out = progress.sent - self.sent_before;
        let allowed = if in_flight > ssthresh {
            let share = (delivered_in_all * ssthresh).div_ceil(self.flight);
            share.next_multiple_of(mss).saturating_sub(out)
        } else {
            let conserving = delivered_in_all.saturating_sub(out).max(delivered).next_multiple_of(mss);
            (conserving + if safe { mss } else { 0 }).min(ssthresh - in_flight)
        };
        // The first segment is retransmitted in any case.
        if out == 0 { allowed.max(mss) } else { allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// A repair with a threshold of ten segments after twenty were in flight.
    struct Repair {
        prr: Prr,
        delivered: u64,
        out: u64,
        in_flight: u64,
    }

    impl Repair {
        fn begin(in_flight: u64) -> Self {
            let prr = Prr { flight: 20_000, delivered_before: 0, sent_before: 0 };
            Self { prr, delivered: 0, out: 0, in_flight }
        }

        /// An acknowledgement newly delivers a segment. Returns the segments in flight after it, and those sent.
        fn ack(&mut self, safe: bool) -> (u64, u64) {
            self.delivered += MSS;
            let in_flight = self.in_flight;
            let step = Step { delivered: MSS, in_flight, ssthresh: 10_000, safe, mss: MSS };
            let sent = self.prr.allows(Progress { delivered: self.delivered, sent: self.out }, step);
            self.out += sent;
            self.in_flight = (in_flight + sent).saturating_sub(MSS);
            (in_flight / MSS, sent / MSS)
        }
    }

    /// RFC 6937, section 3.1: of twenty segments the first is lost, and limited transmit sends two new
    /// ones. The third duplicate finds 18 in flight; from there every second acknowledgement allows one,
    /// until ten are left.
    #[test]
    fn after_a_single_loss_every_second_delivery_allows_a_segment() {
        let mut repair = Repair::begin(18_000);
        let steps: Vec<_> = (3..=19).map(|_| repair.ack(false)).collect();
        let in_flight: Vec<u64> = steps.iter().map(|step| step.0).collect();
        assert_eq!(in_flight, [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10]);
        let sent: Vec<u64> = steps.iter().map(|step| step.1).collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
    }

    /// RFC 6937, section 3.1, second example, PRR-CRB: of twenty segments the first fifteen are lost. Each
    /// of the three remaining acknowledgements finds four in flight and allows one.
    #[test]
    fn after_a_burst_of_losses_deliveries_are_replaced() {
        let mut repair = Repair::begin(4_000);
        let steps: Vec<_> = (17..=19).map(|_| repair.ack(false)).collect();
        assert_eq!(steps, [(4, 1), (4, 1), (4, 1)]);
    }

    /// The second example by PRR-SSRB, which RFC 9937 uses where SND.UNA advances and no octet is newly lost.
    #[test]
    fn an_acknowledgement_that_advances_allows_one_more() {
        let mut repair = Repair::begin(4_000);
        let steps: Vec<_> = (17..=19).map(|_| repair.ack(true)).collect();
        assert_eq!(steps, [(4, 2), (5, 2), (6, 2)]);
        // Until the threshold: 10 in flight.
        let later: Vec<_> = (0..6).map(|_| repair.ack(true)).collect();
        assert_eq!(later, [(7, 2), (8, 2), (9, 1), (9, 1), (9, 1), (9, 1)]);
    }

    /// Section 6.2: data that the application could have sent before may follow, up to the threshold.
    #[test]
    fn unused_allowance_may_be_sent_later() {
        let mut repair = Repair::begin(8_000);
        (repair.delivered, repair.out) = (6_000, 3_000);
        assert_eq!(repair.ack(false), (8, 2));
    }

    /// Section 6.2: the first segment is retransmitted though much more is in flight than the threshold.
    #[test]
    fn the_first_segment_is_always_retransmitted() {
        let prr = Prr { flight: 20_000, delivered_before: 0, sent_before: 0 };
        let step = Step { delivered: 1, in_flight: 19_000, ssthresh: 10_000, safe: false, mss: MSS };
        assert_eq!(prr.allows(Progress { delivered: 0, sent: 0 }, step), MSS);
        assert_eq!(prr.allows(Progress { delivered: 0, sent: MSS }, step), 0);
    }
}
