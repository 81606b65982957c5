//! The summary of a trace: mean, percentiles over time, outages, a chart.

use std::fmt::Write as _;

use lastmile_queueing::line::trace::{Opportunities, Step, Trace};
use lastmile_scenario::trace::generate::Has;
use lastmile_scenario::trace::write;
use lastmile_text::bars;
use lastmile_text::table::{Kind, Table};
use lastmile_units::{BitRate, Duration};
use serde::Serialize;

/// Opportunities show as rates over this time.
const INTERVAL: Duration = Duration::from_ms(100);

/// Two opportunities have an outage between them if they are at least this far apart, and this many times the mean gap.
const OUTAGE: (Duration, u64) = (Duration::from_ms(100), 4);

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
    /// The shortest gap between opportunities that is an outage; `null` for steps, whose rate is 0 in one.
    least_outage_s: Option<f64>,
    /// `null` where the trace has no delay: that of its line holds.
    least_delay_s: Option<f64>,
    largest_delay_s: Option<f64>,
}

/// Rates over time, with the length of each, and the end of the last.
fn spans(trace: &Trace, length: Option<Duration>) -> (Vec<(Duration, Step)>, Duration) {
    let stepped;
    let steps = match trace {
        Trace::Steps(steps) => &**steps,
        Trace::Opportunities(blocks) => match write::of_opportunities(blocks, INTERVAL) {
            Ok(steps) => {
                stepped = steps;
                &stepped
            }
            Err(_) => return (Vec::new(), blocks.period()),
        },
    };
    let end = write::end(steps, length);
    let ends = steps.steps().iter().skip(1).map(|step| step.at).chain([end]);
    let until_end = steps.steps().iter().zip(ends).take_while(|(step, _)| step.at < end);
    (until_end.map(|(step, until)| (until.min(end) - step.at, *step)).collect(), end)
}

/// The shortest gap between opportunities that is an outage.
fn least_outage(blocks: &Opportunities) -> Duration {
    let (least, gaps) = OUTAGE;
    let mean_ps = blocks.period().as_ps() / blocks.times().len() as u64;
    least.max(Duration::from_ps(mean_ps.saturating_mul(gaps)))
}

/// Lengths of the spans without capacity, in seconds.
fn outages(trace: &Trace, spans: &[(Duration, Step)]) -> Vec<f64> {
    let lengths: Vec<Duration> = match trace {
        Trace::Steps(_) => spans.iter().filter(|(_, step)| step.rate.is_none()).map(|(span, _)| *span).collect(),
        Trace::Opportunities(blocks) => {
            // The last of a period is followed by the first of the next.
            let again = blocks.times().first().map(|first| *first + blocks.period());
            let next = blocks.times().iter().copied().skip(1).chain(again);
            let least = least_outage(blocks);
            blocks.times().iter().zip(next).map(|(at, next)| next - *at).filter(|gap| *gap >= least).collect()
        }
    };
    lengths.into_iter().map(Duration::as_secs_f64).collect()
}

fn bps(step: &Step) -> f64 {
    step.rate.map_or(0.0, |rate| rate.as_bps() as f64)
}

impl Summary {
    /// The figures of `trace`, which `has` these beside rates; one that is played once counts for `length`.
    pub(super) fn of(trace: &Trace, has: Has, length: Option<Duration>) -> Self {
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
        let (kind, entries, least_outage) = match trace {
            Trace::Steps(steps) => ("steps", steps.steps().len(), None),
            Trace::Opportunities(blocks) => ("opportunities", blocks.times().len(), Some(least_outage(blocks))),
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
            least_outage_s: least_outage.map(Duration::as_secs_f64),
            least_delay_s: delays.clone().min().map(Duration::as_secs_f64),
            largest_delay_s: delays.max().map(Duration::as_secs_f64),
        }
    }

    /// The figures as a table, and the rate over time as a chart.
    pub(super) fn text(&self, trace: &Trace, width: u16) -> String {
        let rate = |bps: f64| BitRate::from_bps(bps as u64).map_or("0".to_owned(), |rate| rate.to_string());
        let mut table = Table::new([("", Kind::Name), ("", Kind::Text)]);
        let (spans, until) = spans(trace, Some(Duration::from_ps((self.length_s * 1e12) as u64)));
        let end = match trace {
            _ if self.repeats => "then again",
            Trace::Steps(steps) if spans.len() < steps.steps().len() => "of which the last are later",
            _ => "then as its last step",
        };
        table.row(["length".to_owned(), format!("{:.3} s, {} {}, {end}", self.length_s, self.entries, self.kind)]);
        table.row(["mean rate".to_owned(), rate(self.mean_rate_bps)]);
        for (name, bps) in [("5 %", self.rate_p5_bps), ("median", self.rate_p50_bps), ("95 %", self.rate_p95_bps)] {
            table.row([format!("rate, {name} of the time"), rate(bps)]);
        }
        let least = self.least_outage_s.map_or_else(String::new, |least| format!(" of {least:.3} s or longer"));
        let outages = match self.outages {
            0 => format!("none{least}"),
            count => {
                format!("{count}{least}, {:.3} s together, the longest {:.3} s", self.outage_s, self.longest_outage_s)
            }
        };
        table.row(["outages".to_owned(), outages]);
        let delay = match self.least_delay_s.zip(self.largest_delay_s) {
            Some((least, largest)) => format!("{:.1} to {:.1} ms", least * 1e3, largest * 1e3),
            None => "none in the trace: that of the line holds".to_owned(),
        };
        table.row(["delay".to_owned(), delay]);
        let mut text = table.render();
        let chart = chart(&spans, until, usize::from(width.clamp(20, 100)) - 2);
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

    use lastmile_scenario::trace::file;
    use lastmile_scenario::trace::generate::Base;
    use lastmile_units::Ratio;

    use super::*;

    /// The summary of opportunities at these milliseconds.
    fn of_ms(at: impl IntoIterator<Item = u64>, period: u64) -> (Summary, Trace) {
        let at: Vec<_> = at.into_iter().map(Duration::from_ms).collect();
        let blocks = Opportunities::new(at, Duration::from_ms(period), Opportunities::MAHIMAHI_BYTES);
        let trace = Trace::Opportunities(Arc::new(blocks.expect("a trace")));
        (Summary::of(&trace, Has::default(), None), trace)
    }

    /// 50 opportunities a millisecond apart, then gaps of 99 ms, 101 ms and, from the last of a period to the first of
    /// the next, 1 s. Four times the mean gap of 24 ms is less than 100 ms.
    #[test]
    fn outages_are_the_gaps_between_opportunities() {
        let (summary, trace) = of_ms((1..=50).chain([149, 250]), 1_249);
        assert_eq!((summary.outages, summary.least_outage_s), (2, Some(0.1)));
        assert!((summary.outage_s - 1.101).abs() < 1e-9 && (summary.longest_outage_s - 1.0).abs() < 1e-9);
        let text = summary.text(&trace, 80);
        assert!(text.contains("2 of 0.100 s or longer, 1.101 s together, the longest 1.000 s"), "{text}");
        assert!(text.contains("none in the trace: that of the line holds"));
    }

    /// 1504 bytes each 250 ms are 48.128 kbit/s all the time. Where ten of them lack, the gap of 2.75 s is longer than
    /// four of the mean gaps of 250 ms * 100 / 90.
    #[test]
    fn a_slow_constant_trace_has_no_outage() {
        let (summary, trace) = of_ms((1..=100).map(|number| number * 250), 25_000);
        assert_eq!((summary.outages, summary.least_outage_s), (0, Some(1.0)));
        assert!(summary.text(&trace, 80).contains("none of 1.000 s or longer"));
        let (summary, _) = of_ms((1..=50).chain(61..=100).map(|number| number * 250), 25_000);
        assert_eq!((summary.outages, summary.longest_outage_s), (1, 2.75));
    }

    /// Of 10 s of 1 Mbit/s and a step of 2 Mbit/s: a length within the first has that alone.
    #[test]
    fn a_length_cuts_a_trace_that_is_played_once() {
        let base = Base { rate: None, delay: Duration::ZERO, loss: Ratio::ZERO };
        let read = file::read("at,rate\n0 s,1 Mbit/s\n10 s,2 Mbit/s\n", base, None, None).expect("a trace");
        let of = |length| Summary::of(&read.trace, read.has, length);
        let cut = of(Some(Duration::from_s(5)));
        assert_eq!((cut.length_s, cut.mean_rate_bps, cut.rate_p95_bps), (5.0, 1e6, 1e6));
        assert!(cut.text(&read.trace, 80).contains("5.000 s, 2 steps, of which the last are later"));
        assert_eq!((of(None).length_s, of(Some(Duration::from_s(20))).mean_rate_bps), (600.0, 1.5e6));
    }

    /// Without a delay of its own, a trace leaves that of the line in force.
    #[test]
    fn a_delay_is_shown_where_the_trace_has_one() {
        let base = Base { rate: None, delay: Duration::from_ms(7), loss: Ratio::ZERO };
        let delays = |text: &str| {
            let read = file::read(text, base, None, None).expect("a trace");
            let summary = Summary::of(&read.trace, read.has, Some(Duration::from_s(2)));
            (summary.least_delay_s, summary.largest_delay_s)
        };
        assert_eq!(delays("at,rate\n0 s,1 Mbit/s\n"), (None, None));
        let own = "at,rate,delay\n0 s,1 Mbit/s,10 ms\n1 s,1 Mbit/s,30 ms\n";
        assert_eq!(delays(own), (Some(0.01), Some(0.03)));
    }
}
