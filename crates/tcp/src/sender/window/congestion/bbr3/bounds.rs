//! The bounds that losses set: the flight of a probe that lost too much, and rate and flight of rounds with losses.
//!
//! Published: draft-ietf-ccwg-bbr-05, sections 5.5.10 and 5.5.11.

use super::super::model::{ModelAck, RepairPhase};
use super::{Bbr3, State};
use crate::sender::delivery_rate::LostSegment;
use crate::sender::octet_rate::OctetRate;

/// `BBR.LossThresh`, in percent.
const LOSS_PERCENT: u64 = 2;
/// `BBR.Beta`, in tenths.
const BETA_TENTHS: u64 = 7;
/// `BBRStartupFullLossCnt`: discontiguous losses of a round that end startup.
const STARTUP_LOSSES: u32 = 6;

/// The model of section 2.7; `None` is infinite.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Bounds {
    /// `bw_shortterm`, `inflight_shortterm` and `inflight_longterm`.
    pub(super) rate: Option<OctetRate>,
    pub(super) flight: Option<u64>,
    pub(super) long_flight: Option<u64>,
    /// The most octets delivered in this round (`inflight_latest`).
    pub(super) flight_latest: u64,
    /// The round of losses: its end, and whether the current acknowledgement ends it.
    round_delivered: u64,
    round_started: bool,
    lost_in_round: bool,
    /// Discontiguous losses of the round, and the end of the last.
    events: u32,
    last_lost: u64,
    /// The values before the repair, and the state that it left.
    undo: (Option<OctetRate>, Option<u64>, Option<u64>),
    pub(super) undo_state: Option<State>,
}

impl Bounds {
    /// `SaveStateUponLoss`.
    pub(super) fn save(&mut self) {
        self.undo = (self.rate, self.flight, self.long_flight);
        self.undo_state = None;
    }

    /// The bounds are at least those before the repair.
    pub(super) fn restore(&mut self) {
        let (rate, flight, long_flight) = self.undo;
        self.lost_in_round = false;
        // None is infinite.
        self.rate = self.rate.zip(rate).map(|(now, before)| now.max(before));
        self.flight = self.flight.zip(flight).map(|(now, before)| now.max(before));
        self.long_flight = self.long_flight.zip(long_flight).map(|(now, before)| now.max(before));
    }

    /// `ResetShortTermModel`.
    pub(super) fn reset_short(&mut self) {
        (self.rate, self.flight) = (None, None);
    }

    /// The share of `BBR.Headroom` (15 %) of the long-term bound is left to others.
    pub(super) fn with_headroom(&self, mss: u64, least: u64) -> Option<u64> {
        let bound = self.long_flight?;
        Some(bound.saturating_sub((bound * 15 / 100).max(mss)).max(least))
    }
}

impl Bbr3 {
    /// `HandleLostPacket`.
    pub(super) fn on_lost(&mut self, lost: &LostSegment, ack: &ModelAck<'_>) {
        if !self.bounds.lost_in_round {
            self.bounds.round_delivered = ack.sample.delivered;
            self.bounds.lost_in_round = true;
        }
        self.bounds.events += u32::from(lost.start != self.bounds.last_lost);
        self.bounds.last_lost = lost.end;
        if self.cycle.is_sample && is_too_high(lost.lost_since, lost.in_flight) {
            let flight = flight_at_loss(lost);
            self.on_flight_too_high(flight, lost.app_limited, ack);
        }
    }

    /// `HandleInflightTooHigh`.
    fn on_flight_too_high(&mut self, flight: u64, app_limited: bool, ack: &ModelAck<'_>) {
        self.cycle.too_high = true;
        // A probe is answered once.
        self.cycle.is_sample = false;
        if !app_limited {
            self.bounds.long_flight = Some(flight.max(self.target_flight(ack) * BETA_TENTHS / 10));
        }
        if self.state == State::Up {
            self.bounds.undo_state = Some(State::Up);
            self.start_down(ack);
        }
    }

    /// `IsInflightTooHigh`, by the newest segment of an acknowledgement.
    pub(super) fn is_flight_too_high(ack: &ModelAck<'_>) -> bool {
        ack.sample
            .segment
            .is_some_and(|segment| is_too_high(ack.sample.lost - segment.prior_lost, segment.sent_in_flight))
    }

    /// `CheckStartupHighLoss`: a full round of recovery, over 2 % and six discontiguous losses.
    pub(super) fn lost_too_much_in_startup(&mut self, ack: &ModelAck<'_>) -> bool {
        if !self.bounds.round_started {
            return false;
        }
        let recovering = ack.phase == RepairPhase::Recovery && self.saved.phase == RepairPhase::Recovery;
        let many = core::mem::take(&mut self.bounds.events) >= STARTUP_LOSSES;
        recovering && many && Self::is_flight_too_high(ack)
    }

    /// `UpdateLatestDeliverySignals`.
    pub(super) fn update_latest_signals(&mut self, ack: &ModelAck<'_>) {
        self.bounds.round_started = false;
        let Some(segment) = ack.sample.segment else { return };
        self.rates.latest = self.rates.latest.max(segment.rate().unwrap_or_default());
        self.bounds.flight_latest = self.bounds.flight_latest.max(segment.delivered);
        if segment.prior_delivered >= self.bounds.round_delivered {
            self.bounds.round_delivered = ack.sample.delivered;
            self.bounds.round_started = true;
        }
    }

    /// `AdvanceLatestDeliverySignals`.
    pub(super) fn advance_latest_signals(&mut self, ack: &ModelAck<'_>) {
        if let Some(segment) = ack.sample.segment.filter(|_| self.bounds.round_started) {
            self.rates.latest = segment.rate().unwrap_or_default();
            self.bounds.flight_latest = segment.delivered;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset_signals(&mut self) {
        self.bounds.lost_in_round = false;
        self.bounds.flight_latest = 0;
        self.rates.latest = OctetRate::ZERO;
    }

    /// `UpdateCongestionSignals` after the largest rate: once a round, losses lower the short-term bounds.
    pub(super) fn adapt_to_losses(&mut self, ack: &ModelAck<'_>) {
        if !self.bounds.round_started {
            return;
        }
        if self.bounds.lost_in_round && !self.state.probes() {
            let rate = self.bounds.rate.unwrap_or(self.max_rate());
            let flight = self.bounds.flight.unwrap_or(ack.cwnd);
            let lowered = OctetRate::from_octets_per_s(rate.octets_per_s() / 10 * BETA_TENTHS);
            self.bounds.rate = Some(self.rates.latest.max(lowered));
            self.bounds.flight = Some(self.bounds.flight_latest.max(flight / 10 * BETA_TENTHS));
        }
        self.bounds.lost_in_round = false;
    }
}

fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost * 100 > in_flight * LOSS_PERCENT
}

/// `InflightAtLoss`: the flight at which losses exceeded 2 %, perhaps within a segment.
fn flight_at_loss(lost: &LostSegment) -> u64 {
    let size = lost.end - lost.start;
    let before = lost.in_flight.saturating_sub(size);
    let lost_before = lost.lost_since.saturating_sub(size);
    let prefix = (before * LOSS_PERCENT).saturating_sub(lost_before * 100) / (100 - LOSS_PERCENT);
    before + prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 5.5.10.2: 100 segments in flight before this one, of which one was lost: 2 % are two, so that a prefix of
    /// (2 - 1) / 0.98 segments may be lost. With three lost before, none may.
    #[test]
    fn the_bound_is_the_flight_at_which_losses_exceed_two_percent() {
        let lost = LostSegment { start: 0, end: 5000, in_flight: 105_000, lost_since: 6000, app_limited: false };
        assert_eq!(flight_at_loss(&lost), 100_000 + 1020);
        assert_eq!(flight_at_loss(&LostSegment { lost_since: 8000, ..lost }), 100_000);
        assert!(is_too_high(2001, 100_000) && !is_too_high(2000, 100_000));
    }

    /// Section 2.5: 15 % of the bound, at least a segment, and four segments remain.
    #[test]
    fn headroom_is_fifteen_percent() {
        let bounds = |flight| Bounds { long_flight: Some(flight), ..Bounds::default() };
        assert_eq!(bounds(100_000).with_headroom(1000, 4000), Some(85_000));
        assert_eq!(bounds(5000).with_headroom(1000, 4000), Some(4000));
        assert_eq!(Bounds::default().with_headroom(1000, 4000), None);
    }
}
