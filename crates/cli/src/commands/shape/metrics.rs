//! Metrics of a shaper for Prometheus, in its text format, version 1.0.0 of OpenMetrics, by HTTP.
//!
//! The server has its own thread, asks the operator of the control socket like other clients, and
//! has limits ([`lastmile_live::http`]): a scrape delays no packet.

use lastmile_live::control::{Asker, Request, Verb};
use lastmile_live::http::Pages;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::super::control::{self, Answer};
use super::super::counters::Spread;
use super::status::{Direction, Status};

/// Builds the page from the operator's report.
#[derive(Clone)]
pub(super) struct Metrics(pub(super) Asker);

impl Pages for Metrics {
    const CONTENT_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    async fn page(&self) -> Result<String, String> {
        let answer = self.0.ask(Request::from(Verb::Status).to_string()).await.ok_or("it is ending")?;
        match Answer::<Status>::read(&answer) {
            Ok(Answer::Status(status)) => exposition(*status).map_err(|error| error.to_string()),
            Ok(Answer::Failed { error }) => Err(error),
            Ok(Answer::Done { .. }) => Err("no status".to_owned()),
            Err(failure) => Err(control::words(&failure)),
        }
    }
}

/// The whole text.
fn exposition(status: Status) -> Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("lastmile_shape");
    registry.register_collector(Box::new(Page(status)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Page(Status);

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The samples of one direction: further labels, and a number.
type Samples<'a> = Vec<(Labels<'a>, u64)>;

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Self(status) = self;
        let uptime =
            encoder.encode_descriptor("uptime_seconds", "Since packets are carried", None, MetricType::Gauge)?;
        ConstGauge::new(status.uptime_s).encode(uptime)?;
        let reloads = [("done", status.reloads.done), ("refused", status.reloads.failed)];
        let mut family = encoder.encode_descriptor("reloads", "Policies read again", None, MetricType::Counter)?;
        for (result, count) in reloads {
            sample(&mut family, &vec![("result", result)], count, MetricType::Counter)?;
        }
        for (name, help, kind, of) in families() {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (direction, told) in [("up", &status.up), ("down", &status.down)] {
                for (labels, count) in of(told) {
                    let labels = [("direction", direction)].into_iter().chain(labels).collect();
                    sample(&mut family, &labels, count, kind)?;
                }
            }
        }
        for (name, help, of) in spreads() {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for (direction, told) in [("up", &status.up), ("down", &status.down)] {
                for (labels, spread) in of(told) {
                    let labels: Labels<'_> = [("direction", direction)].into_iter().chain(labels).collect();
                    histogram(&mut family, &labels, spread)?;
                }
            }
        }
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn histogram(family: &mut MetricEncoder<'_>, labels: &Labels<'_>, spread: &Spread) -> Result<(), std::fmt::Error> {
    let count = spread.delay.count;
    let beyond = count - spread.up_to.iter().map(|(_, count)| count).sum::<u64>().min(count);
    // The encoder adds the counts up.
    let buckets: Vec<(f64, u64)> = spread.up_to.iter().copied().chain([(f64::INFINITY, beyond)]).collect();
    let sum = spread.delay.mean.unwrap_or(0.0) * count as f64;
    family.encode_family(labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

fn sample(
    family: &mut MetricEncoder<'_>,
    labels: &Labels<'_>,
    count: u64,
    kind: MetricType,
) -> Result<(), std::fmt::Error> {
    let encoder = family.encode_family(labels)?;
    match kind {
        MetricType::Counter => ConstCounter::new(count).encode(encoder),
        // Backlogs, which always fit a signed number.
        _ => ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(encoder),
    }
}

type Told<'a> = Vec<(Labels<'a>, &'a Spread)>;

type Distribution = (&'static str, &'static str, fn(&Direction) -> Told<'_>);

fn spreads() -> [Distribution; 4] {
    [
        ("wait_seconds", "From arrival to the start of transmission", |d| vec![(vec![], &d.line.waited_s)]),
        ("ack_wait_seconds", "The same for pure ACKs alone", |d| vec![(vec![], &d.line.acks_waited_s)]),
        ("class_wait_seconds", "The same by class, since the policy is in force", |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], &class.waited_s)).collect()
        }),
        ("lateness_seconds", "From when a packet was due to when it was sent", |d| vec![(vec![], &d.lateness_s)]),
    ]
}

type Family = (&'static str, &'static str, MetricType, fn(&Direction) -> Samples<'_>);

fn families() -> [Family; 14] {
    use MetricType::{Counter, Gauge};
    [
        ("received_packets", "Packets that came in", Counter, |d| vec![(vec![], d.received.packets)]),
        ("received_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.received.bytes)]),
        ("sent_packets", "Packets that went out", Counter, |d| vec![(vec![], d.sent.packets)]),
        ("sent_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.sent.bytes)]),
        ("wire_bytes", "Bytes that they took on the line", Counter, |d| vec![(vec![], d.line.wire_bytes)]),
        ("dropped_packets", "Packets that queues dropped", Counter, |d| {
            d.line.dropped.iter().map(|(reason, amount)| (vec![("reason", reason.as_str())], amount.packets)).collect()
        }),
        ("overlimits", "Packets that had to wait", Counter, |d| vec![(vec![], d.line.overlimits)]),
        ("faults", "Frames that went another way than planned, and times that it slept for too long", Counter, |d| {
            d.faults.iter().map(|(reason, count)| (vec![("reason", reason.as_str())], *count)).collect()
        }),
        ("queued_packets", "Packets that wait", Gauge, |d| vec![(vec![], d.line.queued.packets)]),
        ("queued_bytes", "Their IP bytes", Gauge, |d| vec![(vec![], d.line.queued.bytes)]),
        ("class_sent_packets", "Packets that a class sent", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.sent.packets)).collect()
        }),
        ("class_sent_bytes", "Their IP bytes", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.sent.bytes)).collect()
        }),
        ("class_dropped_packets", "Packets that a class dropped", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.dropped_packets)).collect()
        }),
        ("class_overlimits", "Times that a class was held back by its own rate", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.overlimits)).collect()
        }),
    ]
}
