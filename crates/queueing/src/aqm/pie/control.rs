//! The control of one queue under PIE: its probability, and the packets that it selects. [`super::Pie`] has one,
//! [`crate::fair::FqPie`] one for each flow.

use lastmile_units::{ByteCount, Duration, Instant, WireBytes};

use crate::aqm::pi::{Clock, Gains, ONE, percent};
use crate::random::Stream;
use crate::spec::Site;

/// The parameters of the control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// The wait that the controller aims at (`QDELAY_REF`).
    pub target: Duration,
    /// The time between two updates of the probability (`T_UPDATE`).
    pub period: Duration,
    /// Gain of the distance from the target, in sixteenths per second.
    pub alpha: u32,
    /// Gain of the change since the update before, in sixteenths per second.
    pub beta: u32,
    /// Time after a quiet phase in which nothing is dropped (`MAX_BURST`).
    pub max_burst: Duration,
    /// Marks packets of senders that understand it, in place of dropping them, while the probability is low.
    pub ecn: bool,
    /// The largest IP packet to expect: while at most two of them wait, nothing is dropped early.
    pub largest: ByteCount,
    /// Seed of the random numbers that decide.
    pub seed: u64,
}

impl Default for Parameters {
    /// 15 ms, 15 ms, 1/8 Hz, 5/4 Hz and 150 ms (RFC 8033, sections 4.1, 4.2 and 4.4); no ECN (tc-pie(8)).
    fn default() -> Self {
        Self {
            target: Duration::from_ms(15),
            period: Duration::from_ms(15),
            alpha: 2,
            beta: 20,
            max_burst: Duration::from_ms(150),
            ecn: false,
            largest: ByteCount::new(1500),
            seed: 1,
        }
    }
}

/// Parameters with which PIE cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PieError {
    /// Every packet would wait too long.
    #[error("a target of zero: no queue could reach it; RFC 8033 has 15 ms")]
    ZeroTarget,
    /// The probability would be updated all the time.
    #[error("a time of zero between updates; RFC 8033 has 15 ms")]
    ZeroPeriod,
    /// A gain above that of tc-pie(8).
    #[error("a gain of {0} sixteenths per second; it is at most {max}", max = Parameters::LARGEST_GAIN)]
    Gain(u32),
}

impl Parameters {
    /// tc-pie(8): alpha and beta are from 0 to 32.
    pub const LARGEST_GAIN: u32 = 32;

    /// These parameters, with the seed of the discipline at `site`.
    pub(crate) fn seeded(self, site: &Site<'_>) -> Self {
        Self { seed: site.seed(self.seed), ..self }
    }

    /// Refuses parameters with which PIE cannot work.
    ///
    /// # Errors
    /// A time of zero, or a gain above [`Parameters::LARGEST_GAIN`].
    pub fn check(&self) -> Result<(), PieError> {
        if self.target.is_zero() {
            return Err(PieError::ZeroTarget);
        }
        if self.period.is_zero() {
            return Err(PieError::ZeroPeriod);
        }
        match self.alpha.max(self.beta) {
            gain if gain > Self::LARGEST_GAIN => Err(PieError::Gain(gain)),
            _ => Ok(()),
        }
    }
}

/// Below such a probability a step is divided by so much (RFC 8033, section 4.2).
const DIVISORS: [(u64, i128); 6] = [
    (ONE / 1_000_000, 2048),
    (ONE / 100_000, 512),
    (ONE / 10_000, 128),
    (ONE / 1000, 32),
    (ONE / 100, 8),
    (ONE / 10, 2),
];

/// The controller: the probability, and what it follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Controller {
    pub(super) probability: u64,
    /// The wait at the update before.
    pub(super) wait_before: Duration,
    /// Time that is left in which nothing is dropped.
    pub(super) burst_left: Duration,
}

impl Controller {
    /// One update of the probability, with the wait as of then.
    pub(super) fn update(&mut self, parameters: &Parameters, wait: Duration) {
        let gains = Gains { alpha: parameters.alpha, beta: parameters.beta, parts: 16 };
        let divisor = DIVISORS.iter().find(|(below, _)| self.probability < *below).map_or(1, |(_, divisor)| *divisor);
        let mut step = gains.step(parameters.target, wait, self.wait_before) / divisor;
        if self.probability >= percent(10) {
            step = step.min(percent(2).into());
        }
        let mut probability = (i128::from(self.probability) + step).clamp(0, ONE.into()) as u64;
        if wait.is_zero() && self.wait_before.is_zero() {
            probability -= probability / 64;
        }
        self.probability = probability;
        self.burst_left = self.burst_left.saturating_sub(parameters.period);
        let short = parameters.target / 2;
        if probability == 0 && wait < short && self.wait_before < short {
            self.burst_left = parameters.max_burst;
        }
        self.wait_before = wait;
    }
}

/// The control of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Control {
    pub(super) controller: Controller,
    pub(super) clock: Clock,
    /// The wait of the last packet that departed; zero while nothing waits.
    wait: Duration,
    /// The sum of the probabilities of the packets since the last that was dropped or marked.
    pub(super) accumulated: u64,
}

impl Control {
    /// Starts with the first packet, which begins a burst.
    #[inline]
    pub(crate) fn start(&mut self, now: Instant, parameters: &Parameters) {
        if self.clock.start(now, parameters.period) {
            self.controller.burst_left = parameters.max_burst;
        }
    }

    /// Makes the updates that are due.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, parameters: &Parameters) {
        let Self { controller, clock, wait, .. } = self;
        clock.advance(now, parameters.period, |_| {
            let before = *controller;
            controller.update(parameters, *wait);
            *controller == before
        });
    }

    /// True if the packet that arrives in a queue of `backlog` is to be dropped or marked. `spared` are two of the
    /// largest packets.
    pub(crate) fn selects(
        &mut self,
        parameters: &Parameters,
        backlog: WireBytes,
        spared: WireBytes,
        random: &mut Stream,
    ) -> bool {
        let Controller { probability, wait_before, burst_left } = self.controller;
        let calm = wait_before < parameters.target / 2 && probability < percent(20);
        if !burst_left.is_zero() || calm || backlog <= spared {
            return false;
        }
        self.accumulated = if probability == 0 { 0 } else { self.accumulated.saturating_add(probability) };
        let selected =
            self.accumulated >= percent(85) && (self.accumulated >= percent(850) || random.bits() >> 8 < probability);
        if selected {
            self.accumulated = 0;
        }
        selected
    }

    /// True while a selected packet is marked in place of dropped.
    pub(crate) const fn marks_below(&self, probability: u64) -> bool {
        self.controller.probability < probability
    }

    /// A packet that arrived at `arrived` departs.
    #[inline]
    pub(crate) fn departed(&mut self, now: Instant, arrived: Instant, is_empty: bool) {
        self.wait = if is_empty { Duration::ZERO } else { now.since(arrived) };
    }
}
