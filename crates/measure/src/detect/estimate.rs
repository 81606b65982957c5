//! Rates with their 95 % intervals: from times, after losses, and from two measurements of one rate.

use crate::report::Estimate;
use crate::statistics::Z;

/// Standard error of a rate that no average removes, relative: the clocks of two computers differ
/// by up to 1e-4, evenly spread.
const CLOCKS: f64 = 5.8e-5;
/// An interval that is narrower by this factor belongs to the better measurement of two.
const CLEARLY: f64 = 0.5;

/// Half-width of a rate's 95 % interval, relative, by the standard error of its time.
pub(super) fn within(error: f64) -> f64 {
    Z * error.hypot(CLOCKS)
}

/// `bits` over `seconds` with a relative half-width.
pub(super) fn inverse(bits: f64, seconds: f64, relative: f64) -> Estimate {
    let value = bits / seconds;
    Estimate { value, low: value * (1.0 - relative), high: value * (1.0 + relative) }
}

/// A rate that lost packets have lowered, if they are lost behind the queue. The interval includes
/// the case that they are lost before it, where they take no time of the line.
pub(super) fn regained(rate: Estimate, loss: Estimate) -> Estimate {
    Estimate { value: rate.value / (1.0 - loss.value), low: rate.low, high: rate.high / (1.0 - loss.high) }
}

/// An estimate for the best candidate, which also covers that of all candidates if none is sure.
pub(super) fn covering(best: Estimate, all: Estimate, sure: bool) -> Estimate {
    if sure { best } else { both(best, all) }
}

/// The rate of the wire, measured by the segments of many sizes and by the long overload with
/// packets of the largest size.
///
/// A segment lasts a quarter of a second or more, so a sender or receiver without a processor
/// disturbs it; the overload lasts eight. The rate of the overload counts where its interval is
/// clearly narrower. Where the intervals exclude each other, one of the two is wrong, and the
/// interval covers both.
pub(super) fn agreed(segments: Estimate, overload: Estimate) -> Estimate {
    let width = |rate: Estimate| (rate.high - rate.low) / rate.value;
    let overload_is_better = width(overload) < CLEARLY * width(segments);
    let (better, other) = if overload_is_better { (overload, segments) } else { (segments, overload) };
    if segments.high < overload.low || overload.high < segments.low { both(better, other) } else { better }
}

/// The first with an interval that covers the second's.
fn both(first: Estimate, second: Estimate) -> Estimate {
    Estimate { value: first.value, low: first.low.min(second.low), high: first.high.max(second.high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value - half, high: value + half }
    }

    /// Two lines of 16 and 100 Mbit/s with the figures of a machine that was busy with other work.
    #[test]
    fn the_long_overload_gives_the_rate_where_segments_scatter() {
        let of_segments = rate(15.54, 0.467);
        assert_eq!(agreed(of_segments, rate(15.998, 0.002)), rate(15.998, 0.002));
        assert_eq!(agreed(rate(16.0, 0.02), rate(16.01, 0.02)), rate(16.0, 0.02), "as good as each other");
        assert_eq!(agreed(rate(16.0, 0.02), rate(16.1, 0.2)), rate(16.0, 0.02));
    }

    #[test]
    fn rates_that_exclude_each_other_are_both_covered() {
        let agreed = agreed(rate(16.6, 5.5), rate(80.8, 11.0));
        assert_eq!((agreed.low, agreed.high), (16.6 - 5.5, 80.8 + 11.0));
        assert!((agreed.value - 80.8).abs() < 1e-9, "relative to its rate, the overload is clearly narrower");
    }
}
