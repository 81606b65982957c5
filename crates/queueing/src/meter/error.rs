//! Meters that would pass nothing, or whose parameters contradict each other.

use lastmile_units::{BitRate, Duration, WireBytes};

/// A bucket of a meter, by the parameter that gives its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    /// The only burst of a meter.
    Burst,
    /// The burst of a [`Car`](super::Car) with its extension.
    Extended,
    /// The committed burst of RFC 2697 and 2698.
    Committed,
    /// The excess burst of RFC 2697.
    Excess,
    /// The peak burst of RFC 2698.
    Peak,
    /// The largest packet that a [`Police`](super::Police) lets pass.
    Mtu,
}

impl core::fmt::Display for Bucket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Burst => "burst",
            Self::Extended => "burst with its extension",
            Self::Committed => "committed burst",
            Self::Excess => "excess burst",
            Self::Peak => "peak burst",
            Self::Mtu => "mtu",
        })
    }
}

/// A meter that would pass nothing, or whose parameters contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MeterError {
    /// The largest packet does not fit a burst.
    #[error("a {bucket} of {burst} never lets the largest packet conform, which takes {needed}")]
    BurstTooSmall {
        /// The bucket.
        bucket: Bucket,
        /// The configured burst.
        burst: WireBytes,
        /// Size of the largest packet on the wire.
        needed: WireBytes,
    },
    /// Both bursts of an [`SrTcm`](super::SrTcm) are zero (RFC 2697, section 2).
    #[error("a committed and an excess burst of zero: at least one of them must be larger (RFC 2697)")]
    NoBurst,
    /// The extended burst of a [`Car`](super::Car) is below its burst.
    #[error("an extended burst of {extended} is below the burst of {burst}; equal to it, nothing is ever borrowed")]
    ExtendedBelowBurst {
        /// The configured burst.
        burst: WireBytes,
        /// The configured extended burst.
        extended: WireBytes,
    },
    /// The peak rate of a [`TrTcm`](super::TrTcm) is below its committed rate (RFC 2698, section 2).
    #[error("a peak rate of {peak} is below the committed rate of {committed} (RFC 2698)")]
    PeakBelowCommitted {
        /// The configured peak rate.
        peak: BitRate,
        /// The configured committed rate.
        committed: BitRate,
    },
    /// The peak rate of a [`Police`](super::Police) does not exceed its rate, so that its burst could never be
    /// used.
    #[error("a peak rate of {peak} is not above the rate of {rate}")]
    PeakNotAboveRate {
        /// The configured peak rate.
        peak: BitRate,
        /// The configured rate.
        rate: BitRate,
    },
    /// The tolerance of a [`Gcra`](super::Gcra) covers fewer cells than the largest packet has.
    #[error("a tolerance of {tolerance} never lets the largest packet conform, whose cells need {needed}")]
    ToleranceTooShort {
        /// The configured tolerance.
        tolerance: Duration,
        /// The tolerance that the cells of the largest packet need, arriving at once.
        needed: Duration,
    },
    /// A [`Gcra`](super::Gcra) on a line without cells.
    #[error("a meter of cells, but this line sends no cells")]
    NoCells,
}

/// Refuses a bucket smaller than the largest packet.
pub(super) fn fits(bucket: Bucket, burst: WireBytes, needed: WireBytes) -> Result<(), MeterError> {
    if burst < needed { Err(MeterError::BurstTooSmall { bucket, burst, needed }) } else { Ok(()) }
}
