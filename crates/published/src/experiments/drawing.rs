//! A run whose series a page draws.

use lastmile_scenario::Scenario;

/// A run whose series a table is about, to be drawn.
#[derive(Debug)]
pub struct Drawing {
    /// Its name among the others.
    pub label: String,
    /// The run.
    pub scenario: Scenario,
    /// The series to be drawn, by name.
    pub series: String,
    /// Of which link or flow; those whose names begin so.
    pub of: String,
}
