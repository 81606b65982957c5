//! A history on the terminal, and as CSV.

use std::fmt::Write as _;

use lastmile_results::format;
use lastmile_text::table::{Kind, Table};
use lastmile_text::{bars, csv};
use lastmile_watch::history::{Document, History, PathHistory, QueueHistory};
use lastmile_watch::sample::{QueueName, Source};
use lastmile_watch::store::{CountsSpan, PingSpan};

use crate::failure::Result;
use crate::printer::Printer;

use super::calendar::Calendar;

/// Events shown on the terminal: the last ones.
const EVENTS: usize = 20;

pub(super) fn print(history: &History, calendar: &Calendar, printer: &mut Printer) -> Result<()> {
    let (from, to) = (calendar.minute(history.from_s), calendar.minute(history.to_s));
    printer.data(&format!("{from} to {to}, {}\n", calendar.name()))?;
    for table in overview(history) {
        section(&table, printer)?;
    }
    lines(history, printer)?;
    for path in &history.paths {
        section(&hours_of_path(path), printer)?;
    }
    for queue in history.queues.iter().filter(|queue| !queue.total.waits.is_empty()) {
        section(&hours_of_queue(queue), printer)?;
    }
    let skipped = history.events.len().saturating_sub(EVENTS);
    section(&events(history, calendar, skipped), printer)
}

fn section(table: &Table, printer: &mut Printer) -> Result<()> {
    if !table.rows.is_empty() {
        printer.data("\n")?;
        printer.heading(&table.title)?;
        printer.table(table)?;
    }
    Ok(())
}

/// One row for each path, and one for each queue.
pub(super) fn overview(history: &History) -> Vec<Table> {
    let mut paths = table("Round-trip times", &["path"], &["pings", "loss", "p50", "p95", "p99", "max"]);
    for path in &history.paths {
        let PathHistory { path, total, .. } = path;
        let cells = [path.to_string(), total.sent().to_string(), loss(total)].into_iter();
        paths.row(cells.chain(percentiles(|share| total.rtts.quantile_ns(share), total.rtts.max_ns())));
    }
    let names = ["packets", "rate", "dropped", "mean backlog", "most", "p50 wait", "p95", "p99", "max"];
    let mut queues = table("Queues", &["queue"], &names);
    for QueueHistory { name, total, .. } in &history.queues {
        let cells = [
            name.to_string(),
            total.packets.to_string(),
            format::or_dash(total.rate_bps(), format::rate),
            dropped(total),
            format::or_dash(total.mean_backlog_bytes(), |bytes| format::with_unit(bytes, format::BYTES)),
            format::or_dash(total.most_backlog, |most| format::bytes(most.bytes)),
        ];
        let waits = percentiles(|share| total.waits.quantile_ns(share), total.waits.max_ns());
        queues.row(cells.into_iter().chain(waits));
    }
    vec![paths, queues]
}

fn table(title: &str, names: &[&str], numbers: &[&str]) -> Table {
    let names = names.iter().map(|name| (*name, Kind::Name));
    let numbers = numbers.iter().map(|number| (*number, Kind::Number));
    Table { title: title.to_owned(), ..Table::new(names.chain(numbers)) }
}

fn loss(span: &PingSpan) -> String {
    span.loss().map_or_else(|| "–".to_owned(), format::percent)
}

fn dropped(span: &CountsSpan) -> String {
    let reasons: Vec<String> = span
        .dropped
        .iter()
        .filter(|(_, packets)| **packets > 0)
        // The kernel gives no reasons.
        .map(|(reason, packets)| if reason == "any" { packets.to_string() } else { format!("{packets} {reason}") })
        .collect();
    if reasons.is_empty() { "0".to_owned() } else { reasons.join(", ") }
}

fn percentiles(quantile_ns: impl Fn(f64) -> Option<u64>, max_ns: Option<u64>) -> [String; 4] {
    let shown = |ns: Option<u64>| format::or_dash(ns, |ns| format::seconds(format::to_f64(ns) / 1e9));
    [shown(quantile_ns(0.5)), shown(quantile_ns(0.95)), shown(quantile_ns(0.99)), shown(max_ns)]
}

/// A line of bars for each path and each queue that had packets.
fn lines(history: &History, printer: &mut Printer) -> Result<()> {
    let bins: Vec<i64> = history.bins().collect();
    let times: Vec<(String, Vec<Option<f64>>)> = history
        .paths
        .iter()
        .map(|path| {
            let p95 = |bin: &i64| path.spans.get(bin)?.rtts.quantile_ns(0.95).map(seconds);
            (path.path.to_string(), bins.iter().map(p95).collect())
        })
        .collect();
    let waits: Vec<(String, Vec<Option<f64>>)> = history
        .queues
        .iter()
        .filter(|queue| !queue.total.waits.is_empty())
        .map(|queue| {
            let p95 = |bin: &i64| queue.spans.get(bin)?.waits.quantile_ns(0.95).map(seconds);
            (queue.name.to_string(), bins.iter().map(p95).collect())
        })
        .collect();
    let rates: Vec<(String, Vec<Option<f64>>)> = history
        .queues
        .iter()
        .filter(|queue| queue.total.packets > 0)
        .map(|queue| {
            let rate = |bin: &i64| queue.spans.get(bin)?.rate_bps();
            (queue.name.to_string(), bins.iter().map(rate).collect())
        })
        .collect();
    let per = format::seconds(format::to_f64(history.bin_s.unsigned_abs()));
    let time: fn(f64) -> String = format::seconds;
    chart(&format!("Round-trip time, 95th percentile, {per} a character"), &times, time, printer)?;
    chart(&format!("Loss, {per} a character"), &losses(history, &bins), format::percent, printer)?;
    chart(&format!("Wait, 95th percentile, {per} a character"), &waits, time, printer)?;
    chart(&format!("Rate, {per} a character"), &rates, format::rate, printer)
}

/// Loss of the paths that had any. Percentiles are those of replies: an outage shows as loss alone.
fn losses(history: &History, bins: &[i64]) -> Vec<(String, Vec<Option<f64>>)> {
    let had_any = |path: &&PathHistory| path.spans.values().any(|span| span.loss().is_some_and(|loss| loss > 0.0));
    let of = |path: &PathHistory| {
        let loss = |bin: &i64| path.spans.get(bin)?.loss();
        (path.path.to_string(), bins.iter().map(loss).collect())
    };
    history.paths.iter().filter(had_any).map(of).collect()
}

fn seconds(ns: u64) -> f64 {
    format::to_f64(ns) / 1e9
}

/// Lines of bars, each with its own scale.
fn chart(
    title: &str,
    lines: &[(String, Vec<Option<f64>>)],
    unit: fn(f64) -> String,
    printer: &mut Printer,
) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = lines.iter().map(|(name, _)| lastmile_text::escape::line(name).into_owned()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, (_, values)) in names.iter().zip(lines) {
        let largest = values.iter().flatten().copied().fold(0.0, f64::max);
        let bars = bars::line(values.iter().copied(), largest);
        let top = if values.iter().all(Option::is_none) { "–".to_owned() } else { format!("to {}", unit(largest)) };
        writeln!(text, "  {name:<width$}  {bars}  {top}").expect("a string takes all");
    }
    printer.data("\n")?;
    printer.heading(title)?;
    Ok(printer.data(&text)?)
}

/// A row for each hour of the day.
pub(super) fn hours_of_path(of: &PathHistory) -> Table {
    let title = format!("Round-trip times to {} by hour of the day", of.path);
    let mut table = table(&title, &["hour"], &["pings", "loss", "p50", "p95", "p99", "max"]);
    for (hour, span) in &of.hours {
        let cells = [format!("{hour:02}"), span.sent().to_string(), loss(span)].into_iter();
        table.row(cells.chain(percentiles(|share| span.rtts.quantile_ns(share), span.rtts.max_ns())));
    }
    table
}

/// A row for each hour of the day.
pub(super) fn hours_of_queue(of: &QueueHistory) -> Table {
    let title = format!("Waits in {} by hour of the day", of.name);
    let mut table = table(&title, &["hour"], &["packets", "rate", "dropped", "p50", "p95", "p99", "max"]);
    for (hour, span) in &of.hours {
        let cells = [
            format!("{hour:02}"),
            span.packets.to_string(),
            format::or_dash(span.rate_bps(), format::rate),
            span.dropped_packets().to_string(),
        ];
        table.row(cells.into_iter().chain(percentiles(|share| span.waits.quantile_ns(share), span.waits.max_ns())));
    }
    table
}

/// Events, the oldest first, without the first `skipped`.
pub(super) fn events(history: &History, calendar: &Calendar, skipped: usize) -> Table {
    let title = if skipped > 0 { format!("Events ({skipped} earlier ones)") } else { "Events".to_owned() };
    let columns = [("time", Kind::Name), ("kind", Kind::Text), ("detail", Kind::Words)];
    let mut table = Table { title, ..Table::new(columns) };
    for event in history.events.iter().skip(skipped) {
        let time = calendar.second(event.at_ms.div_euclid(1000));
        table.row([time, event.kind.name().to_owned(), event.detail.clone()]);
    }
    table
}

/// One row for each path or queue and span.
pub(super) fn csv(history: &History) -> String {
    let document = Document::of(history);
    let mut text = "kind,name,class,code_point,begin_s,pings,lost,packets,bytes,rate_bps,dropped_packets,\
                    mean_backlog_bytes,most_backlog_bytes,p50_s,p95_s,p99_s,max_s\n"
        .to_owned();
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    for path in &document.paths {
        for bin in &path.spans {
            let (name, row) = (csv::cell(&path.path.target), &bin.row);
            let rtt = row.rtt;
            writeln!(
                text,
                "ping,{name},,{},{},{},{},,,,,,,{},{},{},{}",
                path.path.code_point,
                bin.begin_s,
                row.sent,
                row.lost,
                number(rtt.p50_s),
                number(rtt.p95_s),
                number(rtt.p99_s),
                number(rtt.max_s)
            )
            .expect("a string takes all");
        }
    }
    for queue in &document.queues {
        let QueueName { source, place, class } = queue.queue;
        let (place, class) = (csv::cell(place), csv::cell(class));
        for bin in &queue.spans {
            let (row, waits) = (&bin.row, bin.row.waits);
            writeln!(
                text,
                "{},{place},{class},,{},,,{},{},{},{},{},{},{},{},{},{}",
                source.name(),
                bin.begin_s,
                row.packets,
                row.bytes,
                number(row.rate_bps),
                row.dropped_packets.values().sum::<u64>(),
                number(row.mean_backlog_bytes),
                row.most_backlog_bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                number(waits.p50_s),
                number(waits.p95_s),
                number(waits.p99_s),
                number(waits.max_s)
            )
            .expect("a string takes all");
        }
    }
    text
}

/// True for a queue that a page draws: a shaper's, or one of the kernel that is a class.
pub(super) fn is_drawn(queue: &QueueHistory) -> bool {
    queue.total.packets > 0 || queue.name.source == Source::Shape
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lastmile_watch::delays::Delays;
    use lastmile_watch::sample::Path;
    use lastmile_watch::store::Resolution;

    use super::*;

    /// Spans of 20 s with a request each second: 15 and 14 are lost, then none; the last span was not watched.
    #[test]
    fn an_outage_shows_as_loss_of_its_path_alone() {
        let path = |target: &str, lost: [u64; 3]| {
            let span = |lost: u64| {
                let mut rtts = Delays::default();
                rtts.record_n(20_000_000, 20 - lost);
                PingSpan { lost, rtts, ..PingSpan::default() }
            };
            let path = Path { target: target.to_owned(), code_point: 0 };
            let spans = [0, 20, 40].into_iter().zip(lost.map(span)).collect();
            PathHistory { path, spans, total: PingSpan::default(), hours: BTreeMap::new() }
        };
        let history = History {
            from_s: 0,
            to_s: 80,
            bin_s: 20,
            resolution: Resolution::Raw,
            paths: vec![path("gateway", [15, 14, 0]), path("server", [0, 0, 0])],
            queues: Vec::new(),
            events: Vec::new(),
        };
        let found = losses(&history, &history.bins().collect::<Vec<_>>());
        assert_eq!(found, [("gateway".to_owned(), vec![Some(0.75), Some(0.70), Some(0.0), None])]);
    }
}
