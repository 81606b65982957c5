//! Meters, policers and shapers: conformance to a rate, and the treatment of packets that exceed
//! it.
//!
//! A meter decides on one packet at a time: `conform(now, size)` returns its [`Color`] and charges
//! it. Sizes are bytes on the wire. Time is exact, in integers: no long-run error accumulates. A
//! [`Policer`] acts on the color at once, a [`Tbf`] delays packets until they conform, and a
//! [`Drain`] also drains a queue in another device.

pub mod car;
pub mod conditioner;
pub mod drain;
pub mod gcra;
pub mod police;
pub mod policer;
pub mod srtcm;
pub mod tbf;
pub mod token_bucket;
pub mod trtcm;

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

pub use car::Car;
pub use conditioner::Conditioner;
pub use drain::Drain;
pub use gcra::Gcra;
pub use police::Police;
pub use policer::Policer;
pub use srtcm::SrTcm;
pub use tbf::Tbf;
pub use token_bucket::TokenBucket;
pub use trtcm::TrTcm;

/// Verdict of a meter, in the words of RFC 2697. Meters with two verdicts return green and yellow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Color {
    /// It conforms.
    Green,
    /// The packet exceeds the committed burst, and is within the excess burst or the peak rate.
    Yellow,
    /// The packet exceeds both bounds.
    Red,
}

impl Color {
    /// The verdict of a meter that has two.
    const fn conforms(yes: bool) -> Self {
        if yes { Self::Green } else { Self::Yellow }
    }
}

/// Parameters of a meter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Config {
    /// [`TokenBucket`].
    TokenBucket {
        /// Rate on the wire.
        rate: BitRate,
        /// Bytes on the wire that conform at once after a pause.
        burst: WireBytes,
    },
    /// [`Car`].
    Car(car::Config),
    /// [`SrTcm`].
    SrTcm(srtcm::Config),
    /// [`TrTcm`].
    TrTcm(trtcm::Config),
    /// [`Gcra`].
    Gcra(gcra::Config),
    /// [`Police`].
    Police(police::Config),
}

/// A bucket of a meter, by the parameter that gives its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    /// The only burst of a meter.
    Burst,
    /// The burst of a [`Car`] with its extension.
    Extended,
    /// The committed burst of RFC 2697 and 2698.
    Committed,
    /// The excess burst of RFC 2697.
    Excess,
    /// The peak burst of RFC 2698.
    Peak,
    /// The largest packet that a [`Police`] lets pass.
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
    /// Both bursts of an [`SrTcm`] are zero (RFC 2697, section 2).
    #[error("a committed and an excess burst of zero: at least one of them must be larger (RFC 2697)")]
    NoBurst,
    /// The extended burst of a [`Car`] is below its burst.
    #[error("an extended burst of {extended} is below the burst of {burst}; equal to it, nothing is ever borrowed")]
    ExtendedBelowBurst {
        /// The configured burst.
        burst: WireBytes,
        /// The configured extended burst.
        extended: WireBytes,
    },
    /// The peak rate of a [`TrTcm`] is below its committed rate (RFC 2698, section 2).
    #[error("a peak rate of {peak} is below the committed rate of {committed} (RFC 2698)")]
    PeakBelowCommitted {
        /// The configured peak rate.
        peak: BitRate,
        /// The configured committed rate.
        committed: BitRate,
    },
    /// The peak rate of a [`Police`] does not exceed its rate, so that its burst could never be
    /// used.
    #[error("a peak rate of {peak} is not above the rate of {rate}")]
    PeakNotAboveRate {
        /// The configured peak rate.
        peak: BitRate,
        /// The configured rate.
        rate: BitRate,
    },
    /// The tolerance of a [`Gcra`] covers fewer cells than the largest packet has.
    #[error("a tolerance of {tolerance} never lets the largest packet conform, whose cells need {needed}")]
    ToleranceTooShort {
        /// The configured tolerance.
        tolerance: Duration,
        /// The tolerance that the cells of the largest packet need, arriving at once.
        needed: Duration,
    },
    /// A [`Gcra`] on a line without cells.
    #[error("a meter of cells, but this line sends no cells")]
    NoCells,
}

/// A meter of any kind.
#[derive(Clone, Debug)]
pub(crate) enum Meter {
    TokenBucket(TokenBucket),
    Car(Car),
    SrTcm(SrTcm),
    TrTcm(TrTcm),
    Gcra(Gcra),
    Police(Police),
}

impl Config {
    /// Checks that a packet of `largest` bytes on the wire can conform.
    ///
    /// # Errors
    /// A burst or rate with which it never conforms.
    pub fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        match self {
            Self::TokenBucket { burst, .. } => fits(Bucket::Burst, *burst, largest),
            Self::Car(config) => config.check(largest),
            Self::SrTcm(config) => config.check(largest),
            Self::TrTcm(config) => config.check(largest),
            Self::Gcra(config) => config.check(largest),
            Self::Police(config) => config.check(largest),
        }
    }

    /// True for a meter that counts cells.
    #[must_use]
    pub const fn counts_cells(&self) -> bool {
        matches!(self, Self::Gcra(_))
    }

    /// True for a meter with three colors; others have green and yellow.
    #[must_use]
    pub const fn has_red(&self) -> bool {
        matches!(self, Self::SrTcm(_) | Self::TrTcm(_))
    }

    pub(crate) fn meter(&self) -> Meter {
        match self {
            Self::TokenBucket { rate, burst } => Meter::TokenBucket(TokenBucket::new(*rate, *burst)),
            Self::Car(config) => Meter::Car(Car::new(config)),
            Self::SrTcm(config) => Meter::SrTcm(SrTcm::new(config)),
            Self::TrTcm(config) => Meter::TrTcm(TrTcm::new(config)),
            Self::Gcra(config) => Meter::Gcra(Gcra::new(config)),
            Self::Police(config) => Meter::Police(Police::new(config)),
        }
    }
}

impl Meter {
    /// The color of a packet of `size` that arrives at `now` with the color `before`. Only the
    /// meters of RFC 2697 and 2698 use `before`.
    pub(crate) fn conform(&mut self, now: Instant, size: WireBytes, before: Color) -> Color {
        match self {
            Self::TokenBucket(bucket) => Color::conforms(bucket.take(now, size)),
            Self::Car(car) => car.conform(now, size),
            Self::SrTcm(meter) => meter.conform(now, size, before),
            Self::TrTcm(meter) => meter.conform(now, size, before),
            Self::Gcra(gcra) => gcra.conform(now, size),
            Self::Police(police) => police.conform(now, size),
        }
    }
}

fn fits(bucket: Bucket, burst: WireBytes, needed: WireBytes) -> Result<(), MeterError> {
    if burst < needed { Err(MeterError::BurstTooSmall { bucket, burst, needed }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
