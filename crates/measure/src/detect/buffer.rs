//! The response of a way to overload: a queue's limit, a shaper's bucket, a policer.
//!
//! An overload from an idle line fills the buffer. With the time `T` of a packet known, the backlog
//! at any instant follows from the times of sending and from which packets arrived (Lindley's
//! recursion): `W = max(0, W - gap) + T` for each packet that arrived. This needs no arrival time,
//! so jitter behind the queue does not matter. The backlog at drops is the limit; a packet in
//! transmission has left the queue, so its rest is subtracted by its mean.
//!
//! A token bucket seen from its other side obeys this recursion, so `W` at drops is the depth of a
//! policer's bucket as well. Delay tells the three apart: it grows with `W` from the start (a
//! queue), from `W = h` on (a shaper whose bucket passes `h` at once), or never (a policer).

use lastmile_analysis::quantiles::median;
use serde::{Deserialize, Serialize};

use super::train::{Plan, Seen, lost_share};
use crate::error::Error;
use crate::report::Estimate;
use crate::statistics::{self, Z, mean};
use crate::train::{Path, Way};

/// Offered rate, as a multiple of the rate that leaves.
pub(super) const OVERLOAD: f64 = 1.5;
/// Largest difference from one of the slope of delay against backlog.
const AGREEMENT: f64 = 0.06;
/// Least ratio of the squares of two fits from which the better one is believed.
const EVIDENCE: f64 = 20.0;
/// Width of the middle nine tenths of backlogs at drops, in packets, from which on some packets waited before the
/// queue. One packet is the packet in transmission, and errors of its time add up to one or two.
const SCATTER: f64 = 4.0;

/// The unit of a buffer's capacity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// IP bytes.
    Bytes,
    /// Bytes on the wire, or cells.
    WireBytes,
    /// Packets, whatever their size.
    Packets,
    /// Trains of two sizes do not tell.
    Unknown,
}

/// The buffer of one way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Buffer {
    /// Capacity in IP bytes, full of packets of the largest size.
    pub bytes: Estimate,
    /// Capacity in packets of the largest size.
    pub packets: Estimate,
    /// Time in seconds for which a full buffer lets a packet of the largest size wait.
    pub wait_s: Estimate,
    /// The unit of the limit.
    pub unit: Unit,
}

/// The limit of one way.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Limiter {
    /// Packets wait from the first that exceeds the rate: a line, or a shaper without a burst to
    /// speak of.
    Line,
    /// A burst passes at a higher rate, then packets wait.
    Shaper {
        /// IP bytes that pass at once after a pause, above the rate.
        bucket_bytes: Estimate,
        /// Rate within the burst in bit/s of IP packets, where it was seen.
        burst_bps: Option<Estimate>,
    },
    /// Packets above the rate are lost and never wait.
    Policer {
        /// IP bytes that pass at once after a pause, above the rate.
        bucket_bytes: Estimate,
    },
    /// No overload was possible, or its outcome is ambiguous.
    Unknown,
}

/// One overload of an idle way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    /// Packets that wait when the queue drops, and the standard error of that count.
    pub(super) packets: Option<(f64, f64)>,
    /// Packets that a bucket passes before any waits.
    pub(super) bucket: Option<(f64, f64)>,
    /// Whether delay never grew.
    pub(super) policed: bool,
    /// Packets that wait in a full queue by their delay, and the standard error of that count.
    /// Traffic of others and a bucket do not disturb it; jitter does.
    pub(super) waiting: Option<(f64, f64)>,
}

/// Backlog in seconds ahead of each packet.
fn backlog(seen: &[Seen], packet_s: f64) -> Vec<f64> {
    let (mut work, mut last) = (0.0_f64, seen.first().map_or(0.0, |first| first.sent));
    seen.iter()
        .map(|packet| {
            work = (work - (packet.sent - last)).max(0.0);
            last = packet.sent;
            let ahead = work;
            if packet.arrived.is_some() {
                work += packet_s;
            }
            ahead
        })
        .collect()
}

/// Overloads an idle way with packets of `size` until it drops, for at most `longest_s`, after a
/// pause of `rest_s` in which buckets fill.
pub(super) fn fill(
    path: &mut dyn Path,
    way: Way,
    size: u16,
    packet_s: f64,
    overload: f64,
    (first_s, longest_s, rest_s): (f64, f64, f64),
    most: usize,
) -> Result<Fill, Error> {
    let interval = packet_s / overload;
    // Packets at half the rate: the delay of an idle line.
    let before = ((0.15 / packet_s) as usize).clamp(8, 2_000);
    let longest_s = longest_s.min(most.saturating_sub(before + 1) as f64 * interval);
    let mut length = first_s.max(200.0 * interval).min(longest_s);
    loop {
        let mut plan = Plan::default();
        plan.packet(size, rest_s);
        (0..before).for_each(|_| plan.packet(size, 2.0 * packet_s));
        let start = plan.len();
        (0..(length / interval) as usize).for_each(|_| plan.packet(size, interval));
        let seen = plan.send(path, way)?;
        let dropped = lost_share(&seen[seen.len() - (seen.len() - start) / 4..]);
        // A quarter of the drops that a full buffer must make is enough to see it.
        if dropped > 0.25 * (1.0 - overload.recip()) || length >= longest_s {
            let mut fill = read(&seen[1..], packet_s);
            fill.waiting = waiting(&seen[1..start], &seen[start..], packet_s, overload);
            return Ok(fill.without_bucket());
        }
        length = (length * 3.0).min(longest_s);
    }
}

impl Fill {
    /// Behind a bucket, a backlog is the difference of two large ones; delay shows it better.
    fn without_bucket(mut self) -> Self {
        if self.bucket.is_some() {
            let better = |waiting: &(f64, f64)| self.packets.is_none_or(|packets| waiting.1 < packets.1);
            self.packets = self.waiting.filter(better).or(self.packets).filter(|fill| fill.0 > 1.0);
        }
        self
    }
}

/// Packets in a full queue, by the delay that packets gain from the idle way (`before`) to the time
/// between the first drops of an overload and its end, and the standard error. A packet is accepted after the start
/// of a transmission, by half the time between two departures in the mean, and waits for one start less than the
/// queue holds packets.
fn waiting(before: &[Seen], overload: &[Seen], packet_s: f64, factor: f64) -> Option<(f64, f64)> {
    let first = (0..overload.len()).find(|&at| fills(overload, at))?;
    let delays = |seen: &[Seen]| -> Option<Estimate> {
        let delays: Vec<f64> = seen.iter().filter_map(|seen| Some(seen.arrived? - seen.sent)).collect();
        // The interval costs the square of the number of samples.
        let thin = delays.len().div_ceil(1_000).max(1);
        mean(&delays.iter().copied().step_by(thin).collect::<Vec<_>>()).filter(|_| delays.len() >= 6)
    };
    let (empty, full) = (delays(before)?, delays(&overload[first..])?);
    let error = (full.high - full.low).hypot(empty.high - empty.low) / 2.0 / Z;
    let count = (full.value - empty.value) / packet_s + 0.5 / factor;
    Some((count, (error / packet_s).hypot(0.15)))
}

/// Reads one overload.
pub(super) fn read(seen: &[Seen], packet_s: f64) -> Fill {
    let packet_s = plateau(seen, packet_s).unwrap_or(packet_s);
    let ahead = backlog(seen, packet_s);
    let (packets, limit) = match drops(seen, &ahead, packet_s) {
        Some((count, error, limit)) => (Some((count, error)), limit),
        None => (None, f64::INFINITY),
    };
    let points: Vec<(f64, f64)> = seen
        .iter()
        .zip(&ahead)
        .filter_map(|(seen, &ahead)| Some((ahead.min(limit), seen.arrived? - seen.sent)))
        .collect();
    let highest = points.iter().map(|point| point.0).fold(0.0, f64::max);
    let mut fill = Fill { packets, bucket: None, policed: false, waiting: None };
    if points.len() < 20 || highest < 3.0 * packet_s {
        return fill;
    }
    let line = hinge(&points, 0.0);
    let (at, bent) = bend(&points, highest);
    let evidence = (line.squares - bent.squares) / (bent.squares / (points.len() as f64 - 3.0)).max(1e-30);
    let grows = bent.slope > 0.5 && bent.slope < 2.0 && bent.slope > 6.0 * bent.error;
    if grows && at > 3.0 * packet_s && evidence > EVIDENCE && line.slope + 4.0 * line.error < 1.0 {
        // The place of the bend, by the scatter of delays about it.
        let error = (bent.squares / points.len() as f64).sqrt() / (points.len() as f64).sqrt() * 4.0 + 0.01 * at;
        fill.bucket = Some((at / packet_s, error / packet_s));
        fill.packets = packets.map(|(count, own)| (count - at / packet_s, own.hypot(error / packet_s)));
        return fill;
    }
    if line.slope + 4.0 * line.error < 0.3 {
        fill.policed = packets.is_some();
    } else if (line.slope - 1.0).abs() > AGREEMENT + 3.0 * line.error {
        // Others use the queue, or it is none: the backlog is not known.
        fill.packets = None;
    }
    fill
}

/// The backlog from which on delay follows it, and the fit: a coarse search, then a fine one.
fn bend(points: &[(f64, f64)], highest: f64) -> (f64, Hinge) {
    let search = |from: f64, to: f64| {
        let step = (to - from) / 40.0;
        let fits = (0..=40).map(|i| from + step * f64::from(i)).map(|at| (at, hinge(points, at)));
        let best = fits.filter(|fit| fit.1.error.is_finite()).min_by(|a, b| a.1.squares.total_cmp(&b.1.squares));
        (best.unwrap_or((from, hinge(points, from))), step)
    };
    let ((coarse, _), step) = search(0.0, 0.99 * highest);
    search((coarse - step).max(0.0), (coarse + step).min(0.995 * highest)).0
}

/// Whether a full queue drops the packet `at`. A loss on the wire comes alone; a full queue drops
/// again within a few packets.
fn fills(seen: &[Seen], at: usize) -> bool {
    let lost = |at: usize| seen[at].arrived.is_none();
    lost(at) && (at + 1..seen.len().min(at + 12)).filter(|&next| lost(next)).count() >= 2
}

/// Time per packet between the first drops and the last: a full queue is full at both, so the
/// packets accepted in between are those that left. Jitter and clocks of the receiver have no part
/// in it. `None` if too few are accepted in between, or if others share the queue.
fn plateau(seen: &[Seen], packet_s: f64) -> Option<f64> {
    let lost = |at: usize| seen[at].arrived.is_none();
    let first = (0..seen.len()).find(|&at| fills(seen, at))?;
    let last = (first..seen.len()).rev().find(|&at| lost(at))?;
    let accepted = (first..last).filter(|&at| !lost(at)).count();
    let seconds = (seen[last].sent - seen[first].sent) / accepted.max(1) as f64;
    (accepted >= 200 && (seconds / packet_s - 1.0).abs() < 0.02).then_some(seconds)
}

/// The queue's packets at drops, its standard error, and the mean backlog at drops.
fn drops(seen: &[Seen], ahead: &[f64], packet_s: f64) -> Option<(f64, f64, f64)> {
    let at: Vec<f64> = seen.iter().zip(ahead).filter(|each| each.0.arrived.is_none()).map(|each| *each.1).collect();
    // Losses on the wire come at any backlog. Most of an overload's drops come at the limit.
    let full: Vec<f64> = {
        let middle = median(&at);
        at.iter().copied().filter(|&backlog| (backlog - middle).abs() < 0.1 * middle + 1.5 * packet_s).collect()
    };
    let first = ahead.iter().position(|&backlog| full.first().is_some_and(|&limit| backlog >= limit))?;
    let overload = &seen[first..];
    let share = lost_share(overload);
    if full.len() < 8 || share < 0.08 || (full.len() as f64) < 0.8 * at.len() as f64 {
        return None;
    }
    // Errors of the packet time add up while the line is busy: the first drops know most.
    let early = &full[..full.len().min(40)];
    let mean = early.iter().sum::<f64>() / early.len() as f64;
    // A packet is dropped while the one in transmission has between nothing and this left.
    let rest = packet_s * share / 2.0;
    let late = &full[full.len() - early.len()..];
    let drift_s = late.iter().sum::<f64>() / late.len() as f64 - mean;
    let drift = drift_s.abs() / packet_s;
    let (least, scatter) = punctual(&full, drift_s, packet_s);
    let count = (mean.min(least) - rest) / packet_s;
    let error = 0.15_f64.hypot((0.25 * drift).min(0.05 * count));
    Some((count, error.hypot(scatter), mean))
}

/// The backlog in seconds at drops of packets that nothing delayed before the queue, and its standard error in
/// packets; infinite and without error where the backlogs at drops differ by [`SCATTER`] at most. They drift by
/// `drift_s` from the first to the last.
///
/// A device that looks for packets now and then, and a sender or a device without a processor, let packets wait before
/// they meet the queue. The backlog at their drops is too large by that wait, and never too small. So the least
/// backlogs are the truest, and the distance to the median shows how far off they may be.
fn punctual(full: &[f64], drift_s: f64, packet_s: f64) -> (f64, f64) {
    let step = drift_s / full.len() as f64;
    let mut sorted: Vec<f64> = full.iter().enumerate().map(|(index, backlog)| backlog - step * index as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| statistics::quantile(&sorted, share).unwrap_or(f64::INFINITY);
    let (low, middle, high) = (quantile(0.05), quantile(0.5), quantile(0.95));
    if high - low < SCATTER * packet_s {
        return (f64::INFINITY, 0.0);
    }
    // Half of a packet's time for the place within the packet in transmission.
    (low + packet_s / 2.0, (middle - low) / packet_s / Z)
}

/// A fit of delay against `max(0, backlog - at)`.
#[derive(Clone, Copy, Debug)]
struct Hinge {
    slope: f64,
    error: f64,
    squares: f64,
}

fn hinge(points: &[(f64, f64)], at: f64) -> Hinge {
    let count = points.len() as f64;
    let x = |point: &(f64, f64)| (point.0 - at).max(0.0);
    let zero = points[0].1;
    let mean_x = points.iter().map(x).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1 - zero).sum::<f64>() / count;
    let sxx: f64 = points.iter().map(|point| (x(point) - mean_x).powi(2)).sum();
    let sxy: f64 = points.iter().map(|point| (x(point) - mean_x) * (point.1 - zero - mean_y)).sum();
    let syy: f64 = points.iter().map(|point| (point.1 - zero - mean_y).powi(2)).sum();
    let slope = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    let squares = (syy - slope * sxy).max(0.0);
    let error = if sxx > 0.0 { (squares / (count - 2.0) / sxx).sqrt() } else { f64::INFINITY };
    Hinge { slope, error, squares }
}

/// The buffer from overloads with packets of the largest size and of a smaller one, as packets that
/// wait and their standard errors. `wire` has the bytes on the wire of both sizes, where they are
/// known.
pub(super) fn buffer(
    size: u16,
    packet_s: f64,
    large: &[(f64, f64)],
    small: Option<(u16, (f64, f64))>,
    wire: Option<(f64, f64)>,
) -> Option<Buffer> {
    let count = large.len() as f64;
    let mean = large.iter().map(|fill| fill.0).sum::<f64>() / count;
    let spread = large.iter().map(|fill| (fill.0 - mean).powi(2)).sum::<f64>().sqrt();
    let error = (large.iter().map(|fill| fill.1.powi(2)).sum::<f64>().sqrt() / count).max(spread);
    if large.is_empty() || mean < 0.5 {
        return None;
    }
    // `n` packets fit and `n + 1` do not: the limit is anywhere between.
    let whole = |packets: f64| packets.round().max(1.0);
    let range = (whole(mean - 1.96 * error), whole(mean + 1.96 * error) + 1.0);
    let mut bytes = (range.0 * f64::from(size), range.1 * f64::from(size));
    let mut unit = Unit::Unknown;
    if let Some((other, (fit, fit_error))) = small {
        // Overloads with the largest size that differ show how far off one with another size may be.
        let fit_error = fit_error.max(fit * error / mean);
        let fits = (whole(fit - 1.96 * fit_error), whole(fit + 1.96 * fit_error) + 1.0);
        let overlap = |a: (f64, f64), b: (f64, f64)| a.0.max(b.0) < a.1.min(b.1);
        let as_bytes = (fits.0 * f64::from(other), fits.1 * f64::from(other));
        let as_wire = wire.map(|(full, part)| ((range.0 * full, range.1 * full), (fits.0 * part, fits.1 * part)));
        let packets = overlap(range, fits);
        let wired = as_wire.is_some_and(|(a, b)| overlap(a, b));
        unit = match (packets, overlap(bytes, as_bytes), wired) {
            (true, false, false) => Unit::Packets,
            // Where IP bytes explain both sizes, they are the simpler limit.
            (false, true, _) => Unit::Bytes,
            (false, false, true) => Unit::WireBytes,
            _ => Unit::Unknown,
        };
        if unit == Unit::Bytes {
            bytes = (bytes.0.max(as_bytes.0), bytes.1.min(as_bytes.1));
        }
    }
    // A range wider than its unit and than an eighth says too little to be a claim.
    if range.1 - range.0 > 2.5 && range.1 - range.0 > 0.25 * mean {
        return None;
    }
    let packets = Estimate { value: whole(mean), low: range.0, high: range.1 - 1.0 };
    let bytes = match unit {
        Unit::Bytes | Unit::Unknown => Estimate { value: f64::midpoint(bytes.0, bytes.1), low: bytes.0, high: bytes.1 },
        Unit::Packets | Unit::WireBytes => scaled(packets, f64::from(size)),
    };
    Some(Buffer { bytes, packets, wait_s: scaled(packets, packet_s), unit })
}

/// An estimate times a factor.
pub(super) fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate { value: estimate.value * factor, low: estimate.low * factor, high: estimate.high * factor }
}
