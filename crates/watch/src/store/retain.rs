//! Retention by age, and the limit of the store's size.
//!
//! The limit holds by three means. The database refuses to grow beyond it (`max_page_count`). From
//! nine tenths of it on, the oldest rows go first: raw ones, of which an hour stays, then minutes,
//! then hours. Pages that become free are used again, and given back where many are free.

use rusqlite::{Connection, TransactionBehavior, params};

use super::Store;
use super::error::{Error, ErrorKind};
use super::limits::Limits;
use super::schema::{LOG_BYTES, PAGE};
use crate::sample::WallMs;

const DAY_S: i64 = 86_400;
/// The most raw intervals that a pass takes away.
const MOST_INTERVALS: i64 = 5_000;
/// The most passes for size in one call.
const MOST_PASSES: u32 = 20;
/// Free pages are given back from this share of all pages on, as one of this number.
const FREE_SHARE: u64 = 8;
/// The most free pages that are given back in one call: 4 MiB are copied at most.
const MOST_FREED: u32 = 1024;

/// The clock that ages are measured with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    /// The time is this, and it can be believed.
    At(WallMs),
    /// The clock was set lately, or the program has just started: nothing is too old.
    Wait,
}

/// The rows that were taken away to stay under the limit. Rows that have reached their age are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Trimmed {
    /// Raw intervals.
    pub intervals: u64,
    /// Days of minutes.
    pub days_of_minutes: u64,
    /// Months of hours.
    pub months_of_hours: u64,
}

impl Store {
    /// Takes away rows that are too old, and the oldest ones where the store is nearly full. Call it once a minute,
    /// after [`Store::roll_up`].
    ///
    /// # Errors
    /// Another process holds a lock: the next call goes on.
    pub fn retain(&mut self, retention: Retention) -> Result<Trimmed, Error> {
        let trimmed = self.try_retain(retention);
        trimmed.map_err(|kind| self.fail(kind))
    }

    fn try_retain(&mut self, retention: Retention) -> Result<Trimmed, ErrorKind> {
        if let Retention::At(now_ms) = retention {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            by_age(&transaction, now_ms, self.kept)?;
            transaction.commit()?;
        }
        let mut trimmed = Trimmed::default();
        let limit = self.kept.limit_bytes.saturating_sub(LOG_BYTES) / PAGE;
        for _ in 0..MOST_PASSES {
            if Pages::of(&self.connection)?.used() <= limit / 10 * 9 {
                break;
            }
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let more = oldest(&transaction, &mut trimmed)?;
            transaction.commit()?;
            if !more {
                break;
            }
        }
        self.give_back(limit)?;
        Ok(trimmed)
    }

    /// Gives free pages back to the file system, and sets the limit again: one below the size of the file has no effect
    /// before.
    fn give_back(&self, limit: u64) -> Result<(), ErrorKind> {
        let pages = Pages::of(&self.connection)?;
        if pages.free * FREE_SHARE > pages.all || pages.all > limit {
            let mut vacuum = self.connection.prepare(&format!("PRAGMA incremental_vacuum({MOST_FREED})"))?;
            let mut steps = vacuum.query([])?;
            while steps.next()?.is_some() {}
        }
        let _: i64 = self.connection.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |row| row.get(0))?;
        Ok(())
    }
}

/// Pages of the file.
struct Pages {
    all: u64,
    free: u64,
}

impl Pages {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let count = |pragma: &str| {
            let mut pages = connection.prepare_cached(&format!("PRAGMA {pragma}"))?;
            pages.query_row([], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        Ok(Self { all: count("page_count")?, free: count("freelist_count")? })
    }

    const fn used(&self) -> u64 {
        self.all.saturating_sub(self.free)
    }
}

fn by_age(connection: &Connection, now_ms: WallMs, kept: Limits) -> rusqlite::Result<()> {
    let cutoff_s = |days: u32| now_ms.div_euclid(1000) - i64::from(days) * DAY_S;
    // Raw rows go only after the minutes have them.
    let mut query = connection.prepare_cached(
        "SELECT id FROM interval WHERE end_ms < ?1 AND id <= (SELECT rolled_interval FROM state) \
         ORDER BY end_ms LIMIT ?2",
    )?;
    let old = query.query_map([cutoff_s(kept.raw_days) * 1000, MOST_INTERVALS], |row| row.get(0))?;
    let mut old = old.collect::<rusqlite::Result<Vec<i64>>>()?;
    old.sort_unstable();
    for range in old.chunk_by(|a, b| a + 1 == *b) {
        delete_intervals(connection, range[0], range[range.len() - 1])?;
    }
    for (step_s, days) in [(60, kept.minute_days), (3600, kept.hour_days)] {
        delete_spans(connection, step_s, cutoff_s(days))?;
    }
    connection.prepare_cached("DELETE FROM event WHERE at_ms < ?1")?.execute([cutoff_s(kept.hour_days) * 1000])?;
    Ok(())
}

fn delete_intervals(connection: &Connection, first: i64, last: i64) -> rusqlite::Result<()> {
    for (table, column) in [("ping", "interval"), ("counts", "interval"), ("dropped", "interval"), ("interval", "id")] {
        let delete = format!("DELETE FROM {table} WHERE {column} BETWEEN ?1 AND ?2");
        connection.prepare_cached(&delete)?.execute([first, last])?;
    }
    Ok(())
}

fn delete_spans(connection: &Connection, step_s: i64, before_s: i64) -> rusqlite::Result<()> {
    for table in ["ping_span", "counts_span", "dropped_span"] {
        let delete = format!("DELETE FROM {table} WHERE step_s = ?1 AND begin_s < ?2");
        connection.prepare_cached(&delete)?.execute([step_s, before_s])?;
    }
    Ok(())
}

/// Takes away some of the oldest rows; false if none is left that may go.
fn oldest(connection: &Connection, trimmed: &mut Trimmed) -> rusqlite::Result<bool> {
    let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
        "SELECT min(id), max(id) FROM interval \
         WHERE id <= (SELECT rolled_interval FROM state) AND end_ms < (SELECT max(end_ms) FROM interval) - 3600000",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if let Some((first, last)) = first.zip(last) {
        let last = last.min(first + (last - first) / 10).min(first + MOST_INTERVALS);
        delete_intervals(connection, first, last)?;
        trimmed.intervals += (last - first + 1).unsigned_abs();
        return Ok(true);
    }
    for (step_s, span_s, count) in
        [(60, DAY_S, &mut trimmed.days_of_minutes), (3600, 30 * DAY_S, &mut trimmed.months_of_hours)]
    {
        let (first, last): (Option<i64>, Option<i64>) = connection.query_row(
            "SELECT min(begin_s), max(begin_s) FROM (SELECT begin_s FROM ping_span WHERE step_s = ?1 \
             UNION SELECT begin_s FROM counts_span WHERE step_s = ?1)",
            params![step_s],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if let Some((first, _)) = first.zip(last).filter(|(first, last)| last - first > span_s) {
            delete_spans(connection, step_s, first + span_s)?;
            *count += 1;
            return Ok(true);
        }
    }
    Ok(false)
}
