//! PIE (proportional integral controller enhanced): drops or marks what arrives with a probability that holds
//! the wait at a target.
//!
//! Published: RFC 8033; tc-pie(8). Differs: the wait is that of the last packet that departed, by its time
//! stamp (section 4.3 allows it), and zero once the queue is empty, as in Linux. The probability is a
//! fixed-point number, so that runs are the same on every machine. Two of the largest packets are counted in
//! bytes on the wire, where the RFC counts bytes of packets. Drops are spread (section 5.4) and steps above
//! 10 % are capped (section 5.5), which the RFC leaves optional. While nothing waits the probability loses a
//! 64th a period, as in Linux; the RFC has 2 % and calls a 64th sufficient. Linux's extra step above 250 ms,
//! and the estimated departure rate of section 5.2, are not here. Cost: O(1) a packet, and O(1) for each
//! period since the packet before until the probability is steady.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, Limit, PacketCount, WireBytes};

use super::{Full, WireFifo};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// The parameters of PIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
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
    /// Capacity.
    pub limit: Limit,
    /// Marks packets of senders that understand it, in place of dropping them, while the probability is below 10 %.
    pub ecn: bool,
    /// The largest IP packet to expect: while at most two of them wait, nothing is dropped early.
    pub largest: ByteCount,
    /// Seed of the random numbers that decide.
    pub seed: u64,
}

impl Default for Config {
    /// 15 ms, 15 ms, 1/8 Hz, 5/4 Hz and 150 ms (RFC 8033, sections 4.1, 4.2 and 4.4); 1000 packets and no ECN
    /// (tc-pie(8)).
    fn default() -> Self {
        Self {
            target: Duration::from_ms(15),
            period: Duration::from_ms(15),
            alpha: 2,
            beta: 20,
            max_burst: Duration::from_ms(150),
            limit: Limit::Packets(PacketCount::new(1000)),
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
    #[error("a gain of {0} sixteenths per second; it is at most {max}", max = Config::LARGEST_GAIN)]
    Gain(u32),
}

impl Config {
    /// tc-pie(8): alpha and beta are from 0 to 32.
    pub const LARGEST_GAIN: u32 = 32;

    /// Refuses parameters with which PIE cannot work.
    ///
    /// # Errors
    /// A time of zero, or a gain above [`Config::LARGEST_GAIN`].
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

/// A probability of one.
const ONE: u64 = 1 << 56;
const PS_PER_S: i128 = 1_000_000_000_000;

/// `percent` / 100 as a probability.
const fn percent(percent: u64) -> u64 {
    ONE / 100 * percent
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Controller {
    probability: u64,
    /// The wait at the update before.
    wait_before: Duration,
    /// Time that is left in which nothing is dropped.
    burst_left: Duration,
}

impl Controller {
    /// One update of the probability, with the wait as of then.
    fn update(&mut self, config: &Config, wait: Duration) {
        let ps = |span: Duration| i128::from(span.as_ps());
        let error = i128::from(config.alpha) * (ps(wait) - ps(config.target));
        let trend = i128::from(config.beta) * (ps(wait) - ps(self.wait_before));
        let divisor = DIVISORS.iter().find(|(below, _)| self.probability < *below).map_or(1, |(_, divisor)| *divisor);
        let mut step = (error + trend) * i128::from(ONE) / (16 * PS_PER_S * divisor);
        if self.probability >= percent(10) {
            step = step.min(percent(2).into());
        }
        let mut probability = (i128::from(self.probability) + step).clamp(0, ONE.into()) as u64;
        if wait.is_zero() && self.wait_before.is_zero() {
            probability -= probability / 64;
        }
        self.probability = probability;
        self.burst_left = self.burst_left.saturating_sub(config.period);
        let short = config.target / 2;
        if probability == 0 && wait < short && self.wait_before < short {
            self.burst_left = config.max_burst;
        }
        self.wait_before = wait;
    }
}

/// A FIFO under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P: Packet> {
    config: Config,
    queue: WireFifo<P>,
    controller: Controller,
    /// When the probability is updated next. `None`: no packet has come.
    next_update: Option<Instant>,
    /// The wait of the last packet that departed; zero while nothing waits.
    wait: Duration,
    /// The sum of the probabilities of the packets since the last that was dropped or marked.
    accumulated: u64,
    random: Stream,
    /// Two of the largest packets.
    spared: WireBytes,
    dropped: u64,
    marked: u64,
    tally: Tally,
}

impl<P: Packet> Pie<P> {
    /// An empty queue. `None`: the limit is in cells, and `link_layer` sends none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        let largest = link_layer.on_wire(config.largest);
        Some(Self {
            config: *config,
            queue: WireFifo::new(config.limit, link_layer)?,
            controller: Controller { probability: 0, wait_before: Duration::ZERO, burst_left: config.max_burst },
            next_update: None,
            wait: Duration::ZERO,
            accumulated: 0,
            random: Stream::new(config.seed, "pie"),
            spared: largest + largest,
            dropped: 0,
            marked: 0,
            tally: Tally::default(),
        })
    }

    /// Makes the updates that are due.
    fn advance(&mut self, now: Instant) {
        let Some(mut due) = self.next_update else { return };
        while due <= now {
            let before = self.controller;
            self.controller.update(&self.config, self.wait);
            due = due.saturating_add(self.config.period);
            if self.controller == before && due <= now {
                // Nothing moves until a packet comes or departs.
                let periods = now.since(due) / self.config.period;
                due = due.saturating_add(self.config.period.saturating_mul(periods)).saturating_add(self.config.period);
            }
        }
        self.next_update = Some(due);
    }

    /// True if the packet that arrives is to be dropped or marked before the queue is full.
    fn signals(&mut self) -> bool {
        let Controller { probability, wait_before, burst_left } = self.controller;
        let calm = wait_before < self.config.target / 2 && probability < percent(20);
        if !burst_left.is_zero() || calm || self.queue.wire <= self.spared {
            return false;
        }
        self.accumulated = if probability == 0 { 0 } else { self.accumulated.saturating_add(probability) };
        if self.accumulated < percent(85) {
            return false;
        }
        self.accumulated >= percent(850) || self.random.bits() >> 8 < probability
    }
}

impl<P: Packet> Discipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        if self.next_update.is_none() {
            self.next_update = Some(now.saturating_add(self.config.period));
        }
        self.advance(now);
        let full = self.queue.refuses(&packet);
        if let Some(full) = full {
            let reason = match full {
                Full::TooLarge => DropReason::TooLarge,
                Full::NoSpace => DropReason::Tail,
            };
            *(if full == Full::NoSpace { &mut self.tally.tail } else { &mut self.tally.too_large }) += 1;
            drops.dropped(now, packet, reason);
            return;
        }
        if self.signals() {
            self.accumulated = 0;
            if self.config.ecn && self.controller.probability < percent(10) && packet.mark_ce() {
                self.marked += 1;
            } else {
                self.dropped += 1;
                drops.dropped(now, packet, DropReason::Aqm);
                return;
            }
        }
        self.queue.put(packet);
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        self.advance(now);
        let packet = self.queue.pop()?;
        self.wait = if self.queue.is_empty() { Duration::ZERO } else { now.since(packet.meta().arrived) };
        self.tally.sent(&packet);
        Some(packet)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.queue.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("pie", visit);
        for (name, value) in [("dropped_aqm", self.dropped), ("marked", self.marked)] {
            visit(Counter { path: "", kind: "pie", name, value });
        }
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(Self::check(self)?)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let pie = Pie::new(self, &site.environment.link_layer);
        Ok(Box::new(pie.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
