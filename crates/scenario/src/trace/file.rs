//! Files of traces: tables of steps (CSV), packet-delivery traces of mahimahi, JSON of Rattan.

use std::fmt::{Display, Write as _};
use std::sync::Arc;

use lastmile_queueing::line::trace::{Opportunities, Step, Steps, Trace, TraceError};
use lastmile_units::{BitRate, Duration, Ratio};

use super::generate::{Base, Has};
use super::rattan;

/// A packet-delivery trace above this rate is in seconds rather than milliseconds.
const FASTEST: BitRate = BitRate::from_mbit_per_s(10_000);

/// So is a trace of 10 to 1000 numbers that is faster than this: in milliseconds it would last less than a second.
const FAST: BitRate = BitRate::from_mbit_per_s(500);
const SHORT: std::ops::Range<Duration> = Duration::from_ms(10)..Duration::from_s(1);

/// A packet-delivery trace that is longer and slower than these is in microseconds.
const LONGEST: Duration = Duration::from_s(1800);
const SLOWEST: BitRate = BitRate::from_mbit_per_s(1);

const PS_PER_MS: u64 = 1_000_000_000;

/// The unit of the times in a packet-delivery trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds, as mahimahi has them.
    Milliseconds,
    /// Microseconds.
    Microseconds,
}

impl TimeUnit {
    /// Their names in files.
    pub const NAMES: [(&'static str, Self); 3] =
        [("s", Self::Seconds), ("ms", Self::Milliseconds), ("us", Self::Microseconds)];

    fn times(self, number: u64) -> Duration {
        match self {
            Self::Seconds => Duration::from_s(number),
            Self::Milliseconds => Duration::from_ms(number),
            Self::Microseconds => Duration::from_us(number),
        }
    }

    /// The largest number of a trace: 10 million seconds.
    const fn most(self) -> u64 {
        match self {
            Self::Seconds => 10_000_000,
            Self::Milliseconds => 10_000_000_000,
            Self::Microseconds => 10_000_000_000_000,
        }
    }

    const fn plural(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Milliseconds => "milliseconds",
            Self::Microseconds => "microseconds",
        }
    }
}

/// A format of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A table of steps, with the columns `at`, `rate`, `delay` and `loss`.
    Csv,
    /// The milliseconds at which 1504 bytes may be sent, one in a line.
    Mahimahi,
    /// The JSON of Rattan (the crate netem-trace).
    Rattan,
}

/// A trace that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// The format of the file.
    pub format: Format,
    /// The trace.
    pub trace: Trace,
    /// What it has beside rates.
    pub has: Has,
    /// The first step without a delay, and the first without a loss, that other steps may state: its line, and what it
    /// lacks. The step took it from the base.
    pub lacks: Vec<(usize, &'static str)>,
}

/// The beginning of the line of a table that says when it starts again.
const REPEAT: &str = "# repeat = ";

/// Reads a trace in any of the formats. Steps take from `base` what the file leaves out, and `repeat` counts
/// rather than the period of the file. Without a `unit` a packet-delivery trace is in milliseconds, and must have a
/// length and a rate that are usual then.
///
/// # Errors
/// A file that is no trace: its line and what is wrong. A unit for a file whose times have units.
pub fn read(text: &str, base: Base, repeat: Option<Duration>, unit: Option<TimeUnit>) -> Result<Content, String> {
    let content = read_any(text, base, repeat, unit)?;
    if unit.is_some() && content.format != Format::Mahimahi {
        return Err("its times have units; only the numbers of a packet-delivery trace take a unit".to_owned());
    }
    Ok(content)
}

fn read_any(text: &str, base: Base, repeat: Option<Duration>, unit: Option<TimeUnit>) -> Result<Content, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rows = || text.lines().enumerate().map(|(number, row)| (number + 1, row.trim()));
    let mut rows = rows().filter(|(_, row)| !row.is_empty() && !row.starts_with('#')).peekable();
    match rows.peek() {
        None => Err("an empty trace".to_owned()),
        Some((_, row)) if row.starts_with(['{', '[']) => {
            let (steps, period, has) = rattan::read(text, base)?;
            Ok(Content { format: Format::Rattan, trace: in_steps(steps, repeat.or(period))?, has, lacks: Vec::new() })
        }
        Some((_, row)) if row.chars().all(|digit| digit.is_ascii_digit()) => {
            let trace = mahimahi(rows, repeat, unit)?;
            Ok(Content { format: Format::Mahimahi, trace, has: Has::default(), lacks: Vec::new() })
        }
        Some((number, header)) => {
            let columns = header.split(',').map(|name| Column::of(*number, name.trim()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            if base.rate.is_none() && !columns.contains(&Column::Rate) {
                return Err("no column rate, and no rate beside the file".to_owned());
            }
            rows.next();
            let repeat = if repeat.is_some() { repeat } else { period(text)? };
            table(rows, &columns, base, repeat)
        }
    }
}

/// A table of steps below its header.
fn table<'a>(
    rows: impl Iterator<Item = (usize, &'a str)>,
    columns: &[Column],
    base: Base,
    repeat: Option<Duration>,
) -> Result<Content, String> {
    let (mut steps, mut before, mut empty) = (Vec::new(), None, [None; 2]);
    for (number, row) in rows {
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let step = step(&cells, columns, base).map_err(|error| format!("line {number}: {error}"))?;
        if let Some(before) = before.replace(step.at).filter(|before| step.at <= *before) {
            return Err(format!("line {number}: at {}, not later than the {before} before", step.at));
        }
        steps.push(step);
        for (empty, of) in empty.iter_mut().zip([Column::Delay, Column::Loss]) {
            let is_empty = columns.iter().zip(&cells).any(|(column, cell)| *column == of && cell.is_empty());
            *empty = empty.or(is_empty.then_some(number));
        }
    }
    let lacks = empty.iter().zip(["delay", "loss"]).filter_map(|(line, what)| Some(((*line)?, what))).collect();
    let has = Has { delay: columns.contains(&Column::Delay), loss: columns.contains(&Column::Loss) };
    Ok(Content { format: Format::Csv, trace: in_steps(steps, repeat)?, has, lacks })
}

/// The time after which a table of steps starts again, by its comment.
fn period(text: &str) -> Result<Option<Duration>, String> {
    let found = text.lines().zip(1..).find_map(|(row, number)| Some((row.trim().strip_prefix(REPEAT)?, number)));
    let Some((value, number)) = found else { return Ok(None) };
    let time = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    time.and_then(|time| time.parse().ok()).map(Some).ok_or_else(|| {
        format!("line {number}: repeat = {value}, where a time in quotes is expected, such as {REPEAT}\"60 s\"")
    })
}

/// Steps as a trace.
///
/// # Errors
/// Steps that no line can have.
pub fn in_steps(steps: Vec<Step>, repeat: Option<Duration>) -> Result<Trace, String> {
    let steps = Steps::new(steps, repeat).map_err(|error: TraceError| error.to_string())?;
    Ok(Trace::Steps(Arc::new(steps)))
}

fn mahimahi<'a>(
    rows: impl Iterator<Item = (usize, &'a str)>,
    repeat: Option<Duration>,
    unit: Option<TimeUnit>,
) -> Result<Trace, String> {
    let used = unit.unwrap_or(TimeUnit::Milliseconds);
    let (mut at, mut before) = (Vec::new(), 0);
    for (number, row) in rows {
        let time: u64 =
            row.parse().ok().filter(|time| *time < used.most()).ok_or_else(|| {
                format!("line {number}: {row:?}, where a whole number of {} is expected", used.plural())
            })?;
        if time < before {
            let unit = TimeUnit::NAMES.iter().find(|named| named.1 == used).map_or("", |named| named.0);
            return Err(format!("line {number}: {time} {unit}, earlier than the {before} {unit} before"));
        }
        before = time;
        at.push(used.times(time));
    }
    let last = at.last().copied().unwrap_or_default();
    if last == Duration::ZERO && repeat.is_none() {
        return Err("the last line is 0: the trace would start again at once".to_owned());
    }
    let opportunities = Opportunities::new(at, repeat.unwrap_or(last), Opportunities::MAHIMAHI_BYTES)
        .map_err(|error| error.to_string())?;
    let trace = Trace::Opportunities(Arc::new(opportunities));
    usual(&trace, last, unit)?;
    Ok(trace)
}

/// Refuses a packet-delivery trace whose mean rate no line has; without a unit also one whose length and rate are
/// usual in another unit than milliseconds.
fn usual(trace: &Trace, last: Duration, unit: Option<TimeUnit>) -> Result<(), String> {
    let Some(mean) = trace.mean_rate(trace.period().unwrap_or(last)) else {
        return Err("a mean rate below 1 bit/s, or above that of any line".to_owned());
    };
    let other = match unit {
        Some(_) => None,
        None if mean > FASTEST || (mean > FAST && SHORT.contains(&last)) => Some("seconds"),
        None if last > LONGEST && mean < SLOWEST => Some("microseconds"),
        None => None,
    };
    other.map_or(Ok(()), |other| {
        Err(format!(
            "{last} with a mean rate of {mean}: without a unit the lines are milliseconds; are these {other}? A unit \
             of s, ms or us decides"
        ))
    })
}

/// A column of a table of steps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    At,
    Rate,
    Delay,
    Loss,
}

impl Column {
    fn of(line: usize, name: &str) -> Result<Self, String> {
        match name {
            "at" => Ok(Self::At),
            "rate" => Ok(Self::Rate),
            "delay" => Ok(Self::Delay),
            "loss" => Ok(Self::Loss),
            other => Err(format!(
                "line {line}: column {other:?}; the columns are at, rate, delay and loss, or the file is a trace of \
                 mahimahi, a whole number of milliseconds in each line, or the JSON of Rattan"
            )),
        }
    }
}

fn step(cells: &[&str], columns: &[Column], base: Base) -> Result<Step, String> {
    if cells.len() != columns.len() {
        return Err(format!("{} values for {} columns", cells.len(), columns.len()));
    }
    let (mut at, mut rate, mut delay, mut loss) = (None, base.rate, base.delay, base.loss);
    for (column, cell) in columns.iter().zip(cells) {
        match column {
            Column::Rate if cell.is_empty() && base.rate.is_none() => {
                return Err("no rate, and no rate beside the file".to_owned());
            }
            Column::Rate | Column::Delay | Column::Loss if cell.is_empty() => {}
            Column::At => at = Some(cell.parse::<Duration>().map_err(|error| error.to_string())?),
            Column::Rate if *cell == "0" => rate = None,
            Column::Rate => rate = Some(cell.parse::<BitRate>().map_err(|error| error.to_string())?),
            Column::Delay => delay = cell.parse::<Duration>().map_err(|error| error.to_string())?,
            Column::Loss => loss = cell.parse::<Ratio>().map_err(|error| error.to_string())?,
        }
    }
    let at = at.ok_or("no column at")?;
    Ok(Step { at, rate, delay, loss })
}

/// Writes a trace. Opportunities become steps of `interval` each; steps become the millisecond by which a
/// line of their rates has carried 1504 bytes more, for `length` of a trace that is played once. Opportunities within a
/// millisecond come at its end. Delays and losses are written if the trace `has` them.
///
/// # Errors
/// A trace that the format cannot have.
pub fn write(trace: &Trace, has: Has, format: Format, interval: Duration, length: Duration) -> Result<String, String> {
    match (format, trace) {
        (Format::Mahimahi, Trace::Opportunities(opportunities)) => {
            let (times, period) = (opportunities.times(), opportunities.period());
            let end = times.last().filter(|last| falls_short(**last, period)).map(|_| period);
            Ok(times.iter().copied().chain(end).fold(String::new(), |mut text, time| {
                let _ = writeln!(text, "{}", whole_ms(time));
                text
            }))
        }
        (Format::Mahimahi, Trace::Steps(steps)) => opportunities(steps, length),
        (Format::Csv, trace) => Ok(csv(&stepped(trace, interval)?, has)),
        (Format::Rattan, trace) => Ok(rattan::write(&stepped(trace, interval)?, has)),
    }
}

/// What the format cannot have of this trace, a sentence each.
#[must_use]
pub fn differences(trace: &Trace, has: Has, format: Format) -> Vec<&'static str> {
    let mut found = Vec::new();
    if format != Format::Mahimahi {
        return found;
    }
    if has.delay || has.loss {
        found.push("mahimahi has rates alone: delays and losses are left out");
    }
    let ends_in_outage = match trace {
        Trace::Steps(steps) => steps.steps().last().is_some_and(|step| step.rate.is_none()),
        Trace::Opportunities(blocks) => blocks.times().last().is_some_and(|last| falls_short(*last, blocks.period())),
    };
    if ends_in_outage {
        found.push("mahimahi starts again after its last line: 1504 bytes may be sent as the outage at the end ends");
    }
    let times = match trace {
        Trace::Steps(_) => &[][..],
        Trace::Opportunities(opportunities) => opportunities.times(),
    };
    if times.iter().copied().chain(trace.period()).any(|time| time.as_ps() % PS_PER_MS != 0) {
        found.push("mahimahi has whole milliseconds: other times of sending and of the period are rounded up");
    }
    found
}

/// Milliseconds, rounded up.
fn whole_ms(time: Duration) -> u64 {
    time.as_ps().div_ceil(PS_PER_MS)
}

/// True if the line of `last` is not yet that of the period, which the last line of a trace of mahimahi is.
fn falls_short(last: Duration, period: Duration) -> bool {
    whole_ms(last) < whole_ms(period)
}

fn csv(steps: &Steps, has: Has) -> String {
    let mut text = String::new();
    if let Some(period) = steps.period() {
        let _ = writeln!(text, "{REPEAT}\"{period}\"");
    }
    let mut row = |at: &str, rate: &str, delay: &dyn Display, loss: &dyn Display| {
        let _ = write!(text, "{at},{rate}");
        for (_, value) in [(has.delay, delay), (has.loss, loss)].iter().filter(|(has, _)| *has) {
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    };
    row("at", "rate", &"delay", &"loss");
    for Step { at, rate, delay, loss } in steps.steps() {
        let rate = rate.map_or_else(|| "0".to_owned(), |rate| rate.to_string());
        row(&at.to_string(), &rate, delay, loss);
    }
    text
}

/// A trace as steps, each the mean rate of `interval`.
fn stepped(trace: &Trace, interval: Duration) -> Result<Steps, String> {
    let opportunities = match trace {
        Trace::Steps(steps) => return Ok(Steps::clone(steps)),
        Trace::Opportunities(opportunities) => opportunities,
    };
    let period = opportunities.period();
    let bits = opportunities.bytes().as_u64() * 8;
    let carried: Vec<(Duration, u64)> = opportunities.times().iter().map(|at| (*at, bits)).collect();
    steps_of(&carried, interval, period)
}

/// Steps of `interval` each with the mean rate of what was carried in it, until `end`, where they start again. No delay
/// and no loss.
///
/// # Errors
/// Nothing carried, or too many steps.
pub fn steps_of(carried: &[(Duration, u64)], interval: Duration, end: Duration) -> Result<Steps, String> {
    let count = end.as_ps().div_ceil(interval.as_ps().max(1));
    if count > 1_000_000 {
        return Err(format!("{end} in steps of {interval} are more than a million"));
    }
    let mut bits = vec![0_u64; usize::try_from(count).unwrap_or_default()];
    for (at, more) in carried {
        let index = usize::try_from(at.as_ps() / interval.as_ps().max(1)).unwrap_or(usize::MAX);
        // Bits carried at the end belong to the last step.
        let index = index.min(bits.len().saturating_sub(1));
        *bits.get_mut(index).ok_or("an empty trace")? += more;
    }
    let mut steps: Vec<Step> = Vec::new();
    for (number, bits) in (0..).zip(bits) {
        let at = interval * number;
        let span = interval.min(end - at);
        let bps = u128::from(bits) * 1_000_000_000_000 / u128::from(span.as_ps());
        let rate = BitRate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
        if rate.is_none() && bps > 0 {
            return Err(format!("at {at}: more than {}", BitRate::MAX));
        }
        if steps.last().is_none_or(|last| last.rate != rate) {
            steps.push(Step { at, rate, delay: Duration::ZERO, loss: Ratio::ZERO });
        }
    }
    Steps::new(steps, Some(end)).map_err(|error| error.to_string())
}

fn opportunities(steps: &Steps, length: Duration) -> Result<String, String> {
    const MOST: usize = 10_000_000;
    let block = u128::from(Opportunities::MAHIMAHI_BYTES.as_u64()) * 8 * 1_000_000_000_000;
    let end = steps.period().unwrap_or(length);
    let ends = steps.steps().iter().skip(1).map(|step| step.at).chain([end]);
    let (mut text, mut work, mut count, mut last) = (String::new(), 0_u128, 0, Duration::ZERO);
    for (step, until) in steps.steps().iter().zip(ends) {
        let bps = u128::from(step.rate.map_or(0, BitRate::as_bps));
        let span = u128::from(until.min(end).saturating_sub(step.at).as_ps());
        let before = work;
        work += bps * span;
        for number in (before / block + 1)..=(work / block) {
            last = step.at + Duration::from_ps((number * block - before).div_ceil(bps) as u64);
            let _ = writeln!(text, "{}", whole_ms(last));
            count += 1;
            if count > MOST {
                return Err(format!("more than {MOST} opportunities"));
            }
        }
    }
    if count == 0 {
        return Err(format!("less than 1504 bytes in {end}"));
    }
    if falls_short(last, end) {
        let _ = writeln!(text, "{}", whole_ms(end));
    }
    Ok(text)
}
