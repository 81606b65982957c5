//! A chance with a memory: netem's ratio with a correlation.
//!
//! A chain of two states: after a hit the next one has the probability `c + (1 - c) p`, after a
//! miss `(1 - c) p`. The share of hits is exactly `p`, and the correlation of neighbours exactly
//! `c`. netem instead averages the last random number with a new one, which draws numbers towards
//! one half, so that a rare event hardly ever happens with a high correlation (tc-netem(8) warns).

use lastmile_units::Ratio;

use crate::random::Stream;

/// A share of packets, and the correlation of consecutive packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance {
    /// The share of all packets.
    pub share: Ratio,
    /// The correlation of neighbours.
    pub correlation: Ratio,
}

impl Chance {
    /// Packets that do not depend on each other.
    #[must_use]
    pub const fn independent(share: Ratio) -> Self {
        Self { share, correlation: Ratio::ZERO }
    }
}

/// A sequence of hits and misses.
#[derive(Debug)]
pub(super) struct Draws {
    after_hit: u32,
    after_miss: u32,
    /// The probability of the next hit, in parts per billion.
    next: u32,
    stream: Stream,
}

impl Draws {
    pub(super) fn new(chance: Chance, stream: Stream) -> Self {
        let (share, correlation) =
            (chance.share.as_parts_per_billion(), u64::from(chance.correlation.as_parts_per_billion()));
        // At most 10^9, as a part of `share`.
        let after_miss = share - chance.correlation.of(u64::from(share)) as u32;
        let after_hit = (u64::from(after_miss) + correlation).min(1_000_000_000) as u32;
        Self { after_hit, after_miss, next: share, stream }
    }

    pub(super) fn next(&mut self) -> bool {
        let hit = self.stream.chance(self.next);
        self.next = if hit { self.after_hit } else { self.after_miss };
        hit
    }
}
