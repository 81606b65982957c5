//! What a shaper has done, for Prometheus: its text format, version 1.0.0 of OpenMetrics, by HTTP.
//!
//! The server asks at the control socket like anybody else, so a scrape never holds up a packet.

use std::net::SocketAddr;
use std::path::Path;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Request, Response, Server};

use crate::exit::{Failure, Result};

use super::operator::{self, Answer};
use super::status::{Direction, Status};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Opens the port.
pub(super) fn listen(address: SocketAddr) -> Result<Server> {
    Server::http(address).map_err(|error| Failure::new(format_args!("cannot listen at {address}: {error}")))
}

/// Answers until the server is unblocked.
pub(super) fn serve(server: &Server, control: &Path) {
    for request in server.incoming_requests() {
        answer(request, control);
    }
}

fn answer(request: Request, control: &Path) {
    let (code, text) = match request.url() {
        "/metrics" => match ask(control) {
            Ok(text) => (200, text),
            Err(error) => (503, format!("{error}\n")),
        },
        _ => (404, "/metrics is here\n".to_owned()),
    };
    let mut response = Response::from_string(text).with_status_code(code);
    if code == 200
        && let Ok(header) = Header::from_bytes("Content-Type", CONTENT_TYPE)
    {
        response = response.with_header(header);
    }
    // Whoever hangs up gets none.
    let _ = request.respond(response);
}

fn ask(control: &Path) -> std::result::Result<String, String> {
    match operator::ask(control, operator::Request::Status) {
        Ok(Answer::Status(status)) => exposition(*status).map_err(|error| error.to_string()),
        Ok(_) => Err("no status".to_owned()),
        Err(failure) => Err(operator::words(&failure)),
    }
}

/// The whole text.
fn exposition(status: Status) -> std::result::Result<String, std::fmt::Error> {
    let mut registry = Registry::with_prefix("lastmile_shape");
    registry.register_collector(Box::new(Told(status)));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

#[derive(Debug)]
struct Told(Status);

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The samples of one direction: labels beside the direction, and a number.
type Samples<'a> = Vec<(Labels<'a>, u64)>;

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::result::Result<(), std::fmt::Error> {
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
        let mut family = encoder.encode_descriptor(
            "delay_seconds",
            "Quantiles of what packets waited in the queues, and of how late they were sent",
            None,
            MetricType::Gauge,
        )?;
        for (direction, told) in [("up", &status.up), ("down", &status.down)] {
            for (what, delay) in
                [("wait", &told.waited_s), ("ack_wait", &told.acks_waited_s), ("lateness", &told.lateness_s)]
            {
                for (quantile, seconds) in [("0.5", delay.p50), ("0.99", delay.p99), ("1", delay.max)] {
                    let Some(seconds) = seconds else { continue };
                    let labels = vec![("direction", direction), ("of", what), ("quantile", quantile)];
                    ConstGauge::new(seconds).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn sample(
    family: &mut MetricEncoder<'_>,
    labels: &Labels<'_>,
    count: u64,
    kind: MetricType,
) -> std::result::Result<(), std::fmt::Error> {
    let encoder = family.encode_family(labels)?;
    match kind {
        MetricType::Counter => ConstCounter::new(count).encode(encoder),
        // Backlogs, which no machine fills beyond what a signed number holds.
        _ => ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX)).encode(encoder),
    }
}

type Family = (&'static str, &'static str, MetricType, fn(&Direction) -> Samples<'_>);

fn families() -> [Family; 12] {
    use MetricType::{Counter, Gauge};
    [
        ("received_packets", "Packets that came in", Counter, |d| vec![(vec![], d.received.packets)]),
        ("received_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.received.bytes)]),
        ("sent_packets", "Packets that went out", Counter, |d| vec![(vec![], d.sent.packets)]),
        ("sent_bytes", "Their IP bytes", Counter, |d| vec![(vec![], d.sent.bytes)]),
        ("wire_bytes", "Bytes that they took on the line", Counter, |d| vec![(vec![], d.wire_bytes)]),
        ("dropped_packets", "Packets that queues dropped", Counter, |d| {
            d.dropped.iter().map(|(reason, amount)| (vec![("reason", reason.as_str())], amount.packets)).collect()
        }),
        ("faults", "Frames that went another way than planned", Counter, |d| {
            d.faults.iter().map(|(reason, count)| (vec![("reason", reason.as_str())], *count)).collect()
        }),
        ("queued_packets", "Packets that wait", Gauge, |d| vec![(vec![], d.queued.packets)]),
        ("queued_bytes", "Their IP bytes", Gauge, |d| vec![(vec![], d.queued.bytes)]),
        ("class_sent_packets", "Packets that a class sent", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.sent.packets)).collect()
        }),
        ("class_sent_bytes", "Their IP bytes", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.sent.bytes)).collect()
        }),
        ("class_dropped_packets", "Packets that a class dropped", Counter, |d| {
            d.classes.iter().map(|class| (vec![("class", class.name.as_str())], class.dropped_packets)).collect()
        }),
    ]
}
