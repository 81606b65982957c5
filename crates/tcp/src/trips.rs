//! What round trips are measured by: one segment at a time, or each.
//!
//! The handshake measures its SYN, and the timer of RFC 6298 one segment a round trip; Linux's timer, once the connection is
//! established, wants to know of each octet when it went out (`sent`).
//! Cost: a branch.

use lastmile_units::{Duration, Instant};

use crate::Config;
use crate::config::Rto;
use crate::ranges::Low;
use crate::sent::SentTimes;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Trips {
    One(Timed),
    Each(SentTimes),
}

/// A segment that is measured, or the last that was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Timed {
    pub(crate) at: Instant,
    /// One past its last octet.
    pub(crate) end: Low,
    /// It is not answered yet.
    pub(crate) running: bool,
}

impl Trips {
    /// Nothing is measured.
    pub(crate) fn new() -> Self {
        Self::One(Timed { at: Instant::ZERO, end: Low::of(0), running: false })
    }

    /// After a handshake whose first segment went out at `opened`.
    pub(crate) fn established(config: &Config, opened: Instant) -> Self {
        match config.rto {
            Rto::Linux => Self::Each(SentTimes::default()),
            Rto::Rfc6298 => Self::One(Timed { at: opened, end: Low::of(1), running: false }),
        }
    }

    /// Begins to measure a segment that ends before `end`.
    pub(crate) fn begin(&mut self, at: Instant, end: u64) {
        *self = Self::One(Timed { at, end: Low::of(end), running: true });
    }

    /// Karn's algorithm: what went out twice is not measured.
    pub(crate) fn give_up(&mut self) {
        if let Self::One(timed) = self {
            timed.running = false;
        }
    }

    /// The segment that is measured, if one is.
    pub(crate) fn running(&self) -> Option<&Timed> {
        match self {
            Self::One(timed) if timed.running => Some(timed),
            Self::One(_) | Self::Each(_) => None,
        }
    }

    /// The times at which all that is in flight went out.
    ///
    /// # Panics
    /// If they are not kept: only for Linux's timer, once established.
    #[inline]
    pub(crate) fn sent(&self) -> &SentTimes {
        match self {
            Self::Each(sent) => sent,
            Self::One(_) => unreachable!("times of sending are kept for Linux's timer"),
        }
    }

    /// The same, to change them.
    #[inline]
    pub(crate) fn sent_mut(&mut self) -> &mut SentTimes {
        match self {
            Self::Each(sent) => sent,
            Self::One(_) => unreachable!("times of sending are kept for Linux's timer"),
        }
    }

    /// The time since an octet in flight went out, if that was once and is known.
    pub(crate) fn age(&self, now: Instant, octet: u64) -> Option<Duration> {
        match self {
            Self::Each(sent) => sent.age(now, octet),
            Self::One(_) => None,
        }
    }

    /// One past the highest octet sent again, as far as it matters to what is measured.
    pub(crate) fn again(&self, una: u64) -> u64 {
        match self {
            Self::Each(sent) => sent.again(una),
            Self::One(_) => una,
        }
    }
}
