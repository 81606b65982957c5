//! Validation of the congestion window: each time the sender has sent what it may, it notes whether the window was
//! used.
//!
//! Published: RFC 7661 and RFC 2861, in the form of Linux that [`WindowUse`](super::window::WindowUse) names.
//! Cost: a dozen operations for each acknowledgement.

use lastmile_units::Instant;

use super::Sender;
use super::window::Outcome;
use crate::{Config, Limit};

impl Sender {
    /// The sender has sent what it may: whether the window was used decides on its growth, and one that was not used
    /// for a retransmission timeout shrinks.
    #[inline]
    pub(super) fn note_use(&mut self, now: Instant, config: &Config, limit: Limit) {
        let (cwnd, in_slow_start) = (self.data.congestion.cwnd(), self.data.congestion.in_slow_start());
        let limited = limit == Limit::CongestionWindow || self.in_flight() + u64::from(self.mss) > u64::from(cwnd);
        let (una, max, end) = (self.data.flight.una(), self.data.flight.max(), self.buffer.end());
        if !self.data.usage.on_sent(Outcome { una, max, end, limited }) {
            return;
        }
        if self.data.usage.is_full(cwnd, in_slow_start) {
            self.data.usage.restart(now);
        } else {
            self.yield_unused(now, config, limit);
        }
    }

    /// Only Linux's sender shrinks the window, and not while it repairs losses or an application waits for space.
    #[cold]
    fn yield_unused(&mut self, now: Instant, config: &Config, limit: Limit) {
        let (used, since) = self.data.usage.note_unused(self.data.flight.size());
        if !config.congestion.idle_restart
            || !self.data.repair.is_rack()
            || self.data.congestion.is_model()
            || now.since(since) < self.rtt.rto()
        {
            return;
        }
        if limit == Limit::Application && self.data.repair.is_open() {
            let least = config.congestion.initial_window.bytes(self.mss);
            let used = u32::try_from(used).unwrap_or(u32::MAX).max(least);
            self.data.congestion.yield_part(used, u32::from(self.mss));
        }
        self.data.usage.restart(now);
    }
}
