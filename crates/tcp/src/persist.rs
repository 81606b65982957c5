//! A shut window: probes that ask whether it has opened.
//!
//! Published: RFC 9293, sections 3.8.6.1 (probes) and 3.8.6.2.1 (the override timeout of a small window).
//! Differs: nothing; the interval between probes doubles up to [`Config::max_rto`].
//! Cost: nothing while the window is open.

use lastmile_units::Instant;

use crate::Config;
use crate::ranges::Low;
use crate::sender::{Sender, Urgent};
use crate::timer::Timer;
use crate::transmit::Plan;

impl Sender {
    /// One octet of new data beyond the shut window (RFC 9293, section 3.8.6.1), or what fits into one too small to be
    /// worth it otherwise (the override timeout of section 3.8.6.2.1).
    pub(crate) fn next_probe(&mut self, now: Instant, config: &Config) -> Option<Plan> {
        let start = self.max;
        let left = self.end.saturating_sub(start);
        let room = self.edge().saturating_sub(start);
        if left == 0 {
            return None;
        }
        if room == 0 {
            let rare = self.aside.rare();
            rare.window_probes += 1;
            // Not counted as sent: the receiver will mostly refuse it.
            rare.probed = true;
            return Some(Plan { start, end: start + 1, again: false, probe: true });
        }
        let end = start + left.min(room).min(u64::from(self.mss));
        self.nxt = Low::of(end);
        let plan = Plan { start, end, again: false, probe: false };
        self.note_sent(now, config, plan);
        Some(plan)
    }

    /// How far `ack` may lie beyond all that counts as sent: a probe's octet, if the receiver took it.
    #[inline]
    pub(crate) fn probed_beyond(&self, ack: u64) -> u64 {
        // Mostly it does not.
        if ack <= self.max { 0 } else { self.aside.get().map_or(0, |rare| u64::from(rare.probed)) }
    }

    /// New data are acknowledged, with or without a probe's octet.
    #[inline]
    pub(crate) fn end_probe(&mut self) {
        if self.aside.get().is_some_and(|rare| rare.probed) {
            self.aside.end(|rare| rare.probed = false);
        }
    }

    /// The probe timer fired. False: give up (R2 of RFC 9293, section 3.8.3).
    pub(crate) fn on_probe_timer(&mut self, now: Instant, config: &Config) -> bool {
        // A receiver that answers may keep its window shut as long as it likes: RFC 9293, section 3.8.6.1. Only those
        // that are not answered count.
        if self.backoff >= config.max_retries {
            return false;
        }
        self.backoff += 1;
        self.urgent = Urgent::Probe;
        // RFC 9293, section 3.8.6.1: the interval between probes grows exponentially. It is not the retransmission
        // timeout that doubles: no segment was lost.
        let rare = self.aside.rare();
        rare.probes = (rare.probes + 1).min(63);
        let interval = self.rtt.rto().saturating_mul(1 << rare.probes).min(config.max_rto.max(self.rtt.rto()));
        self.timer = Timer::at(config.deadline(now, interval));
        true
    }
}
