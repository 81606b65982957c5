//! Senders that measure delivery rates or pace: the samples that feed a model, and the pacing rate.
//!
//! Published: draft-cheng-iccrg-delivery-rate-estimation-02; Linux's `tcp_input.c` (`tcp_cong_control`,
//! `tcp_update_pacing_rate`).
//!
//! A sender whose window has no model may pace too (`CongestionConfig::pacing`), as Linux does with `sch_fq`: at 200 %
//! of window / round trip in the first half of slow start, at 120 % of it after that.
//! Cost: nothing without pacing.

use lastmile_units::Instant;

use super::Sender;
use super::delivery_rate::{AckState, DeliveryRate};
use super::flight::Accounting;
use super::octet_rate::OctetRate;
use super::pacing::Pacer;
use super::transmit::Plan;
use super::window::{Law, ModelAck, ModelRestart, RepairPhase};
use crate::ranges::Range;
use crate::{Config, Limit};

/// `tcp_pacing_ss_ratio` and `tcp_pacing_ca_ratio`, in percent.
const SLOW_START_PERCENT: u64 = 200;
const AVOIDANCE_PERCENT: u64 = 120;

impl Sender {
    /// The connection is established: pacing and measurements begin, if the variant or the settings ask for them.
    pub(super) fn begin_model(&mut self, now: Instant, config: &Config) {
        if config.variant.measures_rates() {
            self.data.rate = Some(Box::new(DeliveryRate::new()));
        }
        if config.variant.paces() || config.congestion.pacing {
            let pacer = self.data.pacer.insert(Box::new(Pacer::new()));
            let cwnd = self.data.congestion.cwnd().into();
            if let Some(law) = self.data.congestion.law_mut() {
                law.begin(now, cwnd, self.rtt.srtt(), pacer);
            }
        }
    }

    /// Pacing holds back the next segment, or another reason does while pacing would. `None`: it may depart.
    #[cold]
    pub(super) fn held_by_pacing(&mut self, now: Instant, config: &Config) -> Option<Limit> {
        if self.data.pacer.as_deref().is_none_or(|pacer| pacer.admits(now)) {
            self.stop_pacing_timer();
            return None;
        }
        match self.sendable(config) {
            Ok(()) => {
                if let Some(pacer) = &mut self.data.pacer {
                    pacer.wait();
                }
                Some(Limit::Pacing)
            }
            Err(limit) => {
                self.stop_pacing_timer();
                Some(limit)
            }
        }
    }

    pub(super) fn stop_pacing_timer(&mut self) {
        if let Some(pacer) = &mut self.data.pacer {
            pacer.stop();
        }
    }

    /// Apart from pacing, a segment may be sent; or the reason that forbids it.
    fn sendable(&self, config: &Config) -> Result<(), Limit> {
        let lost = self.data.flight.transmissions().lost() > 0;
        if lost || (!self.data.repair.is_open() && self.data.flight.uses_sack()) {
            return self.fits_cwnd(config);
        }
        let start = match self.data.flight.accounting() {
            Accounting::Cumulative => self.data.flight.nxt(),
            _ => self.data.flight.max(),
        };
        let len = self.buffer.end().saturating_sub(start).min(u64::from(self.mss));
        if len == 0 {
            return match self.buffer.is_closing() {
                true if start > self.buffer.end() => Err(Limit::AwaitingAck),
                true => Ok(()),
                false => Err(Limit::Application),
            };
        }
        let flight = start - self.data.flight.una();
        let fits = start < self.data.flight.max() || flight + len <= self.data.capacity;
        let len = if fits { len } else { self.next_of_full_buffer(flight)? };
        let cwnd = self.usable_cwnd(config);
        let free = self.peer.edge().saturating_sub(start);
        if self.in_flight() + len > cwnd {
            return Err(self.shut_by_cwnd(cwnd, free < len));
        }
        self.peer.admits(free, len).map(|_| ()).ok_or(Limit::ReceiveWindow)
    }

    /// The sender found no data to send.
    #[cold]
    pub(super) fn note_app_limited(&mut self) {
        let in_flight = self.in_flight();
        let idle = in_flight < u64::from(self.data.congestion.cwnd()) && self.data.flight.transmissions().lost() == 0;
        if let Some(rate) = self.data.rate.as_deref_mut().filter(|_| idle) {
            rate.on_app_limited(in_flight);
        }
    }

    /// A segment is sent; `len` octets, the FIN included.
    #[cold]
    pub(super) fn note_paced(&mut self, now: Instant, plan: Plan, len: u32) {
        let len = u64::from(len);
        // New octets count as in flight already, retransmitted ones do not yet.
        let in_flight = self.in_flight().saturating_sub(if plan.again { 0 } else { len });
        if let Some(rate) = &mut self.data.rate {
            rate.on_sent(now, Range { start: plan.start, end: plan.end }, plan.again, in_flight);
        }
        let burst = self.burst();
        if let Some(pacer) = &mut self.data.pacer {
            pacer.on_sent(now, len, burst);
        }
    }

    /// An acknowledgement is recorded: the model or the rule of pacing responds. `prior`: octets in flight before it.
    #[cold]
    pub(super) fn control_rate(&mut self, now: Instant, prior: u64) {
        let in_flight = self.in_flight();
        let phase = if self.data.repair.in_recovery() {
            RepairPhase::Recovery
        } else if self.data.repair.in_loss() {
            RepairPhase::Loss
        } else {
            RepairPhase::Open
        };
        let state = AckState {
            now,
            delivered: self.data.flight.delivered(),
            prior_in_flight: prior,
            in_flight,
            least_rtt: self.rtt.least(),
            mss: self.mss.into(),
        };
        let sample = self.data.rate.as_deref_mut().map(|rate| rate.sample(&state));
        if !self.data.congestion.is_model() {
            self.pace_by_window(in_flight);
            return;
        }
        let lost = self.data.rate.as_deref_mut().map(DeliveryRate::take_losses).unwrap_or_default();
        let Some((sample, pacing)) = sample.zip(self.data.pacer.as_deref_mut()) else { return };
        let cwnd = u64::from(self.data.congestion.cwnd());
        let mut ack = ModelAck {
            sample: &sample,
            lost: &lost,
            phase,
            pacing,
            cwnd,
            cwnd_limited: prior + u64::from(self.mss) > cwnd,
            srtt: self.rtt.srtt(),
            mss: self.mss.into(),
            held_quanta: 3,
        };
        let limited = self.data.congestion.law_mut().is_some_and(|law| law.on_ack(&mut ack));
        let cwnd = ack.cwnd;
        self.data.congestion.set_window(cwnd);
        if limited && let Some(rate) = self.data.rate.as_deref_mut() {
            rate.on_app_limited(in_flight);
        }
    }

    /// `tcp_update_pacing_rate`.
    fn pace_by_window(&mut self, in_flight: u64) {
        if let Some(octets) = self.data.congestion.law().and_then(Law::pacing_rate) {
            if let Some(pacer) = self.data.pacer.as_deref_mut() {
                pacer.set_rate(OctetRate::from_octets_per_s(octets.max(1)));
            }
            return;
        }
        let (cwnd, ssthresh) = (self.data.congestion.cwnd(), self.data.congestion.ssthresh());
        let percent = match cwnd < ssthresh / 2 {
            true => SLOW_START_PERCENT,
            // Prague leaves no margin beyond its window (draft, section 2.4.1).
            false if self.data.congestion.is_smooth() => 100,
            false => AVOIDANCE_PERCENT,
        };
        let octets = u64::from(cwnd).max(in_flight) * percent / 100;
        let srtt = self.rtt.srtt().filter(|srtt| !srtt.is_zero());
        if let Some((pacer, srtt)) = self.data.pacer.as_deref_mut().zip(srtt) {
            pacer.set_rate(OctetRate::of(octets, srtt));
        }
    }

    /// Data are sent after a time with nothing in flight.
    pub(super) fn restart_model(&mut self, now: Instant) {
        let app_limited = self.data.rate.as_deref().is_some_and(DeliveryRate::is_app_limited);
        let cwnd = self.data.congestion.cwnd().into();
        let Some(pacing) = self.data.pacer.as_deref_mut() else { return };
        let mut restart = ModelRestart { now, pacing, cwnd, app_limited };
        if let Some(law) = self.data.congestion.law_mut() {
            law.on_restart(&mut restart);
            let cwnd = restart.cwnd;
            self.data.congestion.set_window(cwnd);
        }
    }

    /// The retransmission timer expired.
    pub(super) fn reset_model(&mut self, now: Instant) {
        let Some(rate) = self.data.rate.as_deref() else { return };
        let totals = rate.totals(now);
        if let Some(law) = self.data.congestion.law_mut() {
            law.on_timeout(totals);
        }
    }

    /// The pacing rate, once there is one.
    pub(crate) fn pacing_rate(&self) -> Option<OctetRate> {
        self.data.pacer.as_deref().and_then(Pacer::rate)
    }

    /// When a segment that waits for pacing may depart, or another timer expires.
    #[inline(always)]
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let deadline = self.timers.deadline();
        match self.data.pacer.as_deref().and_then(Pacer::wake) {
            None => deadline,
            Some(wake) => Some(deadline.map_or(wake, |deadline| deadline.min(wake))),
        }
    }

    /// The pacing timer may have expired.
    pub(crate) fn on_pacing_timer(&mut self, now: Instant) {
        if let Some(pacer) = &mut self.data.pacer {
            pacer.on_timer(now);
        }
    }
}
