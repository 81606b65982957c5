//! The bytes that fit into a span of time, and the rate that bytes in such a span are.

use lastmile_units::{BitRate, Duration, WireBytes};

const PS_PER_BYTE_AT_1_BPS: u128 = 8_000_000_000_000;

/// Whole bytes that `rate` sends in `span`.
pub(super) fn bytes_in(rate: BitRate, span: Duration) -> u64 {
    (u128::from(span.as_ps()) * u128::from(rate.as_bps()) / PS_PER_BYTE_AT_1_BPS) as u64
}

/// Bits a second of `bytes` in each `span`, rounded up.
pub(super) fn rate_of(bytes: WireBytes, span: Duration) -> u64 {
    let bits = u128::from(bytes.as_u64()) * PS_PER_BYTE_AT_1_BPS;
    u64::try_from(bits.div_ceil(u128::from(span.as_ps()).max(1))).unwrap_or(u64::MAX)
}
