//! The reports of a watcher for the dashboard.

use std::sync::{Arc, Mutex, PoisonError};

use lastmile_dashboard::hub::Program;
use lastmile_dashboard::report::{Cell, Chart, Group, Report, Table, Unit};
use lastmile_live::bump::per_second;
use lastmile_watch::delays::Delays;
use lastmile_watch::recorder::Seen;
use lastmile_watch::sample::{Counts, Source};

/// A watcher, of which the page asks nothing.
pub(super) struct Watcher;

impl Program for Watcher {}

/// Makes the reports from what the watcher has seen.
pub(super) struct Reporter {
    seen: Arc<Mutex<Seen>>,
    before: Option<Seen>,
}

impl Reporter {
    pub(super) fn new(seen: Arc<Mutex<Seen>>) -> Self {
        Self { seen, before: None }
    }

    /// The report of this second.
    pub(super) fn sample(&mut self) -> Report {
        let now = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let before = self.before.take().unwrap_or_else(|| now.clone());
        let mut groups = vec![latency(&before, &now)];
        for (source, title) in
            [(Source::Shape, "shapers"), (Source::Kernel, "kernel"), (Source::Interface, "interfaces")]
        {
            groups.extend(queues(source, title, &before, &now));
        }
        let status = format!("{} intervals written, {} wait", now.written_intervals, now.waiting_intervals);
        let sources = now.sources.iter().map(|(source, answers)| {
            vec![
                Cell::Text(source.clone()),
                Cell::Text(if *answers { "answers" } else { "does not answer" }.to_owned()),
            ]
        });
        let sources = Table {
            title: "sources".to_owned(),
            columns: vec![("source", Unit::Count), ("state", Unit::Count)],
            rows: sources.collect(),
        };
        self.before = Some(now);
        Report { status, groups, tables: vec![sources], ..Report::default() }
    }
}

#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn quantile(now: &Delays, before: Option<&Delays>, share: f64) -> Option<f64> {
    let lately = before.map_or_else(|| now.clone(), |before| now.since(before));
    lately.quantile_ns(share).map(|ns| ns as f64 / 1e9)
}

/// Round-trip times and losses of the pings whose outcome became known.
fn latency(before: &Seen, now: &Seen) -> Group {
    let mut rtts = Chart::new("round-trip time, longest", Unit::Seconds);
    let mut lost = Chart::new("pings lost", Unit::PerSecond);
    for (path, (lost_now, delays)) in &now.paths {
        let earlier = before.paths.get(path);
        rtts.push(path.to_string(), quantile(delays, earlier.map(|(_, delays)| delays), 1.0));
        let lost_before = earlier.map_or(0, |(lost, _)| *lost);
        lost.push(path.to_string(), Some(per_second(lost_before, *lost_now, 1.0)));
    }
    Group { id: "latency".to_owned(), title: "latency".to_owned(), charts: vec![rtts, lost] }
}

/// The queues of a source; `None` if it has none.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn queues(source: Source, title: &str, before: &Seen, now: &Seen) -> Option<Group> {
    let mut rate = Chart::new("rate", Unit::BitsPerSecond);
    let mut backlog = Chart::new("queue", Unit::Bytes);
    let mut delay = Chart::new("delay, 99th percentile", Unit::Seconds);
    let mut drops = Chart::new("drops", Unit::PerSecond);
    for (name, counts) in now.queues.iter().filter(|(name, _)| name.source == source) {
        let earlier = before.queues.get(name);
        let label = name.to_string();
        let bytes = |counts: &Counts| counts.wire_bytes.unwrap_or(counts.bytes);
        // Intervals of a watcher may be longer than a second: a rate is over the interval.
        let span = earlier.map_or(0, |earlier| counts.span_ms.saturating_sub(earlier.span_ms)) as f64 / 1e3;
        let rates = earlier.filter(|_| span > 0.0).map(|earlier| {
            let dropped = per_second(earlier.dropped_packets(), counts.dropped_packets(), span);
            (8.0 * per_second(bytes(earlier), bytes(counts), span), dropped)
        });
        rate.push(label.clone(), rates.map(|(rate, _)| rate));
        drops.push(label.clone(), rates.map(|(_, drops)| drops));
        if let Some(waits) = now.backlogs.get(name) {
            backlog.push(label.clone(), Some(waits.bytes as f64));
        }
        if !counts.waits.is_empty() {
            delay.push(label, quantile(&counts.waits, earlier.map(|earlier| &earlier.waits), 0.99));
        }
    }
    let charts: Vec<Chart> =
        [rate, backlog, delay, drops].into_iter().filter(|chart| !chart.series.is_empty()).collect();
    (!charts.is_empty()).then(|| Group { id: title.to_owned(), title: title.to_owned(), charts })
}
