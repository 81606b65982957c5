use proptest::prelude::*;

use super::*;

const MS: Time = 1_000_000_000;

fn mbit(rate: u64) -> BitRate {
    BitRate::from_mbit_per_s(rate)
}

fn bits(count: u128) -> Work {
    Work(count * 1_000_000_000_000)
}

fn two_pieces(m1: u64, ms: u64, m2: u64) -> Runtime {
    let m1 = BitRate::from_bps(m1 * 1_000_000);
    Runtime::new(&Curve::new(&ServiceCurve::two_pieces(m1, Duration::from_ms(ms), mbit(m2))), 0, Work::ZERO)
}

/// 1500 bytes in 10 ms are 1.2 Mbit/s. At 1 Mbit/s they take 12 ms, so the curve is concave; at 2 Mbit/s they take
/// 6 ms, and 4 ms may pass before.
#[test]
fn a_packet_within_a_time_is_a_concave_or_a_convex_curve() {
    let within = |ms, rate| ServiceCurve::within(WireBytes::new(1500), Duration::from_ms(ms), mbit(rate));
    let concave = ServiceCurve::two_pieces(BitRate::from_bps(1_200_000), Duration::from_ms(10), mbit(1));
    assert_eq!(within(10, 1), Some(concave));
    assert_eq!(within(10, 2), Some(ServiceCurve::two_pieces(None, Duration::from_ms(4), mbit(2))));
    assert_eq!(within(12, 1), Some(ServiceCurve::linear(mbit(1))));
    assert_eq!(within(0, 1), None);
}

/// 2 Mbit/s for 10 ms are 20 000 bit, and 1 Mbit/s from there on; a line of 8 Mbit/s has a byte each microsecond.
#[test]
fn a_concave_curve_is_met_exactly() {
    let curve = two_pieces(2, 10, 1);
    for (at, work) in [(0, 0), (5, 10_000), (10, 20_000), (20, 30_000)] {
        assert_eq!((curve.time_of(bits(work)), curve.work_by(at * MS)), (at * MS, bits(work)));
    }
    let line = Runtime::new(&Curve::new(&ServiceCurve::linear(mbit(8))), 0, Work::ZERO);
    assert_eq!(line.time_of(Work::of(WireBytes::new(1500))), 1500 * MS / 1000);
    // 8 bits at 3 Mbit/s take 2 666 666.67 ps.
    let third = Runtime::new(&Curve::new(&ServiceCurve::linear(mbit(3))), 0, Work::ZERO);
    assert_eq!(third.time_of(bits(8)), 2_666_667);
}

/// Nothing for 10 ms, then 1 Mbit/s: 10 000 bit at 20 ms. The eligible curve is the line without the pause, so that the
/// same work is eligible at 10 ms.
#[test]
fn a_convex_curve_begins_late_and_is_eligible_at_once() {
    let curve = two_pieces(0, 10, 1);
    for (at, work) in [(10, 0), (20, 10_000)] {
        assert_eq!((curve.time_of(bits(work)), curve.work_by(at * MS)), (at * MS, bits(work)));
    }
    assert_eq!(curve.work_by(5 * MS), Work::ZERO);
    assert_eq!((curve.eligible().time_of(Work::ZERO), curve.eligible().time_of(bits(10_000))), (0, 10 * MS));
    let concave = two_pieces(2, 10, 1);
    assert_eq!(concave.eligible(), concave);
}

/// After a pause the whole first piece is there again.
#[test]
fn a_long_pause_begins_the_curve_anew() {
    let mut curve = two_pieces(2, 10, 1);
    curve.begin(1000 * MS, bits(50_000));
    assert_eq!(curve.time_of(bits(70_000)), 1010 * MS);
    assert_eq!(curve.time_of(bits(80_000)), 1020 * MS);
}

/// At 20 ms the curve is at 30 000 bit and 25 000 have been done. From there 2 Mbit/s meet the old curve at 25 ms, with
/// 35 000 bit; from then on it is the old one.
#[test]
fn a_short_pause_gives_a_part_of_the_first_piece() {
    let mut curve = two_pieces(2, 10, 1);
    curve.begin(20 * MS, bits(25_000));
    assert_eq!(curve.time_of(bits(35_000)), 25 * MS);
    assert_eq!(curve.time_of(bits(45_000)), 35 * MS);
}

/// A class that has had more than its curve must wait until the curve is there.
#[test]
fn a_class_ahead_of_its_curve_keeps_the_old_one() {
    for mut curve in [two_pieces(2, 10, 1), two_pieces(0, 10, 1), two_pieces(1, 10, 1)] {
        let before = curve;
        curve.begin(20 * MS, bits(40_000));
        assert_eq!(curve, before);
    }
}

proptest! {
    /// Against the definition: whatever backlogs there were, the curve is the least of those that begin with each, up
    /// to a picosecond of the steeper slope. Backlogs begin at or below the curve, as those of a class that is served
    /// by it do, and not before the previous one.
    #[test]
    fn a_curve_is_the_least_of_those_of_all_backlogs(
        (m1, m2) in (0..20_u64, 1..20_u64),
        ms in 1..30_u64,
        begins in prop::collection::vec((0..50_u64, 0..100_u32), 1..8),
        at in prop::collection::vec(0..500_u64, 20),
    ) {
        let whole = two_pieces(m1, ms, m2);
        let (mut curve, mut all) = (whole, vec![whole]);
        let (mut now, mut done) = (0, Work::ZERO);
        for (gap, share) in begins {
            now += u128::from(gap) * MS;
            let reached = curve.work_by(now);
            done = Work(done.0 + reached.0.saturating_sub(done.0) * u128::from(share) / 100);
            curve.begin(now, done);
            all.push(Runtime::new(&whole.curve, now, done));
        }
        for at in at {
            let time = now + u128::from(at) * MS;
            let least = all.iter().map(|one| one.work_by(time)).min().expect("some");
            let found = curve.work_by(time);
            // A convex curve is replaced where it is lower at first; the paper's approximation.
            if whole.curve.is_concave() {
                prop_assert!(found.0.abs_diff(least.0) <= 8 * u128::from(whole.curve.m1), "{found:?}, not {least:?}");
            } else {
                prop_assert!(found >= least, "{found:?}, below {least:?}");
            }
            prop_assert!(curve.work_by(curve.time_of(found)) >= found);
        }
    }
}
