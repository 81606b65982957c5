//! Questions to the store.

use std::collections::BTreeMap;

use super::Store;
use super::error::{Error, ErrorKind};
use super::roll::{Batch, COUNTS, CountsSpan, PingSpan, Rows, counts_of, delays, pending, raw};
use super::write::unsigned;
use crate::delays::Delays;
use crate::sample::{Event, EventKind, PATIENCE, Path, QueueName, Source, WallMs};

/// The rows that an answer is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Each request and each interval.
    Raw,
    /// Minutes.
    Minute,
    /// Hours.
    Hour,
}

impl Resolution {
    /// The length of a row in seconds; that of a raw row is at least a second for an answer.
    #[must_use]
    pub const fn step_s(self) -> i64 {
        match self {
            Self::Raw => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }
}

/// A part of the store, added up to spans of one length, by their begin in seconds since 1970.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spans {
    /// Requests by path.
    pub paths: BTreeMap<Path, BTreeMap<i64, PingSpan>>,
    /// Counts by queue.
    pub queues: BTreeMap<QueueName, BTreeMap<i64, CountsSpan>>,
}

/// A question: which rows, of which time, and the length of a span of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The rows.
    pub resolution: Resolution,
    /// The begin in seconds since 1970.
    pub from_s: i64,
    /// The end.
    pub to_s: i64,
    /// The length of a span, a multiple of the resolution's.
    pub bin_s: i64,
}

impl Store {
    /// The begin of the oldest row of each resolution; `None` where there is none.
    ///
    /// # Errors
    /// The file is damaged or locked.
    pub fn oldest_s(&self, resolution: Resolution) -> Result<Option<i64>, Error> {
        let oldest = match resolution {
            Resolution::Raw => {
                self.connection.query_row("SELECT min(end_ms) / 1000 FROM interval", [], |row| row.get(0))
            }
            Resolution::Minute | Resolution::Hour => self.connection.query_row(
                "SELECT min(begin_s) FROM (SELECT min(begin_s) AS begin_s FROM ping_span WHERE step_s = ?1 \
                 UNION ALL SELECT min(begin_s) FROM counts_span WHERE step_s = ?1)",
                [resolution.step_s()],
                |row| row.get(0),
            ),
        };
        oldest.map_err(|error| self.wrong(error))
    }

    /// The end of the newest interval; `None` in an empty store.
    ///
    /// # Errors
    /// The file is damaged or locked.
    pub fn newest_ms(&self) -> Result<Option<WallMs>, Error> {
        let newest =
            self.connection.query_row("SELECT end_ms FROM interval ORDER BY id DESC LIMIT 1", [], |row| row.get(0));
        match newest {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            other => other.map(Some).map_err(|error| self.wrong(error)),
        }
    }

    /// The number of raw intervals.
    ///
    /// # Errors
    /// The file is damaged or locked.
    pub fn intervals(&self) -> Result<u64, Error> {
        let count = self.connection.query_row("SELECT count(*) FROM interval", [], |row| row.get(0));
        count.map(unsigned).map_err(|error| self.wrong(error))
    }

    /// The usual length of the newest intervals between two times; zero without any.
    pub(crate) fn interval_s(&self, from_s: i64, to_s: i64) -> Result<i64, Error> {
        let read = || {
            let mut query = self.connection.prepare_cached(
                "SELECT span_ms FROM interval WHERE end_ms BETWEEN ?1 AND ?2 AND span_ms > 0 \
                 ORDER BY end_ms DESC LIMIT 99",
            )?;
            let spans_ms = query.query_map([from_s * 1000, to_s * 1000], |row| row.get(0))?;
            spans_ms.collect::<rusqlite::Result<Vec<i64>>>()
        };
        let mut spans_ms = read().map_err(|error| self.wrong(error))?;
        spans_ms.sort_unstable();
        Ok(spans_ms.get(spans_ms.len() / 2).map_or(0, |ms| (ms + 500) / 1000))
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// The file is damaged or locked.
    pub fn spans(&self, question: Question) -> Result<Spans, Error> {
        self.try_spans(question).map_err(|kind| self.fail(kind))
    }

    fn try_spans(&self, question: Question) -> Result<Spans, ErrorKind> {
        // One state of the store for all statements, whatever the watcher does.
        let transaction = self.connection.unchecked_transaction()?;
        let (paths, queues) = (paths(&transaction)?, queues(&transaction)?);
        let mut spans = Spans::default();
        let mut collect = Collect { question, paths: &paths, queues: &queues, spans: &mut spans };
        match question.resolution {
            Resolution::Raw => collect.raw(&transaction)?,
            Resolution::Minute | Resolution::Hour => collect.stored(&transaction)?,
        }
        collect.early(&transaction)?;
        Ok(spans)
    }

    /// Events between two times, the oldest first.
    ///
    /// # Errors
    /// The file is damaged or locked.
    pub fn events(&self, from_ms: WallMs, to_ms: WallMs) -> Result<Vec<Event>, Error> {
        let read = || {
            let mut query = self
                .connection
                .prepare_cached("SELECT at_ms, kind, detail FROM event WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY id")?;
            let mut rows = query.query([from_ms, to_ms])?;
            let mut events = Vec::new();
            while let Some(row) = rows.next()? {
                let kind: String = row.get(1)?;
                if let Some(kind) = EventKind::named(&kind) {
                    events.push(Event { at_ms: row.get(0)?, kind, detail: row.get(2)? });
                }
            }
            Ok(events)
        };
        read().map_err(|error| self.wrong(error))
    }
}

fn paths(connection: &rusqlite::Connection) -> rusqlite::Result<BTreeMap<i64, Path>> {
    let mut query = connection.prepare_cached("SELECT id, target, code_point FROM path")?;
    let paths = query.query_map([], |row| Ok((row.get(0)?, Path { target: row.get(1)?, code_point: row.get(2)? })))?;
    paths.collect()
}

fn queues(connection: &rusqlite::Connection) -> Result<BTreeMap<i64, QueueName>, ErrorKind> {
    let mut query = connection.prepare_cached("SELECT id, source, place, class FROM queue")?;
    let mut rows = query.query([])?;
    let mut queues = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let source: String = row.get(1)?;
        let source = Source::named(&source).ok_or_else(|| ErrorKind::Row(format!("a source called {source:?}")))?;
        queues.insert(row.get(0)?, QueueName { source, place: row.get(2)?, class: row.get(3)? });
    }
    Ok(queues)
}

/// The age from which on the loss of a request is known: it is lost after its patience, and told of a little later.
const JUDGED_MS: i64 = PATIENCE.as_millis() as i64 + 100;

/// The intervals of a run of a watcher.
struct Run {
    first: i64,
    last: i64,
}

/// Adds rows up.
struct Collect<'a> {
    question: Question,
    paths: &'a BTreeMap<i64, Path>,
    queues: &'a BTreeMap<i64, QueueName>,
    spans: &'a mut Spans,
}

impl Collect<'_> {
    fn pings(&mut self, begin_s: i64, path: i64, add: impl FnOnce(&mut PingSpan)) {
        if let Some((bin, name)) = self.bin(begin_s).zip(self.paths.get(&path)) {
            add(self.spans.paths.entry(name.clone()).or_default().entry(bin).or_default());
        }
    }

    fn counts(&mut self, begin_s: i64, queue: i64, add: impl FnOnce(&mut CountsSpan)) {
        if let Some((bin, name)) = self.bin(begin_s).zip(self.queues.get(&queue)) {
            add(self.spans.queues.entry(name.clone()).or_default().entry(bin).or_default());
        }
    }

    /// The span of the answer that a row belongs to; `None` outside of the time that was asked for.
    fn bin(&self, begin_s: i64) -> Option<i64> {
        let Question { from_s, to_s, bin_s, .. } = self.question;
        (from_s..to_s).contains(&begin_s).then(|| begin_s.div_euclid(bin_s) * bin_s)
    }

    fn raw(&mut self, connection: &rusqlite::Connection) -> Result<(), ErrorKind> {
        let Question { from_s, to_s, .. } = self.question;
        // Replies may be as late as their patience; rows outside are left out one by one.
        let bounds = [(from_s - 1) * 1000, (to_s + 60) * 1000];
        let mut query = connection.prepare("SELECT id FROM interval WHERE end_ms BETWEEN ?1 AND ?2")?;
        let ids = query.query_map(bounds, |row| row.get(0))?;
        let mut ids = ids.collect::<rusqlite::Result<Vec<i64>>>()?;
        ids.sort_unstable();
        for range in ids.chunk_by(|a, b| a + 1 == *b) {
            let rows = Rows { after: range[0] - 1, last: range[range.len() - 1] };
            let mut found = Batch::default();
            let (pings, counts) = (&mut found.pings, &mut found.counts);
            raw(
                connection,
                rows,
                |sent_ms, path, rtt| {
                    let each = || PingSpan { rtts: Delays::of_each(), ..PingSpan::default() };
                    pings.entry((0, sent_ms.div_euclid(1000), path)).or_insert_with(each).record(rtt);
                },
                |end_ms, queue, span| {
                    counts.entry((0, (end_ms - 1).div_euclid(1000), queue)).or_default().add(span);
                },
            )?;
            self.batch(&found);
        }
        Ok(())
    }

    /// Marks the requests that were sent too shortly before the end of their run: the replies to them are known, and
    /// most of their losses are not. Lengths of intervals give the time up to that end: the wall clock may be set.
    fn early(&mut self, connection: &rusqlite::Connection) -> Result<(), ErrorKind> {
        let mut intervals = connection
            .prepare("SELECT id, end_ms, span_ms FROM interval WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC")?;
        let mut pings =
            connection.prepare("SELECT age_ms, path, rtt_ns IS NULL FROM ping WHERE interval = ?1 AND age_ms < ?2")?;
        let step_s = self.question.resolution.step_s();
        for Run { first, last } in self.runs(connection)? {
            let mut left_ms = JUDGED_MS;
            let mut rows = intervals.query([first, last])?;
            while let Some(row) = rows.next()?.filter(|_| left_ms > 0) {
                let (id, end_ms, span_ms): (i64, WallMs, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let mut rows = pings.query([id, left_ms])?;
                while let Some(row) = rows.next()? {
                    let (age_ms, is_lost): (i64, bool) = (row.get(0)?, row.get(2)?);
                    // The row that has it.
                    let begin_s = (end_ms - age_ms).div_euclid(step_s * 1000) * step_s;
                    self.pings(begin_s, row.get(1)?, |span| {
                        span.early += 1;
                        span.early_lost += u64::from(is_lost);
                    });
                }
                left_ms -= span_ms;
            }
        }
        Ok(())
    }

    /// The runs of watchers that may have ended in the time that was asked for. The first interval of a run has no
    /// length, and says that the watcher started.
    fn runs(&self, connection: &rusqlite::Connection) -> rusqlite::Result<Vec<Run>> {
        let mut starts = connection.prepare(
            "SELECT i.id FROM event e JOIN interval i ON i.end_ms = e.at_ms AND i.span_ms = 0 \
             WHERE e.kind = ?1 AND e.at_ms >= ?2 ORDER BY i.id",
        )?;
        let starts = starts.query_map((EventKind::Started.name(), self.question.from_s * 1000), |row| row.get(0))?;
        let mut starts = starts.collect::<rusqlite::Result<Vec<i64>>>()?;
        starts.push(i64::MAX);
        let mut newest = connection.prepare("SELECT max(id) FROM interval WHERE id < ?1")?;
        let (mut first, mut runs) = (0, Vec::new());
        for start in starts {
            let last: Option<i64> = newest.query_row([start], |row| row.get(0))?;
            runs.extend(last.filter(|last| *last >= first).map(|last| Run { first, last }));
            first = start;
        }
        Ok(runs)
    }

    fn batch(&mut self, batch: &Batch) {
        for ((_, begin_s, path), more) in &batch.pings {
            self.pings(*begin_s, *path, |span| span.add(more));
        }
        for ((_, begin_s, queue), more) in &batch.counts {
            self.counts(*begin_s, *queue, |span| span.add(more));
        }
    }

    fn stored(&mut self, connection: &rusqlite::Connection) -> Result<(), ErrorKind> {
        let Question { resolution, from_s, to_s, .. } = self.question;
        let of = [resolution.step_s(), from_s, to_s];
        let mut query = connection.prepare(
            "SELECT begin_s, path, lost, rtts FROM ping_span WHERE step_s = ?1 AND begin_s >= ?2 AND begin_s < ?3",
        )?;
        let mut rows = query.query(of)?;
        while let Some(row) = rows.next()? {
            let more = PingSpan { lost: unsigned(row.get(2)?), rtts: delays(row.get(3)?)?, ..PingSpan::default() };
            self.pings(row.get(0)?, row.get(1)?, |span| span.add(&more));
        }
        let mut query = connection.prepare(&format!(
            "SELECT begin_s, queue, {COUNTS} FROM counts_span WHERE step_s = ?1 AND begin_s >= ?2 AND begin_s < ?3"
        ))?;
        let mut rows = query.query(of)?;
        while let Some(row) = rows.next()? {
            let more = counts_of(row, 2)?;
            self.counts(row.get(0)?, row.get(1)?, |span| span.add(&more));
        }
        let mut query = connection.prepare(
            "SELECT begin_s, queue, reason, packets FROM dropped_span \
             WHERE step_s = ?1 AND begin_s >= ?2 AND begin_s < ?3",
        )?;
        let mut rows = query.query(of)?;
        while let Some(row) = rows.next()? {
            let (reason, packets): (String, i64) = (row.get(2)?, row.get(3)?);
            self.counts(row.get(0)?, row.get(1)?, |span| {
                *span.dropped.entry(reason).or_default() += unsigned(packets);
            });
        }
        // The last minute is in raw rows alone.
        let late = Batch::of(connection, pending(connection)?, &[resolution.step_s()])?;
        self.batch(&late);
        Ok(())
    }
}
