//! Round trips per minute of a loaded phase.
//!
//! Source: draft-ietf-ippm-responsiveness-09, sections 5.3.1 and 5.4, where its four kinds of probes are there. The
//! responsiveness of an interval is that of the probes that ended in the latest four intervals. The first interval
//! whose goodput and responsiveness are stable gives the result, otherwise the last one. Differences: intervals of 1
//! s, those of -08 (-09 has 5 s "for now"); the phase has a fixed length, and its load goes on after that interval.
//!
//! Other probes give 60 s over the mean of their round-trip times.

use crate::foreign::responsiveness::stability::{INTERVAL, MOVING_AVERAGE, Stability, agree};
use crate::probe::Kind;
use crate::report::{ByDraft, Confidence, Estimate, Phase, Responsiveness, Throughput};
use crate::statistics;

/// Round trips per minute of a phase, by the first of the `counted` series that was answered where the draft has no
/// result; a mean over targets at different distances is of none of them. `None` without answers.
pub(super) fn of(phase: &Phase, counted: &[usize]) -> Option<Responsiveness> {
    by_draft(phase).or_else(|| {
        let (series, _) = phase.first_answered(counted)?;
        let from_s = phase.start_s + phase.ramp_s;
        let counted = series.samples.iter().filter(|sample| sample.sent_s >= from_s && !sample.duplicate);
        let round_trip_s = statistics::mean(&counted.filter_map(|sample| sample.rtt_s).collect::<Vec<f64>>())?;
        Some(Responsiveness { rpm: per_minute(round_trip_s), by_draft: false, draft: None })
    })
}

/// The reason for a result by another formula than the draft's, where its probes ran.
pub(super) fn replaced(phase: &Phase, counted: &[usize]) -> Option<String> {
    let ran = phase.probes.iter().any(|series| series.subject.kind == Kind::HttpSelf);
    phase.responsiveness.filter(|seen| ran && !seen.by_draft)?;
    let (from, to) = latest(intervals(phase));
    let ended = Probes::of(phase).ended(from, to);
    let lacking: Vec<&str> =
        KINDS.iter().zip(&ended).filter(|(_, of)| of.is_empty()).map(|(of, _)| of.name()).collect();
    Some(format!(
        "no probe of {} was answered in the last {} s, so that the draft has no result; round trips per minute are \
         60 s over the mean round-trip time of {}",
        lacking.join(", "),
        to - from,
        phase.first_answered(counted)?.0.subject
    ))
}

/// The draft's kinds of probes.
const KINDS: [Kind; 4] = [Kind::TcpConnect, Kind::TlsHandshake, Kind::HttpForeign, Kind::HttpSelf];

/// Ends and times of the draft's four kinds of probes, in the order of their ends; seconds since the phase started.
struct Probes([Vec<(f64, f64)>; 4]);

impl Probes {
    fn of(phase: &Phase) -> Self {
        let of = |kind: Kind| {
            let series = phase.probes.iter().filter(|series| series.subject.kind == kind);
            let answered = series.flat_map(|series| &series.samples).filter(|sample| !sample.duplicate);
            let mut times: Vec<(f64, f64)> = answered
                .filter_map(|sample| sample.rtt_s.map(|rtt_s| (sample.sent_s + rtt_s - phase.start_s, rtt_s)))
                .collect();
            times.sort_by(|a, b| a.0.total_cmp(&b.0));
            times
        };
        Self(KINDS.map(of))
    }

    /// Times of the probes that ended between the ends of two intervals.
    fn ended(&self, from: usize, to: usize) -> [Vec<f64>; 4] {
        let [from_s, to_s] = [from, to].map(|interval| float(interval) * INTERVAL.as_secs_f64());
        self.0.each_ref().map(|kind| -> Vec<f64> {
            kind.iter().filter(|(end_s, _)| (from_s..to_s).contains(end_s)).map(|(_, time_s)| *time_s).collect()
        })
    }

    /// As [`Probes::ended`]; `None` where a kind has none.
    fn within(&self, from: usize, to: usize) -> Option<[Vec<f64>; 4]> {
        let times = self.ended(from, to);
        times.iter().all(|kind| !kind.is_empty()).then_some(times)
    }
}

/// The draft's mean of foreign and loaded responsiveness.
#[derive(Clone, Copy)]
struct Round {
    foreign: Estimate,
    loaded: Estimate,
}

impl Round {
    fn of(times: &[Vec<f64>; 4]) -> Option<Self> {
        let trimmed = |kind: usize| statistics::trimmed_mean(&times[kind]);
        let half = |kind: usize| statistics::mean(&times[kind]).map_or(0.0, |mean| mean.high - mean.value);
        let around = |value: f64, half: f64| per_minute(Estimate { value, low: value - half, high: value + half });
        // Intervals of the three means add in squares.
        let foreign_half = (0..3).map(|kind| half(kind).powi(2)).sum::<f64>().sqrt() / 3.0;
        Some(Self {
            foreign: around((trimmed(0)? + trimmed(1)? + trimmed(2)?) / 3.0, foreign_half),
            loaded: around(trimmed(3)?, half(3)),
        })
    }

    fn rpm(&self) -> Estimate {
        let Self { foreign, loaded } = self;
        let value = f64::midpoint(foreign.value, loaded.value);
        let beside =
            |end: fn(&Estimate) -> f64| ((end(foreign) - foreign.value).hypot(end(loaded) - loaded.value)) / 2.0;
        Estimate { value, low: value - beside(|estimate| estimate.low), high: value + beside(|estimate| estimate.high) }
    }
}

/// By the draft; `None` where a kind of probe has no answer in the last intervals.
fn by_draft(phase: &Phase) -> Option<Responsiveness> {
    let probes = Probes::of(phase);
    let intervals = intervals(phase);
    let saturated = saturation(phase, intervals);
    let round = |(from, to)| Round::of(&probes.within(from, to)?);
    let result = |round: Round, confidence| {
        let draft = ByDraft { foreign_rpm: round.foreign, loaded_rpm: round.loaded, confidence };
        Responsiveness { rpm: round.rpm(), by_draft: true, draft: Some(draft) }
    };
    let Some(saturated) = saturated else {
        return Some(result(round(latest(intervals))?, Confidence::Low));
    };
    let mut newest = None;
    let mut values = Vec::new();
    for interval in saturated + 1..=intervals {
        let Some(round) = round((latest(interval).0.max(saturated), interval)) else { continue };
        newest = Some(round);
        values.push(round.rpm().value);
        if agree(&values[values.len().saturating_sub(MOVING_AVERAGE)..]) {
            return Some(result(round, Confidence::High));
        }
    }
    let confidence = if values.len() >= MOVING_AVERAGE { Confidence::Medium } else { Confidence::Low };
    let newest = match newest {
        Some(newest) => newest,
        None => round(latest(intervals))?,
    };
    Some(result(newest, confidence))
}

/// The whole intervals of a phase.
fn intervals(phase: &Phase) -> usize {
    whole(phase.duration_s / INTERVAL.as_secs_f64()).max(1)
}

/// The intervals of the moving average at the end of one.
fn latest(interval: usize) -> (usize, usize) {
    (interval.saturating_sub(MOVING_AVERAGE), interval)
}

/// The interval at whose end the goodput of each loaded direction has been stable; `None` for never.
fn saturation(phase: &Phase, intervals: usize) -> Option<usize> {
    let stable_at = |throughput: &Throughput| {
        let mut stability = Stability::default();
        (1..=intervals).find(|interval| stability.add(carried(throughput, *interval)))
    };
    let ways: Vec<Option<usize>> = [&phase.download, &phase.upload].into_iter().flatten().map(stable_at).collect();
    ways.into_iter().try_fold(0, |latest, way| Some(latest.max(way?)))
}

/// Bits that arrived in an interval, whose number starts at one.
fn carried(throughput: &Throughput, interval: usize) -> f64 {
    let [from_s, to_s] = [interval - 1, interval].map(|interval| float(interval) * INTERVAL.as_secs_f64());
    let mut before_s = 0.0_f64;
    let mut bits = 0.0;
    for (end_s, rate_bps) in &throughput.samples {
        bits += (end_s.min(to_s) - before_s.max(from_s)).max(0.0) * rate_bps;
        before_s = *end_s;
    }
    bits
}

/// Round trips per minute of a round-trip time with its interval.
fn per_minute(time_s: Estimate) -> Estimate {
    let Estimate { value, low, high } = time_s;
    // An interval that reaches zero has no upper end; a tenth of the estimate stands for it.
    Estimate { value: 60.0 / value, low: 60.0 / high, high: 60.0 / low.max(value / 10.0) }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of intervals")]
fn float(count: usize) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most some thousand intervals")]
fn whole(count: f64) -> usize {
    // A phase may end some milliseconds early.
    (count + 0.05).floor().max(0.0) as usize
}

#[cfg(test)]
mod tests;
