//! From a data file to a measurement.

use chrono::NaiveDateTime;
use serde_json::{Map, Value};

use super::format::{Fault, OWN, STEP_S, VERSION, fault};
use super::names;
use crate::load::Direction;
use crate::probe::{Sample, Subject};
use crate::report::{Estimate, Measurement, Phase, SCHEMA, Series, Throughput};
use crate::statistics;

/// Most lost probes of a file that its sequence numbers may show. flent keeps as many values of a series.
const MOST_MISSING: usize = 1_000_000;
/// The sequence numbers of ping begin again after as many.
const TURN: i64 = 1 << 16;

/// Reads the whole file.
pub(super) fn measurement(file: &Value) -> Result<Measurement, Fault> {
    let file = object(file, "file")?;
    let metadata = object(member(file, "metadata")?, "metadata")?;
    let version = match file.get("version") {
        None => 1,
        Some(version) => version.as_u64().ok_or_else(|| fault("version", "a whole number is expected"))?,
    };
    if version == 0 || version > VERSION {
        return Err(fault("version", format!("is {version}; 1 to {VERSION} are known")));
    }
    match metadata.get(OWN) {
        Some(own) => restored(own, file),
        None => Foreign::parse(file, metadata, version)?.measurement(),
    }
}

/// A measurement of lastmile: its skeleton, with the samples from the raw values.
fn restored(own: &Value, file: &Map<String, Value>) -> Result<Measurement, Fault> {
    let key = format!("metadata.{OWN}");
    let mut measurement: Measurement = serde_json::from_value(own.clone())
        .map_err(|error| fault(key, format!("no measurement of lastmile: {error}")))?;
    for (name, values) in object(member(file, "raw_values")?, "raw_values")? {
        let series = format!("raw_values.\"{name}\"");
        for (index, value) in array(values, &series)?.iter().enumerate() {
            let key = format!("{series}[{index}].{OWN}");
            let own = value.get(OWN).ok_or_else(|| fault(&key, "missing"))?;
            restore(&mut measurement, name, own).map_err(|what| fault(&key, what))?;
        }
    }
    Ok(measurement)
}

/// Puts one sample in its place.
fn restore(measurement: &mut Measurement, name: &str, own: &Value) -> Result<(), String> {
    let index = |key: &str| own.get(key).and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let phase = index("phase").and_then(|index| measurement.phases.get_mut(index));
    let phase = phase.ok_or("`phase` is the index of a phase")?;
    let sample = own.get("sample").ok_or("`sample` is missing")?.clone();
    let rates = [("TCP download", &mut phase.download), ("TCP upload", &mut phase.upload)];
    for (prefix, throughput) in rates {
        if name.starts_with(prefix) {
            let throughput = throughput.as_mut().ok_or("the phase has no such load")?;
            throughput.samples.push(serde_json::from_value(sample).map_err(|error| error.to_string())?);
            return Ok(());
        }
    }
    let series = index("series").and_then(|index| phase.probes.get_mut(index));
    let series = series.ok_or("`series` is the index of a series of the phase")?;
    series.samples.push(serde_json::from_value::<Sample>(sample).map_err(|error| error.to_string())?);
    Ok(())
}

/// A file of flent's own, by its grid and its pings.
struct Foreign {
    host: String,
    version: String,
    started_unix_s: f64,
    step_s: f64,
    grid: Vec<f64>,
    /// Goodput at each time of the grid in bit/s, and the number of streams.
    download: Option<(Vec<Option<f64>>, u32)>,
    upload: Option<(Vec<Option<f64>>, u32)>,
    pings: Vec<(Subject, Vec<Sample>)>,
    /// Series of pings whose losses the file does not show.
    without_losses: Vec<String>,
}

impl Foreign {
    fn parse(file: &Map<String, Value>, metadata: &Map<String, Value>, version: u64) -> Result<Self, Fault> {
        let grid = member(file, "x_values")?;
        let grid = numbers(grid, "x_values")?.into_iter().enumerate();
        let grid: Vec<f64> = grid
            .map(|(index, at)| at.ok_or_else(|| fault(format!("x_values[{index}]"), "a number is expected")))
            .collect::<Result<_, _>>()?;
        if !grid.is_sorted() {
            return Err(fault("x_values", "times in rising order are expected"));
        }
        let mut results = Vec::new();
        for (name, values) in object(member(file, "results")?, "results")? {
            let key = format!("results.\"{name}\"");
            let values = numbers(values, &key)?;
            if values.len() != grid.len() {
                let what = format!("has {} values; `x_values` has {}", values.len(), grid.len());
                return Err(fault(key, what));
            }
            results.push((name.as_str(), values));
        }
        let text = |key: &str| metadata.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let step = metadata.get("STEP_SIZE").and_then(Value::as_f64).filter(|step| step.is_finite() && *step > 0.0);
        let raw = match file.get("raw_values") {
            Some(raw) if version == VERSION => Some(object(raw, "raw_values")?),
            _ => None,
        };
        let started_unix_s = started(metadata, raw)?;
        let mut foreign = Self {
            host: text("HOST"),
            version: format!("flent {}", text("FLENT_VERSION")),
            started_unix_s,
            step_s: step.unwrap_or(STEP_S),
            download: total("TCP download", &results),
            upload: total("TCP upload", &results),
            pings: Vec::new(),
            without_losses: Vec::new(),
            grid,
        };
        let mut room = MOST_MISSING;
        for (name, values) in &results {
            let meta = metadata.get("SERIES_META").and_then(|meta| meta.get(name));
            let runner = meta.and_then(|meta| meta.get("RUNNER")).and_then(Value::as_str);
            if let Some(subject) = names::subject(name, &foreign.host, runner) {
                let (samples, has_losses) = match raw.and_then(|raw| raw.get(*name)) {
                    Some(values) => raw_pings(values, &format!("raw_values.\"{name}\""), started_unix_s, &mut room)?,
                    None => (foreign.grid_pings(values), false),
                };
                if !has_losses {
                    foreign.without_losses.push(subject.to_string());
                }
                foreign.pings.push((subject, samples));
            }
        }
        Ok(foreign)
    }

    fn grid_pings(&self, values: &[Option<f64>]) -> Vec<Sample> {
        let answered = self.grid.iter().zip(values).filter_map(|(at_s, value)| Some((at_s, (*value)? / 1e3)));
        answered.map(|(at_s, rtt_s)| Sample { sent_s: at_s - rtt_s, rtt_s: Some(rtt_s), ..Sample::default() }).collect()
    }

    /// The time in which a direction carried data, from the start of its first interval.
    fn loaded(&self) -> Option<(f64, f64)> {
        let mut span: Option<(f64, f64)> = None;
        for (values, _) in self.download.iter().chain(&self.upload) {
            for (at_s, _) in self.grid.iter().zip(values).filter(|(_, value)| value.is_some()) {
                let (from_s, to_s) = span.unwrap_or((*at_s, *at_s));
                span = Some((from_s.min(*at_s), to_s.max(*at_s)));
            }
        }
        span.map(|(from_s, to_s)| ((from_s - self.step_s).max(0.0), to_s))
    }

    fn measurement(self) -> Result<Measurement, Fault> {
        let end_s = self.grid.last().ok_or_else(|| fault("x_values", "at least one time is expected"))? + self.step_s;
        let has = |direction: &Option<(Vec<Option<f64>>, u32)>| direction.is_some();
        let load = match (has(&self.download), has(&self.upload)) {
            (true, true) => Some(Direction::Both),
            (true, false) => Some(Direction::Download),
            (false, true) => Some(Direction::Upload),
            (false, false) => None,
        };
        let mut spans = vec![(None, 0.0, end_s)];
        if let (Some(load), Some((from_s, to_s))) = (load, self.loaded()) {
            spans = vec![(None, 0.0, from_s), (Some(load), from_s, to_s), (None, to_s, end_s)];
            spans.retain(|(load, from_s, to_s)| load.is_some() || to_s - from_s > self.step_s);
        }
        let mut warnings = Vec::new();
        if load.is_some() {
            warnings.push("goodput is read at the steps of the file; flent has interpolated it".to_owned());
        }
        if !self.without_losses.is_empty() {
            let of = self.without_losses.join(", ");
            warnings
                .push(format!("losses of {of} are unknown and count as none: the file does not number their probes"));
        }
        let one_way = self.pings.iter().flat_map(|(_, samples)| samples).any(|sample| sample.up_s.is_some());
        Ok(Measurement {
            schema: SCHEMA,
            version: self.version.clone(),
            started_unix_s: self.started_unix_s,
            host: self.host.clone(),
            load: load.map(|_| "netperf".to_owned()),
            phases: spans.into_iter().map(|(load, from_s, to_s)| self.phase(load, from_s, to_s)).collect(),
            clocks: one_way.then(|| "one-way delays are those of irtt, whose clocks nobody has compared".to_owned()),
            warnings,
            complete: true,
        })
    }

    fn phase(&self, load: Option<Direction>, from_s: f64, to_s: f64) -> Phase {
        let throughput = |direction: &Option<(Vec<Option<f64>>, u32)>| {
            let (values, streams) = direction.as_ref().filter(|_| load.is_some())?;
            self.throughput(values, *streams, from_s, to_s)
        };
        let last = to_s >= self.grid.last().copied().unwrap_or(0.0);
        let is_in = |sample: &&Sample| (from_s == 0.0 || sample.sent_s >= from_s) && (last || sample.sent_s < to_s);
        let probes = self
            .pings
            .iter()
            .map(|(subject, samples)| series(subject.clone(), samples.iter().filter(is_in).copied().collect()));
        Phase {
            load,
            start_s: from_s,
            duration_s: to_s - from_s,
            download: throughput(&self.download),
            upload: throughput(&self.upload),
            probes: probes.collect(),
            ..Phase::default()
        }
    }

    fn throughput(&self, values: &[Option<f64>], streams: u32, from_s: f64, to_s: f64) -> Option<Throughput> {
        let there = self.grid.iter().zip(values).filter(|(at_s, _)| (from_s..=to_s).contains(at_s));
        let samples: Vec<(f64, f64)> = there.filter_map(|(at_s, bps)| Some((at_s - from_s, (*bps)?))).collect();
        let rates: Vec<f64> = samples.iter().map(|sample| sample.1).collect();
        let goodput_bps: Estimate = statistics::mean(&rates)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "held at the largest number")]
        let bytes = (rates.iter().sum::<f64>() * self.step_s / 8.0) as u64;
        Some(Throughput { bytes, streams, congestion: None, goodput_bps, ramp_included: false, samples })
    }
}

/// The sum of the streams of a direction in bit/s: flent's own, or that of the streams. `None` without any.
fn total(direction: &str, results: &[(&str, Vec<Option<f64>>)]) -> Option<(Vec<Option<f64>>, u32)> {
    let is_stream = |name: &str| {
        let rest = name.strip_prefix(direction).map(str::trim_start);
        // `TCP upload::3` is a stream, `TCP upload BE::tcp_cwnd` is not.
        let number =
            |rest: &str| rest.strip_prefix("::").is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        rest.is_some_and(|rest| !["sum", "avg", "fairness"].contains(&rest) && (!rest.contains("::") || number(rest)))
    };
    let streams: Vec<_> = results.iter().filter(|(name, _)| is_stream(name)).map(|(_, values)| values).collect();
    let named = results.iter().find(|(name, _)| *name == format!("{direction} sum")).map(|(_, values)| values.clone());
    let sum = match (named, streams.first()) {
        (Some(sum), _) => sum,
        (None, Some(first)) => {
            let at = |index: usize| streams.iter().filter_map(|values| values[index]).reduce(|a, b| a + b);
            (0..first.len()).map(at).collect()
        }
        (None, None) => return None,
    };
    let count = u32::try_from(streams.len().max(1)).unwrap_or(u32::MAX);
    Some((sum.into_iter().map(|mbps| mbps.map(|mbps| mbps * 1e6)).collect(), count))
}

/// Pings from raw values, and whether they show losses. flent records the time of an answer. Its irtt runner records
/// that of a request without one, too; a lost request of ping or fping leaves a gap in the sequence numbers. `room` is
/// the number of lost probes that may be added.
fn raw_pings(values: &Value, key: &str, started_unix_s: f64, room: &mut usize) -> Result<(Vec<Sample>, bool), Fault> {
    let mut samples = Vec::new();
    let mut numbered = Vec::new();
    let mut newest = f64::NEG_INFINITY;
    for (index, value) in array(values, key)?.iter().enumerate() {
        let number = |name: &str| match value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let number = value.as_f64();
                number.map(Some).ok_or_else(|| fault(format!("{key}[{index}].{name}"), "a number is expected"))
            }
        };
        let at = number("t")?.ok_or_else(|| fault(format!("{key}[{index}].t"), "missing"))?;
        let ms = |name: &str| Ok(number(name)?.map(|ms| ms / 1e3));
        let (rtt_s, up_s, down_s) = (ms("val")?, ms("owd_up")?, ms("owd_down")?);
        let sent_s = at - started_unix_s - rtt_s.unwrap_or(0.0);
        // Answers are in the order of their sequence numbers, so one that came before the one in front was overtaken.
        let reordered = rtt_s.is_some() && at < newest;
        if rtt_s.is_some() {
            newest = newest.max(at);
        }
        let seq = value.get("seq").and_then(Value::as_f64);
        numbered.extend(seq.and_then(whole).map(|number| (number, sent_s)));
        samples.push(Sample { sent_s, rtt_s, up_s, down_s, reordered, ..Sample::default() });
    }
    let gaps = if numbered.len() == samples.len() { missing(numbered, room) } else { None };
    let has_losses = gaps.is_some();
    samples.extend(gaps.into_iter().flatten());
    samples.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s));
    Ok((samples, has_losses))
}

/// A sequence number: flent has read some of them as floats.
#[expect(clippy::cast_possible_truncation, reason = "32 bits")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as i64)
}

/// The lost probes whose numbers are missing between others, each at the time that its number has between those of its
/// neighbours. `None` without numbers, or where more are missing than there is room for.
fn missing(mut numbered: Vec<(i64, f64)>, room: &mut usize) -> Option<Vec<Sample>> {
    let (mut newest, mut turns) = (numbered.first()?.0, 0);
    for (number, _) in &mut numbered {
        // The numbers of ping have 16 bits.
        *number += turns;
        if *number + TURN / 2 < newest {
            *number += TURN;
            turns += TURN;
        } else if *number > newest + TURN / 2 && turns > 0 {
            *number -= TURN;
        }
        newest = newest.max(*number);
    }
    numbered.sort_by_key(|(number, _)| *number);
    numbered.dedup_by_key(|(number, _)| *number);
    let span = numbered.last()?.0 - numbered.first()?.0 + 1;
    let count = usize::try_from(span).ok()? - numbered.len();
    *room = room.checked_sub(count)?;
    let mut lost = Vec::with_capacity(count);
    for (&(before, from_s), &(after, to_s)) in numbered.iter().zip(&numbered[1..]) {
        #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
        let at_s = |number: i64| from_s + (to_s - from_s) * ((number - before) as f64 / (after - before) as f64);
        lost.extend((before + 1..after).map(|number| Sample { sent_s: at_s(number), ..Sample::default() }));
    }
    Some(lost)
}

/// The figures of a series of pings without a ramp.
fn series(subject: Subject, samples: Vec<Sample>) -> Series {
    let of =
        |value: fn(&Sample) -> Option<f64>| statistics::delays(&samples.iter().filter_map(value).collect::<Vec<f64>>());
    let count = |is: fn(&&Sample) -> bool| samples.iter().filter(is).count() as u64;
    Series {
        round_trip: of(|sample| sample.rtt_s),
        up: of(|sample| sample.up_s),
        down: of(|sample| sample.down_s),
        lost: count(|sample| sample.rtt_s.is_none()),
        reordered: count(|sample| sample.reordered),
        ..Series::new(subject, samples)
    }
}

/// The time of the first value (`T0`, in old files `TIME`), seconds since 1970. Old files have it in local time: flent
/// and this reader take the whole number of hours that brings it next to the raw values.
fn started(metadata: &Map<String, Value>, raw: Option<&Map<String, Value>>) -> Result<f64, Fault> {
    let (key, text) = ["T0", "TIME"]
        .into_iter()
        .find_map(|key| Some((format!("metadata.{key}"), metadata.get(key)?.as_str()?)))
        .ok_or_else(|| fault("metadata.T0", "missing; a date such as 2026-05-30T15:42:47.075621Z is expected"))?;
    let bare = text.strip_suffix('Z').unwrap_or(text);
    let date = NaiveDateTime::parse_from_str(bare, "%Y-%m-%dT%H:%M:%S%.f")
        .map_err(|_| fault(key, format!("`{text}` is no date; 2026-05-30T15:42:47.075621Z is the form")))?;
    #[expect(clippy::cast_precision_loss, reason = "microseconds of this century are exact")]
    let unix_s = date.and_utc().timestamp_micros() as f64 / 1e6;
    if text.ends_with('Z') {
        return Ok(unix_s);
    }
    let times = raw.into_iter().flat_map(Map::values).filter_map(Value::as_array).flatten();
    let earliest = times.filter_map(|value| value.get("t")?.as_f64()).reduce(f64::min);
    Ok(earliest.map_or(unix_s, |earliest| unix_s + ((earliest - unix_s) / 3600.0).round() * 3600.0))
}

fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a Value, Fault> {
    object.get(name).ok_or_else(|| fault(name, "missing"))
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, Fault> {
    value.as_object().ok_or_else(|| fault(key, "an object is expected"))
}

fn array<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>, Fault> {
    value.as_array().ok_or_else(|| fault(key, "an array is expected"))
}

/// Numbers, with gaps where the file has null.
fn numbers(value: &Value, key: &str) -> Result<Vec<Option<f64>>, Fault> {
    let one = |(index, value): (usize, &Value)| match value {
        Value::Null => Ok(None),
        Value::Number(number) => Ok(number.as_f64()),
        _ => Err(fault(format!("{key}[{index}]"), "a number or null is expected")),
    };
    array(value, key)?.iter().enumerate().map(one).collect()
}
