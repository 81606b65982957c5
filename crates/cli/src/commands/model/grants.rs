//! `lastmile model grants`: a download whose ACKs wait for upstream grants.

use clap::Args;
use lastmile_results::format;
use lastmile_text::table::{Kind, Table};
use lastmile_theory::{Fraction, grants};
use lastmile_units::{ByteCount, Duration};
use serde::Serialize;

use super::numbers::{factor, rate};
use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// Limit of a download by the grants that its ACKs wait for
///
/// A station with one request outstanding sends one burst in a request-grant time, the mean MAP interval
/// plus the mean MAP-ahead time: bursts a second = 1 / request-grant time. A download is limited to the
/// packets that the ACKs of a burst acknowledge, times bursts a second (CED, December 2006). With ACK
/// suppression one ACK acknowledges all packets of a request-grant time, so that the line is the limit.
///
/// On a line with `grants` the time is another one where the sum is no whole number of slots, where a
/// request leaves with granted data (piggyback), or where a packet is sent for longer than the time between
/// two opportunities. The bounds of `lastmile run` count these.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Mean MAP interval: the length of a slot
    #[arg(long, value_name = "TIME")]
    interval: Duration,

    /// Mean MAP-ahead time: from a request to its grant, without the wait for a slot
    #[arg(long, value_name = "TIME")]
    ahead: Duration,

    /// Rate of the downstream in the bytes of --data, such as "12 Mbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    down: String,

    /// ACKs in a burst: 1 without concatenation
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    acks: u64,

    /// Packets for each delayed ACK
    #[arg(long, value_name = "D", default_value = "2")]
    delayed_ack_factor: String,

    /// A data packet in bytes, headers included
    #[arg(long, value_name = "BYTES", default_value = "1500", value_parser = crate::bytes::parse)]
    data: u64,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The footer where a burst has one ACK.
const SINGLE: &str = "One ACK in a burst: no concatenation (`docsis-1.0`, or switched off). DOCSIS 3.x sends all \
                      waiting ACKs: `--acks N`, or `lastmile run` with `grants`.\n";

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document {
    request_grant_s: f64,
    bursts_per_s: f64,
    acks_per_burst: u64,
    data_bytes: u64,
    down_bps: u64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    acks: &'static str,
    packets_per_ack: f64,
    /// The limit by grants.
    grants_bps: f64,
    /// The least of that and the rate of the downstream.
    download_bps: f64,
    limited_by: &'static str,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    printer.either(arguments.json, &compute(arguments)?, print)
}

fn compute(arguments: &Arguments) -> Result<Document> {
    let down = rate("--down", &arguments.down)?;
    if !(1..=65_535).contains(&arguments.data) {
        let message = format!("--data: a packet of {} bytes; from 1 to 65535 are possible", arguments.data);
        return Err(Failure::new(message));
    }
    let packet = ByteCount::new(arguments.data);
    let wrong = || {
        Failure::new("--interval and --ahead: their sum, the request-grant time, has no rate of bursts")
            .hint("such as --interval \"1 ms\" --ahead \"4 ms\"")
    };
    let sum = arguments.interval.as_ps().checked_add(arguments.ahead.as_ps());
    let time = Duration::from_ps(sum.ok_or_else(wrong)?);
    let bursts = grants::bursts_per_s(time).ok_or_else(wrong)?;
    let suppressed = grants::suppressed_acks(time, down, packet).ok_or_else(wrong)?;
    let line = Fraction::whole(down.as_bps());
    let row = |acks: &'static str, count: u64, packets: Fraction| {
        let granted = grants::download_bps(time, count, packets, packet).ok_or_else(wrong)?;
        let (download, limited_by) = if granted < line { (granted, "grants") } else { (line, "line") };
        let (packets_per_ack, grants_bps, download_bps) = (packets.as_f64(), granted.as_f64(), download.as_f64());
        Ok::<_, Failure>(Row { acks, packets_per_ack, grants_bps, download_bps, limited_by })
    };
    let rows = vec![
        row("each packet", arguments.acks, Fraction::ONE)?,
        row("delayed", arguments.acks, factor(&arguments.delayed_ack_factor)?)?,
        row("suppressed", 1, suppressed)?,
    ];
    Ok(Document {
        request_grant_s: time.as_secs_f64(),
        bursts_per_s: bursts.as_f64(),
        acks_per_burst: arguments.acks,
        data_bytes: arguments.data,
        down_bps: down.as_bps(),
        rows,
    })
}

fn print(document: &Document, printer: &mut Printer) -> Result<()> {
    let mut table = Table::new([
        ("ACKs", Kind::Name),
        ("packets an ACK", Kind::Number),
        ("by grants Mbit/s", Kind::Number),
        ("download Mbit/s", Kind::Number),
        ("limited by", Kind::Name),
    ]);
    for row in &document.rows {
        table.row([
            row.acks.to_owned(),
            format!("{:.1}", row.packets_per_ack),
            format!("{:.3}", row.grants_bps / 1e6),
            format!("{:.3}", row.download_bps / 1e6),
            row.limited_by.to_owned(),
        ]);
    }
    printer.table(&table)?;
    let time = format::seconds(document.request_grant_s);
    let (acks, single) = match document.acks_per_burst {
        1 => ("1 ACK".to_owned(), SINGLE),
        many => (format!("{many} ACKs"), ""),
    };
    printer.data(&format!(
        "\nrequest-grant time {time}: {:.1} bursts a second, each of {acks}; suppressed: one ACK for all packets of \
         that time.\n{single}",
        document.bursts_per_s
    ))?;
    Ok(())
}
