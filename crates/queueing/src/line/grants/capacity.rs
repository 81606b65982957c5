//! The bytes that fit into a span of time, and the rate that bytes in such a span are.

use std::sync::Arc;

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::line::trace::{Step, Steps};

const PS_PER_BYTE_AT_1_BPS: u128 = 8_000_000_000_000;

/// The rate of the wire, constant or over time.
#[derive(Clone)]
pub(super) struct Wire {
    pub(super) rate: BitRate,
    pub(super) trace: Option<Arc<Steps>>,
}

impl Wire {
    /// The rate at which all of the span can be sent: the least in it. An error is the first time after an outage.
    pub(super) fn rate_in(&self, start: Instant, end: Instant) -> Result<BitRate, Instant> {
        self.trace.as_ref().map_or(Ok(self.rate), |trace| trace.least_rate(start, end))
    }

    /// The first time from `at` on at which the wire has a rate.
    pub(super) fn up(&self, at: Instant) -> Instant {
        self.trace.as_ref().map_or(at, |trace| trace.sending(at).1)
    }

    /// The step of the trace that holds at `at`.
    pub(super) fn step(&self, at: Instant) -> Option<Step> {
        self.trace.as_ref().map(|trace| trace.at(trace.position(at)))
    }
}

/// Whole bytes that `rate` sends in `span`.
pub(super) fn bytes_in(rate: BitRate, span: Duration) -> u64 {
    (u128::from(span.as_ps()) * u128::from(rate.as_bps()) / PS_PER_BYTE_AT_1_BPS) as u64
}

/// Bits a second of `bytes` in each `span`, rounded up.
pub(super) fn rate_of(bytes: WireBytes, span: Duration) -> u64 {
    let bits = u128::from(bytes.as_u64()) * PS_PER_BYTE_AT_1_BPS;
    u64::try_from(bits.div_ceil(u128::from(span.as_ps()).max(1))).unwrap_or(u64::MAX)
}
