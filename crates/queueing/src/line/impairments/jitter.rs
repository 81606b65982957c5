//! Jitter: a delay that varies from packet to packet.
//!
//! The delay is the line's plus the spread times a deviate. The deviates are those of netem's
//! tables, by formula: uniform from -1 to 1; normal; Pareto of shape 3, shifted to mean 0 and scaled
//! by 4/3; Pareto-normal, three quarters of the one and a quarter of the other (`netem/pareto.c` and
//! `netem/paretonormal.c` of iproute2); or a table of one's own. As there, a deviate is at most
//! 32767/8192, about 4, either way.
//!
//! A correlation c makes the underlying normal number `c` times the last one plus
//! `sqrt(1 - c^2)` times a new one. The distribution stays as it is; the correlation of neighbours
//! is c for normal jitter, and at most 0.02 less for uniform jitter. Differs from netem, whose
//! average of old and new narrows the distribution.
//! A delay below zero counts as zero.

use std::sync::Arc;

use lastmile_units::{Duration, Ratio};

use crate::random::Stream;

/// The largest deviate of netem's tables, which are 16-bit numbers in units of 1/8192.
const LARGEST: f64 = 32_767.0 / SCALE;

/// Units of a deviate in netem's tables.
const SCALE: f64 = 8_192.0;

/// A delay that varies.
#[derive(Clone, PartialEq, Debug)]
pub struct Jitter {
    /// The span that a deviate of 1 stands for.
    pub spread: Duration,
    /// Correlation of neighbours.
    pub correlation: Ratio,
    /// How the deviates are distributed.
    pub distribution: Distribution,
}

impl Jitter {
    /// The least delay around `delay`.
    pub(super) fn least(&self, delay: Duration) -> Duration {
        let below = -self.distribution.least() * self.spread.as_ps() as f64;
        delay.saturating_sub(Duration::from_ps(below.max(0.0).ceil() as u64))
    }
}

/// The distribution of deviates.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// From -1 to 1.
    Uniform,
    /// Mean 0 and standard deviation 1.
    Normal,
    /// Pareto of shape 3, from -2/3 up.
    Pareto,
    /// A quarter of a normal and three quarters of a Pareto deviate.
    ParetoNormal,
    /// Values in ascending order, each equally likely, in units of 1/8192.
    Table(Arc<[i16]>),
}

impl Distribution {
    /// The least deviate.
    fn least(&self) -> f64 {
        match self {
            Self::Uniform => -1.0,
            Self::Normal => -LARGEST,
            Self::Pareto => -2.0 / 3.0,
            Self::ParetoNormal => -(LARGEST + 2.0) / 4.0,
            Self::Table(values) => f64::from(values.first().copied().unwrap_or(0)) / SCALE,
        }
    }

    /// The deviate of a normal number.
    fn deviate(&self, normal: f64) -> f64 {
        let deviate = match self {
            Self::Uniform => 2.0 * below(normal) - 1.0,
            Self::Normal => normal,
            Self::Pareto => pareto(normal),
            Self::ParetoNormal => (normal.clamp(-LARGEST, LARGEST) + 3.0 * pareto(normal).min(LARGEST)) / 4.0,
            Self::Table(values) => {
                let index = (below(normal) * values.len() as f64) as usize;
                f64::from(values[index.min(values.len() - 1)]) / SCALE
            }
        };
        deviate.clamp(-LARGEST, LARGEST)
    }
}

/// The probability that a normal number is below this one.
fn below(normal: f64) -> f64 {
    0.5 * libm::erfc(-normal * core::f64::consts::FRAC_1_SQRT_2)
}

/// The Pareto deviate at the quantile of this normal number.
fn pareto(normal: f64) -> f64 {
    4.0 / 3.0 * (1.0 / libm::cbrt(below(-normal)) - 1.5)
}

/// The deviations of a wire's delay.
#[derive(Debug)]
pub(super) struct Deviations {
    jitter: Jitter,
    correlation: f64,
    /// The share of a new normal number.
    fresh: f64,
    last: Option<f64>,
    stream: Stream,
}

impl Deviations {
    pub(super) fn new(jitter: Jitter, stream: Stream) -> Self {
        let correlation = jitter.correlation.as_f64();
        let fresh = libm::sqrt(1.0 - correlation * correlation);
        Self { jitter, correlation, fresh, last: None, stream }
    }

    /// The delay of the next packet, around `delay`.
    pub(super) fn next(&mut self, delay: Duration) -> Duration {
        let fresh = self.stream.normal();
        let normal = self.last.map_or(fresh, |last| self.correlation * last + self.fresh * fresh);
        self.last = Some(normal);
        let deviation = self.jitter.distribution.deviate(normal) * self.jitter.spread.as_ps() as f64;
        if deviation < 0.0 {
            delay.saturating_sub(Duration::from_ps(-deviation as u64))
        } else {
            delay + Duration::from_ps(deviation as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A deviate of 1 is 1 ms. Delays are at least `least_us`, which the lowest of normal numbers gives.
    #[test]
    fn the_least_delay_is_reached_and_not_passed() {
        let table = Distribution::Table([-4096, 0, 8192].into());
        let cases = [
            (Distribution::Uniform, 9_000.0),
            (Distribution::Normal, 10_000.0 - 32_767.0 / 8.192),
            (Distribution::Pareto, 10_000.0 - 2e3 / 3.0),
            (Distribution::ParetoNormal, 10_000.0 - (32_767.0 / 8.192 + 2e3) / 4.0),
            (table, 9_500.0),
        ];
        for (distribution, least_us) in cases {
            let jitter = Jitter { spread: Duration::from_ms(1), correlation: Ratio::ZERO, distribution };
            let least = jitter.least(Duration::from_ms(10));
            assert!((least.as_secs_f64() * 1e6 - least_us).abs() < 1e-3, "{:?}: {least}", jitter.distribution);
            let lowest = jitter.distribution.deviate(-9.0);
            assert!((lowest - jitter.distribution.least()).abs() < 1e-6, "{:?}: {lowest}", jitter.distribution);
            let all = (-900..=900).map(|tenths| jitter.distribution.deviate(f64::from(tenths) / 100.0));
            assert!(all.fold(f64::INFINITY, f64::min) >= jitter.distribution.least(), "{:?}", jitter.distribution);
        }
    }
}
