//! Rattan's traces: the JSON of the crate netem-trace.
//!
//! A file holds one configuration, of rate, delay or loss, since each cell of Rattan loads a file of its own; a list of
//! one of each is read too, which is no format of Rattan. Read are `StaticBwConfig`, `StaticDelayConfig`,
//! `StaticLossConfig` and the `Repeated...PatternConfig` of them. A `duration` that is left out is one second. A
//! pattern with `count` 0, or without one, goes on for ever. After a finite one its last value holds.
//!
//! Times and rates are texts (`"1s 500ms"`, `"12Mbps 500kbps"`), with the units of the crates humantime and
//! human-bandwidth, or objects (`{"secs": 1, "nanos": 0}`, `{"gbps": 0, "bps": 12000000}`), as netem-trace has them
//! without its feature `human`. Rattan uses the feature, so texts are written.
//!
//! Differs from netem-trace: unknown keys are errors, and so are a rate, a delay and a loss that are left out.

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

/// The contents of a file.
pub(super) struct Parts {
    pub(super) steps: Vec<Step>,
    /// The time after which it starts again.
    pub(super) period: Option<Duration>,
    pub(super) has: Has,
    /// The rate is that of the base.
    pub(super) took_rate: bool,
}

/// Reads the text of a file.
pub(super) fn read(text: &str, base: Base) -> Result<Parts, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let configs = match &document {
        Value::Array(configs) => configs.as_slice(),
        one => std::slice::from_ref(one),
    };
    let (mut rates, mut delays, mut losses) = (None, None, None);
    for config in configs {
        let (name, _) = single(config)?;
        let known = if name.contains("Bw") {
            rates.replace(part(config, BW, &rate)?).is_some()
        } else if name.contains("Delay") && !name.contains("PerPacket") {
            delays.replace(part(config, DELAY, &time)?).is_some()
        } else if name.contains("Loss") {
            losses.replace(part(config, LOSS, &loss)?).is_some()
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
    let has = Has { delay: delays.is_some(), loss: losses.is_some() };
    Ok(Parts { steps: steps.collect(), period, has, took_rate: rates.is_none() })
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

/// A kind of trace: the word in the names of its configurations, and the key of its values.
type KindOf = (&'static str, &'static str);
const BW: KindOf = ("Bw", "bw");
const DELAY: KindOf = ("Delay", "delay");
const LOSS: KindOf = ("Loss", "loss");

fn part<T: Copy>(config: &Value, of: KindOf, read: &dyn Fn(&Value) -> Result<T, String>) -> Result<Part<T>, String> {
    let (name, fields) = single(config)?;
    let (kind, key) = of;
    if name == format!("Static{kind}Config") {
        known(name, fields, [key, "duration"])?;
        let value = fields.get(key).ok_or_else(|| format!("{name}: missing key {key:?}"))?;
        let value = read(value).map_err(|error| format!("{name}: {key}: {error}"))?;
        let span = match fields.get("duration") {
            None | Some(Value::Null) => Duration::from_s(1),
            Some(span) => time(span).map_err(|error| format!("{name}: duration: {error}"))?,
        };
        if span == Duration::ZERO {
            return Err(format!("{name}: duration: 0"));
        }
        return Ok(Part::new(vec![(span, value)], false));
    }
    if name != format!("Repeated{kind}PatternConfig") {
        return Err(format!("{name}: lastmile reads Static{kind}Config and Repeated{kind}PatternConfig"));
    }
    known(name, fields, ["pattern", "count"])?;
    let pattern = fields.get("pattern").ok_or_else(|| format!("{name}: missing key \"pattern\""))?;
    let pattern = pattern.as_array().ok_or_else(|| format!("{name}: pattern: a list is expected"))?;
    let count = match fields.get("count") {
        None => 0,
        Some(count) => count.as_u64().ok_or_else(|| format!("{name}: count: {count}, where a number is expected"))?,
    };
    let mut spans = Vec::new();
    for (entry, number) in pattern.iter().zip(1..) {
        let inner = part(entry, of, read).map_err(|error| format!("{name}: pattern, entry {number}: {error}"))?;
        if inner.repeats && pattern.len() == 1 {
            return Ok(inner);
        }
        if inner.repeats {
            return Err(format!("{name}: pattern, entry {number}: its count of 0 never ends, next to other entries"));
        }
        spans.extend(inner.spans);
    }
    if spans.is_empty() {
        return Err(format!("{name}: pattern: no entries"));
    }
    let times = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    if spans.len().saturating_mul(times) > MOST {
        return Err(format!("{name}: count: more than {MOST} steps"));
    }
    Ok(Part::new(spans.repeat(times), count == 0))
}

/// Refuses fields other than these.
fn known(name: &str, fields: &Value, known: [&str; 2]) -> Result<(), String> {
    let fields = fields.as_object().ok_or_else(|| format!("{name}: an object is expected"))?;
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("{name}: unknown key {key:?}; known: {}", known.join(", "))),
        None => Ok(()),
    }
}

/// `None` for an outage.
fn rate(value: &Value) -> Result<Option<BitRate>, String> {
    let bps = match value {
        Value::String(text) => sum(text, bps_in),
        object => billions(object, ["gbps", "bps"]),
    };
    match bps {
        Some(0) => Ok(None),
        Some(bps) => BitRate::from_bps(bps).map(Some).ok_or_else(|| format!("{value} is above {}", BitRate::MAX)),
        None => Err(format!("{value} is no rate, such as \"12Mbps\" or {{\"gbps\": 0, \"bps\": 12000000}}")),
    }
}

fn time(value: &Value) -> Result<Duration, String> {
    const LONGEST_S: u64 = 1_000_000;
    let ns = match value {
        Value::String(text) => sum(text, ns_in),
        object => billions(object, ["secs", "nanos"]),
    };
    match ns {
        Some(ns) if ns < LONGEST_S * 1_000_000_000 => Ok(Duration::from_ns(ns)),
        Some(_) => Err(format!("{value} is not below {LONGEST_S} s")),
        None => Err(format!("{value} is no time, such as \"10ms\" or {{\"secs\": 0, \"nanos\": 10000000}}")),
    }
}

/// An object with these two numbers and no other: billions, and what is left.
fn billions(value: &Value, keys: [&str; 2]) -> Option<u64> {
    let fields = value.as_object().filter(|fields| fields.len() == keys.len())?;
    let [high, low] = keys.map(|key| fields.get(key).and_then(Value::as_u64));
    high?.checked_mul(1_000_000_000)?.checked_add(low?)
}

/// The sum of words, each a number and a unit. Fractions of a bit/s or a nanosecond are left out.
fn sum(text: &str, unit: fn(&str) -> Option<u64>) -> Option<u64> {
    let (mut rest, mut sum) = (text.trim(), 0_u64);
    loop {
        let number = &rest[..rest.find(|c: char| !c.is_ascii_digit() && c != '.')?];
        let after = rest[number.len()..].trim_start();
        let word = &after[..after.find(|c: char| c.is_ascii_digit() || c.is_whitespace()).unwrap_or(after.len())];
        sum = sum.checked_add(times(number, unit(word)?)?)?;
        rest = after[word.len()..].trim_start();
        if rest.is_empty() {
            return Some(sum);
        }
    }
}

/// A decimal number times `factor`, rounded down; of its fraction twelve digits count.
fn times(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction = &fraction[..fraction.len().min(12)];
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(factor);
    let part = u128::from(fraction.parse::<u64>().ok()?) * u128::from(factor) / scale;
    u64::try_from(whole + part).ok()
}

/// The units of human-bandwidth: two letter cases of the prefix, and one of the rest.
fn bps_in(unit: &str) -> Option<u64> {
    let prefix = ["bps", "bit/s", "b/s"].into_iter().find_map(|rest| unit.strip_suffix(rest))?;
    match prefix {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "M" | "m" => Some(1_000_000),
        "G" | "g" => Some(1_000_000_000),
        "T" | "t" => Some(1_000_000_000_000),
        _ => None,
    }
}

/// The units of humantime, in which `M` is a month.
fn ns_in(unit: &str) -> Option<u64> {
    const S: u64 = 1_000_000_000;
    match unit {
        "nanos" | "nsec" | "ns" => Some(1),
        "usec" | "us" | "µs" => Some(1_000),
        "millis" | "msec" | "ms" => Some(1_000_000),
        "seconds" | "second" | "secs" | "sec" | "s" => Some(S),
        "minutes" | "minute" | "min" | "mins" | "m" => Some(60 * S),
        "hours" | "hour" | "hr" | "hrs" | "h" => Some(3_600 * S),
        "days" | "day" | "d" => Some(86_400 * S),
        "weeks" | "week" | "wk" | "wks" | "w" => Some(604_800 * S),
        "months" | "month" | "M" => Some(2_630_016 * S),
        "years" | "year" | "yr" | "yrs" | "y" => Some(31_557_600 * S),
        _ => None,
    }
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

/// The text of a file with the rates of these steps, and those of the files with what they have beside them.
pub(super) fn write(trace: &Steps, has: Has) -> (String, Vec<(&'static str, String)>) {
    let ends = trace.steps().iter().skip(1).map(|step| step.at);
    let last = trace.steps().last().map_or(Duration::ZERO, |step| step.at);
    let end = trace.period().unwrap_or(last + Duration::from_s(1));
    let spans = trace.steps().iter().zip(ends.chain([end])).map(|(step, end)| (end.as_ns() - step.at.as_ns(), step));
    let spans: Vec<_> = spans.filter(|(ns, _)| *ns > 0).collect();
    let count = u64::from(trace.period().is_none());
    let text = |(kind, key): KindOf, value: &dyn Fn(&Step) -> Value| {
        let name = format!("Static{kind}Config");
        let entry = |(ns, step): &(u64, &Step)| json!({ &name: { key: value(step), "duration": format!("{ns}ns") } });
        let pattern: Vec<Value> = spans.iter().map(entry).collect();
        format!("{:#}\n", json!({ format!("Repeated{kind}PatternConfig"): { "pattern": pattern, "count": count } }))
    };
    let mut beside = Vec::new();
    if has.delay {
        beside.push((DELAY.1, text(DELAY, &|step| json!(format!("{}ns", step.delay.as_ns())))));
    }
    if has.loss {
        beside.push((LOSS.1, text(LOSS, &|step| json!([step.loss.as_f64()]))));
    }
    (text(BW, &|step| json!(format!("{}bps", step.rate.map_or(0, BitRate::as_bps)))), beside)
}
