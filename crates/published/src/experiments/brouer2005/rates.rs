//! Brouer 2005, sections 6.1, 6.2 and 8.1: rates to give away, to reserve, and to leave.

use lastmile_linklayer::LinkLayer;
use lastmile_theory::{Fraction, ack_rate};
use lastmile_units::{BitRate, ByteCount, WireBytes};

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::Values;

use super::formulas::formulas;
use super::{number, whole};
use crate::error::ExperimentError;

/// Payload and size of a cell.
const CELL: (f64, f64) = (48.0, 53.0);
/// A packet of 1500 bytes, and one of two cells, on the wire.
const LARGE_BITS: f64 = 1696.0 * 8.0;
const SMALL_BITS: f64 = 106.0 * 8.0;

/// Section 6.1.1: what to give away.
pub(super) fn given_away(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(
        table,
        |settings| {
            let bits = number(settings, "packets_per_s")? * number(settings, "overhead_bytes")? * 8.0;
            Ok([("reduction_bps", bits)].into_iter().collect())
        },
        |rows| {
            let reductions: Vec<f64> = rows.iter().filter_map(|row| row.theory.number("reduction_bps")).collect();
            let least = reductions.iter().copied().fold(f64::INFINITY, f64::min);
            let most = reductions.iter().copied().fold(0.0, f64::max);
            let evidence = format!(
                "what survives the worst mix gives away {:.1} kbit/s more than full packets need, {:.0} % of the line",
                (most - least) / 1e3,
                100.0 * (most - least) / 512e3
            );
            (most - least > 0.2 * 512e3, evidence)
        },
    )
}

/// Section 6.1.1: packet rates and usable rates.
pub(super) fn usable(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, usable_rate, |rows| {
        let cut = |item: &str| {
            let named = |row: &&crate::reproduction::RowResult| row.params.text("item") == Some(item);
            rows.iter().find(named).and_then(|row| row.theory.number("cut_pct")).unwrap_or_default()
        };
        let cut = cut("all 40-byte packets");
        ((cut - 62.0).abs() < 0.5, format!("a cut of {cut:.1} % for 40-byte packets alone"))
    })
}

fn usable_rate(settings: &Values) -> Result<Values, ExperimentError> {
    let (up, overhead) = (number(settings, "up_bps")?, number(settings, "overhead_bytes")?);
    let left = up * CELL.0 / CELL.1;
    let headers = |packets: f64| packets * overhead * 8.0;
    // The rates that section 6.1.1 compares: 38, 200, 300 and 600 packets a second.
    let (best, average, bursty, worst) = (headers(38.0), headers(200.0), headers(300.0), headers(600.0));
    let per_s = |rate: f64| [("per_s", rate)].into_iter().collect();
    let padded = |bytes: f64| {
        let padding = 300.0 * bytes * 8.0;
        let left = left - bursty - padding;
        [("padding_bps", padding), ("left_kbps", left / 1e3), ("cut_pct", 100.0 * (1.0 - left / up))]
            .into_iter()
            .collect()
    };
    let wasted = |bps: f64| [("wasted_kbps", bps / 1e3)].into_iter().collect();
    Ok(match settings.text("item").unwrap_or_default() {
        "cell header share of 512 kb/s" => [("bps", up - left), ("left_bps", left)].into_iter().collect(),
        "1500-byte packets per s" => per_s(up / LARGE_BITS),
        "single cells per s" => per_s(up / (CELL.1 * 8.0)),
        "two-cell packets per s" => per_s(up / SMALL_BITS),
        "ACKs per s for 2 Mbit/s down" => per_s(2e6 / LARGE_BITS),
        "bursty case, headers only" => [("left_kbps", (left - bursty) / 1e3)].into_iter().collect(),
        "bursty minus best case" => wasted(bursty - best),
        "bursty minus average case" => wasted(bursty - average),
        "worst minus best case" => wasted(worst - best),
        "bursty case plus worst padding (47 bytes)" => padded(47.0),
        "bursty case plus mean padding (23 bytes)" => padded(23.0),
        "all 40-byte packets" => {
            let packets = up / SMALL_BITS;
            let left = packets * 40.0 * 8.0;
            let cut = 100.0 * (1.0 - left / up);
            [("packets_per_s", packets), ("left_kbps", left / 1e3), ("cut_pct", cut)].into_iter().collect()
        }
        _ => Values::new(),
    })
}

/// Section 6.2.2: what 450 kbit/s is made of.
pub(super) fn naive_rate(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, naive_part, |rows| {
        let left = rows.iter().filter_map(|row| row.theory.number("kbps")).fold(f64::INFINITY, f64::min);
        ((450.0..451.0).contains(&left), format!("{left} kbit/s are left"))
    })
}

fn naive_part(settings: &Values) -> Result<Values, ExperimentError> {
    let up = BitRate::from_bps(whole(settings, "up_bps")?).ok_or(ExperimentError::MissingSetting("up_bps"))?;
    let overhead = number(settings, "overhead_bytes")?;
    // His script counts whole kbit/s.
    let payload = ack_rate::cell_payload_kbit_per_s(up) as f64;
    let padding = |bytes: f64| (bytes / CELL.0).ceil() * CELL.0 - bytes;
    let large = overhead + padding(1500.0 + overhead);
    let (large_bps, small_bps) = (38.0 * large * 8.0, 7.0 * padding(64.0) * 8.0);
    Ok(match settings.text("item").unwrap_or_default() {
        "after cell headers" => [("kbps", up.as_bps() as f64 * CELL.0 / CELL.1 / 1e3)].into_iter().collect(),
        "1500-byte packets per s" => [("per_s", payload * 1e3 / (1500.0 * 8.0))].into_iter().collect(),
        "padding of 1528 bytes" => {
            [("bytes", large - overhead), ("overhead_per_packet_bytes", large), ("reduction_bps", large_bps)]
                .into_iter()
                .collect()
        }
        "interactive: 7 packets/s of 64 bytes in two cells" => {
            [("padding_bytes", padding(64.0)), ("reduction_bps", small_bps)].into_iter().collect()
        }
        "left" => [("kbps", payload - (large_bps + small_bps) / 1e3)].into_iter().collect(),
        _ => Values::new(),
    })
}

/// Formula 8.1 for a row of section 8.1.
pub(super) fn ack_reservation(settings: &Values) -> Result<Values, ExperimentError> {
    let mut values = Values::new();
    let Ok(down) = whole(settings, "down_kbps") else { return Ok(values) };
    let wire = WireBytes::new(whole(settings, "ack_wire_bytes")?);
    let packet = ByteCount::new(whole(settings, "packet_bytes")?);
    let hundredths = (number(settings, "delayed_ack_factor")? * 100.0).round();
    let factor = Fraction::new(hundredths as u128, 100).ok_or(ExperimentError::MissingSetting("delayed_ack_factor"))?;
    let rate = ack_rate::for_ip_throughput(BitRate::from_kbit_per_s(down), packet, wire, factor)
        .ok_or(ExperimentError::MissingSetting("down_kbps"))?;
    values.set("ack_rate_kbps", rate.bits_per_s / 1e3);
    values.set("ack_rate_script_kbps", rate.reserve_kbit_per_s as f64);
    Ok(values)
}

/// Outputs of the set-up scripts.
pub(super) fn script_outputs(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(super::KEY, table);
    for row in &table.rows {
        let settings = table.settings(row);
        let line = whole(&settings, "line_kbps")?;
        let payload = ack_rate::cell_payload_kbit_per_s(BitRate::from_kbit_per_s(line));
        let mut theory = Values::new();
        theory.set("payload_kbps", payload as f64);
        theory.set("atm_headers_kbps", (line - payload) as f64);
        if let Some(ack) = row.theory_printed.integer("ack_kbps") {
            theory.set("left_kbps", (line - ack) as f64);
        }
        result.rows.push(super::formulas::row_of(row, theory));
    }
    result.assumptions.push(
        "The reservations for ACKs are taken as printed: the scripts of listings 8.1 and 8.3 \
                             are older than formula 8.1."
            .to_owned(),
    );
    super::formulas::judged(table, &mut result, |rows| {
        let below = rows.iter().all(|row| row.theory.number("payload_kbps") < row.params.number("line_kbps"));
        (below, String::new())
    });
    Ok(result)
}

/// The line of the chapters on queue control.
pub(super) fn line() -> Result<LinkLayer, ExperimentError> {
    LinkLayer::from_name("bridged-vcmux-fcs").ok_or(ExperimentError::MissingSetting("link_layer"))
}
