//! Congestion control, pacing and delivery rates for a transport that numbers packets, such as QUIC.
//!
//! A [`Controller`] owns the congestion window of one connection, with the laws that TCP has here, and nothing else: it
//! knows no packet numbers, no stream and no timer but that of pacing. Its owner reports each packet that it sends,
//! and for each acknowledgement the packets that are delivered and lost.
//!
//! Published: RFC 9002, section 7 and appendix B; RFC 9438 (CUBIC); the sources that [`Variant`] names for BBR.
//!
//! - A loss reduces the window once for all packets sent before the reduction (RFC 9002, section 7.3.2).
//! - The window does not grow by packets sent before it, nor while it is not used (section 7.8).
//! - A probe timeout reduces nothing; persistent congestion leaves two packets (section 7.6.2). A model grows from
//!   there, and returns to its window once a packet sent later is delivered (draft-ietf-ccwg-bbr-05, section 5.6.4.4).
//! - Packets are paced at 5/4 of window / round trip (section 7.7), in the first half of slow start at twice of it, or
//!   at the rate of a model. A burst has the octets of a millisecond, at least two packets and at most ten.
//!
//! Differs: windows have at least two packets and grow by whole packets, as those of TCP here. Slow start ends by
//! HyStart++ (RFC 9406) before a loss, as RFC 9438, section 4.10, allows. A late acknowledgement of a packet that was
//! declared lost undoes nothing.
//! Cost: a record of 80 bytes for each packet in flight where a model measures rates; a division for each packet sent.

use lastmile_units::{Duration, Instant};

use crate::config::MAX_WINDOW;
use crate::ranges::Range;
use crate::sender::delivery_rate::{AckState, DeliveryRate};
use crate::sender::flight::Outstanding;
use crate::sender::octet_rate::OctetRate;
use crate::sender::pacing::Pacer;
use crate::sender::repair::Style;
use crate::sender::window::{Acked, Congestion, Expiry, ModelAck, ModelRestart, RepairPhase, RoundTrip};
use crate::{ByteCounting, Config, CongestionConfig, SlowStart, Variant};

/// RFC 9002, section 7.2: the initial window in packets, and its bound in octets.
const INITIAL_PACKETS: u32 = 10;
const INITIAL_OCTETS: u32 = 14_720;
/// RFC 9002, section 7.2: the least window in packets (kMinimumWindow).
const LEAST_PACKETS: u32 = 2;
/// The factor N of RFC 9002, section 7.7, in percent: in the first half of slow start, and after it.
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 125;
/// A model sends bursts of a single packet below this rate in octets a second (`bbr_min_tso_rate`).
const SINGLE_PACKETS_BELOW: u64 = 150_000;
/// Parts of a second in a burst.
const BURSTS_A_SECOND: u64 = 1024;

/// A packet in flight, as the controller knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InFlight {
    /// The octets of all packets of the connection, one after the other: those of this packet.
    range: Range,
    sent: Instant,
}

impl InFlight {
    /// The time at which the packet was sent.
    #[must_use]
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// The number of octets of the packet.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub fn len(&self) -> u64 {
        self.range.len()
    }
}

/// The round trips at an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trips {
    /// The round trip that it measured, without the peer's delay.
    pub latest: Option<Duration>,
    /// The shortest one of the connection.
    pub least: Option<Duration>,
    /// The smoothed one.
    pub smoothed: Option<Duration>,
}

/// The current acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Current {
    /// Octets in flight before it.
    prior: u64,
    /// Octets that it delivers.
    acked: u64,
    /// The octets among them of packets sent after the last reduction.
    grows: u64,
    /// One past the highest octet that it delivers.
    highest: u64,
    /// True if the ACK delivers a packet sent after the last reduction.
    ends_recovery: bool,
}

/// The congestion window of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Controller {
    config: Config,
    congestion: Congestion,
    pacer: Pacer,
    rate: Option<Box<DeliveryRate>>,
    /// Octets of a full packet.
    packet: u32,
    /// One past the last octet sent.
    end: u64,
    in_flight: u64,
    /// Octets delivered.
    delivered: u64,
    last_sent: Instant,
    /// The last reduction.
    reduced: Option<Instant>,
    recovering: bool,
    /// The last persistent congestion, until a packet sent after it is delivered.
    collapsed: Option<Instant>,
    current: Current,
    established: bool,
}

impl Controller {
    /// A controller by `variant` for packets of at most `packet` octets. `seed` varies the phases of models.
    #[must_use]
    pub fn new(variant: Variant, packet: u16, seed: u32) -> Self {
        let congestion = CongestionConfig {
            byte_counting: ByteCounting::Abc { limit: u8::MAX },
            slow_start: SlowStart::HyStartPlusPlus,
            pacing: true,
            ..CongestionConfig::default()
        };
        let config = Config { variant, mss: packet, congestion, ..Config::default() };
        let mut congestion = Congestion::new(&config, packet, seed);
        let size = u32::from(packet);
        congestion.hold_at((INITIAL_PACKETS * size).min(INITIAL_OCTETS.max(LEAST_PACKETS * size)));
        Self {
            rate: variant.measures_rates().then(|| Box::new(DeliveryRate::new())),
            config,
            congestion,
            pacer: Pacer::new(),
            packet: size,
            end: 1,
            in_flight: 0,
            delivered: 0,
            last_sent: Instant::ZERO,
            reduced: None,
            recovering: false,
            collapsed: None,
            current: Current::default(),
            established: false,
        }
    }

    /// The handshake is over: a model begins.
    pub fn establish(&mut self, now: Instant, srtt: Option<Duration>) {
        self.established = true;
        let cwnd = self.congestion.cwnd().into();
        if let Some(law) = self.congestion.law_mut() {
            law.begin(now, cwnd, srtt, &mut self.pacer);
        }
        self.pace_by_window(srtt);
    }

    /// The congestion window in octets.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.congestion.cwnd()
    }

    /// The slow start threshold; `None` before the first loss.
    #[must_use]
    pub fn threshold(&self) -> Option<u32> {
        Some(self.congestion.ssthresh()).filter(|octets| *octets < MAX_WINDOW)
    }

    /// Octets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The phase of a model of the path; `None` for other variants.
    #[must_use]
    pub fn phase(&self) -> Option<&'static str> {
        self.congestion.phase()
    }

    /// The pacing rate in octets a second, once there is one.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.rate().map(OctetRate::octets_per_s)
    }

    /// The window admits a packet of `len` octets.
    #[must_use]
    pub fn admits(&self, len: u64) -> bool {
        self.in_flight + len <= u64::from(self.congestion.cwnd())
    }

    /// Pacing admits a packet at `now`. If not, [`wake`](Self::wake) is the time at which it does.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if self.pacer.admits(now) {
            self.pacer.stop();
            return true;
        }
        self.pacer.wait();
        false
    }

    /// No packet waits for pacing.
    pub fn stop_waiting(&mut self) {
        self.pacer.stop();
    }

    /// The time at which a packet that waits for pacing may depart.
    #[must_use]
    pub fn wake(&self) -> Option<Instant> {
        self.pacer.wake()
    }

    /// The pacing timer may have expired.
    pub fn on_timer(&mut self, now: Instant) {
        self.pacer.on_timer(now);
    }

    /// A packet of `len` octets is sent.
    pub fn on_sent(&mut self, now: Instant, len: u16) -> InFlight {
        if self.in_flight == 0 && self.established {
            self.restart(now);
        }
        let len = u64::from(len.max(1));
        let range = Range { start: self.end, end: self.end + len };
        if let Some(rate) = &mut self.rate {
            rate.on_sent(now, range, false, self.in_flight);
        }
        let burst = self.burst();
        self.pacer.on_sent(now, len, burst);
        self.end = range.end;
        self.in_flight += len;
        self.last_sent = now;
        InFlight { range, sent: now }
    }

    /// Data are sent after a time with nothing in flight.
    fn restart(&mut self, now: Instant) {
        // RFC 9002, section 7.7: a sender that has been idle may send a burst of the initial window.
        if !self.recovering {
            self.pacer.exempt();
        }
        self.congestion.on_idle(now, self.last_sent);
        let app_limited = self.rate.as_deref().is_some_and(DeliveryRate::is_app_limited);
        let cwnd = self.congestion.cwnd().into();
        let mut restart = ModelRestart { now, pacing: &mut self.pacer, cwnd, app_limited };
        if let Some(law) = self.congestion.law_mut() {
            law.on_restart(&mut restart);
            let cwnd = restart.cwnd;
            self.congestion.set_window(cwnd);
        }
    }

    /// The owner has nothing to send while the window has free space: the path is not the limit.
    pub fn note_unused(&mut self) {
        let in_flight = self.in_flight;
        if in_flight < u64::from(self.congestion.cwnd())
            && let Some(rate) = self.rate.as_deref_mut()
        {
            rate.on_app_limited(in_flight);
        }
    }

    /// An acknowledgement, or the expiry of a timer that declares losses, begins.
    pub fn begin(&mut self) {
        self.current = Current { prior: self.in_flight, ..Current::default() };
        if let Some(rate) = &mut self.rate {
            rate.begin_ack();
        }
    }

    /// A packet is delivered.
    pub fn on_delivered(&mut self, packet: InFlight) {
        let len = packet.range.len();
        self.leave(len);
        self.delivered += len;
        let after_reduction = self.reduced.is_none_or(|reduced| packet.sent > reduced);
        self.collapsed = self.collapsed.filter(|collapsed| packet.sent <= *collapsed);
        let current = &mut self.current;
        current.acked += len;
        current.highest = current.highest.max(packet.range.end);
        if after_reduction {
            current.grows += len;
            current.ends_recovery = true;
        }
        if let Some(rate) = &mut self.rate {
            rate.on_sacked(packet.range);
        }
    }

    /// A packet is lost. True: the loss reduces the window.
    pub fn on_lost(&mut self, now: Instant, packet: InFlight) -> bool {
        self.leave(packet.range.len());
        if let Some(rate) = &mut self.rate {
            rate.on_lost(packet.range);
            rate.abandon(packet.range);
        }
        // RFC 9002, section 7.3.2: one reduction for all that was sent before it.
        let reduces = self.reduced.is_none_or(|reduced| packet.sent > reduced);
        if reduces {
            self.reduced = Some(now);
            self.recovering = true;
            self.current.ends_recovery = false;
            self.current.grows = 0;
            self.congestion.on_repaired_loss(&self.config, self.style(), self.packet);
        }
        reduces
    }

    /// Each packet has a number, so that reductions follow the rules of a sender with SACK.
    fn style(&self) -> Style {
        Style::of(&self.config, true)
    }

    fn leave(&mut self, len: u64) {
        debug_assert!(len <= self.in_flight, "{len} octets leave a flight of {}", self.in_flight);
        self.in_flight = self.in_flight.saturating_sub(len);
    }

    /// RFC 9002, section 7.6.2: persistent congestion leaves the least window, and ends the recovery.
    pub fn on_persistent_congestion(&mut self, now: Instant) {
        let flight = u32::try_from(self.in_flight).unwrap_or(MAX_WINDOW);
        self.congestion.on_timeout(&self.config, self.style(), flight, self.packet, Expiry::Answered);
        self.congestion.allow(u64::from(LEAST_PACKETS * self.packet));
        self.reduced = None;
        self.recovering = false;
        self.collapsed = Some(now);
        if let Some(totals) = self.rate.as_deref().map(|rate| rate.totals(now))
            && let Some(law) = self.congestion.law_mut()
        {
            law.on_timeout(totals);
        }
    }

    /// All packets of an acknowledgement are reported. `oldest`: the oldest packet in flight; `used`: the window was
    /// the limit before it.
    pub fn end(&mut self, now: Instant, trips: Trips, oldest: Option<InFlight>, used: bool) {
        let una = oldest.map_or(self.end, |packet| packet.range.start);
        let Current { prior, acked, grows, highest, ends_recovery } = self.current;
        if ends_recovery {
            self.recovering = false;
        }
        if grows > 0 && used && !self.congestion.is_model() {
            let least_rtt = trips.least.unwrap_or_default();
            self.congestion.grow(
                &Acked {
                    now,
                    bytes: grows,
                    mss: self.packet,
                    after_timeout: false,
                    least_rtt,
                    srtt: trips.smoothed,
                    rtt: trips.latest,
                    marked: 0,
                },
                &self.config,
            );
        }
        if let Some(latest) = trips.latest
            && acked > 0
            && self.congestion.watches(&self.config)
        {
            let trip = RoundTrip {
                now,
                us: u32::try_from(latest.as_us()).unwrap_or(u32::MAX).max(1),
                outstanding: Outstanding { una: highest, max: self.end },
                mss: self.packet,
                srtt: trips.smoothed.unwrap_or_default(),
                paced: true,
            };
            self.congestion.watch(&trip, &self.config);
        }
        self.control_rate(now, trips, prior);
        if let Some(rate) = &mut self.rate {
            rate.on_acked(una);
        }
    }

    /// The model or the rule of pacing responds.
    fn control_rate(&mut self, now: Instant, trips: Trips, prior: u64) {
        let state = AckState {
            now,
            // The record of deliveries counts from octet 1.
            delivered: 1 + self.delivered,
            prior_in_flight: prior,
            in_flight: self.in_flight,
            least_rtt: trips.least,
            mss: self.packet.into(),
        };
        let Some(rate) = self.rate.as_deref_mut() else { return self.pace_by_window(trips.smoothed) };
        let sample = rate.sample(&state);
        let lost = rate.take_losses();
        if !self.established {
            return;
        }
        let cwnd = u64::from(self.congestion.cwnd());
        let mut ack = ModelAck {
            sample: &sample,
            lost: &lost,
            phase: match (self.collapsed, self.recovering) {
                (Some(_), _) => RepairPhase::Loss,
                (None, true) => RepairPhase::Recovery,
                (None, false) => RepairPhase::Open,
            },
            pacing: &mut self.pacer,
            cwnd,
            cwnd_limited: prior + u64::from(self.packet) > cwnd,
            srtt: trips.smoothed,
            mss: self.packet.into(),
            held_quanta: 1,
        };
        let limited = self.congestion.law_mut().is_some_and(|law| law.on_ack(&mut ack));
        let (cwnd, least) = (ack.cwnd, u64::from(LEAST_PACKETS * self.packet));
        // The acknowledgement that reveals persistent congestion does not grow the window.
        self.congestion.set_window(if self.collapsed == Some(now) { least } else { cwnd.max(least) });
        if limited {
            rate.on_app_limited(self.in_flight);
        }
    }

    /// RFC 9002, section 7.7: rate = N * window / round trip.
    fn pace_by_window(&mut self, srtt: Option<Duration>) {
        let (false, Some(srtt)) = (self.congestion.is_model(), srtt.filter(|srtt| !srtt.is_zero())) else { return };
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        let percent = if cwnd < ssthresh / 2 { SLOW_START_PERCENT } else { AVOIDANCE_PERCENT };
        self.pacer.set_rate(OctetRate::of(u64::from(cwnd) * percent / 100, srtt));
    }

    /// The octets that depart at once.
    fn burst(&self) -> u64 {
        let packet = u64::from(self.packet);
        let rate = self.pacing_rate().unwrap_or(0);
        let least = if self.congestion.is_model() && rate < SINGLE_PACKETS_BELOW { 1 } else { 2 };
        (rate / BURSTS_A_SECOND / packet).clamp(least, INITIAL_PACKETS.into()) * packet
    }
}

#[cfg(test)]
mod tests;
