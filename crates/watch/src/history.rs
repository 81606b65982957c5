//! A span of the store as lines over time and as tables: percentiles, loss, rates, drops, and each
//! hour of the day.

mod document;

use std::collections::BTreeMap;

use crate::sample::{Event, Path, QueueName, WallMs};
use crate::store::{CountsSpan, Error, PingSpan, Question, Resolution, Store};

pub use document::{Bin, Document, HourOfDay, PathDocument, PathRow, Percentiles, QueueDocument, QueueRow};

/// Lengths of a span on a line over time, in seconds.
const BINS_S: [i64; 18] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const DAY_S: i64 = 86_400;
const HOUR_S: i64 = 3600;

/// A wish to see a part of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The begin.
    pub from_ms: WallMs,
    /// The end.
    pub to_ms: WallMs,
    /// The most points of a line.
    pub points: u32,
    /// Classes to see; empty for all.
    pub classes: Vec<String>,
    /// Hosts to see; empty for all.
    pub targets: Vec<String>,
}

/// A part of the store.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    /// The begin in seconds since 1970.
    pub from_s: i64,
    /// The end.
    pub to_s: i64,
    /// The length of a span on a line.
    pub bin_s: i64,
    /// The rows that it was read from.
    pub resolution: Resolution,
    /// Paths.
    pub paths: Vec<PathHistory>,
    /// Queues.
    pub queues: Vec<QueueHistory>,
    /// Events, the oldest first.
    pub events: Vec<Event>,
}

/// The pings of a path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathHistory {
    /// The host and the code point.
    pub path: Path,
    /// Spans by their begin.
    pub spans: BTreeMap<i64, PingSpan>,
    /// All of them.
    pub total: PingSpan,
    /// By the hour of the day, of those hours that have pings.
    pub hours: BTreeMap<u8, PingSpan>,
}

/// The counts of a queue.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueHistory {
    /// Its name.
    pub name: QueueName,
    /// Spans by their begin.
    pub spans: BTreeMap<i64, CountsSpan>,
    /// All of them.
    pub total: CountsSpan,
    /// By the hour of the day.
    pub hours: BTreeMap<u8, CountsSpan>,
}

impl Wish {
    fn wants_path(&self, path: &Path) -> bool {
        match (self.classes.is_empty(), self.targets.is_empty()) {
            (_, false) => self.targets.contains(&path.target),
            (classes, true) => classes,
        }
    }

    fn wants_queue(&self, queue: &QueueName) -> bool {
        match (self.classes.is_empty(), self.targets.is_empty()) {
            (false, _) => self.classes.contains(&queue.class),
            (true, targets) => targets,
        }
    }
}

impl History {
    /// Reads it. `offset_s` is the distance of local time from UTC at a time, both in seconds: hours of the day are
    /// local.
    ///
    /// # Errors
    /// The store is damaged or locked.
    pub fn read(store: &Store, wish: &Wish, offset_s: &dyn Fn(i64) -> i64) -> Result<Self, Error> {
        let (from_s, to_s) = (wish.from_ms.div_euclid(1000), -(-wish.to_ms).div_euclid(1000));
        let (resolution, bin_s) = grain(store, from_s, to_s, wish.points)?;
        let spans = store.spans(Question { resolution, from_s, to_s, bin_s })?;
        // Hours of the day need no finer rows than minutes.
        let of_hours =
            if resolution == Resolution::Raw { Resolution::Raw } else { Resolution::Hour.min_of(resolution) };
        let hourly = store.spans(Question { resolution: of_hours, from_s, to_s, bin_s: HOUR_S })?;
        let hour = |begin_s: i64| u8::try_from((begin_s + offset_s(begin_s)).rem_euclid(DAY_S) / HOUR_S).unwrap_or(0);
        let mut history = Self {
            from_s,
            to_s,
            bin_s,
            resolution,
            paths: Vec::new(),
            queues: Vec::new(),
            events: store.events(wish.from_ms, wish.to_ms)?,
        };
        for (path, spans) in spans.paths.into_iter().filter(|(path, _)| wish.wants_path(path)) {
            let (mut total, mut hours) = (PingSpan::default(), BTreeMap::new());
            for (begin_s, span) in hourly.paths.get(&path).into_iter().flatten() {
                total.add(span);
                hours.entry(hour(*begin_s)).or_insert_with(PingSpan::default).add(span);
            }
            history.paths.push(PathHistory { path, spans, total, hours });
        }
        for (name, spans) in spans.queues.into_iter().filter(|(name, _)| wish.wants_queue(name)) {
            let (mut total, mut hours) = (CountsSpan::default(), BTreeMap::new());
            for (begin_s, span) in hourly.queues.get(&name).into_iter().flatten() {
                total.add(span);
                hours.entry(hour(*begin_s)).or_insert_with(CountsSpan::default).add(span);
            }
            history.queues.push(QueueHistory { name, spans, total, hours });
        }
        Ok(history)
    }

    /// True without any row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.queues.is_empty()
    }

    /// The begin of each span between the begin and the end, those without rows included.
    pub fn bins(&self) -> impl Iterator<Item = i64> {
        let first = self.from_s.div_euclid(self.bin_s) * self.bin_s;
        (first..self.to_s).step_by(usize::try_from(self.bin_s).unwrap_or(1))
    }
}

impl Resolution {
    /// The finer of two.
    const fn min_of(self, other: Self) -> Self {
        if self.step_s() < other.step_s() { self } else { other }
    }
}

/// Rows of a path that are read for a span: raw ones of five hours, minutes of two weeks. Of two weeks of local dates
/// one day may have 25 hours.
const MOST_ROWS: i64 = (14 * DAY_S + HOUR_S) / 60;

/// The rows to read and the length of a bin: the finest rows of which the span has few, and that reach back as far as
/// any; bins of which there are at most `points`, and none shorter than an interval of the watcher.
fn grain(store: &Store, from_s: i64, to_s: i64, points: u32) -> Result<(Resolution, i64), Error> {
    let wanted = ((to_s - from_s).max(1) + i64::from(points) - 1) / i64::from(points.max(1));
    let all = [Resolution::Raw, Resolution::Minute, Resolution::Hour];
    let mut oldest = Vec::new();
    for resolution in all {
        oldest.push(store.oldest_s(resolution)?.map(|oldest| oldest.max(from_s)));
    }
    // Rows begin with the first coarser row, or within it.
    let within = |own: i64, other: usize| oldest[other].is_none_or(|begin| own <= begin + all[other].step_s().max(60));
    let reaches = |index: usize| oldest[index].is_some_and(|own| (0..all.len()).all(|other| within(own, other)));
    // The span alone decides, so that a terminal and a page read equal rows.
    let few = |resolution: &Resolution| (to_s - from_s) / resolution.step_s() <= MOST_ROWS;
    let coarsest = all.into_iter().find(few).unwrap_or(Resolution::Hour);
    let index = (0..all.len()).filter(|index| reaches(*index));
    let enough = index.clone().find(|index| all[*index].step_s() >= coarsest.step_s());
    let resolution = all[enough.or_else(|| index.clone().next_back()).unwrap_or(0)];
    // Of shorter bins most would have no ping, and each point would be alone.
    let least = wanted.max(resolution.step_s()).max(store.interval_s(from_s, to_s)?);
    let bin_s = BINS_S.into_iter().find(|bin| *bin >= least);
    Ok((resolution, bin_s.unwrap_or_else(|| (wanted + DAY_S - 1) / DAY_S * DAY_S)))
}

#[cfg(test)]
mod tests;
