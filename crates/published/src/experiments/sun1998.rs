//! Sun 1998: single packet discard (SPD), so that more of what TCP sends over UBR arrives usefully.
//!
//! The simulated tables are in `experiments/sun1998.toml`. The base case was fixed, with its
//! reasons, before any ratio was compared.

mod closed_forms;

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

pub(super) use super::keys::SUN1998 as KEY;
use super::open_questions::Reproducible as _;
use super::tables::{Tables, plan, whole};

/// The tables, each with the function that reproduces it.
pub(super) const TABLES: Tables = &[
    ("text-3.3", closed_forms::algorithm),
    ("text-4.1", closed_forms::parameters),
    ("5.1", simulated),
    ("5.3", simulated),
    ("5.4", simulated),
    ("5.6", simulated),
    ("5.7", simulated),
    ("5.8", simulated),
    ("5.10", simulated),
    ("5.11", simulated),
    ("text-5.3-rule", closed_forms::room),
    ("fig-5.12", simulated),
    ("5.12", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(KEY)?.reproduce(table)
}
