//! The plots of one direction, from what was kept of it.

use lastmile_analysis::{Cause, Kind, Phase};

use super::picture::{Bin, Bounded, Extremes, Level, Picture};
use super::plot::{Curve, Plot, Quantity};
use crate::report::shape::Shape;

/// The columns of the plot of throughput.
const COLUMNS: u64 = 160;

/// All plots of a direction; `at_sender` if the capture shows the sender's window.
pub(super) fn plots(picture: &Picture, at_sender: bool) -> Vec<Plot> {
    let mut plots = vec![sequence(picture), windows(picture, at_sender), trips(picture), throughput(picture)];
    plots.push(spacing(picture));
    plots.retain(|plot| !plot.curves.is_empty());
    plots
}

fn curve(name: &'static str, shape: Shape, colour: usize, points: Vec<(u64, i64, i64)>) -> Curve {
    Curve { name, shape, colour, bound: false, points }
}

/// The curves with points.
fn present(curves: impl IntoIterator<Item = Curve>) -> Vec<Curve> {
    curves.into_iter().filter(|curve| !curve.points.is_empty()).collect()
}

/// The points of all bins.
fn points<I: IntoIterator<Item = (i64, i64)>>(picture: &Picture, of: impl Fn(&Bin) -> I) -> Vec<(u64, i64, i64)> {
    let bins = picture.all();
    let mut points = Vec::with_capacity(bins.len());
    for bin in bins {
        points.extend(of(bin).into_iter().map(|(low, high)| (bin.at_us, low, high)));
    }
    points
}

/// One value of each bin.
fn single(picture: &Picture, of: impl Fn(&Bin) -> Option<i64>) -> Vec<(u64, i64, i64)> {
    points(picture, |bin| of(bin).map(|value| (value, value)))
}

/// The extremes of each bin.
fn extents<T: Bounded + TryInto<i64>>(picture: &Picture, of: impl Fn(&Bin) -> Extremes<T>) -> Vec<(u64, i64, i64)> {
    let value = |value: T| value.try_into().unwrap_or(i64::MAX);
    points(picture, |bin| of(bin).seen().map(|extent| (value(extent.low), value(extent.high))))
}

/// The values of a quantity that stays between packets.
fn levels(picture: &Picture, of: impl Fn(&Bin) -> Level) -> Vec<(u64, i64, i64)> {
    let value = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    points(picture, |bin| of(bin).steps().map(|step| (value(step), value(step))))
}

fn sequence(picture: &Picture) -> Plot {
    const KINDS: [(Kind, &str, Shape, usize); 9] = [
        (Kind::Retransmission(Cause::Fast), "fast retransmit", Shape::Triangle, 1),
        (Kind::Retransmission(Cause::InRecovery), "in recovery", Shape::Diamond, 1),
        (Kind::Retransmission(Cause::Timeout), "timeout", Shape::Cross, 3),
        (Kind::Retransmission(Cause::AfterTimeout), "after timeout", Shape::Diamond, 3),
        (Kind::Retransmission(Cause::TailProbe), "tail loss probe", Shape::Square, 6),
        (Kind::Retransmission(Cause::Unknown), "unexplained", Shape::Square, 7),
        (Kind::Reordered, "out of order", Shape::Triangle, 7),
        (Kind::Duplicate, "duplicated", Shape::Cross, 7),
        (Kind::Probe, "probe", Shape::Diamond, 7),
    ];
    let marks = KINDS.into_iter().map(|(kind, name, shape, colour)| {
        let of_kind = picture.marks().iter().filter(|mark| mark.kind == kind);
        curve(name, shape, colour, of_kind.map(|mark| (mark.at_us, mark.start, mark.start)).collect())
    });
    let lines = [
        Curve { bound: true, ..curve("receiver's window", Shape::Steps, 5, single(picture, |bin| bin.edge)) },
        curve("data", Shape::Bars, 0, extents(picture, |bin| bin.data)),
        curve("SACK", Shape::Bars, 4, extents(picture, |bin| bin.sack)),
        curve("ACKs", Shape::Steps, 2, single(picture, |bin| bin.acked)),
    ];
    let curves = present(lines.into_iter().chain(marks));
    Plot { title: "Sequence", quantity: Quantity::Bytes, curves, phases: Vec::new(), high: true }
}

fn windows(picture: &Picture, at_sender: bool) -> Plot {
    let curves = [
        curve("outstanding data", Shape::Steps, 7, levels(picture, |bin| bin.outstanding)),
        curve(
            "congestion window (estimated)",
            Shape::Steps,
            1,
            if at_sender { levels(picture, |bin| bin.window) } else { Vec::new() },
        ),
    ];
    let mut phases: Vec<(u64, Phase)> = Vec::new();
    for bin in picture.all().iter().filter(|_| at_sender) {
        if phases.last().is_none_or(|(_, last)| *last != bin.phase) {
            phases.push((bin.at_us, bin.phase));
        }
    }
    Plot { title: "Windows", quantity: Quantity::Bytes, curves: present(curves), phases, high: false }
}

fn trips(picture: &Picture) -> Plot {
    let trips = curve("round trip", Shape::Line, 2, extents(picture, |bin| bin.round_trip_us));
    let title = "Round-trip time";
    Plot { title, quantity: Quantity::Microseconds, curves: present([trips]), phases: Vec::new(), high: false }
}

/// Acknowledged payload by columns of equal width.
fn throughput(picture: &Picture) -> Plot {
    let (title, quantity) = ("Throughput", Quantity::BitsPerSecond);
    let (Some(first), Some(last)) = (picture.all().first(), picture.all().last()) else {
        return Plot { title, quantity, curves: Vec::new(), phases: Vec::new(), high: false };
    };
    let (from, to) = (first.at_us, last.at_us);
    let width = ((to - from) / COLUMNS + 1).max(1_000);
    let count = (to - from) / width + 1;
    let mut bytes = vec![0_u64; usize::try_from(count).unwrap_or(0)];
    for bin in picture.all() {
        if let Some(sum) = bytes.get_mut(usize::try_from((bin.at_us - from) / width).unwrap_or(0)) {
            *sum += bin.progress;
        }
    }
    let rate = |(column, bytes): (u64, &u64)| {
        let bps = i64::try_from(u128::from(*bytes) * 8_000_000 / u128::from(width)).unwrap_or(i64::MAX);
        (from + column * width, bps, bps)
    };
    let points = (0..).zip(&bytes).map(rate).collect();
    let curves = present([curve("acknowledged payload", Shape::Steps, 0, points)]);
    Plot { title, quantity, curves, phases: Vec::new(), high: false }
}

fn spacing(picture: &Picture) -> Plot {
    let curves = [
        curve("between data", Shape::Line, 7, extents(picture, |bin| bin.data_gap_us)),
        curve("between their ACKs", Shape::Line, 3, extents(picture, |bin| bin.ack_gap_us)),
    ];
    let title = "ACK spacing";
    Plot { title, quantity: Quantity::Microseconds, curves: present(curves), phases: Vec::new(), high: false }
}
