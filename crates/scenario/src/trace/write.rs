//! Traces written to files: tables of steps (CSV), packet-delivery traces of mahimahi, JSON of Rattan.

use std::fmt::{Display, Write as _};

use lastmile_queueing::line::trace::{Opportunities, Step, Steps, Trace};
use lastmile_units::{BitRate, Duration, Ratio};

use super::file::{Format, REPEAT};
use super::generate::Has;
use super::rattan;

const PS_PER_MS: u64 = 1_000_000_000;

/// The length of a trace that is played once, unless its last step is later.
const LENGTH: Duration = Duration::from_s(600);

/// A trace in a format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// The text of the file.
    pub text: String,
    /// Parts that the format has in files of their own: the word `delay` or `loss`, and the text of each.
    pub beside: Vec<(&'static str, String)>,
    /// Sentences about the parts of this trace that the format cannot have.
    pub notes: Vec<String>,
}

/// Writes a trace. Opportunities become steps of `interval` each; steps become the millisecond by which a
/// line of their rates has carried 1504 bytes more, until the [`end`]. Opportunities within a millisecond come at its
/// end. Delays and losses are written if the trace `has` them.
///
/// # Errors
/// A trace that the format cannot have.
pub fn write(
    trace: &Trace,
    has: Has,
    format: Format,
    interval: Duration,
    length: Option<Duration>,
) -> Result<Written, String> {
    match format {
        Format::Csv => Ok(Written { text: csv(&stepped(trace, interval)?, has), beside: vec![], notes: vec![] }),
        Format::Rattan => {
            let (text, beside) = rattan::write(&stepped(trace, interval)?, has);
            Ok(Written { text, beside, notes: vec![] })
        }
        Format::Mahimahi => mahimahi(trace, has, length),
    }
}

/// The end of the first period, or of a trace that is played once, whose `length` is 10 minutes unless it is given or
/// the last step is later.
#[must_use]
pub fn end(steps: &Steps, length: Option<Duration>) -> Duration {
    let last = steps.steps().last().map_or(Duration::ZERO, |step| step.at);
    steps.period().or(length).unwrap_or(LENGTH.max(last + Duration::from_s(1)))
}

fn mahimahi(trace: &Trace, has: Has, length: Option<Duration>) -> Result<Written, String> {
    let mut notes = Vec::new();
    if has.delay || has.loss {
        notes.push("mahimahi has rates alone: delays and losses are left out".to_owned());
    }
    let (mut times, end, ends_in_outage) = match trace {
        Trace::Steps(steps) => {
            let end = end(steps, length);
            let (before, after) = steps.steps().split_at(steps.steps().partition_point(|step| step.at < end));
            if steps.period().is_none() {
                notes.push(match after.len() {
                    0 => format!("mahimahi starts again after {end}, where the table holds its last step"),
                    later => format!("mahimahi starts again after {end}; later steps that are left out: {later}"),
                });
            }
            (opportunities(steps, end)?, end, before.last().is_some_and(|step| step.rate.is_none()))
        }
        Trace::Opportunities(blocks) => (blocks.times().to_vec(), blocks.period(), true),
    };
    // The last line of a trace of mahimahi is its period.
    if times.last().is_none_or(|last| whole_ms(*last) < whole_ms(end)) {
        let when =
            if ends_in_outage { "as the outage at the end ends" } else { "there, of which the table has a part" };
        notes.push(format!("mahimahi starts again after its last line: 1504 bytes may be sent {when}"));
        times.push(end);
    }
    let stated = if matches!(trace, Trace::Opportunities(_)) { &times[..] } else { &[end] };
    if stated.iter().any(|time| time.as_ps() % PS_PER_MS != 0) {
        let rounded = "mahimahi has whole milliseconds: other times of sending and of the period are rounded up";
        notes.push(rounded.to_owned());
    }
    let text = times.iter().fold(String::new(), |mut text, time| {
        let _ = writeln!(text, "{}", whole_ms(*time));
        text
    });
    Ok(Written { text, beside: vec![], notes })
}

/// Milliseconds, rounded up.
fn whole_ms(time: Duration) -> u64 {
    time.as_ps().div_ceil(PS_PER_MS)
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
    match trace {
        Trace::Steps(steps) => Ok(Steps::clone(steps)),
        Trace::Opportunities(blocks) => of_opportunities(blocks, interval),
    }
}

/// Steps of `interval` each with the mean rate of the opportunities in it. An opportunity stands for what the line
/// carried until its time, so one at the end of an interval belongs to it.
///
/// # Errors
/// As [`steps_of`].
pub fn of_opportunities(blocks: &Opportunities, interval: Duration) -> Result<Steps, String> {
    let number = |at: Duration| at.as_ps().div_ceil(interval.as_ps().max(1)).saturating_sub(1);
    let bits = blocks.bytes().as_u64() * 8;
    steps_of(blocks.times().iter().map(|at| (number(*at), bits)), interval, blocks.period())
}

/// Steps of `interval` each with the mean rate of the bits `carried` in it, next to its number from 0, until `end`,
/// where they start again. No delay and no loss.
///
/// # Errors
/// Nothing carried, something carried behind the end, or too many steps.
pub fn steps_of(
    carried: impl IntoIterator<Item = (u64, u64)>,
    interval: Duration,
    end: Duration,
) -> Result<Steps, String> {
    let count = end.as_ps().div_ceil(interval.as_ps().max(1));
    if count > 1_000_000 {
        return Err(format!("{end} in steps of {interval} are more than a million"));
    }
    let mut bits = vec![0_u64; usize::try_from(count).unwrap_or_default()];
    for (number, more) in carried {
        let bits = usize::try_from(number).ok().and_then(|index| bits.get_mut(index));
        *bits.ok_or("bits carried behind the end")? += more;
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

/// The times until `end` by which a line of these rates has carried 1504 bytes more.
fn opportunities(steps: &Steps, end: Duration) -> Result<Vec<Duration>, String> {
    const MOST: usize = 10_000_000;
    let block = u128::from(Opportunities::MAHIMAHI_BYTES.as_u64()) * 8 * 1_000_000_000_000;
    let ends = steps.steps().iter().skip(1).map(|step| step.at).chain([end]);
    let (mut times, mut work) = (Vec::new(), 0_u128);
    for (step, until) in steps.steps().iter().zip(ends) {
        let bps = u128::from(step.rate.map_or(0, BitRate::as_bps));
        let span = u128::from(until.min(end).saturating_sub(step.at).as_ps());
        let before = work;
        work += bps * span;
        for number in (before / block + 1)..=(work / block) {
            if times.len() == MOST {
                return Err(format!("more than {MOST} opportunities"));
            }
            times.push(step.at + Duration::from_ps((number * block - before).div_ceil(bps) as u64));
        }
    }
    if times.is_empty() { Err(format!("less than 1504 bytes in {end}")) } else { Ok(times) }
}
