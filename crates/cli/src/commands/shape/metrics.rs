//! Metrics of a shaper for Prometheus, in its text format, version 1.0.0 of OpenMetrics, by HTTP.
//!
//! The server has its own thread, asks the operator of the control socket like other clients, and
//! has limits ([`lastmile_live::http`]): a scrape delays no packet.

use lastmile_live::control::{Asker, Request, Verb};
use lastmile_live::http::Pages;
use lastmile_queueing::DropReason;
use prometheus_client::metrics::MetricType;

use super::super::control::{self, Answer};
use super::super::counters::{self, Spread};
use super::super::exposition::{self, Labels, Value};
use super::status::{Direction, Status};

/// Builds the page from the operator's report.
#[derive(Clone)]
pub(super) struct Metrics(pub(super) Asker);

impl Pages for Metrics {
    const CONTENT_TYPE: &'static str = exposition::CONTENT_TYPE;

    async fn page(&self) -> Result<String, String> {
        let answer = self.0.ask(Request::from(Verb::Status).to_string()).await.ok_or("it is ending")?;
        match Answer::<Status>::read(&answer) {
            Ok(Answer::Status(status)) => exposition(&status).map_err(|error| error.to_string()),
            Ok(Answer::Failed { error }) => Err(error),
            Ok(Answer::Done { .. }) => Err("no status".to_owned()),
            Err(failure) => Err(control::words(&failure)),
        }
    }
}

/// The whole text.
fn exposition(status: &Status) -> Result<String, std::fmt::Error> {
    let reloads = [("done", status.reloads.done), ("refused", status.reloads.failed)];
    let reloads = reloads.map(|(result, count)| (vec![("result", result.to_owned())], Value::Number(count)));
    let mut all: Vec<exposition::Family> = vec![
        (
            "uptime_seconds",
            "Since packets are carried",
            MetricType::Gauge,
            vec![(vec![], Value::Seconds(status.uptime_s))],
        ),
        ("reloads", "Policies read again", MetricType::Counter, reloads.into()),
    ];
    all.extend(families().map(|(name, help, kind, of)| (name, help, kind, both(status, of, Value::Number))));
    all.extend(spreads().map(|(name, help, of)| (name, help, MetricType::Histogram, both(status, of, times))));
    exposition::exposition("lastmile_shape", all)
}

/// The samples of both directions.
fn both<'a, T>(
    status: &'a Status,
    of: fn(&'a Direction) -> Vec<(Further<'a>, T)>,
    value: fn(T) -> Value,
) -> Vec<(Labels, Value)> {
    let directions = [("up", &status.up), ("down", &status.down)].into_iter();
    let samples = directions.flat_map(|(name, told)| of(told).into_iter().map(move |sample| (name, sample)));
    let labelled = |(direction, (labels, told)): (&str, (Further<'a>, T))| {
        let labels = [("direction", direction)].into_iter().chain(labels);
        (labels.map(|(name, value)| (name, value.to_owned())).collect(), value(told))
    };
    samples.map(labelled).collect()
}

#[expect(clippy::cast_precision_loss, reason = "statistics only")]
fn times(spread: &Spread) -> Value {
    Value::Times { sum_s: spread.sum_ns as f64 / 1e9, count: spread.delay.count, up_to: spread.up_to.clone() }
}

/// Labels beside the direction.
type Further<'a> = Vec<(&'static str, &'a str)>;

type Told<'a> = Vec<(Further<'a>, &'a Spread)>;

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

/// The samples of one direction: further labels, and a number.
type Samples<'a> = Vec<(Further<'a>, u64)>;

type Family = (&'static str, &'static str, MetricType, fn(&Direction) -> Samples<'_>);

fn families() -> [Family; 17] {
    use MetricType::{Counter, Gauge};
    [
        ("received_packets", "Packets that came in", Counter, |d| vec![(vec![], d.received.packets)]),
        ("received_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.received.bytes)]),
        ("sent_packets", "Packets that went out", Counter, |d| vec![(vec![], d.sent.packets)]),
        ("sent_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.sent.bytes)]),
        (
            "transmitted_packets",
            "Packets whose transmission began, also those that the interface refused",
            Counter,
            |d| vec![(vec![], d.line.transmitted.packets)],
        ),
        ("transmitted_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.line.transmitted.bytes)]),
        ("wire_bytes", "Bytes that the transmitted packets take on the line", Counter, |d| {
            vec![(vec![], d.line.wire_bytes)]
        }),
        ("dropped_packets", "Packets that queues dropped", Counter, |d| {
            let known = DropReason::ALL.map(DropReason::name);
            let dropped = d.line.dropped.iter().map(|(reason, amount)| (reason.as_str(), amount.packets));
            exposition::from_the_start(known, dropped)
                .into_iter()
                .map(|(reason, packets)| (vec![("reason", reason)], packets))
                .collect()
        }),
        ("overlimits", "Packets that had to wait", Counter, |d| vec![(vec![], d.line.overlimits)]),
        ("faults", "Frames that went another way than planned, and times that it slept for too long", Counter, |d| {
            let faults = d.faults.iter().map(|(reason, count)| (reason.as_str(), *count));
            exposition::from_the_start(counters::fault_names(), faults)
                .into_iter()
                .map(|(reason, count)| (vec![("reason", reason)], count))
                .collect()
        }),
        ("queued_packets", "Packets that wait", Gauge, |d| vec![(vec![], d.line.queued.packets)]),
        ("queued_bytes", "Their IP bytes", Gauge, |d| vec![(vec![], d.line.queued.bytes)]),
        ("shaper_rate_bps", "Rate that [autorate] has given the shaper", Gauge, |d| {
            d.line.shaper_rate_bps.map(|bps| (vec![], bps)).into_iter().collect()
        }),
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

#[cfg(test)]
mod tests {
    use lastmile_model::outcome::Buckets;

    use super::super::super::counters::{Amount, Counters};
    use super::super::status::Wire;
    use super::*;

    /// 10 packets were transmitted, of which the interface took 9: bytes on the wire are those of the 10.
    #[test]
    fn bytes_on_the_wire_are_those_of_the_transmitted_packets() {
        let [ten, nine] = [10, 9].map(|packets| Amount { packets, bytes: 100 * packets });
        let direction = Direction {
            wire: Wire { rate_bps: None, encapsulation: String::new(), examples: Vec::new() },
            received: ten,
            sent: nine,
            line: Counters { transmitted: ten, wire_bytes: 1590, ..Counters::default() },
            classes: Vec::new(),
            lateness_s: Spread::default(),
            faults: [("receiver_down".to_owned(), 1)].into(),
            counters: Vec::new(),
        };
        let value = |wanted: &str| {
            let all = families();
            let (_, help, _, of) = all.iter().find(|(name, ..)| *name == wanted).unwrap();
            (*help, of(&direction)[0].1)
        };
        assert_eq!((value("sent_packets").1, value("sent_bytes").1), (9, 900));
        let transmitted = "Packets whose transmission began, also those that the interface refused";
        assert_eq!((value("transmitted_packets"), value("transmitted_bytes").1), ((transmitted, 10), 1000));
        assert_eq!(value("wire_bytes"), ("Bytes that the transmitted packets take on the line", 1590));
    }

    /// Waits of a busy line, and then packets that do not wait: the sum stays as it is, bit by bit, also after the JSON
    /// of the control socket. A counter that falls has begun anew for Prometheus.
    #[test]
    fn the_sum_of_times_never_falls() {
        let mut waits = Buckets::default();
        (1..=1000_u64).for_each(|n| waits.record(n * n * 977));
        let sum = |waits: &Buckets| {
            let told = serde_json::to_string(&Spread::of(waits)).unwrap();
            match times(&serde_json::from_str(&told).unwrap()) {
                Value::Times { sum_s, count, .. } => (sum_s, count),
                other => panic!("{other:?}"),
            }
        };
        let (busy_s, _) = sum(&waits);
        // 977 ns times 1000 * 1001 * 2001 / 6, with buckets of a thousandth.
        assert!((busy_s / 326.155_3 - 1.0).abs() < 0.001, "{busy_s}");
        for idle in 1..=300 {
            waits.record(0);
            assert_eq!(sum(&waits), (busy_s, 1000 + idle));
        }
    }
}
