//! Working conditions of a measured line: a grade, and sentences.
//!
//! The grade has the thresholds of the DSLReports speed test (<https://www.dslreports.com/faq/17930>),
//! which Waveform's test uses, too: the mean of the increases of the round-trip time by a download
//! and by an upload, or the increase by the one of them that was measured; the sentence then names it. The increase
//! of a phase is that of its median. Calls are judged by the E-model
//! (ITU-T G.107) for G.711 in packets of 20 ms whose play-out buffer takes the 95th percentile, in the
//! worse direction: what one of the two people hears. [`CallDelay`] has the sources of its delay.

use serde::Serialize;

use lastmile_theory::voice::{self, Codec};

use crate::load::Direction;
use crate::probe::PATIENCE;
use crate::report::{self, Delays, Estimate, Measurement, Phase, Series};
use crate::session::words;

/// Bufferbloat, as the DSLReports speed test grades it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Grade {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// The grade of an increase of the round-trip time.
    #[must_use]
    pub fn of(increase_s: f64) -> Self {
        match increase_s {
            s if s < 0.005 => Self::APlus,
            s if s < 0.030 => Self::A,
            s if s < 0.060 => Self::B,
            s if s < 0.200 => Self::C,
            s if s < 0.400 => Self::D,
            _ => Self::F,
        }
    }

    /// The letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

/// The source of the one-way delay of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallDelay {
    /// Measured one-way delays, of the direction with the lower rating.
    OneWay,
    /// The load has one direction, and so has the queue: half of the idle round-trip time and the whole increase.
    LoadedDirection,
    /// Half of the round-trip time: the load has both directions, and their queues are known together alone.
    Half,
}

/// The round-trip time of a phase compared with the idle line.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Increase {
    /// The load.
    pub load: Direction,
    /// Increase of the median, with its interval.
    pub increase_s: Estimate,
    /// Increase from the idle median to the 99th percentile under load: about the time that a full
    /// queue takes.
    pub most_s: f64,
    /// Transmission rating of a call beside the load, 0 to 100, in the worse direction.
    pub call_r: f64,
    /// Whether no probe was answered under load: the delays are lower bounds, those of an answer after [`PATIENCE`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// One-way delay of the call in that direction: its network delay, and the 20 ms of a packet.
    pub call_delay_s: f64,
    /// The source of that delay.
    pub call_delay_from: CallDelay,
}

/// Working conditions of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conditions {
    /// Target of the probes that count: the first of [`report::counted`].
    pub target: Option<String>,
    /// The grade; `None` without an idle phase, or without a loaded one.
    pub grade: Option<Grade>,
    /// The loads whose increases the grade is the mean of. One direction alone is half of what the grade stands for.
    pub grade_loads: Vec<Direction>,
    /// One entry for each loaded phase.
    pub increases: Vec<Increase>,
    /// The grade in words.
    pub sentences: Vec<String>,
}

impl Conditions {
    /// The conditions of a measured line.
    #[must_use]
    pub fn of(measured: &Measurement) -> Self {
        let counted = report::counted(&measured.phases, &measured.host);
        let idle = measured.phases.iter().find(|phase| phase.load.is_none());
        let Some((idle, (series, usual))) = idle.and_then(|idle| Some((idle, idle.first_answered(&counted)?))) else {
            let (grade_loads, increases, sentences) = (Vec::new(), Vec::new(), Vec::new());
            return Self { target: None, grade: None, grade_loads, increases, sentences };
        };
        let of = |phase: &&Phase| increase(phase.load?, idle, phase, &counted);
        let (full, others): (Vec<&Phase>, Vec<&Phase>) =
            measured.phases.iter().partition(|phase| phase.fills_the_line());
        let increases: Vec<Increase> = full.iter().filter_map(of).collect();
        let (grade, grade_loads) = grade(&increases);
        let mut sentences = vec![idle_in_words(&usual)];
        sentences.extend(increases.iter().map(in_words));
        sentences.extend(others.iter().filter_map(|phase| Some(unfilled(words(phase.load?), phase))));
        let target = Some(series.subject.target.clone());
        let mut conditions = Self { target, grade, grade_loads, increases, sentences };
        let graded = conditions.grade_in_short();
        conditions
            .sentences
            .extend(graded.map(|it| format!("Bufferbloat grade {it} by the thresholds of DSLReports.")));
        conditions
    }

    /// The letter of the grade, with its load where it is not the mean of a download and an upload.
    #[must_use]
    pub fn grade_in_short(&self) -> Option<String> {
        let of = only(&self.grade_loads).map(|load| format!(" of {load}")).unwrap_or_default();
        self.grade.map(|grade| format!("{}{of}", grade.letter()))
    }
}

/// The reason for which a load did not fill the line.
fn unfilled(name: &str, phase: &Phase) -> String {
    let of = match phase.limited {
        None => {
            return format!(
                "All datagrams of the phase {name} arrived, at their rate: they did not fill the line, so its delays \
                 are not those under load."
            );
        }
        Some(Direction::Download) => "The download",
        Some(Direction::Upload) => "The upload",
        Some(Direction::Both) => "Each direction",
    };
    format!(
        "{of} of the phase {name} reached the limit of the server: it did not fill the line, so its delays are not \
         those under load."
    )
}

/// Where a queue is longer than the wait for answers, each of its delays is at least that wait.
fn unanswered(series: &Series) -> Option<Delays> {
    let least_s = PATIENCE.as_secs_f64();
    (series.lost > 0).then_some(Delays {
        count: 0,
        min_s: least_s,
        p50_s: Estimate { value: least_s, low: least_s, high: least_s },
        p95_s: least_s,
        p99_s: least_s,
        max_s: least_s,
        mean_s: least_s,
        jitter_s: 0.0,
    })
}

/// By the first of the `counted` series that was answered; by the first of all where none was.
fn increase(load: Direction, idle: &Phase, phase: &Phase, counted: &[usize]) -> Option<Increase> {
    let is_answered = |index: &&usize| phase.probes[**index].round_trip.is_some();
    let index = *counted.iter().find(is_answered).or(counted.first())?;
    let (series, idle) = (&phase.probes[index], &idle.probes[index].round_trip?);
    let loaded = series.round_trip.or_else(|| unanswered(series))?;
    let at_least = series.round_trip.is_none();
    let Estimate { value, low, high } = loaded.p50_s;
    let base = idle.p50_s;
    // A probe over ICMP has no delays of one direction; one over UDP beside it may.
    let alike = |other: &&Series| other.subject.code_point == series.subject.code_point;
    let call = std::iter::once(series)
        .chain(phase.probes.iter().filter(alike))
        .filter(|_| !at_least)
        .find_map(one_way)
        .unwrap_or_else(|| of_round_trips(load, idle, &loaded, series));
    Some(Increase {
        load,
        increase_s: Estimate { value: value - base.value, low: low - base.high, high: high - base.low },
        most_s: loaded.p99_s - base.value,
        at_least,
        call_r: call.rating,
        call_delay_s: call.delay_s,
        call_delay_from: call.from,
    })
}

/// A call beside the load, in the worse direction.
struct Call {
    rating: f64,
    delay_s: f64,
    from: CallDelay,
}

impl Call {
    /// G.711 in packets of 20 ms, whose play-out buffer takes all of `network_s`.
    fn new(network_s: f64, loss: f64, from: CallDelay) -> Self {
        let delay_s = 0.020 + network_s;
        let path = voice::Path { delay_s, loss, burst_ratio: 1.0 };
        Self { rating: voice::r_factor(&Codec::G711, &path), delay_s, from }
    }
}

/// By the one-way delays of a series. A loss counts in both directions, unless it is known to be of one.
fn one_way(series: &Series) -> Option<Call> {
    let (up, down, answered) = (series.up?, series.down?, series.round_trip?.count);
    let in_direction = |delays: Delays, elsewhere: Option<u64>| {
        let lost = series.lost.saturating_sub(elsewhere.unwrap_or(0));
        Call::new(delays.p95_s, share(lost, series.lost + answered), CallDelay::OneWay)
    };
    let calls = [in_direction(up, series.lost_down), in_direction(down, series.lost_up)];
    calls.into_iter().min_by(|a, b| a.rating.total_cmp(&b.rating))
}

/// By round-trip times.
fn of_round_trips(load: Direction, idle: &Delays, loaded: &Delays, series: &Series) -> Call {
    let (half, added) = (loaded.p95_s / 2.0, loaded.p95_s - idle.p50_s.value);
    let (delay, from) = match load {
        Direction::Download | Direction::Upload => {
            (half.max(idle.p50_s.value / 2.0 + added), CallDelay::LoadedDirection)
        }
        Direction::Both => (half, CallDelay::Half),
    };
    Call::new(delay, share(series.lost, series.lost + loaded.count), from)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of probes")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Of downloads and uploads alone; of both at a time where there is nothing else. With the loads that it is of.
#[expect(clippy::cast_precision_loss, reason = "numbers of phases")]
fn grade(increases: &[Increase]) -> (Option<Grade>, Vec<Direction>) {
    let (both, alone): (Vec<&Increase>, Vec<&Increase>) =
        increases.iter().partition(|increase| increase.load == Direction::Both);
    let counted = if alone.is_empty() { both } else { alone };
    let sum: f64 = counted.iter().map(|increase| increase.increase_s.value).sum();
    let grade = (!counted.is_empty()).then(|| Grade::of(sum / counted.len() as f64));
    (grade, counted.iter().map(|increase| increase.load).collect())
}

/// The one kind of load that a grade is of, in words.
fn only(loads: &[Direction]) -> Option<&'static str> {
    let (first, rest) = loads.split_first()?;
    rest.iter().all(|load| load == first).then_some(match first {
        Direction::Download => "a download alone",
        Direction::Upload => "an upload alone",
        Direction::Both => "both directions at a time",
    })
}

fn idle_in_words(idle: &Delays) -> String {
    format!("The idle line answers within {} (median).", ms(idle.p50_s.value))
}

fn in_words(increase: &Increase) -> String {
    let load = match increase.load {
        Direction::Download => "A download adds",
        Direction::Upload => "An upload adds",
        Direction::Both => "A download and an upload together add",
    };
    let Estimate { value, low, high } = increase.increase_s;
    let half = match increase.call_delay_from {
        CallDelay::Half => ", if half of the round trip is each way",
        CallDelay::OneWay | CallDelay::LoadedDirection => "",
    };
    let call = format!("{}{half}", voice::satisfaction(increase.call_r));
    if increase.at_least {
        let (least, wait_s) = (ms(value), PATIENCE.as_secs());
        return format!("{load} at least {least}: no probe was answered within {wait_s} s; a call next to it: {call}.");
    }
    // An interval that contains zero shows no increase.
    if low <= 0.0 && value < 0.005 {
        return format!("{load} no delay that can be measured; a call next to it: {call}.");
    }
    format!(
        "{load} {} ({} to {}), at most {} in 99 of 100 cases; a call next to it: {call}.",
        ms(value),
        ms(low.max(0.0)),
        ms(high),
        ms(increase.most_s.max(value))
    )
}

/// Milliseconds with three digits.
fn ms(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let decimals = if ms < 9.95 { 2 } else { usize::from(ms < 99.5) };
    format!("{ms:.decimals$} ms")
}

#[cfg(test)]
mod tests;
