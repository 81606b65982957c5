//! BBR, version 3: BBR with bounds on rate and flight that losses set.
//!
//! Published: draft-ietf-ccwg-bbr-05 (N. Cardwell, I. Swett, J. Beshay), of 2026.
//!
//! As in version 1, the largest delivery rate and the shortest round trip give pacing rate and window. Two bounds join
//! them. A probe for more bandwidth that loses over 2 % sets the long-term bound of the flight; losses at other times
//! lower the short-term bounds of rate and flight, by at most three tenths a round. A cycle has four phases: `DOWN`
//! drains the queue, `CRUISE` leaves headroom, `REFILL` fills the pipe for a round, `UP` probes. It lasts 2 to 3 s, or
//! 63 rounds at most, or as many as Reno would need. After a probe that lost too much, the next one ends at the bound
//! (precautionary probing). `PROBE_RTT` comes every 5 s and halves the flight.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the steps of an acknowledgement in the order of section 5.2.3; startup, drain, restart |
//! | `bounds` | the long-term and short-term bounds, and the losses that set them (section 5.5.10) |
//! | `cycle` | the four phases of `PROBE_BW` (section 5.3.3) |
//! | `min_rtt` | the shortest round trip and `PROBE_RTT` (section 5.3.4) |
//! | `control` | pacing rate and window (section 5.6) |
//!
//! Differs: rates in octets per second; a lost segment that a timer found counts at the next acknowledgement; ECN marks
//! have no effect, as in the draft; the random waits follow from the initial sequence number.
//! Cost: about thirty divisions and products for each acknowledgement; 600 bytes, boxed.

mod bounds;
mod control;
mod cycle;
mod min_rtt;

use lastmile_units::{Duration, Instant};

use super::model::{ModelAck, ModelRestart, RepairPhase};
use super::windowed_max::WindowedMax;
use crate::sender::octet_rate::{Gain, OctetRate};
use crate::sender::pacing::Pacer;
use bounds::Bounds;
use cycle::Cycle;
use min_rtt::Trips;

/// Section 5.6.1: gains of startup (2.77), drain, `DOWN` (0.9), `UP` (1.25; window 2.25), `PROBE_RTT` (window 0.5).
const STARTUP: Gain = Gain::from_256ths(709);
const HALF: Gain = Gain::from_256ths(128);
const DOWN: Gain = Gain::from_256ths(230);
const UP: Gain = Gain::from_256ths(320);
const UP_WINDOW: Gain = Gain::from_256ths(576);
const WINDOW: Gain = Gain::from_256ths(512);
/// `BBR.MinPipeCwnd`, in segments.
const LEAST_WINDOW: u64 = 4;
/// Section 5.3.1.2: growth by a quarter, and rounds without it.
const FULL_ROUNDS: u8 = 3;
/// Rounds of drain, at most.
const DRAIN_ROUNDS: u64 = 3;
/// `BBR.ExtraAckedFilterLen`.
const EXTRA_ROUNDS: u64 = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    fn in_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// `IsProbingBW`.
    fn probes(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Section 5.6.1: the gains of pacing rate and window.
    fn gains(self) -> (Gain, Gain) {
        match self {
            Self::Startup => (STARTUP, WINDOW),
            Self::Drain => (HALF, WINDOW),
            Self::Down => (DOWN, WINDOW),
            Self::Cruise | Self::Refill => (Gain::ONE, WINDOW),
            Self::Up => (UP, UP_WINDOW),
            Self::ProbeRtt => (Gain::ONE, HALF),
        }
    }
}

/// Round trips, counted by deliveries (section 5.5.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Rounds {
    count: u64,
    next_delivered: u64,
    started: bool,
    /// Rounds since the last probe for bandwidth.
    since_probe: u64,
}

/// The search for a plateau of the delivery rate (section 5.3.1.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct FullPipe {
    rate: OctetRate,
    rounds: u8,
    now: bool,
    reached: bool,
}

/// The delivery rates: the largest of this cycle and of the previous one, of this round, and the one in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Rates {
    cycles: [OctetRate; 2],
    latest: OctetRate,
    used: OctetRate,
}

/// The octets that arrived beyond the expected ones (section 5.5.9).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Extra {
    most: WindowedMax<u64>,
    since: Instant,
    delivered: u64,
}

/// The window outside of repairs.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Saved {
    initial: u64,
    prior: u64,
    phase: RepairPhase,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bbr3 {
    state: State,
    rounds: Rounds,
    full: FullPipe,
    rates: Rates,
    bounds: Bounds,
    cycle: Cycle,
    trips: Trips,
    extra: Extra,
    saved: Saved,
    /// The round in which drain began.
    drain_round: u64,
    /// The pacing rate follows from a measured round trip.
    has_seen_rtt: bool,
    random: u64,
}

impl Bbr3 {
    /// `seed`: the initial sequence number.
    pub(super) fn new(initial_window: u64, seed: u64) -> Self {
        Self {
            state: State::Startup,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            rates: Rates::default(),
            bounds: Bounds::default(),
            cycle: Cycle::default(),
            trips: Trips::default(),
            extra: Extra::default(),
            saved: Saved { initial: initial_window, prior: 0, phase: RepairPhase::Open },
            drain_round: 0,
            has_seen_rtt: false,
            random: seed,
        }
    }

    /// The name of the state, as in reports.
    pub(super) fn phase_name(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::Down => "probe_bw_down",
            State::Cruise => "probe_bw_cruise",
            State::Refill => "probe_bw_refill",
            State::Up => "probe_bw_up",
            State::ProbeRtt => "probe_rtt",
        }
    }

    /// The connection is established (section 5.2.1).
    pub(super) fn begin(&mut self, now: Instant, cwnd: u64, srtt: Option<Duration>, pacing: &mut Pacer) {
        self.trips.begin(now, srtt);
        self.extra.since = now;
        self.init_pacing(cwnd, srtt, pacing);
    }

    /// The largest rate of this cycle and of the previous one (BBR.max_bw).
    fn max_rate(&self) -> OctetRate {
        self.rates.cycles[0].max(self.rates.cycles[1])
    }

    /// An acknowledgement (section 5.2.3). True: the flow counts as limited by the application.
    pub(super) fn on_ack(&mut self, ack: &mut ModelAck<'_>) -> bool {
        for lost in ack.lost {
            self.on_lost(lost, ack);
        }
        self.update_latest_signals(ack);
        self.update_max_rate(ack);
        self.adapt_to_losses(ack);
        self.update_extra(ack);
        self.check_full(ack);
        self.check_startup_done(ack);
        self.check_drain_done(ack);
        self.update_cycle(ack);
        self.trips.update(ack.sample);
        let in_probe_rtt = self.check_probe_rtt(ack);
        self.advance_latest_signals(ack);
        self.rates.used = self.bounds.rate.map_or(self.max_rate(), |bound| bound.min(self.max_rate()));
        self.set_pacing(ack);
        self.set_window(ack);
        in_probe_rtt
    }

    /// `UpdateMaxBw` and `UpdateRound`.
    fn update_max_rate(&mut self, ack: &ModelAck<'_>) {
        self.rounds.started = false;
        let Some(segment) = ack.sample.segment else { return };
        if segment.prior_delivered >= self.rounds.next_delivered {
            self.start_round(ack);
            self.rounds.count += 1;
            self.rounds.since_probe += 1;
            self.rounds.started = true;
        }
        if let Some(rate) = segment.rate()
            && (rate >= self.max_rate() || !segment.app_limited)
        {
            self.rates.cycles[1] = self.rates.cycles[1].max(rate);
        }
    }

    fn start_round(&mut self, ack: &ModelAck<'_>) {
        self.rounds.next_delivered = ack.sample.delivered;
    }

    /// `AdvanceMaxBwFilter`: the oldest of two cycles is forgotten, unless the newer has no sample.
    fn advance_max_filter(&mut self) {
        if self.rates.cycles[1] > OctetRate::ZERO {
            self.rates.cycles = [self.rates.cycles[1], OctetRate::ZERO];
        }
    }

    /// `UpdateACKAggregation`.
    fn update_extra(&mut self, ack: &ModelAck<'_>) {
        let sample = ack.sample;
        let mut expected = self.rates.used.octets_in(sample.now.since(self.extra.since));
        if self.extra.delivered <= expected {
            (self.extra.delivered, self.extra.since) = (0, sample.now);
            expected = 0;
        }
        self.extra.delivered += sample.acked;
        let extra = self.extra.delivered.saturating_sub(expected).min(ack.cwnd);
        let rounds = if self.full.reached { EXTRA_ROUNDS } else { 1 };
        self.extra.most.update(rounds, self.rounds.count, extra);
    }

    /// `CheckFullBWReached`.
    fn check_full(&mut self, ack: &ModelAck<'_>) {
        let Some(segment) = ack.sample.segment.filter(|segment| !segment.app_limited) else { return };
        if self.full.now || !self.rounds.started {
            return;
        }
        let rate = segment.rate().unwrap_or_default();
        if rate >= self.full.rate.times(UP) {
            self.reset_full(rate);
            return;
        }
        self.full.rounds += 1;
        self.full.now = self.full.rounds >= FULL_ROUNDS;
        self.full.reached |= self.full.now;
    }

    /// `ResetFullBW`, with a new baseline.
    fn reset_full(&mut self, rate: OctetRate) {
        self.full = FullPipe { rate, rounds: 0, now: false, reached: self.full.reached };
    }

    /// `CheckStartupDone` and `CheckStartupHighLoss`.
    fn check_startup_done(&mut self, ack: &ModelAck<'_>) {
        if self.state != State::Startup {
            return;
        }
        if self.lost_too_much_in_startup(ack) {
            self.bounds.undo_state = Some(State::Startup);
            self.full.reached = true;
            self.bounds.long_flight = Some(self.bdp(Gain::ONE).max(self.bounds.flight_latest));
        }
        if self.full.reached {
            self.state = State::Drain;
            self.drain_round = self.rounds.count;
        }
    }

    /// `CheckDrainDone`.
    fn check_drain_done(&mut self, ack: &ModelAck<'_>) {
        let drained = ack.sample.in_flight <= self.inflight(ack, Gain::ONE);
        if self.state == State::Drain && (drained || self.rounds.count > self.drain_round + DRAIN_ROUNDS) {
            self.start_down(ack);
        }
    }

    /// A repair begins (`OnEnterFastRecovery`, `OnEnterRTO`).
    pub(super) fn on_loss(&mut self, cwnd: u64) {
        self.save_window(cwnd);
        self.bounds.save();
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout(&mut self) {
        self.saved.phase = RepairPhase::Loss;
    }

    /// The repair was needless (`HandleSpuriousLossDetection`). The next acknowledgement restores the window.
    pub(super) fn on_undo(&mut self) {
        self.bounds.restore();
        self.reset_full(OctetRate::ZERO);
        match self.bounds.undo_state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.cycle.refill_due = true,
            _ => {}
        }
    }

    /// Data are sent after an idle time (`HandleRestartFromIdle`).
    pub(super) fn on_restart(&mut self, restart: &mut ModelRestart<'_>) {
        if !restart.app_limited {
            return;
        }
        self.trips.idle_restart = true;
        self.extra.since = restart.now;
        if self.state.in_probe_bw() {
            self.set_rate(self.rates.used, Gain::ONE, restart.pacing);
        } else if self.state == State::ProbeRtt && self.trips.is_probe_done(restart.now) {
            restart.cwnd = restart.cwnd.max(self.saved.prior);
            self.exit_probe_rtt(restart.now, None);
        }
    }
}

#[cfg(test)]
mod tests;
