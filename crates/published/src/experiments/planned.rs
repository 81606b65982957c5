//! Publications whose tables are all run by their plans, `experiments/KEY.toml`.
//!
//! - CED, December 2006: downloads over cable whose acknowledgements wait for grants.
//! - Custura and others, ASMS 2020: ACKs of QUIC over a satellite.
//! - De Schepper and others, CoNEXT 2016: PI2 with classic and scalable flows.
//! - Hock and others, ICNP 2017: several BBR flows.
//! - Karlstad University, ANRW 2025: congestion controls over Starlink.
//! - Ware and others, IMC 2019: BBR beside loss-based flows.
//! - White and others, draft-white-tsvwg-lld-00: latency of DOCSIS by generation.

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

use super::keys::{CED2006, CUSTURA2020, DESCHEPPER2016, HOCK2017, STARLINK2025, WARE2019, WHITE2019};
use super::open_questions::Reproducible as _;
use super::tables::{Tables, plan};

/// Each publication with its tables.
pub(super) const PUBLICATIONS: [(&str, Tables); 7] = [
    (CED2006, &[("rgt", ced2006)]),
    (CUSTURA2020, &[("ack-ratio", custura2020), ("ack-size", custura2020), ("return-bytes", custura2020)]),
    (DESCHEPPER2016, &[("coexistence", deschepper2016), ("starvation", deschepper2016), ("control", deschepper2016)]),
    (HOCK2017, &[("loss", hock2017), ("no-loss", hock2017), ("queue", hock2017), ("rtt", hock2017)]),
    (STARLINK2025, &[("single", starlink2025), ("several", starlink2025), ("hystart", starlink2025)]),
    (WARE2019, &[("1c", ware2019), ("8a-1", ware2019), ("8a-4", ware2019), ("8c-1", ware2019), ("8c-4", ware2019)]),
    (WHITE2019, &[("1", white2019)]),
];

fn ced2006(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(CED2006)?.reproduce(table)
}

fn custura2020(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(CUSTURA2020)?.reproduce(table)
}

fn deschepper2016(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(DESCHEPPER2016)?.reproduce(table)
}

fn hock2017(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(HOCK2017)?.reproduce(table)
}

fn starlink2025(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(STARLINK2025)?.reproduce(table)
}

fn ware2019(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(WARE2019)?.reproduce(table)
}

fn white2019(table: &Table) -> Result<TableResult, ExperimentError> {
    plan(WHITE2019)?.reproduce(table)
}
