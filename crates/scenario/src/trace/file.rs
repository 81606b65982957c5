//! Files of traces: tables of steps (CSV), packet-delivery traces of mahimahi, JSON of Rattan.

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
    /// A step took its rate from the base.
    pub took_rate: bool,
    /// The first step without a delay, and the first without a loss, that other steps may state: its line, and what it
    /// lacks. The step took it from the base.
    pub lacks: Vec<(usize, &'static str)>,
}

/// The beginning of the line of a table that says when it starts again.
pub(super) const REPEAT: &str = "# repeat = ";

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
            let rattan::Parts { steps, period, has, took_rate } = rattan::read(text, base)?;
            let trace = in_steps(steps, repeat.or(period))?;
            Ok(Content { format: Format::Rattan, trace, has, took_rate, lacks: Vec::new() })
        }
        Some((_, row)) if row.chars().all(|digit| digit.is_ascii_digit()) => {
            let trace = mahimahi(rows, repeat, unit)?;
            Ok(Content { format: Format::Mahimahi, trace, has: Has::default(), took_rate: false, lacks: Vec::new() })
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
    let mut took_rate = !columns.contains(&Column::Rate);
    for (number, row) in rows {
        let cells: Vec<&str> = row.split(',').map(str::trim).collect();
        let step = step(&cells, columns, base).map_err(|error| format!("line {number}: {error}"))?;
        if let Some(before) = before.replace(step.at).filter(|before| step.at <= *before) {
            return Err(format!("line {number}: at {}, not later than the {before} before", step.at));
        }
        steps.push(step);
        let is_empty = |of| columns.iter().zip(&cells).any(|(column, cell)| *column == of && cell.is_empty());
        took_rate |= is_empty(Column::Rate);
        for (empty, of) in empty.iter_mut().zip([Column::Delay, Column::Loss]) {
            *empty = empty.or(is_empty(of).then_some(number));
        }
    }
    let lacks = empty.iter().zip(["delay", "loss"]).filter_map(|(line, what)| Some(((*line)?, what))).collect();
    let has = Has { delay: columns.contains(&Column::Delay), loss: columns.contains(&Column::Loss) };
    Ok(Content { format: Format::Csv, trace: in_steps(steps, repeat)?, has, took_rate, lacks })
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
