//! The cause of a retransmission.
//!
//! A timer and duplicate ACKs leave different traces. A retransmission by duplicate ACKs or SACK is
//! sent as soon as the third duplicate (RFC 5681, section 3.2), or equivalent SACK information
//! (RFC 6675, section 4, IsLost), reaches the sender. A retransmission by a timer is sent after a
//! time without ACKs. So a retransmission is fast if the evidence passed the capture within the
//! sender's response time, and a timeout otherwise. Within a repair each segment is sent once. Its
//! second retransmission means an expired timer or, with SACK, that a segment sent later has just
//! arrived (RACK, RFC 8985, section 6). With SACK a sender may first wait for a reordering timer
//! (RFC 8985, section 6.2, step 5): less than a round trip after the last new acknowledgement it is
//! not a retransmission timeout.
//!
//! Differs: a tail loss probe (RFC 8985, section 7) of the only segment in flight is
//! indistinguishable from a timeout, and counts as one.

use lastmile_units::{Duration, Instant};

use super::state::{DUP_THRESH, Old, Phase};
use super::{HOST_SLACK, Half};
use crate::cause::Cause;

impl Half {
    /// The cause of the retransmission of `start..end`, with `old` as the earlier transmission.
    /// `reaction` is the sender's longest response time.
    pub(super) fn cause(&self, now: Instant, (start, end): (i64, i64), old: &Old, reaction: Duration) -> Cause {
        let recent = |at: Instant| now.since(at) <= reaction;
        if self.stream.is_syn(start) {
            // A retransmitted SYN is answered again, independent of any timer.
            return if self.times.asked.is_some_and(recent) { Cause::AfterTimeout } else { Cause::Timeout };
        }
        let Some(last_ack) = self.times.last_ack else { return Cause::Unknown };
        let silent = !recent(last_ack);
        let repaired = match self.recovery.phase {
            Phase::Open => None,
            Phase::Fast => Some(Cause::InRecovery),
            Phase::Loss => Some(Cause::AfterTimeout),
        };
        // The segment was acknowledged at the capture, and the sender cannot have received the ACK.
        if end <= self.stream.una && self.times.advanced.is_some_and(recent) {
            return match self.recovery.last_phase {
                Phase::Loss => Cause::AfterTimeout,
                _ => Cause::InRecovery,
            };
        }
        let Some(repaired) = repaired else { return self.cause_of_first(now, (start, end), silent, reaction) };
        if start > self.stream.una {
            return repaired;
        }
        let again = old.episode == self.recovery.episode;
        if again {
            let overtaken = self.sack.used.then(|| self.sent.overtaken_since(old.last)).flatten();
            // The reordering window and PRR may postpone it to the ACK of a later segment.
            let is_postponed = |first: Instant, latest: Instant| {
                recent(latest) && self.whole_smoothed().is_some_and(|smoothed| now.since(first) < smoothed)
            };
            return match (overtaken, self.recovery.evidence) {
                (Some(_), _) if self.too_soon(now, Some(old.last)) => repaired,
                _ if silent => Cause::Timeout,
                (Some((first, latest)), _) if recent(first) || is_postponed(first, latest) => repaired,
                // The repair was undone as unneeded (Eifel, DSACK, F-RTO), and evidence of a loss
                // follows.
                (_, Some(at)) if recent(at) => Cause::Fast,
                _ => Cause::Timeout,
            };
        }
        if silent && !((self.sack.ranges.len() > 0 || self.is_distant()) && self.too_soon(now, None)) {
            return Cause::Timeout;
        }
        // Reno's recovery ends with the first new ACK (RFC 5681, section 3.2, step 6): a second
        // loss needs three duplicate ACKs of its own.
        let is_reno = self.recovery.phase == Phase::Fast && !self.recovery.selective;
        if is_reno && self.recovery.dup_acks == DUP_THRESH { Cause::Fast } else { repaired }
    }

    /// The cause of a retransmission outside of any repair.
    fn cause_of_first(&self, now: Instant, (start, end): (i64, i64), silent: bool, reaction: Duration) -> Cause {
        if self.is_tail_probe((start, end), silent) {
            return Cause::TailProbe;
        }
        let fresh = self.recovery.evidence.is_some_and(|at| now.since(at) <= reaction);
        // Fewer than three suffice for early retransmit (RFC 5827) and RACK.
        if fresh || (self.sack.ranges.len() > 0 && !silent) {
            return Cause::Fast;
        }
        // With SACK a cumulative ACK may suffice: it covers a segment that was sent later (RACK). At a
        // distance the response may take longer than earlier ones.
        if (self.sack.allowed || self.is_distant()) && self.too_soon(now, None) {
            return Cause::Fast;
        }
        Cause::Timeout
    }

    /// True for a retransmission of the last of several segments while no ACK reports a loss: a timer
    /// and a recovery begin with the first of them. Without a SYN it is open whether SACK was agreed.
    fn is_tail_probe(&self, (start, end): (i64, i64), silent: bool) -> bool {
        let has_evidence = self.sack.ranges.len() > 0 || self.recovery.dup_acks > 0;
        let may_probe = self.sack.allowed || self.stream.origin == 0;
        end == self.stream.next && start > self.stream.una && silent && !has_evidence && may_probe
    }

    /// True if a retransmission timer cannot have expired. The timer restarts with each new
    /// acknowledgement and with the segment's transmission (`sent`, if that started the timer), and
    /// lasts longer than a smoothed round trip (RFC 6298, sections 5.3 and 2.3).
    fn too_soon(&self, now: Instant, sent: Option<Instant>) -> bool {
        // The acknowledgement has yet to reach the sender, and the retransmission the capture.
        let distance = self.distance().unwrap_or_default();
        let set = self.times.advanced.map(|at| at.saturating_add(distance)).max(sent);
        set.zip(self.whole_smoothed()).is_some_and(|(set, smoothed)| now.since(set) < smoothed)
    }

    /// The smoothed round trip of the whole path. Next to the sender it is that to the receiver: there the part
    /// to the sender would be its application's pauses.
    fn whole_smoothed(&self) -> Option<Duration> {
        let own = self.rtt.smoothed()?;
        let other = self.distance().and_then(|_| self.sender.turnaround.prompt.smoothed());
        Some(own + other.unwrap_or_default())
    }

    /// The fastest response of the sender by timestamps, if that is more than a host's.
    fn distance(&self) -> Option<Duration> {
        self.sender.turnaround.least().filter(|least| *least > HOST_SLACK)
    }

    fn is_distant(&self) -> bool {
        self.distance().is_some()
    }
}
