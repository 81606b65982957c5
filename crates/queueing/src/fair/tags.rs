//! Virtual time: what a member of weight 1 has been sent, in 2^-32 bytes on the wire.
//!
//! A tag has 128 bits. At 100 Gbit/s and weight 1 it grows by less than 2^66 in a second, so it lasts for 10^11 years.

/// By how much sending `size` bytes moves the tag of a member of this weight, and what the division leaves for the next time.
pub(super) fn span(size: u64, rest: u64, weight: u64) -> (u128, u64) {
    let work = (u128::from(size) << 32) + u128::from(rest);
    let weight = u128::from(weight);
    let rest = u64::try_from(work % weight).expect("below a weight of 64 bits");
    (work / weight, rest)
}
