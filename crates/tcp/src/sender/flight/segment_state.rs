//! The state of octets in flight: the time of their last transmission, or that they are SACKed.

use lastmile_units::{Duration, Instant};

/// The state of octets in flight (RFC 8985, section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SegmentState {
    /// The receiver has reported them in a SACK block.
    Sacked,
    Sent(Transmission),
}

/// The last transmission of octets that are not SACKed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transmission {
    /// Microseconds, modulo 2^32 (71 minutes).
    at_us: u32,
    pub(crate) retransmitted: bool,
    pub(crate) lost: bool,
}

/// Microseconds since the clock began, modulo 2^32.
#[inline]
pub(super) fn micros(now: Instant) -> u32 {
    (now.as_ps() / 1_000_000) as u32
}

impl Transmission {
    /// The first transmission.
    #[inline]
    pub(crate) fn first(now: Instant) -> Self {
        Self { at_us: micros(now), retransmitted: false, lost: false }
    }

    pub(crate) fn again(now: Instant) -> Self {
        Self { retransmitted: true, ..Self::first(now) }
    }

    /// Microseconds since it was sent.
    #[inline]
    pub(crate) fn age_us(self, now: Instant) -> u32 {
        micros(now).wrapping_sub(self.at_us)
    }

    /// When it was sent.
    pub(crate) fn at(self, now: Instant) -> Instant {
        Instant::from_ps(now.as_ps().saturating_sub(u64::from(self.age_us(now)) * 1_000_000))
    }

    #[inline]
    pub(super) fn age(self, now: Instant) -> Duration {
        Duration::from_us(u64::from(self.age_us(now)))
    }
}
