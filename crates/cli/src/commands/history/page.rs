//! A history as a page.

use std::collections::BTreeMap;
use std::path::Path;

use lastmile_results::report::{Chart, ChartLine, Quantity, Timeline, timeline};
use lastmile_watch::history::{History, QueueHistory};
use lastmile_watch::store::{CountsSpan, PingSpan};

use super::calendar::Calendar;
use super::tables;

/// Lines of one chart at most; the table has them all.
const MOST_LINES: usize = 8;

pub(super) fn page(history: &History, calendar: &Calendar, store: &Path) -> String {
    let (from, to) = (calendar.minute(history.from_s), calendar.minute(history.to_s));
    let mut page_tables = tables::overview(history);
    page_tables.extend(history.paths.iter().map(tables::hours_of_path));
    let waiting = history.queues.iter().filter(|queue| !queue.total.waits.is_empty());
    page_tables.extend(waiting.map(tables::hours_of_queue));
    page_tables.push(tables::events(history, calendar, 0));
    let ticks = calendar.ticks(history.from_s, history.to_s);
    let offsets = calendar.offsets_s(history.from_s, history.to_s);
    timeline(&Timeline {
        title: format!("{from} to {to}"),
        caption: format!("{} · points of {} s · {}", store.display(), history.bin_s, calendar.name()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        span_s: (float(history.from_s), float(history.to_s)),
        ticks: ticks.into_iter().map(|(tick, label)| (float(tick), label)).collect(),
        zone: calendar.name(),
        offsets_s: offsets.into_iter().map(|(from_s, offset_s)| (float(from_s), float(offset_s))).collect(),
        charts: charts(history),
        tables: page_tables,
    })
}

#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 have 31 bits, and drawings fewer")]
fn float(time_s: i64) -> f64 {
    time_s as f64
}

fn charts(history: &History) -> Vec<Chart> {
    let mut charts = vec![
        pings(
            history,
            "Round-trip time, median and 99th percentile (dashed)",
            Quantity::Time,
            &[
                (", median", |span| ns(span.rtts.quantile_ns(0.5))),
                (", 99th percentile", |span| ns(span.rtts.quantile_ns(0.99))),
            ],
        ),
        pings(history, "Loss", Quantity::Share, &[("", PingSpan::loss)]),
    ];
    let mut places: BTreeMap<&str, Vec<&QueueHistory>> = BTreeMap::new();
    for queue in history.queues.iter().filter(|queue| tables::is_drawn(queue)) {
        places.entry(&queue.name.place).or_default().push(queue);
    }
    for (place, queues) in places {
        let chart = |what: &str, quantity, value: Value<CountsSpan>| {
            queues_chart(history, (place, &queues), what, quantity, value)
        };
        charts.push(chart("wait, 99th percentile", Quantity::Time, |span| ns(span.waits.quantile_ns(0.99))));
        charts.push(chart("rate", Quantity::Rate, CountsSpan::rate_bps));
        charts.push(chart("mean backlog", Quantity::Size, CountsSpan::mean_backlog_bytes));
        charts.push(chart("packets dropped", Quantity::Share, |span| {
            let (dropped, sent) = (span.dropped_packets(), span.packets);
            (dropped + sent > 0).then(|| to_f64(dropped) / to_f64(dropped + sent))
        }));
    }
    charts.retain(|chart| chart.lines.iter().any(|line| !line.parts.is_empty()));
    charts
}

type Value<S> = fn(&S) -> Option<f64>;

fn ns(ns: Option<u64>) -> Option<f64> {
    ns.map(|ns| to_f64(ns) / 1e9)
}

fn to_f64(count: u64) -> f64 {
    lastmile_results::format::to_f64(count)
}

/// A chart of values of each path, and what follows the name of the path in theirs.
fn pings(history: &History, title: &str, quantity: Quantity, values: &[(&str, Value<PingSpan>)]) -> Chart {
    let mut lines = Vec::new();
    for (colour, path) in history.paths.iter().take(MOST_LINES).enumerate() {
        for (dash, (what, value)) in values.iter().enumerate() {
            let label = path.path.to_string();
            let (member, parts) = (format!("{label}{what}"), parts(history, &path.spans, *value));
            lines.push(ChartLine { label, member, colour, dash, parts });
        }
    }
    Chart { title: title.to_owned(), quantity, lines }
}

fn queues_chart(
    history: &History,
    (place, queues): (&str, &[&QueueHistory]),
    what: &str,
    quantity: Quantity,
    value: Value<CountsSpan>,
) -> Chart {
    let line = |(colour, queue): (usize, &&QueueHistory)| {
        let class = queue.name.class.as_str();
        let label = if class.is_empty() { "all" } else { class }.to_owned();
        let parts = parts(history, &queue.spans, value);
        ChartLine { member: label.clone(), label, colour, dash: 0, parts }
    };
    let lines = queues.iter().take(MOST_LINES).enumerate().map(line).collect();
    Chart { title: format!("{place}: {what}"), quantity, lines }
}

/// Runs of spans with a value, each point in the middle of its span.
fn parts<S>(history: &History, spans: &BTreeMap<i64, S>, value: Value<S>) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut last = None;
    for (begin_s, span) in spans {
        let Some(value) = value(span) else { continue };
        let point = (float(*begin_s) + float(history.bin_s) / 2.0, value);
        match parts.last_mut().filter(|_| last == Some(begin_s - history.bin_s)) {
            Some(part) => part.push(point),
            None => parts.push(vec![point]),
        }
        last = Some(*begin_s);
    }
    parts
}
