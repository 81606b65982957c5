//! Distributions of delays and times.

use lastmile_analysis::quantiles::nearest_rank;
use lastmile_model::outcome::{Buckets, GrantsOutcome};
use lastmile_queueing::line::grants::Counts;
use lastmile_units::Duration;

use crate::format::to_f64;
use crate::schema::{Delay, Distribution, Grants, PageResponse, RoundTrip};

/// A distribution in nanoseconds, in seconds.
#[must_use]
pub fn delay(waits: &Buckets) -> Delay {
    let count = waits.len();
    let some = |ns: f64| (count > 0).then_some(ns / 1e9);
    let at = |quantile: f64| some(to_f64(waits.value_at_quantile(quantile)));
    // A quantile is the upper end of a value's bucket; the largest value is no larger than
    // that.
    let (p50, p99, p999) = (at(0.5), at(0.99), at(0.999));
    Delay { mean: some(waits.mean()), p50, p99, p999, max: some(to_f64(waits.max())), count }
}

/// Requests and grants of a line, of either clock.
#[must_use]
pub fn grants(outcome: &GrantsOutcome) -> Grants {
    let Counts { requests, collisions, piggybacked, grants, granted, unused, unasked } = outcome.counts;
    Grants {
        requests,
        collisions,
        piggybacked,
        grants,
        granted_bytes: granted,
        unused_bytes: unused,
        unrequested_bytes: unasked,
        request_grant_s: delay(&outcome.waited_ns),
    }
}

/// The distribution of `times`, exact: percentiles by nearest rank.
pub(super) fn round_trip(times: impl Iterator<Item = Duration>) -> RoundTrip {
    response(times.collect(), 0)
}

/// The distribution of `times`, whose percentiles rank the number of `unanswered` requests above all of them.
pub(super) fn response(mut times: Vec<Duration>, unanswered: usize) -> RoundTrip {
    times.sort_unstable();
    let (Some(min), Some(max)) = (times.first().copied(), times.last().copied()) else { return RoundTrip::default() };
    let mean = mean_s(&times);
    let mut ranks: Vec<Option<Duration>> = times.into_iter().map(Some).collect();
    ranks.resize(ranks.len() + unanswered, None);
    let rank = |thousandths| nearest_rank(&ranks, thousandths, 1_000).flatten().map(Duration::as_secs_f64);
    let p999 = rank(999);
    RoundTrip {
        min: Some(min.as_secs_f64()),
        mean: Some(mean),
        p50: rank(500),
        p99: rank(990),
        p999,
        max: Some(max.as_secs_f64()),
        jitter: p999.map(|p999| p999 - min.as_secs_f64()),
    }
}

/// A histogram of `times` in bins of a round width, so that about a hundred span the range.
pub(super) fn distribution(times: impl Iterator<Item = Duration>) -> Distribution {
    let times: Vec<Duration> = times.collect();
    let (Some(min), Some(max)) = (times.iter().min(), times.iter().max()) else { return Distribution::default() };
    let width = bin_width(*max - *min);
    let bin = |time: &Duration| time.as_ps() / width.as_ps();
    let first = bin(min);
    let mut counts = vec![0; usize::try_from(bin(max) - first).expect("about a hundred bins") + 1];
    times.iter().for_each(|time| counts[(bin(time) - first) as usize] += 1);
    Distribution { bin_width_s: Some(width.as_secs_f64()), first_bin: first, counts }
}

/// 1, 2 or 5 times a power of ten of nanoseconds, so that at most a hundred fit `range`; at least 1 µs.
fn bin_width(range: Duration) -> Duration {
    let decades = std::iter::successors(Some(1_000_u64), |ns| ns.checked_mul(10));
    let mut widths = decades.flat_map(|ns| [1, 2, 5].map(|digit| Duration::from_ns(ns.saturating_mul(digit))));
    widths.find(|width| width.as_ps().saturating_mul(100) >= range.as_ps()).unwrap_or(range)
}

pub(super) fn page_response(times: &[Duration]) -> PageResponse {
    let Some(max) = times.last() else { return PageResponse::default() };
    let rank = |thousandths| nearest_rank(times, thousandths, 1_000).map(Duration::as_secs_f64);
    PageResponse {
        mean: Some(mean_s(times)),
        p50: rank(500),
        p95: rank(950),
        p99: rank(990),
        max: Some(max.as_secs_f64()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn mean_s(times: &[Duration]) -> f64 {
    let sum: u128 = times.iter().map(|time| u128::from(time.as_ps())).sum();
    sum as f64 / times.len() as f64 / 1e12
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nearest rank: of 1000 values 1 to 1000 ms, the p-th percentile is the value of that rank.
    #[test]
    fn percentiles_of_round_trips_are_exact() {
        let times = (1..=1_000).rev().map(Duration::from_ms);
        let rtt = round_trip(times);
        assert_eq!([rtt.min, rtt.p50, rtt.p99, rtt.p999, rtt.max], [0.001, 0.5, 0.99, 0.999, 1.0].map(Some));
        assert_eq!(rtt.mean, Some(0.5005));
        let one = round_trip([Duration::from_ms(7)].into_iter());
        assert_eq!([one.min, one.p50, one.p99, one.p999, one.max], [Some(0.007); 5]);
        assert_eq!(one.jitter, Some(0.0));
        assert_eq!(round_trip([].into_iter()), RoundTrip::default());
    }

    /// 99 of 100, and 98 of 100, are answered: the rank of the 99th percentile is the 99th.
    #[test]
    fn unanswered_requests_have_the_highest_ranks() {
        let answered = |count| response((1..=count).map(Duration::from_ms).collect(), 100 - count as usize);
        assert_eq!((answered(99).p99, answered(99).p999, answered(99).jitter), (Some(0.099), None, None));
        assert_eq!((answered(98).p99, answered(98).p50, answered(98).max), (None, Some(0.05), Some(0.098)));
        assert_eq!(answered(0), RoundTrip::default());
    }

    #[test]
    fn a_histogram_is_told_in_seconds_and_nothing_measured_is_null() {
        let mut waits = Buckets::default();
        assert_eq!(delay(&waits), Delay::default());
        waits.record_n(3_000_000_000, 10);
        let told = delay(&waits);
        assert_eq!(told.count, 10);
        // Three significant digits.
        assert!(
            [told.mean, told.p50, told.p99, told.p999, told.max].iter().all(|v| (v.unwrap() - 3.0).abs() < 0.003),
            "{told:?}"
        );
    }
}
