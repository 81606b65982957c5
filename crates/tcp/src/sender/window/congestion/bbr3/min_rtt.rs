//! The shortest round trip, and the phase that measures it anew.
//!
//! Published: draft-ietf-ccwg-bbr-05, section 5.3.4.

use lastmile_units::{Duration, Instant};

use super::super::model::ModelAck;
use super::{Bbr3, State};
use crate::sender::delivery_rate::RateSample;

/// `BBR.MinRTTFilterLen`, `BBR.ProbeRTTInterval`, `BBR.ProbeRTTDuration`.
const MIN_LASTS: Duration = Duration::from_s(10);
const PROBE_INTERVAL: Duration = Duration::from_s(5);
const PROBE_LASTS: Duration = Duration::from_ms(200);

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Trips {
    /// The shortest round trip of ten seconds, and of the time since the last probe.
    pub(super) least: Option<Duration>,
    at: Instant,
    recent: Option<Duration>,
    recent_at: Instant,
    /// The recent one is older than five seconds.
    expired: bool,
    /// When `PROBE_RTT` may end, once little enough is in flight, and whether a round has passed since.
    probe_ends: Option<Instant>,
    round_done: bool,
    /// The sender restarts after an idle time, which has drained the queue.
    pub(super) idle_restart: bool,
}

impl Trips {
    pub(super) fn begin(&mut self, now: Instant, srtt: Option<Duration>) {
        (self.least, self.recent) = (srtt, srtt);
        (self.at, self.recent_at) = (now, now);
    }

    /// `UpdateMinRTT`.
    pub(super) fn update(&mut self, sample: &RateSample) {
        let now = sample.now;
        self.expired = now > self.recent_at.saturating_add(PROBE_INTERVAL);
        if let Some(rtt) = sample.segment.and_then(|segment| segment.rtt)
            && (self.expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            (self.recent, self.recent_at) = (Some(rtt), now);
        }
        let old = now > self.at.saturating_add(MIN_LASTS);
        if old || self.recent.is_some_and(|recent| self.least.is_none_or(|least| recent < least)) {
            (self.least, self.at) = (self.recent, self.recent_at);
        }
    }

    pub(super) fn is_probe_done(&self, now: Instant) -> bool {
        self.probe_ends.is_some_and(|ends| now > ends)
    }
}

impl Bbr3 {
    /// `CheckProbeRTT`. True in `PROBE_RTT`.
    pub(super) fn check_probe_rtt(&mut self, ack: &mut ModelAck<'_>) -> bool {
        if self.state != State::ProbeRtt && self.trips.expired && !self.trips.idle_restart {
            self.save_window(ack.cwnd);
            self.state = State::ProbeRtt;
            self.trips.probe_ends = None;
            self.cycle.stop_probe();
            self.start_round(ack);
        }
        let in_probe = self.state == State::ProbeRtt;
        if in_probe {
            self.probe_rtt(ack);
        }
        if ack.sample.segment.is_some_and(|segment| segment.delivered > 0) {
            self.trips.idle_restart = false;
        }
        in_probe
    }

    /// `HandleProbeRTT`.
    fn probe_rtt(&mut self, ack: &mut ModelAck<'_>) {
        let now = ack.sample.now;
        if self.trips.probe_ends.is_none() {
            if ack.sample.in_flight <= self.probe_rtt_window(ack.mss) {
                self.trips.probe_ends = Some(now.saturating_add(PROBE_LASTS));
                self.trips.round_done = false;
                self.start_round(ack);
            }
            return;
        }
        self.trips.round_done |= self.rounds.started;
        if self.trips.round_done && self.trips.is_probe_done(now) {
            ack.cwnd = ack.cwnd.max(self.saved.prior);
            self.exit_probe_rtt(now, Some(ack));
        }
    }

    /// `ExitProbeRTT`: little is in flight, so that the flow cruises at once.
    pub(super) fn exit_probe_rtt(&mut self, now: Instant, ack: Option<&ModelAck<'_>>) {
        self.trips.recent_at = now;
        self.bounds.reset_short();
        if !self.full.reached {
            self.state = State::Startup;
            return;
        }
        match ack {
            Some(ack) => self.start_down(ack),
            None => self.begin_down(now),
        }
        self.state = State::Cruise;
    }
}
