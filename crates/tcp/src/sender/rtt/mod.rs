//! The round-trip time and the retransmission timeout: one file for each rule of the timeout.
//!
//! Published: RFC 6298, section 3 (Karn's algorithm); RFC 7323, section 4.1 (timestamps).
//!
//! By RFC 6298 one segment a round trip is timed, and timestamps add measurements where Karn's algorithm
//! forbids one, since the echo shows which transmission is acknowledged. With Linux's rule every
//! acknowledgement measures, by the times of transmission that the flight records.
//!
//! Cost: a branch for each acknowledgement, and the rule.

mod linux;
mod rfc6298;

use std::num::{NonZeroU32, NonZeroU64};

use lastmile_units::{Duration, Instant};

use super::flight::Outstanding;
use crate::TimerConfig;
use crate::config::Rto;
use linux::Linux;
use rfc6298::Rfc6298;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rtt {
    rule: Rule,
    /// The segment that is timed: a SYN, or with RFC 6298 one segment a round trip.
    timed: Option<Timed>,
    /// With Linux's rule, the microseconds of the round trip of each octet that was acknowledged, summed.
    measured_us: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    Rfc6298(Rfc6298),
    Linux(Linux),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Timed {
    at: Instant,
    /// One past its last octet.
    end: NonZeroU64,
}

impl Rtt {
    pub(crate) fn new(timers: &TimerConfig) -> Self {
        let rule = match timers.rto {
            Rto::Rfc6298 => Rule::Rfc6298(Rfc6298::new(timers)),
            Rto::Linux => Rule::Linux(Linux::new(timers)),
        };
        Self { rule, timed: None, measured_us: 0 }
    }

    /// Every acknowledgement measures, not one a round trip.
    #[inline]
    pub(crate) fn is_linux(&self) -> bool {
        matches!(self.rule, Rule::Linux(_))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        match &self.rule {
            Rule::Rfc6298(rtt) => rtt.srtt(),
            Rule::Linux(rtt) => rtt.srtt(),
        }
    }

    /// The smoothed round trip in whole microseconds, zero before the first measurement.
    pub(crate) fn srtt_us(&self) -> u64 {
        self.srtt().unwrap_or_default().as_us()
    }

    /// The round trips of all acknowledged octets, summed in microseconds; zero by RFC 6298.
    pub(crate) fn measured_us(&self) -> u64 {
        self.measured_us
    }

    /// The shortest measured round trip in microseconds; only Linux's rule records it.
    pub(crate) fn least_us(&self) -> Option<u32> {
        match &self.rule {
            Rule::Rfc6298(_) => None,
            Rule::Linux(rtt) => rtt.least_us(),
        }
    }

    /// The shortest measured round trip, or the smoothed one where it is not recorded.
    pub(crate) fn least(&self) -> Option<Duration> {
        match &self.rule {
            Rule::Rfc6298(rtt) => rtt.srtt(),
            Rule::Linux(rtt) => rtt.least_us().map(|us| Duration::from_us(u64::from(us))),
        }
    }

    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        match &self.rule {
            Rule::Rfc6298(rtt) => rtt.rto(),
            Rule::Linux(rtt) => rtt.rto(),
        }
    }

    #[inline]
    pub(crate) fn sample(&mut self, rtt: Duration, outstanding: Outstanding, timers: &TimerConfig) {
        match &mut self.rule {
            Rule::Rfc6298(state) => state.sample(rtt, timers),
            Rule::Linux(state) => state.sample(rtt, outstanding, timers),
        }
    }

    pub(crate) fn back_off(&mut self, timers: &TimerConfig) {
        match &mut self.rule {
            Rule::Rfc6298(rtt) => rtt.back_off(timers),
            Rule::Linux(rtt) => rtt.back_off(timers),
        }
    }

    /// RFC 6298 (5.7): the timer expired for a SYN, so data begin with a timeout of 3 s unless there is a
    /// measurement.
    pub(crate) fn after_lost_syn(&mut self) {
        if self.srtt().is_none() {
            match &mut self.rule {
                Rule::Rfc6298(rtt) => rtt.set_rto(Duration::from_s(3)),
                Rule::Linux(rtt) => rtt.set_rto(Duration::from_s(3)),
            }
        }
    }

    /// A segment that ends before `end` is sent for the first time, and is timed unless another one is.
    #[inline]
    pub(crate) fn time_segment(&mut self, at: Instant, end: u64) {
        if self.timed.is_none() {
            self.timed = NonZeroU64::new(end).map(|end| Timed { at, end });
        }
    }

    /// Karn's algorithm, RFC 6298 (3): retransmitted segments are not measured.
    pub(crate) fn abandon_timed_segment(&mut self) {
        self.timed = None;
    }

    /// The SYN is acknowledged, and measured if it was sent once.
    pub(crate) fn on_syn_acked(&mut self, now: Instant, timers: &TimerConfig) {
        if let Some(timed) = self.timed.take() {
            self.sample(timers.measured(timed.at, now), Outstanding { una: 1, max: 1 }, timers);
        }
    }

    /// `acked` octets are acknowledged, `age` after their transmission where that is known.
    #[inline]
    pub(crate) fn add_trip(&mut self, acked: u64, age: Option<Duration>) {
        let us = age.map_or_else(|| self.srtt_us(), Duration::as_us);
        self.measured_us = self.measured_us.saturating_add(acked.saturating_mul(us));
    }

    /// New data are acknowledged. `age`: the time since their transmission, where Linux's rule finds one.
    /// `echoed`: the round trip by the timestamp echo, in ticks.
    #[inline]
    pub(crate) fn on_new_ack(
        &mut self,
        now: Instant,
        timers: &TimerConfig,
        outstanding: Outstanding,
        age: Option<Duration>,
        echoed: Option<NonZeroU32>,
    ) {
        let measured = if self.is_linux() {
            age.map(|age| timers.ticked(now, age)).or_else(|| timers.echoed(echoed))
        } else {
            match &self.timed {
                None => timers.echoed(echoed),
                Some(timed) if timed.end.get() <= outstanding.una => {
                    let measured = timers.measured(timed.at, now);
                    self.timed = None;
                    Some(measured)
                }
                Some(_) => None,
            }
        };
        if let Some(rtt) = measured {
            self.sample(rtt, outstanding, timers);
        }
    }
}
