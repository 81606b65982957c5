//! Proportional rate reduction (PRR): the window while a loss is repaired follows what is delivered.
//!
//! Published: RFC 9937, section 6; it replaces RFC 6937.
//! While more is in flight than the threshold, of each ssthresh/RecoverFS octets delivered one may go, so that the window
//! shrinks over a round trip and ends at the threshold. Once less is in flight, because more was lost than the reduction
//! takes, as much may go as was delivered (packet conservation), and a segment more with each acknowledgement that moves
//! SND.UNA and tells of no new loss. RFC 6675 would send all up to the threshold at once, into a queue that has just
//! overflowed.
//! Differs: what may go is rounded up to whole segments, as in Linux, which counts these. The answer to an ECN echo is that of
//! RFC 3168, at once. With [`Style::NewReno`] and before (no SACK) the window is that of RFC 5681 and RFC 6582.
//! What was delivered and sent since the repair began is not counted: both follow from numbers that are kept anyway.
//! Cost: a division for each acknowledgement in a repair; 12 bytes, boxed, as long as it lasts.

use core::num::NonZeroU32;

use crate::Config;
use crate::config::Recovery;
use crate::recovery::News;
use crate::sender::{Phase, Sender};

/// A repair under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prr {
    /// Octets in flight when it began, without those that had been SACKed before (RecoverFS).
    flight: NonZeroU32,
    /// [`Sender::delivered_so_far`] before the first acknowledgement of it.
    delivered_before: u32,
    /// [`Sender::sent_so_far`] when it began.
    sent_before: u32,
}

/// What an acknowledgement in a repair finds. Octets.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// What it newly delivers (DeliveredData); not zero.
    delivered: u64,
    /// With all of the repair before it (prr_delivered).
    delivered_in_all: u64,
    /// What the repair has sent (prr_out).
    out: u64,
    /// Neither acknowledged nor SACKed nor lost.
    in_flight: u64,
    ssthresh: u64,
    /// SND.UNA advances, and nothing new is lost (SafeACK).
    safe: bool,
    mss: u64,
}

impl Prr {
    /// RFC 9937, section 6.2: how much may go now (sndcnt).
    fn allows(&self, step: Step) -> u64 {
        let Step { delivered, delivered_in_all, out, in_flight, ssthresh, safe, mss } = step;
        let allowed = if in_flight > ssthresh {
            let share = (delivered_in_all * ssthresh).div_ceil(u64::from(self.flight.get()));
            share.next_multiple_of(mss).saturating_sub(out)
        } else {
            let conserving = delivered_in_all.saturating_sub(out).max(delivered).next_multiple_of(mss);
            (conserving + if safe { mss } else { 0 }).min(ssthresh - in_flight)
        };
        // The first segment goes again whatever the sums say.
        if out == 0 { allowed.max(mss) } else { allowed }
    }
}

/// It is divided by.
fn at_least_one(octets: u32) -> NonZeroU32 {
    NonZeroU32::new(octets).unwrap_or(NonZeroU32::MIN)
}

impl Sender {
    /// Octets that the receiver is known to hold, modulo 2^32: only differences count.
    pub(crate) fn delivered_so_far(&self) -> u32 {
        let sacked = match self.aside.board() {
            Some(board) if self.sacking => board.sacked(),
            _ => self.rack.sacked(),
        };
        (self.una as u32).wrapping_add(sacked)
    }

    /// Octets that went out, each as often as it did, modulo 2^32.
    fn sent_so_far(&self) -> u32 {
        (self.max as u32).wrapping_add(self.stats.retransmitted_bytes as u32)
    }

    /// A repair by SACK begins with an acknowledgement that delivered `delivered` octets.
    pub(crate) fn begin_prr(&mut self, config: &Config, delivered: u32) {
        if config.recovery != Recovery::Prr || !self.style.is_sack() {
            return;
        }
        let out = self.max - self.una;
        let now = self.delivered_so_far();
        let held = now.wrapping_sub(self.una as u32);
        let prr = Prr {
            // What this acknowledgement newly delivers was in flight, whether by its number or SACKed.
            flight: at_least_one(u32::try_from(out).unwrap_or(u32::MAX).saturating_sub(held).saturating_add(delivered)),
            delivered_before: now.wrapping_sub(delivered),
            sent_before: self.sent_so_far(),
        };
        self.repair.set_prr(prr);
    }

    /// An acknowledgement came, or a timer found a loss: the window for what goes out now.
    #[cold]
    pub(crate) fn pace_recovery(&mut self, news: News) {
        if self.phase != Phase::Recovery {
            self.repair.end_prr();
        }
        let Some(&prr) = self.repair.prr() else { return };
        if news.delivered == 0 {
            return;
        }
        let in_flight = self.in_flight();
        let allowed = prr.allows(Step {
            delivered: u64::from(news.delivered),
            delivered_in_all: u64::from(self.delivered_so_far().wrapping_sub(prr.delivered_before)),
            out: u64::from(self.sent_so_far().wrapping_sub(prr.sent_before)),
            in_flight,
            ssthresh: u64::from(self.congestion.ssthresh()),
            safe: news.advanced && !news.lost,
            mss: u64::from(self.mss),
        });
        self.congestion.set_window(in_flight + allowed);
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
            let prr = Prr { flight: at_least_one(20_000), delivered_before: 0, sent_before: 0 };
            Self { prr, delivered: 0, out: 0, in_flight }
        }

        /// An acknowledgement that newly delivers a segment: how many were in flight after it, and how many go.
        fn ack(&mut self, safe: bool) -> (u64, u64) {
            self.delivered += MSS;
            let in_flight = self.in_flight;
            let sent = self.prr.allows(Step {
                delivered: MSS,
                delivered_in_all: self.delivered,
                out: self.out,
                in_flight,
                ssthresh: 10_000,
                safe,
                mss: MSS,
            });
            self.out += sent;
            self.in_flight = (in_flight + sent).saturating_sub(MSS);
            (in_flight / MSS, sent / MSS)
        }
    }

    /// RFC 6937, section 3.1: of twenty segments the first is lost, two new ones went by limited transmit. The third duplicate
    /// finds 18 in flight; from there every second acknowledgement lets one go, until ten are left.
    #[test]
    fn after_a_single_loss_every_second_delivery_lets_a_segment_go() {
        let mut repair = Repair::begin(18_000);
        let steps: Vec<_> = (3..=19).map(|_| repair.ack(false)).collect();
        let in_flight: Vec<u64> = steps.iter().map(|step| step.0).collect();
        assert_eq!(in_flight, [18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10]);
        let sent: Vec<u64> = steps.iter().map(|step| step.1).collect();
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0]);
    }

    /// RFC 6937, section 3.1, second example, PRR-CRB: of twenty segments the first fifteen are lost; each of the three
    /// acknowledgements left finds four in flight and lets one go.
    #[test]
    fn after_a_burst_of_losses_as_much_goes_as_was_delivered() {
        let mut repair = Repair::begin(4_000);
        let steps: Vec<_> = (17..=19).map(|_| repair.ack(false)).collect();
        assert_eq!(steps, [(4, 1), (4, 1), (4, 1)]);
    }

    /// The same example, PRR-SSRB, which RFC 9937 takes where SND.UNA advances and nothing new is lost.
    #[test]
    fn an_acknowledgement_that_advances_lets_one_more_go() {
        let mut repair = Repair::begin(4_000);
        let steps: Vec<_> = (17..=19).map(|_| repair.ack(true)).collect();
        assert_eq!(steps, [(4, 2), (5, 2), (6, 2)]);
        // Until the threshold: 10 in flight.
        let later: Vec<_> = (0..6).map(|_| repair.ack(true)).collect();
        assert_eq!(later, [(7, 2), (8, 2), (9, 1), (9, 1), (9, 1), (9, 1)]);
    }

    /// Section 6.2: what the application did not send while it might have may follow, up to the threshold.
    #[test]
    fn what_was_not_sent_is_made_up_for() {
        let mut repair = Repair::begin(8_000);
        (repair.delivered, repair.out) = (6_000, 3_000);
        assert_eq!(repair.ack(false), (8, 2));
    }

    /// Section 6.2: the first segment goes again though much more is in flight than the threshold.
    #[test]
    fn the_first_segment_always_goes() {
        let prr = Prr { flight: at_least_one(20_000), delivered_before: 0, sent_before: 0 };
        let step = Step {
            delivered: 1,
            delivered_in_all: 0,
            out: 0,
            in_flight: 19_000,
            ssthresh: 10_000,
            safe: false,
            mss: MSS,
        };
        assert_eq!(prr.allows(step), MSS);
        assert_eq!(prr.allows(Step { out: MSS, ..step }), 0);
    }
}
