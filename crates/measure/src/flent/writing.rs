//! From a measurement to a data file.

use chrono::DateTime;
use serde_json::{Map, Value, json};

use super::format::{OWN, PING, STEP_S, VERSION};
use super::names;
use crate::load::Direction;
use crate::probe::{Kind, Sample};
use crate::report::{Measurement, Phase, Throughput};

/// Most values of a series, as in flent: 55 hours. The grid of a longer measurement ends there; raw values do not.
const MOST_STEPS: u32 = 1_000_000;

/// Values over time: seconds since the start of the measurement, in their order.
struct Timeline {
    name: String,
    unit: &'static str,
    points: Vec<(f64, f64)>,
    raw: Vec<Value>,
}

/// The whole file.
pub(super) fn file(measurement: &Measurement) -> Value {
    let test = test(&measurement.phases);
    let mut lines = rates(measurement, test);
    lines.extend(pings(measurement, test == "rrul"));
    let end_s = measurement.phases.iter().map(|phase| phase.start_s + phase.duration_s).fold(0.0, f64::max);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of values")]
    let count = ((end_s / STEP_S).ceil() as u32).min(MOST_STEPS);
    let grid: Vec<f64> = (0..count).map(|index| f64::from(index) * STEP_S).collect();
    let mut results: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for line in &lines {
        results.push((line.name.clone(), grid.iter().map(|&at_s| value_at(&line.points, at_s)).collect()));
    }
    if test == "rrul" {
        derived(&mut results, measurement);
    }
    json!({
        "version": VERSION,
        "metadata": metadata(measurement, test, end_s, &lines),
        "x_values": grid,
        "results": results.into_iter().map(|(name, values)| (name, json!(values))).collect::<Map<_, _>>(),
        "raw_values": lines.into_iter().map(|line| (line.name, Value::Array(line.raw))).collect::<Map<_, _>>(),
    })
}

/// flent's test whose series the loads fill.
fn test(phases: &[Phase]) -> &'static str {
    let has = |wanted: &[Direction]| phases.iter().any(|phase| phase.load.is_some_and(|load| wanted.contains(&load)));
    match (has(&[Direction::Download, Direction::Both]), has(&[Direction::Upload, Direction::Both])) {
        (false, false) => "ping",
        (true, false) => "tcp_download",
        (false, true) => "tcp_upload",
        (true, true) => "rrul",
    }
}

type Pick = fn(&Phase) -> Option<&Throughput>;

/// The goodput of each loaded direction.
fn rates(measurement: &Measurement, test: &str) -> Vec<Timeline> {
    let directions: [(&str, Pick); 2] =
        [("TCP download", |phase| phase.download.as_ref()), ("TCP upload", |phase| phase.upload.as_ref())];
    let mut lines = Vec::new();
    for (name, pick) in directions {
        if !measurement.phases.iter().any(|phase| pick(phase).is_some()) {
            continue;
        }
        let name = if test == "rrul" { format!("{name} sum") } else { name.to_owned() };
        let mut line = Timeline { name, unit: "Mbits/s", points: Vec::new(), raw: Vec::new() };
        for (index, phase) in measurement.phases.iter().enumerate() {
            let mut previous_s = 0.0;
            for &(end_s, bps) in pick(phase).iter().flat_map(|throughput| &throughput.samples) {
                let at_s = phase.start_s + end_s;
                line.points.push((at_s, bps / 1e6));
                line.raw.push(json!({
                    "t": measurement.started_unix_s + at_s,
                    "val": bps / 1e6,
                    "dur": end_s - previous_s,
                    OWN: { "phase": index, "sample": [end_s, bps] },
                }));
                previous_s = end_s;
            }
        }
        lines.push(line);
    }
    lines
}

/// The round-trip times of each kind of probe, over all phases.
fn pings(measurement: &Measurement, is_rrul: bool) -> Vec<Timeline> {
    let mut lines: Vec<Timeline> = Vec::new();
    let mut subjects = Vec::new();
    for (phase_index, phase) in measurement.phases.iter().enumerate() {
        for (series_index, series) in phase.probes.iter().enumerate() {
            let known = subjects.iter().position(|subject| *subject == &series.subject);
            let at = known.unwrap_or_else(|| {
                let taken: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
                let name = names::of(&series.subject, is_rrul, &taken);
                lines.push(Timeline { name, unit: "ms", points: Vec::new(), raw: Vec::new() });
                subjects.push(&series.subject);
                lines.len() - 1
            });
            let line = &mut lines[at];
            for sample in &series.samples {
                if let Some(rtt_s) = sample.rtt_s.filter(|_| !sample.duplicate) {
                    line.points.push((sample.sent_s + rtt_s, rtt_s * 1e3));
                }
                let own = json!({ "phase": phase_index, "series": series_index, "sample": sample });
                line.raw.push(raw_ping(measurement.started_unix_s, sample, line.raw.len(), own));
            }
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

/// A ping as flent's irtt runner records it: the time of the answer, or that of a request without one.
fn raw_ping(started_unix_s: f64, sample: &Sample, number: usize, own: Value) -> Value {
    let at_s = started_unix_s + sample.sent_s + sample.rtt_s.unwrap_or(0.0);
    let mut raw = Map::from_iter([("seq".to_owned(), json!(number)), ("t".to_owned(), json!(at_s))]);
    for (key, value_s) in [("val", sample.rtt_s), ("owd_up", sample.up_s), ("owd_down", sample.down_s)] {
        if let Some(value_s) = value_s {
            raw.insert(key.to_owned(), json!(value_s * 1e3));
        }
    }
    if sample.rtt_s.is_none() {
        raw.insert("lost".to_owned(), json!(true));
    }
    raw.insert(OWN.to_owned(), own);
    Value::Object(raw)
}

/// The value of a series at a time, by flent's rule: between the neighbours in proportion, none further than five steps
/// from both, and the first value not earlier than half a step before it.
fn value_at(points: &[(f64, f64)], at_s: f64) -> Option<f64> {
    let next = points.partition_point(|point| point.0 <= at_s);
    let (before, after) = (next.checked_sub(1).map(|index| points[index]), points.get(next).copied());
    let near = |point: &(f64, f64), steps: f64| (point.0 - at_s).abs() <= steps * STEP_S;
    match (before.filter(|point| near(point, 5.0)), after.filter(|point| near(point, 5.0))) {
        (Some((t0, v0)), Some((t1, v1))) => Some(v0 + (v1 - v0) * (at_s - t0) / (t1 - t0)),
        (None, Some(point)) => Some(point).filter(|point| near(point, 0.5)).map(|point| point.1),
        (Some(point), None) => Some(point).filter(|point| near(point, 0.5)).map(|point| point.1),
        (None, None) => None,
    }
}

/// The sums and averages of `rrul`: of what is there at each time, none where nothing is.
fn derived(results: &mut Vec<(String, Vec<Option<f64>>)>, measurement: &Measurement) {
    let combine = |results: &[(String, Vec<Option<f64>>)], prefix: &str, average: bool| -> Vec<Option<f64>> {
        let chosen: Vec<_> = results.iter().filter(|(name, _)| name.starts_with(prefix)).collect();
        let length = chosen.first().map_or(0, |(_, values)| values.len());
        let at = |index: usize| {
            let there: Vec<f64> = chosen.iter().filter_map(|(_, values)| values[index]).collect();
            #[expect(clippy::cast_precision_loss, reason = "a number of series")]
            let share = if average { there.len() as f64 } else { 1.0 };
            (!there.is_empty()).then(|| there.iter().sum::<f64>() / share)
        };
        (0..length).map(at).collect()
    };
    let totals = combine(results, "TCP ", false);
    let ping = combine(results, PING, true);
    let streams = |pick: Pick| measurement.phases.iter().filter_map(pick).map(|rate| rate.streams).max().unwrap_or(1);
    let each = [
        ("TCP download", streams(|phase| phase.download.as_ref())),
        ("TCP upload", streams(|phase| phase.upload.as_ref())),
    ];
    for (name, streams) in each {
        if let Some((_, sum)) = results.iter().find(|(sum, _)| *sum == format!("{name} sum")) {
            let average = sum.iter().map(|value| value.map(|sum| sum / f64::from(streams.max(1)))).collect();
            results.push((format!("{name} avg"), average));
        }
    }
    results.push(("TCP totals".to_owned(), totals));
    if !ping.is_empty() {
        results.push((format!("{PING}avg"), ping));
    }
}

fn metadata(measurement: &Measurement, test: &str, end_s: f64, lines: &[Timeline]) -> Value {
    let date = date(measurement.started_unix_s);
    #[expect(clippy::cast_possible_truncation, reason = "seconds of a measurement")]
    let length_s = end_s.ceil() as i64;
    let series_metas: Map<_, _> =
        lines.iter().map(|line| (line.name.clone(), series_meta(line, measurement))).collect();
    json!({
        "NAME": test,
        "TITLE": "lastmile",
        "NOTE": measurement.load,
        "HOST": measurement.host,
        "HOSTS": [measurement.host],
        "LOCAL_HOST": "",
        "TIME": date,
        "T0": date,
        "LENGTH": length_s,
        "TOTAL_LENGTH": length_s,
        "STEP_SIZE": STEP_S,
        "IP_VERSION": if measurement.host.contains(':') { 6 } else { 4 },
        "TEST_PARAMETERS": parameters(measurement),
        "FAILED_RUNNERS": 0,
        "FLENT_VERSION": format!("lastmile {}", measurement.version),
        "DATA_FILENAME": format!("{test}-{date}{}", super::SUFFIX),
        "SERIES_META": series_metas,
        OWN: skeleton(measurement),
    })
}

/// flent's parameter of the congestion controls, that of the client before that of the server as netperf's `-K` has
/// them. It is left out where phases differ, or one is not known.
fn parameters(measurement: &Measurement) -> Value {
    let of = |pick: Pick| {
        let mut names: Vec<&Option<String>> =
            measurement.phases.iter().filter_map(pick).map(|throughput| &throughput.congestion).collect();
        names.dedup();
        match names[..] {
            [] => Some(""),
            [Some(name)] => Some(name.as_str()),
            _ => None,
        }
    };
    match (of(|phase| phase.upload.as_ref()), of(|phase| phase.download.as_ref())) {
        (Some(""), Some("")) | (None, _) | (_, None) => json!({}),
        (Some(one), Some("")) | (Some(""), Some(one)) => json!({ "tcp_cong_control": one }),
        (Some(up), Some(down)) => json!({ "tcp_cong_control": format!("{up},{down}") }),
    }
}

fn series_meta(line: &Timeline, measurement: &Measurement) -> Value {
    let values = || line.points.iter().map(|point| point.1);
    #[expect(clippy::cast_precision_loss, reason = "a number of values")]
    let mean = (!line.points.is_empty()).then(|| values().sum::<f64>() / line.points.len() as f64);
    let is_irtt =
        measurement.phases.iter().flat_map(|phase| &phase.probes).any(|series| series.subject.kind == Kind::Irtt);
    let runner = if line.unit != "ms" {
        "NetperfDemoRunner"
    } else if line.name.contains(" UDP") && is_irtt {
        "IrttRunner"
    } else {
        "PingRunner"
    };
    json!({
        "UNITS": line.unit,
        "RUNNER": runner,
        "MEAN_VALUE": mean,
        "MIN_VALUE": values().reduce(f64::min),
        "MAX_VALUE": values().reduce(f64::max),
    })
}

/// The measurement without its samples, which are among the raw values.
fn skeleton(measurement: &Measurement) -> Value {
    let mut bare = measurement.clone();
    for phase in &mut bare.phases {
        for throughput in phase.download.iter_mut().chain(&mut phase.upload) {
            throughput.samples.clear();
        }
        for series in &mut phase.probes {
            series.samples.clear();
        }
    }
    serde_json::to_value(bare).expect("a measurement is JSON")
}

/// A time as flent writes it: UTC, with microseconds.
fn date(unix_s: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "microseconds since 1970")]
    let micros = (unix_s * 1e6).round() as i64;
    let date = DateTime::from_timestamp_micros(micros).unwrap_or_default();
    date.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
