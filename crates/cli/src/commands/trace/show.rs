//! The summary of a trace: mean, percentiles over time, outages, a chart.

use std::fmt::Write as _;

use lastmile_queueing::line::trace::{Step, Trace};
use lastmile_scenario::trace::file;
use lastmile_scenario::trace::generate::Has;
use lastmile_text::bars;
use lastmile_text::table::{Kind, Table};
use lastmile_units::{BitRate, Duration};
use serde::Serialize;

/// Opportunities show as rates over this time. Two of them at least as far apart have an outage between them.
const INTERVAL: Duration = Duration::from_ms(100);

/// Figures of a trace, for `--json`.
#[derive(Serialize)]
pub(super) struct Summary {
    /// `steps` or `opportunities`.
    kind: &'static str,
    /// Steps, or opportunities.
    entries: usize,
    length_s: f64,
    /// The trace starts again after its length.
    repeats: bool,
    mean_rate_bps: f64,
    /// Rates that the line has for at most this share of the time.
    rate_p5_bps: f64,
    rate_p50_bps: f64,
    rate_p95_bps: f64,
    /// Spans without capacity.
    outages: usize,
    outage_s: f64,
    longest_outage_s: f64,
    /// `null` where the trace has no delay: that of its line holds.
    least_delay_s: Option<f64>,
    largest_delay_s: Option<f64>,
}

/// Rates over time, with the length of each.
fn spans(trace: &Trace, length: Duration) -> (Vec<(Duration, Step)>, Duration) {
    let stepped;
    let steps = match trace {
        Trace::Steps(steps) => &**steps,
        Trace::Opportunities(blocks) => {
            let bits = blocks.bytes().as_u64() * 8;
            let carried: Vec<_> = blocks.times().iter().map(|at| (*at, bits)).collect();
            match file::steps_of(&carried, INTERVAL, blocks.period()) {
                Ok(steps) => {
                    stepped = steps;
                    &stepped
                }
                Err(_) => return (Vec::new(), blocks.period()),
            }
        }
    };
    let last = steps.steps().last().map_or(Duration::ZERO, |step| step.at);
    let end = steps.period().unwrap_or(length.max(last + Duration::from_s(1)));
    let ends = steps.steps().iter().skip(1).map(|step| step.at).chain([end]);
    (steps.steps().iter().zip(ends).map(|(step, end)| (end - step.at, *step)).collect(), end)
}

/// Lengths of the spans without capacity, in seconds.
fn outages(trace: &Trace, spans: &[(Duration, Step)]) -> Vec<f64> {
    let lengths: Vec<Duration> = match trace {
        Trace::Steps(_) => spans.iter().filter(|(_, step)| step.rate.is_none()).map(|(span, _)| *span).collect(),
        Trace::Opportunities(blocks) => {
            // The last of a period is followed by the first of the next.
            let again = blocks.times().first().map(|first| *first + blocks.period());
            let next = blocks.times().iter().copied().skip(1).chain(again);
            blocks.times().iter().zip(next).map(|(at, next)| next - *at).filter(|gap| *gap >= INTERVAL).collect()
        }
    };
    lengths.into_iter().map(Duration::as_secs_f64).collect()
}

fn bps(step: &Step) -> f64 {
    step.rate.map_or(0.0, |rate| rate.as_bps() as f64)
}

impl Summary {
    /// The figures of `trace`, which `has` these beside rates; one that is played once counts for `length`.
    pub(super) fn of(trace: &Trace, has: Has, length: Duration) -> Self {
        let (spans, end) = spans(trace, length);
        let length_s = end.as_secs_f64();
        let mut by_rate: Vec<(f64, f64)> = spans.iter().map(|(span, step)| (bps(step), span.as_secs_f64())).collect();
        by_rate.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let percentile = |share: f64| {
            let mut time = 0.0;
            let found = by_rate.iter().find(|(_, span)| {
                time += span;
                time >= share * length_s
            });
            found.or(by_rate.last()).map_or(0.0, |(rate, _)| *rate)
        };
        let outages = outages(trace, &spans);
        let delays = spans.iter().filter(|_| has.delay).map(|(_, step)| step.delay);
        let (kind, entries) = match trace {
            Trace::Steps(steps) => ("steps", steps.steps().len()),
            Trace::Opportunities(blocks) => ("opportunities", blocks.times().len()),
        };
        Self {
            kind,
            entries,
            length_s,
            repeats: trace.period().is_some(),
            mean_rate_bps: trace.mean_rate(end).map_or(0.0, |rate| rate.as_bps() as f64),
            rate_p5_bps: percentile(0.05),
            rate_p50_bps: percentile(0.5),
            rate_p95_bps: percentile(0.95),
            outages: outages.len(),
            // The sum of no numbers is -0.
            outage_s: outages.iter().fold(0.0, |sum, outage| sum + outage),
            longest_outage_s: outages.iter().copied().fold(0.0, f64::max),
            least_delay_s: delays.clone().min().map(Duration::as_secs_f64),
            largest_delay_s: delays.max().map(Duration::as_secs_f64),
        }
    }

    /// The figures as a table, and the rate over time as a chart.
    pub(super) fn text(&self, trace: &Trace, width: u16) -> String {
        let rate = |bps: f64| BitRate::from_bps(bps as u64).map_or("0".to_owned(), |rate| rate.to_string());
        let mut table = Table::new([("", Kind::Name), ("", Kind::Text)]);
        let end = if self.repeats { "then again" } else { "then as its last step" };
        table.row(["length".to_owned(), format!("{:.3} s, {} {}, {end}", self.length_s, self.entries, self.kind)]);
        table.row(["mean rate".to_owned(), rate(self.mean_rate_bps)]);
        for (name, bps) in [("5 %", self.rate_p5_bps), ("median", self.rate_p50_bps), ("95 %", self.rate_p95_bps)] {
            table.row([format!("rate, {name} of the time"), rate(bps)]);
        }
        let outages = match self.outages {
            0 => "none".to_owned(),
            count => format!("{count}, {:.3} s together, the longest {:.3} s", self.outage_s, self.longest_outage_s),
        };
        table.row(["outages".to_owned(), outages]);
        let delay = match self.least_delay_s.zip(self.largest_delay_s) {
            Some((least, largest)) => format!("{:.1} to {:.1} ms", least * 1e3, largest * 1e3),
            None => "none in the trace: that of the line holds".to_owned(),
        };
        table.row(["delay".to_owned(), delay]);
        let mut text = table.render();
        let (spans, end) = spans(trace, Duration::from_ps((self.length_s * 1e12) as u64));
        let chart = chart(&spans, end, usize::from(width.clamp(20, 100)) - 2);
        let largest = chart.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(text, "\n  {}\n  0 to {}", bars::line(chart.into_iter().map(Some), largest), rate(largest));
        text
    }
}

/// The mean rate of each of `columns` equal parts.
fn chart(spans: &[(Duration, Step)], end: Duration, columns: usize) -> Vec<f64> {
    let width = end.as_secs_f64() / columns as f64;
    let mut sums = vec![0.0; columns];
    for (span, step) in spans {
        let (start, stop) = (step.at.as_secs_f64(), (step.at + *span).as_secs_f64());
        let first = (start / width) as usize;
        for (column, sum) in sums.iter_mut().enumerate().skip(first) {
            let (left, right) = (column as f64 * width, (column + 1) as f64 * width);
            if left >= stop {
                break;
            }
            *sum += (right.min(stop) - left.max(start)).max(0.0) * bps(step) / width;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastmile_queueing::line::trace::Opportunities;
    use lastmile_scenario::trace::generate::Base;
    use lastmile_units::Ratio;

    use super::*;

    /// Gaps of 99 ms, 101 ms and, from the last of a period to the first of the next, 1 s.
    #[test]
    fn outages_are_the_gaps_between_opportunities() {
        let at = [1, 100, 201, 202].map(Duration::from_ms);
        let blocks = Opportunities::new(at.to_vec(), Duration::from_ms(1_201), Opportunities::MAHIMAHI_BYTES);
        let trace = Trace::Opportunities(Arc::new(blocks.expect("a trace")));
        let summary = Summary::of(&trace, Has::default(), Duration::ZERO);
        assert_eq!(summary.outages, 2);
        assert!((summary.outage_s - 1.101).abs() < 1e-9 && (summary.longest_outage_s - 1.0).abs() < 1e-9);
        assert!(summary.text(&trace, 80).contains("none in the trace: that of the line holds"));
    }

    /// Without a delay of its own, a trace leaves that of the line in force.
    #[test]
    fn a_delay_is_shown_where_the_trace_has_one() {
        let base = Base { rate: None, delay: Duration::from_ms(7), loss: Ratio::ZERO };
        let delays = |text: &str| {
            let read = file::read(text, base, None, None).expect("a trace");
            let summary = Summary::of(&read.trace, read.has, Duration::from_s(2));
            (summary.least_delay_s, summary.largest_delay_s)
        };
        assert_eq!(delays("at,rate\n0 s,1 Mbit/s\n"), (None, None));
        let own = "at,rate,delay\n0 s,1 Mbit/s,10 ms\n1 s,1 Mbit/s,30 ms\n";
        assert_eq!(delays(own), (Some(0.01), Some(0.03)));
    }
}
