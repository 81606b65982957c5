//! Draws that equal seeds repeat.
//!
//! Published: SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
//! Cost: two multiplications, and a division for a bounded draw.

/// The step of the state, which is odd, so that it takes all values.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output that belongs to a state.
pub(crate) fn mix(state: u64) -> u64 {
    let word = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// The next number below `below`.
pub(crate) fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(STEP);
    mix(*state) % below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the authors' program for the seed 1234567.
    #[test]
    fn the_sequence_is_that_of_the_authors() {
        let mut state = 1_234_567;
        let drawn = [(); 3].map(|()| draw(&mut state, u64::MAX));
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
