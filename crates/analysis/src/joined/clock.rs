//! The clocks of two captures: their offset and their drift, from the fastest packets of both directions.

/// Spans of the estimate of the clocks' offset.
const SPANS: usize = 32;
/// Fewest spans of a direction from which a drift follows.
const FEWEST: usize = 8;
/// Errors beyond which a drift, or a difference of the directions, is no chance.
const SURE: f64 = 3.0;
/// Seconds between two times of a usual capture.
const RESOLUTION: f64 = 1e-6;

/// The clock of the second capture relative to that of the first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClockOffset {
    /// Seconds by which it is ahead at the first packet.
    pub ahead_s: f64,
    /// Seconds that it gains in each second; zero where the packets do not tell.
    pub drift: f64,
    /// Half the round trip of the fastest packets: the largest error of the offset, and of delays as long as the drift
    /// is right.
    pub error_s: f64,
    /// Seconds a second by which the drift may be wrong (three standard errors); `None` where it is not known, since
    /// the packets are few, or since a queue may have made the difference.
    pub drift_error: Option<f64>,
}

/// A packet at both captures: time at the first, and how much later at the second, in nanoseconds.
pub(super) type Pair = (i64, i64);

/// The course of the offset, and the time at which it begins. Pairs are in order of time.
pub(super) fn offset(there: &[Pair], back: &[Pair]) -> Option<(i64, ClockOffset)> {
    let from = there.first()?.0.min(back.first()?.0);
    let to = there.last()?.0.max(back.last()?.0);
    let width = (to - from) / SPANS as i64 + 1;
    let [there, back] = [(there, 1), (back, -1)].map(|(pairs, sign)| fastest(pairs, sign, from, width));
    let [course_there, course_back] = [&there, &back].map(|points| Course::of(points));
    // Delays there grow by the drift, and delays back fall by it.
    let (one, other) = (course_there.slope, -course_back.slope);
    let (one_error, other_error) = (course_there.error, course_back.error);
    let weight = 1.0 / (1.0 + (one_error / other_error).powi(2));
    let drift = one * weight + other * (1.0 - weight);
    let (agreement, error) = (one_error.hypot(other_error), one_error.min(other_error));
    let is_alike = agreement.is_finite() && (one - other).abs() <= SURE * agreement;
    let told = is_alike && drift.abs() > SURE * error;
    let least = |points: &[Point], slope: f64| {
        points.iter().map(|(at, later)| later - slope * at).fold(f64::INFINITY, f64::min)
    };
    let trip = |drift: f64| least(&there, drift) + least(&back, -drift);
    let mut drift_error = is_alike.then_some(SURE * error);
    let mut drift = if told { drift } else { 0.0 };
    if trip(drift) < 0.0 {
        // Some packet would arrive before it was sent: the clocks do drift, and the longest trip is the likeliest.
        let slopes = course_there.slopes.iter().copied().chain(course_back.slopes.iter().map(|slope| -slope));
        drift = slopes.max_by(|one, other| trip(*one).total_cmp(&trip(*other))).unwrap_or(drift);
        drift_error = None;
    }
    let ahead_s = (least(&there, drift) - least(&back, -drift)) / 2.0;
    Some((from, ClockOffset { ahead_s, drift, error_s: (trip(drift) / 2.0).max(0.0), drift_error }))
}

/// Seconds since the beginning, and the seconds that a packet seems to take.
type Point = (f64, f64);

/// The fastest packet of each span that has any.
fn fastest(pairs: &[Pair], sign: i64, from: i64, width: i64) -> Vec<Point> {
    let mut spans = [None::<Pair>; SPANS];
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
struct Course {
    /// Those between any two of them.
    slopes: Vec<f64>,
    /// Their median.
    slope: f64,
    /// Its error: large where packets waited, and without bound where they are too few.
    error: f64,
}

impl Course {
    fn of(points: &[Point]) -> Self {
        let later = |number: usize| points[number + 1..].iter();
        let slopes = points.iter().enumerate().flat_map(|(number, one)| {
            later(number).filter(|other| other.0 > one.0).map(|other| (other.1 - one.1) / (other.0 - one.0))
        });
        let slopes: Vec<f64> = slopes.collect();
        let slope = median(slopes.clone());
        let rest: Vec<f64> = points.iter().map(|(at, later)| later - slope * at).collect();
        let middle = median(rest.clone());
        let scatter = median(rest.into_iter().map(|rest| (rest - middle).abs()).collect());
        let mean = points.iter().map(|point| point.0).sum::<f64>() / points.len() as f64;
        let lever = points.iter().map(|point| (point.0 - mean).powi(2)).sum::<f64>().sqrt();
        // 1.48 median deviations are a standard deviation. A queue lasts for several spans: a fourth of them count.
        let error = 2.0 * (1.48 * scatter).max(RESOLUTION) / lever;
        Self { slopes, slope, error: if points.len() < FEWEST { f64::INFINITY } else { error } }
    }
}

/// The median; zero of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
