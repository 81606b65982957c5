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

/// MBS 3 at the peak rate: after three TAT is 1272 us, tau is 2 * (424 - 106) = 636 us. So the next that conforms comes at 636 us, the
/// seventh of the burst.
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

/// Frames of four cells at the peak rate, MBS 4, GFR.2: the first is within the minimum rate, the second is not, whole, although its
/// later cells would be. MCR is a quarter of PCR: after the first frame TAT is 4 * 424 us = 1696 us, tau 3 * (424 - 106) = 954 us,
/// so a frame that starts before 742 us is not eligible.
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
    let mut policer = Policer::new(&contract).expect("a contract");
    let mut send = |at, last| policer.police(us(at), Seen { low_priority: false, last });
    assert_eq!(send(0, false), Verdict::Pass);
    assert_eq!(send(50, false), Verdict::DropPeak);
    assert_eq!(send(200, false), Verdict::DropPeak, "the rest of the frame");
    assert_eq!(send(400, true), Verdict::Pass, "the end of the frame");
    let verdicts: Vec<_> = (0..6).map(|n| send(5000 + 106 * n, n == 5)).collect();
    assert_eq!(verdicts[..4], [Verdict::Pass; 4]);
    assert_eq!(verdicts[4..], [Verdict::DropFrame, Verdict::Pass]);
}

fn contracts() -> impl Strategy<Value = Contract> {
    let cdvt = (0_u64..400).prop_map(Duration::from_us);
    (0..7, cdvt, 1_u64..8, any::<bool>()).prop_map(|(kind, cdvt, mbs, tagging)| {
        let peak = Peak { cdvt, ..PEAK };
        let sustainable = sustainable(mbs);
        match kind {
            0 => Contract::Dbr { peak },
            1 => Contract::Sbr { variant: Sbr::One, peak, sustainable },
            2 => Contract::Sbr { variant: Sbr::Two, peak, sustainable },
            3 => Contract::Sbr { variant: Sbr::Three, peak, sustainable },
            4 => Contract::Ubr { peak: Some(peak), tagging },
            _ => Contract::Gfr { peak, minimum: sustainable, mfs: CellCount::new(mbs), tagging },
        }
    })
}

proptest! {
    /// Runs give the verdicts of their cells one by one, and every cell is counted once.
    #[test]
    fn a_run_is_its_cells(
        contract in contracts(),
        runs in prop::collection::vec((0_u64..600, 1_u16..9, 0_u64..200, any::<bool>(), any::<bool>()), 1..60),
    ) {
        let mut by_run = Policer::new(&contract).expect("a contract");
        let mut by_cell = by_run.clone();
        let (mut start, mut cells) = (0, 0);
        for (gap, count, spacing, low, end) in runs {
            start += gap;
            let spacing = Spacing::of(Duration::from_us(spacing));
            let mut verdicts = Vec::new();
            while verdicts.len() < usize::from(count) {
                let done = verdicts.len() as u16;
                let at = us(start).plus(spacing.times(done.into()));
                let run = SeenRun { at, spacing, cells: count - done, low_priority: low, ends: end };
                let (judged, untouched) = (by_run.judge_run(&run), by_run.counts());
                prop_assert_eq!(by_run.counts(), untouched);
                let (verdict, held) = by_run.police_run(&run);
                prop_assert_eq!((verdict, held), judged);
                verdicts.extend(core::iter::repeat_n(verdict, held.into()));
            }
            for (n, verdict) in verdicts.iter().enumerate() {
                let seen = Seen { low_priority: low, last: end && n + 1 == usize::from(count) };
                prop_assert_eq!(by_cell.police(us(start).plus(spacing.times(n as u64)), seen), *verdict);
            }
            start += spacing.times((count - 1).into()).duration().as_us();
            cells += u64::from(count);
        }
        prop_assert_eq!(by_run.counts(), by_cell.counts());
        let Conformance { passed, tagged, dropped_peak, dropped_sustainable, dropped_frame, .. } = by_run.counts();
        prop_assert_eq!(passed + tagged + dropped_peak + dropped_sustainable + dropped_frame, cells);
    }
}
