//! The ACKs of the other side: acknowledged data, SACK, round trips, evidence of losses, and the
//! receiver's window.

use lastmile_packet::{Meta, SackBlock, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::Half;
use super::state::{AckFact, DUP_THRESH, Delivered, Known, Phase};
use super::undo::Covered;
use crate::outstanding::{Segment, Sends};
use crate::response_time::Feedback;
use crate::timestamps;

/// The largest window (RFC 7323, section 2.3).
const WIDEST_WINDOW: i64 = 1 << 30;

impl Half {
    /// Processes the acknowledgement in a `packet` of the other side.
    pub(crate) fn on_ack(&mut self, now: Instant, packet: &Meta) {
        self.out.codepoints.answered(packet);
        if packet.flags.contains(TcpFlags::SYN) {
            self.times.asked = Some(now);
        }
        if packet.flags.contains(TcpFlags::RST) || !packet.flags.contains(TcpFlags::ACK) {
            return;
        }
        self.out.acks.captured += 1;
        let is_bare = packet.payload_len() == 0 && !packet.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN));
        if is_bare {
            self.out.acks.pure += 1;
        }
        // Data that the capture misses are inferred from their ACKs.
        let base = *self.stream.base.get_or_insert(packet.ack);
        if packet.options().timestamps().is_none()
            && let Some(known) = self.known(&Feedback::new(now, packet), true)
        {
            self.sender.account.passed(known);
        }
        let ack = self.offset(base, self.stream.una, packet.ack);
        self.begin_at(now, ack);
        self.account(now, None);
        self.congestion.before_ack(self.moment(now));
        let (una, offered) = (self.stream.una, self.window.bytes);
        self.last.ack = AckFact { offset: ack, advance: (ack - una).max(0).unsigned_abs(), ..AckFact::default() };
        let mut covered = self.on_sack(now, base, ack, packet);
        if ack > self.stream.una {
            covered.advanced = true;
            self.window.was_closed = Duration::ZERO;
            covered.original |= self.advance(now, ack, packet, is_bare);
        } else if ack == self.stream.una && self.stream.next > self.stream.una && is_bare {
            let same_window = self.window.raw == Some(packet.window);
            if covered.sacked || same_window {
                self.recovery.dup_acks = self.recovery.dup_acks.saturating_add(1);
                self.out.acks.duplicate += 1;
                self.last.ack.duplicate = true;
                if !self.sack.used {
                    self.recovery.departed += 1;
                    if self.recovery.phase == Phase::Fast {
                        self.congestion.inflate(self.size.mss().cast_signed());
                    }
                }
            }
        }
        if let Some(sent) = covered.newest.filter(|_| self.last.ack.round_trip.is_none()) {
            self.sample(now, sent);
        }
        if ack >= self.stream.una {
            self.on_window(now, packet);
        }
        if let Some(value) = timestamps::of(packet).filter(|_| self.sender.is_far) {
            self.window.note(value, (una, offered), self.stream.una);
        }
        self.undo(now, covered, packet);
        self.times.last_ack = Some(now);
        self.weigh(now);
        self.limit = Some(self.limit_now());
        self.find_losses();
        if ack > una {
            self.congestion.advanced(self.moment(now), self.stream.una, self.stream.next);
        }
    }

    /// In a capture that begins amid a connection, the first ACK shows the data that were under way: those
    /// from `ack` to the first captured octet.
    fn begin_at(&mut self, now: Instant, ack: i64) {
        let is_first = self.stream.origin == 0 && self.times.last_ack.is_none();
        if !is_first || ack >= self.stream.una || ack < -WIDEST_WINDOW {
            return;
        }
        let sent = self.times.waiting.unwrap_or(now);
        self.sent.prepend(Segment::before_capture(ack, self.stream.una, sent));
        self.stream.una = ack;
    }

    /// In a repair by SACK the sender takes the holes below the highest SACKed octet for lost.
    pub(super) fn find_losses(&mut self) {
        let Some(highest) = self.sack.ranges.highest().filter(|_| self.recovery.phase != Phase::Open) else { return };
        let from = self.recovery.lost_to.max(self.stream.una);
        if highest > from {
            self.sent.lose(from, highest, self.recovery.episode);
            self.recovery.lost_to = highest;
        }
    }

    /// Checks for sufficient evidence of a loss: RFC 6675, section 4 (IsLost), and RFC 5681,
    /// section 3.2.
    fn weigh(&mut self, now: Instant) {
        let mss = self.size.mss().cast_signed();
        let much = self.sack.ranges.len() >= DUP_THRESH as usize || self.sack.ranges.bytes() > 2 * mss;
        if self.stream.next == self.stream.una
            || !(self.recovery.dup_acks >= DUP_THRESH || (self.sack.ranges.len() > 0 && much))
        {
            self.recovery.evidence = None;
        } else {
            self.recovery.evidence.get_or_insert(now);
        }
    }

    /// A new acknowledgement. True if it covers octets that were sent once, before the repair.
    fn advance(&mut self, now: Instant, ack: i64, packet: &Meta, is_bare: bool) -> bool {
        if self.out.initial_window.is_none() && self.stream.origin == 1 && ack > 1 {
            self.out.initial_window =
                Some((self.stream.next.max(ack).min(self.stream.fin.unwrap_or(i64::MAX)) - 1).max(0).unsigned_abs());
        }
        let (mut newest, mut clean, mut original) = (None, true, false);
        let until = self.recovery.until;
        let delivered = &mut self.recovery.delivered;
        let unseen = &mut self.out.volume.bytes_unseen;
        let recent = &mut self.recent;
        self.sent.acknowledge(ack, |segment| {
            let is_once = segment.sends == Sends::Once && segment.sacked.is_none();
            clean &= is_once;
            original |= is_once && segment.end <= until;
            if segment.sends == Sends::Never {
                *unseen += (segment.end - segment.start).unsigned_abs();
            }
            if segment.sacked.is_none() && delivered.is_none_or(|latest| latest.sent < segment.last) {
                *delivered = Some(Delivered { sent: segment.last, at: now });
            }
            let Segment { start, ip_id, timestamp, .. } = *segment;
            recent.acknowledged(Known { start, ip_id, timestamp });
            newest = Some(*segment);
        });
        if let Some(newest) = newest {
            self.measure(now, &newest, clean, packet, is_bare);
        }
        self.settle_doubt(now, ack, packet);
        if self.stream.probed.take_if(|probed| *probed < ack) == Some(self.stream.next) {
            // The receiver had room for the octet of the probe.
            self.stream.next += 1;
            self.out.volume.bytes_probed -= 1;
            self.out.volume.bytes_new += 1;
        }
        let is_single = ack - self.stream.una == 1;
        self.stream.missed_end =
            (ack > self.stream.next).then_some(if is_single { self.times.delivered } else { Some(now) });
        if ack > self.stream.next {
            self.out.volume.bytes_unseen += (ack - self.stream.next).unsigned_abs();
            self.stream.next = ack;
        }
        if let Some(waiting) = self.times.waiting {
            self.out.events.longest_stall = self.out.events.longest_stall.max(now.since(waiting));
        }
        if self.recovery.phase == Phase::Fast && !self.sack.used {
            self.congestion.deflate();
        }
        if self.recovery.phase == Phase::Fast {
            // The hole, and segments above it that caused duplicates.
            let segments = (ack - self.stream.una) / self.size.mss().cast_signed().max(1);
            self.recovery.departed = (self.recovery.departed - (segments - 1).max(0)).max(0);
        } else {
            self.recovery.departed = 0;
        }
        if ack.min(self.stream.fin.unwrap_or(i64::MAX)) > self.stream.una.max(self.stream.origin) {
            self.times.delivered = Some(now);
        }
        self.stream.una = ack;
        self.sack.ranges.forget_below(ack);
        (self.recovery.dup_acks, self.recovery.in_a_row, self.times.advanced) = (0, 0, Some(now));
        if self.recovery.evidence.take().is_some() {
            self.recovery.past.evident = Some(now);
        }
        self.recovery.expiry.take_if(|expiry| ack >= expiry.end);
        self.times.waiting = (self.stream.next > self.stream.una).then_some(now);
        if self.recovery.phase != Phase::Open && self.stream.una >= self.recovery.until {
            (self.recovery.phase, self.recovery.departed) = (Phase::Open, 0);
            self.recovery.past.ended = Some(now);
            self.congestion.repaired();
        }
        original
    }

    /// The ACK that arrives `now` is the answer to a segment of `sent`.
    fn sample(&mut self, now: Instant, sent: Instant) {
        self.rtt.sample(now.since(sent));
        self.last.ack.round_trip = Some(now.since(sent));
    }

    /// Measures the round trip of the newest acknowledged segment, and the distance from the
    /// preceding ACK.
    fn measure(&mut self, now: Instant, newest: &Segment, clean: bool, packet: &Meta, is_bare: bool) {
        let echo = timestamps::echo(packet);
        let sent = if clean {
            Some(newest.first)
        } else {
            let repeated = newest.sends == Sends::Several && newest.sacked.is_none();
            (repeated && echo.is_some() && echo == newest.timestamp).then_some(newest.last)
        };
        if let Some(sent) = sent {
            self.sample(now, sent);
        }
        if !(clean && is_bare) {
            self.times.spaced = None;
            return;
        }
        if let Some((ack_before, data_before)) = self.times.spaced {
            let (acks, data) = (now.since(ack_before), newest.first.since(data_before));
            self.out.acks.spaced += 1;
            self.out.acks.compressed += u64::from(acks.as_ps() < data.as_ps() / 2);
            self.last.ack.spacing = Some((acks, data));
        }
        self.times.spaced = Some((now, newest.first));
    }

    /// Decides whether the repair was needed. RFC 3522: an echo from before the retransmission
    /// shows that it was not. Without timestamps an answer sooner than any round trip does.
    fn settle_doubt(&mut self, now: Instant, ack: i64, packet: &Meta) {
        let Some(doubt) = self.recovery.doubt.take_if(|doubt| ack > doubt.start) else { return };
        let echo = timestamps::echo(packet);
        let early = match (echo, doubt.timestamp) {
            (Some(echo), Some(own)) if echo != own => timestamps::is_before(echo, own),
            _ => self.rtt.least().is_some_and(|least| now.since(doubt.at) < least / 2),
        };
        if early {
            let needless = self.recovery.reports.settle(doubt.at, doubt.start, echo);
            self.out.repeats.spurious += needless.all;
            self.out.repeats.spurious_timeouts += needless.timeouts;
            // The sender takes its repair back: nothing is lost.
            self.sent.restore(ack, self.stream.next);
        }
    }

    /// Processes SACK blocks (RFC 2018) and reports of duplicates (RFC 2883, section 4).
    fn on_sack(&mut self, now: Instant, base: SeqNumber, ack: i64, packet: &Meta) -> Covered {
        let options = packet.options();
        if options.sack_count() == 0 {
            return Covered::default();
        }
        let range = |half: &Self, block: SackBlock| {
            (half.offset(base, half.stream.una, block.left), half.offset(base, half.stream.una, block.right))
        };
        let blocks: Vec<(i64, i64)> = options.sack_blocks().map(|block| range(self, block)).collect();
        let mut covered = Covered::default();
        for (number, &(left, right)) in blocks.iter().enumerate() {
            let within = blocks.get(1).is_some_and(|other| other.0 <= left && right <= other.1);
            if number == 0 && left < right && (right <= ack || within) {
                if let Some(needless) = self.recovery.reports.needless(left, right) {
                    self.out.repeats.spurious += needless.all;
                    self.out.repeats.spurious_timeouts += needless.timeouts;
                    self.recovery.undo.report(left, right);
                }
                continue;
            }
            if left >= right || left < ack || right > self.stream.next || right <= self.stream.una {
                continue;
            }
            (self.sack.used, self.sack.allowed) = (true, true);
            if self.sack.ranges.add(left, right) {
                covered.sacked = true;
                self.sent.sack(left, right, now, |segment| {
                    if segment.sends == Sends::Once {
                        covered.original |= segment.end <= self.recovery.until;
                        covered.newest = covered.newest.max(Some(segment.first));
                    }
                });
            }
        }
        covered
    }

    fn on_window(&mut self, now: Instant, packet: &Meta) {
        self.window.raw = Some(packet.window);
        let shift = if packet.flags.contains(TcpFlags::SYN) { Some(0) } else { self.window.shift };
        self.window.bytes = shift.map(|shift| i64::from(packet.window) << shift.min(14));
        // The window of a SYN is not scaled; it tells nothing about others of unknown scale.
        self.out.window.max =
            self.window.bytes.map(|window| self.out.window.max.unwrap_or(0).max(window.unsigned_abs()));
        match (packet.window, self.window.closed_since) {
            (0, None) => {
                self.window.closed_since = Some(now);
                self.out.window.closings += 1;
            }
            (1.., Some(since)) => {
                self.window.closed_since = None;
                self.out.window.closed += now.since(since);
                self.window.was_closed += now.since(self.times.advanced.map_or(since, |at| at.max(since)));
            }
            _ => {}
        }
    }
}
