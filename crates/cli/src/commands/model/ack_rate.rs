//! `lastmile model ack-rate`: the upstream rate to reserve for the ACKs of a download.

use clap::Args;
use lastmile_linklayer::Framing;
use lastmile_text::table::{Kind, Table};
use lastmile_theory::ack_rate::{self, AckRate};
use serde::Serialize;

use super::numbers::{factor, rate};
use super::packets::{Acks, Packets};
use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Rate of a download's ACKs, and the upstream rate to reserve for them
///
/// Download rate / packet size * ACK size on the wire / segments per ACK (Brouer 2005, formula
/// 8.1). Brouer counts the download in IP bytes. With --line its rate is that of the line, headers
/// and cells included, and packets count as on the wire.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Rate of the download, such as "1800 kbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: String,

    /// The download's rate is that of the line, which it fills
    #[arg(long)]
    line: bool,

    /// Upstream line rate, to show the rest
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    up: Option<String>,

    #[command(flatten)]
    packets: Packets,

    #[command(flatten)]
    acks: Acks,

    /// Segments per ACK: 2 with delayed ACKs, less for a margin
    #[arg(long, value_name = "D", default_value = "1.5")]
    delayed_ack_factor: String,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document {
    down_bps: u64,
    /// True for the rate of the line, false for that of IP bytes.
    down_is_line_rate: bool,
    up_bps: Option<u64>,
    ack_bytes: u64,
    delayed_ack_factor: f64,
    links: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    link: String,
    data_bytes: u64,
    ack_wire_bytes: u64,
    ack_cells: Option<u64>,
    acks_per_s: f64,
    ack_rate_bps: f64,
    /// The rate to reserve, in whole kbit/s, rounded up.
    reserve_kbit_per_s: u64,
    /// 48 of 53 bytes of the upstream's cells; `null` without cells or without `--up`.
    up_payload_kbit_per_s: Option<u64>,
    /// The rest of the upstream; negative if the ACKs need more.
    up_left_kbit_per_s: Option<i64>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    printer.either(arguments.json, &compute(arguments)?, print)
}

fn compute(arguments: &Arguments) -> Result<Document> {
    let down = rate("--down", &arguments.down)?;
    let up = arguments.up.as_deref().map(|text| rate("--up", text)).transpose()?;
    let d = factor(&arguments.delayed_ack_factor)?;
    let ack = arguments.acks.size()?;
    let mut rows = Vec::new();
    for (name, link) in arguments.packets.links()? {
        let (data, ack_wire) = (arguments.packets.size(link)?, link.on_wire(ack));
        let needed = if arguments.line {
            ack_rate::for_line(down, link, data, ack_wire, d)
        } else {
            ack_rate::for_ip_throughput(down, data, ack_wire, d)
        };
        let AckRate { packets_per_s, bits_per_s, reserve_kbit_per_s } = needed.ok_or_else(|| {
            Failure::new(format_args!(
                "a packet of {data} takes nothing on the wire of {name}, so there is no rate of it"
            ))
        })?;
        let cells = up.filter(|_| link.framing() == Framing::Atm);
        let left = |up_kbit: u64| i64::try_from(up_kbit).ok()?.checked_sub_unsigned(reserve_kbit_per_s);
        rows.push(Row {
            link: name,
            data_bytes: data.as_u64(),
            ack_wire_bytes: ack_wire.as_u64(),
            ack_cells: link.cells(ack).map(lastmile_units::CellCount::as_u64),
            acks_per_s: packets_per_s,
            ack_rate_bps: bits_per_s,
            reserve_kbit_per_s,
            up_payload_kbit_per_s: cells.map(ack_rate::cell_payload_kbit_per_s),
            up_left_kbit_per_s: up.and_then(|up| left(up.as_bps() / 1_000)),
        });
    }
    Ok(Document {
        down_bps: down.as_bps(),
        down_is_line_rate: arguments.line,
        up_bps: up.map(lastmile_units::BitRate::as_bps),
        ack_bytes: arguments.acks.ack,
        delayed_ack_factor: d.as_f64(),
        links: rows,
    })
}

fn print(document: &Document, printer: &mut Printer) -> Result<()> {
    let mut columns = vec![
        ("link", Kind::Name),
        ("data", Kind::Number),
        ("ACK", Kind::Number),
        ("ACKs/s", Kind::Number),
        ("ACKs kbit/s", Kind::Number),
        ("reserve kbit/s", Kind::Number),
    ];
    if document.up_bps.is_some() {
        columns.push(("left kbit/s", Kind::Number));
    }
    let mut table = Table::new(columns);
    for row in &document.links {
        table.row([
            row.link.clone(),
            row.data_bytes.to_string(),
            row.ack_wire_bytes.to_string(),
            format!("{:.1}", row.acks_per_s),
            format!("{:.1}", row.ack_rate_bps / 1e3),
            row.reserve_kbit_per_s.to_string(),
            row.up_left_kbit_per_s.map_or_else(String::new, |left| left.to_string()),
        ]);
    }
    printer.table(&table)?;
    printer
        .data("\ndata: IP bytes. ACK: bytes on the wire. reserve: whole kbit/s of the upstream line, rounded up.\n")?;
    Ok(())
}
