//! Meters, policers and shapers: conformance to a rate, and the treatment of packets that exceed
//! it.
//!
//! A meter decides on one packet at a time: `conform(now, size)` returns its [`Color`] and charges
//! it. Sizes are bytes on the wire. Time is exact, in integers: no long-run error accumulates. A
//! [`Policer`] acts on the color at once, a [`Tbf`] delays packets until they conform, and a
//! [`Drain`] also drains a queue in another device.

pub mod car;
mod color;
pub mod conditioner;
pub mod drain;
mod error;
pub mod gcra;
pub mod police;
pub mod policer;
pub mod srtcm;
pub mod tbf;
pub mod token_bucket;
pub mod trtcm;

use lastmile_units::{BitRate, Instant, WireBytes};

pub use car::Car;
pub use color::Color;
pub use conditioner::Conditioner;
pub use drain::Drain;
use error::fits;
pub use error::{Bucket, MeterError};
pub use gcra::Gcra;
pub use police::Police;
pub use policer::Policer;
pub use srtcm::SrTcm;
pub use tbf::Tbf;
pub use token_bucket::TokenBucket;
pub use trtcm::TrTcm;

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

    /// The rate, and the bytes beyond it, of the packets that are green, or `yellow` too if there is red: of any size.
    pub(crate) fn passes(&self, yellow: bool) -> (BitRate, WireBytes) {
        let both = |a: WireBytes, b: WireBytes| WireBytes::new(a.as_u64().saturating_add(b.as_u64()));
        match self {
            Self::TokenBucket { rate, burst } => (*rate, *burst),
            // A debt is at most the extended burst.
            Self::Car(car) => (car.rate, both(car.burst, car.extended)),
            Self::SrTcm(meter) => (meter.cir, if yellow { both(meter.cbs, meter.ebs) } else { meter.cbs }),
            Self::TrTcm(meter) if yellow => (meter.pir, meter.pbs),
            Self::TrTcm(meter) => (meter.cir, meter.cbs),
            Self::Gcra(gcra) => (gcra.rate, gcra.early()),
            Self::Police(police) => (police.rate, police.burst),
        }
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

#[cfg(test)]
mod tests;
