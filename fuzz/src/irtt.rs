//! Packets of an irtt server: without the right HMAC they are refused; behind one, a sample has a possible time.

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    lastmile_measure::hostile::irtt(input);
}
