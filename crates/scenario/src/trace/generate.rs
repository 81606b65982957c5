//! Generated traces: lines whose capacity changes by a rule and by a seed.
//!
//! All times and qualities come from one stream of random numbers, named after the kind, and no
//! draw depends on a rate or a delay. Both directions of a line with equal parameters and seeds
//! therefore change at equal times and together.

use lastmile_queueing::line::trace::Step;
use lastmile_queueing::random::Stream;
use lastmile_units::{BitRate, Duration, Ratio};

/// The values of a step that the rule leaves out: those of the direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base {
    /// The rate; of a generated trace the largest.
    pub rate: Option<BitRate>,
    /// The delay; of a generated trace the least.
    pub delay: Duration,
    /// The share of packets lost.
    pub loss: Ratio,
}

/// What a trace says of its steps beside their rate. Where it says nothing, the direction has the value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Has {
    /// Steps have a delay of their own.
    pub delay: bool,
    /// Steps have a loss of their own.
    pub loss: bool,
}

/// A rule by which a line changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// A DSL modem loses synchronisation and trains again, to another rate. Times between retrains
    /// are exponential (a Poisson process); the initialisation of ITU-T G.992.3 and G.993.2 takes
    /// some 30 to 60 s.
    DslRetrain {
        /// Mean time between retrains.
        every: Duration,
        /// Shortest outage.
        outage_from: Duration,
        /// Longest outage.
        outage_to: Duration,
        /// Least rate after a retrain, as a share of the rate; the rate is drawn uniformly.
        least_rate: Ratio,
    },
    /// Satellite and beam are allocated anew at fixed times. Measured: every 15 s, with steps of
    /// rate and round trip (Mohan and others, "A Multifaceted Look at Starlink Performance", WWW
    /// 2024; Garcia and others, "Multi-Timescale Evaluation of Starlink Throughput", LEO-NET 2023).
    Starlink {
        /// Time between two allocations.
        every: Duration,
        /// Interruption at each.
        outage: Duration,
        /// Least rate, as a share of the rate; the rate is drawn uniformly.
        least_rate: Ratio,
        /// Largest addition to the delay, which is drawn uniformly.
        more_delay: Duration,
    },
    /// A radio cell: a Markov chain of levels on a logarithmic scale, from one level to a
    /// neighbour, each kept for an exponential time (the finite-state channel of Wang and Moayeri,
    /// IEEE Trans. Vehicular Technology 44, 1995).
    Cell {
        /// Levels of the rate.
        levels: u32,
        /// Mean time at a level.
        hold: Duration,
        /// The lowest level, as a share of the rate.
        least_rate: Ratio,
    },
}

impl Generator {
    /// The steps of the first `length`.
    ///
    /// # Errors
    /// A base without a rate, or a million steps and more.
    pub fn steps(&self, base: Base, length: Duration, seed: u64) -> Result<Vec<Step>, String> {
        const MOST: u64 = 1_000_000;
        let rate = base.rate.ok_or("a generated trace needs the rate of the direction, its largest")?;
        let (name, mean) = match self {
            Self::DslRetrain { every, .. } => ("dsl-retrain", *every),
            Self::Starlink { every, .. } => ("starlink", *every),
            Self::Cell { hold, .. } => ("cell", *hold),
        };
        if length.as_ps() / mean.as_ps().max(1) > MOST / 4 {
            return Err(format!("a length of {length} with a change every {mean} has too many steps"));
        }
        let mut steps = Making { base, rate, length, at: Duration::ZERO, steps: Vec::new() };
        let stream = Stream::new(seed, &format!("trace {name}"));
        match *self {
            Self::DslRetrain { every, outage_from, outage_to, least_rate } => {
                steps.retrains(stream, every, (outage_from, outage_to), least_rate);
            }
            Self::Starlink { every, outage, least_rate, more_delay } => {
                steps.reconfigurations(stream, every, outage, least_rate, more_delay);
            }
            Self::Cell { levels, hold, least_rate } => steps.levels(stream, levels, hold, least_rate),
        }
        Ok(steps.steps)
    }
}

/// A trace that is being made.
struct Making {
    base: Base,
    rate: BitRate,
    length: Duration,
    at: Duration,
    steps: Vec<Step>,
}

impl Making {
    /// Appends a step of this length and share of the rate, 0 for an outage, with more delay.
    /// False at the end of the trace.
    fn push(&mut self, length: Duration, share: f64, more_delay: Duration) -> bool {
        if self.at >= self.length {
            return false;
        }
        let rate = (share > 0.0).then(|| {
            let bps = (self.rate.as_bps() as f64 * share) as u64;
            BitRate::from_bps(bps.max(1)).unwrap_or(self.rate)
        });
        let Base { delay, loss, .. } = self.base;
        if length > Duration::ZERO {
            self.steps.push(Step { at: self.at, rate, delay: delay + more_delay, loss });
        }
        self.at += length;
        true
    }

    fn retrains(&mut self, mut stream: Stream, every: Duration, outage: (Duration, Duration), least: Ratio) {
        let spread = outage.1.saturating_sub(outage.0);
        loop {
            let (up, rate, down) = (stream.exponential(every), stream.uniform(), stream.uniform());
            let down = outage.0 + part(spread, down);
            if !self.push(up, between(least, rate), Duration::ZERO) || !self.push(down, 0.0, Duration::ZERO) {
                return;
            }
        }
    }

    fn reconfigurations(
        &mut self,
        mut stream: Stream,
        every: Duration,
        outage: Duration,
        least: Ratio,
        more_delay: Duration,
    ) {
        loop {
            let (rate, delay) = (between(least, stream.uniform()), part(more_delay, stream.uniform()));
            let up = every.saturating_sub(outage);
            // The interruption ends the interval, so that a trace begins with a rate.
            if !self.push(up, rate, delay) || !self.push(outage, 0.0, delay) {
                return;
            }
        }
    }

    fn levels(&mut self, mut stream: Stream, levels: u32, hold: Duration, least: Ratio) {
        let top = levels.saturating_sub(1);
        let mut level = stream.below(u64::from(levels.max(1))) as u32;
        loop {
            let height = f64::from(level) / f64::from(top.max(1));
            // From `least` at level 0 to 1 at the top, in equal ratios.
            let share = if top == 0 { 1.0 } else { libm::pow(least.as_f64(), 1.0 - height) };
            if !self.push(stream.exponential(hold), share, Duration::ZERO) {
                return;
            }
            let up = stream.below(2) == 1;
            level = match level {
                0 => 1.min(top),
                level if level == top => level - 1,
                level if up => level + 1,
                level => level - 1,
            };
        }
    }
}

/// A share of the rate between `least` and 1.
fn between(least: Ratio, uniform: f64) -> f64 {
    least.as_f64() + (1.0 - least.as_f64()) * uniform
}

fn part(span: Duration, share: f64) -> Duration {
    Duration::from_ps((span.as_ps() as f64 * share) as u64)
}
