//! Pacing rate, burst and congestion window.
//!
//! Published: draft-ietf-ccwg-bbr-05, section 5.6.

use lastmile_units::Duration;

use super::super::model::{ModelAck, RepairPhase};
use super::{Bbr3, HALF, LEAST_WINDOW, STARTUP, State};
use crate::sender::octet_rate::{Gain, OctetRate};
use crate::sender::pacing::Pacer;

/// `SetSendQuantum`: the octets of a millisecond, at most 64 KiB.
const QUANTUM: Duration = Duration::from_ms(1);
const MOST_QUANTUM: u64 = 65_536;

impl Bbr3 {
    /// `InitPacingRate`.
    pub(super) fn init_pacing(&mut self, cwnd: u64, srtt: Option<Duration>, pacing: &mut Pacer) {
        self.has_seen_rtt = srtt.is_some();
        pacing.set_rate(OctetRate::of(cwnd, srtt.unwrap_or(Duration::from_ms(1))).times(STARTUP));
    }

    /// `SetPacingRate`.
    pub(super) fn set_pacing(&mut self, ack: &mut ModelAck<'_>) {
        if !self.has_seen_rtt && ack.srtt.is_some() {
            self.init_pacing(ack.cwnd, ack.srtt, ack.pacing);
        }
        let (gain, _) = self.state.gains();
        self.set_rate(self.rates.used, gain, ack.pacing);
    }

    /// `SetPacingRateWithGain`: 1 % below the rate, so that a queue drains.
    pub(super) fn set_rate(&self, rate: OctetRate, gain: Gain, pacing: &mut Pacer) {
        let octets = u128::from(rate.times(gain).octets_per_s()) * 99 / 100;
        let rate = OctetRate::from_octets_per_s(u64::try_from(octets).unwrap_or(u64::MAX));
        if self.full.reached || pacing.rate().is_none_or(|current| rate > current) {
            pacing.set_rate(rate);
        }
    }

    /// `BDPMultiple`.
    pub(super) fn bdp(&self, gain: Gain) -> u64 {
        self.bdp_at(self.rates.used, gain)
    }

    fn bdp_at(&self, rate: OctetRate, gain: Gain) -> u64 {
        self.trips.least.map_or(self.saved.initial, |least| gain.of(rate.octets_in(least)))
    }

    /// `Inflight`.
    pub(super) fn inflight(&self, ack: &ModelAck<'_>, gain: Gain) -> u64 {
        self.inflight_at(ack, self.rates.used, gain)
    }

    pub(super) fn inflight_at(&self, ack: &ModelAck<'_>, rate: OctetRate, gain: Gain) -> u64 {
        self.with_budget(ack, self.bdp_at(rate, gain))
    }

    /// `QuantizationBudget`.
    fn with_budget(&self, ack: &ModelAck<'_>, octets: u64) -> u64 {
        let rate = ack.pacing.rate().unwrap_or_default();
        let quantum = rate.octets_in(QUANTUM).min(MOST_QUANTUM).max(2 * ack.mss);
        let octets = octets.max(ack.held_quanta * quantum).max(LEAST_WINDOW * ack.mss);
        if self.state == State::Up { octets + 2 * ack.mss } else { octets }
    }

    /// `TargetInflight`.
    pub(super) fn target_flight(&self, ack: &ModelAck<'_>) -> u64 {
        self.bdp(Gain::ONE).min(ack.cwnd)
    }

    /// `ProbeRTTCwnd`.
    pub(super) fn probe_rtt_window(&self, mss: u64) -> u64 {
        self.bdp(HALF).max(LEAST_WINDOW * mss)
    }

    /// `SaveCwnd`.
    pub(super) fn save_window(&mut self, cwnd: u64) {
        let genuine = self.saved.phase == RepairPhase::Open && self.state != State::ProbeRtt;
        self.saved.prior = if genuine { cwnd } else { self.saved.prior.max(cwnd) };
    }

    /// `SetCwnd`.
    pub(super) fn set_window(&mut self, ack: &mut ModelAck<'_>) {
        let before = core::mem::replace(&mut self.saved.phase, ack.phase);
        let mut cwnd = ack.cwnd;
        if before >= RepairPhase::Recovery && ack.phase == RepairPhase::Open {
            cwnd = cwnd.max(self.saved.prior);
        }
        let (_, gain) = self.state.gains();
        let most = self.with_budget(ack, self.bdp(gain) + self.extra.most.get());
        let acked = ack.sample.acked;
        if self.full.reached {
            cwnd = (cwnd + acked).min(most);
        } else if cwnd < most || ack.sample.delivered < self.saved.initial {
            cwnd += acked;
        }
        let least = LEAST_WINDOW * ack.mss;
        cwnd = cwnd.max(least);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window(ack.mss));
        }
        ack.cwnd = self.bound(ack.mss).map_or(cwnd, |bound| cwnd.min(bound.max(least)));
    }

    /// `BoundCwndForModel`.
    fn bound(&self, mss: u64) -> Option<u64> {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.long_flight,
            State::ProbeRtt | State::Cruise => self.bounds.with_headroom(mss, LEAST_WINDOW * mss),
            State::Startup | State::Drain => None,
        };
        match (long, self.bounds.flight) {
            (Some(long), Some(short)) => Some(long.min(short)),
            (long, short) => long.or(short),
        }
    }
}
