//! Bit errors: every bit on the wire is wrong with one probability, independently.
//!
//! The number of right bits before a wrong one is geometric, so a draw is needed per error, not per
//! bit, and a packet of n bits is spoilt with the probability `1 - (1 - p)^n` exactly. A spoilt
//! packet fails its checksum and is dropped at the far end.
//!
//! On cells the 48 bytes of payload count: one of their bits fails the CRC of the AAL5 frame, while
//! the header error control corrects a single wrong bit of a header (ITU-T I.432.1, section 4.3.2).
//! Differs: two errors in the header of one cell, which lose it, are not modelled (10^-6 of the
//! errors at a rate of 10^-6).

use crate::random::Stream;

/// The probability that a bit arrives wrong.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct BitErrorRate(f64);

impl BitErrorRate {
    /// `None` unless `rate` is above 0 and at most 0.5, where the bits carry nothing.
    #[must_use]
    pub fn new(rate: f64) -> Option<Self> {
        (rate > 0.0 && rate <= 0.5).then_some(Self(rate))
    }

    /// The probability.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0
    }
}

/// The errors of a wire.
#[derive(Debug)]
pub(super) struct Errors {
    rate: BitErrorRate,
    /// Right bits before the next wrong one.
    right: u64,
    stream: Stream,
}

impl Errors {
    pub(super) fn new(rate: BitErrorRate, mut stream: Stream) -> Self {
        let right = stream.gap(rate.0);
        Self { rate, right, stream }
    }

    /// Whether one of the next `bits` bits is wrong.
    pub(super) fn within(&mut self, bits: u64) -> bool {
        if bits <= self.right {
            self.right -= bits;
            return false;
        }
        // Errors have no memory: the bits behind the first wrong one need no count.
        self.right = self.stream.gap(self.rate.0);
        true
    }
}
