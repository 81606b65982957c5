//! The proportional-integral controller of [`super::Pie`], [`super::DocsisPie`], [`crate::fair::FqPie`] and
//! [`super::DualPi2`]: the step of a probability in one update, and the times of the updates.
//!
//! Published: RFC 8033, section 4.2; RFC 9332, appendix A. Differs: probabilities are fixed-point numbers, so
//! that runs are the same on every machine, and updates are made when the queue is next used, each with the
//! wait as of its time. Cost: O(1), and O(1) for each update since the call before until nothing changes.

use lastmile_units::{Duration, Instant};

/// A probability of one. Probabilities above one exist in DOCSIS-PIE, which scales them by the size of a packet.
pub(crate) const ONE: u64 = 1 << 56;
const PS_PER_S: i128 = 1_000_000_000_000;

/// `percent` / 100 as a probability.
pub(crate) const fn percent(percent: u64) -> u64 {
    ONE / 100 * percent
}

/// Gains, in parts of a hertz.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gains {
    /// The gain of the distance from the target.
    pub(crate) alpha: u32,
    /// The gain of the change since the previous update.
    pub(crate) beta: u32,
    /// Parts in a hertz.
    pub(crate) parts: u32,
}

impl Gains {
    /// The change of a probability in an update with this wait, after one with the wait `before`.
    pub(crate) fn step(self, target: Duration, wait: Duration, before: Duration) -> i128 {
        let ps = |span: Duration| i128::from(span.as_ps());
        let error = i128::from(self.alpha) * (ps(wait) - ps(target));
        let trend = i128::from(self.beta) * (ps(wait) - ps(before));
        (error + trend) * i128::from(ONE) / (i128::from(self.parts) * PS_PER_S)
    }
}

/// The times of the updates: one each period, the first a period after the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Clock {
    /// `None`: it has not started.
    next: Option<Instant>,
}

impl Clock {
    /// Starts the clock. True if it did not run.
    #[inline]
    pub(crate) fn start(&mut self, now: Instant, period: Duration) -> bool {
        if self.next.is_some() {
            return false;
        }
        self.next = Some(now.saturating_add(period));
        true
    }

    /// Makes the updates that are due: calls `update` with the time of each. `update` returns true if further
    /// updates would change nothing until the queue changes.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, period: Duration, update: impl FnMut(Instant) -> bool) {
        if let Some(due) = self.next.filter(|due| *due <= now) {
            self.next = Some(catch_up(due, now, period, update));
        }
    }

    #[cfg(test)]
    pub(crate) const fn next(self) -> Option<Instant> {
        self.next
    }
}

/// Makes the updates from `due` on, and returns the time of the next.
fn catch_up(mut due: Instant, now: Instant, period: Duration, mut update: impl FnMut(Instant) -> bool) -> Instant {
    while due <= now {
        let is_steady = update(due);
        due = due.saturating_add(period);
        if is_steady && due <= now {
            let periods = now.since(due) / period;
            due = due.saturating_add(period.saturating_mul(periods)).saturating_add(period);
        }
    }
    due
}
