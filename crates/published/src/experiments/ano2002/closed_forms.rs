//! Ano et al. 2002, sections 3 and 4.1: cells of a segment, contracts, and the shares that follow from them.

use lastmile_atm::aal5::Encapsulation;
use lastmile_units::ByteCount;

use crate::data::{Row, Table};
use crate::reproduction::TableResult;
use crate::value::Values;

use super::super::closed_form::closed_form;
use super::{KEY, number, whole};
use crate::error::ExperimentError;
use crate::rounding::significant;

/// Cells of the trunk, in Mbit/s.
const TRUNK_MBPS: f64 = 149.76;
/// Virtual paths: those with a contract, and all.
const AF: usize = 2;
const PATHS: usize = 8;
/// TCP connections of a path.
const CONNECTIONS: usize = 6;
/// TCP payload of what a cell's bits carry: 8192 bytes in 172 cells.
const PAYLOAD: f64 = 8192.0 / (172.0 * 53.0);

/// Payload and cells of full segments.
fn cells(bytes: u64) -> Result<u64, ExperimentError> {
    let cells = Encapsulation::LlcSnap.cells(ByteCount::new(bytes + 40));
    cells.map(u64::from).ok_or(ExperimentError::MissingSetting("mss_bytes"))
}

/// Figure 4.
pub(super) fn segment(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, frame, |_| (true, String::new()))
}

fn frame(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let bytes = whole(&settings, "mss_bytes")?;
    let cells = cells(bytes)?;
    let whole = |value: u64| value as f64;
    let mut values = Values::new();
    values.set("cells", whole(cells));
    values.set("padding_bytes", whole(48 * cells - (bytes + 40 + 8 + 8)));
    values.set("pdu_bytes", whole(48 * cells));
    values.set("wire_bytes", whole(53 * cells));
    values.set("efficiency", significant(bytes as f64 / (53.0 * cells as f64)));
    Ok(values)
}

/// Section 3.2.
pub(super) fn contracts(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, contract, |rows| {
        let bursts = rows.iter().find_map(|row| row.theory.number("cells_for_64k"));
        (
            bursts == Some(8256.0),
            "MBS0 is six buffers of 64 kbytes; windows of 48 kbytes would need 6192 cells".to_owned(),
        )
    })
}

fn contract(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let trunk = number(&settings, "trunk_cell_bps")? / 1e6;
    let mut values = Values::new();
    match row.params.text("item") {
        Some("PCR01") => values.set("mbps", trunk),
        Some("SCR0") => values.set("mbps", trunk / number(&settings, "pvps")?),
        Some("MBS0") => {
            let buffers = |segments: u64| Ok(whole(&settings, "tcp_per_pvp")? * segments * cells(8192)?);
            let (most, least): (u64, u64) = (buffers(8)?, buffers(6)?);
            values.set("cells", most as f64);
            values.set("lower_bound_cells_48k", least as f64);
            values.set("cells_for_64k", most as f64);
        }
        _ => values.set("mbps", significant(trunk * PAYLOAD)),
    }
    Ok(values)
}

/// Section 4.1.
pub(super) fn shares(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, share, |_| (true, String::new()))
}

fn share(_: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let contract = TRUNK_MBPS / PATHS as f64;
    let rest = (TRUNK_MBPS - AF as f64 * contract) / PATHS as f64;
    let path = if row.params.text("phb") == Some("AF") { rest + contract } else { rest };
    let mut values = Values::new();
    values.set("pvp_mbps", significant(path));
    values.set("tcp_mbps", significant(path * PAYLOAD / CONNECTIONS as f64));
    Ok(values)
}
