//! Publications whose tables are all run by their plans, `experiments/KEY.toml`.
//!
//! - CED, December 2006: downloads over cable whose acknowledgements wait for grants.
//! - Ware and others, IMC 2019: BBR beside loss-based flows.
//! - White and others, draft-white-tsvwg-lld-00: latency of DOCSIS by generation.

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

use super::keys::{CED2006, WARE2019, WHITE2019};
use super::open_questions::Reproducible as _;
use super::tables::{Tables, plan};

/// Each publication with its tables.
pub(super) const PUBLICATIONS: [(&str, Tables); 3] = [
    (CED2006, &[("rgt", ced2006)]),
    (WARE2019, &[("1c", ware2019), ("8a-1", ware2019), ("8a-4", ware2019), ("8c-1", ware2019), ("8c-4", ware2019)]),
    (WHITE2019, &[("1", white2019)]),
];

fn ced2006(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(CED2006)?.reproduce(table)
}

fn ware2019(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(WARE2019)?.reproduce(table)
}

fn white2019(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(WHITE2019)?.reproduce(table)
}
