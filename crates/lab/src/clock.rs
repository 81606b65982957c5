//! The clock of a run on real hosts.

use lastmile_live::clock::{Clock, MonotonicClock};
use lastmile_units::Instant;

/// The emulator's clock, counted from when the traffic may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabClock {
    clock: MonotonicClock,
    origin: Instant,
}

impl LabClock {
    pub(crate) fn start(clock: MonotonicClock) -> Self {
        Self { clock, origin: clock.now() }
    }

    /// A time of the emulator's clock.
    pub(crate) fn of(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(self.origin)
    }
}

impl Clock for LabClock {
    fn now(&self) -> Instant {
        self.of(self.clock.now())
    }
}
