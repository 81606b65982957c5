//! Bounds of a detection.

use lastmile_units::{ByteCount, Duration};

/// Bounds of a detection.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time by [`crate::train::Path::elapsed`] in which the detection ends.
    pub allowance: Duration,
    /// Most packets per second that the senders can send.
    pub packets_per_second: u32,
    /// Most packets of a train.
    pub packets: usize,
    /// Least probability of a name.
    pub sure: f64,
    /// Smallest IP packet of a train.
    pub smallest: ByteCount,
    /// Length of the overload that shows whether a rate stays.
    pub overload: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowance: Duration::from_s(175),
            packets_per_second: 60_000,
            packets: 65_000,
            sure: 0.999,
            smallest: ByteCount::new(64),
            overload: Duration::from_s(8),
        }
    }
}

impl Options {
    /// The smallest IP packet of a train, in bytes.
    pub(super) fn smallest(&self) -> u16 {
        u16::try_from(self.smallest.as_u64()).unwrap_or(64)
    }
}
