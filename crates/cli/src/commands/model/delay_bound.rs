//! `lastmile model delay-bound`: the delay of a packet that waits only for the packet on the wire.

use clap::Args;
use lastmile_results::format;
use lastmile_text::table::{Kind, Table};
use lastmile_theory::delay;
use lastmile_units::{BitRate, ByteCount, Duration};
use serde::Serialize;

use super::numbers::rate;
use super::packets::Packets;
use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Delay bound of a packet of the highest priority: baseline plus the packets ahead of it
///
/// A scheduler cannot interrupt a packet on the wire: a packet of the highest priority waits for the
/// transmission of one packet of another class, or of more where a device behind the scheduler holds
/// some (Brouer 2005, table 7.2 and section 9.3.1). The bound is the round trip of the idle line plus
/// that wait, for each size of the packets ahead.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Upstream rate, such as "512 kbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    up: String,

    /// Downstream rate, to show transmission times there too
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: Option<String>,

    /// Round trip of the idle line
    #[arg(long, value_name = "TIME", default_value = "0 ms")]
    baseline: Duration,

    /// Packets ahead: 1 for a scheduler at the line, 2 where the next device holds another
    #[arg(long, value_name = "N", default_value_t = 1)]
    ahead: u16,

    /// Sizes of the packets ahead in IP bytes, in addition to --data
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', default_value = "40,84,1000")]
    sizes: Vec<u64>,

    #[command(flatten)]
    packets: Packets,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document {
    up_bps: u64,
    down_bps: Option<u64>,
    baseline_s: f64,
    packets_ahead: u16,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    link: String,
    ip_bytes: u64,
    wire_bytes: u64,
    /// Transmission times of one packet.
    up_s: f64,
    down_s: Option<f64>,
    /// The baseline, and the packets ahead in the upstream.
    bound_s: f64,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let up = rate("--up", &arguments.up)?;
    let down = arguments.down.as_deref().map(|text| rate("--down", text)).transpose()?;
    if let Some(wrong) = arguments.sizes.iter().find(|size| !(1..=65_535).contains(*size)) {
        return Err(Failure::new(format_args!("--sizes: a packet of {wrong} bytes; from 1 to 65535 are possible")));
    }
    let mut rows = Vec::new();
    for (name, link) in arguments.packets.links()? {
        let mut sizes = arguments.sizes.clone();
        sizes.push(arguments.packets.size(link)?.as_u64());
        sizes.sort_unstable();
        sizes.dedup();
        for size in &sizes {
            let ip = ByteCount::new(*size);
            let time = |rate: BitRate, packets: u64| delay::wait_behind(rate, link, packets, ip);
            rows.push(Row {
                link: name.clone(),
                ip_bytes: *size,
                wire_bytes: link.on_wire(ip).as_u64(),
                up_s: time(up, 1).as_secs_f64(),
                down_s: down.map(|down| time(down, 1).as_secs_f64()),
                bound_s: (arguments.baseline + time(up, u64::from(arguments.ahead))).as_secs_f64(),
            });
        }
    }
    let document = Document {
        up_bps: up.as_bps(),
        down_bps: down.map(BitRate::as_bps),
        baseline_s: arguments.baseline.as_secs_f64(),
        packets_ahead: arguments.ahead,
        rows,
    };
    printer.either(arguments.json, &document, print)
}

fn print(document: &Document, printer: &mut Printer) -> Result<()> {
    let mut columns =
        vec![("link", Kind::Name), ("IP bytes", Kind::Number), ("wire bytes", Kind::Number), ("up", Kind::Number)];
    if document.down_bps.is_some() {
        columns.push(("down", Kind::Number));
    }
    columns.push(("bound", Kind::Number));
    let mut table = Table::new(columns);
    for row in &document.rows {
        let mut cells = vec![row.link.clone(), row.ip_bytes.to_string(), row.wire_bytes.to_string()];
        cells.push(format::seconds(row.up_s));
        cells.extend(row.down_s.map(format::seconds));
        cells.push(format::seconds(row.bound_s));
        table.row(cells);
    }
    printer.table(&table)?;
    let ahead =
        if document.packets_ahead == 1 { "1 packet".to_owned() } else { format!("{} packets", document.packets_ahead) };
    printer.data(&format!(
        "\nbound: {} of the idle line, and the transmission of {ahead} ahead in the upstream.\n",
        format::seconds(document.baseline_s)
    ))?;
    Ok(())
}
