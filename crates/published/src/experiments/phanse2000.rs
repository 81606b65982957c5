//! Phanse 2000: TCP over ADSL, plain, over ATM, over PPP over ATM; the Smart ACK Dropper.
//!
//! The simulated tables are in `experiments/phanse2000.toml`.

mod closed_forms;
mod growth;

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

pub(super) use super::keys::PHANSE2000 as KEY;
use super::open_questions::Reproducible as _;
use super::tables::{Tables, plan, whole};

/// The tables, each with the function that reproduces it.
pub(super) const TABLES: Tables = &[
    ("2.1", closed_forms::applications),
    ("text-4.2", closed_forms::line_rates),
    ("text-3.4", closed_forms::worked_example),
    ("text-3.7.2", closed_forms::ppp_header),
    ("text-5.2.1", closed_forms::cell_tax_example),
    ("text-5.3", closed_forms::ack_cells),
    ("5.1", simulated),
    ("5.2", simulated),
    ("text-5.1.2", simulated),
    ("5.3", simulated),
    ("5.4", simulated),
    ("5.5", simulated),
    ("text-5.2.2", simulated),
    ("5.6", simulated),
    ("5.7", simulated),
    ("fig-5.9", simulated),
    ("5.8", simulated),
    ("text-5.4.1", growth::window_growth),
    ("5.9", simulated),
    ("5.10", simulated),
    ("5.11", simulated),
    ("5.12", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(KEY)?.reproduce(table)
}
