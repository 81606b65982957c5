//! The timers: loss by age, the probe timeout with its back-off, pacing, and acknowledgements that wait.
//!
//! Published: RFC 9002, sections 6.1.2 and 6.2, appendix A.8 and A.9.

use lastmile_units::{Duration, Instant};

use super::Endpoint;

/// RFC 9002, section 6.2.4: a probe timeout sends up to two packets.
const PROBES: u8 = 2;
/// Doublings of the probe timeout, so that it stays below a day.
const MOST_DOUBLINGS: u32 = 16;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Timers {
    /// When a packet is lost by its age.
    loss: Option<Instant>,
    /// Probe timeouts in a row.
    timeouts: u32,
    /// Probes to send.
    probes: u8,
    first_sample: Option<Instant>,
}

impl Timers {
    pub(super) fn set_loss(&mut self, at: Option<Instant>) {
        self.loss = at;
    }

    pub(super) fn end_backoff(&mut self) {
        self.timeouts = 0;
    }

    /// A round trip is measured.
    pub(super) fn note_sample(&mut self, now: Instant) {
        self.first_sample.get_or_insert(now);
    }

    pub(super) fn first_sample(&self) -> Option<Instant> {
        self.first_sample
    }

    pub(super) fn probes(&self) -> u8 {
        self.probes
    }

    pub(super) fn take_probe(&mut self) {
        self.probes = self.probes.saturating_sub(1);
    }
}

impl Endpoint {
    /// The timer fires. It may do so early.
    pub fn on_timer(&mut self, now: Instant) {
        self.controller.on_timer(now);
        if self.timers.loss.is_some_and(|at| at <= now) {
            self.find_losses_by_age(now);
        } else if self.probe_deadline().is_some_and(|at| at <= now) && self.timers.probes == 0 {
            self.timers.timeouts += 1;
            // A client without packets in flight shows the server that it is there (section 6.2.2.1).
            self.timers.probes = if self.sent.in_flight() == 0 { 1 } else { PROBES };
            self.stats.probe_timeouts += 1;
        }
    }

    /// The time of the next timer.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        // The acknowledgements of a blocked server wait for the client.
        let ack = self.received.deadline().filter(|_| !self.handshake.is_blocked());
        let loss = self.timers.loss.or_else(|| self.probe_deadline());
        [ack, loss, self.controller.wake()].into_iter().flatten().min()
    }

    /// RFC 9002, appendix A.8 (GetPtoTimeAndSpace).
    fn probe_deadline(&self) -> Option<Instant> {
        let handshake = &self.handshake;
        if !handshake.is_open() || handshake.is_blocked() {
            return None;
        }
        // Section 6.2.2.1: a client keeps the timer until the server has validated its address.
        let anxious = !handshake.is_server() && !handshake.is_confirmed() && self.handshake.out.offered() > 0;
        if self.sent.in_flight() == 0 && !anxious {
            return None;
        }
        let delay = if handshake.is_confirmed() { self.control.peer_delay(&self.config) } else { Duration::ZERO };
        let span = self.rtt.probe_timeout(delay).saturating_mul(1 << self.timers.timeouts.min(MOST_DOUBLINGS));
        Some(self.sent.last_eliciting().unwrap_or(handshake.began()).saturating_add(span))
    }
}
