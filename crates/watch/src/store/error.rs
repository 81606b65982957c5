//! Failures of the store.

use std::fmt;
use std::path::PathBuf;

use rusqlite::ErrorCode;

/// A failure of the store.
#[derive(Debug)]
pub struct Error {
    pub(super) file: PathBuf,
    pub(super) kind: ErrorKind,
}

/// The operation that failed.
#[derive(Debug)]
pub(super) enum ErrorKind {
    /// The library's error.
    Sqlite(rusqlite::Error),
    /// A file of another program, or of another version.
    NotOurs(String),
    /// A row that no version of this program writes.
    Row(String),
    /// It has a watcher already.
    Watched,
    /// It could not be locked.
    Lock(std::io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match &self.kind {
            // SQLite names the file that it cannot open, too.
            ErrorKind::Sqlite(error) => {
                let (told, named) = (error.to_string(), format!(": {}", self.file.display()));
                f.write_str(told.strip_suffix(&named).unwrap_or(&told))
            }
            ErrorKind::NotOurs(why) | ErrorKind::Row(why) => f.write_str(why),
            ErrorKind::Watched => f.write_str("another watcher writes to it: a store has one"),
            ErrorKind::Lock(error) => write!(f, "locking it: {error}"),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// True for a file of another program, or of another version.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        matches!(self.kind, ErrorKind::NotOurs(_))
    }

    /// True if another process holds a lock.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.is(&[ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked])
    }

    /// True if the limit of the store, or the disk, is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.is(&[ErrorCode::DiskFull])
    }

    fn is(&self, codes: &[ErrorCode]) -> bool {
        match &self.kind {
            ErrorKind::Sqlite(error) => error.sqlite_error_code().is_some_and(|code| codes.contains(&code)),
            _ => false,
        }
    }
}
