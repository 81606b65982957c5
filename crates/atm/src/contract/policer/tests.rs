//! Policers: which cell counts where, and what becomes of it.

use lastmile_units::{BitRate, CellCount, Duration, Instant};
use proptest::prelude::*;

use super::*;

/// 424 bits at 1 Mbit/s are 424 us, at 4 Mbit/s 106 us.
const PEAK: Peak = Peak { rate: BitRate::from_mbit_per_s(4), cdvt: Duration::ZERO };

fn us(count: u64) -> Moment {
    Moment::at(Instant::ZERO + Duration::from_us(count))
}

fn sustainable(mbs: u64) -> Sustainable {
    Sustainable { rate: BitRate::from_mbit_per_s(1), mbs: CellCount::new(mbs), cdvt: Duration::ZERO }
}

fn sbr(variant: Sbr, mbs: u64) -> Policer {
    Policer::new(&Contract::Sbr { variant, peak: PEAK, sustainable: sustainable(mbs) }).expect("a contract")
}

fn cell(policer: &mut Policer, at_us: u64, low_priority: bool) -> Verdict {
    policer.police(us(at_us), Seen { low_priority, last: false })
}

#[test]
fn dbr_drops_what_is_above_the_peak_rate() {
    let mut policer = Policer::new(&Contract::Dbr { peak: PEAK }).expect("a contract");
    assert_eq!(cell(&mut policer, 0, false), Verdict::Pass);
    assert_eq!(cell(&mut policer, 105, false), Verdict::DropPeak);
    assert_eq!(cell(&mut policer, 106, true), Verdict::Pass, "a dropped cell took nothing");
    assert_eq!(
        policer.counts(),
        Conformance { passed: 2, passed_low_priority: 1, dropped_peak: 1, ..Conformance::default() }
    );
}

/// MBS 3 at the peak rate: after three TAT is 1272 us, tau is 2 * (424 - 106) = 636 us. So the next
/// that conforms comes at 636 us, the seventh of the burst.
#[test]
fn sbr_variants_differ_in_which_cells_count_and_what_becomes_of_them() {
    let burst = |variant, low: [bool; 7]| -> Vec<Verdict> {
        let mut policer = sbr(variant, 3);
        low.iter().enumerate().map(|(n, low)| cell(&mut policer, 106 * n as u64, *low)).collect()
    };
    use Verdict::{DropSustainable, Pass, Tag};
    assert_eq!(
        burst(Sbr::One, [false; 7]),
        [Pass, Pass, Pass, DropSustainable, DropSustainable, DropSustainable, Pass]
    );
    assert_eq!(burst(Sbr::One, [true; 7]), [Pass, Pass, Pass, DropSustainable, DropSustainable, DropSustainable, Pass]);
    assert_eq!(
        burst(Sbr::Two, [false; 7]),
        [Pass, Pass, Pass, DropSustainable, DropSustainable, DropSustainable, Pass]
    );
    assert_eq!(burst(Sbr::Two, [true; 7]), [Pass; 7]);
    assert_eq!(burst(Sbr::Three, [false; 7]), [Pass, Pass, Pass, Tag, Tag, Tag, Pass]);
    assert_eq!(burst(Sbr::Three, [true; 7]), [Pass; 7]);
}

/// A tagged cell went through at the peak rate and counts there; a dropped one does not.
#[test]
fn a_tagged_cell_counts_in_the_peak_algorithm_and_a_dropped_one_in_none() {
    let mut three = sbr(Sbr::Three, 1);
    assert_eq!(cell(&mut three, 0, false), Verdict::Pass);
    assert_eq!(cell(&mut three, 200, false), Verdict::Tag);
    assert_eq!(cell(&mut three, 250, true), Verdict::DropPeak, "106 us after the tagged one");
    let mut two = sbr(Sbr::Two, 1);
    assert_eq!(cell(&mut two, 0, false), Verdict::Pass);
    assert_eq!(cell(&mut two, 200, false), Verdict::DropSustainable);
    assert_eq!(cell(&mut two, 250, true), Verdict::Pass);
}

#[test]
fn ubr_drops_nothing_and_may_tag_everything() {
    let mut plain = Policer::new(&Contract::Ubr { peak: None, tagging: false }).expect("a contract");
    let mut tagging = Policer::new(&Contract::Ubr { peak: None, tagging: true }).expect("a contract");
    for _ in 0..5 {
        assert_eq!(cell(&mut plain, 0, false), Verdict::Pass);
        assert_eq!(cell(&mut tagging, 0, false), Verdict::Tag);
        assert_eq!(cell(&mut tagging, 0, true), Verdict::Pass);
    }
}

/// Frames of four cells at the peak rate, MBS 4, GFR.2: the first is within the minimum rate, the
/// second is not, whole, although its later cells would be. MCR is a quarter of PCR: after the
/// first frame TAT is 4 * 424 us = 1696 us, tau 3 * (424 - 106) = 954 us, so a frame that starts
/// before 742 us is not eligible.
#[test]
fn gfr_judges_a_frame_by_its_first_cell() {
    let contract = Contract::Gfr { peak: PEAK, minimum: sustainable(4), mfs: CellCount::new(4), tagging: true };
    let mut policer = Policer::new(&contract).expect("a contract");
    let mut frame = |start: u64| -> Vec<Verdict> {
        (0..4).map(|n| policer.police(us(start + 106 * n), Seen { low_priority: false, last: n == 3 })).collect()
    };
    assert_eq!(frame(0), [Verdict::Pass; 4]);
    assert_eq!(frame(741), [Verdict::Tag; 4]);
    assert_eq!(frame(1696), [Verdict::Pass; 4]);
    assert_eq!((policer.counts().eligible_frames, policer.counts().other_frames), (2, 1));
}

#[test]
fn a_gfr_frame_that_breaks_the_peak_rate_or_the_frame_size_loses_its_rest_but_not_its_end() {
    let contract = Contract::Gfr { peak: PEAK, minimum: sustainable(4), mfs: CellCount::new(4), tagging: false };
    use Verdict::{DropFrame, DropPeak, Pass};
    let mut policer = Policer::new(&contract).expect("a contract");
    let mut send = |at, last| policer.police(us(at), Seen { low_priority: false, last });
    assert_eq!(send(0, false), Pass);
    assert_eq!(send(50, false), DropPeak);
    assert_eq!(send(200, false), DropPeak, "the rest of the frame");
    assert_eq!(send(400, true), Pass, "the end of the frame");
    let mut frame = |start: u64, cells: u64| -> Vec<Verdict> {
        (0..cells).map(|n| send(start + 106 * n, n + 1 == cells)).collect()
    };
    assert_eq!(frame(5_000, 4), [Pass; 4], "of exactly MFS");
    assert_eq!(frame(6_000, 5), [Pass, Pass, Pass, DropFrame, Pass], "of MFS + 1: the fourth is not the last");
    assert_eq!(frame(7_000, 6), [Pass, Pass, Pass, DropFrame, DropFrame, Pass]);
}

/// A source at exactly the rate is never early, for any number of cells: 149.76 Mbit/s, T = 2 831
/// 196.58 ps.
#[test]
fn a_source_at_exactly_the_rate_conforms_without_tolerance() {
    let rate = BitRate::from_kbit_per_s(149_760);
    let mut policer = Policer::new(&Contract::Dbr { peak: Peak { rate, cdvt: Duration::ZERO } }).expect("a contract");
    let t = Spacing::of_cell(rate);
    for n in 0..1_000_000 {
        assert_eq!(policer.police(us(1).plus(t.times(n)), Seen { low_priority: false, last: false }), Verdict::Pass);
    }
}

/// Ano et al. 2002: PCR 149.76 Mbit/s, SCR 18.72 Mbit/s (an eighth), MBS 8256. At the peak rate
/// exactly 8256 cells pass.
#[test]
fn mbs_cells_pass_at_the_peak_rate() {
    let peak = Peak { rate: BitRate::from_kbit_per_s(149_760), cdvt: Duration::ZERO };
    let rate = BitRate::from_kbit_per_s(18_720);
    let sustainable = Sustainable { rate, mbs: CellCount::new(8256), cdvt: Duration::ZERO };
    let mut policer = Policer::new(&Contract::Sbr { variant: Sbr::Three, peak, sustainable }).expect("a contract");
    let spacing = Spacing::of_cell(peak.rate);
    let mut police = |n| policer.police(us(5).plus(spacing.times(n)), Seen { low_priority: false, last: false });
    assert_eq!((0..9000).position(|n| police(n) != Verdict::Pass), Some(8256));
}

/// Virtual scheduling as I.371 defines it, in exact rational arithmetic: times in multiples of
/// 1/rate ps.
struct Definition {
    rate: u128,
    tau: u128,
    tat: Option<u128>,
}

impl Definition {
    fn conforms(&mut self, ps: u64) -> bool {
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
    /// At these rates a cell takes a whole number of picoseconds, so T is exact and verdicts are
    /// equal to the cell.
    #[test]
    fn verdicts_are_those_of_the_definition(
        bps in prop_oneof![Just(1_000_000_u64), Just(53_000_000), Just(424), Just(10_600_000), Just(100_000_000)],
        tau in 0_u64..2_000_000_000,
        gaps in prop::collection::vec(prop_oneof![Just(0), 0..9_000_000_u64, 0..3_000_000_000_u64], 1..300),
    ) {
        let peak = Peak { rate: BitRate::from_bps(bps).expect("a rate"), cdvt: Duration::from_ps(tau) };
        let mut policer = Policer::new(&Contract::Dbr { peak }).expect("a contract");
        let mut definition = Definition { rate: bps.into(), tau: u128::from(tau) * u128::from(bps), tat: None };
        let (mut ps, mut counts) = (0, Conformance::default());
        for gap in gaps {
            ps += gap;
            let at = Moment::at(Instant::from_ps(ps));
            let verdict = policer.police(at, Seen { low_priority: false, last: false });
            let conforms = definition.conforms(ps);
            prop_assert_eq!(verdict, if conforms { Verdict::Pass } else { Verdict::DropPeak });
            *(if conforms { &mut counts.passed } else { &mut counts.dropped_peak }) += 1;
        }
        prop_assert_eq!(policer.counts(), counts);
    }
}
