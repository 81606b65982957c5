//! The sending half of an endpoint. A sender begins once the connection is established and the application has offered
//! data: an end that only receives stays without the state of data.
//!
//! Published: RFC 9293, sections 3.5 and 3.10.7.4; RFC 6298, section 5; RFC 5681, section 3.1 (a lost SYN).
//! Differs: nothing.
//! Cost: a branch for each call.

use std::borrow::Cow;

use lastmile_packet::{Meta, SeqNumber};
use lastmile_units::{Duration, Instant};

use super::acknowledgement::{AckInfo, AckVerdict};
use super::buffer::SendBuffer;
use super::flight::Flight;
use super::octet_rate::OctetRate;
use super::repair::{Repair, Style};
use super::rtt::Rtt;
use super::timers::{Alarm, Timers};
use super::transmit::{Plan, SegmentInfo};
use super::window::{AccEcnSender, Congestion, EcnResponse, PeerWindow, WindowUse};
use super::{DataState, Sender};
use crate::stats::{DataStats, LimitClock, SendStats};
use crate::{Config, Limit, LimitedTime, RoundTrips};

/// The sending half of an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum SendHalf {
    Quiet(Quiet),
    Active(Sender),
}

/// The half before the connection is established, and of an end that only receives.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    buffer: SendBuffer,
    peer: PeerWindow,
    timers: Timers,
    rtt: Rtt,
    /// Accurate ECN, if agreed.
    accecn: Option<Box<AccEcnSender>>,
    stats: SendStats,
    limits: LimitClock,
    mss: u16,
    /// A SYN was sent.
    opened: bool,
    /// The style of repairs, once the connection is established.
    style: Option<Style>,
}

impl Quiet {
    /// The congestion window of a sender that begins now. RFC 5681, section 3.1: if the SYN or SYN-ACK was lost, the
    /// initial window is one segment.
    fn congestion(&self, config: &Config) -> Congestion {
        let mut congestion = Congestion::new(config, self.mss, self.buffer.wire(0).raw());
        if self.style.is_some() && self.timers.backoff() > 0 {
            congestion.hold_at(u32::from(self.mss));
        }
        congestion
    }

    fn sender(&self, config: &Config, style: Style) -> Sender {
        let Self { buffer, peer, mut timers, rtt, accecn, stats, limits, mss, .. } = self.clone();
        timers.end_backoff();
        let data = Box::new(DataState {
            flight: Flight::new(),
            capacity: config.send_buffer.map_or(u64::MAX, |bytes| bytes.as_u64().max(1)),
            congestion: self.congestion(config),
            usage: WindowUse::new(),
            repair: Repair::new(style),
            ecn: EcnResponse::new(accecn),
            stats: DataStats::default(),
            urgent: None,
            packet: 0,
            socket_buffer_end: 1,
            rate: None,
            pacer: None,
        });
        Sender { buffer, peer, timers, rtt, stats, limits, mss, data }
    }

    /// The SYN is unanswered.
    fn is_opening(&self) -> bool {
        self.opened && self.style.is_none()
    }

    fn on_ack(&mut self, segment: &Meta) -> AckVerdict {
        match segment.ack.distance_from(self.buffer.wire(1)).cast_signed() {
            0 => self.peer.update(segment, 1),
            1.. => return AckVerdict::Unsent,
            // A newer one has overtaken it.
            _ => {}
        }
        AckVerdict::Unmoved
    }
}

/// The same expression for either state.
macro_rules! either {
    ($half:expr, $state:ident => $expression:expr) => {
        match $half {
            Self::Quiet($state) => $expression,
            Self::Active($state) => $expression,
        }
    };
}

/// The handshake.
impl SendHalf {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        Self::Quiet(Quiet {
            buffer: SendBuffer::new(iss),
            peer: PeerWindow::new(),
            timers: Timers::default(),
            rtt: Rtt::new(&config.timers),
            accecn: None,
            stats: SendStats::default(),
            limits: LimitClock::default(),
            mss: config.own_mss(),
            opened: false,
            style: None,
        })
    }

    fn quiet(&mut self) -> &mut Quiet {
        match self {
            Self::Quiet(quiet) => quiet,
            Self::Active(_) => unreachable!("a sender begins after the handshake"),
        }
    }

    /// The peer's SYN arrived: its segments carry at most `mss` bytes, its windows are scaled by `shift`.
    pub(crate) fn on_peer_syn(&mut self, segment: &Meta, mss: u16, shift: u8) {
        let quiet = self.quiet();
        quiet.mss = mss;
        quiet.peer.on_syn(segment, shift);
    }

    /// Accurate ECN is agreed. `handshake_ce`: the peer reports that a SYN-ACK arrived with CE.
    pub(crate) fn start_accecn(&mut self, handshake_ce: bool) {
        self.quiet().accecn = Some(Box::new(AccEcnSender::new(handshake_ce)));
    }

    /// The peer's counters are not to be trusted.
    pub(crate) fn stop_accecn(&mut self) {
        self.quiet().accecn = None;
    }

    /// A SYN is sent. Returns whether it is a retransmission.
    pub(crate) fn on_syn_sent(&mut self, now: Instant, config: &Config) -> bool {
        let quiet = self.quiet();
        let again = core::mem::replace(&mut quiet.opened, true);
        if again {
            quiet.stats.retransmissions += 1;
            quiet.rtt.abandon_timed_segment();
        } else {
            quiet.rtt.time_segment(now, 1);
        }
        if quiet.timers.deadline().is_none() {
            quiet.timers.start(Alarm::Syn, config.timers.deadline(now, quiet.rtt.rto()));
        }
        again
    }

    /// The timer of the SYN expired. False: the connection is given up.
    pub(crate) fn on_syn_timer(&mut self, now: Instant, config: &Config) -> bool {
        let quiet = self.quiet();
        if !quiet.timers.back_off(config.timers.max_syn_retries) {
            return false;
        }
        quiet.stats.timeouts += 1;
        quiet.rtt.back_off(&config.timers);
        quiet.timers.start(Alarm::Syn, config.timers.deadline(now, quiet.rtt.rto()));
        true
    }

    /// The peer has acknowledged the SYN.
    pub(crate) fn on_established(&mut self, now: Instant, config: &Config, sack_permitted: bool) {
        let quiet = self.quiet();
        quiet.style = Some(Style::of(config, sack_permitted));
        quiet.timers.stop();
        quiet.rtt.on_syn_acked(now, &config.timers);
        if quiet.timers.backoff() > 0 {
            quiet.rtt.after_lost_syn();
        }
        // Models and pacing measure from here on.
        let paces = config.variant.measures_rates() || config.variant.paces() || config.congestion.pacing;
        if (paces || !quiet.buffer.is_unused())
            && let Some(sender) = self.begin(config)
        {
            sender.begin_model(now, config);
        }
    }

    /// The sender of an established connection begins, unless it has.
    fn begin(&mut self, config: &Config) -> Option<&mut Sender> {
        if let Self::Quiet(quiet) = self
            && let Some(style) = quiet.style
        {
            *self = Self::Active(quiet.sender(config, style));
        }
        if let Self::Active(sender) = self { Some(sender) } else { None }
    }
}

/// The application.
impl SendHalf {
    /// The application offers `bytes` more to send.
    pub(crate) fn offer(&mut self, config: &Config, bytes: u64) {
        either!(self, state => state.buffer.offer(bytes));
        self.begin(config);
    }

    /// A FIN follows the last octet.
    pub(crate) fn close(&mut self, config: &Config) {
        either!(self, state => state.buffer.close());
        self.begin(config);
    }

    /// Discards the octets that were never sent, unless a FIN was.
    pub(crate) fn discard_unsent(&mut self) {
        if !self.active().is_some_and(Sender::fin_sent) {
            let max = self.max();
            either!(self, state => state.buffer.truncate(max));
        }
    }
}

/// The connection.
impl SendHalf {
    /// The segment to send now, or the reason that forbids it.
    #[inline]
    pub(crate) fn next(&mut self, now: Instant, config: &Config) -> Result<Plan, Limit> {
        match self {
            Self::Quiet(_) => Err(Limit::Application),
            Self::Active(sender) => sender.next(now, config),
        }
    }

    /// Counts a planned segment and determines its header fields.
    #[inline]
    pub(crate) fn describe(&mut self, config: &Config, plan: Plan, ecn: bool) -> SegmentInfo {
        match self {
            Self::Quiet(_) => unreachable!("a sender has planned the segment"),
            Self::Active(sender) => sender.describe(config, plan, ecn),
        }
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, now: Instant, config: &Config, info: AckInfo<'_>) -> AckVerdict {
        match self {
            Self::Quiet(quiet) => quiet.on_ack(info.segment),
            Self::Active(sender) => sender.on_ack(now, config, info),
        }
    }

    /// Counts a segment that arrived without payload.
    #[inline]
    pub(crate) fn count_ack(&mut self) {
        either!(self, state => state.stats.acks_received += 1);
    }

    /// A timer of an established connection expired. False: the connection is given up.
    pub(crate) fn on_timer(&mut self, now: Instant, config: &Config, alarm: Alarm) -> bool {
        match self {
            Self::Quiet(_) => true,
            Self::Active(sender) => sender.on_timer(now, config, alarm),
        }
    }

    /// The pacing timer may have expired.
    pub(crate) fn on_pacing_timer(&mut self, now: Instant) {
        if let Self::Active(sender) = self {
            sender.on_pacing_timer(now);
        }
    }

    /// The reason that limits the sender from now on.
    #[inline]
    pub(crate) fn set_limit(&mut self, now: Instant, limit: Option<Limit>) {
        either!(self, state => state.limits.set(now, limit));
    }

    /// The connection leaves TIME-WAIT at `deadline`.
    pub(crate) fn enter_time_wait(&mut self, now: Instant, deadline: Instant) {
        self.finish(now);
        either!(self, state => state.timers.start(Alarm::TimeWait, deadline));
    }

    /// The connection is over.
    pub(crate) fn finish(&mut self, now: Instant) {
        either!(self, state => state.timers.stop());
        if let Self::Active(sender) = self {
            sender.stop_pacing_timer();
        }
        self.set_limit(now, None);
    }
}

/// Reports.
impl SendHalf {
    fn active(&self) -> Option<&Sender> {
        if let Self::Active(sender) = self { Some(sender) } else { None }
    }

    /// One past the highest octet sent, the SYN included.
    #[inline]
    fn max(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => u64::from(quiet.opened),
            Self::Active(sender) => sender.data.flight.max(),
        }
    }

    /// The first octet that is not acknowledged.
    fn una(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => u64::from(quiet.style.is_some()),
            Self::Active(sender) => sender.data.flight.una(),
        }
    }

    fn end(&self) -> u64 {
        either!(self, state => state.buffer.end())
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        either!(self, state => state.limits.current())
    }

    pub(crate) fn limited_by(&self, now: Instant) -> LimitedTime {
        either!(self, state => state.limits.until(now))
    }

    /// The timer that has expired by `now`.
    pub(crate) fn timer_due(&self, now: Instant) -> Option<Alarm> {
        either!(self, state => state.timers.due(now))
    }

    /// When a segment that waits for pacing may depart, or another timer expires.
    #[inline(always)]
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::Quiet(quiet) => quiet.timers.deadline(),
            Self::Active(sender) => sender.next_timer(),
        }
    }

    /// On an open connection the application has offered nothing so far, and the record of limits says so.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        either!(self, state => state.buffer.is_unused() && state.limits.current() == Some(Limit::Application))
    }

    /// The sequence number of an octet.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> SeqNumber {
        either!(self, state => state.buffer.wire(offset))
    }

    /// The sequence number of pure acknowledgements.
    #[inline]
    pub(crate) fn wire_max(&self) -> SeqNumber {
        match self {
            Self::Quiet(quiet) => quiet.buffer.wire(quiet.opened.into()),
            Self::Active(sender) => sender.wire(sender.data.flight.max()),
        }
    }

    /// True once a SYN was sent.
    pub(crate) fn is_opened(&self) -> bool {
        self.max() > 0
    }

    /// True when the FIN and all octets before it are acknowledged.
    #[inline]
    pub(crate) fn fin_acked(&self) -> bool {
        self.active().is_some_and(|sender| sender.data.flight.una() > sender.buffer.end())
    }

    /// Payload octets acknowledged by the peer.
    pub(crate) fn acked(&self) -> u64 {
        self.una().min(self.end()).saturating_sub(1)
    }

    /// Payload octets sent at least once.
    pub(crate) fn sent(&self) -> u64 {
        self.max().min(self.end()).saturating_sub(1)
    }

    /// Payload octets offered and never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.end().saturating_sub(self.max().max(1))
    }

    /// Octets that the network holds by this sender's estimate.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        match self {
            Self::Quiet(quiet) => u64::from(quiet.is_opening()),
            Self::Active(sender) => sender.in_flight(),
        }
    }

    /// Octets that the peer's window admits beyond those sent.
    pub(crate) fn window_left(&self) -> u64 {
        either!(self, state => state.peer.edge()).saturating_sub(self.max())
    }

    /// Octets that the peer's window admits from the first that is not acknowledged on.
    pub(crate) fn peer_window(&self) -> u64 {
        either!(self, state => state.peer.edge()).saturating_sub(self.una())
    }

    /// The congestion window, with which a sender would begin or that it has.
    pub(crate) fn congestion(&self, config: &Config) -> Cow<'_, Congestion> {
        match self {
            Self::Quiet(quiet) => Cow::Owned(quiet.congestion(config)),
            Self::Active(sender) => Cow::Borrowed(&sender.data.congestion),
        }
    }

    /// The pacing rate, once there is one.
    pub(crate) fn pacing_rate(&self) -> Option<OctetRate> {
        self.active().and_then(Sender::pacing_rate)
    }

    /// Retransmission timeout, doublings included.
    pub(crate) fn rto(&self) -> Duration {
        either!(self, state => state.rtt.rto())
    }

    /// Smoothed round trip, once there is one.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        either!(self, state => state.rtt.srtt())
    }

    pub(crate) fn round_trips(&self, now: Instant) -> RoundTrips {
        let in_flight_us = match self {
            Self::Quiet(quiet) => u64::from(quiet.is_opening()) * now.since(Instant::ZERO).as_us(),
            Self::Active(sender) => sender.data.flight.in_flight_us(now),
        };
        let measured_us = either!(self, state => state.rtt.measured_us());
        RoundTrips { sent: self.max(), acknowledged: self.una(), measured_us, in_flight_us }
    }

    pub(crate) fn mss(&self) -> u16 {
        either!(self, state => state.mss)
    }

    pub(crate) fn stats(&self) -> &SendStats {
        either!(self, state => &state.stats)
    }

    pub(crate) fn data_stats(&self) -> DataStats {
        self.active().map_or_else(DataStats::default, |sender| sender.data.stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data are offered long after the handshake, in which the first SYN was lost: RFC 5681, section 3.1, allows one
    /// segment, and RFC 6298 (5.7) a timeout of 3 s, since the SYN was not measured.
    #[test]
    fn a_sender_begins_with_the_first_data() {
        let (config, at) = (Config::default(), |s| Instant::ZERO + Duration::from_s(s));
        let mut half = SendHalf::new(&config, SeqNumber::new(7));
        assert!(!half.on_syn_sent(at(0), &config));
        assert!(half.on_syn_timer(at(1), &config) && half.on_syn_sent(at(1), &config));
        assert_eq!((half.in_flight(), half.is_opened(), half.stats().retransmissions), (1, true, 1));
        half.on_established(at(2), &config, true);
        assert!(matches!(half, SendHalf::Quiet(_)) && half.next_timer().is_none());
        assert_eq!((half.in_flight(), half.wire_max()), (0, SeqNumber::new(8)));
        let window = u32::from(half.mss());
        assert_eq!(half.congestion(&config).cwnd(), window);
        half.offer(&config, 10_000);
        assert!(matches!(half, SendHalf::Active(_)));
        assert_eq!((half.congestion(&config).cwnd(), half.rto()), (window, Duration::from_s(3)));
        assert_eq!((half.unsent(), half.stats().timeouts), (10_000, 1));
    }

    /// A transfer has two ends, and a run may have a hundred thousand transfers.
    #[test]
    fn the_state_of_data_is_not_part_of_an_end_that_only_receives() {
        assert!(size_of::<SendHalf>() <= 232, "{}", size_of::<SendHalf>());
        assert!(size_of::<DataState>() > size_of::<SendHalf>());
    }
}
