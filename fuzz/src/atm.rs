//! Networks of ATM that the input makes up: VCs, buffers, discard policies, schedulers, contracts, and packets through them.

/// Panics when a property does not hold: what they are is said in [`lastmile_atm::trial`].
pub fn check(input: &[u8]) {
    lastmile_atm::trial::check(input);
}
