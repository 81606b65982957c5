//! When a receiver sends acknowledgements.
//!
//! Published: RFC 9293, section 3.8.6.3 (delayed acknowledgements); RFC 5681, section 4.2. `quick_acks` has
//! Linux's rules.
//! Differs: every data segment counts towards `ack_every`, full-sized or not.
//! Cost: a few comparisons for each data segment.

use lastmile_units::{Duration, Instant};

use super::quick_acks::{Arrived, Pace, QuickAcks};
use crate::Config;

#[derive(Clone, Debug, Default)]
pub(crate) struct AckTiming {
    /// When the delayed acknowledgement is due, or the application reads.
    timer: Option<Instant>,
    /// Linux's rules (`AckConfig::quick_acks`), once data have arrived.
    quick: Option<Box<QuickAcks>>,
    /// An acknowledgement is due; one covers all data received.
    due: bool,
    /// Acknowledgements that must be sent one by one, since the peer counts duplicates.
    forced: u8,
    /// Data segments that no acknowledgement covers.
    unacked: u8,
}

impl AckTiming {
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        self.timer
    }

    #[inline]
    pub(crate) fn is_forced(&self) -> bool {
        self.forced > 0
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// An acknowledgement is to be sent now.
    #[inline]
    pub(crate) fn is_owed(&self) -> bool {
        self.due || self.forced > 0
    }

    /// An acknowledgement of its own is due.
    pub(crate) fn force(&mut self) {
        self.forced = self.forced.saturating_add(1);
    }

    pub(super) fn set_due(&mut self) {
        self.due = true;
    }

    /// The connection is over.
    pub(crate) fn cancel(&mut self) {
        (self.timer, self.due, self.forced) = (None, false, 0);
    }

    /// The state of Linux's rules.
    pub(super) fn quick(&mut self) -> &mut QuickAcks {
        self.quick.get_or_insert_default()
    }

    /// Data arrived in order: every `ack_every`-th segment is acknowledged, and each within the delay.
    #[inline]
    pub(super) fn on_in_order(&mut self, now: Instant, config: &Config, segments: u16) {
        if config.acks.quick_acks {
            return;
        }
        self.unacked = self.unacked.saturating_add(segments.min(255) as u8);
        if self.unacked >= config.acks.ack_every || config.acks.delayed_ack.is_zero() {
            self.due = true;
        } else if self.timer.is_none() {
            self.timer = Some(config.timers.deadline(now, config.acks.delayed_ack));
        }
    }

    /// Data arrived in order, where Linux's rules apply.
    pub(super) fn on_quick_data(&mut self, now: Instant, config: &Config, pace: Pace, arrived: Arrived) {
        let quick = self.quick();
        if quick.on_data(now, config, pace, arrived) {
            self.due = true;
        } else if arrived.lag.is_zero() {
            self.on_read(config, arrived.waiting);
        } else {
            quick.read_after(now, arrived.lag);
            self.timer = quick.next(config, arrived.waiting);
        }
    }

    /// The application reads all data; no acknowledgement covers the last `waiting` octets.
    fn on_read(&mut self, config: &Config, waiting: u32) {
        let quick = self.quick();
        if quick.on_read(config, waiting) {
            self.due = true;
        } else {
            self.timer = quick.next(config, waiting);
        }
    }

    /// A segment without new octets arrived.
    pub(super) fn on_duplicate(&mut self, config: &Config) {
        self.force();
        if config.acks.quick_acks {
            self.quick().on_duplicate(config);
        }
    }

    /// Data beyond a hole at `next` arrived. Linux answers several segments together, if the peer accepts
    /// SACK blocks.
    pub(super) fn on_early(&mut self, now: Instant, config: &Config, next: u64, sack: bool) {
        if !(config.acks.quick_acks && sack && self.quick().joins(next)) {
            self.force();
            self.due = true;
        } else if self.forced == 0 {
            let deadline = config.timers.deadline(now, self.quick().joined_for());
            self.timer = Some(self.timer.map_or(deadline, |timer| timer.min(deadline)));
        }
    }

    /// The timer may have expired.
    pub(super) fn on_timer(&mut self, now: Instant, config: &Config, waiting: u32, rto: Duration) {
        if self.timer.is_none_or(|timer| timer > now) {
            return;
        }
        self.timer = None;
        if !config.acks.quick_acks {
            self.due = true;
            return;
        }
        let quick = self.quick();
        if quick.awaits_read(now) {
            self.on_read(config, waiting);
        } else {
            quick.on_timer(rto);
            self.due = true;
        }
    }

    /// Data are sent.
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: Instant) {
        if let Some(quick) = &mut self.quick {
            quick.on_data_sent(now);
        }
    }

    /// A segment with an acknowledgement is sent.
    #[inline]
    pub(super) fn on_sent(&mut self) {
        if let Some(quick) = &mut self.quick
            && (self.due || self.timer.is_some())
        {
            quick.on_ack_sent();
        }
        (self.unacked, self.due, self.timer) = (0, false, None);
    }

    /// A pure acknowledgement is sent.
    #[inline]
    pub(super) fn on_forced_sent(&mut self) {
        self.forced = self.forced.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_only_sends_has_no_state_of_quick_acks() {
        let mut acks = AckTiming::default();
        acks.set_due();
        acks.on_data_sent(Instant::ZERO);
        acks.on_sent();
        assert!(acks.quick.is_none());
    }
}
