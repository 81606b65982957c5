//! The four phases in which a flow drains the queue, cruises, refills the pipe and probes for more.
//!
//! Published: draft-ietf-ccwg-bbr-05, section 5.3.3.

use lastmile_units::{Duration, Instant};

use super::super::model::ModelAck;
use super::{Bbr3, LEAST_WINDOW, State};
use crate::random;
use crate::sender::octet_rate::{Gain, OctetRate};

/// `PickProbeWait`: 2 s, and up to one more.
const LEAST_WAIT: Duration = Duration::from_s(2);
const WAIT_RANGE_US: u64 = 1_000_000;
/// `IsRenoCoexistenceProbeTime`: rounds of a cycle, at most.
const MOST_ROUNDS: u64 = 63;
/// Doublings of the growth of the long-term bound, at most.
const MOST_DOUBLINGS: u32 = 30;

/// The meaning of the acknowledgements that arrive, with respect to a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Cycle {
    ack_phase: AckPhase,
    /// When the cycle began, and the longest time until the next probe.
    began: Instant,
    wait: Duration,
    /// Rounds of growth in this `UP`, octets acknowledged towards the next segment of growth, and their number.
    up_rounds: u32,
    up_acked: u64,
    up_acked_for_one: Option<u64>,
    /// Samples are of a probe (`is_bw_probe_sample`).
    pub(super) is_sample: bool,
    /// The last probe lost too much; the last `UP` ended early for that (`prev_probe_*`).
    pub(super) too_high: bool,
    precautionary: bool,
    /// A needless repair had ended a probe, which is to be resumed.
    pub(super) refill_due: bool,
}

impl Cycle {
    /// `PROBE_RTT` ends the probe.
    pub(super) fn stop_probe(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

impl Bbr3 {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, ack: &ModelAck<'_>) {
        self.begin_down(ack.sample.now);
        self.start_round(ack);
    }

    pub(super) fn begin_down(&mut self, now: Instant) {
        self.reset_signals();
        self.cycle.up_acked_for_one = None;
        self.rounds.since_probe = random::draw(&mut self.random, 2);
        self.cycle.wait = LEAST_WAIT + Duration::from_us(random::draw(&mut self.random, WAIT_RANGE_US));
        self.cycle.began = now;
        self.cycle.ack_phase = AckPhase::ProbeStopping;
        self.state = State::Down;
    }

    /// `StartProbeBW_REFILL`.
    fn start_refill(&mut self, ack: &ModelAck<'_>) {
        self.bounds.reset_short();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round(ack);
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &ModelAck<'_>) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round(ack);
        self.reset_full(newest_rate(ack));
        self.state = State::Up;
        self.raise_slope(ack);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &ModelAck<'_>) {
        if core::mem::take(&mut self.cycle.refill_due) && self.state.in_probe_bw() {
            self.start_refill(ack);
        }
        if !self.full.reached || self.adapt_long_term(ack) {
            return;
        }
        let goes_down = self.state == State::Up && self.is_time_to_go_down(ack);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack) => self.start_refill(ack),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            // After one round.
            State::Refill if self.rounds.started => {
                self.cycle.is_sample = true;
                self.start_up(ack);
            }
            State::Up if goes_down => {
                self.cycle.too_high = false;
                self.start_down(ack);
            }
            _ => {}
        }
    }

    fn is_time_to_cruise(&self, ack: &ModelAck<'_>) -> bool {
        let in_flight = ack.sample.in_flight;
        let headroom = self.bounds.with_headroom(ack.mss, LEAST_WINDOW * ack.mss);
        headroom.is_none_or(|most| in_flight <= most) && in_flight <= self.inflight_at(ack, self.max_rate(), Gain::ONE)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, ack: &ModelAck<'_>) -> bool {
        let reached = self.bounds.long_flight.is_some_and(|bound| ack.sample.in_flight >= bound);
        if self.cycle.too_high && reached {
            // The last probe up to here lost too much.
            self.cycle.precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.bounds.long_flight.is_some_and(|bound| ack.cwnd >= bound) {
            // The bound is the limit, not the path.
            self.reset_full(newest_rate(ack));
            return false;
        }
        self.full.now
    }

    /// `IsTimeToProbeBW`.
    fn is_time_to_probe(&self, ack: &ModelAck<'_>) -> bool {
        let rounds = (self.target_flight(ack) / ack.mss).min(MOST_ROUNDS);
        ack.sample.now > self.cycle.began.saturating_add(self.cycle.wait) || self.rounds.since_probe >= rounds
    }

    /// `AdaptLongTermModel`. True: it decided the next state.
    fn adapt_long_term(&mut self, ack: &ModelAck<'_>) -> bool {
        if self.rounds.started && self.cycle.ack_phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.rounds.started && self.cycle.ack_phase == AckPhase::ProbeStopping {
            self.cycle.is_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            let app_limited = ack.sample.segment.is_none_or(|segment| segment.app_limited);
            if self.state.in_probe_bw() && !app_limited {
                self.advance_max_filter();
            }
            if self.state.in_probe_bw() && self.cycle.precautionary && !self.cycle.too_high {
                self.start_refill(ack);
                return true;
            }
        }
        if !Self::is_flight_too_high(ack)
            && let Some(bound) = self.bounds.long_flight
        {
            let sent = ack.sample.segment.map_or(0, |segment| segment.sent_in_flight);
            self.bounds.long_flight = Some(bound.max(sent));
            if self.state == State::Up {
                self.probe_upward(ack);
            }
        }
        false
    }

    /// `ProbeInflightLongtermUpward`: growth by 1, 2, 4 ... segments a round.
    fn probe_upward(&mut self, ack: &ModelAck<'_>) {
        let Some(bound) = self.bounds.long_flight else { return };
        if !ack.cwnd_limited || ack.cwnd < bound {
            return;
        }
        self.cycle.up_acked += ack.sample.acked;
        if let Some(for_one) = self.cycle.up_acked_for_one {
            self.bounds.long_flight = Some(bound + self.cycle.up_acked / for_one * ack.mss);
            self.cycle.up_acked %= for_one;
        }
        if self.rounds.started {
            self.raise_slope(ack);
        }
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, ack: &ModelAck<'_>) {
        let growth = 1_u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MOST_DOUBLINGS);
        self.cycle.up_acked_for_one = Some((ack.cwnd / growth).max(ack.mss));
    }
}

fn newest_rate(ack: &ModelAck<'_>) -> OctetRate {
    ack.sample.segment.and_then(|segment| segment.rate()).unwrap_or_default()
}
