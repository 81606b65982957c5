//! A result as text: the contents of `summary.json` and of `--json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::Summary;
use crate::json;

/// Time and memory of the run. Never part of `summary.json`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Real time of the run.
    pub wall_s: f64,
    /// Events per second of real time.
    pub events_per_s: f64,
    /// Simulated seconds per second of real time.
    pub speed: f64,
    /// Largest resident memory of the process, if the system reports it.
    pub memory_bytes: Option<u64>,
}

/// The contents of `--json`: the summary, and machine-dependent values under `timing`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document<'a> {
    /// The summary, its keys at the top level.
    #[serde(flatten)]
    pub summary: &'a Summary,
    /// Machine-dependent values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

impl Summary {
    /// The text of `summary.json`: indented by two, keys in the order of the fields, a line feed at
    /// the end.
    ///
    /// Numbers have the fewest digits that parse to the same value. A number that is not finite is
    /// `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }

    /// Writes the text of [`Summary::to_json`] in parts, because with many flows it is larger than
    /// all other data.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write_json(&self, to: impl io::Write) -> io::Result<()> {
        json::write_pretty(self, to)
    }
}

impl Document<'_> {
    /// The text that `--json` prints, in the form of [`Summary::to_json`].
    #[must_use]
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }

    /// Writes the text of [`Document::to_json`] in parts.
    ///
    /// # Errors
    /// Errors of `to`.
    pub fn write_json(&self, to: impl io::Write) -> io::Result<()> {
        json::write_pretty(self, to)
    }
}
