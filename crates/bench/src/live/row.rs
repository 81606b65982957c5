//! A row of the tables of live measurements.

use std::error::Error;

use serde::{Deserialize, Serialize};

pub(super) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// A row of a table: its cells by their headings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Rows with equal headings share a table.
    pub(super) headings: Vec<String>,
    pub(super) cells: Vec<String>,
}

impl Row {
    pub(super) fn new<const N: usize>(headings: [&str; N], cells: [String; N]) -> Self {
        Self { headings: headings.map(str::to_owned).into(), cells: cells.into() }
    }
}
