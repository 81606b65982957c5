//! One direction of a connection: its segments, and the ACKs of the other side.
//!
//! Offsets are 64-bit and count from the first captured sequence number; a 32-bit number in a
//! header means the nearest offset to the highest one. The capture may be anywhere on the path:
//! reactions of the sender are compared with its turnaround as seen from the capture. Cost:
//! constant for new data and cumulative ACKs, a binary search for retransmissions and SACK blocks.

mod cause;

use lastmile_packet::{Meta, SackBlock, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};

use self::cause::{Cause, DUP_THRESH};
use crate::limit::{Limit, Shares};
use crate::outcome::{Direction, MOST_PAUSES, Pause, RoundTrips};
use crate::ranges::Ranges;
use crate::roundtrip::RoundTrip;
use crate::segment_size::SegmentSize;
use crate::sender::{AtSender, Basis, Known, Sent};
use crate::sent::{Outstanding, Segment};
use crate::turnaround::{Told, Turnaround};
use crate::vantage::Vantage;

/// The shortest pause that is listed.
const PAUSE: Duration = Duration::from_s(1);
/// A host's response time in addition to the path: interrupts, scheduling, the pacing of a burst.
const HOST_SLACK: Duration = Duration::from_ms(5);
/// The number of round trips that is assumed to include one without delayed ACK.
const FEW: u64 = 8;
/// The unit of timestamps in current systems.
const TIMESTAMP_UNIT: Duration = Duration::from_ms(1);

/// The state of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    Fast,
    Loss,
}

/// The part of a packet below the highest offset.
#[derive(Clone, Copy, Debug, Default)]
struct Old {
    /// Bytes that fill a hole.
    filled: i64,
    /// True if any byte was captured before.
    seen: bool,
    /// Of the first such segment: time, episode, IP identification and timestamp of its last
    /// transmission.
    last: Instant,
    episode: u32,
    ip_id: u16,
    /// The segment above a filled hole: its time and timestamp.
    above: Option<(Instant, Option<u32>)>,
}

/// The first packet of a repair, of which it is open whether it was needed.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    start: i64,
    at: Instant,
    timestamp: Option<u32>,
    timeout: bool,
}

/// The state of one direction, as the module describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    base: Option<SeqNumber>,
    /// Offset of the first byte of data: 1 after a SYN.
    origin: i64,
    /// One past the highest offset sent, and the highest offset acknowledged.
    next: i64,
    una: i64,
    fin: Option<i64>,
    sent: Outstanding,
    sacked: Ranges,
    pub(crate) rtt: RoundTrip,
    pub(crate) turnaround: Turnaround,
    phase: Phase,
    last_phase: Phase,
    recover: i64,
    episode: u32,
    doubt: Option<Doubt>,
    dup_acks: u32,
    in_a_row: u64,
    /// Time of the first sufficient evidence of a loss.
    evidence: Option<Instant>,
    advanced: Option<Instant>,
    waiting: Option<Instant>,
    last_ack: Option<Instant>,
    last_sent: Option<Instant>,
    last_event: Option<Instant>,
    /// The sender's limit since the last event.
    limit: Option<Limit>,
    last_is_full: bool,
    pub(crate) size: SegmentSize,
    at_sender: AtSender,
    /// The sender's response time for the current packet, if it is the first echo of a timestamp.
    pub(crate) answer: Option<Duration>,
    /// The preceding ACK, and the transmission time of the data that it acknowledges.
    spaced: Option<(Instant, Instant)>,
    /// Whether SACK was used, and whether it was negotiated.
    sacks: bool,
    pub(crate) may_sack: bool,
    /// True if the sender repaired a hole above the first in a fast recovery, which requires SACK.
    selective: bool,
    /// Time of the other side's last SYN.
    asked: Option<Instant>,
    /// The receiver's window: its scale, its value in the last header, and the time since which it
    /// is closed.
    pub(crate) shift: Option<u8>,
    raw_window: Option<u16>,
    window: Option<i64>,
    closed: Option<Instant>,
    /// The packets acknowledged last: offset and IP identification.
    recent: [(i64, u16); 8],
    recent_at: usize,
    pub(crate) out: Direction,
}

impl Half {
    /// The initial sequence number, if the SYN was captured.
    pub(crate) fn initial(&self) -> Option<SeqNumber> {
        self.base.filter(|_| self.origin == 1)
    }

    pub(crate) fn fin_seen(&self) -> bool {
        self.fin.is_some()
    }

    fn offset(&self, base: SeqNumber, near: i64, seq: SeqNumber) -> i64 {
        let near_seq = base.raw().wrapping_add(near as u32);
        near + i64::from(seq.raw().wrapping_sub(near_seq).cast_signed())
    }

    /// The sender's response time as seen from the capture; `opened` is that of the handshake.
    fn reaction(&self, opened: Option<Duration>) -> Duration {
        let own = match (opened, self.turnaround.fastest()) {
            (Some(opened), Some(fastest)) => opened.max(fastest),
            (Some(known), None) | (None, Some(known)) => known,
            // Without a measurement the capture is assumed to be in the middle of the path.
            (None, None) => self.rtt.least().unwrap_or_default() / 2,
        };
        own + own / 4 + self.rtt.least().unwrap_or_default() / 4 + HOST_SLACK
    }

    /// Processes a packet of this direction. `opened` is the round trip between capture and sender
    /// in the handshake.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Meta, opened: Option<Duration>) {
        self.out.packets += 1;
        self.out.ip_bytes += u64::from(packet.ip_len);
        let payload = i64::from(packet.payload_len());
        let (syn, fin) = (packet.flags.contains(TcpFlags::SYN), packet.flags.contains(TcpFlags::FIN));
        let len = payload + i64::from(syn) + i64::from(fin);
        if packet.flags.contains(TcpFlags::RST) || len == 0 {
            return;
        }
        if payload > 0 {
            self.out.data_packets += 1;
            self.out.dscp.get_or_insert(packet.dscp());
            self.out.largest_segment = self.out.largest_segment.max(payload.unsigned_abs());
            self.size.note(payload.unsigned_abs());
        }
        let base = *self.base.get_or_insert_with(|| {
            self.origin = i64::from(syn);
            packet.seq
        });
        let start = self.offset(base, self.next, packet.seq);
        let end = start + len;
        if fin {
            self.fin.get_or_insert(end - 1);
        }
        if payload > 0 && payload == len && self.is_probe(start, payload) {
            self.out.repeats.probes += 1;
            self.out.bytes_probed += payload.unsigned_abs();
            return;
        }
        self.pause(now, payload);
        let reaction = self.reaction(opened);
        let old = self.look(now, start, end.min(self.next), packet);
        let cause = self.judge(now, (start, end), packet, &old, reaction);
        self.account(now, (cause == Some(Cause::Timeout)).then_some(Limit::Timer));
        if let Some(cause) = cause {
            self.count(now, (start, end), cause, packet);
        }
        // SYN and FIN occupy sequence numbers without bytes.
        let flags = i64::from(syn && start >= self.next) + i64::from(fin && end > self.next);
        let fresh = (self.append(now, start, end, packet) + old.filled - flags).clamp(0, payload);
        self.out.bytes_new += fresh.unsigned_abs();
        self.out.bytes_repeated += (payload - fresh).unsigned_abs();
        if syn {
            // A SYN has one answer.
            self.asked = None;
        }
        self.last_is_full = self.size.is_full(payload.unsigned_abs());
        self.last_sent = Some(now);
        self.as_sent(now, start, cause, packet, opened);
        self.waiting.get_or_insert(now);
        self.out.max_in_flight = self.out.max_in_flight.max((self.next - self.una).unsigned_abs());
        self.limit = Some(self.limit_now());
    }

    /// Accounts for the packet at the sender, which knew the ACKs that had reached it.
    fn as_sent(&mut self, now: Instant, start: i64, cause: Option<Cause>, packet: &Meta, opened: Option<Duration>) {
        let turnaround = [opened, self.turnaround.least()].into_iter().flatten().min();
        let known = match packet.options().timestamps() {
            Some((_, echo)) => self.turnaround.known(echo).and_then(|told| self.known(&told, false)),
            None => turnaround.and_then(|turnaround| self.at_sender.reached(now, turnaround)),
        };
        if let Some(took) = self.answer.take()
            && known.is_some_and(|known| known.ack < start)
        {
            self.turnaround.prompt.sample(took);
        }
        let sent = Sent {
            start,
            next: self.next,
            mss: self.size.mss().cast_signed(),
            is_full: self.last_is_full,
            repairs: self.phase != Phase::Open,
            timer: cause == Some(Cause::Timeout),
            opens: self.next <= self.origin,
        };
        self.at_sender.sent(now, sent, known, turnaround.unwrap_or_default());
    }

    /// The sender's knowledge after a packet towards it.
    fn known(&self, told: &Told, at_most: bool) -> Option<Known> {
        let (base, ack) = self.base.zip(told.ack)?;
        let window = self.shift.map(|shift| i64::from(told.window) << if told.is_syn { 0 } else { shift.min(14) });
        Some(Known { at: told.at, ack: self.offset(base, self.una, ack), window, at_most })
    }

    /// True if the packet's data or acknowledgement exceeds all earlier ones. `other` is the half
    /// that it acknowledges.
    pub(crate) fn is_news(&self, other: &Self, packet: &Meta) -> bool {
        let len = i64::from(packet.payload_len())
            + i64::from(packet.flags.contains(TcpFlags::SYN))
            + i64::from(packet.flags.contains(TcpFlags::FIN));
        let new_data = self.base.is_none_or(|base| self.offset(base, self.next, packet.seq) + len > self.next);
        let acks = packet.flags.contains(TcpFlags::ACK);
        new_data && len > 0
            || acks && other.base.is_none_or(|base| other.offset(base, other.una, packet.ack) > other.una)
    }

    /// True for one byte beyond a closed window, or for the last acknowledged byte again (RFC 9293,
    /// sections 3.8.6.1 and 3.8.4).
    fn is_probe(&self, start: i64, payload: i64) -> bool {
        payload == 1
            && (self.closed.is_some() && start >= self.una && start >= self.next
                || self.next == self.una && start == self.una - 1 && start >= self.origin)
    }

    fn pause(&mut self, now: Instant, payload: i64) {
        let Some(from) = self.last_sent else { return };
        let span = now.since(from);
        if payload > 0 && span > PAUSE {
            self.out.pauses_count += 1;
            if self.out.pauses.len() < MOST_PAUSES {
                let limit = self.limit.unwrap_or(Limit::Application);
                self.out.pauses.push(Pause { from, span, limit });
            }
        }
    }

    /// Looks up the part below the highest offset, and records its retransmission.
    fn look(&mut self, now: Instant, start: i64, end: i64, packet: &Meta) -> Old {
        let mut old = Old::default();
        if start < self.una && start < end {
            // The segment was acknowledged and its record removed.
            old.seen = true;
            old.last = self.advanced.unwrap_or(now);
            old.ip_id = self.recent.iter().find(|(offset, _)| *offset == start).map_or(0, |(_, id)| *id);
        }
        if end <= self.una || start >= end {
            return old;
        }
        let above = self.sent.at(end).map(|segment| (segment.first, segment.timestamp));
        let timestamp = packet.options().timestamps().map(|(value, _)| value);
        for segment in self.sent.cut(start.max(self.una), end) {
            if segment.sends == 0 {
                old.filled += segment.end - segment.start;
                old.above = above.or(Some((segment.first, None)));
                segment.first = now;
                // The receiver held back the data above the hole, so no ACK of them measures a
                // round trip.
                segment.sends = 1;
            } else if !old.seen {
                old = Old { seen: true, last: segment.last, episode: segment.episode, ip_id: segment.ip_id, ..old };
            }
            segment.sends += 1;
            segment.last = now;
            segment.timestamp = timestamp;
            segment.ip_id = packet.ip_id;
        }
        old
    }

    /// The cause of a retransmission; `None` for a new, duplicated or reordered packet.
    fn judge(
        &mut self,
        now: Instant,
        range: (i64, i64),
        packet: &Meta,
        old: &Old,
        reaction: Duration,
    ) -> Option<Cause> {
        if !old.seen && old.filled == 0 {
            return None;
        }
        if old.seen && old.ip_id != 0 && old.ip_id == packet.ip_id {
            self.out.repeats.duplicated += 1;
            return None;
        }
        if !old.seen {
            if self.is_late(now, packet, old, reaction) {
                self.out.repeats.out_of_order += 1;
                return None;
            }
            self.out.repeats.lost_before_capture += 1;
        }
        Some(self.cause(now, range, old, reaction))
    }

    /// True for a packet that fills a hole and was sent before the data above it: by its timestamp,
    /// or because it is too early for a repair.
    fn is_late(&self, now: Instant, packet: &Meta, old: &Old, reaction: Duration) -> bool {
        let Some((seen, timestamp)) = old.above else { return false };
        let own = packet.options().timestamps().map(|(value, _)| value);
        if let (Some(own), Some(other)) = (own, timestamp)
            && own != other
        {
            return own.wrapping_sub(other).cast_signed() < 0;
        }
        // A repair needs the ACK of the data above the hole, and a path back.
        now.since(seen) < reaction.saturating_sub(HOST_SLACK).max(Duration::from_ms(1)) && self.dup_acks < DUP_THRESH
    }

    /// Counts a retransmission, and starts a repair with its first packet.
    fn count(&mut self, now: Instant, (start, end): (i64, i64), cause: Cause, packet: &Meta) {
        let repeats = &mut self.out.repeats;
        let begins = match cause {
            Cause::Timeout => {
                repeats.timeouts += 1;
                self.in_a_row += 1;
                repeats.most_in_a_row = repeats.most_in_a_row.max(self.in_a_row);
                note(&mut self.out.timeouts_at, now);
                Some(Phase::Loss)
            }
            Cause::Fast => {
                repeats.fast += 1;
                note(&mut self.out.fast_retransmits_at, now);
                Some(Phase::Fast)
            }
            Cause::InRecovery => {
                repeats.in_recovery += 1;
                self.selective |= start > self.una;
                None
            }
            Cause::AfterTimeout => {
                repeats.after_timeout += 1;
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
            (self.phase, self.last_phase) = (phase, phase);
            self.recover = self.next.max(end);
            self.episode += 1;
            let timestamp = packet.options().timestamps().map(|(value, _)| value);
            self.doubt = Some(Doubt { start, at: now, timestamp, timeout: phase == Phase::Loss });
        }
        let (episode, una) = (self.episode, self.una);
        for segment in self.sent.cut(start.max(una), end.min(self.next)) {
            segment.episode = episode;
        }
    }

    /// Appends the part above the highest offset, and returns its length in sequence numbers.
    fn append(&mut self, now: Instant, start: i64, end: i64, packet: &Meta) -> i64 {
        if end <= self.next {
            return 0;
        }
        let (first, last, sacked, episode) = (now, now, None, 0);
        let timestamp = packet.options().timestamps().map(|(value, _)| value);
        let ip_id = packet.ip_id;
        let new = Segment { start: self.next, end, first, last, sacked, timestamp, sends: 1, episode, ip_id };
        if start > self.next {
            let hole = Segment { end: start, sends: 0, timestamp: None, ip_id: 0, ..new };
            self.out.forgotten += u64::from(self.sent.push(hole));
        }
        let start = start.max(self.next);
        self.out.forgotten += u64::from(self.sent.push(Segment { start, ..new }));
        if let Some(oldest) = self.sent.first() {
            self.una = self.una.max(oldest.start);
        }
        self.next = end;
        end - start
    }

    /// Processes the acknowledgement in a `packet` of the other side.
    pub(crate) fn on_ack(&mut self, now: Instant, packet: &Meta) {
        if packet.flags.contains(TcpFlags::SYN) {
            self.asked = Some(now);
        }
        if packet.flags.contains(TcpFlags::RST) || !packet.flags.contains(TcpFlags::ACK) {
            return;
        }
        let is_bare = packet.payload_len() == 0 && !packet.flags.intersects(TcpFlags::SYN.with(TcpFlags::FIN));
        if is_bare {
            self.out.acks += 1;
        }
        // Data that the capture misses are inferred from their ACKs.
        let base = *self.base.get_or_insert(packet.ack);
        if packet.options().timestamps().is_none()
            && let Some(known) = self.known(&Told::new(now, packet), true)
        {
            self.at_sender.passed(known);
        }
        let ack = self.offset(base, self.una, packet.ack);
        self.account(now, None);
        let fresh_sack = self.on_sack(now, base, ack, packet);
        if ack > self.una {
            self.advance(now, ack, packet, is_bare);
        } else if ack == self.una && self.next > self.una && is_bare {
            let same_window = self.raw_window == Some(packet.window);
            if fresh_sack || same_window {
                self.dup_acks = self.dup_acks.saturating_add(1);
                self.out.duplicate_acks += 1;
            }
        }
        if ack >= self.una {
            self.on_window(now, packet);
        }
        self.last_ack = Some(now);
        self.weigh(now);
        self.limit = Some(self.limit_now());
    }

    /// Checks for sufficient evidence of a loss: RFC 6675, section 4 (IsLost), and RFC 5681,
    /// section 3.2.
    fn weigh(&mut self, now: Instant) {
        let mss = self.size.mss().cast_signed();
        let much = self.sacked.len() >= DUP_THRESH as usize || self.sacked.bytes() > 2 * mss;
        if self.next == self.una || !(self.dup_acks >= DUP_THRESH || (self.sacked.len() > 0 && much)) {
            self.evidence = None;
        } else {
            self.evidence.get_or_insert(now);
        }
    }

    fn advance(&mut self, now: Instant, ack: i64, packet: &Meta, is_bare: bool) {
        if self.out.initial_window.is_none() && self.origin == 1 && ack > 1 {
            self.out.initial_window =
                Some((self.next.max(ack).min(self.fin.unwrap_or(i64::MAX)) - 1).max(0).unsigned_abs());
        }
        let (mut newest, mut clean) = (None, true);
        let (recent, place) = (&mut self.recent, &mut self.recent_at);
        self.sent.acknowledge(ack, |segment| {
            clean &= segment.sends == 1 && segment.sacked.is_none();
            recent[*place % 8] = (segment.start, segment.ip_id);
            *place += 1;
            newest = Some(segment);
        });
        if let Some(newest) = newest {
            self.measure(now, &newest, clean, packet, is_bare);
        }
        self.settle_doubt(now, ack, packet);
        if ack > self.next {
            self.out.bytes_unseen += (ack - self.next).unsigned_abs();
            self.next = ack;
        }
        if let Some(waiting) = self.waiting {
            self.out.longest_stall = self.out.longest_stall.max(now.since(waiting));
        }
        self.una = ack;
        self.sacked.forget_below(ack);
        (self.dup_acks, self.in_a_row, self.advanced) = (0, 0, Some(now));
        self.evidence = None;
        self.waiting = (self.next > self.una).then_some(now);
        if self.phase != Phase::Open && self.una >= self.recover {
            self.phase = Phase::Open;
        }
    }

    /// Measures the round trip of the newest acknowledged segment, and the distance from the
    /// preceding ACK.
    fn measure(&mut self, now: Instant, newest: &Segment, clean: bool, packet: &Meta, is_bare: bool) {
        let echo = packet.options().timestamps().map(|(_, echo)| echo);
        if clean {
            self.rtt.sample(now.since(newest.first));
        } else if newest.sends > 1 && newest.sacked.is_none() && echo.is_some() && echo == newest.timestamp {
            self.rtt.sample(now.since(newest.last));
        }
        if !(clean && is_bare) {
            self.spaced = None;
            return;
        }
        if let Some((ack_before, data_before)) = self.spaced {
            let (acks, data) = (now.since(ack_before), newest.first.since(data_before));
            self.out.spaced_acks += 1;
            self.out.compressed_acks += u64::from(acks.as_ps() < data.as_ps() / 2);
        }
        self.spaced = Some((now, newest.first));
    }

    /// Decides whether the repair was needed. RFC 3522: an echo from before the retransmission
    /// shows that it was not. Without timestamps an answer sooner than any round trip does.
    fn settle_doubt(&mut self, now: Instant, ack: i64, packet: &Meta) {
        let Some(doubt) = self.doubt.take_if(|doubt| ack > doubt.start) else { return };
        let early = match (packet.options().timestamps(), doubt.timestamp) {
            (Some((_, echo)), Some(own)) if echo != own => echo.wrapping_sub(own).cast_signed() < 0,
            _ => self.rtt.least().is_some_and(|least| now.since(doubt.at) < least / 2),
        };
        if early {
            self.out.repeats.spurious += 1;
            self.out.repeats.spurious_timeouts += u64::from(doubt.timeout);
        }
    }

    /// Processes SACK blocks (RFC 2018) and reports of duplicates (RFC 2883, section 4). True if
    /// anything is new.
    fn on_sack(&mut self, now: Instant, base: SeqNumber, ack: i64, packet: &Meta) -> bool {
        let options = packet.options();
        if options.sack_count() == 0 {
            return false;
        }
        let range = |half: &Self, block: SackBlock| {
            (half.offset(base, half.una, block.left), half.offset(base, half.una, block.right))
        };
        let blocks: Vec<(i64, i64)> = options.sack_blocks().map(|block| range(self, block)).collect();
        let mut fresh = false;
        for (number, &(left, right)) in blocks.iter().enumerate() {
            let within = blocks.get(1).is_some_and(|other| other.0 <= left && right <= other.1);
            if number == 0 && left < right && (right <= ack || within) {
                let repeats = &mut self.out.repeats;
                // A reported duplicate without a retransmission is the network's.
                repeats.spurious += u64::from(repeats.spurious < repeats.packets());
                continue;
            }
            if left >= right || left < ack || right > self.next || right <= self.una {
                continue;
            }
            (self.sacks, self.may_sack) = (true, true);
            if self.sacked.add(left, right) {
                fresh = true;
                for segment in self.sent.cut(left, right) {
                    segment.sacked.get_or_insert(now);
                }
            }
        }
        fresh
    }

    fn on_window(&mut self, now: Instant, packet: &Meta) {
        self.raw_window = Some(packet.window);
        let shift = if packet.flags.contains(TcpFlags::SYN) { Some(0) } else { self.shift };
        self.window = shift.map(|shift| i64::from(packet.window) << shift.min(14));
        if let Some(window) = self.window {
            self.out.max_window = Some(self.out.max_window.unwrap_or(0).max(window.unsigned_abs()));
        }
        match (packet.window, self.closed) {
            (0, None) => {
                self.closed = Some(now);
                self.out.zero_windows += 1;
            }
            (1.., Some(since)) => {
                self.closed = None;
                self.out.zero_window += now.since(since);
            }
            _ => {}
        }
    }

    /// Charges the time since the last event.
    fn account(&mut self, now: Instant, instead: Option<Limit>) {
        if let (Some(last), Some(limit)) = (self.last_event, instead.or(self.limit)) {
            self.out.limits.add(limit, now.since(last));
        }
        self.last_event = Some(now);
    }

    fn limit_now(&self) -> Limit {
        let mss = self.size.mss();
        let flight = self.next - self.una;
        if self.una < self.origin {
            Limit::Handshake
        } else if flight == 0 {
            if self.closed.is_some() { Limit::ReceiveWindow } else { Limit::Application }
        } else if self.phase != Phase::Open {
            Limit::Recovery
        } else if self.window.is_some_and(|window| flight + mss.cast_signed() > window) {
            Limit::ReceiveWindow
        } else if !self.last_is_full {
            // A segment below the full size: the application had no more data.
            Limit::Application
        } else {
            Limit::CongestionWindow
        }
    }

    /// The fastest round trip from the capture to this half's receiver, whose own half is `other`.
    pub(crate) fn to_receiver(&self, other: &Self) -> Option<Duration> {
        // A SYN is answered immediately. A small number of segments may all have met a delayed ACK.
        let is_sure = self.initial().is_some() || self.rtt.count() >= FEW;
        let by_data = self.rtt.least();
        // Echoes are too fast by up to the unit of timestamps.
        let by_echo = other.turnaround.least().map(|least| least + TIMESTAMP_UNIT);
        if is_sure { by_data.or(by_echo) } else { by_data.into_iter().chain(by_echo).min() }
    }

    /// The sender's limits from the capture's vantage point, and their basis.
    fn judge_limits(&mut self, vantage: Vantage) -> Option<Basis> {
        let there = self.at_sender.finish(self.advanced, self.turnaround.least());
        let (shares, basis) = match (vantage, there) {
            (Vantage::Sender, _) => (self.out.limits, Basis::Packets),
            (_, Some((shares, Basis::Timestamps))) => (shares, Basis::Timestamps),
            (Vantage::Between | Vantage::Receiver, Some(there)) => there,
            (Vantage::Between | Vantage::Receiver, None) => return None,
            // A long path to the receiver, or a short round trip: the capture counts as next to the
            // sender.
            (Vantage::Unknown, _) if self.rtt.least() >= Some(TIMESTAMP_UNIT) || there.is_some() => {
                (self.out.limits, Basis::Packets)
            }
            (Vantage::Unknown, _) => return None,
        };
        self.out.limits = shares;
        Some(basis)
    }

    /// The results of a connection whose first packet was captured at `from`. `ways` are the
    /// fastest round trips to the sender and to the receiver.
    pub(crate) fn finish(mut self, from: Instant, ways: [Option<Duration>; 2]) -> Direction {
        [self.out.to_sender, self.out.to_receiver] = ways;
        self.out.vantage = Vantage::new(ways[0], ways[1]);
        self.out.limits_from = self.judge_limits(self.out.vantage);
        if self.out.limits_from.is_none() {
            self.out.limits = Shares::default();
        }
        let acknowledged = self.una.min(self.fin.unwrap_or(i64::MAX)) - self.origin;
        self.out.bytes_acknowledged = acknowledged.max(0).unsigned_abs();
        let end = self.advanced.or(self.last_sent).unwrap_or(from);
        self.out.active = end.since(from);
        let bytes = if self.last_ack.is_some() { self.out.bytes_acknowledged } else { self.out.bytes_new };
        let seconds = self.out.active.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "statistics")]
        let bits = bytes as f64 * 8.0;
        self.out.goodput_bps = if seconds > 0.0 { bits / seconds } else { 0.0 };
        self.out.turnaround = self.turnaround.fastest();
        self.out.round_trips = RoundTrips::of(&self.rtt);
        self.out.answers = RoundTrips::of(&self.turnaround.prompt);
        self.out
    }
}

fn note(times: &mut Vec<Instant>, now: Instant) {
    if times.len() < MOST_PAUSES {
        times.push(now);
    }
}

#[cfg(test)]
mod tests;
