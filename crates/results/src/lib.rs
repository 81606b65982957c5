//! What comes of a run, in files and on the terminal: one schema for simulated, live and analysed runs.

mod format;
pub mod parquet;
pub mod report;
pub mod schema;
pub mod series;
mod tabular;

/// A run, its samples, and what tells it from others that it is compared with.
#[derive(Clone, Debug)]
pub struct Run {
    /// Such as `without remedy` or `up.queue.kind=sad`; empty for a run on its own.
    pub label: String,
    /// Every scalar result.
    pub summary: schema::Summary,
    /// Samples over time.
    pub series: Vec<series::Series>,
}
