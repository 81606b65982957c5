//! Tables, and settings of the database.

use rusqlite::{Connection, TransactionBehavior};

use super::error::ErrorKind;

/// `lmwa`: what file(1) and this program know a store by.
const APPLICATION: i32 = 0x6c6d_7761;
/// The version of the tables.
pub(super) const VERSION: i32 = 1;
/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;
/// The write-ahead log is copied into the file once it has this many pages.
const CHECKPOINT_PAGES: u32 = 256;
/// Bytes of the limit that are left to the write-ahead log, which is a file of its own.
pub(super) const LOG_BYTES: u64 = 8 << 20;

const TABLES: &str = "
CREATE TABLE path (id INTEGER PRIMARY KEY, target TEXT NOT NULL, code_point INTEGER NOT NULL,
    UNIQUE (target, code_point));
CREATE TABLE queue (id INTEGER PRIMARY KEY, source TEXT NOT NULL, place TEXT NOT NULL, class TEXT NOT NULL,
    UNIQUE (source, place, class));
CREATE TABLE interval (id INTEGER PRIMARY KEY, end_ms INTEGER NOT NULL, span_ms INTEGER NOT NULL);
CREATE INDEX interval_end ON interval (end_ms);
CREATE TABLE ping (interval INTEGER NOT NULL, path INTEGER NOT NULL, age_ms INTEGER NOT NULL, rtt_ns INTEGER,
    PRIMARY KEY (interval, path, age_ms)) WITHOUT ROWID;
CREATE TABLE counts (interval INTEGER NOT NULL, queue INTEGER NOT NULL, span_ms INTEGER NOT NULL,
    packets INTEGER NOT NULL, bytes INTEGER NOT NULL, wire_bytes INTEGER, overlimits INTEGER NOT NULL,
    backlog_packets INTEGER, backlog_bytes INTEGER, waits BLOB,
    PRIMARY KEY (interval, queue)) WITHOUT ROWID;
CREATE TABLE dropped (interval INTEGER NOT NULL, queue INTEGER NOT NULL, reason TEXT NOT NULL,
    packets INTEGER NOT NULL, PRIMARY KEY (interval, queue, reason)) WITHOUT ROWID;
CREATE TABLE ping_span (step_s INTEGER NOT NULL, begin_s INTEGER NOT NULL, path INTEGER NOT NULL,
    lost INTEGER NOT NULL, rtts BLOB NOT NULL,
    PRIMARY KEY (step_s, begin_s, path)) WITHOUT ROWID;
CREATE TABLE counts_span (step_s INTEGER NOT NULL, begin_s INTEGER NOT NULL, queue INTEGER NOT NULL,
    span_ms INTEGER NOT NULL, packets INTEGER NOT NULL, bytes INTEGER NOT NULL, wire_bytes INTEGER,
    overlimits INTEGER NOT NULL, backlog_ms INTEGER NOT NULL, backlog_byte_ms INTEGER NOT NULL,
    most_backlog_packets INTEGER, most_backlog_bytes INTEGER, waits BLOB NOT NULL,
    PRIMARY KEY (step_s, begin_s, queue)) WITHOUT ROWID;
CREATE TABLE dropped_span (step_s INTEGER NOT NULL, begin_s INTEGER NOT NULL, queue INTEGER NOT NULL,
    reason TEXT NOT NULL, packets INTEGER NOT NULL,
    PRIMARY KEY (step_s, begin_s, queue, reason)) WITHOUT ROWID;
CREATE TABLE event (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL);
CREATE TABLE state (rolled_interval INTEGER NOT NULL);
INSERT INTO state VALUES (0);
";

/// Makes the tables of an empty file, and sets up the connection of a writer.
pub(super) fn prepare(connection: &Connection, limit_bytes: u64) -> Result<(), ErrorKind> {
    let fresh = is_empty(connection)?;
    if fresh {
        connection.execute_batch(&format!(
            "PRAGMA page_size = {PAGE}; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
        ))?;
        // All or nothing: a process may be killed in between.
        let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        if is_empty(&transaction)? {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
    }
    check(connection)?;
    // NORMAL: a killed process loses nothing that was committed. A power cut loses at most what was committed since
    // the last checkpoint, and leaves the store whole: sqlite.org/pragma.html#pragma_synchronous.
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; \
         PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}; PRAGMA journal_size_limit = {};",
        u64::from(CHECKPOINT_PAGES) * PAGE * 4
    ))?;
    let pages = limit_bytes.saturating_sub(LOG_BYTES) / PAGE;
    let _: i64 = connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |row| row.get(0))?;
    Ok(())
}

fn is_empty(connection: &Connection) -> Result<bool, ErrorKind> {
    let objects: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(other_program)?;
    let application: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    Ok(objects == 0 && application == 0)
}

/// A file that is no database is one of another program.
fn other_program(error: rusqlite::Error) -> ErrorKind {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => ErrorKind::NotOurs("it is no store of `lastmile watch`".to_owned()),
        _ => error.into(),
    }
}

/// Refuses a file of another program, or of another version.
pub(super) fn check(connection: &Connection) -> Result<(), ErrorKind> {
    let number = |pragma: &str| connection.query_row(&format!("PRAGMA {pragma}"), [], |row| row.get::<_, i32>(0));
    let application = number("application_id").map_err(other_program)?;
    if application != APPLICATION {
        return Err(ErrorKind::NotOurs("it is no store of `lastmile watch`".to_owned()));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Err(ErrorKind::NotOurs(format!(
            "its tables have version {version}, and this program reads version {VERSION}"
        )));
    }
    Ok(())
}

impl From<rusqlite::Error> for ErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
