//! `lastmile model asymmetry`: can the upstream carry the ACKs of a full download, and if not,
//! which share of the downstream can the download use?

use std::cmp::Reverse;
use std::fmt::Write as _;

use clap::Args;
use lastmile_text::table::{Kind, Table};
use lastmile_theory::asymmetry::{Bottleneck, Download, asymmetry};
use lastmile_units::{BitRate, ByteCount, CellCount};
use serde::Serialize;

use super::numbers::{factor, rate};
use super::packets::{Acks, Packets};
use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Normalised asymmetry k, with and without each encapsulation
///
/// k = (down / up) / (data bytes / ACK bytes), in bytes on the wire. A download with one ACK for
/// every d segments fills at most min(1, d/k) of the downstream. Rates are those of the line,
/// headers and cells included.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Downstream rate, such as "8 Mbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: String,

    /// Upstream rate, such as "512 kbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    up: String,

    #[command(flatten)]
    packets: Packets,

    /// TCP payload of a data packet in bytes, instead of --data; the headers are those of the ACK
    #[arg(long, value_name = "BYTES", conflicts_with = "data", value_parser = crate::bytes::parse)]
    mss: Option<u64>,

    #[command(flatten)]
    acks: Acks,

    /// Segments per ACK, d: 2 with delayed ACKs, 1 if each is acknowledged
    #[arg(long, value_name = "D", default_value = "2")]
    delayed_ack_factor: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document {
    down_bps: u64,
    up_bps: u64,
    ack_bytes: u64,
    delayed_ack_factor: f64,
    links: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    link: String,
    data_bytes: u64,
    payload_bytes: u64,
    data_wire_bytes: u64,
    ack_wire_bytes: u64,
    data_cells: Option<u64>,
    ack_cells: Option<u64>,
    /// k by IP bytes: without any encapsulation.
    k_ip: f64,
    k: f64,
    /// Largest share of the downstream that a download fills.
    utilisation_bound: f64,
    goodput_bound_bps: f64,
    limited_by: &'static str,
    /// ACKs that a full downstream needs.
    acks_needed_per_s: f64,
    ack_rate_needed_bps: f64,
    /// The rate to reserve, in whole kbit/s, rounded up.
    reserve_kbit_per_s: u64,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    printer.either(arguments.json, &compute(arguments)?, print)
}

fn compute(arguments: &Arguments) -> Result<Document> {
    let down = rate("--down", &arguments.down)?;
    let up = rate("--up", &arguments.up)?;
    let (ack, d) = (arguments.acks.ack, factor(&arguments.delayed_ack_factor)?);
    let mut rows = Vec::new();
    for (name, link) in arguments.packets.links()? {
        let data = match arguments.mss {
            Some(mss) => mss.saturating_add(ack),
            None => arguments.packets.size(link)?.as_u64(),
        };
        let payload = data.checked_sub(ack).filter(|&payload| payload > 0).ok_or_else(|| {
            Failure::new(format_args!("a data packet of {data} bytes leaves no payload after {ack} bytes of headers"))
        })?;
        let download = Download {
            down,
            up,
            down_link: link,
            up_link: link,
            data: ByteCount::new(data),
            payload: ByteCount::new(payload),
            ack: ByteCount::new(ack),
            segments_per_ack: d,
        };
        rows.push(row(name, &download)?);
    }
    Ok(Document {
        down_bps: down.as_bps(),
        up_bps: up.as_bps(),
        ack_bytes: ack,
        delayed_ack_factor: d.as_f64(),
        links: rows,
    })
}

fn row(link: String, download: &Download) -> Result<Row> {
    let asymmetry = asymmetry(download).map_err(Failure::new)?;
    Ok(Row {
        link,
        data_bytes: download.data.as_u64(),
        payload_bytes: download.payload.as_u64(),
        data_wire_bytes: asymmetry.data_wire.as_u64(),
        ack_wire_bytes: asymmetry.ack_wire.as_u64(),
        data_cells: asymmetry.data_cells.map(CellCount::as_u64),
        ack_cells: asymmetry.ack_cells.map(CellCount::as_u64),
        k_ip: asymmetry.k_ip,
        k: asymmetry.k,
        utilisation_bound: asymmetry.utilisation,
        goodput_bound_bps: asymmetry.goodput_bps,
        limited_by: match asymmetry.limit {
            Bottleneck::Downstream => "downstream",
            Bottleneck::Acks => "acks",
        },
        acks_needed_per_s: asymmetry.acks_needed.packets_per_s,
        ack_rate_needed_bps: asymmetry.acks_needed.bits_per_s,
        reserve_kbit_per_s: asymmetry.acks_needed.reserve_kbit_per_s,
    })
}

fn print(document: &Document, printer: &mut Printer) -> Result<()> {
    let Document { ack_bytes, delayed_ack_factor: d, .. } = document;
    let mut text = format!(
        "A download over {} down and {} up, an ACK of {ack_bytes} bytes for every ",
        kbit_text(document.down_bps),
        kbit_text(document.up_bps)
    );
    text.push_str(if (d - 1.0).abs() < f64::EPSILON { "segment" } else { "" });
    if d - 1.0 >= f64::EPSILON {
        write!(text, "{d} segments").expect("a string takes all");
    }
    let mut sizes: Vec<(u64, f64)> = document.links.iter().map(|row| (row.data_bytes, row.k_ip)).collect();
    sizes.sort_by_key(|(bytes, _)| Reverse(*bytes));
    sizes.dedup();
    let k = sizes.iter().map(|(bytes, k)| format!("{k:.3} with packets of {bytes} bytes")).collect::<Vec<_>>();
    writeln!(text, ".\nk by IP bytes, without any encapsulation: {}.\n", k.join(", ")).expect("a string takes all");
    printer.data(&text)?;

    let mut table = Table::new([
        ("link", Kind::Name),
        ("packet", Kind::Number),
        ("data", Kind::Number),
        ("ACK", Kind::Number),
        ("k", Kind::Number),
        ("of down", Kind::Number),
        ("goodput kbit/s", Kind::Number),
        ("ACKs/s", Kind::Number),
        ("ACKs kbit/s", Kind::Number),
        ("limited by", Kind::Text),
    ]);
    for row in &document.links {
        table.row([
            row.link.clone(),
            row.data_bytes.to_string(),
            row.data_wire_bytes.to_string(),
            row.ack_wire_bytes.to_string(),
            format!("{:.3}", row.k),
            format!("{:.1} %", row.utilisation_bound * 100.0),
            format!("{:.1}", row.goodput_bound_bps / 1e3),
            format!("{:.1}", row.acks_needed_per_s),
            format!("{:.1}", row.ack_rate_needed_bps / 1e3),
            if row.limited_by == "acks" { "ACKs upstream" } else { "downstream" }.to_owned(),
        ]);
    }
    printer.table(&table)?;
    printer
        .data("\npacket: IP bytes. data, ACK: bytes on the wire. ACKs/s and their rate: for a full downstream.\n")?;
    Ok(())
}

fn kbit_text(bps: u64) -> String {
    BitRate::from_bps(bps).map_or_else(String::new, |rate| rate.to_string())
}
