//! Frame discard, row by row and rule by rule.

use proptest::prelude::*;

use super::*;

const fn cells(count: u64) -> CellCount {
    CellCount::new(count)
}

fn rules(scheme: Scheme, last_cell: LastCell) -> Rules {
    Discard { scheme, last_cell, ..Discard::default() }.rules(Some(cells(1000)), None).expect("a queue")
}

fn spd() -> Rules {
    let scheme = Scheme::Spd { epd_threshold: cells(500), vc_threshold: cells(20), activation: cells(200) };
    rules(scheme, LastCell::Pass)
}

fn seen(queue: u32, vc: u32) -> Occupancy {
    Occupancy { queue, memory: queue, vc, active: 1 }
}

const IDLE: FrameState = FrameState { receiving: false, discarding: None, partial: false, armed: true };
const MIDDLE: FrameState = FrameState { receiving: true, ..IDLE };

/// One cell that is not the last: what becomes of it, and the state after.
fn cell(rules: &Rules, before: FrameState, seen: Occupancy) -> (Option<CellDrop>, FrameState) {
    let mut state = before;
    (rules.admit(&mut state, &seen, false, false), state)
}

fn last(rules: &Rules, before: FrameState, seen: Occupancy) -> (Option<CellDrop>, FrameState) {
    let mut state = before;
    (rules.admit(&mut state, &seen, true, false), state)
}

/// Sun 1998, section 3.3 (table text-3.3), with the thresholds of chapter 4: Qmax 1000, T 500,
/// SPDth 20, CongestTh 200.
#[test]
fn spd_row_1_an_empty_queue_of_the_vc_arms() {
    let disarmed = FrameState { armed: false, ..IDLE };
    assert_eq!(cell(&spd(), disarmed, seen(300, 0)), (None, MIDDLE));
    assert_eq!(cell(&spd(), FrameState { armed: false, ..MIDDLE }, seen(300, 0)), (None, MIDDLE), "any cell");
    assert!(!cell(&spd(), disarmed, seen(300, 1)).1.armed);
}

#[test]
fn spd_row_2_below_both_thresholds_a_frame_is_accepted() {
    assert_eq!(cell(&spd(), IDLE, seen(499, 19)), (None, MIDDLE));
}

#[test]
fn spd_row_3_one_frame_of_a_vc_above_its_threshold_is_dropped() {
    let dropped = FrameState { discarding: Some(CellDrop::Spd), armed: false, ..MIDDLE };
    assert_eq!(cell(&spd(), IDLE, seen(201, 20)), (Some(CellDrop::Spd), dropped), "q = SPDth counts as above");
    assert_eq!(cell(&spd(), IDLE, seen(499, 400)), (Some(CellDrop::Spd), dropped));
}

#[test]
fn spd_row_4_otherwise_the_frame_is_accepted() {
    assert_eq!(cell(&spd(), IDLE, seen(200, 20)), (None, MIDDLE), "Q = CongestTh is not above it");
    let disarmed = FrameState { armed: false, ..IDLE };
    assert_eq!(cell(&spd(), disarmed, seen(201, 20)), (None, FrameState { receiving: true, ..disarmed }));
}

#[test]
fn spd_row_5_at_the_threshold_of_epd_every_frame_is_dropped_and_spd_stays_armed() {
    let dropped = FrameState { discarding: Some(CellDrop::Epd), ..MIDDLE };
    assert_eq!(cell(&spd(), IDLE, seen(500, 1)), (Some(CellDrop::Epd), dropped));
    assert_eq!(cell(&spd(), IDLE, seen(500, 400)), (Some(CellDrop::Epd), dropped));
}

#[test]
fn spd_row_6_the_rest_of_a_discarded_frame_is_dropped_however_empty_the_queue() {
    let discarding = FrameState { discarding: Some(CellDrop::Spd), armed: false, ..MIDDLE };
    assert_eq!(cell(&spd(), discarding, seen(1, 1)), (Some(CellDrop::Spd), discarding));
}

#[test]
fn spd_row_7_a_full_buffer_discards_the_rest_of_a_frame() {
    let partial = FrameState { discarding: Some(CellDrop::Ppd), partial: true, ..MIDDLE };
    assert_eq!(cell(&spd(), MIDDLE, seen(999, 400)), (None, MIDDLE), "inside a frame only Qmax counts");
    assert_eq!(cell(&spd(), MIDDLE, seen(1000, 400)), (Some(CellDrop::QueueFull), partial));
    assert_eq!(cell(&spd(), partial, seen(10, 4)), (Some(CellDrop::Ppd), partial));
}

#[test]
fn spd_row_8_the_last_cell_passes_if_there_is_room() {
    let discarding = FrameState { discarding: Some(CellDrop::Epd), ..MIDDLE };
    for before in [MIDDLE, discarding] {
        assert_eq!(last(&spd(), before, seen(999, 4)), (None, IDLE));
        assert_eq!(last(&spd(), before, seen(1000, 4)), (Some(CellDrop::QueueFull), IDLE));
    }
}

/// "A one-cell packet never reaches the first-cell test (it is handled as a last cell)."
#[test]
fn a_frame_of_one_cell_is_never_dropped_early_where_last_cells_pass() {
    assert_eq!(last(&spd(), IDLE, seen(999, 400)), (None, IDLE));
    let original = rules(Scheme::Epd { threshold: cells(500) }, LastCell::Drop);
    assert_eq!(last(&original, IDLE, seen(500, 0)), (Some(CellDrop::Epd), IDLE));
    assert_eq!(last(&original, IDLE, seen(499, 0)), (None, IDLE));
}

#[test]
fn the_original_epd_drops_the_last_cell_too() {
    let epd = rules(Scheme::Epd { threshold: cells(500) }, LastCell::Drop);
    let discarding = FrameState { discarding: Some(CellDrop::Epd), ..MIDDLE };
    assert_eq!(cell(&epd, IDLE, seen(500, 1)), (Some(CellDrop::Epd), discarding));
    assert_eq!(last(&epd, discarding, seen(1, 1)), (Some(CellDrop::Epd), IDLE));
    assert_eq!(last(&epd, MIDDLE, seen(999, 1)), (None, IDLE));
}

/// The last cell of a frame of which a part was admitted ends that part: without it the receiver
/// would join the part and the next frame, and lose both.
#[test]
fn the_end_of_a_frame_that_was_admitted_in_part_passes_whatever_becomes_of_last_cells() {
    for scheme in [Scheme::Ppd, Scheme::Epd { threshold: cells(500) }] {
        let rules = rules(scheme, LastCell::Drop);
        let partial = FrameState { discarding: Some(CellDrop::Ppd), partial: true, ..MIDDLE };
        assert_eq!(cell(&rules, MIDDLE, seen(1000, 4)), (Some(CellDrop::QueueFull), partial));
        assert_eq!(cell(&rules, partial, seen(10, 4)), (Some(CellDrop::Ppd), partial));
        assert_eq!(last(&rules, partial, seen(999, 4)), (None, IDLE));
        assert_eq!(last(&rules, partial, seen(1000, 4)), (Some(CellDrop::QueueFull), IDLE));
    }
    // Of this frame nothing was admitted.
    let ppd = rules(Scheme::Ppd, LastCell::Drop);
    let (reason, whole) = cell(&ppd, IDLE, seen(1000, 4));
    assert_eq!((reason, whole.partial), (Some(CellDrop::QueueFull), false));
    assert_eq!(last(&ppd, whole, seen(10, 4)), (Some(CellDrop::Ppd), IDLE));
}

#[test]
fn tail_drop_knows_no_frames() {
    let tail = rules(Scheme::Tail, LastCell::Pass);
    assert_eq!(cell(&tail, IDLE, seen(1000, 1)), (Some(CellDrop::QueueFull), IDLE));
    assert_eq!(cell(&tail, IDLE, seen(999, 1)), (None, IDLE));
}

#[test]
fn ppd_drops_the_rest_of_a_frame_that_lost_a_cell_and_no_frame_as_such() {
    let ppd = rules(Scheme::Ppd, LastCell::Pass);
    let partial = FrameState { discarding: Some(CellDrop::Ppd), ..MIDDLE };
    assert_eq!(cell(&ppd, IDLE, seen(999, 1)), (None, MIDDLE));
    assert_eq!(cell(&ppd, IDLE, seen(1000, 1)), (Some(CellDrop::QueueFull), partial));
    assert_eq!(last(&ppd, partial, seen(1, 1)), (None, IDLE));
}

/// Sun 1998, chapter 4: 10 VCs, 700 cells: 70 cells a VC.
#[test]
fn epd_with_per_vc_accounting_spares_a_vc_below_its_share() {
    let scheme = |vcs| rules(Scheme::EpdPerVc { threshold: cells(700), vcs }, LastCell::Pass);
    for (rules, active) in [(scheme(None), 10), (scheme(Some(10)), 3)] {
        let seen = |queue, vc| Occupancy { active, ..seen(queue, vc) };
        assert_eq!(cell(&rules, IDLE, seen(700, 69)), (None, MIDDLE));
        assert_eq!(cell(&rules, IDLE, seen(699, 70)), (None, MIDDLE));
        assert_eq!(cell(&rules, IDLE, seen(700, 70)).0, Some(CellDrop::Epd));
    }
}

/// Ano et al. 2002: cells of CLP = 1 go from 90 % of the memory on.
#[test]
fn selective_discard_drops_low_priority_from_its_limit_on() {
    let discard = Discard { low_priority_limit: Some(cells(900)), ..Discard::default() };
    let rules = discard.rules(None, Some(cells(1000))).expect("a queue");
    let mut state = IDLE;
    let at = |memory| Occupancy { memory, queue: 5, ..Occupancy::default() };
    assert_eq!(rules.admit(&mut state, &at(899), false, true), None);
    assert_eq!(rules.admit(&mut state, &at(900), false, true), Some(CellDrop::Selective));
    assert_eq!(rules.admit(&mut state, &at(999), false, false), None);
    assert_eq!(rules.admit(&mut state, &at(1000), false, false), Some(CellDrop::MemoryFull));
}

#[test]
fn thresholds_may_count_the_shared_memory() {
    let scheme = Scheme::Epd { threshold: cells(500) };
    let discard = Discard { scheme, measure: Measure::Memory, ..Discard::default() };
    let rules = discard.rules(Some(cells(400)), Some(cells(1000))).expect("a queue");
    let at = |queue, memory| Occupancy { queue, memory, ..Occupancy::default() };
    assert_eq!(cell(&rules, IDLE, at(1, 500)).0, Some(CellDrop::Epd));
    assert_eq!(cell(&rules, IDLE, at(399, 499)).0, None);
}

#[test]
fn thresholds_that_make_no_sense_are_refused() {
    let refused = |scheme, low| {
        let discard = Discard { scheme, low_priority_limit: low, ..Discard::default() };
        discard.rules(Some(cells(1000)), Some(cells(2000))).expect_err("no sense").to_string()
    };
    let epd = |threshold| Scheme::Epd { threshold: cells(threshold) };
    assert_eq!(refused(epd(1001), None), "the EPD threshold of 1001 cells is above the buffer of 1000 cells");
    assert_eq!(refused(epd(0), None), "the EPD threshold is 0 cells; it must be at least 1");
    let spd = |vc, activation| Scheme::Spd {
        epd_threshold: cells(1000),
        vc_threshold: cells(vc),
        activation: cells(activation),
    };
    assert_eq!(refused(spd(0, 200), None), "the SPD threshold is 0 cells; it must be at least 1");
    let above = refused(spd(20, 2000), None);
    assert_eq!(above, "the SPD activation threshold of 2000 cells is above the buffer of 1000 cells");
    assert_eq!(
        refused(Scheme::Tail, Some(cells(2001))),
        "the limit of CLP = 1 of 2001 cells is above the buffer of 2000 cells"
    );
    let none = Discard::default().rules(Some(CellCount::ZERO), None).expect_err("no buffer");
    assert_eq!(none, DiscardError::NoBuffer);
}

proptest! {
    /// Cells of three VCs come and go in any order: between two times at which nothing of a VC
    /// waits, SPD takes at most one frame of it, and it takes none of an empty queue.
    #[test]
    fn spd_drops_at_most_one_frame_of_a_vc_between_two_times_that_its_queue_is_empty(
        steps in prop::collection::vec((0_usize..5, 0_u8..8), 1..2000),
    ) {
        let scheme = Scheme::Spd { epd_threshold: cells(50), vc_threshold: cells(5), activation: cells(10) };
        let rules = Discard { scheme, ..Discard::default() }.rules(Some(cells(60)), None).expect("a queue");
        let mut queue = std::collections::VecDeque::new();
        let (mut states, mut taken) = ([FrameState::default(); 3], [0; 3]);
        for (vc, end) in steps {
            let waiting = |queue: &std::collections::VecDeque<usize>, vc| queue.iter().filter(|of| **of == vc).count();
            if vc >= 3 {
                if let Some(of) = queue.pop_front()
                    && waiting(&queue, of) == 0
                {
                    taken[of] = 0;
                }
                continue;
            }
            let own = waiting(&queue, vc) as u32;
            let total = queue.len() as u32;
            let before = states[vc];
            let dropped = rules.admit(&mut states[vc], &seen(total, own), end == 0, false);
            if dropped == Some(CellDrop::Spd) && !before.receiving {
                prop_assert!(own >= 5 && total > 10);
                taken[vc] += 1;
                prop_assert!(taken[vc] <= 1, "two frames of VC {} before its queue was empty", vc);
            }
            if dropped.is_none() {
                queue.push_back(vc);
            }
        }
    }
}
