//! The constants of flent's format, and faults of its files.

/// Suffix of a data file.
pub const SUFFIX: &str = ".flent.gz";
/// Version of the format that is written, and the newest that is read.
pub(super) const VERSION: u64 = 4;
/// Time between two values of a written series, and flent's usual one.
pub(super) const STEP_S: f64 = 0.2;
/// The key of lastmile's own values.
pub(super) const OWN: &str = "LASTMILE";
/// The prefix of the name of every ping's series.
pub(super) const PING: &str = "Ping (ms) ";

/// A file that is not flent's, or that contradicts itself.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {key}: {what}")]
pub struct Error {
    /// Name of the file.
    pub file: String,
    /// Path of the key, such as `results."TCP upload"[3]`; `file` for the whole.
    pub key: String,
    /// The fault, and the expected form.
    pub what: String,
}

/// A fault with its key, without the name of the file.
pub(super) struct Fault {
    pub(super) key: String,
    pub(super) what: String,
}

/// A fault at this key.
pub(super) fn fault(key: impl Into<String>, what: impl Into<String>) -> Fault {
    Fault { key: key.into(), what: what.into() }
}
