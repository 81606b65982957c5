//! Why a segment was sent again.
//!
//! A timer and duplicate ACKs leave different marks. What duplicate ACKs or SACK cause goes out as soon as the third (RFC 5681, section 3.2),
//! or as much by SACK (RFC 6675, section 4, IsLost), reaches the sender; what a timer causes goes out when nothing has reached it for long.
//! So a repeat is fast if the evidence passed the capture no longer ago than the sender takes to answer, and a timeout otherwise. Within a
//! repair a segment goes out once; if it goes out again the timer has expired, or, with SACK, something that was sent after it has arrived
//! just before (RACK, RFC 8985, section 6). With SACK a sender may let a reordering timer run out first (RFC 8985, section 6.2, step 5):
//! less than a round trip after the last new acknowledgement that is no retransmission timer yet.
//!
//! Differs: a tail loss probe (RFC 8985, section 7) of the only segment in flight cannot be told from a timeout, and counts as one.

use lastmile_units::{Duration, Instant};

use super::{Half, Old, Phase};

/// Duplicate ACKs that tell of a loss (RFC 5681, section 3.2).
pub(super) const DUP_THRESH: u32 = 3;

/// What sent a segment again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    Timeout,
    Fast,
    InRecovery,
    AfterTimeout,
    TailProbe,
    Unknown,
}

impl Half {
    /// Why `start..end` goes out again, of which `old` is known. `reaction` is how long the sender may take to answer.
    pub(super) fn cause(&self, now: Instant, (start, end): (i64, i64), old: &Old, reaction: Duration) -> Cause {
        let recent = |at: Instant| now.since(at) <= reaction;
        if start < self.origin {
            // A SYN that came again is answered again, whatever the timer says.
            return if self.asked.is_some_and(recent) { Cause::AfterTimeout } else { Cause::Timeout };
        }
        let Some(last_ack) = self.last_ack else { return Cause::Unknown };
        let silent = !recent(last_ack);
        let repaired = match self.phase {
            Phase::Open => None,
            Phase::Fast => Some(Cause::InRecovery),
            Phase::Loss => Some(Cause::AfterTimeout),
        };
        // It was acknowledged here, and the sender cannot know yet.
        if end <= self.una && self.advanced.is_some_and(recent) {
            return match self.last_phase {
                Phase::Loss => Cause::AfterTimeout,
                _ => Cause::InRecovery,
            };
        }
        let Some(repaired) = repaired else { return self.cause_of_first(now, (start, end), silent, reaction) };
        if start > self.una {
            return repaired;
        }
        let again = old.episode == self.episode;
        if again {
            let overtaken = self.sacks.then(|| self.sent.overtaken_since(old.last)).flatten();
            return match (overtaken, self.evidence) {
                (Some(_), _) if self.too_soon(now, Some(old.last)) => repaired,
                _ if silent => Cause::Timeout,
                (Some(at), _) if recent(at) => repaired,
                // The repair was taken back as needless (Eifel, DSACK, F-RTO), and now there is a loss.
                (_, Some(at)) if recent(at) => Cause::Fast,
                _ => Cause::Timeout,
            };
        }
        if silent && !(self.sacked.len() > 0 && self.too_soon(now, None)) {
            return Cause::Timeout;
        }
        // Reno's recovery ended with the first new ACK (RFC 5681, section 3.2, step 6): a second loss needs its own three.
        let is_reno = self.phase == Phase::Fast && !self.selective;
        if is_reno && self.dup_acks == DUP_THRESH { Cause::Fast } else { repaired }
    }

    /// The same while no repair is known of.
    fn cause_of_first(&self, now: Instant, (start, end): (i64, i64), silent: bool, reaction: Duration) -> Cause {
        let told = self.evidence.is_some_and(|at| now.since(at) <= reaction);
        // Fewer than three are enough for early retransmit (RFC 5827) and RACK.
        if told || (self.sacked.len() > 0 && (!silent || self.too_soon(now, None))) {
            return Cause::Fast;
        }
        let waited = self.last_sent.map(|at| now.since(at));
        let is_tail = end == self.next && start > self.una && self.may_sack;
        if is_tail && silent && waited >= self.rtt.smoothed() { Cause::TailProbe } else { Cause::Timeout }
    }

    /// Too soon for a retransmission timer: it is set anew whenever something new is acknowledged, and when the segment is sent (`sent`, where
    /// that is the timer's), and lasts for more than a smoothed round trip (RFC 6298, section 5.3 and 2.3).
    fn too_soon(&self, now: Instant, sent: Option<Instant>) -> bool {
        let set = self.advanced.max(sent);
        set.zip(self.rtt.smoothed()).is_some_and(|(set, smoothed)| now.since(set) < smoothed)
    }
}
