//! The metrics that a formula can ask of a run, by name. Names and units are those of the results,
//! as far as these have them.

use lastmile_theory::fairness::jain;

use crate::formula::Quantity;

use super::connections::{Connections, goodput_sum_mbps, waits_ms};
use super::peaks;
use super::trial::Trial;

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
    // Of a link.
    ("link.wire_rate_bps", 1, |run, of| Some(run.mean_wire_bps(of.text(0)?))),
    ("link.queue_delay_mean_s", 1, |run, of| Some(run.mean_queue_delay_s(of.text(0)?))),
    ("link.queue_delay_while_s", 2, |run, of| run.queue_delay_while_s(of.text(0)?, of.text(1)?)),
    ("link.dropped_packets", 1, |run, of| Some(run.dropped(of.text(0)?) as f64)),
    ("link.acks_dropped", 1, |run, of| Some(run.acks_dropped(of.text(0)?) as f64)),
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

/// The least and the largest number of arguments of a metric.
pub(crate) fn arity(name: &str) -> Option<(usize, usize)> {
    METRICS.iter().find(|metric| metric.0 == name).map(|metric| (metric.1, metric.1))
}

/// The names of all metrics.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.0)
}

/// A metric of a run.
pub(crate) fn measure(run: &Trial, name: &str, arguments: &[Quantity]) -> Option<f64> {
    METRICS.iter().find(|metric| metric.0 == name)?.2(run, &Arguments(arguments))
}
