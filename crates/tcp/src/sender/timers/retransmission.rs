//! The retransmission timer: its start, and its expiry.
//!
//! Published: RFC 6298, section 5; RFC 5681, section 3.1; RFC 8985, section 6.3; RFC 5682 (F-RTO); RFC
//! 9293, section 3.8.3 (R2).
//! Cost: a store for each restart.

use lastmile_units::Instant;

use super::Alarm;
use crate::Config;
use crate::sender::Sender;
use crate::sender::repair::Style;
use crate::sender::window::Expiry;

impl Sender {
    /// RFC 6298 (5.1), (5.3): starts the retransmission timer.
    #[inline]
    pub(in crate::sender) fn set_rto(&mut self, now: Instant, config: &Config) {
        self.timers.start(Alarm::Retransmission, config.timers.deadline(now, self.rtt.rto()));
    }

    /// The retransmission timer expired with data or a FIN in flight. False: give up.
    #[cold]
    pub(super) fn on_retransmission_timer(&mut self, now: Instant, config: &Config) -> bool {
        let first = self.timers.backoff() == 0;
        if !self.timers.back_off(config.timers.max_retries) {
            return false;
        }
        self.stats.timeouts += 1;
        let mss = u32::from(self.mss);
        let (una, max) = (self.data.flight.una(), self.data.flight.max());
        let flight = u32::try_from(max - una).unwrap_or(u32::MAX);
        let expiry = match first && self.may_reduce(una) {
            false => Expiry::Answered,
            true if self.data.repair.in_recovery() => Expiry::InRecovery,
            true => Expiry::First,
        };
        if expiry == Expiry::First {
            self.keep_for_undo(config);
        }
        self.data.ecn.on_reduction(max);
        self.data.congestion.on_timeout(config, self.data.repair.style(), flight, mss, expiry);
        self.data.repair.on_timeout(max, config.repair.frto);
        self.data.urgent = None;
        self.rtt.abandon_timed_segment();
        match self.data.repair.style() {
            Style::Rack => {
                self.mark_lost_by_time(now);
                self.data.congestion.allow(self.in_flight() + u64::from(mss));
            }
            Style::Sack => self.data.flight.begin_scoreboard().on_timeout(una, max),
            Style::Tahoe | Style::Reno | Style::NewReno => self.data.flight.go_back(),
        }
        self.reset_model(now);
        // RFC 6298 (5.5) Back off the timer. (5.6) Start it.
        self.rtt.back_off(&config.timers);
        self.set_rto(now, config);
        true
    }

    /// RFC 8985, section 6.3: the first segment is lost, and so are all that were sent long enough ago.
    fn mark_lost_by_time(&mut self, now: Instant) {
        let una = self.data.flight.una();
        if self.data.flight.begin_by_transmissions() {
            self.data.repair.rack.begin(una);
        }
        let due_us = self.data.repair.rack.rtt_us().unwrap_or(self.rtt.srtt_us() as u32);
        self.data.repair.probe = None;
        let mut rate = self.data.rate.as_deref_mut();
        self.data.flight.transmissions_mut().expire(now, una, u32::from(self.mss), due_us, |range| {
            if let Some(rate) = &mut rate {
                rate.on_lost(range);
            }
        });
    }
}
