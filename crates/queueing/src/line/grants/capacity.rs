//! The bytes that fit into a span of time.

use lastmile_units::{BitRate, Duration};

const PS_PER_BYTE_AT_1_BPS: u128 = 8_000_000_000_000;

/// Whole bytes that `rate` sends in `span`.
pub(super) fn bytes_in(rate: BitRate, span: Duration) -> u64 {
    (u128::from(span.as_ps()) * u128::from(rate.as_bps()) / PS_PER_BYTE_AT_1_BPS) as u64
}
