//! Kalyanaraman, Shekhar, Kidambi 1999: the AMP model; ACK dropping, ACK regeneration and two classes upstream.
//!
//! The simulated tables are in `experiments/kalyanaraman1999.toml`. Throughput is TCP payload.

mod closed_forms;

use crate::data::Table;
use crate::error::ExperimentError;
use crate::value::Values;

pub(super) use super::keys::KALYANARAMAN1999 as KEY;
use super::tables::{Tables, plan, whole};

/// The tables that are calculated, each with the function that does so. The plan of the publication has the others.
pub(super) const TABLES: Tables = &[
    ("text-1", closed_forms::rates),
    ("text-2-example", closed_forms::worked_example),
    ("text-2-cbq", closed_forms::classes),
    ("6", closed_forms::cell_tax),
];

/// A run of ten seconds of `table`, which is table 1.
pub(super) fn yardstick(table: &Table) -> Result<(), ExperimentError> {
    let row = table.rows.last().ok_or(ExperimentError::MissingSetting("rows"))?;
    let brief: Values = [("duration_s", 10)].into_iter().collect();
    plan(KEY)?.run_once(table, row, &brief)
}
