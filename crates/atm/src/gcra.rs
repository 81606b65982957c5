//! Generic cell rate algorithm, GCRA(T, tau): cells no closer than T, and early by tau at most.
//!
//! Published: ITU-T I.371 (2004), in two forms that give the same verdicts: the virtual scheduling algorithm ([`Gcra`])
//! and the continuous-state leaky bucket ([`LeakyBucket`]). ATM Forum TM 4.0 has both too.
//! Differs: T is rounded down to 2^-32 ps, so that who sends exactly at the rate conforms for ever.
//! Cost: a comparison and an addition a cell; of cells evenly spaced some multiplications and a division for all.
//!
//! To ask and to take are two calls, since a cell that must conform to several algorithms counts in all or in none.

use lastmile_units::{BitRate, CellCount};

use crate::time::{Moment, Spacing};

/// The virtual scheduling algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Gcra {
    increment: Spacing,
    limit: Spacing,
    /// TAT: when the next cell is expected.
    expected: Moment,
}

impl Gcra {
    /// `increment` is T, `limit` is tau. The first cell may come when it likes.
    #[must_use]
    pub const fn new(increment: Spacing, limit: Spacing) -> Self {
        Self { increment, limit, expected: Moment::from_parts(0, 0) }
    }

    /// True if a cell at `at` conforms: it is early by tau at most. Changes nothing.
    #[inline]
    #[must_use]
    pub fn conforms(&self, at: Moment) -> bool {
        self.expected <= at.plus(self.limit)
    }

    /// Takes a cell at `at`, which conforms (or is let through in spite of that, as later cells of a frame are).
    #[inline]
    pub fn take(&mut self, at: Moment) {
        self.expected = self.expected.max(at).plus(self.increment);
    }

    /// Of `cells` evenly spaced cells, the first at `at`: how many conform before the first that does not, each being taken.
    pub(crate) fn conforming(&self, at: Moment, spacing: Spacing, cells: u64) -> u64 {
        if !self.conforms(at) {
            return 0;
        }
        // Each cell comes so much less than T behind the one before, and uses up as much of what the first may be early by.
        let each = self.increment.minus(spacing);
        let slack = at.plus(self.limit).since(self.expected.max(at));
        if each.times(cells - 1) <= slack { cells } else { slack.divided_by(each) + 1 }
    }

    /// Of the same: how many do not conform before the first that does, none being taken.
    pub(crate) fn refused(&self, at: Moment, spacing: Spacing, cells: u64) -> u64 {
        if self.conforms(at) {
            return 0;
        }
        let early = self.expected.since(at.plus(self.limit));
        if spacing.times(cells - 1) < early { cells } else { early.multiples_below(spacing) }
    }

    /// Takes one cell or more, evenly spaced, as [`Self::take`] would one by one. What is expected in the end follows from all of them, of which either the
    /// first or the last counts.
    pub(crate) fn take_run(&mut self, at: Moment, spacing: Spacing, cells: u64) {
        let from_first = self.expected.max(at).plus(self.increment.times(cells));
        let from_last = at.plus(spacing.times(cells - 1)).plus(self.increment);
        self.expected = from_first.max(from_last);
    }
}

/// The continuous-state leaky bucket: it drains by one a unit of time, and a cell that finds it at tau or below adds T.
#[derive(Clone, Copy, Debug)]
pub struct LeakyBucket {
    increment: Spacing,
    limit: Spacing,
    level: Spacing,
    /// LCT: when the last conforming cell came.
    last: Moment,
}

impl LeakyBucket {
    /// `increment` is T, `limit` is tau. The bucket is empty.
    #[must_use]
    pub const fn new(increment: Spacing, limit: Spacing) -> Self {
        Self { increment, limit, level: Spacing::ZERO, last: Moment::from_parts(0, 0) }
    }

    /// True if a cell at `at` conforms. Changes nothing.
    #[must_use]
    pub fn conforms(&self, at: Moment) -> bool {
        self.drained(at) <= self.limit
    }

    /// Takes a cell at `at`, which conforms. `at` never goes back.
    pub fn take(&mut self, at: Moment) {
        self.level = self.drained(at).plus(self.increment);
        self.last = at;
    }

    fn drained(&self, at: Moment) -> Spacing {
        self.level.minus(at.since(self.last))
    }
}

/// Burst tolerance: how early cells of the sustainable rate may be so that `mbs` of them pass at the peak rate,
/// (MBS - 1) * (1/SCR - 1/PCR).
///
/// Published: ITU-T I.371, section 5.4.2 (sustainable cell rate). Zero where the sustainable rate is not below the peak rate.
#[must_use]
pub fn burst_tolerance(mbs: CellCount, sustainable: BitRate, peak: BitRate) -> Spacing {
    let each = Spacing::of_cell(sustainable).minus(Spacing::of_cell(peak));
    each.times(mbs.as_u64().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use lastmile_units::{Duration, Instant};
    use proptest::prelude::*;

    use super::*;

    fn us(count: u64) -> Moment {
        Moment::at(Instant::ZERO + Duration::from_us(count))
    }

    /// T = 424 us at 1 Mbit/s, tau = T: one cell may come a whole T early, that is, two at once.
    #[test]
    fn cells_may_be_early_by_the_tolerance_and_no_more() {
        let t = Spacing::of_cell(BitRate::from_mbit_per_s(1));
        let mut gcra = Gcra::new(t, t);
        for at in [0, 0] {
            assert!(gcra.conforms(us(at)));
            gcra.take(us(at));
        }
        assert!(!gcra.conforms(us(423)));
        assert!(gcra.conforms(us(424)));
    }

    /// A sender at exactly the rate is never early, for any number of cells: 149.76 Mbit/s, T = 2 831 196.58 ps.
    #[test]
    fn who_sends_at_the_rate_conforms_without_tolerance() {
        let t = Spacing::of_cell(BitRate::from_kbit_per_s(149_760));
        let mut gcra = Gcra::new(t, Spacing::ZERO);
        for n in 0..1_000_000 {
            let at = us(1).plus(t.times(n));
            assert!(gcra.conforms(at));
            gcra.take(at);
        }
    }

    /// Ano et al. 2002: PCR 149.76 Mbit/s, SCR 18.72 Mbit/s (an eighth), MBS 8256. At the peak rate exactly 8256 cells pass.
    #[test]
    fn the_burst_tolerance_lets_mbs_cells_pass_at_the_peak_rate() {
        let (peak, sustainable) = (BitRate::from_kbit_per_s(149_760), BitRate::from_kbit_per_s(18_720));
        let limit = burst_tolerance(CellCount::new(8256), sustainable, peak);
        let mut gcra = Gcra::new(Spacing::of_cell(sustainable), limit);
        let spacing = Spacing::of_cell(peak);
        let mut passed = 0;
        for n in 0..9000 {
            let at = us(5).plus(spacing.times(n));
            if !gcra.conforms(at) {
                break;
            }
            gcra.take(at);
            passed += 1;
        }
        assert_eq!(passed, 8256);
    }

    /// Virtual scheduling as I.371 words it, in exact rational arithmetic: times in multiples of 1/rate ps.
    struct VirtualScheduling {
        rate: u128,
        tau: u128,
        tat: Option<u128>,
    }

    impl VirtualScheduling {
        fn cell(&mut self, ps: u64) -> bool {
            let increment = 424 * 1_000_000_000_000;
            let ta = u128::from(ps) * self.rate;
            match self.tat {
                None => self.tat = Some(ta + increment),
                Some(tat) if tat < ta => self.tat = Some(ta + increment),
                Some(tat) if tat > ta + self.tau => return false,
                Some(tat) => self.tat = Some(tat + increment),
            }
            true
        }
    }

    proptest! {
        /// Cells evenly spaced, taken at once, are the same as one by one.
        #[test]
        fn a_run_is_judged_as_its_cells_are(
            (t, tau) in (1_u64..50, 0_u64..400),
            runs in prop::collection::vec((0_u64..300, 0_u64..60, 1_u64..40), 1..12),
        ) {
            let us = |count| Spacing::of(Duration::from_us(count));
            let mut gcra = Gcra::new(us(t), us(tau));
            let mut at = Moment::default();
            for (gap, spacing, cells) in runs {
                at = at.plus(us(gap));
                let times = (0..cells).map(|n| at.plus(us(spacing).times(n)));
                let mut one_by_one = gcra;
                let mut conforming = 0;
                for time in times.clone() {
                    if !one_by_one.conforms(time) {
                        break;
                    }
                    one_by_one.take(time);
                    conforming += 1;
                }
                let refused = times.clone().take_while(|time| !gcra.conforms(*time)).count() as u64;
                prop_assert_eq!(gcra.conforming(at, us(spacing), cells), conforming);
                prop_assert_eq!(gcra.refused(at, us(spacing), cells), refused);
                if conforming > 0 {
                    gcra.take_run(at, us(spacing), conforming);
                }
                prop_assert_eq!(gcra.expected, one_by_one.expected);
                at = at.plus(us(spacing).times(cells - 1));
            }
        }

        /// Rates that divide 424 bits into whole picoseconds are exact here too, so that verdicts are equal to the cell.
        #[test]
        fn both_forms_agree_with_the_definition(
            bps in prop_oneof![Just(1_000_000_u64), Just(53_000_000), Just(424), Just(10_600_000), Just(100_000_000)],
            tau in 0_u64..2_000_000_000,
            gaps in prop::collection::vec(prop_oneof![Just(0), 0..9_000_000_u64, 0..3_000_000_000_u64], 1..300),
        ) {
            let t = Spacing::of_cell(BitRate::from_bps(bps).expect("a rate"));
            let limit = Spacing::of(Duration::from_ps(tau));
            let (mut gcra, mut bucket) = (Gcra::new(t, limit), LeakyBucket::new(t, limit));
            let mut definition =
                VirtualScheduling { rate: bps.into(), tau: u128::from(tau) * u128::from(bps), tat: None };
            let mut ps = 0;
            for gap in gaps {
                ps += gap;
                let at = Moment::at(Instant::from_ps(ps));
                let expected = definition.cell(ps);
                prop_assert_eq!(gcra.conforms(at), expected);
                prop_assert_eq!(bucket.conforms(at), expected);
                if expected {
                    gcra.take(at);
                    bucket.take(at);
                }
            }
        }
    }
}
