//! From readings to intervals: counters become counts, clocks are checked, and what the store does
//! not take waits for the next interval.
//!
//! A recorder reads no clock and waits for nothing. Its caller gives it a [`Moment`] and the
//! [`Readings`] of each interval, so that a test drives a month in seconds.

mod clock;
mod totals;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use clock::Moment;
pub use totals::{Reading, Totals};

use clock::{Seen as SeenClock, Watch};

use crate::delays::Delays;
use crate::sample::{Backlog, Counts, Event, EventKind, Interval, Path, Ping, QueueName, Source};
use crate::store::{Error, Retention, Store, Trimmed};

/// Intervals that wait for the store: ten minutes of an interval of a second.
const MOST_UNWRITTEN: usize = 600;
/// Minutes and hours are added up, and old rows taken away, as often as this.
const MAINTENANCE: Duration = Duration::from_secs(60);
/// Transactions of adding up in one interval: after a long absence the rest waits.
const MOST_ROLLED: u32 = 4;
/// A queue that was not read for longer begins anew.
const LONGEST_GAP: Duration = Duration::from_secs(60);

/// The outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The host and the code point.
    pub path: Path,
    /// The monotonic time of the request.
    pub sent: Duration,
    /// The round-trip time; `None` without a reply.
    pub rtt_ns: Option<u64>,
}

/// The reports of the sources of an interval.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Readings {
    /// Requests whose outcome has become known.
    pub outcomes: Vec<Outcome>,
    /// Queues.
    pub queues: Vec<Reading>,
    /// Sources and hosts, each with its error or `None`.
    pub sources: BTreeMap<String, Option<String>>,
    /// Hosts that reply again, each with the time without a reply.
    pub outages: BTreeMap<String, Duration>,
}

/// Everything since the start, for metrics.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Seen {
    /// Requests by path: those without a reply, and the round-trip times of the others.
    pub paths: BTreeMap<Path, (u64, Delays)>,
    /// Counts by queue.
    pub queues: BTreeMap<QueueName, Counts>,
    /// The backlog of queues at the last interval.
    pub backlogs: BTreeMap<QueueName, Backlog>,
    /// Whether each source and host answers.
    pub sources: BTreeMap<String, bool>,
    /// Intervals in the store.
    pub written_intervals: u64,
    /// Intervals that the store did not take in time.
    pub lost_intervals: u64,
    /// Intervals that wait for the store.
    pub waiting_intervals: u64,
    /// Writes that failed: a lock of another process, a full disk.
    pub failed_writes: u64,
    /// Times that the wall clock was set.
    pub clock_steps: u64,
    /// Times that the machine was suspended.
    pub suspensions: u64,
    /// Bytes of the store's files.
    pub store_bytes: u64,
}

/// Writes what is seen to the store.
#[derive(Debug)]
pub struct Recorder {
    store: Store,
    watch: Watch,
    before: BTreeMap<QueueName, (Duration, Totals)>,
    unwritten: VecDeque<Interval>,
    maintained: Duration,
    troubles: BTreeMap<String, Option<String>>,
    /// Failed writes since the last that succeeded.
    failing: u64,
    seen: Seen,
}

impl Recorder {
    /// A recorder that begins now.
    #[must_use]
    pub fn new(store: Store, now: Moment) -> Self {
        let started =
            Event { at_ms: now.wall_ms, kind: EventKind::Started, detail: env!("CARGO_PKG_VERSION").to_owned() };
        Self {
            store,
            watch: Watch::new(now),
            before: BTreeMap::new(),
            // An interval of no length: the start is in the store before the first second is over.
            unwritten: VecDeque::from([Interval { end_ms: now.wall_ms, events: vec![started], ..Interval::default() }]),
            maintained: now.monotonic,
            troubles: BTreeMap::new(),
            failing: 0,
            seen: Seen::default(),
        }
    }

    /// Everything since the start.
    #[must_use]
    pub const fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Ends an interval: writes it, and once a minute adds up minutes and takes old rows away. Returns messages for the
    /// operator. The interval is lost only if the store takes none of the next ten minutes.
    pub fn tick(&mut self, now: Moment, readings: Readings) -> Vec<String> {
        let mut messages = Vec::new();
        let interval = self.interval(now, readings, &mut messages);
        self.unwritten.push_back(interval);
        self.write(now, &mut messages);
        if now.monotonic.saturating_sub(self.maintained) >= MAINTENANCE {
            self.maintained = now.monotonic;
            self.maintain(now, &mut messages);
        }
        self.seen.store_bytes = self.store.bytes();
        messages
    }

    /// Ends the last interval, and says so in the store.
    pub fn finish(mut self, now: Moment, readings: Readings) -> Vec<String> {
        let mut messages = Vec::new();
        let mut interval = self.interval(now, readings, &mut messages);
        let detail = String::new();
        interval.events.push(Event { at_ms: now.wall_ms, kind: EventKind::Stopped, detail });
        self.unwritten.push_back(interval);
        self.write(now, &mut messages);
        self.maintain(now, &mut messages);
        messages
    }

    fn interval(&mut self, now: Moment, readings: Readings, messages: &mut Vec<String>) -> Interval {
        let mut events = Vec::new();
        let SeenClock { span, step_ms, suspended } = self.watch.see(now);
        if let Some(suspended) = suspended {
            self.seen.suspensions += 1;
            events.push((
                EventKind::Suspended,
                format!("the machine was suspended for {:.1} s", suspended.as_secs_f64()),
            ));
        }
        if let Some(step_ms) = step_ms {
            self.seen.clock_steps += 1;
            let way = if step_ms > 0 { "forward" } else { "back" };
            events.push((EventKind::Clock, format!("the wall clock was set {way} by {} ms", step_ms.unsigned_abs())));
        }
        events.extend(self.changes(readings.sources).into_iter().map(|detail| (EventKind::Source, detail)));
        events.extend(readings.outages.into_iter().map(|(host, silence)| {
            let detail = format!("{host}: no reply for {:.0} s, and it answers again", silence.as_secs_f64());
            (EventKind::Source, detail)
        }));
        messages.extend(events.iter().map(|(_, detail)| detail.clone()));
        let event = |(kind, detail)| Event { at_ms: now.wall_ms, kind, detail };
        let pings = readings.outcomes.into_iter().map(|outcome| self.ping(now, outcome)).collect();
        self.seen.backlogs.clear();
        let queues = readings.queues.into_iter().filter_map(|reading| self.counts(now, reading)).collect();
        self.before.retain(|_, (at, _)| now.monotonic.saturating_sub(*at) <= LONGEST_GAP);
        let span_ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Interval { end_ms: now.wall_ms, span_ms, pings, queues, events: events.into_iter().map(event).collect() }
    }

    /// Sources whose state has changed, in words.
    fn changes(&mut self, sources: BTreeMap<String, Option<String>>) -> Vec<String> {
        let mut changes = Vec::new();
        for (source, trouble) in sources {
            self.seen.sources.insert(source.clone(), trouble.is_none());
            let before = self.troubles.insert(source.clone(), trouble.clone());
            match (before, trouble) {
                (Some(Some(_)), None) => changes.push(format!("{source} answers again")),
                (Some(Some(before)), Some(why)) if before == why => {}
                (_, Some(why)) => changes.push(format!("{source}: {why}")),
                (_, None) => {}
            }
        }
        changes
    }

    fn ping(&mut self, now: Moment, outcome: Outcome) -> Ping {
        let (lost, rtts) = self.seen.paths.entry(outcome.path.clone()).or_default();
        match outcome.rtt_ns {
            Some(ns) => rtts.record(ns),
            None => *lost += 1,
        }
        let age = now.monotonic.saturating_sub(outcome.sent);
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        Ping { path: outcome.path, age_ms, rtt_ns: outcome.rtt_ns }
    }

    /// The counts since the last reading of this queue; `None` for the first one.
    fn counts(&mut self, now: Moment, reading: Reading) -> Option<(QueueName, Counts)> {
        let Reading { name, totals, backlog } = reading;
        if let Some(backlog) = backlog {
            self.seen.backlogs.insert(name.clone(), backlog);
        }
        let (at, before) = self.before.insert(name.clone(), (now.monotonic, totals.clone()))?;
        let span = now.monotonic.saturating_sub(at);
        let totals = if name.source == Source::Kernel { totals.unwrapped(&before) } else { totals };
        let counts = totals.since(&before, span, backlog);
        let all = self.seen.queues.entry(name.clone()).or_default();
        all.span_ms += counts.span_ms;
        all.packets += counts.packets;
        all.bytes += counts.bytes;
        all.wire_bytes = counts.wire_bytes.map(|bytes| all.wire_bytes.unwrap_or(0) + bytes).or(all.wire_bytes);
        all.overlimits += counts.overlimits;
        for (reason, packets) in &counts.dropped {
            *all.dropped.entry(reason.clone()).or_default() += packets;
        }
        all.waits.add(&counts.waits);
        Some((name, counts))
    }

    /// Writes what waits, the oldest first.
    fn write(&mut self, now: Moment, messages: &mut Vec<String>) {
        let mut made_space = false;
        while let Some(interval) = self.unwritten.front() {
            match self.store.append(interval) {
                Ok(()) => {
                    self.unwritten.pop_front();
                    self.seen.written_intervals += 1;
                    if self.failing > 0 {
                        self.recovered(now, messages);
                    }
                }
                Err(error) if error.is_full() && !made_space => {
                    made_space = true;
                    let _ = self.store.retain(Retention::Wait);
                }
                Err(error) => {
                    self.failed(&error, messages);
                    break;
                }
            }
        }
        self.seen.waiting_intervals = self.unwritten.len() as u64;
    }

    fn failed(&mut self, error: &Error, messages: &mut Vec<String>) {
        if self.failing == 0 {
            messages.push(format!("{error}; intervals wait for the store, at most {MOST_UNWRITTEN}"));
        }
        self.failing += 1;
        self.seen.failed_writes += 1;
        while self.unwritten.len() > MOST_UNWRITTEN {
            self.unwritten.pop_front();
            self.seen.lost_intervals += 1;
        }
    }

    fn recovered(&mut self, now: Moment, messages: &mut Vec<String>) {
        let detail = format!(
            "the store takes rows again after {} failed writes; {} intervals were lost since the start",
            self.failing, self.seen.lost_intervals
        );
        self.failing = 0;
        messages.push(detail.clone());
        let event = Event { at_ms: now.wall_ms, kind: EventKind::Store, detail };
        match self.unwritten.front_mut() {
            Some(next) => next.events.push(event),
            None => {
                self.unwritten.push_back(Interval { end_ms: now.wall_ms, events: vec![event], ..Interval::default() });
            }
        }
    }

    fn maintain(&mut self, now: Moment, messages: &mut Vec<String>) {
        let retention = self.watch.retention(now);
        let mut run = || {
            for _ in 0..MOST_ROLLED {
                if !self.store.roll_up()? {
                    break;
                }
            }
            self.store.retain(retention)
        };
        match run() {
            Ok(trimmed) if trimmed != Trimmed::default() => messages.push(words(trimmed)),
            // The next minute does the work that a lock or a full disk prevents.
            Ok(_) => {}
            Err(error) => {
                self.seen.failed_writes += 1;
                messages.push(format!("{error}; minutes are added up later"));
            }
        }
    }
}

/// The rows that went for space.
fn words(trimmed: Trimmed) -> String {
    let Trimmed { intervals, days_of_minutes, months_of_hours } = trimmed;
    let parts = [(intervals, "intervals"), (days_of_minutes, "days of minutes"), (months_of_hours, "months of hours")];
    let parts: Vec<String> =
        parts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    format!("the store is near its limit: the oldest rows are gone ({})", parts.join(", "))
}

#[cfg(test)]
mod tests;
