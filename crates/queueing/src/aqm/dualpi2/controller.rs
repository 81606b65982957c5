//! The base probability of PI2 (RFC 9332, appendix A.1, `dualpi2_update`).

use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant};

use super::config::Config;
use super::queues::{Queue, Queues};
use crate::random::Stream;

/// A probability of one.
pub(super) const ONE: u64 = 1 << 56;
const PS_PER_S: i128 = 1_000_000_000_000;

/// The base probability, and what it follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Controller {
    probability: u64,
    /// The longer wait of the two queues at the update before.
    wait_before: Duration,
    /// When the probability is updated next. `None`: no packet has come.
    next_update: Option<Instant>,
}

impl Controller {
    /// Makes the updates that are due.
    pub(super) fn advance<P: Packet>(&mut self, now: Instant, config: &Config, queues: &Queues<P>) {
        let Some(mut due) = self.next_update else {
            self.next_update = Some(now.saturating_add(config.period));
            return;
        };
        while due <= now {
            let before = *self;
            self.update(config, queues.wait(Queue::Classic, due).max(queues.wait(Queue::Shallow, due)));
            due = due.saturating_add(config.period);
            if *self == before && queues.is_empty() && due <= now {
                // Nothing moves until a packet comes.
                let periods = now.since(due) / config.period;
                due = due.saturating_add(config.period.saturating_mul(periods)).saturating_add(config.period);
            }
        }
        self.next_update = Some(due);
    }

    /// One update of the probability, with the wait as of then.
    pub(super) fn update(&mut self, config: &Config, wait: Duration) {
        let ps = |span: Duration| i128::from(span.as_ps());
        let error = i128::from(config.alpha) * (ps(wait) - ps(config.target));
        let trend = i128::from(config.beta) * (ps(wait) - ps(self.wait_before));
        let step = (error + trend) * i128::from(ONE) / (256 * PS_PER_S);
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
        Self { probability, wait_before, next_update: None }
    }

    pub(super) const fn probability(self) -> u64 {
        self.probability
    }
}
