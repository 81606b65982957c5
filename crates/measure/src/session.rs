//! The phases of a measurement, run over a load and any number of probes.
//!
//! Probes run through all phases; the load of a phase fills the line from its start to its end. Of
//! each phase the ramp is left out of the figures. Between phases the session waits until the queue
//! that the last load filled has drained.

mod clocks;
mod figures;
mod goodput;
mod responsiveness;

use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastmile_units::BitRate;

use crate::error::Error;
use crate::foreign::iperf3::Datagrams;
use crate::load::{Direction, Load, Stop, Transferred, Used};
use crate::probe::{PATIENCE, Prober, Sample, Subject};
use crate::report::{self, Confidence, Measurement, Phase, SCHEMA, Series};

use self::figures::{Figures, Recorded};
use self::goodput::{Counts, Span};

pub use self::goodput::SAMPLING;

/// Longest wait for a queue to drain between phases.
const SETTLING: Duration = Duration::from_secs(5);

/// The series begin within this time.
const LONGEST_START: Duration = Duration::from_secs(1);

/// Least length of a phase that ends early.
const LEAST: Duration = Duration::from_secs(5);

/// The phases and their lengths.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The server as the user named it.
    pub host: String,
    /// The load of each phase; `None` is the idle line.
    pub phases: Vec<Option<Direction>>,
    /// Length of each phase, ramp included.
    pub duration: Duration,
    /// The part of each loaded phase that figures leave out.
    pub ramp: Duration,
    /// Ends a loaded phase once the intervals of all rates are within this share of the rate on
    /// either side; `None` for full length.
    pub enough: Option<f64>,
}

impl Plan {
    /// A ramp of three seconds, or of a third of a short phase.
    #[must_use]
    pub fn usual_ramp(duration: Duration) -> Duration {
        Duration::from_secs(3).min(duration / 3)
    }
}

/// Progress of a session.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A phase starts.
    Started {
        /// Its load.
        load: Option<Direction>,
        /// Seconds since the measurement started.
        at_s: f64,
    },
    /// Throughput since the last sample.
    Rate {
        /// Seconds since the measurement started.
        at_s: f64,
        /// Payload rate to the client, bit/s.
        down_bps: f64,
        /// Payload rate to the server, bit/s.
        up_bps: f64,
    },
    /// A probe was answered or given up.
    Probed {
        /// Its series.
        subject: &'a Subject,
        /// The probe.
        sample: &'a Sample,
    },
    /// A probe or load failed.
    Warning(&'a str),
    /// A phase ended.
    Ended {
        /// Its load.
        load: Option<Direction>,
        /// Seconds since the measurement started.
        at_s: f64,
    },
}

enum Message {
    Sample(usize, Sample),
    Failed(usize, Error),
}

/// Runs all phases. `stop` ends the measurement early; the finished part is returned.
pub fn run(
    plan: &Plan,
    mut load: Option<&mut dyn Load>,
    probers: &mut [Box<dyn Prober>],
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Measurement {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let zero = Instant::now();
    let now_s = move || zero.elapsed().as_secs_f64();
    let series: Vec<_> = probers.iter().map(|prober| (prober.subject(), prober.clocks())).collect();
    let peer = load.as_deref().map(Load::peer);
    let probing = Stop::default();
    let (sender, receiver) = mpsc::channel();
    let starts = starts(probers);
    let (recorded, complete) = thread::scope(|scope| {
        for ((index, prober), start) in probers.iter_mut().enumerate().zip(starts) {
            let (sender, probing) = (sender.clone(), &probing);
            scope.spawn(move || {
                thread::sleep(start);
                let samples = sender.clone();
                // A session that has ended takes no more samples.
                let mut tell = |sample| drop(samples.send(Message::Sample(index, sample)));
                if let Err(error) = prober.run(&now_s, probing, &mut tell) {
                    let _ = sender.send(Message::Failed(index, error));
                }
            });
        }
        drop(sender);
        let mut session = Session {
            zero,
            receiver,
            recorded: Recorded::new(series),
            complete: true,
            server_ended: false,
            stop,
            tell,
        };
        for (index, kind) in plan.phases.iter().enumerate() {
            if stop.is_requested() {
                break;
            }
            if session.server_ended
                && let Some(direction) = kind
            {
                session.fail(format!("no phase {}: the server ended", words(*direction)));
                continue;
            }
            let load = load.as_mut().map(|load| &mut **load as &mut dyn Load);
            session.phase(plan, *kind, load);
            if index + 1 < plan.phases.len() {
                // A server that has ended answers no probe, and no load is left whose queue would drain.
                session.settle(kind.is_some() && !session.server_ended);
            }
        }
        probing.request();
        session.rest();
        (session.recorded, session.complete && !stop.is_requested())
    });
    let Figures { mut phases, clocks, mut warnings, doubted } = recorded.finish();
    warnings.extend(judge(&mut phases, &doubted, &plan.host));
    Measurement {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s: started.as_secs_f64(),
        host: plan.host.clone(),
        load: peer,
        phases,
        clocks,
        warnings,
        complete,
    }
}

/// Gives loaded phases their round trips per minute, those whose numbers are in `doubted` with low confidence, and
/// returns warnings.
fn judge(phases: &mut [Phase], doubted: &[usize], host: &str) -> Vec<String> {
    let counted = report::counted(phases, host);
    let mut warnings = Vec::new();
    for (number, phase) in phases.iter_mut().enumerate() {
        let Some(load) = phase.load else { continue };
        if phase.fills_the_line() {
            phase.responsiveness = responsiveness::of(phase, &counted);
        }
        if doubted.contains(&number)
            && let Some(draft) = phase.responsiveness.as_mut().and_then(|seen| seen.draft.as_mut())
        {
            draft.confidence = Confidence::Low;
        }
        let silent: Vec<&Series> = counted.iter().map(|index| &phase.probes[*index]).collect();
        if phase.first_answered(&counted).is_none() && silent.iter().any(|series| series.lost > 0) {
            let names: Vec<String> = silent.iter().map(|series| series.subject.to_string()).collect();
            let (names, wait_s) = (names.join(" and "), PATIENCE.as_secs());
            warnings.push(format!("phase {}: no probe of {names} was answered within {wait_s} s", words(load)));
        }
        let reason = responsiveness::replaced(phase, &counted);
        warnings.extend(reason.map(|reason| format!("phase {}: {reason}", words(load))));
    }
    warnings
}

/// The start of each series. Probes that leave at one instant wait for each other: behind three ATM cells,
/// at 1 Mbit/s, 1.3 ms. So series with an interval share it evenly.
fn starts(probers: &[Box<dyn Prober>]) -> Vec<Duration> {
    let count = u32::try_from(probers.iter().filter(|prober| prober.interval().is_some()).count()).unwrap_or(u32::MAX);
    let mut number = 0;
    let mut start = |interval: Duration| {
        let start = interval.min(LONGEST_START) * number / count;
        number += 1;
        start
    };
    probers.iter().map(|prober| prober.interval().map(&mut start).unwrap_or_default()).collect()
}

struct Session<'a> {
    zero: Instant,
    receiver: Receiver<Message>,
    recorded: Recorded,
    /// Whether every load so far ran to the end of its phase, and every series that began goes on.
    complete: bool,
    /// Whether the failure of a load showed that its server is gone.
    server_ended: bool,
    stop: &'a Stop,
    tell: &'a mut dyn FnMut(Event<'_>),
}

impl Session<'_> {
    fn now_s(&self) -> f64 {
        self.zero.elapsed().as_secs_f64()
    }

    /// Runs one phase.
    fn phase(&mut self, plan: &Plan, kind: Option<Direction>, load: Option<&mut dyn Load>) {
        let load = match loading(kind, load) {
            Ok(load) => load,
            Err(reason) => return self.fail(reason),
        };
        let limit_bps = load.as_ref().and_then(|(_, load)| load.limit_bps());
        let start_s = self.now_s();
        (self.tell)(Event::Started { load: kind, at_s: start_s });
        let (transferred, ended) = (Transferred::default(), Stop::default());
        let mut counts = Counts::default();
        let (end_s, end, ran) = thread::scope(|scope| {
            let running = load.map(|(direction, load)| {
                let (transferred, ended) = (&transferred, &ended);
                scope.spawn(move || Ran::of(load, direction, transferred, ended))
            });
            let begin = Instant::now();
            while begin.elapsed() < plan.duration && !self.stop.is_requested() {
                self.take(SAMPLING.min(plan.duration.saturating_sub(begin.elapsed())));
                if let Some(running) = &running {
                    self.sample(&transferred, &mut counts);
                    let span = Span { ramp: plan.ramp, end: transferred.elapsed() };
                    let is_enough = |share| span.end > LEAST.max(plan.ramp) && counts.are_enough(span, share);
                    if running.is_finished() || plan.enough.is_some_and(is_enough) {
                        break;
                    }
                }
            }
            let (end_s, end) = (self.now_s(), transferred.elapsed());
            ended.request();
            (end_s, end, running.map_or_else(Ran::idle, |running| running.join().unwrap_or_else(|_| Ran::failed())))
        });
        let failed = ran.result.is_err();
        if failed {
            self.recorded.gone(&plan.host, end_s);
        }
        counts.close(&transferred, Some(end).filter(|_| !failed));
        let name = kind.map_or("idle", words);
        let faulty = failed || !ran.warnings.is_empty();
        for warning in ran.warnings {
            self.warn(format!("load of the phase {name}: {warning}"));
        }
        let datagrams = ran.result.unwrap_or_else(|error| {
            self.server_ended |= error.is_end();
            self.fail(format!("load of the phase {name}: {error}"));
            Vec::new()
        });
        // A phase whose load carried nothing says nothing about the line under load.
        let carried = transferred.totals() != (0, 0);
        (self.tell)(Event::Ended { load: kind, at_s: end_s });
        if kind.is_some() && !carried {
            if !failed {
                self.fail(format!("phase {name}: not one byte arrived"));
            }
            return;
        }
        let span = Phase {
            load: kind,
            start_s,
            duration_s: end_s - start_s,
            ramp_s: if kind.is_some() { plan.ramp.as_secs_f64().min(end_s - start_s) } else { 0.0 },
            datagrams,
            ..Phase::default()
        };
        self.recorded.phase(span, &counts, ran.streams, &ran.used);
        if faulty {
            self.recorded.doubt();
        }
        for reason in self.recorded.uncovered() {
            self.warn(format!("phase {name}: {reason}"));
        }
        self.warn_of_limit(kind, limit_bps);
    }

    /// Warns of the directions of the latest phase that the server's limit held back.
    fn warn_of_limit(&mut self, kind: Option<Direction>, limit_bps: Option<u64>) {
        let Some((bps, limit)) = limit_bps.and_then(|bps| Some((bps, BitRate::from_bps(bps)?))) else { return };
        let directions = match self.recorded.limited(bps) {
            None => return,
            Some(Direction::Download) => &["download"][..],
            Some(Direction::Upload) => &["upload"],
            Some(Direction::Both) => &["download", "upload"],
        };
        for direction in directions {
            self.warn(format!(
                "phase {}: the {direction} reached the limit of the server, {limit}: the line may carry more, and \
                 delays are not those of a full line",
                kind.map_or("idle", words)
            ));
        }
    }

    /// Records the bytes that have arrived, and reports the rates since the last time.
    fn sample(&mut self, transferred: &Transferred, counts: &mut Counts) {
        let (down_bps, up_bps) = counts.read(transferred);
        let at_s = self.now_s();
        (self.tell)(Event::Rate { at_s, down_bps, up_bps });
    }

    /// Waits until probes take about as long as on the idle line, for at most [`SETTLING`].
    fn settle(&mut self, loaded: bool) {
        if !loaded {
            return;
        }
        let from_s = self.now_s();
        let begin = Instant::now();
        while begin.elapsed() < SETTLING && !self.stop.is_requested() {
            self.take(SAMPLING);
            if begin.elapsed() >= Duration::from_secs(1) && self.recorded.is_as_idle_since(from_s) {
                return;
            }
        }
    }

    /// Takes messages of probes for `time`.
    fn take(&mut self, time: Duration) {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.receiver.recv_timeout(left) {
                Ok(message) => self.message(message),
                Err(RecvTimeoutError::Timeout) => return,
                // All probes have ended.
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(left);
                    return;
                }
            }
        }
    }

    /// Takes the messages of probes that end.
    fn rest(&mut self) {
        while let Ok(message) = self.receiver.recv() {
            self.message(message);
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Sample(index, sample) => {
                let shown = self.recorded.shown(index, sample);
                (self.tell)(Event::Probed { subject: self.recorded.subject(index), sample: &shown });
                self.recorded.sample(index, sample);
            }
            Message::Failed(index, error) => {
                let target = &self.recorded.subject(index).target;
                let warning = format!("probes of {target}: {error}");
                // A series that never began lacks a right or a server: the others do not.
                let has_begun = self.recorded.has_begun(index);
                if has_begun { self.fail(warning) } else { self.warn(warning) }
            }
        }
    }

    /// Warns of a phase or a series that is missing or cut short.
    fn fail(&mut self, warning: String) {
        self.complete = false;
        self.warn(warning);
    }

    fn warn(&mut self, warning: String) {
        (self.tell)(Event::Warning(&warning));
        self.recorded.warn(warning);
    }
}

/// The load of a phase with its direction; `None` for the idle line.
///
/// # Errors
/// There is no such load.
fn loading(kind: Option<Direction>, load: Option<&mut dyn Load>) -> Result<Option<(Direction, &mut dyn Load)>, String> {
    match (kind, load) {
        (Some(direction), Some(load)) if load.can(direction) => Ok(Some((direction, load))),
        (Some(direction), Some(load)) => {
            Err(format!("{} cannot load {}: no such phase", load.peer(), words(direction)))
        }
        (Some(direction), None) => Err(format!("no load, so no phase of {}", words(direction))),
        (None, _) => Ok(None),
    }
}

/// A load that has run.
struct Ran {
    result: Result<Vec<Datagrams>, Error>,
    streams: u32,
    used: Used,
    warnings: Vec<String>,
}

impl Ran {
    fn of(load: &mut dyn Load, direction: Direction, transferred: &Transferred, ended: &Stop) -> Self {
        let done = load.run(direction, transferred, ended);
        // A protocol that adds connections knows their number at the end.
        let (streams, used, warnings) = (load.streams(), load.congestion(), load.warnings());
        Self { result: done.map(|()| load.datagrams()), streams, used, warnings }
    }

    fn idle() -> Self {
        Self { result: Ok(Vec::new()), streams: 0, used: Used::default(), warnings: Vec::new() }
    }

    fn failed() -> Self {
        let error = Error::Unsupported("the thread of the load failed".to_owned());
        Self { result: Err(error), ..Self::idle() }
    }
}

/// The phase of a load in words.
#[must_use]
pub fn words(direction: Direction) -> &'static str {
    match direction {
        Direction::Download => "download",
        Direction::Upload => "upload",
        Direction::Both => "both",
    }
}

#[cfg(test)]
mod tests;
