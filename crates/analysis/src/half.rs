//! One direction of a connection: its segments, and the ACKs of the other side.
//!
//! Offsets count from the first sequence number that was seen, in 64 bits; a header's number is the one nearest to the highest seen.
//! A capture anywhere on the path will do: reactions of the sender are measured against its turnaround from there.
//! Cost: constant for new data and cumulative ACKs, a binary search for repeats and SACK blocks.

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

/// A pause that is worth listing.
const PAUSE: Duration = Duration::from_s(1);
/// What a host needs to answer, beside the way: interrupts, scheduling, the pacing of a burst.
const HOST_SLACK: Duration = Duration::from_ms(5);
/// Round trips of which one was no delayed ACK.
const FEW: u64 = 8;
/// What current systems count timestamps in.
const TIMESTAMP_UNIT: Duration = Duration::from_ms(1);

/// Whether losses are being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Open,
    Fast,
    Loss,
}

/// What is known of the part of a packet that lies below the highest offset seen.
#[derive(Clone, Copy, Debug, Default)]
struct Old {
    /// Bytes that fill a hole.
    filled: i64,
    /// True if any byte was seen before.
    seen: bool,
    /// Of the first segment that was: when it was last seen, in which episode, with which IP identification and timestamp.
    last: Instant,
    episode: u32,
    ip_id: u16,
    /// What lies above the hole that was filled: when it was seen, and its timestamp.
    above: Option<(Instant, Option<u32>)>,
}

/// The first packet of a repair, whose need is still to be judged.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    start: i64,
    at: Instant,
    timestamp: Option<u32>,
    timeout: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    base: Option<SeqNumber>,
    /// Offset of the first byte of data: 1 behind a SYN.
    origin: i64,
    /// One past the highest offset sent, and the highest acknowledged.
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
    /// When there was first enough to tell of a loss.
    evidence: Option<Instant>,
    advanced: Option<Instant>,
    waiting: Option<Instant>,
    last_ack: Option<Instant>,
    last_sent: Option<Instant>,
    last_event: Option<Instant>,
    /// What the sender has waited for since then.
    limit: Option<Limit>,
    last_is_full: bool,
    pub(crate) size: SegmentSize,
    at_sender: AtSender,
    /// How long the sender took for the packet that passes now, if that is the first echo of a timestamp.
    pub(crate) answer: Option<Duration>,
    /// The ACK before, and when what it acknowledged had gone out.
    spaced: Option<(Instant, Instant)>,
    /// SACK was seen; it was agreed on.
    sacks: bool,
    pub(crate) may_sack: bool,
    /// The sender has repaired a hole above the first in a fast recovery, as only SACK lets it.
    selective: bool,
    /// When the other side's SYN came last.
    asked: Option<Instant>,
    /// The receiver's window: how far it is scaled, its value in the last header, since when it is closed.
    pub(crate) shift: Option<u8>,
    raw_window: Option<u16>,
    window: Option<i64>,
    closed: Option<Instant>,
    /// Packets that were acknowledged last: offset and IP identification.
    recent: [(i64, u16); 8],
    recent_at: usize,
    pub(crate) out: Direction,
}

impl Half {
    /// The initial sequence number, if the SYN was seen.
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

    /// How long the sender takes to answer what passes the capture; `opened` is what it took in the handshake.
    fn reaction(&self, opened: Option<Duration>) -> Duration {
        let own = match (opened, self.turnaround.fastest()) {
            (Some(opened), Some(fastest)) => opened.max(fastest),
            (Some(known), None) | (None, Some(known)) => known,
            // Nowhere to be learned: somewhere on the path.
            (None, None) => self.rtt.least().unwrap_or_default() / 2,
        };
        own + own / 4 + self.rtt.least().unwrap_or_default() / 4 + HOST_SLACK
    }

    /// A packet of this direction. `opened`: the round trip between capture and sender in the handshake.
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
        // SYN and FIN have numbers and no bytes.
        let flags = i64::from(syn && start >= self.next) + i64::from(fin && end > self.next);
        let fresh = (self.append(now, start, end, packet) + old.filled - flags).clamp(0, payload);
        self.out.bytes_new += fresh.unsigned_abs();
        self.out.bytes_repeated += (payload - fresh).unsigned_abs();
        if syn {
            // One SYN has one answer.
            self.asked = None;
        }
        self.last_is_full = self.size.is_full(payload.unsigned_abs());
        self.last_sent = Some(now);
        self.as_sent(now, start, cause, packet, opened);
        self.waiting.get_or_insert(now);
        self.out.max_in_flight = self.out.max_in_flight.max((self.next - self.una).unsigned_abs());
        self.limit = Some(self.limit_now());
    }

    /// Accounts for the packet as its sender saw it, which knew of the ACKs that had reached it.
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

    /// What a packet towards the sender told it.
    fn known(&self, told: &Told, at_most: bool) -> Option<Known> {
        let (base, ack) = self.base.zip(told.ack)?;
        let window = self.shift.map(|shift| i64::from(told.window) << if told.is_syn { 0 } else { shift.min(14) });
        Some(Known { at: told.at, ack: self.offset(base, self.una, ack), window, at_most })
    }

    /// True if the packet, or what it acknowledges, is beyond all that was seen; `other` is the half that it acknowledges.
    pub(crate) fn is_news(&self, other: &Self, packet: &Meta) -> bool {
        let len = i64::from(packet.payload_len())
            + i64::from(packet.flags.contains(TcpFlags::SYN))
            + i64::from(packet.flags.contains(TcpFlags::FIN));
        let new_data = self.base.is_none_or(|base| self.offset(base, self.next, packet.seq) + len > self.next);
        let acks = packet.flags.contains(TcpFlags::ACK);
        new_data && len > 0
            || acks && other.base.is_none_or(|base| other.offset(base, other.una, packet.ack) > other.una)
    }

    /// One byte beyond a closed window, or the last acknowledged byte over again (RFC 9293, sections 3.8.6.1 and 3.8.4).
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

    /// Looks up, and notes as sent once more, what lies below the highest offset seen.
    fn look(&mut self, now: Instant, start: i64, end: i64, packet: &Meta) -> Old {
        let mut old = Old::default();
        if start < self.una && start < end {
            // Acknowledged and forgotten.
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
                // What lies above was held back by the receiver: no ACK of it measures anything.
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

    /// Why the packet goes out again; `None` for one that is new, duplicated or out of order.
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

    /// What fills a hole was sent before what lies above it: by its timestamp, or because a repair cannot be there yet.
    fn is_late(&self, now: Instant, packet: &Meta, old: &Old, reaction: Duration) -> bool {
        let Some((seen, timestamp)) = old.above else { return false };
        let own = packet.options().timestamps().map(|(value, _)| value);
        if let (Some(own), Some(other)) = (own, timestamp)
            && own != other
        {
            return own.wrapping_sub(other).cast_signed() < 0;
        }
        // A repair needs the ACK of what lies above, and the way back.
        now.since(seen) < reaction.saturating_sub(HOST_SLACK).max(Duration::from_ms(1)) && self.dup_acks < DUP_THRESH
    }

    /// Counts a repeat, and begins a repair where it is the first of one.
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

    /// Adds what lies above the highest offset seen; returns how many sequence numbers that are.
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

    /// What the other side acknowledges with `packet`.
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
        // Data that the capture does not see are known by their ACKs.
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

    /// RFC 6675, section 4 (IsLost), and RFC 5681, section 3.2: whether there is enough to tell of a loss.
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

    /// The round trip of the newest segment that is acknowledged, and the distance from the ACK before.
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

    /// RFC 3522: an echo from before the repeat. Without timestamps: an answer sooner than any round trip.
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

    /// SACK blocks (RFC 2018), and reports of duplicates (RFC 2883, section 4). True if something is new.
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
                // What was never sent again was duplicated by the network.
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
            // It sent less than a full segment: there was no more.
            Limit::Application
        } else {
            Limit::CongestionWindow
        }
    }

    /// The fastest round trip from the capture to the end that this half's data go to, whose own half is `other`.
    pub(crate) fn to_receiver(&self, other: &Self) -> Option<Duration> {
        // A SYN is answered at once. Few segments may all have met a delayed ACK.
        let is_sure = self.initial().is_some() || self.rtt.count() >= FEW;
        let by_data = self.rtt.least();
        // Echoes are too fast by up to the unit of timestamps.
        let by_echo = other.turnaround.least().map(|least| least + TIMESTAMP_UNIT);
        if is_sure { by_data.or(by_echo) } else { by_data.into_iter().chain(by_echo).min() }
    }

    /// What the sender waited for, from where the capture stands, and where that comes from.
    fn judge_limits(&mut self, vantage: Vantage) -> Option<Basis> {
        let there = self.at_sender.finish(self.advanced, self.turnaround.least());
        let (shares, basis) = match (vantage, there) {
            (Vantage::Sender, _) => (self.out.limits, Basis::Packets),
            (_, Some((shares, Basis::Timestamps))) => (shares, Basis::Timestamps),
            (Vantage::Between | Vantage::Receiver, Some(there)) => there,
            (Vantage::Between | Vantage::Receiver, None) => return None,
            // The way to the receiver is long, or the whole is short: as if at the sender.
            (Vantage::Unknown, _) if self.rtt.least() >= Some(TIMESTAMP_UNIT) || there.is_some() => {
                (self.out.limits, Basis::Packets)
            }
            (Vantage::Unknown, _) => return None,
        };
        self.out.limits = shares;
        Some(basis)
    }

    /// The numbers, of a connection whose first packet came at `from`; `ways` are the fastest round trips to the sender and to the receiver.
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
