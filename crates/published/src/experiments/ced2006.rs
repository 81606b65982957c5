//! CED, December 2006: downloads over cable whose acknowledgements wait for grants.
//!
//! The simulated table is in `experiments/ced2006.toml`. Throughput counts packets of 1500 bytes.

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

pub(super) use super::keys::CED2006 as KEY;
use super::open_questions::Reproducible as _;
use super::tables::{Tables, plan};

/// The tables, each with the function that reproduces it.
pub(super) const TABLES: Tables = &[("rgt", simulated)];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(KEY)?.reproduce(table)
}
