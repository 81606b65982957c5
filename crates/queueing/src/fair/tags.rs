//! Virtual time: the service of a member of weight 1, in 2^-32 bytes on the wire.
//!
//! A tag has 128 bits. At 100 Gbit/s and weight 1 it grows by less than 2^66 in a second, so it
//! lasts for 10^11 years.

/// The growth of the tag of a member of this weight when it sends `size` bytes, and the remainder
/// of the division, to be passed as `remainder` the next time.
pub(super) fn span(size: u64, remainder: u64, weight: u64) -> (u128, u64) {
    let work = (u128::from(size) << 32) + u128::from(remainder);
    let weight = u128::from(weight);
    let remainder = u64::try_from(work % weight).expect("below a weight of 64 bits");
    (work / weight, remainder)
}
