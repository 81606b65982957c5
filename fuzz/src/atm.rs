//! ATM networks built from the input: VCs, buffers, discard policies, schedulers, contracts, and
//! packets through them.

/// Panics if a property of [`lastmile_atm::trial`] does not hold.
pub fn check(input: &[u8]) {
    lastmile_atm::trial::check(input);
}
