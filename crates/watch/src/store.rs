//! The store: one file of SQLite.
//!
//! | table | a row is |
//! | --- | --- |
//! | `path`, `queue` | a name of what is watched |
//! | `interval` | an interval of the watcher: one transaction |
//! | `ping` | one request and its round-trip time, `NULL` without a reply |
//! | `counts`, `dropped` | the counts of a queue in an interval, and its drops by reason |
//! | `ping_span`, `counts_span`, `dropped_span` | the same of a minute or an hour of UTC (`step_s`) |
//! | `event` | a start, a clock that was set, a source that is gone |
//! | `state` | the last interval that minutes and hours contain |
//!
//! An interval is written in one transaction, in write-ahead mode: a process that is killed loses
//! at most the interval that it had not written. Minutes and hours are added up from raw rows in
//! the order of their insertion and in one transaction with `state`, so that each row counts once,
//! however often the process was killed or the clock was set.

mod error;
mod limits;
mod names;
mod read;
mod retain;
mod roll;
mod schema;
mod write;

use std::fs::{File, TryLockError};
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

pub use error::Error;
pub use limits::Limits;
pub use read::{Question, Resolution, Spans};
pub use retain::{Retention, Trimmed};
pub use roll::{CountsSpan, PingSpan};

use error::ErrorKind;
use names::Names;

/// The time that a statement waits for another process's lock. The watcher then goes on, and tries again with the next
/// interval.
const LOCK_PATIENCE: Duration = Duration::from_millis(200);
/// All statements that a watcher repeats: the shapes of an interval, of its minutes and of what is old.
const STATEMENTS: usize = 64;
/// The time that a reader waits.
const READER_PATIENCE: Duration = Duration::from_secs(5);

/// A store that is open.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    file: PathBuf,
    names: Names,
    kept: Limits,
    /// Of a watcher. It closes after the connection: whatever closes a file takes SQLite's locks of this process.
    _alone: Option<File>,
}

impl Store {
    /// Opens the store of a watcher, or makes it.
    ///
    /// # Errors
    /// The file is of another program or a later version, cannot be written, or has a watcher.
    pub fn open(file: &FilePath, kept: Limits) -> Result<Self, Error> {
        let fail = |kind| Error { file: file.to_owned(), kind };
        refuse_folder(file).map_err(fail)?;
        let connection = Connection::open_with_flags(
            file,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        );
        let connection = connection.map_err(|error| fail(ErrorKind::Sqlite(error)))?;
        let alone = alone(file).map_err(fail)?;
        // The first lock is waited for: a reader may be about to end.
        connection.busy_timeout(READER_PATIENCE).map_err(|error| fail(ErrorKind::Sqlite(error)))?;
        schema::prepare(&connection, kept.limit_bytes).map_err(fail)?;
        connection.busy_timeout(LOCK_PATIENCE).map_err(|error| fail(ErrorKind::Sqlite(error)))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Self { connection, file: file.to_owned(), names: Names::default(), kept, _alone: Some(alone) })
    }

    /// Opens a store to read it; a watcher may write it meanwhile.
    ///
    /// # Errors
    /// There is no such file, or it is no store of this version.
    pub fn read(file: &FilePath) -> Result<Self, Error> {
        let fail = |kind| Error { file: file.to_owned(), kind };
        refuse_folder(file).map_err(fail)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).map_err(|error| fail(ErrorKind::Sqlite(error)))?;
        connection.busy_timeout(READER_PATIENCE).map_err(|error| fail(ErrorKind::Sqlite(error)))?;
        schema::check(&connection).map_err(fail)?;
        let (names, kept) = (Names::default(), Limits::default());
        Ok(Self { connection, file: file.to_owned(), names, kept, _alone: None })
    }

    /// Its file.
    #[must_use]
    pub fn file(&self) -> &FilePath {
        &self.file
    }

    /// The bytes that the store takes on the disk, the write-ahead log included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        ["", "-wal"]
            .iter()
            .filter_map(|suffix| std::fs::metadata(beside(&self.file, suffix)).ok())
            .map(|m| m.len())
            .sum()
    }

    /// Checks every page: for tests, and after doubts about a disk.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn check_integrity(&self) -> Result<(), Error> {
        let answer: Result<String, _> = self.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0));
        match answer {
            Ok(ok) if ok == "ok" => Ok(()),
            Ok(fault) => Err(self.fail(ErrorKind::Row(fault))),
            Err(error) => Err(self.wrong(error)),
        }
    }

    fn fail(&self, kind: ErrorKind) -> Error {
        Error { file: self.file.clone(), kind }
    }

    fn wrong(&self, error: rusqlite::Error) -> Error {
        self.fail(ErrorKind::Sqlite(error))
    }
}

/// SQLite's own words for a folder are those of a broken disk.
fn refuse_folder(file: &FilePath) -> Result<(), ErrorKind> {
    if file.is_dir() { Err(ErrorKind::NotOurs("it is a folder; a store is a file".to_owned())) } else { Ok(()) }
}

/// The lock that a store's watcher has for as long as it lives (flock(2)). SQLite has locks of another kind, and
/// readers have none of this kind.
fn alone(file: &FilePath) -> Result<File, ErrorKind> {
    let file = File::open(file).map_err(ErrorKind::Lock)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(ErrorKind::Watched),
        Err(TryLockError::Error(error)) => Err(ErrorKind::Lock(error)),
    }
}

/// A file beside the store: the write-ahead log, the index of it.
fn beside(file: &FilePath, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests;
