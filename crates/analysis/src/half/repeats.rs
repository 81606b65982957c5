//! Packets that repeat octets or fill holes: retransmissions, copies by the network, and packets out of order.

use std::num::NonZeroU16;

use lastmile_packet::Meta;
use lastmile_units::{Duration, Instant};

use super::Half;
use super::cause::LEAST;
use super::state::{Above, DUP_THRESH, Old, Phase};
use crate::cause::Cause;
use crate::outstanding::{Segment, Sends};
use crate::timestamps;
use crate::trace::Kind;

/// The longest tick of a clock of timestamps in use.
const COARSEST_TICK: Duration = Duration::from_ms(10);

impl Half {
    /// Looks up the part below the highest offset, and records its retransmission.
    pub(super) fn look(&mut self, now: Instant, start: i64, end: i64, packet: &Meta) -> Old {
        let mut old = Old::default();
        if start < self.stream.una && start < end {
            // The segment was acknowledged and its record removed.
            old.seen = true;
            old.last = self.times.advanced.unwrap_or(now);
            if let Some(known) = self.recent.at(start) {
                (old.ip_id, old.timestamp) = (known.ip_id, known.timestamp);
            }
        }
        if end <= self.stream.una || start >= end {
            return old;
        }
        let above = self.sent.at(end).map(|segment| segment.first);
        let timestamp = timestamps::of(packet);
        for segment in self.sent.cut(start.max(self.stream.una), end) {
            if segment.sends == Sends::Never {
                old.filled += segment.end - segment.start;
                let Segment { first, timestamp, ip_id, .. } = *segment;
                old.above = Some(Above { seen: above.unwrap_or(first), timestamp, ip_id });
                segment.first = now;
            } else if !old.seen {
                let Segment { last, episode, ip_id, timestamp, .. } = *segment;
                old = Old { seen: true, last, episode, ip_id, timestamp, ..old };
            }
            // The last transmission was captured before.
            let is_older = timestamp.zip(segment.timestamp).is_some_and(|(own, last)| timestamps::is_before(own, last));
            if segment.sends != Sends::Never && is_older {
                continue;
            }
            // The receiver held back the data above a hole, so no ACK of them measures a round trip.
            segment.sends = Sends::Several;
            segment.last = now;
            segment.timestamp = timestamp;
            segment.ip_id = NonZeroU16::new(packet.ip_id);
        }
        old
    }

    /// Whether the data are new, and the cause of a retransmission.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        range: (i64, i64),
        packet: &Meta,
        old: &Old,
        opened: Option<Duration>,
    ) -> Kind {
        if !old.seen && old.filled == 0 {
            return Kind::New;
        }
        let reaction = self.reaction(opened);
        let timestamp = timestamps::of(packet);
        if old.seen && self.is_copy(now, packet, old) {
            self.out.repeats.duplicated += 1;
            return Kind::Duplicate;
        }
        if old.filled == 0
            && let Some(own) = timestamp
        {
            // What seemed to be lost has come.
            let overtaken = self.recent.take_overtaken(range, own);
            if overtaken > 0 {
                self.out.repeats.lost_before_capture -= overtaken;
                self.out.repeats.out_of_order += 1;
                return Kind::Reordered;
            }
        }
        if !old.seen {
            if self.is_late(now, packet, old, opened) {
                self.out.repeats.out_of_order += 1;
                return Kind::Reordered;
            }
            self.lost(range, packet);
        }
        Kind::Retransmission(self.cause(now, range, old, reaction))
    }

    /// The kind of data above the highest offset. They are new, or with `is_again` the first retransmission of a timer
    /// whose original was lost before the capture.
    pub(super) fn judge_new(&mut self, range: (i64, i64), packet: &Meta, is_again: bool) -> Kind {
        if is_again {
            self.lost(range, packet);
            // After one packet no probe was lost.
            let is_first = self.last.numbers.missing() == 1 && self.probes();
            return Kind::Retransmission(if is_first { Cause::TailProbe } else { Cause::Timeout });
        }
        // The other data that were lost show by a hole: their repair goes on.
        if range.0 > self.stream.next && std::mem::take(&mut self.recovery.past.is_hidden) {
            (self.recovery.phase, self.recovery.until) = (Phase::Loss, range.0);
        }
        Kind::New
    }

    /// Records a retransmission whose first transmission was lost before the capture.
    fn lost(&mut self, range: (i64, i64), packet: &Meta) {
        self.out.repeats.lost_before_capture += 1;
        if let Some(own) = timestamps::of(packet) {
            self.recent.fill(range, own);
        }
    }

    /// True for a copy by the network: by the identification of IPv4 or, without one, by the timestamp of a packet that
    /// comes too early for a retransmission.
    fn is_copy(&self, now: Instant, packet: &Meta, old: &Old) -> bool {
        if old.ip_id.is_some() || packet.ip_id != 0 {
            return old.ip_id == NonZeroU16::new(packet.ip_id);
        }
        let own = timestamps::of(packet);
        // Before the first round trip only a timer retransmits.
        let least = self.rtt.least().map_or(LEAST, |_| self.whole());
        own.is_some() && own == old.timestamp && now.since(old.last) < least
    }

    /// The fastest round trip of the whole path.
    fn whole(&self) -> Duration {
        self.rtt.least().unwrap_or_default() + self.sender.turnaround.least().unwrap_or_default()
    }

    /// True for a packet that fills a hole and was sent before the data that showed the hole: by the identifications of
    /// a sender that counts its packets in them, by its timestamp, or because it is too early for a repair.
    fn is_late(&self, now: Instant, packet: &Meta, old: &Old, opened: Option<Duration>) -> bool {
        let Some(Above { seen, timestamp, ip_id }) = old.above else { return false };
        if let (true, Some(own), Some(other)) = (self.last.numbers.are_in_order(), NonZeroU16::new(packet.ip_id), ip_id)
        {
            return own.get().wrapping_sub(other.get()).cast_signed() < 0;
        }
        let own = timestamps::of(packet);
        if let (Some(own), Some(other)) = (own, timestamp) {
            // A repair is sent a round trip after the data above the hole, and timestamps tick in less.
            if own != other || self.whole() > COARSEST_TICK {
                return !timestamps::is_before(other, own);
            }
        }
        // A repair needs the ACK of the data above the hole, and a path back. A handshake may have taken longer.
        now.since(seen) < (self.response(opened) * 3 / 4).max(Duration::from_ms(1))
            && self.recovery.dup_acks < DUP_THRESH
    }
}
