//! Brouer 2005, sections 3.4, 7.2 and 9.3.1: delays that follow from sizes and rates.

use lastmile_linklayer::aal5;
use lastmile_units::ByteCount;

use crate::data::Table;
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;

use super::formulas::formulas;
use super::{number, rates, whole};
use crate::error::ExperimentError;

/// A packet of 1500 bytes and an ACK on the wire.
const LARGE: f64 = 1696.0;
const ACK: f64 = 106.0;

fn ms(wire_bytes: f64, bps: f64) -> f64 {
    wire_bytes * 8e3 / bps
}

/// Section 3.4.
pub(super) fn components(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, component, |rows| {
        let queue = rows
            .iter()
            .find(|row| row.params.text("component").is_some_and(|component| component.starts_with("queue")))
            .and_then(|row| row.theory.number("ms"))
            .unwrap_or_default();
        let others: f64 = rows
            .iter()
            .filter(|row| row.params.text("component").is_some_and(|component| component.starts_with("propagation")))
            .filter_map(|row| row.theory.number("ms"))
            .sum();
        ((1130.0..1150.0).contains(&queue) && others < 1.0, format!("{queue:.0} ms of queue, {others} ms of cable"))
    })
}

fn component(settings: &Values) -> Result<Values, ExperimentError> {
    let (up, ip) = (number(settings, "up_bps")?, number(settings, "up_ip_bps_measured")?);
    let packet = number(settings, "packet_bytes")?;
    let mut values = Values::new();
    let time = match settings.text("component").unwrap_or_default() {
        "transmission, 1500 bytes at 454 kb/s" => ms(packet, ip),
        "transmission, 1696 bytes at 512 kb/s" => {
            ms(rates::line()?.on_wire(ByteCount::new(packet as u64)).as_u64() as f64, up)
        }
        "propagation, 5 km at 2e8 m/s" => number(settings, "cable_km")? * 1e3 / 2e8 * 1e3,
        "queue: 43 packets" => {
            let packets = number(settings, "window_bytes")? / packet;
            values.set("packets", packets);
            packets.ceil() * ms(packet, ip)
        }
        _ => return Ok(values),
    };
    values.set("ms", time);
    Ok(values)
}

/// Table 7.2.
pub(super) fn bounds(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, bound, |rows| {
        let largest = rows.iter().filter_map(|row| row.theory.number("upstream_bound_ms")).fold(0.0, f64::max);
        ((largest - 35.0).abs() < 0.05, format!("{largest:.2} ms behind a packet of 1500 bytes"))
    })
}

fn bound(settings: &Values) -> Result<Values, ExperimentError> {
    let (down, up) = (number(settings, "down_bps")?, number(settings, "up_bps")?);
    let ip = whole(settings, "ip_bytes")?;
    let wire = (aal5::cells(ip) * aal5::CELL_BYTES) as f64;
    let framed = rates::line()?.on_wire(ByteCount::new(ip)).as_u64() as f64;
    Ok([
        ("wire_bytes", wire),
        ("down_ms", ms(wire, down)),
        ("up_ms", ms(wire, up)),
        ("upstream_bound_ms", number(settings, "baseline_ms")? + ms(wire, up)),
        ("wire_bytes_with_28_overhead", framed),
        ("up_ms_with_28_overhead", ms(framed, up)),
    ]
    .into_iter()
    .collect())
}

/// Section 9.3.1.
pub(super) fn production(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, production_item, |rows: &[RowResult]| {
        let figure = |name| rows.iter().find_map(|row| row.theory.number(name)).unwrap_or_default();
        let bound = rows
            .iter()
            .find(|row| row.params.text("item").is_some_and(|item| item.starts_with("bound")))
            .and_then(|row| row.theory.number("ms"))
            .unwrap_or_default();
        let factor = figure("factor");
        ((bound - 43.0).abs() < 0.5 && (factor - 3.0).abs() < 0.1, format!("{bound:.2} ms, {factor:.2} times"))
    })
}

fn production_item(settings: &Values) -> Result<Values, ExperimentError> {
    let (down, up) = (number(settings, "down_bps")?, number(settings, "up_bps")?);
    let one = |name: &'static str, value: f64| [(name, value)].into_iter().collect();
    Ok(match settings.text("item").unwrap_or_default() {
        "1500-byte packet upstream" => one("ms", ms(LARGE, up)),
        "bound: two packets + baseline" => one("ms", 2.0 * ms(LARGE, up) + number(settings, "baseline_ms")?),
        "1500-byte packet downstream" => one("ms", ms(LARGE, down)),
        "data packets in 40 ms" => {
            let packets = 40.0 / ms(LARGE, down);
            [("packets", packets), ("acks_d2", (packets / 2.0).round())].into_iter().collect()
        }
        "ACK spacing" => one("ms", ms(ACK, up)),
        // An ACK for every second packet.
        "d/k" => one("factor", 2.0 * (up / ACK) / (down / LARGE)),
        _ => Values::new(),
    })
}
