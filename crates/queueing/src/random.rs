//! Random numbers whose stream is frozen: equal (seed, name) give equal numbers on every machine
//! and in every version.
//!
//! The generator is PCG XSL RR 128/64 (O'Neill 2014; `rand_pcg::Pcg64`). The distributions are
//! implemented here, since those of a library may change between versions.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

use lastmile_units::Duration;

/// One stream of random numbers. Every random process has a stream of its own, so that adding one
/// changes no other.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream called `name` of the run with this seed.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        let mut bytes = [0; 32];
        let mut state = seed ^ fnv1a(name.as_bytes());
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&split_mix(&mut state).to_le_bytes());
        }
        Self(Pcg64::from_seed(bytes))
    }

    /// A stream of its own for a part called `name` of the process that has this stream, which
    /// stays unchanged.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self::new(self.clone().bits(), name)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound`, each equally likely (Lemire's multiplication, without bias).
    ///
    /// # Panics
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a range must hold something");
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            // The low half of the product decides whether this draw belongs to the part that would count twice.
            let low = wide as u64;
            if low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// True with a probability of `parts_per_billion` / 10^9.
    pub fn chance(&mut self, parts_per_billion: u32) -> bool {
        parts_per_billion > 0 && self.below(1_000_000_000) < u64::from(parts_per_billion)
    }

    /// Number of consecutive false results of [`chance`](Self::chance) before a true one:
    /// geometric, at least n with a probability of `(1 - p)^n`. `None` for a probability of zero,
    /// which draws nothing.
    ///
    /// Inverse transform on 53 random bits, in software floating point as in
    /// [`exponential`](Self::exponential).
    pub fn geometric(&mut self, parts_per_billion: u32) -> Option<u64> {
        if parts_per_billion == 0 {
            return None;
        }
        Some(self.gap(f64::from(parts_per_billion.min(1_000_000_000)) / 1e9))
    }

    /// As [`geometric`](Self::geometric), for a probability above 0 and at most 1.
    pub(crate) fn gap(&mut self, probability: f64) -> u64 {
        (libm::log(self.uniform()) / libm::log1p(-probability)) as u64
    }

    /// A span from the exponential distribution with this mean, at least one picosecond.
    ///
    /// Inverse transform on 53 random bits, with a logarithm in software floating point that gives
    /// equal bits on every machine (IEEE 754 basic operations only).
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let span = -libm::log(self.uniform()) * mean.as_ps() as f64;
        Duration::from_ps((span as u64).max(1))
    }

    /// A number from the lognormal distribution: `e` to the power of a normal number with this mean
    /// and standard deviation.
    ///
    /// Box and Muller (1958); only one of its two numbers is used, so every draw takes two uniform
    /// numbers. Software floating point as in [`exponential`](Self::exponential).
    pub fn lognormal(&mut self, mean: f64, deviation: f64) -> f64 {
        libm::exp(mean + deviation * self.normal())
    }

    /// A number from the normal distribution of mean 0 and standard deviation 1, as
    /// [`lognormal`](Self::lognormal) draws it.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * core::f64::consts::PI * angle)
    }

    /// A number from the Pareto distribution, at least `least`: exceeds x with a probability of
    /// `(least / x)^shape`.
    pub fn pareto(&mut self, least: f64, shape: f64) -> f64 {
        least * libm::pow(self.uniform(), -shape.recip())
    }

    /// A number above 0 and at most 1, of 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// SplitMix64 (Steele, Lea, Flood 2014), which spreads a seed over a state.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_frozen() {
        let mut stream = Stream::new(1, "loss");
        let first: Vec<u64> = (0..3).map(|_| stream.bits()).collect();
        assert_eq!(first, FROZEN, "every published result that used a seed would change");
    }

    #[test]
    fn names_and_seeds_give_other_streams() {
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(1, "b").bits());
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(2, "a").bits());
    }

    #[test]
    fn exponential_spans_have_their_mean() {
        let mut stream = Stream::new(7, "poisson");
        let mean = Duration::from_ms(10);
        let sum: Duration = (0..100_000).map(|_| stream.exponential(mean)).sum();
        let ratio = sum.as_secs_f64() / 1_000.0;
        assert!((0.99..1.01).contains(&ratio), "mean off by a factor of {ratio}");
    }

    /// Geometric numbers have their probabilities, and the first ones are frozen.
    #[test]
    fn geometric_numbers_are_distributed_as_they_should() {
        assert_eq!(Stream::new(7, "gaps").geometric(0), None);
        let mut stream = Stream::new(7, "gaps");
        assert!((0..1_000).all(|_| stream.geometric(1_000_000_000) == Some(0)), "what is certain comes at once");
        let draws: Vec<u64> = (0..100_000).filter_map(|_| stream.geometric(100_000_000)).collect();
        for least in [1, 2, 7, 20] {
            let share = draws.iter().filter(|gap| **gap >= least).count() as f64 / 100_000.0;
            let expected = libm::pow(0.9, least as f64);
            let deviation = libm::sqrt(expected * (1.0 - expected) / 100_000.0);
            assert!((share - expected).abs() < 4.0 * deviation, "at least {least}: {share}, not {expected}");
        }
        let mut stream = Stream::new(1, "loss");
        let first: Vec<u64> = (0..3).filter_map(|_| stream.geometric(1_000_000)).collect();
        assert_eq!(first, FROZEN_GAPS);
    }

    /// The logarithm of each of [`FROZEN`], as a share of 2^64, over that of 0.999.
    const FROZEN_GAPS: [u64; 3] = [570, 452, 368];

    /// The median of a lognormal number is e^mean, and e^(mean + deviation) its 84.13th percentile.
    /// Half of all Pareto numbers exceed least * 2^(1 / shape).
    #[test]
    fn lognormal_and_pareto_numbers_have_their_percentiles() {
        let mut stream = Stream::new(7, "sizes");
        let share = |mut draw: Box<dyn FnMut() -> f64>, limit: f64| {
            (0..100_000).filter(|_| draw() > limit).count() as f64 / 100_000.0
        };
        let mut again = stream.clone();
        let median = share(Box::new(move || again.lognormal(8.35, 1.37)), libm::exp(8.35));
        assert!((median - 0.5).abs() < 0.005, "{median}");
        let mut again = stream.clone();
        let high = share(Box::new(move || again.lognormal(8.35, 1.37)), libm::exp(8.35 + 1.37));
        assert!((high - 0.158_7).abs() < 0.004, "{high}");
        let half = share(Box::new(move || stream.pareto(2.0, 1.1)), 2.0 * libm::pow(2.0, 1.1_f64.recip()));
        assert!((half - 0.5).abs() < 0.005, "{half}");
    }

    #[test]
    fn lognormal_and_pareto_numbers_are_frozen_bit_for_bit() {
        let mut stream = Stream::new(1, "loss");
        assert_eq!(stream.lognormal(6.17, 2.36).to_bits(), LOGNORMAL_BITS);
        assert_eq!(stream.pareto(2.0, 1.1).to_bits(), PARETO_BITS);
    }

    const LOGNORMAL_BITS: u64 = 4_636_133_071_916_432_151;
    const PARETO_BITS: u64 = 4_613_481_393_984_547_111;

    const FROZEN: [u64; 3] = [10_421_454_580_069_902_255, 11_734_186_607_432_745_982, 12_753_770_194_507_037_905];
}
