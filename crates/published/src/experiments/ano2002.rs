//! Ano, Decre and Hasegawa 2002: assured forwarding as SBR3 with selective cell discard, beside
//! best effort as UBR, on one OC-3c trunk.
//!
//! The measured tables are simulated by `experiments/ano2002.toml`. The base case was fixed, with
//! its reasons, before any throughput was compared.

mod closed_forms;

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

pub(super) use super::keys::ANO2002 as KEY;
use super::open_questions::Reproducible as _;
use super::tables::{Tables, number, plan, whole};

/// The tables, each with the function that reproduces it.
pub(super) const TABLES: Tables = &[
    ("fig-4", closed_forms::segment),
    ("text-3.2", closed_forms::contracts),
    ("text-4.1", closed_forms::shares),
    ("fig-3", simulated),
    ("text-4.1-delay", simulated),
    ("fig-5", simulated),
    ("1", simulated),
    ("fig-7", simulated),
    ("fig-8", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(KEY)?.reproduce(table)
}
