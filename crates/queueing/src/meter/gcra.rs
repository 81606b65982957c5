//! Generic cell rate algorithm, GCRA(T, tau): cells at intervals of at least T, with an allowance
//! of tau for early cells.
//!
//! Published: ITU-T I.371; ATM Forum TM 4.0; as *virtual scheduling*. The continuous-state leaky
//! bucket of the same texts gives equal verdicts, as a test shows.
//!
//! T = 1/PCR is 424 bits at the rate of the contract and seldom a whole number of picoseconds. All
//! times here are multiples of 1/rate of a picosecond, in which T, tau and the time of a cell are
//! integers: nothing is rounded.
//!
//! Differs: the line delivers packets, not cells. The cells of a packet count as arriving together
//! and conform together: a packet conforms if its last cell does, and otherwise takes nothing. So
//! tau must cover the cells of the largest packet.
//! Cost: two multiplications a packet.

use lastmile_units::{BitRate, CellCount, Duration, Instant, WireBytes};

use super::token_bucket::bytes_in;
use super::{Color, MeterError};

const CELL_BYTES: u64 = CellCount::new(1).wire_bytes().as_u64();
/// T in multiples of 1/rate ps: the bits of a cell, times 10^12 ps a second.
const INCREMENT: u128 = CellCount::new(1).wire_bytes().bits() as u128 * 1_000_000_000_000;

/// Parameters of a GCRA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The cell rate, in bits on the wire: 424 bits a cell. T is the time of a cell at this rate.
    pub rate: BitRate,
    /// tau: maximum time by which a cell may arrive before its theoretical arrival time (cell delay
    /// variation tolerance).
    pub tolerance: Duration,
}

impl Config {
    /// The bytes of the cells that the tolerance lets arrive at once, rounded up.
    pub(super) fn early(&self) -> WireBytes {
        WireBytes::new(bytes_in(self.rate, self.tolerance) + 2 * CELL_BYTES)
    }

    pub(super) fn check(&self, largest: WireBytes) -> Result<(), MeterError> {
        let cells = largest.as_u64().div_ceil(CELL_BYTES).max(1);
        let needed = u128::from(cells - 1) * INCREMENT;
        if u128::from(self.tolerance.as_ps()) * u128::from(self.rate.as_bps()) < needed {
            let ps = u64::try_from(needed.div_ceil(u128::from(self.rate.as_bps()))).unwrap_or(u64::MAX);
            return Err(MeterError::ToleranceTooShort { tolerance: self.tolerance, needed: Duration::from_ps(ps) });
        }
        Ok(())
    }
}

/// The virtual scheduling algorithm, in any unit of time.
///
/// To ask and to take are two calls: a cell that must conform to several algorithms counts in all or in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualScheduling {
    /// T.
    increment: u128,
    /// tau.
    limit: u128,
    /// Theoretical arrival time (TAT) of the next cell.
    expected: u128,
}

impl VirtualScheduling {
    /// GCRA(`increment`, `limit`) that has seen no cell.
    #[must_use]
    pub const fn new(increment: u128, limit: u128) -> Self {
        Self { increment, limit, expected: 0 }
    }

    /// True if `cells` cells, 1 or more, that arrive together at `at` conform: the last is early by tau at most.
    #[inline]
    #[must_use]
    pub fn conforms(&self, at: u128, cells: u64) -> bool {
        self.expected.max(at) + u128::from(cells.saturating_sub(1)) * self.increment <= at + self.limit
    }

    /// Counts `cells` cells that arrive together at `at`.
    #[inline]
    pub fn take(&mut self, at: u128, cells: u64) {
        self.expected = self.expected.max(at) + u128::from(cells) * self.increment;
    }
}

/// The meter of packets that are cells on the wire.
#[derive(Clone, Debug)]
pub struct Gcra {
    rate: BitRate,
    /// In multiples of 1/rate ps: times are at most 2^105 or so.
    algorithm: VirtualScheduling,
}

impl Gcra {
    /// A meter that has seen no packet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let limit = scaled(config.rate, config.tolerance.as_ps());
        Self { rate: config.rate, algorithm: VirtualScheduling::new(INCREMENT, limit) }
    }

    /// Green, or yellow for a packet that does not conform. `size` is whole cells of 53 bytes; a remainder counts as a
    /// cell.
    pub fn conform(&mut self, now: Instant, size: WireBytes) -> Color {
        let cells = size.as_u64().div_ceil(CELL_BYTES);
        let now = scaled(self.rate, now.as_ps());
        let conforms = self.algorithm.conforms(now, cells);
        if conforms {
            self.algorithm.take(now, cells);
        }
        Color::conforms(conforms)
    }
}

fn scaled(rate: BitRate, ps: u64) -> u128 {
    u128::from(rate.as_bps()) * u128::from(ps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gcra(rate: BitRate, tolerance: Duration) -> Gcra {
        Gcra::new(&Config { rate, tolerance })
    }

    fn passes(gcra: &mut Gcra, ps: u64, cells: u64) -> bool {
        gcra.conform(Instant::from_ps(ps), CellCount::new(cells).wire_bytes()) == Color::Green
    }

    /// T = 424 us at 1 Mbit/s, tau = T: one cell may come a whole T early, that is, two at once.
    #[test]
    fn cells_may_be_early_by_the_tolerance_and_no_more() {
        let us = |count: u64| count * 1_000_000;
        let mut meter = gcra(BitRate::from_mbit_per_s(1), Duration::from_us(424));
        assert!(passes(&mut meter, us(0), 1) && passes(&mut meter, us(0), 1));
        assert!(!passes(&mut meter, us(423), 1), "1 us too early; it takes nothing");
        assert!(passes(&mut meter, us(424), 1));
        assert!(!passes(&mut meter, us(424), 1));
        // Theoretical arrival time 1272 us. A late cell restarts the schedule: at 5000 us two may
        // arrive again.
        assert!(passes(&mut meter, us(5000), 2) && !passes(&mut meter, us(5000), 1));
    }

    /// A packet of 32 cells needs tau = 31 T; a shorter tau refuses all of it.
    #[test]
    fn the_cells_of_a_packet_conform_together() {
        let t = Duration::from_us(424);
        let rate = BitRate::from_mbit_per_s(1);
        let largest = CellCount::new(32).wire_bytes();
        let exact = Config { rate, tolerance: t.saturating_mul(31) };
        assert_eq!(exact.check(largest), Ok(()));
        let mut meter = Gcra::new(&exact);
        assert!(passes(&mut meter, 0, 32) && !passes(&mut meter, 0, 1));
        let tolerance = Duration::from_ps(t.as_ps() * 31 - 1);
        let needed = t.saturating_mul(31);
        let short = Config { rate, tolerance };
        assert_eq!(short.check(largest), Err(MeterError::ToleranceTooShort { tolerance, needed }));
        assert!(!passes(&mut Gcra::new(&short), 0, 32));
    }

    /// 149.76 Mbit/s: T is 2 831 196.58 ps. Cells that arrive at the first whole picosecond at or
    /// after n T all conform with no tolerance at all, and a picosecond less for the last of a
    /// million does not.
    #[test]
    fn a_million_cells_carry_their_fraction() {
        let rate = BitRate::from_kbit_per_s(149_760);
        let mut meter = gcra(rate, Duration::ZERO);
        let at = |n: u64| u64::try_from((u128::from(n) * INCREMENT).div_ceil(149_760_000)).expect("3 s");
        // Each cell starts a fraction late, which a meter without tolerance does not give back. The
        // cells therefore come from a clock that is early by less than a picosecond.
        let mut early = gcra(rate, Duration::from_ps(1));
        assert!((0..1_000_000).all(|n| passes(&mut early, at(n).saturating_sub(1), 1)));
        assert!(passes(&mut meter, 0, 1) && !passes(&mut meter, at(1) - 1, 1) && passes(&mut meter, at(1), 1));
    }

    /// 54 bytes are a cell and a byte of the next: two cells, the second of which is early. T is 2
    /// 831 196.58 ps, so they need a tolerance of 2 831 197 ps.
    #[test]
    fn a_partial_cell_counts_as_a_cell() {
        let rate = BitRate::from_kbit_per_s(149_760);
        let size = WireBytes::new(54);
        assert_eq!(gcra(rate, Duration::from_ps(2_831_196)).conform(Instant::ZERO, size), Color::Yellow);
        let needed = Duration::from_ps(2_831_197);
        assert_eq!(gcra(rate, needed).conform(Instant::ZERO, size), Color::Green);
        let tolerance = Duration::ZERO;
        assert_eq!(Config { rate, tolerance }.check(size), Err(MeterError::ToleranceTooShort { tolerance, needed }));
        assert_eq!(Config { rate, tolerance: needed }.check(size), Ok(()));
    }

    /// The continuous-state form of the algorithm (I.371): a bucket that drains by one a unit of
    /// time and adds T for each cell that finds it at tau or below.
    struct LeakyBucket {
        rate: u128,
        limit: u128,
        level: u128,
        at: u128,
    }

    impl LeakyBucket {
        fn cell(&mut self, ps: u64) -> bool {
            let now = u128::from(ps) * self.rate;
            let level = self.level.saturating_sub(now - self.at);
            let conforms = level <= self.limit;
            if conforms {
                (self.level, self.at) = (level + INCREMENT, now);
            }
            conforms
        }
    }

    proptest! {
        #[test]
        fn virtual_scheduling_and_the_leaky_bucket_agree(
            bps in 1_000_u64..200_000_000,
            tolerance in 0_u64..2_000_000_000,
            gaps in prop::collection::vec(prop_oneof![Just(0), 0..2_000_000_u64, 0..3_000_000_000_u64], 1..200),
        ) {
            let rate = BitRate::from_bps(bps).expect("a rate");
            let mut meter = gcra(rate, Duration::from_ps(tolerance));
            let limit = u128::from(tolerance) * u128::from(bps);
            let mut bucket = LeakyBucket { rate: bps.into(), limit, level: 0, at: 0 };
            let mut now = 0;
            for gap in gaps {
                now += gap;
                prop_assert_eq!(passes(&mut meter, now, 1), bucket.cell(now));
            }
        }
    }
}
