//! The receiving half: what is acknowledged, when, and with which window.
//!
//! Published: RFC 9293, sections 3.8.6.2.2 (silly windows) and 3.8.6.3 (delayed acknowledgements); RFC 5681, section
//! 4.2; RFC 7323; RFC 3168, section 6.1.3.
//! Differs: every data segment counts towards `ack_every`, full-sized or not. The application reads at once, or not at
//! all ([`set_reading`](crate::Endpoint::set_reading)). A shift rounds the window down, so that its right edge may step
//! back by less than one unit (RFC 7323, section 2.4); what was within the edge at its farthest is taken.
//! Cost: a segment in order takes a dozen comparisons and additions.

use lastmile_packet::SeqNumber;
use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::autotune::{Autotune, Read, START};
use crate::flags::{Flag, Flags};
use crate::quick_acks::QuickAcks;
use crate::ranges::{Low, Range, Span};
use crate::reassembly::Reassembly;
use crate::timer::Timer;

/// What a data segment did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It began at or before the next expected byte and brought something new.
    InOrder,
    /// It lies ahead.
    OutOfOrder,
    /// It brought nothing new.
    Duplicate,
    /// It lies beyond the window.
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next octet expected (RCV.NXT); the peer's SYN is octet 0.
    pub(crate) next: u64,
    /// When the acknowledgement held back is due.
    pub(crate) ack_timer: Timer,
    pub(crate) reassembly: Option<Box<Reassembly>>,
    rare: Option<Box<Rare>>,
    /// One past the last octet that was ever admitted; never further behind `next` than a FIN.
    edge: Low,
    pub(crate) irs: SeqNumber,
    /// Acknowledgement number last sent (Last.ACK.sent of RFC 7323).
    pub(crate) last_ack: SeqNumber,
    /// Receive buffer, no larger than the window field can tell.
    pub(crate) buffer: u32,
    /// The low half of [`Stats::data_received`](crate::Stats).
    data_received: u32,
    /// The low half of [`Stats::acks_sent`](crate::Stats).
    acks_sent: u32,
    /// The low halves of what [`Stats`](crate::Stats) has of data ahead of its turn, and of data again.
    out_of_order: u16,
    duplicates: u16,
    /// Data segments that no acknowledgement sent so far covers.
    unacked: u8,
    /// Acknowledgements that must go out one by one: each duplicate counts at the peer.
    pub(crate) forced: u8,
    pub(crate) shift: u8,
    pub(crate) flags: Flags,
}

// A box of 56 bytes takes 64 of the heap, one of 57 takes 80.
/// What few connections need.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Rare {
    /// A reset to send: sequence number, and acknowledgement number if any.
    pub(crate) reset: Option<(SeqNumber, Option<SeqNumber>)>,
    /// TS.Recent.
    ts_recent: u32,
    /// When TS.Recent was set, on the timestamp clock of this end.
    pub(crate) ts_recent_at: u32,
    /// Where the stream ends, once a FIN has come.
    fin: Low,
    /// A duplicate to report in the next acknowledgement (RFC 2883), or nothing.
    duplicate: Span,
    /// Octets that arrived in order while the application does not read.
    unread: u32,
    /// What Linux's ways remember.
    habits: Option<Box<Habits>>,
    /// High halves of counters.
    data_received: u32,
    acks_sent: u32,
    out_of_order: u16,
    duplicates: u16,
}

/// What a receiver that acts as Linux does remembers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Habits {
    /// When to acknowledge.
    quick: QuickAcks,
    /// What makes the window grow.
    autotune: Option<Autotune>,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            next: 0,
            ack_timer: Timer::OFF,
            reassembly: None,
            rare: None,
            edge: Low::of(0),
            irs: SeqNumber::new(0),
            last_ack: SeqNumber::new(0),
            buffer: config.buffer().min(0xffff),
            data_received: 0,
            acks_sent: 0,
            out_of_order: 0,
            duplicates: 0,
            unacked: 0,
            forced: 0,
            shift: 0,
            flags: Flags::default(),
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// What acknowledging as Linux does remembers.
    pub(crate) fn quick(&mut self) -> &mut QuickAcks {
        &mut self.rare().habits.get_or_insert_default().quick
    }

    /// Counts a segment with payload.
    #[inline]
    pub(crate) fn count_data(&mut self) {
        self.data_received = self.data_received.wrapping_add(1);
        if self.data_received == 0 {
            self.rare().data_received += 1;
        }
    }

    /// Counts a pure acknowledgement that goes out.
    #[inline]
    pub(crate) fn count_ack(&mut self) {
        self.acks_sent = self.acks_sent.wrapping_add(1);
        if self.acks_sent == 0 {
            self.rare().acks_sent += 1;
        }
    }

    /// Counts a segment with payload that came ahead of its turn.
    #[cold]
    pub(crate) fn count_out_of_order(&mut self) {
        self.out_of_order = self.out_of_order.wrapping_add(1);
        if self.out_of_order == 0 {
            self.rare().out_of_order += 1;
        }
    }

    /// Counts a segment with payload that brought nothing new.
    #[cold]
    pub(crate) fn count_duplicate(&mut self) {
        self.duplicates = self.duplicates.wrapping_add(1);
        if self.duplicates == 0 {
            self.rare().duplicates += 1;
        }
    }

    /// Segments with payload that came ahead of their turn, and such that brought nothing new.
    pub(crate) fn odd_counts(&self) -> (u32, u32) {
        let (ahead, again) = self.rare.as_ref().map_or((0, 0), |rare| (rare.out_of_order, rare.duplicates));
        let whole = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        (whole(ahead, self.out_of_order), whole(again, self.duplicates))
    }

    /// Segments with payload that came, and pure acknowledgements that went out.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let (data, acks) = self.rare.as_ref().map_or((0, 0), |rare| (rare.data_received, rare.acks_sent));
        let whole = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        (whole(data, self.data_received), whole(acks, self.acks_sent))
    }

    /// Octets that arrived in order while the application does not read.
    #[inline]
    pub(crate) fn unread(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.unread)
    }

    /// TS.Recent.
    pub(crate) fn ts_recent(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.ts_recent)
    }

    /// The peer's first timestamp: both ends send them from now on.
    pub(crate) fn start_timestamps(&mut self, value: u32) {
        self.flags.set(Flag::Timestamps);
        self.rare().ts_recent = value;
    }

    /// Takes the reset that is to be sent.
    pub(crate) fn take_reset(&mut self) -> Option<(SeqNumber, Option<SeqNumber>)> {
        self.rare.as_mut()?.reset.take()
    }

    /// One past the last octet that was ever admitted.
    #[inline]
    fn edge(&self) -> u64 {
        self.edge.near(self.next)
    }

    /// The sequence number expected next.
    #[inline]
    pub(crate) fn wire_next(&self) -> SeqNumber {
        self.irs.add(self.next as u32)
    }

    pub(crate) fn wire(&self, offset: u64) -> SeqNumber {
        self.irs.add(offset as u32)
    }

    /// How many octets from `next` on are admitted.
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.edge().saturating_sub(self.next)
    }

    /// The peer's SYN came: octet 0.
    pub(crate) fn on_syn(&mut self, seq: SeqNumber) {
        self.irs = seq;
        self.next = 1;
        self.last_ack = seq.add(1);
    }

    /// The window of a SYN, never scaled (RFC 7323, section 2.2).
    pub(crate) fn syn_window(&mut self, config: &Config) -> u16 {
        let window = config.buffer().min(0xffff);
        self.edge = Low::of(self.edge().max(1 + u64::from(window)));
        window as u16
    }

    /// Window scaling is agreed: the window may be as large as the shift can tell.
    pub(crate) fn set_shift(&mut self, config: &Config, shift: u8) {
        self.shift = shift;
        self.buffer = self.most_buffer(config);
        if config.autotune {
            self.buffer = self.buffer.min(START);
        }
    }

    /// The largest window that the shift can tell.
    fn most_buffer(&self, config: &Config) -> u32 {
        config.buffer().min(0xffff << self.shift)
    }

    /// How long the application takes to read what has just come. Follows from where it ends and the sequence numbers of the connection, so that
    /// equal seeds give equal runs.
    pub(crate) fn reading_lag(&self, config: &Config) -> Duration {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut word = (u64::from(self.irs.raw()) << 32 ^ self.next).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = (word ^ word >> 31) >> 44;
        Duration::from_ps(config.read_delay.as_ps() * 2 / (1 << 20) * share)
    }

    /// Data came in order, and the application has read them.
    #[cold]
    pub(crate) fn tune_window(&mut self, now: Instant, config: &Config, echoed: Option<Duration>) {
        let (next, window, most) = (self.next, self.buffer, self.most_buffer(config));
        let habits = self.rare().habits.get_or_insert_default();
        let tune = habits.autotune.get_or_insert_with(|| Autotune::new(now, config));
        let opened = tune.on_data(now, config, Read { next, window, most, echoed });
        if config.quick_acks && opened > window {
            habits.quick.on_window_opened();
        }
        self.buffer = opened;
    }

    /// A forced acknowledgement for each segment that wants one.
    pub(crate) fn force_ack(&mut self) {
        self.forced = self.forced.saturating_add(1);
    }

    /// `len` octets of data arrived, `ahead` octets from the next expected one.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Instant, config: &Config, ahead: i32, len: u16, fin: bool) -> Arrival {
        let len = u64::from(len);
        if ahead == 0 && len <= self.room() && self.reassembly.is_none() && !fin {
            self.next += len;
            self.note_unread(len);
            self.schedule_ack(now, config);
            return Arrival::InOrder;
        }
        self.on_odd_data(now, config, ahead, len, fin)
    }

    /// RFC 9293, section 3.8.6.3, and RFC 5681, section 4.2: at least every `ack_every`-th segment, and not later than
    /// the delay.
    #[inline]
    fn schedule_ack(&mut self, now: Instant, config: &Config) {
        if config.quick_acks {
            // By `quick_acks`.
            return;
        }
        self.unacked = self.unacked.saturating_add(1);
        if self.unacked >= config.ack_every || config.delayed_ack.is_zero() {
            self.flags.set(Flag::AckDue);
        } else if self.ack_timer.is_off() {
            self.ack_timer = Timer::at(config.deadline(now, config.delayed_ack));
        }
    }

    /// Anything but data in turn with nothing missing.
    #[cold]
    fn on_odd_data(&mut self, now: Instant, config: &Config, ahead: i32, len: u64, fin: bool) -> Arrival {
        let Some(start) = self.next.checked_add_signed(i64::from(ahead)) else {
            // From before the SYN: nothing of the stream.
            self.force_ack();
            return Arrival::Duplicate;
        };
        let full_end = start + len;
        let end = full_end.min(self.edge().max(self.next));
        // A FIN behind data that the window does not admit is not admitted either.
        let fin = fin && end == full_end;
        if start > end || (end < full_end && end == start) {
            self.force_ack();
            return Arrival::Refused;
        }
        if end <= self.next && !(fin && !self.flags.has(Flag::Finished) && end == self.next) {
            self.on_duplicate(config, start, full_end.min(self.next));
            return Arrival::Duplicate;
        }
        if fin && !self.flags.has(Flag::Finished) {
            self.reassembly();
            self.flags.set(Flag::FinCame);
            self.rare().fin = Low::of(full_end);
        }
        if start > self.next {
            return self.on_early(now, config, start, end);
        }
        self.on_gap_filled(now, config, end)
    }

    fn on_duplicate(&mut self, config: &Config, start: u64, end: u64) {
        self.force_ack();
        if config.quick_acks {
            self.quick().on_duplicate(config);
        }
        if config.dsack && start < end {
            self.report_duplicate(start, end);
        }
    }

    fn reassembly(&mut self) -> &mut Reassembly {
        let next = self.next;
        self.reassembly.get_or_insert_with(|| Box::new(Reassembly::new(next)))
    }

    /// RFC 2883: the next acknowledgement reports it.
    fn report_duplicate(&mut self, start: u64, end: u64) {
        self.reassembly();
        self.rare().duplicate = Span::of(Range { start, end });
    }

    /// The duplicate that the next acknowledgement reports, once.
    fn take_duplicate(&mut self) -> Option<Range> {
        let duplicate = core::mem::take(&mut self.rare.as_mut()?.duplicate);
        self.settle_rare();
        (duplicate != Span::default()).then(|| duplicate.near(self.next))
    }

    /// The blocks that the next acknowledgement reports, as many as there is room for.
    pub(crate) fn take_blocks(&mut self, blocks: &mut [Range]) -> usize {
        let duplicate = self.take_duplicate();
        let Some(reassembly) = &self.reassembly else { return 0 };
        let count = reassembly.blocks(self.next, duplicate, blocks);
        self.settle_reassembly();
        count
    }

    /// A FIN has come, and what lies before it not all.
    fn awaits_fin(&self) -> bool {
        self.flags.has(Flag::FinCame) && !self.flags.has(Flag::Finished)
    }

    /// Only a receiver that has something to remember or to report keeps the box.
    fn settle_reassembly(&mut self) {
        let duplicate = self.rare.as_ref().is_some_and(|rare| rare.duplicate != Span::default());
        if !duplicate && !self.awaits_fin() && self.reassembly.as_ref().is_some_and(|held| held.is_empty()) {
            self.reassembly = None;
        }
    }

    /// Of very many receivers only those that have something rare keep the box.
    fn settle_rare(&mut self) {
        if !self.flags.has(Flag::Timestamps) && self.rare.as_deref() == Some(&Rare::default()) {
            self.rare = None;
        }
    }

    /// RFC 5681, section 4.2: a segment out of order is answered at once by a duplicate acknowledgement. Linux joins the later ones.
    fn on_early(&mut self, now: Instant, config: &Config, start: u64, end: u64) -> Arrival {
        let next = self.next;
        let joined = config.quick_acks && self.flags.has(Flag::Sack) && self.quick().joins(next);
        if !joined {
            self.force_ack();
            self.flags.set(Flag::AckDue);
        } else if self.forced == 0 {
            let due = Timer::at(config.deadline(now, self.quick().joined_for()));
            self.ack_timer = self.ack_timer.earlier(due).map_or(due, Timer::at);
        }
        let reassembly = self.reassembly();
        if start == end {
            // A FIN alone, ahead of its turn.
            return Arrival::OutOfOrder;
        }
        if reassembly.insert(next, start, end) {
            return Arrival::OutOfOrder;
        }
        if config.dsack {
            self.report_duplicate(start, end);
        }
        Arrival::Duplicate
    }

    /// The segment reaches from the next expected octet or before to `end`.
    fn on_gap_filled(&mut self, now: Instant, config: &Config, end: u64) -> Arrival {
        let before = self.next;
        self.next = end;
        let mut at_once = false;
        if let Some(reassembly) = &mut self.reassembly {
            // RFC 5681, section 4.2: one that fills all or part of a gap is acknowledged at once.
            at_once = !reassembly.is_empty();
            self.next = reassembly.advance(end);
            let fin = self.rare.as_ref().map_or(Low::default(), |rare| rare.fin);
            if self.awaits_fin() && fin == Low::of(self.next) {
                self.next += 1;
                self.flags.set(Flag::Finished);
                at_once = true;
            }
            if self.flags.has(Flag::Finished) {
                self.reassembly = None;
            }
            self.settle_reassembly();
        }
        self.note_unread(self.next - before - u64::from(self.flags.has(Flag::Finished)));
        self.schedule_ack(now, config);
        if at_once {
            self.flags.set(Flag::AckDue);
        }
        Arrival::InOrder
    }

    #[inline]
    fn note_unread(&mut self, len: u64) {
        if self.flags.has(Flag::Paused) {
            self.keep_unread(len);
        }
    }

    #[cold]
    fn keep_unread(&mut self, len: u64) {
        let rare = self.rare();
        // Bounded by the buffer and the one unit by which the edge may stand beyond it.
        rare.unread = rare.unread.saturating_add(len as u32);
    }

    /// How far the buffer reaches.
    #[inline]
    fn offered_edge(&self) -> u64 {
        self.next + u64::from(self.buffer.saturating_sub(self.unread()))
    }

    /// The window for a segment that goes out now, and its acknowledgement is thereby sent.
    #[inline]
    pub(crate) fn take_window(&mut self, config: &Config) -> u16 {
        let offered = self.offered_edge();
        let edge = self.edge();
        let ahead = offered.saturating_sub(edge);
        // RFC 9293, section 3.8.6.2.2: the right edge stays until it can move by a segment or half of the buffer.
        let step = u64::from(config.own_mss()).min(u64::from(self.buffer / 2).max(1));
        let right = if ahead >= step { offered } else { edge };
        let units = right.saturating_sub(self.next) >> self.shift;
        let units = units.min(0xffff);
        self.edge = Low::of(edge.max(self.next + (units << self.shift)));
        if config.quick_acks && (self.flags.has(Flag::AckDue) || !self.ack_timer.is_off()) {
            self.quick().on_ack_sent();
        }
        self.last_ack = self.wire_next();
        self.unacked = 0;
        self.flags.clear(Flag::AckDue);
        self.ack_timer = Timer::OFF;
        units as u16
    }

    /// The application stops or resumes reading. When it resumes, an acknowledgement tells it if the window can open by
    /// a segment or half of the buffer.
    pub(crate) fn set_reading(&mut self, config: &Config, reading: bool) {
        if !reading {
            self.flags.set(Flag::Paused);
        } else if self.flags.has(Flag::Paused) {
            self.flags.clear(Flag::Paused);
            self.rare().unread = 0;
            self.settle_rare();
            let ahead = self.offered_edge().saturating_sub(self.edge());
            if ahead >= u64::from(config.own_mss()).min(u64::from(self.buffer / 2).max(1)) {
                self.flags.set(Flag::AckDue);
            }
        }
    }

    /// RFC 7323, section 5.3, R1: true if the segment is from an earlier time. TS.Recent is void after 24 days (section
    /// 5.5).
    #[inline]
    pub(crate) fn is_stale(&self, value: u32, clock: u32, tick_ms: u32) -> bool {
        let Some(rare) = &self.rare else { return false };
        value.wrapping_sub(rare.ts_recent).cast_signed() < 0
            && u64::from(clock.wrapping_sub(rare.ts_recent_at)) * u64::from(tick_ms) < 24 * 86_400_000
    }

    /// RFC 7323, section 4.3 (2), and 5.3, R3: the timestamp to echo is that of the earliest segment not acknowledged.
    #[inline]
    pub(crate) fn note_timestamp(&mut self, seq: SeqNumber, value: u32, clock: u32) {
        if seq.at_or_before(self.last_ack) {
            let rare = self.rare();
            rare.ts_recent = value;
            rare.ts_recent_at = clock;
        }
    }

    /// How many ranges wait out of order.
    pub(crate) fn gaps(&self) -> usize {
        self.reassembly.as_ref().map_or(0, |reassembly| reassembly.len())
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::ByteCount;

    use super::*;

    #[test]
    fn counters_go_on_beyond_four_bytes() {
        let mut receiver = Receiver::new(&Config::default());
        (receiver.data_received, receiver.acks_sent) = (u32::MAX, u32::MAX - 1);
        receiver.count_data();
        receiver.count_ack();
        assert_eq!(receiver.counts(), (1 << 32, (1 << 32) - 1));
        receiver.count_data();
        receiver.count_ack();
        assert_eq!(receiver.counts(), ((1 << 32) + 1, 1 << 32));
    }

    #[test]
    fn while_the_window_opens_each_segment_is_acknowledged() {
        let config =
            Config { quick_acks: true, autotune: true, receive_window: ByteCount::new(1 << 20), ..Config::default() };
        let mut receiver = Receiver::new(&config);
        receiver.set_shift(&config, 7);
        let echoed = Some(Duration::from_ms(10));
        let mut opened = 0;
        // Four segments in a millisecond, more than the window of the start admits in a round trip.
        for step in 1..200 {
            let before = receiver.buffer;
            receiver.next = 1460 * step;
            receiver.tune_window(Instant::ZERO.saturating_add(Duration::from_us(250 * step)), &config, echoed);
            assert_eq!(receiver.quick().is_quick(), receiver.buffer > before, "segment {step}");
            receiver.quick().on_ack_sent();
            opened += u32::from(receiver.buffer > before);
        }
        assert!(opened > 5, "{opened}");
    }

    #[test]
    fn counters_of_what_is_odd_go_on_beyond_two_bytes() {
        let mut receiver = Receiver::new(&Config::default());
        (receiver.out_of_order, receiver.duplicates) = (u16::MAX, u16::MAX - 1);
        receiver.count_out_of_order();
        receiver.count_duplicate();
        assert_eq!(receiver.odd_counts(), (1 << 16, (1 << 16) - 1));
        receiver.count_out_of_order();
        receiver.count_duplicate();
        assert_eq!(receiver.odd_counts(), ((1 << 16) + 1, 1 << 16));
    }
}
