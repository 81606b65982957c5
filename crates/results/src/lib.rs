//! The result of a run, in files and on the terminal: one schema for simulated, live and analysed
//! runs.
//!
//! | module | holds |
//! | --- | --- |
//! | [`schema`] | the shape of `summary.json` and `--json` |
//! | [`summarise`] | from a simulation's outcome to that shape, with phases |
//! | [`amp`] | A, M, P, F of a finished run |
//! | [`live_comparison`] | live runs compared with each other and with the simulation |
//! | [`comparison`] | one row for each of several runs |
//! | `bounds`, `limits` | the closed-form bound of each flow, and its limit in words |
//! | `phases`, `interval` | the parts of a run, and the measurements between two snapshots |
//! | `measures` | the measures of each part, which several runs are compared by |
//! | `lines` | access lines that share a DSLAM |
//! | [`seeds`] | means over runs with several seeds |
//! | [`series`], [`parquet`] | samples over time, and `series.parquet` |
//! | [`studied`] | the page of a study |
//! | [`report`] | `report.html`, comparisons, and pictures in the one plot style |
//! | [`mod@format`] | numbers for people |
//! | [`atomic`] | files that exist whole or not at all |
//! | [`capture`] | packets as pcapng |
//! | [`captured`] | captured connections: a page, and a table of segments |
//! | [`json`] | JSON without characters that a terminal interprets |
//! | [`table`] | the result on a terminal |
//! | [`mod@write`] | the files of a run, all or none |
//! | [`read`] | reads the files of a run |

pub mod amp;
mod atm;
pub mod atomic;
mod bounds;
pub mod capture;
pub mod captured;
pub mod comparison;
pub mod experience;
pub mod format;
mod goodput;
mod interval;
pub mod json;
mod limits;
mod lines;
pub mod live_comparison;
mod measures;
pub mod parquet;
mod phases;
mod policing;
pub mod read;
pub mod report;
pub mod schema;
pub mod seeds;
pub mod series;
pub mod studied;
mod summarise;
pub mod table;
mod tabular;
pub mod write;

pub use phases::in_words;
pub use schema::Summary;
pub use series::Series;
pub use summarise::{Origin, delay, grants, summarise};

/// A run, its samples, and its name among compared runs.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name among compared runs, such as `without remedy` or `up.queue.kind=sad`; empty for a
    /// single run.
    pub label: String,
    /// The overrides, `key=value`, in which it differs from the compared runs; all share the rest
    /// of `inputs.set`.
    pub own: Vec<String>,
    /// Every scalar result.
    pub summary: Summary,
    /// Samples over time.
    pub series: Vec<Series>,
}
