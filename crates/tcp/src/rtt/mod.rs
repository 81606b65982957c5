//! Round-trip time and retransmission timeout, by the rule that is set; each has a file of its own.
//!
//! Cost: a branch more than the rule.

mod linux;
mod rfc6298;

use lastmile_units::Duration;

use crate::Config;
use crate::config::Rto;
use linux::Linux;
use rfc6298::Rfc6298;

/// Where the stream stands when a round trip is measured, which tells one round from the next: offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// First octet that is not acknowledged.
    pub(crate) una: u64,
    /// One past the highest octet sent.
    pub(crate) max: u64,
}

impl Place {
    /// Once the SYN is acknowledged.
    pub(crate) const OPENED: Self = Self { una: 1, max: 1 };
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rtt {
    Rfc6298(Rfc6298),
    Linux(Linux),
}

impl Rtt {
    pub(crate) fn new(config: &Config) -> Self {
        match config.rto {
            Rto::Rfc6298 => Self::Rfc6298(Rfc6298::new(config)),
            Rto::Linux => Self::Linux(Linux::new(config)),
        }
    }

    /// Every acknowledgement measures, not one a round trip.
    #[inline]
    pub(crate) fn is_linux(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        match self {
            Self::Rfc6298(rtt) => rtt.srtt(),
            Self::Linux(rtt) => rtt.srtt(),
        }
    }

    /// The shortest round trip that was measured, in microseconds, where Linux's timer is kept.
    pub(crate) fn least_us(&self) -> Option<u32> {
        match self {
            Self::Rfc6298(_) => None,
            Self::Linux(rtt) => Some(rtt.least_us()),
        }
    }

    /// The shortest round trip that was measured; without Linux's timer the smoothed one stands for it.
    pub(crate) fn least(&self) -> Option<Duration> {
        match self {
            Self::Rfc6298(rtt) => rtt.srtt(),
            Self::Linux(rtt) if rtt.least_us() == u32::MAX => None,
            Self::Linux(rtt) => Some(Duration::from_us(u64::from(rtt.least_us()))),
        }
    }

    #[inline]
    pub(crate) fn rto(&self) -> Duration {
        match self {
            Self::Rfc6298(rtt) => rtt.rto(),
            Self::Linux(rtt) => rtt.rto(),
        }
    }

    #[inline]
    pub(crate) fn sample(&mut self, rtt: Duration, place: Place, config: &Config) {
        match self {
            Self::Rfc6298(state) => state.sample(rtt, config),
            Self::Linux(state) => state.sample(rtt, place, config),
        }
    }

    pub(crate) fn back_off(&mut self, config: &Config) {
        match self {
            Self::Rfc6298(rtt) => rtt.back_off(config),
            Self::Linux(rtt) => rtt.back_off(config),
        }
    }

    /// RFC 6298 (5.7): the timer expired awaiting the ACK of a SYN, so data begin with a timeout of 3 s at least,
    /// unless a measurement says better.
    pub(crate) fn after_lost_syn(&mut self) {
        if self.srtt().is_none() {
            match self {
                Self::Rfc6298(rtt) => rtt.set_rto(Duration::from_s(3)),
                Self::Linux(rtt) => rtt.set_rto(Duration::from_s(3)),
            }
        }
    }
}
