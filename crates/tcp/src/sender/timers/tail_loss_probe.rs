//! The tail loss probe: where no acknowledgement arrives for two round trips, one more segment asks for one.
//!
//! Published: RFC 8985, section 7; details as in Linux (`tcp_early_retrans` = 3).
//!
//! The probe is a new segment, beyond the congestion window if need be, or the last one once more. The
//! answer reports by SACK which segments are missing, and RACK repairs them; otherwise only the
//! retransmission timer would. If the last segment itself was lost, the probe replaced it, and the window
//! is reduced once that is certain.
//!
//! Differs: the probe timeout of two round trips is not extended by two ticks of the kernel's clock (2 to
//! 20 ms). Where a single segment is in flight, `TimerConfig::min_rto` is added for its delayed
//! acknowledgement, as in Linux. A FIN that was sent without data goes with the last data once more: receivers
//! here do not SACK a FIN alone.
//! Cost: a dozen operations for each segment sent and each acknowledgement.

use lastmile_units::{Duration, Instant};

use super::Alarm;
use crate::Config;
use crate::ranges::Range;
use crate::sender::repair::TailProbe;
use crate::sender::{Plan, Sender, Urgent};

impl Sender {
    /// Starts the timer for the octets in flight: from now, or (`anew` false) from the transmission of the
    /// first segment.
    #[inline]
    pub(in crate::sender) fn arm(&mut self, now: Instant, config: &Config, anew: bool) {
        let left = if anew { self.rtt.rto() } else { self.timeout_left(now) };
        match self.probe_timeout(config) {
            Some(timeout) => self.timers.start(Alarm::TailLossProbe, config.timers.deadline(now, timeout.min(left))),
            None => self.timers.start(Alarm::Retransmission, config.timers.deadline(now, left)),
        }
    }

    /// New data are sent: a probe would follow them, and is postponed.
    #[inline(always)]
    pub(in crate::sender) fn postpone_probe(&mut self, now: Instant, config: &Config) {
        if let Some(timeout) = self.probe_timeout(config) {
            let deadline = config.timers.deadline(now, timeout.min(self.timeout_left(now)));
            self.timers.start(Alarm::TailLossProbe, deadline);
        }
    }

    /// The rest of the retransmission timeout, counted from the transmission of the first segment.
    #[inline]
    fn timeout_left(&self, now: Instant) -> Duration {
        let age = self.data.flight.transmissions().first_age(now);
        age.map_or(Duration::ZERO, |age| self.rtt.rto().saturating_sub(age)).max(Duration::from_us(1))
    }

    /// RFC 8985, section 7.2: no probe in a repair, or while octets are SACKed.
    #[inline]
    fn probe_timeout(&self, config: &Config) -> Option<Duration> {
        let probes = config.repair.tail_loss_probe && self.data.repair.is_rack();
        let records = self.data.flight.transmissions();
        if !probes
            || !self.data.repair.is_open()
            || self.timers.backoff() > 0
            || records.sacked() > 0
            || records.lost() > 0
        {
            return None;
        }
        let twice = self.rtt.srtt()?.saturating_mul(2);
        let single = self.data.flight.size() <= u64::from(self.mss);
        Some(if single {
            Duration::from_ps(twice.as_ps().saturating_add(config.timers.min_rto.as_ps()))
        } else {
            twice
        })
    }

    /// RFC 8985, section 7.3: the probe timeout expired. At most one probe is in flight.
    #[cold]
    pub(super) fn on_probe_timer(&mut self, now: Instant, config: &Config) {
        self.timers.start(Alarm::Retransmission, config.timers.deadline(now, self.timeout_left(now)));
        if self.data.repair.probe.is_none() {
            self.data.urgent = Some(Urgent::TailLossProbe);
        }
    }

    /// The probe: new data if the peer's window admits them, or else the last segment.
    pub(in crate::sender) fn next_tail_loss_probe(&mut self, now: Instant, config: &Config) -> Option<Plan> {
        if self.data.flight.is_empty() {
            return None;
        }
        let (plan, retransmission) = match self.next_new() {
            Ok(plan) => {
                self.note_sent(now, config, plan);
                (plan, false)
            }
            Err(_) => {
                let range = self.last_segment();
                if self.data.flight.begin_by_transmissions() {
                    self.data.repair.rack.begin(self.data.flight.una());
                }
                let una = self.data.flight.una();
                self.data.flight.transmissions_mut().retransmit(now, una, range);
                let plan = Plan::retransmission(range);
                if self.data.pacer.is_some() {
                    self.note_paced(now, plan, range.len() as u32);
                }
                self.data.flight.on_sent(now);
                (plan, true)
            }
        };
        self.data.repair.probe = Some(TailProbe { end: self.data.flight.max(), retransmission });
        // The retransmission timer runs from the probe on.
        self.set_rto(now, config);
        Some(plan)
    }

    /// The last segment with data, and the FIN if it was sent.
    fn last_segment(&self) -> Range {
        let flight = &self.data.flight;
        Range { start: flight.last_start().max(flight.una()), end: flight.max() }
    }
}
