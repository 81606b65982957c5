//! Phanse 2000, sections 2 to 5: figures that follow from sizes and rates alone.

use lastmile_linklayer::LinkLayer;
use lastmile_theory::{Fraction, asymmetry};
use lastmile_units::ByteCount;

use crate::data::{Row, Table};
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;

use super::super::closed_form::{closed_form, quoted, range};
use super::{KEY, whole};
use crate::error::ExperimentError;

/// Table 2.1.
pub(super) fn applications(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| match range(table, "mbps") {
        Some((least, most)) => {
            (least < 0.1 && (most - 6.0).abs() < 1e-9, format!("from {:.0} kbit/s to {most} Mbit/s", least * 1e3))
        }
        None => (false, "no figures".to_owned()),
    }))
}

/// Section 4.2: the rates quoted are those that the tables of chapter 5 use.
pub(super) fn line_rates(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| match (range(table, "kbps"), range(table, "down_mbps")) {
        (Some((least, most)), Some((down, _))) => (
            (least, most) == (16.0, 96.0) && (1.4..1.6).contains(&down),
            format!("upstreams from {least} to {most} kbit/s; {down} Mbit/s of G.Lite, a T1 has 1.544"),
        ),
        _ => (false, "no figures".to_owned()),
    }))
}

/// Section 3.4.
pub(super) fn worked_example(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, example, |_| (true, String::new()))
}

fn example(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let fraction = |name| Ok(Fraction::whole(whole(&settings, name)?));
    let (down, up) = (fraction("down_bps")?, fraction("up_bps")?);
    let k = asymmetry::normalised(down, up, whole(&settings, "data_bytes")?, whole(&settings, "ack_bytes")?);
    let k = k.ok_or(ExperimentError::MissingSetting("data_bytes"))?;
    let bound = asymmetry::utilisation_bound(k, Fraction::ONE).checked_mul(down);
    let mut values = Values::new();
    values.set("k", k.as_f64());
    values.set("downstream_throughput_bound_bps", bound.map_or(0.0, Fraction::as_f64));
    Ok(values)
}

/// Section 3.7.2.
pub(super) fn ppp_header(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, ppp, |_| (true, String::new()))
}

fn ppp(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let link = link(&settings)?;
    let trailer = i64::try_from(whole(&settings, "aal5_trailer_bytes")?).unwrap_or_default();
    let total = i64::from(link.overhead());
    let mut values = Values::new();
    values.set("ppp_llc_overhead_bytes", total - trailer);
    values.set("total_per_packet_overhead_bytes", total);
    Ok(values)
}

/// Section 5.2.1.
pub(super) fn cell_tax_example(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, cell_tax, |rows| {
        let k = |name| rows.iter().find_map(|row| row.theory.number(name)).unwrap_or_default();
        let (with, without) = (k("k"), k("k_without_atm"));
        (with > without, format!("k {without:.3} without ATM, {with:.3} with"))
    })
}

fn cell_tax(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let link = link(&settings)?;
    let mut values = Values::new();
    if let Some(bytes) = settings.integer("ip_bytes") {
        let ip = ByteCount::new(bytes);
        let cells = link.cells(ip).ok_or(ExperimentError::MissingSetting("link_layer"))?.as_u64();
        let wire = link.on_wire(ip).as_u64();
        let padding = wire - 5 * cells - link.frame(ip);
        let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        values.set("cells", count(cells));
        values.set("wire_bytes", count(wire));
        values.set("cell_header_bytes", count(5 * cells));
        values.set("padding_bytes", count(padding));
        values.set("overhead_bytes", count(wire - bytes));
        return Ok(values);
    }
    let (down, up) = (whole(&settings, "down_bps")?, whole(&settings, "up_bps")?);
    let (data, ack) = (whole(&settings, "ip_mtu_bytes")?, whole(&settings, "ack_bytes")?);
    let on_wire = |bytes| link.on_wire(ByteCount::new(bytes)).as_u64();
    let k = |data, ack| {
        let k = asymmetry::normalised(Fraction::whole(down), Fraction::whole(up), data, ack);
        k.map(Fraction::as_f64).ok_or(ExperimentError::MissingSetting("ip_mtu_bytes"))
    };
    values.set("k", k(on_wire(data), on_wire(ack))?);
    values.set("k_without_atm", k(data, ack)?);
    Ok(values)
}

/// Section 5.3.
pub(super) fn ack_cells(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, pdu, |rows| {
        let cells = |case: &str| {
            let named = |row: &&RowResult| row.params.text("case") == Some(case);
            rows.iter().find(named).and_then(|row| row.theory.number("cells")).unwrap_or_default()
        };
        // The most that a compressed ACK may have and still fit one cell: 48 bytes without PPP, LLC and trailer.
        let fits = LinkLayer::from_name("ppp-llc-aal5")
            .and_then(|link| link.largest_ip_in_cells(lastmile_units::CellCount::new(1)))
            .map_or(0, ByteCount::as_u64);
        let (without, with) = (cells("ack without PPP"), cells("ack with PPP"));
        let holds = (with - 2.0 * without).abs() < 1e-9 && (6..40).contains(&fits);
        (
            holds,
            format!(
                "{without} cell without PPP, {with} with; one again up to {fits} bytes of IP, RFC 1144 leaves 3 to 6"
            ),
        )
    })
}

fn pdu(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let case = settings.text("case").unwrap_or_default();
    let link = if case.ends_with("without PPP") { preset("aal5")? } else { link(&settings)? };
    let size = if case.starts_with("ack") { "ack_bytes" } else { "ip_mtu_bytes" };
    let ip = ByteCount::new(whole(&settings, size)?);
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut values = Values::new();
    values.set("aal5_pdu_bytes", count(link.frame(ip)));
    values.set("cells", count(link.cells(ip).map_or(0, lastmile_units::CellCount::as_u64)));
    values.set("wire_bytes", count(link.on_wire(ip).as_u64()));
    Ok(values)
}

fn link(settings: &Values) -> Result<LinkLayer, ExperimentError> {
    preset(settings.text("link_layer").ok_or(ExperimentError::MissingSetting("link_layer"))?)
}

fn preset(name: &str) -> Result<LinkLayer, ExperimentError> {
    LinkLayer::from_name(name).ok_or(ExperimentError::MissingSetting("link_layer"))
}
