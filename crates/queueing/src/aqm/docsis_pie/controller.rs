//! The controller of DOCSIS-PIE: probability, states of burst protection, and the wait that a service flow's
//! rates predict (RFC 8034, appendix A; names in brackets are those of its pseudocode).

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use super::Config;
use crate::aqm::pi::{Clock, Gains, ONE, percent};
use crate::meter::TokenBucket;
use crate::random::Stream;

/// `INTERVAL`.
pub(super) const PERIOD: Duration = Duration::from_ms(16);
/// `A` and `B`: 0.25 and 2.5 per second.
const GAINS: Gains = Gains { alpha: 4, beta: 40, parts: 16 };
/// `MAX_BURST`: 150 ms less half a period.
pub(super) const MAX_BURST: Duration = Duration::from_ms(142);
/// `BURST_RESET_TIMEOUT`.
const BURST_RESET_TIMEOUT: Duration = Duration::from_s(1);
/// `MEAN_PKTSIZE` and `MIN_PKTSIZE`.
const MEAN_PACKET: u64 = 1024;
const MIN_PACKET: u64 = 64;
/// `LATENCY_LOW` and `LATENCY_HIGH`.
const LATENCY_LOW: Duration = Duration::from_ms(5);
const LATENCY_HIGH: Duration = Duration::from_ms(200);
/// `PROB_LOW` and `PROB_HIGH`: sums of probabilities below which no packet is dropped, and from which on one is.
const LOW: u64 = percent(85);
const HIGH: u64 = percent(850);
/// The largest probability, with which a packet of the least size has that of `PROB_LOW`.
pub(super) const LARGEST: u64 = LOW * (MEAN_PACKET / MIN_PACKET);

/// Below such a probability a step is multiplied by the first number and divided by the second (section 5.4).
const FACTORS: [(u64, i128, i128); 8] = [
    (ONE / 1_000_000, 1, 2048),
    (ONE / 100_000, 1, 512),
    (ONE / 10_000, 1, 128),
    (ONE / 1000, 1, 32),
    (ONE / 100, 1, 8),
    (ONE / 10, 1, 2),
    (ONE, 2, 1),
    (10 * ONE, 8, 1),
];
/// From the last of [`FACTORS`] on a step is multiplied by this.
const LAST_FACTOR: i128 = 32;

/// The state of the AQM (`aqm_state_`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum State {
    /// Nothing is dropped early until a third of the buffer is full.
    #[default]
    Inactive,
    /// The first drop begins a burst, which is then spared.
    Quiescent {
        /// For how long nothing has waited long (`burst_reset_`).
        quiet: Duration,
    },
    /// The controller decides.
    Active,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Controller {
    target: Duration,
    clock: Clock,
    pub(super) probability: u64,
    /// The wait at the update before (`qdelay_old_`).
    pub(super) wait_before: Duration,
    /// Time that is left in which nothing is dropped (`burst_allowance_`).
    pub(super) burst_left: Duration,
    pub(super) state: State,
    /// The sum of the probabilities of the packets since the last drop (`accu_prob_`).
    pub(super) accumulated: u64,
    bursts: u64,
}

impl Controller {
    pub(super) fn new(target: Duration) -> Self {
        Self {
            target,
            clock: Clock::default(),
            probability: 0,
            wait_before: Duration::ZERO,
            burst_left: Duration::ZERO,
            state: State::Inactive,
            accumulated: 0,
            bursts: 0,
        }
    }

    /// Bursts that were spared.
    pub(super) const fn bursts(&self) -> u64 {
        self.bursts
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.clock.start(now, PERIOD);
    }

    /// Makes the updates that are due, with the wait at each time of `wait`.
    pub(super) fn advance(&mut self, now: Instant, is_empty: bool, mut wait: impl FnMut(Instant) -> Duration) {
        let mut clock = self.clock;
        clock.advance(now, PERIOD, |due| {
            let before = *self;
            self.update(wait(due));
            is_empty && before == *self
        });
        self.clock = clock;
    }

    /// One update (`calculate_drop_prob`), with the wait as of then.
    pub(super) fn update(&mut self, wait: Duration) {
        if self.burst_left.is_zero() {
            self.probability = self.controlled(wait);
        } else {
            self.probability = 0;
            self.burst_left = self.burst_left.saturating_sub(PERIOD);
        }
        let short = self.target / 2;
        let is_quiet = wait < short && self.wait_before < short && self.probability == 0 && self.burst_left.is_zero();
        self.state = match self.state {
            State::Active if is_quiet => State::Quiescent { quiet: Duration::ZERO },
            State::Quiescent { quiet } if is_quiet && quiet + PERIOD > BURST_RESET_TIMEOUT => State::Inactive,
            State::Quiescent { quiet } if is_quiet => State::Quiescent { quiet: quiet + PERIOD },
            State::Quiescent { .. } => State::Quiescent { quiet: Duration::ZERO },
            state => state,
        };
        self.wait_before = wait;
    }

    /// The next probability outside of a burst.
    fn controlled(&self, wait: Duration) -> u64 {
        let (up, down) = FACTORS
            .iter()
            .find(|(below, ..)| self.probability < *below)
            .map_or((LAST_FACTOR, 1), |(_, up, down)| (*up, *down));
        let mut step = GAINS.step(self.target, wait, self.wait_before) * up / down;
        if self.probability >= percent(10) {
            step = step.min(percent(2).into());
        }
        let mut probability = i128::from(self.probability) + step;
        if wait < LATENCY_LOW && self.wait_before < LATENCY_LOW {
            probability = probability * 98 / 100;
        } else if wait > LATENCY_HIGH {
            probability += i128::from(percent(2));
        }
        probability.clamp(0, LARGEST.into()) as u64
    }

    /// True if the packet of this size that arrives is to be dropped before the buffer is full (`drop_early`).
    pub(super) fn drops(
        &mut self,
        size: WireBytes,
        backlog: WireBytes,
        is_third_full: bool,
        random: &mut Stream,
    ) -> bool {
        if !self.burst_left.is_zero() {
            return false;
        }
        if self.probability == 0 {
            self.accumulated = 0;
        }
        if self.state == State::Inactive {
            if !is_third_full {
                return false;
            }
            self.state = State::Quiescent { quiet: Duration::ZERO };
        }
        let scaled = u128::from(self.probability) * u128::from(size.as_u64()) / u128::from(MEAN_PACKET);
        let probability = scaled.min(LOW.into()) as u64;
        self.accumulated = self.accumulated.saturating_add(probability);
        let is_calm = self.wait_before < self.target / 2 && self.probability < percent(20);
        if is_calm || backlog.as_u64() <= 2 * MEAN_PACKET || self.accumulated < LOW {
            return false;
        }
        if self.accumulated < HIGH && random.bits() >> 8 >= probability {
            return false;
        }
        self.accumulated = 0;
        if matches!(self.state, State::Quiescent { .. }) {
            self.state = State::Active;
            self.burst_left = MAX_BURST;
            self.bursts += 1;
        }
        true
    }
}

/// The rates of the service flow, from which the wait follows (section 5.2).
#[derive(Clone, Debug)]
pub(super) struct ServiceFlow {
    sustained: BitRate,
    peak: BitRate,
    tokens: TokenBucket,
}

impl ServiceFlow {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            sustained: config.sustained,
            peak: config.peak,
            tokens: TokenBucket::new(config.sustained, config.burst),
        }
    }

    /// The wait of a packet that arrives behind `backlog`: the bytes with tokens depart at the peak rate, the
    /// rest at the sustained rate.
    pub(super) fn wait(&mut self, now: Instant, backlog: WireBytes) -> Duration {
        let at_peak = self.tokens.available(now).min(backlog);
        self.peak.time_for(at_peak) + self.sustained.time_for(backlog - at_peak)
    }

    /// A packet departs, with the tokens that there are.
    pub(super) fn sent(&mut self, now: Instant, size: WireBytes) {
        let available = self.tokens.available(now);
        self.tokens.take(now, size.min(available));
    }
}
