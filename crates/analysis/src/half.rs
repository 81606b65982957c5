//! One direction of a connection: its segments, and the ACKs of the other side.
//!
//! Offsets are 64-bit and count from the first captured sequence number; a 32-bit number in a
//! header means the nearest offset to the highest one. The capture may be anywhere on the path:
//! reactions of the sender are compared with its turnaround as seen from the capture. Cost:
//! constant for new data and cumulative ACKs, a binary search for retransmissions and SACK blocks.
//!
//! This file has the data packets, `acks.rs` the ACKs, `cause.rs` the causes of retransmissions,
//! `limits.rs` the sender's limits and the results, `numbers.rs` packets that are missing, `opening.rs`
//! the SYNs, `repeats.rs` packets that repeat octets or fill holes, `reports.rs` the reports of duplicates,
//! `state.rs` the parts of the state, `undo.rs` and `undone_repairs.rs` repairs that the sender undoes.

mod acks;
mod cause;
mod limits;
mod numbers;
mod opening;
mod repeats;
mod reports;
mod state;
mod trace;
mod undo;
mod undone_repairs;

use std::num::{NonZeroU16, NonZeroU32};

use lastmile_packet::{Meta, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use self::state::{
    Doubt, Last, Opening, Past, Phase, Queue, ReceiveWindow, Recent, Recovery, Sack, SenderSide, Stream, Times,
};
use crate::cause::Cause;
use crate::congestion::Congestion;
use crate::limit::{Limit, Shares};
use crate::outcome::{Direction, MOST_PAUSES, Pause};
use crate::outstanding::{Outstanding, Segment, Sends};
use crate::response_time::{Feedback, faster};
use crate::roundtrip::RoundTrip;
use crate::segment_size::SegmentSize;
use crate::sender::{Known, Sent};
use crate::timestamps;
use crate::trace::{Data, Kind};

/// The shortest pause that is listed.
const PAUSE: Duration = Duration::from_s(1);
/// A host's response time in addition to the path: interrupts, scheduling, the pacing of a burst.
const HOST_SLACK: Duration = Duration::from_ms(5);

/// The state of one direction, as the module describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    stream: Stream,
    sent: Outstanding,
    pub(crate) sack: Sack,
    rtt: RoundTrip,
    pub(crate) sender: SenderSide,
    recovery: Recovery,
    times: Times,
    /// The sender's limit since the last event.
    limit: Option<Limit>,
    queue: Queue,
    pub(crate) size: SegmentSize,
    pub(crate) window: ReceiveWindow,
    recent: Recent,
    congestion: Congestion,
    last: Last,
    out: Direction,
}

impl Half {
    /// The initial sequence number, if the SYN was captured.
    pub(crate) fn initial(&self) -> Option<SeqNumber> {
        self.stream.base.filter(|_| self.stream.origin == 1)
    }

    pub(crate) fn fin_seen(&self) -> bool {
        self.stream.fin.is_some()
    }

    /// The fastest round trip from the capture to the receiver so far.
    pub(crate) fn fastest_round_trip(&self) -> Option<Duration> {
        self.rtt.least()
    }

    /// The direction so far, without measurements of the path: its sender is seen from its own end. Its packets have
    /// times that are earlier by its `distance`, and so has its SYN.
    pub(crate) fn seen_from_its_sender(&self, distance: Duration) -> Self {
        let sender = SenderSide { is_far: true, ..SenderSide::default() };
        let mut half = Self { sender, rtt: RoundTrip::default(), ..self.clone() };
        match half.stream.opening {
            Opening::Unanswered => half.out.limits.shares.add(Limit::Handshake, distance),
            Opening::Answered(at) if half.times.last_event == Some(at) => {
                half.times.last_event = Some(Instant::from_ps(at.as_ps().saturating_sub(distance.as_ps())));
            }
            Opening::Answered(_) | Opening::Other => {}
        }
        half
    }

    /// True for data while others are sent and not acknowledged, captured or not: data before it, or
    /// what it retransmits.
    pub(crate) fn has_others_in_flight(&self, packet: &Meta) -> bool {
        let start = self.stream.base.map(|base| self.offset(base, self.stream.next, packet.seq));
        packet.payload_len() > 0 && start.is_some_and(|start| start != self.stream.una || start < self.stream.next)
    }

    /// True if the ACK covers all that was sent.
    pub(crate) fn leaves_none_in_flight(&self, ack: &Meta) -> bool {
        self.stream.base.is_some_and(|base| self.offset(base, self.stream.una, ack.ack) >= self.stream.next)
    }

    fn offset(&self, base: SeqNumber, near: i64, seq: SeqNumber) -> i64 {
        let near_seq = base.raw().wrapping_add(near as u32);
        near + i64::from(seq.raw().wrapping_sub(near_seq).cast_signed())
    }

    /// The sender's response time as seen from the capture; `opened` is that of the handshake.
    fn response(&self, opened: Option<Duration>) -> Duration {
        match (opened, self.sender.turnaround.fastest()) {
            (Some(opened), Some(fastest)) => opened.max(fastest),
            (Some(known), None) | (None, Some(known)) => known,
            // Without a measurement the capture is assumed to be in the middle of the path.
            (None, None) => self.rtt.least().unwrap_or_default() / 2,
        }
    }

    /// The sender's longest usual response time.
    fn reaction(&self, opened: Option<Duration>) -> Duration {
        let own = self.response(opened);
        own + own / 4 + self.rtt.least().unwrap_or_default() / 4 + HOST_SLACK
    }

    /// Processes a packet of this direction. `opened` is the round trip between capture and sender
    /// in the handshake.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Meta, opened: Option<Duration>) {
        self.out.volume.packets += 1;
        self.out.volume.ip_bytes += u64::from(packet.ip_len);
        self.out.codepoints.sent(packet);
        let payload = i64::from(packet.payload_len());
        let (syn, fin) = (packet.flags.contains(TcpFlags::SYN), packet.flags.contains(TcpFlags::FIN));
        let len = payload + i64::from(syn) + i64::from(fin);
        self.last.data = None;
        let is_crossed = self.open(now, packet);
        self.last.numbers.note(packet.ip_id, self.size.segments(payload.unsigned_abs()) as u16);
        if packet.flags.contains(TcpFlags::RST) || len == 0 {
            self.out.repeats.probes += u64::from(self.is_empty_probe(packet));
            return;
        }
        if is_crossed && payload == 0 {
            return;
        }
        if payload > 0 {
            self.out.volume.data_packets += 1;
            self.out.codepoints.dscp.get_or_insert(packet.dscp());
            self.out.largest_segment = self.out.largest_segment.max(payload.unsigned_abs());
            self.size.note(payload.unsigned_abs());
            let segments = self.size.segments(payload.unsigned_abs());
            self.out.volume.segments += segments;
            self.out.volume.packets_of_several += u64::from(segments > 1);
        }
        let base = *self.stream.base.get_or_insert_with(|| {
            self.stream.origin = i64::from(syn);
            packet.seq
        });
        let start = self.offset(base, self.stream.next, packet.seq);
        let end = start + len;
        if fin {
            self.stream.fin.get_or_insert(end - 1);
        }
        if payload > 0 && payload == len && self.is_probe(start, payload) {
            self.probe(start);
            return;
        }
        let is_again = self.recall(now, start);
        let (kind, filled) = if start >= self.stream.next {
            (self.judge_new((start, end), packet, is_again), 0)
        } else {
            let old = self.look(now, start, end.min(self.stream.next), packet);
            (self.judge(now, (start, end), packet, &old, opened), old.filled)
        };
        let cause = if let Kind::Retransmission(cause) = kind { Some(cause) } else { None };
        self.last.data = Some(Data { start, end, kind, ..Data::default() });
        let by_timer = matches!(cause, Some(Cause::Timeout | Cause::TailProbe));
        self.account(now, by_timer.then_some(Limit::Timer));
        if kind == Kind::New {
            self.end_wait(now, packet, opened);
        }
        if payload > 0 || fin {
            self.pause(now);
        }
        if let Some(cause) = cause {
            self.count(now, (start, end), cause, packet);
        }
        // SYN and FIN occupy sequence numbers without bytes.
        let flags = i64::from(syn && start >= self.stream.next) + i64::from(fin && end > self.stream.next);
        let fresh = (self.append(now, start, end, packet) + filled - flags).clamp(0, payload);
        self.out.volume.bytes_new += fresh.unsigned_abs();
        self.out.volume.bytes_repeated += (payload - fresh).unsigned_abs();
        if syn {
            // A SYN has one answer.
            self.times.asked = None;
        }
        self.queue.is_full = self.size.is_full(payload.unsigned_abs());
        (self.times.last_sent, self.queue.since) = (Some(now), Shares::default());
        self.as_sent(now, start, cause, packet, opened);
        self.times.waiting.get_or_insert(now);
        self.out.max_in_flight = self.out.max_in_flight.max((self.stream.next - self.stream.una).unsigned_abs());
        self.window.answered();
        self.limit = Some(self.limit_now());
        self.by_window(now, cause);
    }

    /// Accounts for the packet at the sender, which knew the ACKs that had reached it.
    fn as_sent(&mut self, now: Instant, start: i64, cause: Option<Cause>, packet: &Meta, opened: Option<Duration>) {
        let turnaround = faster(faster(opened, self.sender.turnaround.least()), self.sender.plain_answer);
        let known = match packet.options().timestamps() {
            Some((_, echo)) => self.sender.turnaround.known(echo).and_then(|feedback| self.known(&feedback, false)),
            None => turnaround.and_then(|turnaround| self.sender.account.reached(now, turnaround)),
        };
        if let Some(took) = self.sender.answer.take()
            && known.is_some_and(|known| known.ack < start)
        {
            self.sender.turnaround.prompt.sample(took);
        }
        let sent = Sent {
            start,
            next: self.stream.next,
            mss: self.size.mss().cast_signed(),
            advanced: self.times.advanced,
            closed: self.window.was_closed,
            is_full: self.queue.is_full,
            repairs: self.recovery.phase != Phase::Open,
            timer: matches!(cause, Some(Cause::Timeout | Cause::TailProbe)),
            opens: self.stream.next <= self.stream.origin,
        };
        self.sender.account.sent(now, sent, known, turnaround.unwrap_or_default());
    }

    /// The sender's knowledge after a packet towards it.
    fn known(&self, feedback: &Feedback, at_most: bool) -> Option<Known> {
        let (base, ack) = self.stream.base.zip(feedback.ack)?;
        let window = self
            .window
            .shift
            .map(|shift| i64::from(feedback.window) << if feedback.is_syn { 0 } else { shift.min(14) });
        Some(Known { at: feedback.at, ack: self.offset(base, self.stream.una, ack), window, at_most })
    }

    /// True if the packet's data or acknowledgement exceeds all earlier ones. `other` is the half
    /// that it acknowledges.
    pub(crate) fn is_news(&self, other: &Self, packet: &Meta) -> bool {
        let len = i64::from(packet.payload_len())
            + i64::from(packet.flags.contains(TcpFlags::SYN))
            + i64::from(packet.flags.contains(TcpFlags::FIN));
        let new_data = self
            .stream
            .base
            .is_none_or(|base| self.offset(base, self.stream.next, packet.seq) + len > self.stream.next);
        let acks = packet.flags.contains(TcpFlags::ACK);
        new_data && len > 0
            || acks
                && other
                    .stream
                    .base
                    .is_none_or(|base| other.offset(base, other.stream.una, packet.ack) > other.stream.una)
    }

    /// True for a packet without data at the last acknowledged octet, by which Linux probes a closed window or an idle
    /// connection (RFC 9293, section 3.8.4). Before a FIN it is an ACK that is late.
    fn is_empty_probe(&self, packet: &Meta) -> bool {
        let start = self.stream.base.map(|base| self.offset(base, self.stream.una, packet.seq));
        let is_idle = self.stream.next == self.stream.una && self.stream.fin.is_none();
        is_idle && start == Some(self.stream.una - 1) && !packet.flags.contains(TcpFlags::RST)
    }

    /// True for one byte beyond a closed window, or for the last acknowledged byte again (RFC 9293,
    /// sections 3.8.6.1 and 3.8.4).
    fn is_probe(&self, start: i64, payload: i64) -> bool {
        payload == 1
            && (self.window.closed_since.is_some() && start >= self.stream.una && start >= self.stream.next
                || self.stream.next == self.stream.una && start == self.stream.una - 1 && start >= self.stream.origin)
    }

    /// Counts a probe with the octet at `start`.
    fn probe(&mut self, start: i64) {
        self.out.repeats.probes += 1;
        self.out.volume.bytes_probed += 1;
        self.last.data = Some(Data { start, end: start + 1, kind: Kind::Probe, ..Data::default() });
        if start < self.stream.next || self.stream.probed == Some(start) {
            self.recovery.reports.repeated(1);
        } else {
            self.stream.probed = Some(start);
        }
    }

    fn pause(&mut self, now: Instant) {
        let Some(from) = self.times.last_sent else { return };
        let span = now.since(from);
        if span > PAUSE {
            self.out.events.pauses_count += 1;
            if self.out.events.pauses.len() < MOST_PAUSES {
                let limit = self.queue.since.most().unwrap_or(Limit::Application);
                self.out.events.pauses.push(Pause { from, span, limit });
            }
        }
    }

    /// Counts a retransmission, and starts a repair with its first packet.
    fn count(&mut self, now: Instant, (start, end): (i64, i64), cause: Cause, packet: &Meta) {
        let timestamp = timestamps::of(packet);
        self.recovery.reports.note(now, (start, end), timestamp, cause == Cause::Timeout);
        self.expired(now, (start, end), cause);
        if cause == Cause::Fast && self.recovery.phase == Phase::Fast {
            self.recovery.habits.as_reno.note(now);
        }
        if !self.sack.heeded && self.passes_over(start) {
            self.heed();
        }
        let repeats = &mut self.out.repeats;
        let begins = match cause {
            Cause::Timeout => {
                repeats.timeouts += 1;
                self.recovery.in_a_row += 1;
                repeats.most_in_a_row = repeats.most_in_a_row.max(self.recovery.in_a_row);
                note(&mut self.out.events.timeouts_at, now);
                Some(Phase::Loss)
            }
            Cause::Fast => {
                repeats.fast += 1;
                note(&mut self.out.events.fast_retransmits_at, now);
                Some(Phase::Fast)
            }
            Cause::InRecovery => {
                repeats.in_recovery += 1;
                self.recovery.habits.goes_on |= start > self.stream.una || self.recovery.dup_acks == 0;
                None
            }
            Cause::AfterTimeout => {
                repeats.after_timeout += 1;
                self.recovery.undo.goes_on();
                None
            }
            Cause::TailProbe => {
                repeats.tail_probes += 1;
                None
            }
            Cause::Unknown => {
                repeats.unknown += 1;
                None
            }
        };
        if let Some(phase) = begins {
            self.reduce(phase);
            self.begin_undo(phase);
            self.recovery.phase = phase;
            let is_hidden = start >= self.stream.next;
            self.recovery.past = Past { phase, first: start, begun: Some(now), is_hidden, ..Past::default() };
            self.recovery.until = self.stream.next.max(end);
            let next = self.recovery.episode.map_or(NonZeroU32::MIN, |episode| episode.saturating_add(1));
            self.recovery.episode = Some(next);
        }
        // The echo for the first segment under way is that of the segment itself (RFC 7323, section 4.3).
        if begins.is_some() || cause == Cause::TailProbe && start == self.stream.una {
            self.recovery.doubt = Some(Doubt { start, at: now, timestamp });
        }
        let (episode, una) = (self.recovery.episode, self.stream.una);
        self.recovery.undo.note((start, end), una, timestamp);
        for segment in self.sent.cut(start.max(una), end.min(self.stream.next)) {
            segment.episode = episode;
        }
        self.find_losses();
        self.sent.restore(start.max(una), end.min(self.stream.next));
    }

    /// True if the repair goes on at `start` after octets that were SACKed, and that it did not retransmit.
    fn passes_over(&self, start: i64) -> bool {
        let before = if start > self.stream.una { self.sent.at(start - 1) } else { None };
        before.is_some_and(|before| before.sacked.is_some() && before.episode != self.recovery.episode)
    }

    /// Appends the part above the highest offset, and returns its length in sequence numbers.
    fn append(&mut self, now: Instant, start: i64, end: i64, packet: &Meta) -> i64 {
        if end <= self.stream.next {
            return 0;
        }
        let (first, last, sacked, episode) = (now, now, None, None);
        let timestamp = timestamps::of(packet);
        let ip_id = NonZeroU16::new(packet.ip_id);
        // The first captured data may be preceded by data from before the capture.
        let is_first = self.stream.origin == 0 && self.times.last_sent.is_none();
        let new = Segment {
            start: self.stream.next,
            end,
            first,
            last,
            sacked,
            timestamp,
            sends: Sends::Once,
            episode,
            ip_id,
            in_network: true,
        };
        if start > self.stream.next {
            let hole = if is_first {
                Segment::before_capture(new.start, start, now)
            } else {
                Segment { end: start, sends: Sends::Never, ..new }
            };
            self.out.forgotten += u64::from(self.sent.push(hole));
        }
        let start = start.max(self.stream.next);
        self.out.forgotten += u64::from(self.sent.push(Segment { start, ..new }));
        if let Some(oldest) = self.sent.first() {
            self.stream.una = self.stream.una.max(oldest.start);
        }
        self.stream.next = end;
        end - start
    }
}

fn note(times: &mut Vec<Instant>, now: Instant) {
    if times.len() < MOST_PAUSES {
        times.push(now);
    }
}

#[cfg(test)]
mod tests;
