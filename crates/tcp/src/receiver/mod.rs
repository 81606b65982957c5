//! The receiving half of an endpoint: the octets received, and the acknowledgements and windows that answer them.
//!
//! Published: RFC 9293; RFC 5681, section 4.2; RFC 3168, section 6.1.3; RFC 8257, section 3.2 (DCTCP).
//!
//! The parts own their state: `reassembly` (data out of order), `window` (the advertised window, with
//! `autotune`), `ack_timing` (when acknowledgements are sent, with `quick_acks`), `timestamps`.
//!
//! Differs: the application reads at once, or not at all ([`set_reading`](crate::Endpoint::set_reading)).
//! Cost: a segment in order takes a dozen comparisons and additions.

mod accecn;
mod ack_timing;
mod autotune;
mod quick_acks;
mod reassembly;
mod timestamps;
mod window;

use std::num::{NonZeroU32, NonZeroU64};

use lastmile_packet::{Options, SackBlock, SeqNumber};
use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::random;
use crate::ranges::Range;
use crate::stats::ReceiveStats;
use accecn::AccEcnReceiver;
use ack_timing::AckTiming;
use autotune::Held;
pub(crate) use quick_acks::Pace;
use reassembly::Reassembly;
pub(crate) use timestamps::Timestamps;
use window::ReceiveWindow;

/// A segment with payload or a FIN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    /// Octets from the next expected one to its first.
    pub(crate) ahead: i32,
    pub(crate) len: u16,
    pub(crate) fin: bool,
    pub(crate) push: bool,
    /// The round trip by the timestamp echo in ticks, if timestamps are in use.
    pub(crate) echoed: Option<NonZeroU32>,
    /// Segments that receive offload has joined to this one, itself included.
    pub(crate) segments: u16,
}

/// The effect of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arrival {
    /// The segment began at or before the next expected octet and carried new ones.
    InOrder,
    /// The segment lies ahead of the next expected octet.
    OutOfOrder,
    /// The segment carried no new octets.
    Duplicate,
    /// The segment lies beyond the window.
    Refused,
}

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next octet expected (RCV.NXT); the peer's SYN is octet 0.
    next: u64,
    window: ReceiveWindow,
    acks: AckTiming,
    irs: SeqNumber,
    /// Acknowledgement number last sent (Last.ACK.sent of RFC 7323).
    last_ack: SeqNumber,
    /// Only while data are out of order or a duplicate is to be reported.
    reassembly: Option<Box<Reassembly>>,
    timestamps: Option<Timestamps>,
    stats: ReceiveStats,
    /// The end of the stream, once a FIN has arrived.
    fin: Option<NonZeroU64>,
    /// The peer's FIN and all octets before it have arrived.
    finished: bool,
    /// Acknowledgements carry SACK blocks.
    sack: bool,
    /// RFC 3168, section 6.1.3: acknowledgements echo congestion until the sender answers. RFC 8257, section 3.2: the
    /// last data were marked (DCTCP.CE).
    echoes_congestion: bool,
    /// Accurate ECN, if agreed.
    accecn: Option<Box<AccEcnReceiver>>,
    /// DCTCP: the data before a change of the mark are to be acknowledged on their own.
    split: Option<Split>,
}

/// RFC 8257, section 3.2: an acknowledgement of the data before a change of the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Split {
    pub(crate) ack: SeqNumber,
    pub(crate) window: u16,
    /// The data that this ACK covers carried CE.
    pub(crate) echo: bool,
}

impl Receiver {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            next: 0,
            window: ReceiveWindow::new(config),
            acks: AckTiming::default(),
            irs: SeqNumber::new(0),
            last_ack: SeqNumber::new(0),
            reassembly: None,
            timestamps: None,
            stats: ReceiveStats::default(),
            fin: None,
            finished: false,
            sack: false,
            echoes_congestion: false,
            accecn: None,
            split: None,
        }
    }

    pub(crate) fn acks(&self) -> &AckTiming {
        &self.acks
    }

    pub(crate) fn acks_mut(&mut self) -> &mut AckTiming {
        &mut self.acks
    }

    pub(crate) fn window_mut(&mut self) -> &mut ReceiveWindow {
        &mut self.window
    }

    pub(crate) fn timestamps(&self) -> Option<&Timestamps> {
        self.timestamps.as_ref()
    }

    pub(crate) fn timestamps_mut(&mut self) -> Option<&mut Timestamps> {
        self.timestamps.as_mut()
    }

    pub(crate) fn stats(&self) -> &ReceiveStats {
        &self.stats
    }

    pub(crate) fn irs(&self) -> SeqNumber {
        self.irs
    }

    /// Acknowledgement number last sent.
    #[inline]
    pub(crate) fn last_ack(&self) -> SeqNumber {
        self.last_ack
    }

    /// The sequence number expected next.
    #[inline]
    pub(crate) fn wire_next(&self) -> SeqNumber {
        self.irs.add(self.next as u32)
    }

    fn wire(&self, offset: u64) -> SeqNumber {
        self.irs.add(offset as u32)
    }

    /// The peer's FIN and all octets before it have arrived.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Bytes received in order, read by the application or not.
    pub(crate) fn received(&self) -> u64 {
        (self.next - u64::from(self.finished)).saturating_sub(1)
    }

    /// Bytes read by the application.
    pub(crate) fn delivered(&self) -> u64 {
        self.received() - u64::from(self.window.unread())
    }

    /// Octets that have arrived, in order or not.
    pub(crate) fn arrived(&self) -> u64 {
        self.received() + self.reassembly.as_ref().map_or(0, |reassembly| reassembly.octets())
    }

    /// Ranges of octets that wait out of order.
    pub(crate) fn gaps(&self) -> usize {
        self.reassembly.as_ref().map_or(0, |reassembly| reassembly.len())
    }

    /// Octets from `next` on that the window admits.
    #[inline]
    pub(crate) fn admitted(&self) -> u64 {
        self.window.edge().saturating_sub(self.next)
    }

    /// The peer's SYN arrived: octet 0.
    pub(crate) fn on_syn(&mut self, seq: SeqNumber, sack: bool) {
        self.irs = seq;
        self.next = 1;
        self.last_ack = seq.add(1);
        self.sack = sack;
    }

    /// The peer's first timestamp: both ends send timestamps from now on.
    pub(crate) fn start_timestamps(&mut self, value: u32) {
        self.timestamps = Some(Timestamps::new(value));
    }

    /// Acknowledgements carry SACK blocks.
    pub(crate) fn sends_sack(&self) -> bool {
        self.sack
    }

    #[inline]
    pub(crate) fn echoes_congestion(&self) -> bool {
        self.echoes_congestion
    }

    /// RFC 3168, section 6.1.3: CWR ends the echo, CE on the same packet begins it once more.
    pub(crate) fn on_ecn(&mut self, cwr: bool, congested: bool) {
        self.echoes_congestion = congested || (self.echoes_congestion && !cwr);
    }

    /// RFC 8257, section 3.2: a change of the mark is reported at once. As in Linux, an acknowledgement of the data
    /// before it goes ahead where one was delayed.
    pub(crate) fn on_dctcp_ecn(&mut self, config: &Config, congested: bool) {
        if congested == self.echoes_congestion {
            return;
        }
        if self.unacknowledged() > 0 {
            let window = self.window.advertise(config, self.next);
            self.split = Some(Split { ack: self.wire_next(), window, echo: self.echoes_congestion });
            self.acks.force();
        }
        self.acks.set_due();
        self.echoes_congestion = congested;
    }

    /// The acknowledgement of the data before a change of the mark, if one is due.
    #[inline]
    pub(crate) fn take_split(&mut self) -> Option<Split> {
        self.split.take()
    }

    /// Accurate ECN is agreed. `syn_ack_ce`: the peer's SYN-ACK arrived with CE.
    pub(crate) fn start_accecn(&mut self, syn_ack_ce: bool) {
        self.accecn = Some(Box::new(AccEcnReceiver::new(syn_ack_ce)));
    }

    /// Records data with this ECN field, in this number of packets, on a connection with Accurate ECN.
    pub(crate) fn on_accecn(&mut self, ecn: u8, len: u16, packets: u16) {
        let Some(accecn) = &mut self.accecn else { return };
        if accecn.on_packets(ecn, len, packets) {
            self.acks.set_due();
        }
    }

    /// The ACE field of a segment that is sent now.
    pub(crate) fn ace(&mut self) -> u8 {
        self.accecn.as_deref_mut().map_or(0, AccEcnReceiver::ace)
    }

    /// `options` with the AccECN option, if it is due.
    pub(crate) fn add_accecn_option(&mut self, now: Instant, srtt: Option<Duration>, options: Options) -> Options {
        match &mut self.accecn {
            Some(accecn) => accecn.add_option(now, srtt, options),
            None => options,
        }
    }

    /// The options of a SYN-ACK, with the AccECN option (RFC 9768, section 3.2.3.2.1).
    pub(crate) fn syn_accecn_option(&self, options: Options) -> Options {
        self.accecn.as_deref().map_or(options, |accecn| options.with_accecn(accecn.bytes()))
    }

    /// The application stops or resumes reading. When it resumes, an acknowledgement reports the window if
    /// that opens by a segment or half of the buffer.
    pub(crate) fn set_reading(&mut self, config: &Config, reading: bool) {
        if self.window.set_reading(config, self.next, reading) {
            self.acks.set_due();
        }
    }

    /// A segment with payload or a FIN arrived.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Instant, config: &Config, data: Data, pace: impl FnOnce() -> Pace) {
        match self.accept(now, config, data) {
            Arrival::InOrder => self.on_accepted(now, config, data, pace),
            Arrival::OutOfOrder => self.stats.out_of_order += 1,
            Arrival::Duplicate if data.len > 0 => self.stats.duplicates += 1,
            Arrival::Duplicate | Arrival::Refused => {}
        }
    }

    /// Counts segments with payload.
    #[inline]
    pub(crate) fn count_data(&mut self, segments: u16) {
        self.stats.data_received += u64::from(segments);
    }

    #[inline]
    fn accept(&mut self, now: Instant, config: &Config, data: Data) -> Arrival {
        let Data { ahead, len, fin, segments, .. } = data;
        let len = u64::from(len);
        if ahead == 0 && len <= self.admitted() && self.reassembly.is_none() && self.fin.is_none() && !fin {
            self.next += len;
            self.window.on_received(len);
            self.acks.on_in_order(now, config, segments);
            return Arrival::InOrder;
        }
        self.accept_odd(now, config, data)
    }

    /// Octets arrived in order, and the application reads them.
    #[inline]
    fn on_accepted(&mut self, now: Instant, config: &Config, data: Data, pace: impl FnOnce() -> Pace) {
        let opens = config.autotune
            && self.window.tune(now, config, (self.next, self.held()), config.timers.echoed(data.echoed));
        if config.acks.quick_acks {
            let lag = if config.acks.read_delay.is_zero() { Duration::ZERO } else { self.reading_lag(config) };
            let ends = data.push || data.len < config.own_mss();
            let waiting = self.unacknowledged();
            self.acks.on_quick_data(now, config, pace(), quick_acks::Arrived { ends, opens, waiting, lag });
        }
    }

    /// Octets received in order that no acknowledgement covers.
    fn unacknowledged(&self) -> u32 {
        self.wire_next().distance_from(self.last_ack)
    }

    /// The time until the application reads the data that have just arrived. It follows from their end and
    /// the sequence numbers of the connection, so that equal seeds give equal runs.
    fn reading_lag(&self, config: &Config) -> Duration {
        let share = random::mix((u64::from(self.irs.raw()) << 32 ^ self.next).wrapping_mul(random::STEP)) >> 44;
        Duration::from_ps(config.acks.read_delay.as_ps() * 2 / (1 << 20) * share)
    }

    /// The timer of acknowledgements expired. `rto`: the retransmission timeout of the sending half.
    pub(crate) fn on_timer(&mut self, now: Instant, config: &Config, rto: Duration) {
        let waiting = self.unacknowledged();
        self.acks.on_timer(now, config, waiting, rto);
    }

    /// Handles all arrivals but data in order without gaps.
    #[cold]
    fn accept_odd(&mut self, now: Instant, config: &Config, data: Data) -> Arrival {
        let Data { ahead, len, fin, segments, .. } = data;
        let len = u64::from(len);
        let Some(start) = self.next.checked_add_signed(i64::from(ahead)) else {
            // It lies before the SYN, so it is no part of the stream.
            self.acks.force();
            return Arrival::Duplicate;
        };
        let full_end = start + len;
        let end = full_end.min(self.window.edge().max(self.next));
        // The window admits a FIN only with all data before it.
        let fin = fin && end == full_end;
        if start > end || (end < full_end && end == start) {
            self.acks.force();
            return Arrival::Refused;
        }
        let ends_stream = fin && !self.finished;
        if end <= self.next && !(ends_stream && end == self.next) {
            self.acks.on_duplicate(config);
            if config.acks.dsack && start < full_end.min(self.next) {
                self.report_duplicate(Range { start, end: full_end.min(self.next) });
            }
            return Arrival::Duplicate;
        }
        if ends_stream {
            self.fin = NonZeroU64::new(full_end);
        }
        if start > self.next {
            self.on_early(now, config, start, end)
        } else {
            self.on_gap_filled(now, config, end, segments)
        }
    }

    fn held(&self) -> Held {
        self.reassembly.as_ref().map_or_else(Held::default, |reassembly| reassembly.held(self.next))
    }

    fn reassembly(&mut self) -> &mut Reassembly {
        self.reassembly.get_or_insert_with(|| Box::new(Reassembly::new()))
    }

    /// RFC 2883: the next acknowledgement reports a duplicate.
    fn report_duplicate(&mut self, range: Range) {
        if self.sack {
            self.reassembly().report_duplicate(range);
        }
    }

    /// RFC 5681, section 4.2: a segment out of order is answered at once by a duplicate acknowledgement.
    /// Linux answers several of the later ones together.
    fn on_early(&mut self, now: Instant, config: &Config, start: u64, end: u64) -> Arrival {
        self.acks.on_early(now, config, self.next, self.sack);
        if start == end {
            // A FIN without data.
            return Arrival::OutOfOrder;
        }
        if self.reassembly().insert(start, end) {
            // Without SACK a changed window is no duplicate acknowledgement.
            if self.sack && config.autotune {
                self.window.tune_early(now, config, self.held());
            }
            return Arrival::OutOfOrder;
        }
        if config.acks.dsack {
            self.report_duplicate(Range { start, end });
        }
        Arrival::Duplicate
    }

    /// The segment reaches from the next expected octet or an earlier one to `end`.
    fn on_gap_filled(&mut self, now: Instant, config: &Config, end: u64, segments: u16) -> Arrival {
        let before = self.next;
        self.next = end;
        // RFC 5681, section 4.2: a segment that fills all or part of a gap is acknowledged at once.
        let mut at_once = false;
        if let Some(reassembly) = &mut self.reassembly {
            at_once = !reassembly.is_empty();
            self.next = reassembly.advance(end);
        }
        self.window.on_received(self.next - before);
        if self.fin.is_some_and(|fin| fin.get() == self.next) {
            self.next += 1;
            self.finished = true;
            at_once = true;
        }
        self.settle_reassembly();
        self.acks.on_in_order(now, config, segments);
        if at_once {
            self.acks.set_due();
        }
        Arrival::InOrder
    }

    fn settle_reassembly(&mut self) {
        if self.finished || self.reassembly.as_ref().is_some_and(|held| held.is_idle()) {
            self.reassembly = None;
        }
    }

    /// The acknowledgement number and window of a segment that is sent now. Its acknowledgement is thereby sent.
    #[inline]
    pub(crate) fn take_acknowledgement(&mut self, config: &Config) -> (SeqNumber, u16) {
        let window = self.window.advertise(config, self.next);
        self.acks.on_sent();
        self.last_ack = self.wire_next();
        (self.last_ack, window)
    }

    /// A pure acknowledgement is sent.
    #[inline]
    pub(crate) fn on_pure_ack_sent(&mut self) {
        self.acks.on_forced_sent();
        self.stats.acks_sent += 1;
    }

    /// Timestamps, if they are in use. `clock`: this end's timestamp clock.
    #[inline]
    pub(crate) fn timestamp_option(&self, clock: impl FnOnce() -> u32) -> Options {
        match &self.timestamps {
            Some(timestamps) => Options::NONE.with_timestamps(clock(), timestamps.recent()),
            None => Options::NONE,
        }
    }

    /// The next acknowledgement reports SACK blocks.
    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.sack && self.reassembly.is_some()
    }

    /// `options` with the SACK blocks that the acknowledgement reports.
    #[cold]
    pub(crate) fn add_blocks(&mut self, options: Options) -> Options {
        if !self.has_blocks() {
            return options;
        }
        let most = match options.timestamps() {
            Some(_) => Options::MAX_SACK_BLOCKS_BESIDE_TIMESTAMPS,
            None => Options::MAX_SACK_BLOCKS,
        };
        let mut ranges = [Range { start: 0, end: 0 }; Options::MAX_SACK_BLOCKS];
        let count = self.reassembly().take_blocks(&mut ranges[..most]);
        let blocks = ranges.map(|range| SackBlock { left: self.wire(range.start), right: self.wire(range.end) });
        self.settle_reassembly();
        options.with_sack(&blocks[..count])
    }
}

#[cfg(test)]
mod tests;
