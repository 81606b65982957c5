//! The persist timer: probes ask whether the peer's shut window has opened.
//!
//! Published: RFC 9293, sections 3.8.6.1 (probes) and 3.8.6.2.1 (the override timeout of a small window).
//! Differs: nothing; the interval between probes doubles up to `TimerConfig::max_rto`.
//! Cost: nothing while the window is open.

use lastmile_units::Instant;

use super::Alarm;
use crate::sender::{Plan, Sender, Urgent};
use crate::{Config, Limit};

impl Sender {
    /// RFC 9293, section 3.8.6.1: where the peer's window alone forbids to send, the first probe follows after one
    /// retransmission timeout.
    #[inline]
    pub(in crate::sender) fn await_window(&mut self, now: Instant, config: &Config, limit: Limit) {
        if limit == Limit::ReceiveWindow && self.data.flight.is_empty() && self.timers.deadline().is_none() {
            self.timers.start(Alarm::Persist, config.timers.deadline(now, self.rtt.rto()));
        }
    }

    /// The peer answers while its window is shut: it is only slow.
    pub(in crate::sender) fn on_window_probe_answer(&mut self) {
        self.timers.end_backoff();
        if self.peer.edge() > self.data.flight.max() {
            self.timers.stop();
            self.timers.end_window_probes();
            self.data.urgent = None;
        }
    }

    /// One octet of new data beyond the shut window (RFC 9293, section 3.8.6.1), or as many as fit into a
    /// window too small for a segment (the override timeout of section 3.8.6.2.1).
    pub(in crate::sender) fn next_window_probe(&mut self, now: Instant, config: &Config) -> Option<Plan> {
        let start = self.data.flight.max();
        let left = self.buffer.end().saturating_sub(start);
        let free = self.peer.edge().saturating_sub(start);
        if left == 0 {
            return None;
        }
        if free == 0 {
            self.data.stats.window_probes += 1;
            self.timers.on_probe_octet_sent();
            return Some(Plan { start, end: start + 1, again: false, probe: true });
        }
        let end = start + left.min(free).min(u64::from(self.mss));
        self.data.flight.set_nxt(end);
        let plan = Plan { start, end, again: false, probe: false };
        self.end_idle(now, plan);
        self.note_sent(now, config, plan);
        Some(plan)
    }

    /// The persist timer expired. False: give up (R2 of RFC 9293, section 3.8.3).
    pub(super) fn on_persist_timer(&mut self, now: Instant, config: &Config) -> bool {
        // RFC 9293, section 3.8.6.1: a peer that answers may keep its window shut. Only unanswered probes count.
        if !self.timers.back_off(config.timers.max_retries) {
            return false;
        }
        self.data.urgent = Some(Urgent::WindowProbe);
        // RFC 9293, section 3.8.6.1: the interval between probes grows exponentially. The retransmission
        // timeout does not double, since no segment was lost.
        let doublings = self.timers.count_window_probe();
        let rto = self.rtt.rto();
        let interval = rto.saturating_mul(1 << doublings).min(config.timers.max_rto.max(rto));
        self.timers.start(Alarm::Persist, config.timers.deadline(now, interval));
        true
    }
}
