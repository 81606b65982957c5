//! The base probability of PI2 (RFC 9332, appendix A.1, `dualpi2_update`).

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant};

use super::config::Config;
use super::queues::{Queue, Queues};
use crate::aqm::pi::{Clock, Gains, ONE};
use crate::random::Stream;

/// The base probability, and what it follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Controller {
    probability: u64,
    /// The longer wait of the two queues at the update before.
    wait_before: Duration,
    clock: Clock,
}

impl Controller {
    /// Makes the updates that are due. The first call starts the clock.
    #[inline]
    pub(super) fn advance<P: Packet>(&mut self, now: Instant, config: &Config, queues: &Queues<P>) {
        let mut clock = self.clock;
        clock.start(now, config.period);
        clock.advance(now, config.period, |due| {
            let before = (self.probability, self.wait_before);
            self.update(config, queues.wait(Queue::Classic, due).max(queues.wait(Queue::Shallow, due)));
            before == (self.probability, self.wait_before) && queues.is_empty()
        });
        self.clock = clock;
    }

    /// One update of the probability, with the wait as of then.
    pub(super) fn update(&mut self, config: &Config, wait: Duration) {
        let gains = Gains { alpha: config.alpha, beta: config.beta, parts: 256 };
        let step = gains.step(config.target, wait, self.wait_before);
        self.probability = (i128::from(self.probability) + step).clamp(0, ONE.into()) as u64;
        self.wait_before = wait;
    }

    /// True with `factor` times the base probability.
    pub(super) fn draws(self, random: &mut Stream, factor: u32) -> bool {
        self.probability > 0 && random.bits() >> 8 < self.probability.saturating_mul(factor.into())
    }

    /// True if marks cannot control the shallow queue: its probability has reached one.
    pub(super) fn is_overloaded(self, coupling: u32) -> bool {
        self.probability.saturating_mul(coupling.into()) > ONE
    }
}

#[cfg(test)]
impl Controller {
    pub(super) fn with(probability: u64, wait_before: Duration) -> Self {
        Self { probability, wait_before, clock: Clock::default() }
    }

    pub(super) const fn probability(self) -> u64 {
        self.probability
    }
}
