//! The timer of the sending half. One runs at a time; the event files of this folder handle its expiry.
//!
//! | file | timer |
//! | --- | --- |
//! | `retransmission` | retransmission timeout (RFC 6298) |
//! | `tail_loss_probe` | probe timeout (RFC 8985, section 7) |
//! | `reordering` | missing segments may only be reordered (RFC 8985, section 6.2) |
//! | `persist` | the peer's window is shut (RFC 9293, section 3.8.6.1) |
//!
//! The handshake and TIME-WAIT use the same timer; `endpoint` handles their expiry.
//! Cost: a store for each restart.

mod persist;
mod reordering;
mod retransmission;
mod tail_loss_probe;

use lastmile_units::Instant;

use super::Sender;
use crate::Config;

/// The purpose of the timer that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alarm {
    /// A SYN or SYN-ACK is to be retransmitted.
    Syn,
    Retransmission,
    /// Missing segments may only be reordered (RFC 8985, section 6.2).
    Reordering,
    /// No acknowledgement arrives (RFC 8985, section 7).
    TailLossProbe,
    /// The peer's window is shut.
    Persist,
    /// The connection leaves TIME-WAIT.
    TimeWait,
}

impl Sender {
    /// A timer of an established connection expired. False: the connection is given up (R2 of RFC 9293,
    /// section 3.8.3).
    pub(crate) fn on_timer(&mut self, now: Instant, config: &Config, alarm: Alarm) -> bool {
        match alarm {
            Alarm::Retransmission => return self.on_retransmission_timer(now, config),
            Alarm::Persist => return self.on_persist_timer(now, config),
            Alarm::Reordering => self.on_reordering_timer(now, config),
            Alarm::TailLossProbe => self.on_probe_timer(now, config),
            Alarm::Syn | Alarm::TimeWait => self.timers.stop(),
        }
        true
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Timers {
    /// The purpose of the timer that runs, and its expiry.
    alarm: Option<Alarm>,
    deadline: Instant,
    /// Expiries in a row without an answer.
    backoff: u8,
    /// Window probes into the same shut window.
    window_probes: u8,
    /// The octet of a window probe, beyond all octets that count as sent, may be acknowledged.
    probe_octet_sent: bool,
}

impl Timers {
    #[inline]
    pub(crate) fn start(&mut self, alarm: Alarm, deadline: Instant) {
        (self.alarm, self.deadline) = (Some(alarm), deadline);
    }

    #[inline]
    pub(crate) fn stop(&mut self) {
        self.alarm = None;
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.alarm.map(|_| self.deadline)
    }

    /// The purpose of the timer, if one runs.
    #[inline]
    pub(crate) fn alarm(&self) -> Option<Alarm> {
        self.alarm
    }

    /// The timer that has expired by `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<Alarm> {
        self.alarm.filter(|_| self.deadline <= now)
    }

    #[inline]
    pub(crate) fn backoff(&self) -> u8 {
        self.backoff
    }

    /// The timer expired without an answer. False: it has done so `most` times before, and the connection
    /// is given up.
    pub(crate) fn back_off(&mut self, most: u8) -> bool {
        let alive = self.backoff < most;
        self.backoff += u8::from(alive);
        alive
    }

    /// The peer has answered.
    #[inline]
    pub(crate) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Counts a window probe and returns their number, at most 63.
    fn count_window_probe(&mut self) -> u8 {
        self.window_probes = (self.window_probes + 1).min(63);
        self.window_probes
    }

    /// The peer's window has opened, or all octets are acknowledged.
    #[inline]
    pub(crate) fn end_window_probes(&mut self) {
        self.window_probes = 0;
    }

    /// The octet of a window probe is sent. It does not count as sent: most receivers refuse it.
    fn on_probe_octet_sent(&mut self) {
        self.probe_octet_sent = true;
    }

    /// Octets that may be acknowledged beyond those that count as sent.
    #[inline]
    pub(crate) fn probe_octets(&self) -> u64 {
        u64::from(self.probe_octet_sent)
    }

    /// New data are acknowledged, with or without the octet of a probe.
    #[inline]
    pub(crate) fn forget_probe_octet(&mut self) {
        self.probe_octet_sent = false;
    }
}
