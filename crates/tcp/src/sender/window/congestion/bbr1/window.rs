//! The congestion window of BBR: a multiple of the bandwidth-delay product, and its values in a repair.
//!
//! Published: Linux's `tcp_bbr.c` (`bbr_set_cwnd`, `bbr_set_cwnd_to_recover_or_restore`, `bbr_quantization_budget`).

use super::super::model::{ModelAck, RepairPhase};
use super::{Bbr1, LEAST_WINDOW, Mode};
use crate::sender::octet_rate::{Gain, OctetRate};
use crate::sender::pacing::Pacer;

/// `bbr_min_tso_rate`, 1.2 Mbit/s: below it a burst may have a single segment.
const SINGLE_SEGMENTS_BELOW: OctetRate = OctetRate::from_octets_per_s(150_000);
/// `bbr_tso_segs_goal`: the most octets, and the most segments, of a burst.
const MOST_OCTETS: u64 = 65_536 - 1 - 320;
const MOST_SEGMENTS: u64 = 127;

/// The window before and in a repair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Window {
    initial: u64,
    /// The window to restore after a repair or `PROBE_RTT`.
    prior: u64,
    /// The phase of the repair at the last acknowledgement.
    phase: RepairPhase,
    /// The first round of a repair: as much is sent as is delivered.
    conserves: bool,
}

impl Window {
    pub(super) fn new(initial: u64) -> Self {
        Self { initial, prior: 0, phase: RepairPhase::Open, conserves: false }
    }

    /// `bbr_save_cwnd`.
    pub(super) fn save(&mut self, cwnd: u64, in_probe_rtt: bool) {
        let genuine = self.phase == RepairPhase::Open && !in_probe_rtt;
        self.prior = if genuine { cwnd } else { self.prior.max(cwnd) };
    }

    pub(super) fn restored(&self, cwnd: u64) -> u64 {
        cwnd.max(self.prior)
    }

    pub(super) fn end_conservation(&mut self) {
        self.conserves = false;
    }

    pub(super) fn set_phase(&mut self, phase: RepairPhase) {
        self.phase = phase;
    }

    /// `bbr_set_cwnd_to_recover_or_restore`. Returns the window, and whether the first round of a repair begins.
    fn recover_or_restore(&mut self, ack: &ModelAck<'_>) -> (u64, bool) {
        let sample = ack.sample;
        let mut cwnd = ack.cwnd;
        if sample.newly_lost > 0 {
            cwnd = cwnd.saturating_sub(sample.newly_lost).max(ack.mss);
        }
        let before = core::mem::replace(&mut self.phase, ack.phase);
        let mut begins = false;
        if ack.phase == RepairPhase::Recovery && before != RepairPhase::Recovery {
            (self.conserves, begins) = (true, true);
            cwnd = sample.in_flight + sample.acked;
        } else if before >= RepairPhase::Recovery && ack.phase == RepairPhase::Open {
            cwnd = self.restored(cwnd);
            self.conserves = false;
        }
        if self.conserves {
            cwnd = cwnd.max(sample.in_flight + sample.acked);
        }
        (cwnd, begins)
    }
}

/// `bbr_tso_segs_goal`: the octets of a burst at the pacing rate.
pub(super) fn quantum(pacing: &Pacer, mss: u64) -> u64 {
    let rate = pacing.rate().unwrap_or(OctetRate::ZERO);
    let least = if rate < SINGLE_SEGMENTS_BELOW { 1 } else { 2 };
    let octets = (rate.octets_per_s() / 1024).min(MOST_OCTETS);
    (octets / mss).clamp(least, MOST_SEGMENTS) * mss
}

impl Bbr1 {
    /// `bbr_bdp`: the octets in flight at this rate over the shortest round trip, in whole segments.
    fn bdp(&self, ack: &ModelAck<'_>, rate: OctetRate, gain: Gain) -> u64 {
        match self.min_rtt.span {
            None => self.window.initial,
            Some(span) => gain.of(rate.octets_in(span)).next_multiple_of(ack.mss),
        }
    }

    /// `bbr_quantization_budget`: bursts at both ends and delayed acknowledgements hold segments that are not in
    /// flight.
    fn with_budget(&self, ack: &ModelAck<'_>, octets: u64) -> u64 {
        let pair = 2 * ack.mss;
        let even = (octets + 3 * quantum(ack.pacing, ack.mss)).next_multiple_of(pair);
        // The phase at 5/4 needs two segments more where the window is small.
        if self.mode == Mode::ProbeBw && self.phase == 0 { even + pair } else { even }
    }

    /// `bbr_inflight`.
    pub(super) fn inflight(&self, ack: &ModelAck<'_>, rate: OctetRate, gain: Gain) -> u64 {
        self.with_budget(ack, self.bdp(ack, rate, gain))
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_window(&mut self, ack: &mut ModelAck<'_>) {
        let acked = ack.sample.acked;
        let mut cwnd = ack.cwnd;
        if acked > 0 {
            let begins;
            (cwnd, begins) = self.window.recover_or_restore(ack);
            if begins {
                self.rounds.next_delivered = ack.sample.delivered;
            }
            if !self.window.conserves {
                cwnd = self.grown(ack, cwnd, acked);
            }
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(LEAST_WINDOW * ack.mss);
        }
        ack.cwnd = cwnd.max(ack.mss);
    }

    fn grown(&self, ack: &ModelAck<'_>, cwnd: u64, acked: u64) -> u64 {
        let rate = self.rate();
        let allowance = if self.full.reached { self.aggregation.allowance(rate, ack.mss) } else { 0 };
        let target = self.with_budget(ack, self.bdp(ack, rate, self.cwnd_gain) + allowance);
        let grown = if self.full.reached {
            (cwnd + acked).min(target)
        } else if cwnd < target || ack.sample.delivered < self.window.initial {
            cwnd + acked
        } else {
            cwnd
        };
        grown.max(LEAST_WINDOW * ack.mss)
    }
}
