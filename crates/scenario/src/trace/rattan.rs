//! Rattan's traces: the JSON of the crate netem-trace.
//!
//! A file holds one configuration, or a list of one each of rate (`...Bw...Config`), delay and loss. Read are
//! `StaticBwConfig`, `StaticDelayConfig`, `StaticLossConfig` and the `Repeated...PatternConfig` of them; times and
//! rates as objects (`{"secs": 1, "nanos": 0}`, `{"gbps": 0, "bps": 12000000}`) or as texts (`"1s"`, `"12Mbps"`). A
//! pattern with `count` 0 goes on for ever. After a finite one its last value holds.

use std::collections::BTreeSet;

use lastmile_queueing::line::trace::{Step, Steps};
use lastmile_units::{BitRate, Duration, Ratio};
use serde_json::{Value, json};

use super::generate::{Base, Has};

/// Most steps of a trace.
const MOST: usize = 1_000_000;

/// A value for each span of time.
struct Part<T> {
    spans: Vec<(Duration, T)>,
    /// The end of each span.
    ends: Vec<Duration>,
    /// The spans come again and again.
    repeats: bool,
}

impl<T: Copy> Part<T> {
    fn new(spans: Vec<(Duration, T)>, repeats: bool) -> Self {
        let mut end = Duration::ZERO;
        let ends = spans.iter().map(|(span, _)| {
            end += *span;
            end
        });
        Self { ends: ends.collect(), spans, repeats }
    }

    fn length(&self) -> Duration {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Where the values but the first begin.
    fn changes(&self) -> impl Iterator<Item = Duration> {
        self.ends[..self.ends.len() - 1].iter().copied()
    }

    /// The value that holds at `at`; behind the end the last one.
    fn at(&self, at: Duration) -> T {
        self.spans[self.ends.partition_point(|end| *end <= at).min(self.spans.len() - 1)].1
    }
}

/// Reads the text of a file, the time after which it starts again, and what it has beside rates.
pub(super) fn read(text: &str, base: Base) -> Result<(Vec<Step>, Option<Duration>, Has), String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let configs = match &document {
        Value::Array(configs) => configs.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut rates, mut delays, mut losses) = (None, None, None);
    for config in configs {
        let (name, _) = single(config)?;
        let known = if name.contains("Bw") {
            rates.replace(part(config, "bw", &rate)?).is_some()
        } else if name.contains("Delay") && !name.contains("PerPacket") {
            delays.replace(part(config, "delay", &time)?).is_some()
        } else if name.contains("Loss") {
            losses.replace(part(config, "loss", &loss)?).is_some()
        } else {
            return Err(format!("{name}: lastmile reads traces of Bw, Delay and Loss"));
        };
        if known {
            return Err(format!("{name}: a second trace of one kind"));
        }
    }
    if rates.is_none() && base.rate.is_none() {
        return Err("no trace of Bw, and no rate beside the file".to_owned());
    }
    let lengths = [length(rates.as_ref()), length(delays.as_ref()), length(losses.as_ref())];
    let mut periods: Vec<Duration> =
        lengths.iter().flatten().filter(|(_, repeats)| *repeats).map(|(l, _)| *l).collect();
    periods.dedup();
    let period = periods.first().copied();
    if periods.len() > 1 || (period.is_some() && lengths.iter().flatten().any(|(_, repeats)| !repeats)) {
        return Err("its traces start again after different times, or not all of them do".to_owned());
    }
    let mut starts: BTreeSet<Duration> = BTreeSet::from([Duration::ZERO]);
    starts.extend(rates.iter().flat_map(Part::changes));
    starts.extend(delays.iter().flat_map(Part::changes));
    starts.extend(losses.iter().flat_map(Part::changes));
    let steps = starts.into_iter().map(|at| Step {
        at,
        rate: rates.as_ref().map_or(base.rate, |part| part.at(at)),
        delay: delays.as_ref().map_or(base.delay, |part| part.at(at)),
        loss: losses.as_ref().map_or(base.loss, |part| part.at(at)),
    });
    Ok((steps.collect(), period, Has { delay: delays.is_some(), loss: losses.is_some() }))
}

fn length<T: Copy>(part: Option<&Part<T>>) -> Option<(Duration, bool)> {
    part.map(|part| (part.length(), part.repeats))
}

/// The name of a configuration and its fields.
fn single(config: &Value) -> Result<(&str, &Value), String> {
    match config.as_object().map(|object| object.iter().collect::<Vec<_>>()).as_deref() {
        Some([(name, fields)]) => Ok((name.as_str(), *fields)),
        _ => Err("an object with one key is expected, such as \"RepeatedBwPatternConfig\"".to_owned()),
    }
}

fn part<T: Copy>(config: &Value, field: &str, read: &dyn Fn(&Value) -> Result<T, String>) -> Result<Part<T>, String> {
    let (name, fields) = single(config)?;
    let key = |key: &str| fields.get(key).ok_or_else(|| format!("{name}: missing key {key:?}"));
    if name.starts_with("Static") {
        let value = read(key(field)?).map_err(|error| format!("{name}: {field}: {error}"))?;
        let span = match fields.get("duration") {
            None | Some(Value::Null) => Duration::from_s(1),
            Some(span) => time(span).map_err(|error| format!("{name}: duration: {error}"))?,
        };
        if span == Duration::ZERO {
            return Err(format!("{name}: duration: 0"));
        }
        return Ok(Part::new(vec![(span, value)], false));
    }
    if !name.starts_with("Repeated") {
        return Err(format!("{name}: lastmile reads Static... and Repeated...Pattern configurations"));
    }
    let pattern = key("pattern")?.as_array().ok_or_else(|| format!("{name}: pattern: a list is expected"))?;
    let mut spans = Vec::new();
    for (index, entry) in pattern.iter().enumerate() {
        let inner =
            part(entry, field, read).map_err(|error| format!("{name}: pattern, entry {}: {error}", index + 1))?;
        spans.extend(inner.spans);
    }
    let count = fields.get("count").and_then(Value::as_u64).unwrap_or(0);
    if spans.is_empty() {
        return Err(format!("{name}: pattern: no entries"));
    }
    let times = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    if spans.len().saturating_mul(times) > MOST {
        return Err(format!("{name}: count: more than {MOST} steps"));
    }
    Ok(Part::new(spans.repeat(times), count == 0))
}

/// `None` for an outage.
fn rate(value: &Value) -> Result<Option<BitRate>, String> {
    let bps = match value {
        Value::Object(fields) => {
            let field = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0);
            field("gbps").checked_mul(1_000_000_000).and_then(|high| high.checked_add(field("bps")))
        }
        Value::String(text) => with_unit(text, &[("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)]),
        _ => None,
    };
    match bps {
        Some(0) => Ok(None),
        Some(bps) => BitRate::from_bps(bps).map(Some).ok_or_else(|| format!("{value} is above {}", BitRate::MAX)),
        None => Err(format!("{value} is no rate, such as \"12Mbps\" or {{\"gbps\": 0, \"bps\": 12000000}}")),
    }
}

fn time(value: &Value) -> Result<Duration, String> {
    let wrong = || format!("{value} is no time, such as \"10ms\" or {{\"secs\": 0, \"nanos\": 10000000}}");
    let ns = match value {
        Value::Object(fields) => {
            let field = |name: &str| fields.get(name).and_then(Value::as_u64).unwrap_or(0);
            field("secs").checked_mul(1_000_000_000).and_then(|high| high.checked_add(field("nanos")))
        }
        Value::String(text) => text.split_whitespace().try_fold(0_u64, |sum, word| {
            let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 6e10), ("h", 3.6e12)];
            sum.checked_add(with_unit(word, &units)?)
        }),
        _ => None,
    };
    let ns = ns.filter(|ns| *ns < 1_000_000 * 1_000_000_000).ok_or_else(wrong)?;
    Ok(Duration::from_ns(ns))
}

/// A number and a unit, in any case of letters.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..digits].parse().ok()?;
    let (_, factor) = units.iter().find(|(unit, _)| *unit == text[digits..].trim())?;
    let value = (number * factor).round();
    (value < 1e18).then_some(value as u64)
}

fn loss(value: &Value) -> Result<Ratio, String> {
    let shares = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match shares {
        [] if value.is_array() => Ok(Ratio::ZERO),
        [share] => share
            .as_f64()
            .filter(|share| (0.0..=1.0).contains(share))
            .and_then(|share| Ratio::from_parts_per_billion((share * 1e9).round() as u32))
            .ok_or_else(|| format!("{share} is no share from 0 to 1")),
        _ => Err(format!(
            "{value}: a list of one share is read; more of them are losses with a memory, which the key `loss` has"
        )),
    }
}

/// The text of a file with these steps.
pub(super) fn write(trace: &Steps, has: Has) -> String {
    let ends = trace.steps().iter().skip(1).map(|step| step.at);
    let last = trace.steps().last().map_or(Duration::ZERO, |step| step.at);
    let end = trace.period().unwrap_or(last + Duration::from_s(1));
    let spans: Vec<(Duration, Step)> =
        trace.steps().iter().zip(ends.chain([end])).map(|(step, end)| (end - step.at, *step)).collect();
    let count = u64::from(trace.period().is_none());
    let time = |time: Duration| json!({ "secs": time.as_ns() / 1_000_000_000, "nanos": time.as_ns() % 1_000_000_000 });
    let part = |kind: &str, field: &str, value: &dyn Fn(&Step) -> Value| {
        let pattern: Vec<Value> = spans
            .iter()
            .map(|(span, step)| {
                let name = format!("Static{kind}Config");
                json!({ name: { field: value(step), "duration": time(*span) } })
            })
            .collect();
        json!({ format!("Repeated{kind}PatternConfig"): { "pattern": pattern, "count": count } })
    };
    let rate = |step: &Step| {
        let bps = step.rate.map_or(0, BitRate::as_bps);
        json!({ "gbps": bps / 1_000_000_000, "bps": bps % 1_000_000_000 })
    };
    let mut parts = vec![part("Bw", "bw", &rate)];
    if has.delay {
        parts.push(part("Delay", "delay", &|step| time(step.delay)));
    }
    if has.loss {
        parts.push(part("Loss", "loss", &|step| json!([step.loss.as_f64()])));
    }
    format!("{:#}\n", Value::from(parts))
}
