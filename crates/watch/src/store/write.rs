//! Raw rows: an interval at a time.

use rusqlite::{Connection, TransactionBehavior, params};

use super::Store;
use super::error::Error;
use crate::sample::{Counts, Interval, Ping};

impl Store {
    /// Writes an interval, all of it or nothing.
    ///
    /// # Errors
    /// Another process holds a lock, or there is no space: then nothing was written, and the call may be repeated.
    pub fn append(&mut self, interval: &Interval) -> Result<(), Error> {
        let before = self.names.clone();
        let written = self.try_append(interval);
        if written.is_err() {
            // Names of the transaction that was rolled back are not in the store.
            self.names = before;
        }
        written.map_err(|error| self.wrong(error))
    }

    fn try_append(&mut self, interval: &Interval) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let id = transaction
            // Never a number that minutes may have already, also when every interval has been taken away.
            .prepare_cached(
                "INSERT INTO interval (id, end_ms, span_ms) SELECT 1 + max(ifnull((SELECT max(id) FROM interval), 0), \
                 (SELECT rolled_interval FROM state)), ?1, ?2",
            )?
            .insert(params![interval.end_ms, signed(interval.span_ms)])?;
        for ping in &interval.pings {
            let path = self.names.path(&transaction, &ping.path)?;
            write_ping(&transaction, id, path, ping)?;
        }
        for (name, counts) in &interval.queues {
            let queue = self.names.queue(&transaction, name)?;
            write_counts(&transaction, id, queue, counts)?;
        }
        for event in &interval.events {
            transaction
                .prepare_cached("INSERT INTO event (at_ms, kind, detail) VALUES (?1, ?2, ?3)")?
                .execute(params![event.at_ms, event.kind.name(), event.detail])?;
        }
        transaction.commit()
    }
}

fn write_ping(connection: &Connection, interval: i64, path: i64, ping: &Ping) -> rusqlite::Result<()> {
    // Two requests of one path within a millisecond do not occur; the first then stays.
    connection
        .prepare_cached("INSERT OR IGNORE INTO ping (interval, path, age_ms, rtt_ns) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![interval, path, signed(ping.age_ms), ping.rtt_ns.map(signed)])?;
    Ok(())
}

fn write_counts(connection: &Connection, interval: i64, queue: i64, counts: &Counts) -> rusqlite::Result<()> {
    let waits = (!counts.waits.is_empty()).then(|| counts.waits.to_bytes());
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO counts (interval, queue, span_ms, packets, bytes, wire_bytes, overlimits, \
             backlog_packets, backlog_bytes, waits) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            interval,
            queue,
            signed(counts.span_ms),
            signed(counts.packets),
            signed(counts.bytes),
            counts.wire_bytes.map(signed),
            signed(counts.overlimits),
            counts.backlog.map(|backlog| signed(backlog.packets)),
            counts.backlog.map(|backlog| signed(backlog.bytes)),
            waits,
        ])?;
    for (reason, packets) in counts.dropped.iter().filter(|(_, packets)| **packets > 0) {
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO dropped (interval, queue, reason, packets) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![interval, queue, reason, signed(*packets)])?;
    }
    Ok(())
}

/// A count as SQLite has it. No count of this program exceeds 2^63.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count from the store, in which a negative one can only be damage.
pub(super) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
