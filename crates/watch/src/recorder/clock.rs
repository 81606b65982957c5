//! The clocks of a machine: the wall clock may be set, and the monotonic one stands still in a
//! suspended machine.

use std::time::Duration;

use crate::sample::WallMs;
use crate::store::Retention;

/// A moment on the clocks of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The wall clock.
    pub wall_ms: WallMs,
    /// The monotonic clock, since any time.
    pub monotonic: Duration,
    /// The time that the machine has been suspended.
    pub suspended: Duration,
}

/// A difference of the clocks from which on the wall clock was set. NTP slews by at most 0.5 ms a second.
const STEP_MS: i64 = 250;
/// A wall clock that was not set for this long can be believed.
const STEADY: Duration = Duration::from_secs(3600);

/// Compares the clocks.
#[derive(Debug)]
pub(super) struct Watch {
    last: Moment,
    steady_since: Duration,
}

/// The differences since the last moment.
pub(super) struct Seen {
    /// The time on the monotonic clock.
    pub(super) span: Duration,
    /// The step by which the wall clock was set.
    pub(super) step_ms: Option<i64>,
    /// The time in which the machine was suspended.
    pub(super) suspended: Option<Duration>,
}

impl Watch {
    pub(super) const fn new(now: Moment) -> Self {
        Self { last: now, steady_since: now.monotonic }
    }

    pub(super) fn see(&mut self, now: Moment) -> Seen {
        let span = now.monotonic.saturating_sub(self.last.monotonic);
        let suspended = now.suspended.saturating_sub(self.last.suspended);
        let expected = i64::try_from((span + suspended).as_millis()).unwrap_or(i64::MAX);
        let step = now.wall_ms.saturating_sub(self.last.wall_ms).saturating_sub(expected);
        let step_ms = (step.abs() >= STEP_MS).then_some(step);
        if step_ms.is_some() {
            self.steady_since = now.monotonic;
        }
        self.last = now;
        Seen { span, step_ms, suspended: (suspended >= Duration::from_millis(1)).then_some(suspended) }
    }

    /// A clock that was wrong for a moment must not make years of rows too old.
    pub(super) fn retention(&self, now: Moment) -> Retention {
        if now.monotonic.saturating_sub(self.steady_since) >= STEADY {
            Retention::At(now.wall_ms)
        } else {
            Retention::Wait
        }
    }
}
