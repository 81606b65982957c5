//! The sending half of an endpoint.
//!
//! Published: RFC 9293, RFC 6298.
//!
//! Each part owns its state and answers questions about it: `buffer` (the offered octets), `flight` (the
//! octets sent and not acknowledged), `window` (the peer's window, the congestion window), `repair` (losses
//! and their repair), `rtt` (the timeout), `timers` (the timer that runs). No part knows [`Sender`], which
//! asks them in the order of the RFCs.
//!
//! The procedures of the RFCs touch several parts each. They are methods of [`Sender`], and every event has
//! a file: `acknowledgement`, `sack`, `recovery`, `transmit`, and the files of `timers`. These files and
//! this one refer to one another, since they are one type.
//!
//! Cost: a dozen stores for each segment sent.

mod acknowledgement;
mod buffer;
pub(crate) mod delivery_rate;
pub(crate) mod flight;
mod marks;
mod model;
pub(crate) mod octet_rate;
pub(crate) mod pacing;
mod recovery;
pub(crate) mod repair;
mod rtt;
mod sack;
mod timers;
mod transmit;
pub(crate) mod window;

use lastmile_packet::{Meta, SeqNumber};
use lastmile_units::{Duration, Instant};

use crate::stats::{LimitClock, SendStats};
use crate::{Config, Limit, LimitedTime, RoundTrips};
pub(crate) use acknowledgement::{AckInfo, AckVerdict};
pub(crate) use buffer::FOREVER;
use buffer::SendBuffer;
use delivery_rate::DeliveryRate;
use flight::Flight;
use pacing::Pacer;
use repair::{Repair, Style};
use rtt::Rtt;
pub(crate) use timers::Alarm;
use timers::Timers;
pub(crate) use transmit::Plan;
use window::{Congestion, EcnResponse, PeerWindow};

/// A segment that is sent regardless of the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urgent {
    /// The retransmission of the segment at the cumulative acknowledgement.
    First,
    WindowProbe,
    TailLossProbe,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sender {
    buffer: SendBuffer,
    flight: Flight,
    peer: PeerWindow,
    congestion: Congestion,
    repair: Repair,
    timers: Timers,
    rtt: Rtt,
    ecn: EcnResponse,
    stats: SendStats,
    limits: LimitClock,
    urgent: Option<Urgent>,
    /// Octets of the packet that is being built, as Linux builds them (`CongestionConfig::tso_deferral`).
    packet: u32,
    mss: u16,
    /// The samples of a variant that measures delivery rates.
    rate: Option<Box<DeliveryRate>>,
    /// `None`: segments depart as the windows admit them.
    pacer: Option<Box<Pacer>>,
}

impl Sender {
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Self {
        let mss = config.own_mss();
        Self {
            buffer: SendBuffer::new(iss),
            flight: Flight::new(),
            peer: PeerWindow::new(),
            congestion: Congestion::new(config, mss, iss.raw()),
            repair: Repair::new(Style::of(config, false)),
            timers: Timers::default(),
            rtt: Rtt::new(&config.timers),
            ecn: EcnResponse::default(),
            stats: SendStats::default(),
            limits: LimitClock::default(),
            urgent: None,
            packet: 0,
            mss,
            rate: None,
            pacer: None,
        }
    }

    /// The peer's SYN arrived: its segments carry at most `mss` bytes, its windows are scaled by `shift`.
    pub(crate) fn on_peer_syn(&mut self, segment: &Meta, mss: u16, shift: u8) {
        self.mss = mss;
        self.peer.on_syn(segment, shift);
    }

    /// A SYN is sent. Returns whether it is a retransmission.
    pub(crate) fn on_syn_sent(&mut self, now: Instant, config: &Config) -> bool {
        let again = self.flight.max() > 0;
        self.flight.on_syn_sent();
        if again {
            self.stats.retransmissions += 1;
            self.rtt.abandon_timed_segment();
        } else {
            self.rtt.time_segment(now, 1);
        }
        if self.timers.deadline().is_none() {
            self.timers.start(Alarm::Syn, config.timers.deadline(now, self.rtt.rto()));
        }
        again
    }

    /// The timer of the SYN expired. False: the connection is given up.
    pub(crate) fn on_syn_timer(&mut self, now: Instant, config: &Config) -> bool {
        if !self.timers.back_off(config.timers.max_syn_retries) {
            return false;
        }
        self.stats.timeouts += 1;
        self.rtt.back_off(&config.timers);
        self.timers.start(Alarm::Syn, config.timers.deadline(now, self.rtt.rto()));
        true
    }

    /// The peer has acknowledged the SYN.
    pub(crate) fn on_established(&mut self, now: Instant, config: &Config, sack_permitted: bool) {
        self.repair = Repair::new(Style::of(config, sack_permitted));
        self.congestion = Congestion::new(config, self.mss, self.wire(0).raw());
        self.flight.on_established();
        self.timers.stop();
        self.rtt.on_syn_acked(now, &config.timers);
        if self.timers.backoff() > 0 {
            // RFC 5681, section 3.1: if the SYN or SYN-ACK was lost, the initial window is one segment.
            self.congestion.hold_at(u32::from(self.mss));
            self.rtt.after_lost_syn();
            self.timers.end_backoff();
        }
        self.begin_model(now, config);
    }

    /// The application offers `bytes` more to send.
    pub(crate) fn offer(&mut self, bytes: u64) {
        self.buffer.offer(bytes);
    }

    /// A FIN follows the last octet.
    pub(crate) fn close(&mut self) {
        self.buffer.close();
    }

    /// Discards the octets that were never sent, unless a FIN was.
    pub(crate) fn discard_unsent(&mut self) {
        if !self.fin_sent() {
            self.buffer.truncate(self.flight.max());
        }
    }

    /// The connection leaves TIME-WAIT at `deadline`.
    pub(crate) fn enter_time_wait(&mut self, now: Instant, deadline: Instant) {
        self.timers.start(Alarm::TimeWait, deadline);
        self.stop_pacing_timer();
        self.limits.set(now, None);
    }

    /// The connection is over.
    pub(crate) fn finish(&mut self, now: Instant) {
        self.timers.stop();
        self.stop_pacing_timer();
        self.limits.set(now, None);
    }

    /// The reason that limits the sender from now on.
    #[inline]
    pub(crate) fn set_limit(&mut self, now: Instant, limit: Option<Limit>) {
        self.limits.set(now, limit);
    }

    pub(crate) fn limit(&self) -> Option<Limit> {
        self.limits.current()
    }

    pub(crate) fn limited_by(&self, now: Instant) -> LimitedTime {
        self.limits.until(now)
    }

    /// The timer that has expired by `now`.
    pub(crate) fn timer_due(&self, now: Instant) -> Option<Alarm> {
        self.timers.due(now)
    }

    /// On an open connection the application has offered nothing so far, and the record of limits says so.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.buffer.is_unused() && self.limits.current() == Some(Limit::Application)
    }

    /// Counts a segment that arrived without payload.
    #[inline]
    pub(crate) fn count_ack(&mut self) {
        self.stats.acks_received += 1;
    }

    /// The sequence number of an octet.
    #[inline]
    pub(crate) fn wire(&self, offset: u64) -> SeqNumber {
        self.buffer.wire(offset)
    }

    /// The sequence number of pure acknowledgements.
    #[inline]
    pub(crate) fn wire_max(&self) -> SeqNumber {
        self.wire(self.flight.max())
    }

    /// True once a SYN was sent.
    pub(crate) fn is_opened(&self) -> bool {
        self.flight.max() > 0
    }

    pub(crate) fn fin_sent(&self) -> bool {
        self.flight.max() > self.buffer.end()
    }

    /// True when the FIN and all octets before it are acknowledged.
    #[inline]
    pub(crate) fn fin_acked(&self) -> bool {
        self.flight.una() > self.buffer.end()
    }

    /// Payload octets acknowledged by the peer.
    pub(crate) fn acked(&self) -> u64 {
        self.flight.una().min(self.buffer.end()).saturating_sub(1)
    }

    /// Payload octets sent at least once.
    pub(crate) fn sent(&self) -> u64 {
        self.flight.max().min(self.buffer.end()).saturating_sub(1)
    }

    /// Payload octets offered and never sent.
    pub(crate) fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.flight.max().max(1))
    }

    /// Octets that the network holds by this sender's estimate.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.flight.in_network()
    }

    /// Octets that the peer's window admits beyond those sent.
    pub(crate) fn window_left(&self) -> u64 {
        self.peer.edge().saturating_sub(self.flight.max())
    }

    /// Octets that the peer's window admits from the first that is not acknowledged on.
    pub(crate) fn peer_window(&self) -> u64 {
        self.peer.edge().saturating_sub(self.flight.una())
    }

    pub(crate) fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// Retransmission timeout, doublings included.
    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// Smoothed round trip, once there is one.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    pub(crate) fn round_trips(&self, now: Instant) -> RoundTrips {
        RoundTrips {
            sent: self.flight.max(),
            acknowledged: self.flight.una(),
            measured_us: self.rtt.measured_us(),
            in_flight_us: self.flight.in_flight_us(now),
        }
    }

    pub(crate) fn mss(&self) -> u16 {
        self.mss
    }

    pub(crate) fn stats(&self) -> &SendStats {
        &self.stats
    }
}
