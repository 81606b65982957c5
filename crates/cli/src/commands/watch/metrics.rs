//! Metrics of a watcher for Prometheus, in the text format of OpenMetrics, by HTTP.

use std::fmt::Error;
use std::sync::{Arc, Mutex, PoisonError};

use lastmile_live::http::Pages;
use lastmile_queueing::DropReason;
use lastmile_watch::delays::Delays;
use lastmile_watch::recorder::Seen;
use lastmile_watch::sample::{Path, QueueName, Source};
use prometheus_client::metrics::MetricType;

use super::super::exposition::{self, Labels, Value};

/// Bounds of round-trip times and waits in milliseconds: from those of a LAN to those of a full modem.
const BOUNDS_MS: [u32; 16] = [1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000, 5000];

/// Builds the page from what the watcher has seen.
#[derive(Clone)]
pub(super) struct Metrics(pub(super) Arc<Mutex<Seen>>);

impl Pages for Metrics {
    const CONTENT_TYPE: &'static str = exposition::CONTENT_TYPE;

    async fn page(&self) -> Result<String, String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        exposition(&seen).map_err(|error| error.to_string())
    }
}

/// The whole text.
fn exposition(seen: &Seen) -> Result<String, Error> {
    let numbers = |of: fn(&Seen) -> Vec<(Labels, u64)>| {
        of(seen).into_iter().map(|(labels, count)| (labels, Value::Number(count))).collect()
    };
    let mut all: Vec<exposition::Family> =
        families().into_iter().map(|(name, help, kind, of)| (name, help, kind, numbers(of))).collect();
    let pings = seen.paths.iter().map(|(path, (_, rtts))| (of_path(path), times(rtts)));
    all.push(("ping_seconds", "Round-trip times", MetricType::Histogram, pings.collect()));
    let waits = seen.queues.iter().filter(|(_, counts)| !counts.waits.is_empty());
    let waits = waits.map(|(queue, counts)| (of_queue(queue), times(&counts.waits))).collect();
    all.push(("queue_wait_seconds", "From arrival to the start of transmission", MetricType::Histogram, waits));
    exposition::exposition("lastmile_watch", all)
}

fn of_path(path: &Path) -> Labels {
    vec![("target", path.target.clone()), ("code_point", path.code_point.to_string())]
}

fn of_queue(queue: &QueueName) -> Labels {
    vec![("source", queue.source.name().to_owned()), ("place", queue.place.clone()), ("class", queue.class.clone())]
}

/// The reasons for drops that a source states.
fn reasons(source: Source) -> Vec<&'static str> {
    match source {
        Source::Shape => DropReason::ALL.map(DropReason::name).into(),
        Source::Kernel => vec!["any"],
        Source::Interface => vec!["dropped", "errors"],
    }
}

type Family = (&'static str, &'static str, MetricType, fn(&Seen) -> Vec<(Labels, u64)>);

/// Counters and gauges.
fn families() -> [Family; 16] {
    use MetricType::{Counter, Gauge};
    [
        ("pings", "Pings whose outcome is known", Counter, |seen| {
            seen.paths.iter().map(|(path, (lost, rtts))| (of_path(path), lost + rtts.count())).collect()
        }),
        ("pings_lost", "Pings without a reply", Counter, |seen| {
            seen.paths.iter().map(|(path, (lost, _))| (of_path(path), *lost)).collect()
        }),
        ("queue_packets", "Packets that departed", Counter, |seen| {
            seen.queues.iter().map(|(queue, counts)| (of_queue(queue), counts.packets)).collect()
        }),
        ("queue_bytes", "Their bytes", Counter, |seen| {
            seen.queues.iter().map(|(queue, counts)| (of_queue(queue), counts.bytes)).collect()
        }),
        ("queue_wire_bytes", "Their bytes on the wire, where they are known", Counter, |seen| {
            let wire = seen.queues.iter().filter_map(|(queue, counts)| Some((of_queue(queue), counts.wire_bytes?)));
            wire.collect()
        }),
        ("queue_dropped_packets", "Packets that were dropped", Counter, |seen| {
            let dropped = seen.queues.iter().flat_map(|(queue, counts)| {
                let by_reason = counts.dropped.iter().map(|(reason, packets)| (reason.as_str(), *packets));
                exposition::from_the_start(reasons(queue.source), by_reason).into_iter().map(|(reason, packets)| {
                    (of_queue(queue).into_iter().chain([("reason", reason.to_owned())]).collect(), packets)
                })
            });
            dropped.collect()
        }),
        ("queue_overlimits", "Times that a queue was held back", Counter, |seen| {
            seen.queues.iter().map(|(queue, counts)| (of_queue(queue), counts.overlimits)).collect()
        }),
        ("queue_backlog_packets", "Packets that wait", Gauge, |seen| {
            seen.backlogs.iter().map(|(queue, backlog)| (of_queue(queue), backlog.packets)).collect()
        }),
        ("queue_backlog_bytes", "Their bytes", Gauge, |seen| {
            seen.backlogs.iter().map(|(queue, backlog)| (of_queue(queue), backlog.bytes)).collect()
        }),
        ("source_up", "Whether a host, a shaper or an interface answers", Gauge, |seen| {
            seen.sources.iter().map(|(source, up)| (vec![("source", source.clone())], u64::from(*up))).collect()
        }),
        ("intervals_written", "Intervals in the store", Counter, |seen| vec![(vec![], seen.written_intervals)]),
        ("intervals_lost", "Intervals that the store did not take in time", Counter, |seen| {
            vec![(vec![], seen.lost_intervals)]
        }),
        ("intervals_waiting", "Intervals that wait for the store", Gauge, |seen| {
            vec![(vec![], seen.waiting_intervals)]
        }),
        ("failed_writes", "Writes that a lock or a full disk prevented", Counter, |seen| {
            vec![(vec![], seen.failed_writes)]
        }),
        ("clock_steps", "Times that the wall clock was set", Counter, |seen| vec![(vec![], seen.clock_steps)]),
        ("store_bytes", "Bytes of the store's files", Gauge, |seen| vec![(vec![], seen.store_bytes)]),
    ]
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn times(delays: &Delays) -> Value {
    let mut below = 0;
    let bound = |ms: u32| {
        let count = delays.count_up_to(u64::from(ms) * 1_000_000);
        (f64::from(ms) / 1e3, count - std::mem::replace(&mut below, count))
    };
    let up_to = BOUNDS_MS.map(bound).into();
    Value::Times { sum_s: delays.sum_ns() as f64 / 1e9, count: delays.count(), up_to }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use lastmile_watch::sample::{Backlog, Counts};
    use serde_json::Value;

    use super::*;

    fn seen() -> Seen {
        let mut waits = Delays::default();
        waits.record_n(4_000_000, 3);
        let queue = QueueName { source: Source::Shape, place: "shape up".to_owned(), class: "quick".to_owned() };
        let kernel = QueueName { source: Source::Kernel, place: "eth0".to_owned(), class: String::new() };
        let counts = Counts {
            packets: 3,
            wire_bytes: Some(318),
            dropped: BTreeMap::from([("tail".to_owned(), 2)]),
            waits: waits.clone(),
            ..Counts::default()
        };
        Seen {
            paths: BTreeMap::from([(Path { target: "gateway".to_owned(), code_point: 46 }, (1, waits))]),
            queues: BTreeMap::from([(queue.clone(), counts), (kernel, Counts::default())]),
            backlogs: BTreeMap::from([(queue, Backlog { packets: 1, bytes: 100 })]),
            sources: BTreeMap::from([("gateway".to_owned(), true)]),
            ..Seen::default()
        }
    }

    #[test]
    fn counts_and_delays_are_exported() {
        let page = exposition(&seen()).unwrap();
        for line in [
            "lastmile_watch_pings_total{target=\"gateway\",code_point=\"46\"} 4\n",
            "lastmile_watch_pings_lost_total{target=\"gateway\",code_point=\"46\"} 1\n",
            "lastmile_watch_ping_seconds_bucket{le=\"0.005\",target=\"gateway\",code_point=\"46\"} 3\n",
            "lastmile_watch_ping_seconds_bucket{le=\"0.002\",target=\"gateway\",code_point=\"46\"} 0\n",
            "lastmile_watch_queue_dropped_packets_total{source=\"shape\",place=\"shape \
             up\",class=\"quick\",reason=\"tail\"} 2\n",
            // A rate over the first drop needs the count before it.
            "lastmile_watch_queue_dropped_packets_total{source=\"shape\",place=\"shape \
             up\",class=\"quick\",reason=\"aqm\"} 0\n",
            "lastmile_watch_queue_dropped_packets_total{source=\"kernel\",place=\"eth0\",class=\"\",\
             reason=\"any\"} 0\n",
            "lastmile_watch_intervals_written_total 0\n",
            "lastmile_watch_queue_backlog_bytes{source=\"shape\",place=\"shape up\",class=\"quick\"} 100\n",
        ] {
            assert!(page.contains(line), "{line}{page}");
        }
    }

    /// Every expression of the dashboard.
    fn expressions(value: &Value) -> Vec<String> {
        match value {
            Value::Array(items) => items.iter().flat_map(expressions).collect(),
            Value::Object(members) => members
                .iter()
                .flat_map(|(key, value)| match (key.as_str(), value) {
                    ("expr" | "query" | "definition", Value::String(text)) => vec![text.clone()],
                    _ => expressions(value),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Words of an expression that follow this one: names of metrics and of labels.
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
    }

    #[test]
    fn every_metric_of_the_dashboard_is_exported() {
        let page = exposition(&seen()).unwrap();
        let samples = page.lines().filter(|line| !line.starts_with('#'));
        let exported: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
        let mut labels: BTreeSet<&str> =
            page.split(['{', ',']).filter_map(|part| part.split_once("=\"").map(|(label, _)| label)).collect();
        // Prometheus adds the host from which it has the page. Without it the lines of several routers add up.
        labels.insert("instance");
        let dashboard: Value = serde_json::from_str(super::super::DASHBOARD).unwrap();
        let mut used = BTreeSet::new();
        for expression in expressions(&dashboard) {
            let [metrics, selected] =
                ["lastmile_", "{instance=~\"$instance\""].map(|part| expression.matches(part).count());
            assert!(metrics == selected || expression.starts_with("label_values(lastmile_watch_store"), "{expression}");
            assert!(expression.split("by (").skip(1).all(|by| by.contains("instance")), "{expression}");
            for word in words(&expression).filter(|word| word.starts_with("lastmile_")) {
                assert!(exported.contains(word), "{word} of {expression:?} is not exported");
                used.insert(word.to_owned());
            }
            for list in expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next()) {
                for label in words(list) {
                    assert!(labels.contains(label), "{label} of {expression:?} is no label");
                }
            }
            for selector in expression.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                for label in selector.split(',').filter_map(|part| part.split(['=', '!']).next()).map(str::trim) {
                    assert!(label.is_empty() || labels.contains(label), "{label} of {expression:?} is no label");
                }
            }
        }
        assert!(used.len() >= 8, "the dashboard shows {used:?}");
    }
}
