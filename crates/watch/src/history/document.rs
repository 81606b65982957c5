//! A history for programs: JSON, and rows of CSV.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{History, PathHistory, QueueHistory};
use crate::delays::Delays;
use crate::sample::{Event, Path, QueueName};
use crate::store::{CountsSpan, PingSpan};

/// A history.
#[derive(Serialize, Debug)]
pub struct Document<'a> {
    /// The begin in seconds since 1970.
    pub from_s: i64,
    /// The end.
    pub to_s: i64,
    /// The length of a span.
    pub bin_s: i64,
    /// The length of the rows that were read: 1 for each interval.
    pub row_s: i64,
    /// Paths.
    pub paths: Vec<PathDocument<'a>>,
    /// Queues.
    pub queues: Vec<QueueDocument<'a>>,
    /// Events.
    pub events: &'a [Event],
}

/// A path.
#[derive(Serialize, Debug)]
pub struct PathDocument<'a> {
    #[serde(flatten)]
    /// Its name.
    pub path: &'a Path,
    /// All pings.
    pub total: PathRow,
    /// Over all days.
    pub hours_of_day: Vec<HourOfDay<PathRow>>,
    /// Over time.
    pub spans: Vec<Bin<PathRow>>,
}

/// A queue.
#[derive(Serialize, Debug)]
pub struct QueueDocument<'a> {
    #[serde(flatten)]
    /// Its name.
    pub queue: &'a QueueName,
    /// All counts.
    pub total: QueueRow,
    /// Over all days.
    pub hours_of_day: Vec<HourOfDay<QueueRow>>,
    /// Over time.
    pub spans: Vec<Bin<QueueRow>>,
}

/// A span of time.
#[derive(Serialize, Debug)]
pub struct Bin<T> {
    /// Its begin in seconds since 1970.
    pub begin_s: i64,
    /// Its results.
    #[serde(flatten)]
    pub row: T,
}

/// An hour of the day, over all days.
#[derive(Serialize, Debug)]
pub struct HourOfDay<T> {
    /// The hour of local time, 0 to 23.
    pub hour: u8,
    /// Its results.
    #[serde(flatten)]
    pub row: T,
}

/// Percentiles of delays in seconds.
#[derive(Clone, Copy, Serialize, PartialEq, Debug)]
pub struct Percentiles {
    /// The median.
    pub p50_s: Option<f64>,
    /// The 95th percentile.
    pub p95_s: Option<f64>,
    /// The 99th percentile.
    pub p99_s: Option<f64>,
    /// The largest.
    pub max_s: Option<f64>,
    /// The mean.
    pub mean_s: Option<f64>,
}

impl Percentiles {
    fn of(delays: &Delays) -> Self {
        let quantile = |share| delays.quantile_ns(share).map(seconds);
        Self {
            p50_s: quantile(0.5),
            p95_s: quantile(0.95),
            p99_s: quantile(0.99),
            max_s: delays.max_ns().map(seconds),
            mean_s: delays.mean_ns().map(|ns| ns / 1e9),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Pings.
#[derive(Clone, Copy, Serialize, PartialEq, Debug)]
pub struct PathRow {
    /// Requests.
    pub sent: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Requests that were sent so long before the end of the watcher, or its newest reading, that their loss is known.
    pub judged: u64,
    /// The share of those that are lost.
    pub loss: Option<f64>,
    /// Round-trip times.
    #[serde(flatten)]
    pub rtt: Percentiles,
}

impl From<&PingSpan> for PathRow {
    fn from(span: &PingSpan) -> Self {
        let rtt = Percentiles::of(&span.rtts);
        Self { sent: span.sent(), lost: span.lost, judged: span.judged(), loss: span.loss(), rtt }
    }
}

/// Counts of a queue.
#[derive(Clone, Serialize, PartialEq, Debug)]
pub struct QueueRow {
    /// The time that the counts cover.
    pub watched_s: f64,
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes on the wire, where they are known.
    pub wire_bytes: Option<u64>,
    /// Their mean rate.
    pub rate_bps: Option<f64>,
    /// Drops by reason.
    pub dropped_packets: BTreeMap<String, u64>,
    /// Times that the queue was held back.
    pub overlimits: u64,
    /// The mean backlog.
    pub mean_backlog_bytes: Option<f64>,
    /// The largest backlog at the end of an interval.
    pub most_backlog_bytes: Option<u64>,
    /// Delays from arrival to the start of transmission.
    pub waits: Percentiles,
}

impl From<&CountsSpan> for QueueRow {
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    fn from(span: &CountsSpan) -> Self {
        Self {
            watched_s: span.span_ms as f64 / 1e3,
            packets: span.packets,
            bytes: span.bytes,
            wire_bytes: span.wire_bytes,
            rate_bps: span.rate_bps(),
            dropped_packets: span.dropped.clone(),
            overlimits: span.overlimits,
            mean_backlog_bytes: span.mean_backlog_bytes(),
            most_backlog_bytes: span.most_backlog.map(|most| most.bytes),
            waits: Percentiles::of(&span.waits),
        }
    }
}

impl<'a> Document<'a> {
    /// The document of a history.
    #[must_use]
    pub fn of(history: &'a History) -> Self {
        let path = |of: &'a PathHistory| PathDocument {
            path: &of.path,
            total: (&of.total).into(),
            hours_of_day: of.hours.iter().map(|(hour, span)| HourOfDay { hour: *hour, row: span.into() }).collect(),
            spans: of.spans.iter().map(|(begin_s, span)| Bin { begin_s: *begin_s, row: span.into() }).collect(),
        };
        let queue = |of: &'a QueueHistory| QueueDocument {
            queue: &of.name,
            total: (&of.total).into(),
            hours_of_day: of.hours.iter().map(|(hour, span)| HourOfDay { hour: *hour, row: span.into() }).collect(),
            spans: of.spans.iter().map(|(begin_s, span)| Bin { begin_s: *begin_s, row: span.into() }).collect(),
        };
        Self {
            from_s: history.from_s,
            to_s: history.to_s,
            bin_s: history.bin_s,
            row_s: history.resolution.step_s(),
            paths: history.paths.iter().map(path).collect(),
            queues: history.queues.iter().map(queue).collect(),
            events: &history.events,
        }
    }
}
