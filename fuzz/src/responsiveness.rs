//! The configuration of a responsiveness server: it is refused with a short reason, or has URLs with hosts.

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    lastmile_measure::hostile::responsiveness(input);
}
