//! A result as text: what `summary.json` holds and `--json` prints.

use std::io;

use serde::{Deserialize, Serialize};

use super::Summary;
use crate::json;

/// What the machine had to do with it. Never part of `summary.json`.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Timing {
    /// Time that the run took.
    pub wall_s: f64,
    /// Events handled in a second of it.
    pub events_per_s: f64,
    /// Simulated seconds in a second of it.
    pub speed: f64,
    /// Largest resident memory of the process, where the system tells.
    pub memory_bytes: Option<u64>,
}

/// What `--json` prints: the summary, and what depends on the machine under `timing`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Document<'a> {
    /// The summary, its keys at the top level.
    #[serde(flatten)]
    pub summary: &'a Summary,
    /// What depends on the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
}

impl Summary {
    /// The text of `summary.json`: indented by two, keys in the order of the fields, a line feed at the end.
    ///
    /// Numbers have the fewest digits that read back as the same value; what is no finite number is `null`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }

    /// Writes that text, a little at a time: of very many flows it is longer than all else.
    ///
    /// # Errors
    /// Those of `to`.
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

    /// Writes that text, a little at a time.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write_json(&self, to: impl io::Write) -> io::Result<()> {
        json::write_pretty(self, to)
    }
}
