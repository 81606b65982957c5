//! Minutes and hours, added up from raw rows.
//!
//! A request belongs to the minute in which it was sent, the counts of an interval to the minute in
//! which the interval ends. Raw rows are taken in the order of their insertion, so rows of a past
//! minute (a late reply, a clock that was set back) are added to it like all others.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::Store;
use super::error::{Error, ErrorKind};
use super::write::{signed, unsigned};
use crate::delays::{Delays, NoDelays};
use crate::sample::{Backlog, WallMs};

/// Seconds of the spans that are stored: a minute and an hour.
pub(super) const STEPS_S: [i64; 2] = [60, 3600];

/// The most raw intervals in one transaction: a day of an interval of five seconds.
const MOST_INTERVALS: i64 = 20_000;

/// The requests of a path in a span.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PingSpan {
    /// Requests without a reply.
    pub lost: u64,
    /// The round-trip times of the others.
    pub rtts: Delays,
    /// Requests of these that are too young for a loss: not all that were sent with them have an outcome.
    pub early: u64,
    /// Those of them that are lost already.
    pub early_lost: u64,
}

impl PingSpan {
    /// Requests whose outcome is known.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.lost + self.rtts.count()
    }

    /// Requests that were old enough for their loss to be known. Early ones of which none has a reply, since they could
    /// not be sent, hide no loss.
    #[must_use]
    pub fn judged(&self) -> u64 {
        if self.early == self.early_lost { self.sent() } else { self.sent().saturating_sub(self.early) }
    }

    /// The share of those that are lost; `None` without any.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn loss(&self) -> Option<f64> {
        let judged = self.judged();
        let lost = if judged == self.sent() { self.lost } else { self.lost.saturating_sub(self.early_lost) };
        (judged > 0).then(|| lost as f64 / judged as f64)
    }

    /// Adds another span.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        self.rtts.add(&other.rtts);
        self.early += other.early;
        self.early_lost += other.early_lost;
    }

    /// Adds a request.
    pub(super) fn record(&mut self, rtt_ns: Option<u64>) {
        match rtt_ns {
            Some(ns) => self.rtts.record(ns),
            None => self.lost += 1,
        }
    }
}

/// The counts of a queue in a span.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CountsSpan {
    /// The time that the counts cover.
    pub span_ms: u64,
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their bytes on the wire, where they are known.
    pub wire_bytes: Option<u64>,
    /// Times that the queue was held back.
    pub overlimits: u64,
    /// The time for which the backlog is known.
    pub backlog_ms: u64,
    /// The integral of the backlog over that time.
    pub backlog_byte_ms: u64,
    /// The largest backlog at the end of an interval.
    pub most_backlog: Option<Backlog>,
    /// Drops by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Delays from arrival to the start of transmission.
    pub waits: Delays,
}

impl CountsSpan {
    /// Adds another span.
    pub fn add(&mut self, other: &Self) {
        self.span_ms += other.span_ms;
        self.packets += other.packets;
        self.bytes += other.bytes;
        self.wire_bytes = match (self.wire_bytes, other.wire_bytes) {
            (None, None) => None,
            (own, more) => Some(own.unwrap_or(0) + more.unwrap_or(0)),
        };
        self.overlimits += other.overlimits;
        self.backlog_ms += other.backlog_ms;
        self.backlog_byte_ms += other.backlog_byte_ms;
        self.most_backlog = match (self.most_backlog, other.most_backlog) {
            (Some(own), Some(more)) => {
                Some(Backlog { packets: own.packets.max(more.packets), bytes: own.bytes.max(more.bytes) })
            }
            (own, more) => own.or(more),
        };
        for (reason, packets) in &other.dropped {
            *self.dropped.entry(reason.clone()).or_default() += packets;
        }
        self.waits.add(&other.waits);
    }

    /// Bits a second over the time that the counts cover; `None` without any.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn rate_bps(&self) -> Option<f64> {
        (self.span_ms > 0).then(|| self.bytes as f64 * 8e3 / self.span_ms as f64)
    }

    /// The mean backlog in bytes; `None` where it is not known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn mean_backlog_bytes(&self) -> Option<f64> {
        (self.backlog_ms > 0).then(|| self.backlog_byte_ms as f64 / self.backlog_ms as f64)
    }

    /// Packets dropped for any reason.
    #[must_use]
    pub fn dropped_packets(&self) -> u64 {
        self.dropped.values().sum()
    }
}

/// A span of one name: its length and begin in seconds, and the number of the name.
type Key = (i64, i64, i64);

/// Raw rows added up to spans.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) pings: BTreeMap<Key, PingSpan>,
    pub(super) counts: BTreeMap<Key, CountsSpan>,
}

/// A number of raw rows: those of the intervals after `after` up to and with `last`.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) after: i64,
    pub(super) last: i64,
}

/// Reads raw rows. Each row of `ping` goes to `ping` with its time, its path and its round-trip time, each of `counts`
/// to `counts` with its time, its queue and its counts.
pub(super) fn raw(
    connection: &Connection,
    rows: Rows,
    mut ping: impl FnMut(WallMs, i64, Option<u64>),
    mut counts: impl FnMut(WallMs, i64, &CountsSpan),
) -> Result<(), ErrorKind> {
    let mut query = connection.prepare_cached(
        "SELECT i.end_ms - p.age_ms, p.path, p.rtt_ns FROM interval i JOIN ping p ON p.interval = i.id \
         WHERE i.id > ?1 AND i.id <= ?2",
    )?;
    let mut found = query.query([rows.after, rows.last])?;
    while let Some(row) = found.next()? {
        ping(row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?.map(unsigned));
    }
    let mut drops: BTreeMap<(i64, i64), BTreeMap<String, u64>> = BTreeMap::new();
    let mut query = connection.prepare_cached(
        "SELECT interval, queue, reason, packets FROM dropped WHERE interval > ?1 AND interval <= ?2",
    )?;
    let mut found = query.query([rows.after, rows.last])?;
    while let Some(row) = found.next()? {
        drops.entry((row.get(0)?, row.get(1)?)).or_default().insert(row.get(2)?, unsigned(row.get(3)?));
    }
    let mut query = connection.prepare_cached(
        "SELECT i.end_ms, i.id, c.queue, c.span_ms, c.packets, c.bytes, c.wire_bytes, c.overlimits, c.backlog_packets, \
         c.backlog_bytes, c.waits FROM interval i JOIN counts c ON c.interval = i.id WHERE i.id > ?1 AND i.id <= ?2",
    )?;
    let mut found = query.query([rows.after, rows.last])?;
    while let Some(row) = found.next()? {
        let (id, queue): (i64, i64) = (row.get(1)?, row.get(2)?);
        let span_ms = unsigned(row.get(3)?);
        let backlog: Option<(i64, i64)> = row.get::<_, Option<i64>>(8)?.zip(row.get(9)?);
        let backlog = backlog.map(|(packets, bytes)| Backlog { packets: unsigned(packets), bytes: unsigned(bytes) });
        let span = CountsSpan {
            span_ms,
            packets: unsigned(row.get(4)?),
            bytes: unsigned(row.get(5)?),
            wire_bytes: row.get::<_, Option<i64>>(6)?.map(unsigned),
            overlimits: unsigned(row.get(7)?),
            backlog_ms: backlog.map_or(0, |_| span_ms),
            backlog_byte_ms: backlog.map_or(0, |backlog| backlog.bytes.saturating_mul(span_ms)),
            most_backlog: backlog,
            dropped: drops.remove(&(id, queue)).unwrap_or_default(),
            waits: delays(row.get(10)?)?,
        };
        counts(row.get(0)?, queue, &span);
    }
    Ok(())
}

/// The delays of a row; `None` stands for none.
pub(super) fn delays(bytes: Option<Vec<u8>>) -> Result<Delays, ErrorKind> {
    Delays::from_bytes(&bytes.unwrap_or_default()).map_err(|error: NoDelays| ErrorKind::Row(error.to_string()))
}

impl Batch {
    /// Adds raw rows up to spans of each of these lengths in seconds.
    pub(super) fn of(connection: &Connection, rows: Rows, steps_s: &[i64]) -> Result<Self, ErrorKind> {
        let Self { mut pings, mut counts } = Self::default();
        let begin = |ms: WallMs, step_s: i64| ms.div_euclid(step_s * 1000) * step_s;
        raw(
            connection,
            rows,
            |sent_ms, path, rtt_ns| {
                for step_s in steps_s {
                    pings.entry((*step_s, begin(sent_ms, *step_s), path)).or_default().record(rtt_ns);
                }
            },
            |end_ms, queue, span| {
                for step_s in steps_s {
                    // The interval that ends with a minute belongs to it.
                    counts.entry((*step_s, begin(end_ms - 1, *step_s), queue)).or_default().add(span);
                }
            },
        )?;
        Ok(Self { pings, counts })
    }
}

/// The raw rows that no minute has yet.
pub(super) fn pending(connection: &Connection) -> rusqlite::Result<Rows> {
    let after = connection.prepare_cached("SELECT rolled_interval FROM state")?.query_row([], |row| row.get(0))?;
    let last: Option<i64> =
        connection.prepare_cached("SELECT max(id) FROM interval")?.query_row([], |row| row.get(0))?;
    Ok(Rows { after, last: last.unwrap_or(after) })
}

impl Store {
    /// Adds the raw rows that no minute and no hour has yet to theirs. Returns whether some are left: a long absence
    /// of the caller takes several transactions.
    ///
    /// # Errors
    /// Another process holds a lock, or there is no space: then nothing has changed.
    pub fn roll_up(&mut self) -> Result<bool, Error> {
        let rolled = self.try_roll_up();
        rolled.map_err(|kind| self.fail(kind))
    }

    fn try_roll_up(&mut self) -> Result<bool, ErrorKind> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let all = pending(&transaction)?;
        let rows = Rows { last: all.last.min(all.after + MOST_INTERVALS), ..all };
        let Batch { pings, counts } = Batch::of(&transaction, rows, &STEPS_S)?;
        for (key, span) in &pings {
            add_pings(&transaction, *key, span)?;
        }
        for (key, span) in &counts {
            add_counts(&transaction, *key, span)?;
        }
        transaction.prepare_cached("UPDATE state SET rolled_interval = ?1")?.execute([rows.last])?;
        transaction.commit()?;
        Ok(rows.last < all.last)
    }
}

fn add_pings(connection: &Connection, (step_s, begin_s, path): Key, more: &PingSpan) -> Result<(), ErrorKind> {
    let known = connection
        .prepare_cached("SELECT lost, rtts FROM ping_span WHERE step_s = ?1 AND begin_s = ?2 AND path = ?3")?
        .query_row([step_s, begin_s, path], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<Vec<u8>>>(1)?)))
        .optional()?;
    let mut span = match known {
        Some((lost, rtts)) => PingSpan { lost: unsigned(lost), rtts: delays(rtts)?, ..PingSpan::default() },
        None => PingSpan::default(),
    };
    span.add(more);
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO ping_span (step_s, begin_s, path, lost, rtts) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![step_s, begin_s, path, signed(span.lost), span.rtts.to_bytes()])?;
    Ok(())
}

/// The columns of a span's counts after its key.
pub(super) const COUNTS: &str = "span_ms, packets, bytes, wire_bytes, overlimits, backlog_ms, backlog_byte_ms, \
                                 most_backlog_packets, most_backlog_bytes, waits";

/// Reads [`COUNTS`] from the column `first` on.
pub(super) fn counts_of(row: &rusqlite::Row<'_>, first: usize) -> Result<CountsSpan, ErrorKind> {
    let count = |offset: usize| row.get::<_, i64>(first + offset).map(unsigned);
    let optional = |offset: usize| row.get::<_, Option<i64>>(first + offset).map(|count| count.map(unsigned));
    Ok(CountsSpan {
        span_ms: count(0)?,
        packets: count(1)?,
        bytes: count(2)?,
        wire_bytes: optional(3)?,
        overlimits: count(4)?,
        backlog_ms: count(5)?,
        backlog_byte_ms: count(6)?,
        most_backlog: optional(7)?.zip(optional(8)?).map(|(packets, bytes)| Backlog { packets, bytes }),
        dropped: BTreeMap::new(),
        waits: delays(row.get(first + 9)?)?,
    })
}

fn add_counts(connection: &Connection, (step_s, begin_s, queue): Key, more: &CountsSpan) -> Result<(), ErrorKind> {
    let mut span = CountsSpan::default();
    {
        let mut query = connection.prepare_cached(&format!(
            "SELECT {COUNTS} FROM counts_span WHERE step_s = ?1 AND begin_s = ?2 AND queue = ?3"
        ))?;
        let mut found = query.query([step_s, begin_s, queue])?;
        if let Some(row) = found.next()? {
            span = counts_of(row, 0)?;
        }
    }
    span.add(more);
    connection
        .prepare_cached(&format!(
            "INSERT OR REPLACE INTO counts_span (step_s, begin_s, queue, {COUNTS}) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        ))?
        .execute(params![
            step_s,
            begin_s,
            queue,
            signed(span.span_ms),
            signed(span.packets),
            signed(span.bytes),
            span.wire_bytes.map(signed),
            signed(span.overlimits),
            signed(span.backlog_ms),
            signed(span.backlog_byte_ms),
            span.most_backlog.map(|most| signed(most.packets)),
            span.most_backlog.map(|most| signed(most.bytes)),
            span.waits.to_bytes(),
        ])?;
    for (reason, packets) in &more.dropped {
        connection
            .prepare_cached(
                "INSERT INTO dropped_span (step_s, begin_s, queue, reason, packets) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT DO UPDATE SET packets = packets + excluded.packets",
            )?
            .execute(params![step_s, begin_s, queue, reason, signed(*packets)])?;
    }
    Ok(())
}
