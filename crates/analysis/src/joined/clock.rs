//! The clocks of two captures: their offset and their drift, from the fastest packets of both directions, in each of
//! the parts between the times at which a clock was set.

use crate::quantiles::upper_median;

use super::steps::{self, MOST_DRIFT, Pair, Stretch};

/// Spans of the estimate of the clocks' offset.
const SPANS: usize = 32;
/// Fewest spans of a direction from which a drift follows.
const FEWEST: usize = 8;
/// Errors beyond which a drift, or a difference of the directions, is no chance.
const SURE: f64 = 3.0;
/// Seconds between two times of a usual capture.
const RESOLUTION: f64 = 1e-6;
/// The most times that a clock is set within a capture that is compared.
const MOST_STEPS: usize = 8;

/// The clock of the second capture relative to that of the first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockOffset {
    /// Seconds by which it is ahead at the first packet.
    pub ahead_s: f64,
    /// Seconds that it gains in each second; zero where the packets do not tell.
    pub drift: f64,
    /// Half the round trip of the fastest packets, in the part of the capture where that is longest: the largest error
    /// of the offset, and of delays as long as the drift is right.
    pub error_s: f64,
    /// Seconds a second by which the drift may be wrong (three standard errors); `None` where it is not known, since
    /// the packets are few, or since a queue may have made the difference.
    pub drift_error: Option<f64>,
}

/// A time at which a clock was set: packets from then on would have arrived before they were sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockStep {
    /// Seconds since the first packet of both captures.
    pub at_s: f64,
    /// Seconds by which the clock of the second capture gained.
    pub by_s: f64,
}

/// Why clocks cannot be compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NoClock {
    /// Packets of one direction only are in both captures: delays are relative to the fastest.
    OneDirection,
    /// The clocks seem to drift by this much, seconds a second, and no clock does.
    Drift(f64),
    /// They were set too often.
    Steps,
}

/// The course of the offset within a part.
#[derive(Clone, Copy)]
struct Course {
    from: i64,
    ahead_s: f64,
    drift: f64,
}

impl Course {
    fn ahead_s(&self, at: i64) -> f64 {
        self.ahead_s + self.drift * (at - self.from) as f64 / 1e9
    }
}

/// The course of the offset.
pub(super) struct Clocks {
    pub(super) clock: ClockOffset,
    pub(super) steps: Vec<ClockStep>,
    /// The capture whose clock was set, and by whose numbers the parts begin.
    order: usize,
    /// From the packet of this number on; `None` in a part with one direction.
    parts: Vec<(u32, Option<Course>)>,
}

impl Clocks {
    /// The nanoseconds by which the second clock is ahead.
    pub(super) fn ahead_ns(&self, pair: &Pair) -> Option<f64> {
        let part = self.parts.partition_point(|part| part.0 <= pair.numbers[self.order]).max(1) - 1;
        self.parts[part].1.map(|course| course.ahead_s(pair.at) * 1e9)
    }

    /// The sum of all delays. Packets under way at a step seem to take longer if the other clock was set.
    fn delays_ns(&self, there: &[Pair], back: &[Pair]) -> f64 {
        let delay = |pair: &Pair| Some((pair.later as f64 - self.ahead_ns(pair)?).abs());
        there.iter().chain(back).filter_map(delay).sum()
    }
}

/// The course of the offset.
pub(super) fn offset(there: &[Pair], back: &[Pair]) -> Result<Clocks, NoClock> {
    let first = of_order(there, back, 0);
    if first.as_ref().is_ok_and(|clocks| clocks.parts.len() == 1) {
        return first;
    }
    let second = of_order(there, back, 1);
    let delays_ns = |clocks: &Clocks| clocks.delays_ns(there, back);
    let is_second = match (&first, &second) {
        (Ok(first), Ok(second)) => delays_ns(second) < delays_ns(first),
        (first, _) => first.is_err(),
    };
    if is_second { second } else { first }
}

/// The course, where the clock of this capture is the one that was set.
fn of_order(there: &[Pair], back: &[Pair], order: usize) -> Result<Clocks, NoClock> {
    let parts = steps::parts(there, back, order);
    if parts.len() > MOST_STEPS + 1 {
        return Err(NoClock::Steps);
    }
    let fits: Vec<Option<Fit>> = parts.iter().map(Fit::of).collect();
    if let Some(fit) = fits.iter().flatten().find(|fit| fit.is_no_drift()) {
        return Err(NoClock::Drift(fit.seems));
    }
    let best = fits.iter().flatten().filter(|fit| fit.drift_error.is_some());
    let best = best.min_by(|one, other| one.error().total_cmp(&other.error()));
    // One drift is that of all parts, unless packets of one would arrive before they were sent.
    let drift_of = |fit: &Fit| best.map(|best| best.drift).filter(|drift| fit.trip(*drift) >= 0.0).unwrap_or(fit.drift);
    let first = fits.iter().flatten().next().ok_or(NoClock::OneDirection)?;
    let trips = fits.iter().flatten().map(|fit| fit.trip(drift_of(fit)).abs());
    let clock = ClockOffset {
        ahead_s: first.ahead_s(drift_of(first)),
        drift: best.unwrap_or(first).drift,
        error_s: trips.fold(RESOLUTION, f64::max) / 2.0,
        drift_error: best.and_then(|best| best.drift_error),
    };
    let course = |fit: &Fit| {
        let drift = drift_of(fit);
        Course { from: fit.from, ahead_s: fit.ahead_s(drift), drift }
    };
    let parts: Vec<_> = parts.iter().zip(&fits).map(|(part, fit)| (part.number, fit.as_ref().map(course))).collect();
    let courses: Vec<Course> = parts.iter().filter_map(|part| part.1).collect();
    let step = |two: &[Course]| {
        let at_s = (two[1].from - first.from) as f64 / 1e9;
        ClockStep { at_s, by_s: two[1].ahead_s - two[0].ahead_s(two[1].from) }
    };
    let steps = courses.windows(2).map(step).collect();
    Ok(Clocks { clock, steps, order, parts })
}

/// The offset within a part.
struct Fit {
    from: i64,
    there: Vec<Point>,
    back: Vec<Point>,
    /// The drift; zero where the packets do not tell.
    drift: f64,
    drift_error: Option<f64>,
    /// The drift that both directions show, whatever it is.
    seems: f64,
    length_s: f64,
}

impl Fit {
    /// `None` for one direction.
    fn of(part: &Stretch) -> Option<Self> {
        let Stretch { there, back, .. } = part;
        if there.is_empty() || back.is_empty() {
            return None;
        }
        let times = || there.iter().chain(back).map(|pair| pair.0);
        let (from, to) = (times().min()?, times().max()?);
        let width = (to - from) / SPANS as i64 + 1;
        let [there, back] = [(there, 1), (back, -1)].map(|(pairs, sign)| fastest(pairs, sign, from, width));
        let [line_there, line_back] = [&there, &back].map(|points| Line::of(points));
        // Delays there grow by the drift, and delays back fall by it.
        let (one, other) = (line_there.slope, -line_back.slope);
        let (one_error, other_error) = (line_there.error, line_back.error);
        let weight = 1.0 / (1.0 + (one_error / other_error).powi(2));
        let drift = one * weight + other * (1.0 - weight);
        let (agreement, error) = (one_error.hypot(other_error), one_error.min(other_error));
        let is_alike = agreement.is_finite() && (one - other).abs() <= SURE * agreement;
        let seems = if is_alike && drift.abs() > SURE * error { drift } else { 0.0 };
        let told = if seems.abs() <= MOST_DRIFT { seems } else { 0.0 };
        let drift_error = (is_alike && seems.abs() <= MOST_DRIFT).then_some(SURE * error);
        let mut fit = Self { from, there, back, drift: told, drift_error, seems, length_s: (to - from) as f64 / 1e9 };
        if fit.trip(told) < 0.0 {
            // Some packet would arrive before it was sent: the clocks do drift, and the longest trip is the likeliest.
            let slopes = line_there.slopes.iter().copied().chain(line_back.slopes.iter().map(|slope| -slope));
            let slopes = slopes.filter(|slope| slope.abs() <= MOST_DRIFT).chain([told]);
            fit.drift = slopes.max_by(|one, other| fit.trip(*one).total_cmp(&fit.trip(*other))).unwrap_or(told);
            fit.drift_error = None;
        }
        Some(fit)
    }

    fn error(&self) -> f64 {
        self.drift_error.unwrap_or(f64::INFINITY)
    }

    /// The fastest round trip between the captures, if the clocks drift so.
    fn trip(&self, drift: f64) -> f64 {
        least(&self.there, drift) + least(&self.back, -drift)
    }

    /// The offset at the beginning.
    fn ahead_s(&self, drift: f64) -> f64 {
        (least(&self.there, drift) - least(&self.back, -drift)) / 2.0
    }

    /// True for a change of both directions that is too fast for a drift, and more than errors of times.
    fn is_no_drift(&self) -> bool {
        self.seems.abs() > MOST_DRIFT && self.seems.abs() * self.length_s > steps::LEAST_S
    }
}

/// The fastest packet's delay at the beginning.
fn least(points: &[Point], slope: f64) -> f64 {
    points.iter().map(|(at, later)| later - slope * at).fold(f64::INFINITY, f64::min)
}

/// Seconds since the beginning, and the seconds that a packet seems to take.
type Point = (f64, f64);

/// The fastest packet of each span that has any.
fn fastest(pairs: &[(i64, i64)], sign: i64, from: i64, width: i64) -> Vec<Point> {
    let mut spans = [None::<(i64, i64)>; SPANS];
    for (at, later) in pairs {
        let slot = &mut spans[((at - from) / width) as usize];
        if slot.is_none_or(|(_, least)| sign * later < least) {
            *slot = Some((at - from, sign * later));
        }
    }
    spans.into_iter().flatten().map(|(at, later)| (at as f64 / 1e9, later as f64 / 1e9)).collect()
}

/// The straight line through the fastest packets of a direction (Theil 1950, Sen 1968), which a queue in few of the
/// spans does not turn.
struct Line {
    /// Those between any two of them.
    slopes: Vec<f64>,
    /// Their median.
    slope: f64,
    /// Its error: large where packets waited, and without bound where they are too few.
    error: f64,
}

impl Line {
    fn of(points: &[Point]) -> Self {
        let later = |number: usize| points[number + 1..].iter();
        let slopes = points.iter().enumerate().flat_map(|(number, one)| {
            later(number).filter(|other| other.0 > one.0).map(|other| (other.1 - one.1) / (other.0 - one.0))
        });
        let slopes: Vec<f64> = slopes.collect();
        let slope = upper_median(&slopes).unwrap_or(0.0);
        let rest: Vec<f64> = points.iter().map(|(at, later)| later - slope * at).collect();
        let middle = upper_median(&rest).unwrap_or(0.0);
        let deviations: Vec<f64> = rest.into_iter().map(|rest| (rest - middle).abs()).collect();
        let scatter = upper_median(&deviations).unwrap_or(0.0);
        let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
        let lever = points.iter().map(|point| (point.0 - mean).powi(2)).sum::<f64>().sqrt();
        // 1.48 median deviations are a standard deviation. A queue lasts for several spans: a fourth of them count.
        let error = 2.0 * (1.48 * scatter).max(RESOLUTION) / lever;
        Self { slopes, slope, error: if points.len() < FEWEST { f64::INFINITY } else { error } }
    }
}
