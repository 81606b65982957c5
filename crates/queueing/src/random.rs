//! Random numbers whose stream is frozen: equal (seed, name) give equal numbers on every machine and in every version.
//!
//! The generator is PCG XSL RR 128/64 (O'Neill 2014; `rand_pcg::Pcg64`). The distributions are written here, since those of
//! a library may change between versions.

use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;

use lastmile_units::Duration;

/// One source of random numbers. Every random thing has its own, so that adding one changes no other.
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

    /// A span from the exponential distribution with this mean, at least one picosecond.
    ///
    /// Inverse transform on 53 random bits, with a logarithm in software floating point that gives the same bits on every
    /// machine (IEEE 754 basic operations only).
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let uniform = ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        let span = -libm::log(uniform) * mean.as_ps() as f64;
        Duration::from_ps((span as u64).max(1))
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// SplitMix64 (Steele, Lea, Flood 2014), to spread a seed over a state.
fn split_mix(state: &mut u64) -> u64 {
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

    const FROZEN: [u64; 3] = [10_421_454_580_069_902_255, 11_734_186_607_432_745_982, 12_753_770_194_507_037_905];
}
