//! The metrics that a formula can ask of a run, by name. Names and units are those of the results,
//! as far as these have them.

use std::rc::Rc;

use lastmile_theory::fairness::jain;

use crate::quantity::Quantity;

use super::connections::{Connections, goodput_sum_mbps, waits_ms};
use super::peaks;
use super::round_trips::RoundTrips;
use super::trial::{Trial, ip_kbps, ip_kbps_median, mean};

/// The arguments of a metric: texts and numbers.
pub(super) struct Arguments<'a>(&'a [Quantity]);

impl Arguments<'_> {
    fn text(&self, index: usize) -> Option<&str> {
        match self.0.get(index)? {
            Quantity::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, index: usize) -> Option<f64> {
        match self.0.get(index)? {
            Quantity::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// A metric. It gives nothing where its arguments are of another kind, or where the run has no such figure.
type Metric = fn(&Trial, &Arguments<'_>) -> Option<f64>;

/// Every metric: its name, how many arguments it takes, and how it is measured.
const METRICS: &[(&str, usize, Metric)] = &[
    // The length of the run.
    ("run.time_s", 0, |run, _| Some(run.time_s())),
    // Of the flows of a traffic, together.
    ("flow.goodput_bps", 1, |run, of| Some(run.goodput_bps(of.text(0)?))),
    ("flow.goodput_pct", 2, |run, of| Some(run.goodput_pct(of.text(0)?, of.text(1)?))),
    ("flow.time_s", 1, |run, of| run.flow_time_s(of.text(0)?)),
    ("flow.timeouts", 1, |run, of| Some(run.timeouts(of.text(0)?) as f64)),
    ("flow.segments_per_ack", 1, |run, of| Some(run.segments_per_ack(of.text(0)?))),
    ("flow.acked_bytes_when_window_reached", 2, |run, of| run.acked_when_window_reached(of.text(0)?, of.number(1)?)),
    // In IP bytes: from one time to another, and the median over spans of 10 s from a time on.
    ("flow.ip_kbps", 3, |run, of| Some(ip_kbps(run, of.text(0)?, of.number(1)?, of.number(2)?))),
    ("flow.ip_kbps_median", 2, |run, of| Some(ip_kbps_median(run, of.text(0)?, of.number(1)?))),
    // The lowest of several spans of equal length from a time on: the length, and how many.
    ("flow.ip_kbps_lowest", 4, |run, of| {
        let (from_s, length_s, count) = (of.number(1)?, of.number(2)?, of.number(3)? as u32);
        let spans = (0..count).map(|span| from_s + length_s * f64::from(span));
        let name = of.text(0)?;
        Some(spans.map(|from_s| ip_kbps(run, name, from_s, from_s + length_s)).fold(f64::INFINITY, f64::min))
    }),
    ("flow.packets", 1, |run, of| Some(run.packets(of.text(0)?).0 as f64)),
    ("flow.packets_received", 1, |run, of| Some(run.packets(of.text(0)?).1 as f64)),
    ("flow.retransmissions", 1, |run, of| Some(run.sent_again(of.text(0)?) as f64)),
    // When it began, when the last of its data arrived, and when its congestion window first had a size after a time.
    ("flow.start_s", 1, |run, of| Some(run.flow_span_s(of.text(0)?)?.0)),
    ("flow.end_s", 1, |run, of| Some(run.flow_span_s(of.text(0)?)?.1)),
    ("flow.window_reached_s", 3, |run, of| {
        let (window, after) = (of.number(1)?, of.number(2)?);
        let mut windows = run.samples("cwnd_bytes", of.text(0)?);
        windows.find(|(at, cwnd)| *at > after && *cwnd >= window).map(|(at, _)| at)
    }),
    // Retransmissions up to the last change of the offered traffic before a time.
    ("flow.retransmissions_until", 2, |run, of| Some(run.sent_again_by(of.text(0)?, of.number(1)?) as f64)),
    ("flow.jain_index", 1, |run, of| jain(run.bytes_each(of.text(0)?).into_iter())),
    // Of the connections of traffics that are numbered from 1: the name before the number, and how many there are.
    ("connections.goodput_mean_mbps", 2, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).goodput_mean_mbps())
    }),
    ("connections.goodput_min_mbps", 2, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).goodput_min_mbps())
    }),
    ("connections.goodput_max_mbps", 2, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).goodput_max_mbps())
    }),
    ("connections.goodput_spread_pct", 2, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).goodput_spread_pct())
    }),
    ("connections.timeouts_mean", 2, |run, of| Some(Connections::of(run, of.text(0)?, of.number(1)?).timeouts_mean())),
    ("connections.fast_retransmits_mean", 2, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).fast_retransmits_mean())
    }),
    ("connections.pause_max_s", 2, |run, of| Some(Connections::of(run, of.text(0)?, of.number(1)?).pause_max_s())),
    ("connections.pauses_above_mean", 3, |run, of| {
        Some(Connections::of(run, of.text(0)?, of.number(1)?).pauses_above_mean(of.number(2)?))
    }),
    ("connections.jain_index", 2, |run, of| Connections::of(run, of.text(0)?, of.number(1)?).fairness().jain_index),
    ("connections.correlation_with_timeouts", 2, |run, of| {
        Connections::of(run, of.text(0)?, of.number(1)?).fairness().correlation_with_timeouts
    }),
    ("connections.goodput_sum_mbps", 1, |run, of| Some(goodput_sum_mbps(run, of.text(0)?))),
    // Of a ping: its replies, and its waits beyond the fastest round trip of all pings whose names begin so.
    ("ping.replies", 1, |run, of| Some(run.round_trips(of.text(0)?).count() as f64)),
    ("ping.wait_mean_ms", 2, |run, of| {
        let waits = waits_ms(run, of.text(0)?, of.text(1)?);
        Some(waits.iter().sum::<f64>() / waits.len().max(1) as f64)
    }),
    ("ping.wait_sum_ms", 2, |run, of| Some(waits_ms(run, of.text(0)?, of.text(1)?).iter().sum())),
    ("ping.wait_max_ms", 2, |run, of| Some(waits_ms(run, of.text(0)?, of.text(1)?).into_iter().fold(0.0, f64::max))),
    ("ping.lost", 1, |run, of| Some(run.pings_lost(of.text(0)?) as f64)),
    // When the last request left after a time whose reply took at least this number of ms; else that time.
    ("ping.last_above_s", 3, |run, of| {
        let (after, least_ms) = (of.number(1)?, of.number(2)?);
        let late = run.round_trips(of.text(0)?).filter(|(at, took)| *at > after && *took >= least_ms);
        Some(late.map(|(at, _)| at).fold(after, f64::max))
    }),
    // Of a link.
    ("link.wire_rate_bps", 1, |run, of| Some(run.mean_wire_bps(of.text(0)?))),
    ("link.queue_delay_mean_s", 1, |run, of| Some(run.mean_queue_delay_s(of.text(0)?))),
    ("link.queue_delay_while_s", 2, |run, of| run.queue_delay_while_s(of.text(0)?, of.text(1)?)),
    ("link.packets", 1, |run, of| Some(run.link_packets(of.text(0)?) as f64)),
    ("link.dropped_packets", 1, |run, of| Some(run.dropped(of.text(0)?) as f64)),
    ("link.acks_dropped", 1, |run, of| Some(run.acks_dropped(of.text(0)?) as f64)),
    // Of a recorded series of a link or flow from one time to another: its mean and maximum, and percent of zeros.
    ("series.mean", 4, |run, of| Some(mean(run.samples(of.text(0)?, of.text(1)?), of.number(2)?, of.number(3)?))),
    // The largest mean of several spans of equal length from a time on: the length, and how many.
    ("series.busiest_mean", 5, |run, of| {
        let (name, entity, from_s, length_s) = (of.text(0)?, of.text(1)?, of.number(2)?, of.number(3)?);
        let spans = (0..of.number(4)? as u32).map(|span| from_s + length_s * f64::from(span));
        Some(spans.map(|from_s| mean(run.samples(name, entity), from_s, from_s + length_s)).fold(0.0, f64::max))
    }),
    ("series.max", 2, |run, of| {
        Some(run.samples(of.text(0)?, of.text(1)?).map(|(_, value)| value).fold(0.0, f64::max))
    }),
    ("series.zero_pct", 4, |run, of| {
        let zeros = run.samples(of.text(0)?, of.text(1)?).map(|(at, value)| (at, f64::from(u8::from(value == 0.0))));
        Some(100.0 * mean(zeros, of.number(2)?, of.number(3)?))
    }),
    // From a time on, in s; from a fifth of a transfer to its last second but one; and the mean of numbered links.
    ("link.used_from_pct", 2, |run, of| Some(run.utilisation_from_pct(of.text(0)?, of.number(1)?))),
    ("link.used_steadily_pct", 1, |run, of| Some(run.steady_utilisation_pct(of.text(0)?))),
    ("links.used_from_pct", 4, |run, of| {
        let (name, first, last) = (of.text(0)?, of.number(1)? as u64, of.number(2)? as u64);
        let from_s = of.number(3)?;
        let used = (first..=last).map(|link| run.utilisation_from_pct(&format!("{name}{link}"), from_s));
        Some(used.sum::<f64>() / (last + 1).saturating_sub(first).max(1) as f64)
    }),
    // Of the port of a link of cells: cells of complete frames, cells sent and dropped, and the peaks of its queue.
    ("cells.goodput_cells", 1, |run, of| Some(run.cells(of.text(0)?).good_cells as f64)),
    ("cells.goodput_pct", 1, |run, of| Some(run.cells_goodput_pct(of.text(0)?))),
    ("cells.sent_cells", 1, |run, of| Some(run.cells(of.text(0)?).cells.sent as f64)),
    ("cells.dropped_cells", 1, |run, of| Some(run.cells(of.text(0)?).cells.dropped_cells() as f64)),
    ("cells.queue_peak_mean_cells", 3, |run, of| {
        Some(peaks::of(run, of.text(0)?, of.number(1)?, of.number(2)?).mean())
    }),
    ("cells.queue_peak_max_cells", 3, |run, of| Some(peaks::of(run, of.text(0)?, of.number(1)?, of.number(2)?).max())),
    ("cells.queue_peaks", 3, |run, of| Some(peaks::of(run, of.text(0)?, of.number(1)?, of.number(2)?).count())),
    ("cells.queue_peaks_reaching_pct", 4, |run, of| {
        Some(peaks::of(run, of.text(0)?, of.number(1)?, of.number(2)?).reaching_pct(of.number(3)?))
    }),
    ("cells.queue_at_least_pct", 2, |run, of| {
        let least = of.number(1)?;
        Some(peaks::share_pct(run, of.text(0)?, |cells| cells >= least))
    }),
    ("cells.queue_at_most_pct", 2, |run, of| {
        let most = of.number(1)?;
        Some(peaks::share_pct(run, of.text(0)?, |cells| cells <= most))
    }),
];

/// A figure of round trips, with the arguments after the ping's name and the span.
type OfTrips = fn(&RoundTrips, &Arguments<'_>) -> Option<f64>;

/// Every metric of the round trips of a ping that departed from one time to another, in s. Over several runs it is
/// that of all their round trips.
const TRIPS: &[(&str, usize, OfTrips)] = &[
    ("ping.count", 3, |trips, _| Some(trips.count() as f64)),
    ("ping.mean_ms", 3, |trips, _| Some(trips.mean())),
    ("ping.min_ms", 3, |trips, _| Some(trips.min())),
    ("ping.max_ms", 3, |trips, _| Some(trips.max())),
    ("ping.mode_ms", 3, |trips, _| Some(trips.mode())),
    ("ping.quantile_ms", 4, |trips, of| Some(trips.quantile(of.number(3)?))),
    ("ping.within_pct", 4, |trips, of| Some(trips.within_pct(of.number(3)?))),
];

/// The number of arguments of a metric, as the least and the largest.
pub(crate) fn arity(name: &str) -> Option<(usize, usize)> {
    let of_trips = TRIPS.iter().map(|metric| (metric.0, metric.1));
    let mut all = METRICS.iter().map(|metric| (metric.0, metric.1)).chain(of_trips);
    all.find(|(known, _)| *known == name).map(|(_, count)| (count, count))
}

/// The names of all metrics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.0).chain(TRIPS.iter().map(|metric| metric.0))
}

/// A metric of one run or of several together: of all their round trips, or else the mean of the runs' metrics.
pub(crate) fn measure(runs: &[Rc<Trial>], name: &str, arguments: &[Quantity]) -> Option<f64> {
    let of = Arguments(arguments);
    if let Some((.., metric)) = TRIPS.iter().find(|metric| metric.0 == name) {
        let (ping, from_s, to_s) = (of.text(0)?, of.number(1)?, of.number(2)?);
        return metric(&RoundTrips::all(runs.iter().map(|run| &**run), ping, from_s, to_s), &of);
    }
    let metric = METRICS.iter().find(|metric| metric.0 == name)?.2;
    let values = runs.iter().map(|run| metric(run, &of)).collect::<Option<Vec<f64>>>()?;
    Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
}
