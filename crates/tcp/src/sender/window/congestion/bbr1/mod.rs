//! BBR, version 1: window and pacing rate from the largest delivery rate and the shortest round trip.
//!
//! Published: N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; the behaviour of Linux's `tcp_bbr.c` (6.18).
//!
//! A sender starts at 2.89 times the rate that was delivered (`STARTUP`), until three rounds bring less than a quarter
//! more. It drains the queue that this left (`DRAIN`), then cruises at the largest rate of the last ten rounds
//! (`PROBE_BW`), with one of eight phases at 5/4 and one at 3/4 of it. A shortest round trip that is ten seconds old is
//! measured anew with four segments in flight for 200 ms (`PROBE_RTT`). Losses and ECN marks do not lower the rate.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the state machine: phases, gains, the shortest round trip |
//! | `window` | the congestion window and its values in a repair |
//! | `aggregation` | the allowance for acknowledgements that arrive in bursts |
//! | `policer` | the long-term rate of a token-bucket policer |
//!
//! Differs from Linux: rates are in octets per second and windows in octets, bandwidth-delay products in whole
//! segments; round trips are exact, not in microseconds; the phase with which `PROBE_BW` begins follows from the
//! initial sequence number, so that equal seeds give equal runs.
//! Cost: about thirty divisions and products for each acknowledgement; 424 bytes, boxed.

mod aggregation;
mod policer;
mod window;

use lastmile_units::{Duration, Instant};

use super::model::{ModelAck, ModelRestart, RepairPhase};
use super::windowed_max::WindowedMax;
use crate::random;
use crate::sender::delivery_rate::{RateSample, Totals};
use crate::sender::octet_rate::{Gain, OctetRate};
use crate::sender::pacing::Pacer;
use aggregation::Aggregation;
use policer::{LongTerm, Verdict};
use window::Window;

/// `bbr_bw_rtts`: rounds for which a largest rate counts.
const BANDWIDTH_ROUNDS: u64 = 10;
/// `bbr_min_rtt_win_sec` and `bbr_probe_rtt_mode_ms`.
const MIN_RTT_LASTS: Duration = Duration::from_s(10);
const PROBE_RTT_LASTS: Duration = Duration::from_ms(200);
/// `bbr_high_gain`: 2 / ln 2, and `bbr_drain_gain`, its inverse.
const HIGH_GAIN: Gain = Gain::from_256ths(739);
const DRAIN_GAIN: Gain = Gain::from_256ths(88);
/// `bbr_cwnd_gain`.
const CWND_GAIN: Gain = Gain::from_256ths(512);
/// `bbr_pacing_gain`.
const CYCLE: [Gain; 8] =
    [Gain::from_256ths(320), Gain::from_256ths(192), Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE, Gain::ONE];
/// `bbr_cycle_rand`: `PROBE_BW` begins in any phase but the one at 3/4.
const FIRST_PHASES: u64 = 7;
/// `bbr_full_bw_thresh` and `bbr_full_bw_cnt`.
const FULL_THRESHOLD: Gain = Gain::from_256ths(320);
const FULL_ROUNDS: u8 = 3;
/// `bbr_cwnd_min_target`, in segments.
const LEAST_WINDOW: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Round trips, counted by deliveries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends with the acknowledgement of a segment sent when this much was delivered.
    next_delivered: u64,
    /// The current acknowledgement begins a round.
    started: bool,
}

/// The search for the full rate of the path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct FullPipe {
    rate: OctetRate,
    /// Rounds in a row without growth by a quarter.
    rounds: u8,
    reached: bool,
}

/// The shortest round trip, and its renewal.
#[derive(Clone, PartialEq, Eq, Debug)]
struct MinRtt {
    span: Option<Duration>,
    at: Instant,
    /// When `PROBE_RTT` may end, once little enough is in flight.
    probe_ends: Option<Instant>,
    probe_round_done: bool,
    /// The sender restarts after an idle time, which has drained the queue.
    idle_restart: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bbr1 {
    mode: Mode,
    pacing_gain: Gain,
    cwnd_gain: Gain,
    bandwidth: WindowedMax<OctetRate>,
    rounds: Rounds,
    full: FullPipe,
    min_rtt: MinRtt,
    /// The phase of `PROBE_BW`, and when it began.
    phase: usize,
    phase_at: Instant,
    window: Window,
    aggregation: Aggregation,
    long_term: LongTerm,
    /// The pacing rate follows from a measured round trip.
    has_seen_rtt: bool,
    random: u64,
}

impl Bbr1 {
    /// `seed`: the initial sequence number.
    pub(super) fn new(initial_window: u64, seed: u64) -> Self {
        Self {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: WindowedMax::default(),
            rounds: Rounds::default(),
            full: FullPipe::default(),
            min_rtt: MinRtt {
                span: None,
                at: Instant::ZERO,
                probe_ends: None,
                probe_round_done: false,
                idle_restart: false,
            },
            phase: 0,
            phase_at: Instant::ZERO,
            window: Window::new(initial_window),
            aggregation: Aggregation::default(),
            long_term: LongTerm::default(),
            has_seen_rtt: false,
            random: seed,
        }
    }

    /// The name of the mode, as in reports.
    pub(super) fn phase_name(&self) -> &'static str {
        match self.mode {
            Mode::Startup => "startup",
            Mode::Drain => "drain",
            Mode::ProbeBw => "probe_bw",
            Mode::ProbeRtt => "probe_rtt",
        }
    }

    /// The connection is established: the first pacing rate (`bbr_init_pacing_rate_from_rtt`).
    pub(super) fn begin(&mut self, now: Instant, cwnd: u64, srtt: Option<Duration>, pacing: &mut Pacer) {
        self.min_rtt.span = srtt;
        self.min_rtt.at = now;
        self.phase_at = now;
        self.aggregation.begin(now);
        self.long_term.begin(now);
        self.init_pacing(cwnd, srtt, pacing);
    }

    fn init_pacing(&mut self, cwnd: u64, srtt: Option<Duration>, pacing: &mut Pacer) {
        self.has_seen_rtt = srtt.is_some();
        let rate = OctetRate::of(cwnd, srtt.unwrap_or(Duration::from_ms(1)));
        pacing.set_rate(paced(rate, HIGH_GAIN));
    }

    /// The rate that the model sends at: that of a policer if one was found (`bbr_bw`).
    fn rate(&self) -> OctetRate {
        self.long_term.rate().unwrap_or_else(|| self.bandwidth.get())
    }

    /// An acknowledgement (`bbr_main`). True: the flow counts as limited by the application.
    pub(super) fn on_ack(&mut self, ack: &mut ModelAck<'_>) -> bool {
        self.update_rate(ack);
        let (rate, started) = (self.rate(), self.rounds.started);
        self.aggregation.on_ack(ack.sample, rate, started, ack.cwnd, ack.mss);
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack) {
            self.next_phase(ack.sample.now);
        }
        self.check_full(ack.sample);
        self.check_drain(ack);
        let in_probe = self.update_min_rtt(ack);
        self.update_gains();
        self.set_pacing(ack);
        self.set_window(ack);
        in_probe
    }

    /// `bbr_update_bw`.
    fn update_rate(&mut self, ack: &ModelAck<'_>) {
        self.rounds.started = false;
        let sample = ack.sample;
        let Some(segment) = sample.segment else { return };
        let Some(rate) = segment.rate() else { return };
        if segment.prior_delivered >= self.rounds.next_delivered {
            self.rounds.next_delivered = sample.delivered;
            self.rounds.count += 1;
            self.rounds.started = true;
            self.window.end_conservation();
        }
        match self.long_term.on_ack(sample, self.rounds.started, self.mode == Mode::ProbeBw) {
            Verdict::Nothing => {}
            Verdict::Policed => self.pacing_gain = Gain::ONE,
            Verdict::Probe => self.begin_probe_bw(sample.now),
        }
        if !segment.app_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds.count, rate);
        }
    }

    /// `bbr_is_next_cycle_phase`.
    fn phase_is_over(&self, ack: &ModelAck<'_>) -> bool {
        let sample = ack.sample;
        let lasted = self.min_rtt.span.is_some_and(|span| sample.now.since(self.phase_at) > span);
        if self.pacing_gain == Gain::ONE {
            return lasted;
        }
        let in_flight = self.in_flight_at_departure(ack, sample.prior_in_flight);
        let rate = self.bandwidth.get();
        if self.pacing_gain > Gain::ONE {
            // A small buffer may not hold as much as the gain aims at.
            let aim = self.inflight(ack, rate, self.pacing_gain);
            return lasted && (sample.newly_lost > 0 || in_flight >= aim);
        }
        lasted || in_flight <= self.inflight(ack, rate, Gain::ONE)
    }

    /// `bbr_packets_in_net_at_edt`: the octets in flight when the next segment may depart.
    fn in_flight_at_departure(&self, ack: &ModelAck<'_>, in_flight: u64) -> u64 {
        let now = ack.sample.now;
        let wait = ack.pacing.departure(now).since(now);
        let quantum = if self.pacing_gain > Gain::ONE { window::quantum(ack.pacing, ack.mss) } else { 0 };
        // Whole segments are delivered until then.
        let delivered = self.rate().octets_in(wait);
        (in_flight + quantum).saturating_sub(delivered - delivered % ack.mss)
    }

    fn next_phase(&mut self, now: Instant) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
    }

    /// `bbr_reset_probe_bw_mode`.
    fn begin_probe_bw(&mut self, now: Instant) {
        self.mode = Mode::ProbeBw;
        self.phase = CYCLE.len() - 1 - random::draw(&mut self.random, FIRST_PHASES) as usize;
        self.next_phase(now);
    }

    /// `bbr_check_full_bw_reached`.
    fn check_full(&mut self, sample: &RateSample) {
        let app_limited = sample.segment.is_none_or(|segment| segment.app_limited);
        if self.full.reached || !self.rounds.started || app_limited {
            return;
        }
        let rate = self.bandwidth.get();
        if rate >= self.full.rate.times(FULL_THRESHOLD) {
            (self.full.rate, self.full.rounds) = (rate, 0);
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    /// `bbr_check_drain`.
    fn check_drain(&mut self, ack: &ModelAck<'_>) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(ack, ack.sample.in_flight)
                <= self.inflight(ack, self.bandwidth.get(), Gain::ONE)
        {
            self.begin_probe_bw(ack.sample.now);
        }
    }

    /// `bbr_update_min_rtt`. True in `PROBE_RTT`.
    fn update_min_rtt(&mut self, ack: &mut ModelAck<'_>) -> bool {
        let sample = ack.sample;
        let now = sample.now;
        let expired = now > self.min_rtt.at.saturating_add(MIN_RTT_LASTS);
        if let Some(segment) = sample.segment
            && let Some(rtt) = segment.rtt
            && (self.min_rtt.span.is_none_or(|span| rtt < span) || (expired && !segment.maybe_delayed))
        {
            (self.min_rtt.span, self.min_rtt.at) = (Some(rtt), now);
        }
        if expired && !self.min_rtt.idle_restart && self.mode != Mode::ProbeRtt {
            self.window.save(ack.cwnd, false);
            self.mode = Mode::ProbeRtt;
            self.min_rtt.probe_ends = None;
        }
        let in_probe = self.mode == Mode::ProbeRtt;
        if in_probe {
            self.probe_rtt(ack);
        }
        if sample.segment.is_some_and(|segment| segment.delivered > 0) {
            self.min_rtt.idle_restart = false;
        }
        in_probe
    }

    fn probe_rtt(&mut self, ack: &mut ModelAck<'_>) {
        let sample = ack.sample;
        if self.min_rtt.probe_ends.is_none() {
            if sample.in_flight <= LEAST_WINDOW * ack.mss {
                self.min_rtt.probe_ends = Some(sample.now.saturating_add(PROBE_RTT_LASTS));
                self.min_rtt.probe_round_done = false;
                self.rounds.next_delivered = sample.delivered;
            }
            return;
        }
        self.min_rtt.probe_round_done |= self.rounds.started;
        if self.min_rtt.probe_round_done {
            self.check_probe_rtt_done(sample.now, &mut ack.cwnd);
        }
    }

    /// `bbr_check_probe_rtt_done`.
    fn check_probe_rtt_done(&mut self, now: Instant, cwnd: &mut u64) {
        if self.min_rtt.probe_ends.is_none_or(|ends| now <= ends) {
            return;
        }
        self.min_rtt.at = now;
        *cwnd = self.window.restored(*cwnd);
        if self.full.reached {
            self.begin_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// `bbr_update_gains`.
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.long_term.rate().is_some() => (Gain::ONE, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (Gain::ONE, Gain::ONE),
        };
    }

    /// `bbr_set_pacing_rate`.
    fn set_pacing(&mut self, ack: &mut ModelAck<'_>) {
        if !self.has_seen_rtt && ack.srtt.is_some() {
            self.init_pacing(ack.cwnd, ack.srtt, ack.pacing);
        }
        let rate = paced(self.rate(), self.pacing_gain);
        if self.full.reached || ack.pacing.rate().is_none_or(|current| rate > current) {
            ack.pacing.set_rate(rate);
        }
    }

    /// The window is about to be set for a repair (`bbr_ssthresh`).
    pub(super) fn on_loss(&mut self, cwnd: u64) {
        self.window.save(cwnd, self.mode == Mode::ProbeRtt);
    }

    /// The retransmission timer expired (`bbr_set_state`).
    pub(super) fn on_timeout(&mut self, totals: Totals) {
        self.window.set_phase(RepairPhase::Loss);
        self.full.rate = OctetRate::ZERO;
        self.rounds.started = true;
        self.long_term.on_timeout(totals);
    }

    /// The repair was needless (`bbr_undo_cwnd`).
    pub(super) fn on_undo(&mut self) {
        self.full.rate = OctetRate::ZERO;
        self.full.rounds = 0;
        self.long_term.reset();
    }

    /// Data are sent after an idle time (`bbr_cwnd_event`).
    pub(super) fn on_restart(&mut self, restart: &mut ModelRestart<'_>) {
        if !restart.app_limited {
            return;
        }
        self.min_rtt.idle_restart = true;
        self.aggregation.begin(restart.now);
        match self.mode {
            // The queue is empty, so that the rate of the path is right at once.
            Mode::ProbeBw => restart.pacing.set_rate(paced(self.rate(), Gain::ONE)),
            Mode::ProbeRtt => self.check_probe_rtt_done(restart.now, &mut restart.cwnd),
            Mode::Startup | Mode::Drain => {}
        }
    }
}

/// `bbr_rate_bytes_per_sec`: 1 % below the rate, so that a queue drains (`bbr_pacing_margin_percent`).
fn paced(rate: OctetRate, gain: Gain) -> OctetRate {
    let octets = u128::from(rate.times(gain).octets_per_s()) * 99 / 100;
    OctetRate::from_octets_per_s(u64::try_from(octets).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
