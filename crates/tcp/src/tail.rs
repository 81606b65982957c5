//! Tail loss probe: where no acknowledgement comes for two round trips, one more segment asks for one.
//!
//! Published: RFC 8985, section 7; details as in Linux (`tcp_early_retrans` = 3).
//! The probe is a new segment, beyond the congestion window if need be, or else the last one again. What comes back tells
//! by SACK which segments are missing, and RACK repairs them; otherwise only the retransmission timer would. If the last
//! segment itself was what was lost, the probe repaired it, and the window is reduced once that is certain.
//! Differs: the probe of two round trips is not put off by two ticks of the kernel's clock (2 to 20 ms). Where a single
//! segment is out, [`Config::min_rto`] is added for its delayed acknowledgement, as in Linux.
//! Cost: a dozen operations for each segment sent and each acknowledgement.

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::congestion::Style;
use crate::ranges::{Low, Range};
use crate::sender::{Alarm, Phase, Sender, Urgent};
use crate::timer::Timer;
use crate::transmit::Plan;

/// The probe that is out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub(crate) enum Probe {
    #[default]
    None,
    /// It has new data.
    New,
    /// It is the last segment again (TLP.is_retrans).
    Again,
}

impl Sender {
    /// Sets the timer for what is out: from now, or (`anew` false) from when the first segment went out.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, config: &Config, anew: bool) {
        let left = if anew { self.rtt.rto() } else { self.timeout_left(now) };
        let (alarm, span) = match self.probe_timeout(config) {
            Some(timeout) => (Alarm::Tail, timeout.min(left)),
            None => (Alarm::Timeout, left),
        };
        self.alarm = alarm;
        self.timer = Timer::at(config.deadline(now, span));
    }

    /// New data go out: if a probe would follow, then later.
    #[inline]
    pub(crate) fn put_probe_off(&mut self, now: Instant, config: &Config) {
        if let Some(timeout) = self.probe_timeout(config) {
            self.alarm = Alarm::Tail;
            self.timer = Timer::at(config.deadline(now, timeout.min(self.timeout_left(now))));
        }
    }

    /// What is left of the retransmission timeout, counted from when the first segment went out.
    #[inline]
    fn timeout_left(&self, now: Instant) -> Duration {
        self.rtt.rto().saturating_sub(self.trips.sent().first_age(now)).max(Duration::from_us(1))
    }

    /// RFC 8985, section 7.2: not in a repair, and not while something is SACKed.
    #[inline]
    fn probe_timeout(&self, config: &Config) -> Option<Duration> {
        let probes = config.tail_loss_probe && self.style == Style::Rack;
        if !probes || self.phase != Phase::Open || self.backoff > 0 || !self.rack.is_clean() {
            return None;
        }
        let twice = self.rtt.srtt()?.saturating_mul(2);
        let single = self.max - self.una <= u64::from(self.mss);
        Some(if single { Duration::from_ps(twice.as_ps().saturating_add(config.min_rto.as_ps())) } else { twice })
    }

    /// The probe timeout expired: RFC 8985, section 7.3. At most one probe is out.
    #[cold]
    pub(crate) fn on_probe_timeout(&mut self, now: Instant, config: &Config) {
        self.alarm = Alarm::Timeout;
        self.timer = Timer::at(config.deadline(now, self.timeout_left(now)));
        if self.rack.probe == Probe::None {
            self.urgent = Urgent::Tail;
        }
    }

    /// New data, as far as the receiver's window allows, or else the last segment.
    pub(crate) fn next_tail(&mut self, now: Instant, config: &Config) -> Option<Plan> {
        if self.max == self.una {
            return None;
        }
        let plan = match self.next_new() {
            Ok(plan) => {
                self.note_sent(now, config, plan);
                self.rack.probe = Probe::New;
                plan
            }
            Err(_) => {
                let range = self.last_segment();
                if !self.sacking {
                    self.sacking = true;
                    self.rack.begin(self.una);
                }
                self.send_again_by_time(now, range);
                self.last_sent = now;
                self.rack.probe = Probe::Again;
                Plan { start: range.start, end: range.end, again: true, probe: false }
            }
        };
        self.rack.probe_end = Low::of(self.max);
        // The retransmission timer runs from the probe on.
        self.set_rto(now, config);
        Some(plan)
    }

    /// As segments are full, but for the last.
    fn last_segment(&self) -> Range {
        let data_end = self.max.min(self.end);
        let odd = (data_end.max(2) - 2) % u64::from(self.mss) + 1;
        Range { start: (data_end - odd.min(data_end)).max(self.una), end: self.max }
    }

    /// RFC 8985, section 7.4.2: an acknowledgement of all that was out when the probe went. `duplicate`: it tells
    /// nothing new.
    #[cold]
    pub(crate) fn on_probe_answer(&mut self, config: &Config, duplicate: bool) {
        let beyond = self.rack.probe_end.ahead_of(self.una);
        if beyond > 0 {
            return;
        }
        match self.rack.probe {
            Probe::Again if beyond < 0 => {
                self.rack.probe = Probe::None;
                // The probe repaired a loss.
                if self.phase == Phase::Open {
                    self.congestion.on_ecn_echo(config, u32::from(self.mss));
                }
            }
            Probe::Again if !duplicate => {}
            Probe::Again | Probe::New | Probe::None => self.rack.probe = Probe::None,
        }
    }
}
