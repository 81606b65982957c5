//! A deadline in eight bytes.

use lastmile_units::Instant;

/// When something is due, or that nothing is. Eight bytes where `Option<Instant>` takes sixteen; the largest instant,
/// 213 days on, is given up for "off".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timer(Instant);

impl Default for Timer {
    fn default() -> Self {
        Self::OFF
    }
}

impl Timer {
    pub(crate) const OFF: Self = Self(Instant::MAX);

    pub(crate) fn at(deadline: Instant) -> Self {
        Self(deadline)
    }

    pub(crate) fn is_off(self) -> bool {
        self == Self::OFF
    }

    #[inline]
    pub(crate) fn is_due(self, now: Instant) -> bool {
        !self.is_off() && self.0 <= now
    }

    /// The earlier of two; one that is off never wins.
    #[inline]
    pub(crate) fn earlier(self, other: Self) -> Option<Instant> {
        let first = self.0.min(other.0);
        if first == Instant::MAX { None } else { Some(first) }
    }
}
