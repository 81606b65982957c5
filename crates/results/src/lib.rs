//! What comes of a run, in files and on the terminal: one schema for simulated, live and analysed runs.
//!
//! | module | holds |
//! | --- | --- |
//! | [`schema`] | the shape of `summary.json` and `--json` |
//! | [`summarise`] | from a simulation's outcome to that shape, with phases |
//! | [`amp`] | A, M, P, F of a finished run |
//! | [`beside`] | live runs beside one another and beside the simulation |
//! | [`comparison`] | a row for each of several runs |
//! | `bounds`, `limits` | the closed-form bound beside each flow, and what held it back in words |
//! | `lines` | access lines that share a DSLAM |
//! | [`seeds`] | means over runs with several seeds |
//! | [`series`], [`parquet`] | samples over time, and `series.parquet` |
//! | [`report`] | `report.html`, comparisons, and pictures in the one plot style |
//! | [`mod@format`] | numbers for people |
//! | [`atomic`] | files that are there whole or not at all |
//! | [`capture`] | packets as pcapng |
//! | [`json`] | JSON without characters that a terminal obeys |
//! | [`table`] | the same on a terminal |
//! | [`mod@write`] | the files of a run, all or none |
//! | [`read`] | the same files, read again |

pub mod amp;
mod atm;
pub mod atomic;
pub mod beside;
mod bounds;
pub mod capture;
pub mod comparison;
pub mod format;
pub mod json;
mod limits;
mod lines;
pub mod parquet;
mod phases;
mod policing;
pub mod read;
pub mod report;
pub mod schema;
pub mod seeds;
pub mod series;
mod summarise;
pub mod table;
mod tabular;
pub mod write;

pub use schema::Summary;
pub use series::Series;
pub use summarise::{Origin, delay, summarise};

/// A run, its samples, and what tells it from others that it is compared with.
#[derive(Clone, Debug)]
pub struct Run {
    /// Such as `without remedy` or `up.queue.kind=sad`; empty for a run on its own.
    pub label: String,
    /// The overrides, `key=value`, that set it apart from those runs; the rest of its `inputs.set` they share.
    pub own: Vec<String>,
    /// Every scalar result.
    pub summary: Summary,
    /// Samples over time.
    pub series: Vec<Series>,
}
