//! The cause of a retransmission.
//!
//! A timer and duplicate ACKs leave different traces. A retransmission by duplicate ACKs or SACK is
//! sent as soon as the third duplicate (RFC 5681, section 3.2), or equivalent SACK information
//! (RFC 6675, section 4, IsLost), reaches the sender. A retransmission by a timer is sent after a
//! time without ACKs. So a retransmission is fast if the evidence passed the capture within the
//! sender's response time, and a timeout otherwise. Within a repair each segment is sent once. Its
//! second retransmission means an expired timer or, with SACK, that a segment sent later has just
//! arrived (RACK, RFC 8985, section 6). With SACK a sender may first wait for a reordering timer
//! (RFC 8985, section 6.2, step 5). Where both a timer and an arrival may be the reason, the sender's earlier second
//! retransmissions decide: one without RACK left them to its timer.
//!
//! A retransmission timeout takes at least a smoothed round trip (RFC 6298, section 2.3), and in Linux 200 ms more.
//! Where SACK reports a loss, the first of a repair takes at least 200 ms and half a round trip here, since the
//! sender's estimate may be less than that of the capture. Its timer runs from the last new acknowledgement, or from
//! later data that were sent while none were under way.
//!
//! A timer without any evidence of a loss is that of a tail loss probe (RFC 8985, section 7) or of a
//! timeout. A probe repeats the last segment, a timeout the first. If only one segment is under way,
//! both are the same packet. A sender with SACK probes first: after two smoothed round trips and the
//! 200 ms that a delayed ACK may take, or earlier. So the first retransmission of the only segment is
//! a probe up to that time, and a timeout later or without SACK. The second retransmission decides
//! again: a timeout doubles the timer (RFC 6298, section 5.5), and a probe does not. The counts have
//! the later decision; the cause of each packet is the one known at its time. A single retransmission
//! by a sender that does not probe remains a probe here, which no packet can refute.

use lastmile_units::{Duration, Instant};

use super::state::{DUP_THRESH, Expiry, Old, Opening, Phase};
use super::{HOST_SLACK, Half, note};
use crate::cause::Cause;

/// The least time of a retransmission timeout (Linux: `tcp_rto_min`), and the time that a probe allows for a
/// delayed ACK (RFC 8985, section 7.2).
pub(super) const LEAST: Duration = Duration::from_ms(200);
/// The longest delay from an ACK to a segment that it releases.
pub(super) const PROMPT: Duration = Duration::from_ms(1);

impl Half {
    /// The cause of the retransmission of `start..end`, with `old` as the earlier transmission.
    /// `reaction` is the sender's longest response time.
    pub(super) fn cause(&mut self, now: Instant, (start, end): (i64, i64), old: &Old, reaction: Duration) -> Cause {
        let recent = |at: Instant| now.since(at) <= reaction;
        if self.stream.is_syn(start) {
            // A retransmitted SYN is answered again, independent of any timer.
            return if self.times.asked.is_some_and(recent) { Cause::AfterTimeout } else { Cause::Timeout };
        }
        let Some(last_ack) = self.times.last_ack else { return Cause::Unknown };
        let silent = !recent(last_ack);
        // Data of a SYN that the SYN-ACK does not acknowledge (RFC 7413, section 4.2.2) are sent again at once.
        if !silent && matches!(self.stream.opening, Opening::Answered(at) if old.seen && old.last < at) {
            return Cause::Unknown;
        }
        let repaired = match self.recovery.phase {
            Phase::Open => None,
            Phase::Fast => Some(Cause::InRecovery),
            Phase::Loss => Some(Cause::AfterTimeout),
        };
        // The segment was acknowledged at the capture, and the sender cannot have received the ACK.
        if end <= self.stream.una && self.times.advanced.is_some_and(recent) {
            return self.cause_of_delivered(now, (start, end), reaction);
        }
        let Some(repaired) = repaired else {
            let cause = self.cause_of_first(now, (start, end), silent, reaction);
            let goes_on = match cause {
                Cause::Fast => self.sender.is_far && !old.seen && self.recovery.past.phase == Phase::Fast,
                // No timer expires at an ACK.
                Cause::Timeout => !silent && self.too_soon(now, None),
                _ => false,
            };
            if !goes_on || !self.is_at_end_of_repair() {
                return cause;
            }
            self.recovery.phase = self.recovery.past.phase;
            self.recovery.until = self.recovery.until.max(end);
            return if self.recovery.phase == Phase::Fast { Cause::InRecovery } else { Cause::AfterTimeout };
        };
        if start > self.stream.una {
            return repaired;
        }
        let again = old.episode == self.recovery.episode;
        if again {
            return self.cause_of_second(now, old.last, reaction);
        }
        let is_early = if self.sender.is_far {
            !self.is_timer_due(now)
        } else {
            (self.sack.ranges.len() > 0 || self.is_distant()) && self.too_soon(now, None)
        };
        if silent && !is_early {
            return Cause::Timeout;
        }
        // Reno's recovery ends with the first new ACK (RFC 5681, section 3.2, step 6): a second
        // loss needs three duplicate ACKs of its own.
        let is_reno = self.recovery.phase == Phase::Fast && !self.recovery.habits.goes_on;
        if is_reno && self.recovery.dup_acks == DUP_THRESH { Cause::Fast } else { repaired }
    }

    /// The cause of a retransmission in the repair that has sent the segment before, at `sent`.
    fn cause_of_second(&mut self, now: Instant, sent: Instant, reaction: Duration) -> Cause {
        let recent = |at: Instant| now.since(at) <= reaction;
        let Some((first, latest)) = self.sack.used.then(|| self.overtaken_since(sent)).flatten() else {
            return Cause::Timeout;
        };
        // The reordering window and PRR may postpone it to the ACK of a later segment.
        // The longest reordering window is a smoothed round trip (RFC 8985, section 6.2, step 4).
        let is_late_at = |at: Instant| self.whole_smoothed().is_none_or(|smoothed| at.since(first) >= smoothed);
        let is_late = is_late_at(now);
        // What is known to be lost is sent before other data.
        let is_passed_over = self.times.last_sent.is_some_and(is_late_at);
        let is_postponed = recent(latest) && !is_late;
        let is_due = self.is_timer_due(now);
        let is_prompt = now.since(latest) <= PROMPT && !is_passed_over;
        let is_found = is_prompt || recent(first) || is_postponed || self.too_soon(now, Some(sent));
        // Sure are those that no timer can have sent, and those that no reordering window can have delayed so long.
        let habit = &mut self.recovery.habits.lost_repairs;
        let is_found = match (is_found, is_due) {
            (true, false) => {
                habit.found += 1;
                true
            }
            (true, true) => habit.found > habit.left || (self.sack.heeded && habit.found == habit.left),
            (false, _) => {
                habit.left += u64::from(is_late);
                false
            }
        };
        match (is_found, self.recovery.phase) {
            (false, _) => Cause::Timeout,
            // Linux: the repair after a timeout ends when one of its retransmissions is lost.
            (true, Phase::Loss) => Cause::Fast,
            (true, _) => Cause::InRecovery,
        }
    }

    /// The first and the latest delivery of a segment that was sent after `sent`.
    fn overtaken_since(&self, sent: Instant) -> Option<(Instant, Instant)> {
        let below = self.recovery.delivered.filter(|delivered| delivered.sent > sent).map(|delivered| delivered.at);
        let above = self.sent.overtaken_since(sent);
        match (below, above) {
            (Some(at), Some((first, latest))) => Some((first.min(at), latest.max(at))),
            (Some(at), None) => Some((at, at)),
            (None, above) => above,
        }
    }

    /// True if a timer that runs from the last new acknowledgement, or from the begin of the repair, may have expired.
    fn is_timer_due(&self, now: Instant) -> bool {
        let distance = self.distance().unwrap_or_default();
        let set = self.times.advanced.map(|at| at.saturating_add(distance)).max(self.recovery.past.begun);
        set.zip(self.whole_smoothed()).is_some_and(|(set, smoothed)| now.since(set) >= smoothed + LEAST)
    }

    /// The cause of a retransmission of data whose acknowledgement has yet to reach the sender.
    fn cause_of_delivered(&self, now: Instant, (start, end): (i64, i64), reaction: Duration) -> Cause {
        let recent = |at: Instant| now.since(at) <= reaction;
        let past = self.recovery.past;
        let goes_on = self.recovery.phase != Phase::Open || past.ended.is_some_and(recent);
        match past.phase {
            Phase::Fast if goes_on => Cause::InRecovery,
            // Each timeout begins again with the first segment.
            Phase::Loss if goes_on && start == past.first => Cause::Timeout,
            Phase::Loss if goes_on => Cause::AfterTimeout,
            _ if past.evident.is_some_and(recent) => Cause::Fast,
            _ if end == self.stream.next && self.may_probe(now) => Cause::TailProbe,
            _ => Cause::Timeout,
        }
    }

    /// The cause of a retransmission outside of any repair.
    fn cause_of_first(&self, now: Instant, (start, end): (i64, i64), silent: bool, reaction: Duration) -> Cause {
        if self.is_tail_probe(now, (start, end), silent) {
            return Cause::TailProbe;
        }
        let fresh = self.recovery.evidence.is_some_and(|at| now.since(at) <= reaction);
        // ACKs that a capture far from the sender shows may not have reached it, or later than others.
        let is_early = self.sender.is_far && self.recovery.evidence.is_some() && !silent && !self.is_timer_due(now);
        // Fewer than three suffice for early retransmit (RFC 5827) and RACK.
        if fresh || is_early || (self.sack.ranges.len() > 0 && !silent) {
            return Cause::Fast;
        }
        // With SACK a cumulative ACK may suffice: it covers a segment that was sent later (RACK). At a
        // distance the response may take longer than earlier ones.
        if (self.sack.allowed || self.is_distant()) && self.too_soon(now, None) {
            return Cause::Fast;
        }
        Cause::Timeout
    }

    /// True if the last ACK ended a repair, and nothing reports another loss. A sender that retransmits at this ACK
    /// goes on with the repair: it does not take the repair back, or knows of data above its end that were lost before
    /// a capture far from it, and that it sent before the repair began.
    fn is_at_end_of_repair(&self) -> bool {
        let ended = self.recovery.past.ended;
        let has_evidence = self.sack.ranges.len() > 0 || self.recovery.dup_acks > 0;
        ended.is_some() && ended == self.times.advanced && !has_evidence
    }

    /// True for a retransmission of the last segment while no ACK reports a loss. Of several, a timer and a
    /// recovery begin with the first.
    fn is_tail_probe(&self, now: Instant, (start, end): (i64, i64), silent: bool) -> bool {
        let has_evidence = self.sack.ranges.len() > 0 || self.recovery.dup_acks > 0;
        if end != self.stream.next || !silent || has_evidence {
            return false;
        }
        if start > self.stream.una { self.probes() } else { start == self.stream.una && self.may_probe(now) }
    }

    /// True for a sender that may probe. Without a SYN it is open whether SACK was agreed.
    pub(super) fn probes(&self) -> bool {
        self.sack.allowed || self.stream.origin == 0
    }

    /// True if the timer of a probe of the only segment may have expired, and no probe is under way. The timer
    /// lasts for at most two smoothed round trips and the time for a delayed ACK.
    fn may_probe(&self, now: Instant) -> bool {
        let (Some(set), Some(smoothed)) = (self.timer_set(), self.whole_smoothed()) else { return false };
        let longest = smoothed * 2 + LEAST + smoothed / 4 + HOST_SLACK;
        self.probes() && self.recovery.expiry.is_none() && now.since(set) <= longest
    }

    /// When the timer of a probe was set: with the last data, or the last new acknowledgement.
    fn timer_set(&self) -> Option<Instant> {
        self.times.advanced.map(|at| at.saturating_add(self.distance().unwrap_or_default())).max(self.times.last_sent)
    }

    /// Notes a retransmission by a timer. Its distance from the one before may show that this had another cause.
    pub(super) fn expired(&mut self, now: Instant, (start, end): (i64, i64), cause: Cause) {
        if !matches!(cause, Cause::Timeout | Cause::TailProbe) {
            return;
        }
        let before = self.recovery.expiry.take();
        let is_same = |before: &Expiry| before.is_only && (before.start, before.end) == (start, end);
        if let Some(before) = before.filter(|before| is_same(before) && self.probes()) {
            self.revise(&before, now.since(before.at));
        }
        let is_only = (start, end) == (self.stream.una, self.stream.next) && !self.stream.is_syn(start);
        let is_first = before.is_none() && self.recovery.in_a_row == 0;
        if cause == Cause::TailProbe || (is_only && is_first) {
            let wait = self.timer_set().map(|set| now.since(set)).unwrap_or_default();
            self.recovery.expiry = Some(Expiry { start, end, at: now, wait, is_only, cause });
        }
    }

    /// A timer ran for `again` after the one `before` it, for the same segment. A timeout doubles it.
    fn revise(&mut self, before: &Expiry, again: Duration) {
        let was_timeout = before.cause == Cause::Timeout;
        let least = if was_timeout { before.wait + before.wait / 2 } else { before.wait * 2 - before.wait / 8 };
        let by_timeout = again >= least;
        if by_timeout == was_timeout || !self.recovery.reports.revise(before.at, before.start, by_timeout) {
            return;
        }
        let (repeats, events) = (&mut self.out.repeats, &mut self.out.events);
        if by_timeout {
            repeats.tail_probes -= 1;
            repeats.timeouts += 1;
            self.recovery.in_a_row += 1;
            note(&mut events.timeouts_at, before.at);
        } else {
            repeats.timeouts -= 1;
            repeats.tail_probes += 1;
            self.recovery.in_a_row = self.recovery.in_a_row.saturating_sub(1);
            events.timeouts_at.pop_if(|at| *at == before.at);
        }
    }

    /// True if a retransmission timer cannot have expired. The timer restarts with each new
    /// acknowledgement and with the segment's transmission (`sent`, if that started the timer).
    fn too_soon(&self, now: Instant, sent: Option<Instant>) -> bool {
        // The acknowledgement has yet to reach the sender, and the retransmission the capture.
        let distance = self.distance().unwrap_or_default();
        let mut set = self.times.advanced.map(|at| at.saturating_add(distance)).max(sent);
        let mut least = self.whole_smoothed();
        // Where SACK reports a loss, a timer of reordering is the alternative.
        if self.sack.ranges.len() > 0 {
            set = set.max(self.times.waiting);
            if self.recovery.phase == Phase::Open {
                // Linux: a smoothed round trip and LEAST. The sender's may be less than that of the capture.
                least = least.map(|smoothed| smoothed.max(LEAST + smoothed / 2));
            }
        }
        set.zip(least).is_some_and(|(set, least)| now.since(set) < least)
    }

    /// The smoothed round trip of the whole path. Next to the sender it is that to the receiver: there the part
    /// to the sender would be its application's pauses.
    pub(super) fn whole_smoothed(&self) -> Option<Duration> {
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
