//! `lastmile model amp`: the packet rate that a rate of ACKs releases, from rates or from a
//! finished run.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_results::amp::{Limited, Measured, measure};
use lastmile_results::read;
use lastmile_text::table::{Kind, Table};
use lastmile_theory::Fraction;
use lastmile_theory::amp::{Limit, Line};
use serde::Serialize;

use super::numbers::{decimal, rate};
use super::packets::{Acks, Packets};
use crate::failure::{Failure, Result};
use crate::printer::Printer;

/// The AMP bound: throughput is at most min(F, A*M*P)
///
/// A: ACKs a second that the upstream carries; M: packets sent per ACK; P: bits of a packet; F:
/// capacity of the downstream (Kalyanaraman, Shekhar, Kidambi 1999). With --share-down and
/// --share-up both directions carry packets, in a class with that share of the link, and ACKs have
/// the rest. With --run the terms are those of a finished run.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Downstream rate, such as "8 Mbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, required_unless_present = "run")]
    down: Option<String>,

    /// Upstream rate, such as "64 kbit/s"
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, required_unless_present = "run")]
    up: Option<String>,

    #[command(flatten)]
    packets: Packets,

    #[command(flatten)]
    acks: Acks,

    /// Packets sent per ACK, M: 2 with delayed ACKs, 1 if each packet is acknowledged; more in slow start
    #[arg(long, value_name = "M", default_value = "2")]
    packets_per_ack: String,

    /// Two-way traffic: share of the downstream that packets have, f, such as "0.99"
    #[arg(long, value_name = "F", requires = "share_up")]
    share_down: Option<String>,

    /// Two-way traffic: share of the upstream that packets have, g, such as "0.5"
    #[arg(long, value_name = "G", requires = "share_down")]
    share_up: Option<String>,

    /// Results of a run, a folder or its summary.json: its A, M, P and F
    #[arg(long, value_name = "PATH", conflicts_with_all = ["down", "up", "links", "data", "ack", "packets_per_ack",
        "share_down"])]
    run: Option<PathBuf>,

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
    /// M.
    packets_per_ack: f64,
    /// f; `null` for one-way traffic.
    share_down: Option<f64>,
    /// g; `null` for one-way traffic.
    share_up: Option<f64>,
    links: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    link: String,
    data_bytes: u64,
    /// A: ACKs a second that the whole upstream carries.
    acks_per_s: f64,
    /// P, on the wire.
    packet_bits: u64,
    /// F: the downstream without OAM cells.
    forward_bps: f64,
    /// `min(F, A*M*P)`, on the wire, for one-way traffic.
    bound_bps: f64,
    /// `min(F, A*M*P)`, in IP bytes, for one-way traffic.
    bound_ip_bps: f64,
    limited_by: &'static str,
    two_way: Option<TwoWayRow>,
}

#[derive(Serialize)]
struct TwoWayRow {
    down_packets_per_s: f64,
    down_limited_by: &'static str,
    down_acks_per_s: f64,
    down_acks_limited_by: &'static str,
    /// Capacity of the upstream's packet class.
    up_packets_per_s: f64,
    /// Capacity of the upstream's ACK class.
    up_acks_per_s: f64,
    /// Upstream packets that the downstream's ACK class can acknowledge.
    up_acknowledged_packets_per_s: f64,
    up_limited_by: &'static str,
    /// IP bits of the packets, of the upstream those that are acknowledged.
    down_ip_bps: f64,
    up_ip_bps: f64,
}

/// The document that `--run --json` prints.
#[derive(Serialize)]
struct RunDocument {
    scenario: String,
    seed: u64,
    flows: Vec<Measured>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    if let Some(path) = &arguments.run {
        return printer.either(arguments.json, &of_run(path)?, print_run);
    }
    let document = compute(arguments)?;
    let print = if document.share_down.is_some() { print_two_way } else { print_one_way };
    printer.either(arguments.json, &document, print)
}

fn compute(arguments: &Arguments) -> Result<Document> {
    let given = |option: &'static str, text: &Option<String>| rate(option, text.as_deref().unwrap_or_default());
    let (down, up) = (given("--down", &arguments.down)?, given("--up", &arguments.up)?);
    let ack = arguments.acks.size()?;
    let text = &arguments.packets_per_ack;
    let packets_per_ack = decimal(text).filter(|&m| m > Fraction::ZERO).ok_or_else(|| {
        Failure::new(format_args!("--packets-per-ack: \"{text}\" is not a number of packets for each ACK"))
            .hint("1 in congestion avoidance, 2 in slow start, decimals such as 1.5, more where ACKs are thinned out")
    })?;
    let share = |option: &str, text: &Option<String>| text.as_deref().map(|text| share(option, text)).transpose();
    let shares = (share("--share-down", &arguments.share_down)?, share("--share-up", &arguments.share_up)?);
    let mut rows = Vec::new();
    for (name, link) in arguments.packets.links()? {
        let data = arguments.packets.size(link)?;
        let line =
            Line { forward: down, reverse: up, forward_link: link, reverse_link: link, data, ack, packets_per_ack };
        let row = row(&name, &line, shares).ok_or_else(|| {
            Failure::new(format_args!(
                "packets of {data} and {ack} have no rate over {name}: too small to take anything"
            ))
        })?;
        rows.push(row);
    }
    Ok(Document {
        down_bps: down.as_bps(),
        up_bps: up.as_bps(),
        ack_bytes: arguments.acks.ack,
        packets_per_ack: packets_per_ack.as_f64(),
        share_down: shares.0.map(Fraction::as_f64),
        share_up: shares.1.map(Fraction::as_f64),
        links: rows,
    })
}

fn share(option: &str, text: &str) -> Result<Fraction> {
    decimal(text).filter(|&share| share <= Fraction::ONE).ok_or_else(|| {
        Failure::new(format_args!("{option}: \"{text}\" is not a share of a link"))
            .hint("a decimal from 0 to 1 with at most three digits after the point, such as 0.99")
    })
}

fn limited(limit: Limit) -> &'static str {
    match limit {
        Limit::Link => "link",
        Limit::Other => "other_direction",
    }
}

fn row(name: &str, line: &Line, shares: (Option<Fraction>, Option<Fraction>)) -> Option<Row> {
    let one = line.one_way()?;
    let ip_bits = Fraction::whole(line.data.as_u64() * 8);
    let ip_share = ip_bits.checked_div(Fraction::whole(one.packet_bits))?;
    let two_way = match shares {
        (Some(f), Some(g)) => {
            let two = line.two_way(f, g)?;
            Some(TwoWayRow {
                down_packets_per_s: two.forward_packets.rate.as_f64(),
                down_limited_by: limited(two.forward_packets.limit),
                down_acks_per_s: two.forward_acks.rate.as_f64(),
                down_acks_limited_by: limited(two.forward_acks.limit),
                up_packets_per_s: two.reverse_packets.as_f64(),
                up_acks_per_s: two.reverse_acks.as_f64(),
                up_acknowledged_packets_per_s: two.reverse_acknowledged.rate.as_f64(),
                up_limited_by: limited(two.reverse_acknowledged.limit),
                down_ip_bps: two.forward_packets.rate.checked_mul(ip_bits)?.as_f64(),
                up_ip_bps: two.reverse_acknowledged.rate.checked_mul(ip_bits)?.as_f64(),
            })
        }
        _ => None,
    };
    Some(Row {
        link: name.to_owned(),
        data_bytes: line.data.as_u64(),
        acks_per_s: one.acks_per_s.as_f64(),
        packet_bits: one.packet_bits,
        forward_bps: one.forward_bps.as_f64(),
        bound_bps: one.bound.rate.as_f64(),
        bound_ip_bps: one.bound.rate.checked_mul(ip_share)?.as_f64(),
        limited_by: match one.bound.limit {
            Limit::Link => "downstream",
            Limit::Other => "acks",
        },
        two_way,
    })
}

fn print_one_way(document: &Document, printer: &mut Printer) -> Result<()> {
    let mut table = Table::new([
        ("link", Kind::Name),
        ("A ACKs/s", Kind::Number),
        ("M", Kind::Number),
        ("P bits", Kind::Number),
        ("F kbit/s", Kind::Number),
        ("bound kbit/s", Kind::Number),
        ("in IP bytes", Kind::Number),
        ("limited by", Kind::Text),
    ]);
    for row in &document.links {
        table.row([
            row.link.clone(),
            format!("{:.1}", row.acks_per_s),
            document.packets_per_ack.to_string(),
            row.packet_bits.to_string(),
            format!("{:.1}", row.forward_bps / 1e3),
            format!("{:.1}", row.bound_bps / 1e3),
            format!("{:.1}", row.bound_ip_bps / 1e3),
            if row.limited_by == "acks" { "A*M*P: ACKs upstream" } else { "F: downstream" }.to_owned(),
        ]);
    }
    printer.table(&table)?;
    printer.data("\nP, F and the bound: on the wire, headers and cells included.\n")?;
    Ok(())
}

fn print_two_way(document: &Document, printer: &mut Printer) -> Result<()> {
    let mut table = Table::new([
        ("link", Kind::Name),
        ("down packets/s", Kind::Number),
        ("ACKs/s", Kind::Number),
        ("kbit/s", Kind::Number),
        ("limited by", Kind::Text),
        ("up packets/s", Kind::Number),
        ("ACKs/s", Kind::Number),
        ("kbit/s", Kind::Number),
        ("limited by", Kind::Text),
    ]);
    for (row, two) in document.links.iter().filter_map(|row| Some((row, row.two_way.as_ref()?))) {
        table.row([
            row.link.clone(),
            format!("{:.1}", two.down_packets_per_s),
            format!("{:.1}", two.down_acks_per_s),
            format!("{:.1}", two.down_ip_bps / 1e3),
            if two.down_limited_by == "link" { "f of the downstream" } else { "upstream ACK class" }.to_owned(),
            format!("{:.1}", two.up_acknowledged_packets_per_s),
            format!("{:.1}", two.up_acks_per_s),
            format!("{:.1}", two.up_ip_bps / 1e3),
            if two.up_limited_by == "link" { "g of the upstream" } else { "downstream ACK class" }.to_owned(),
        ]);
    }
    printer.table(&table)?;
    printer.data(
        "\nkbit/s: IP bytes of packets that are acknowledged. ACKs/s: down those of the upload, up what their class \
         carries.\n",
    )?;
    Ok(())
}

fn of_run(path: &Path) -> Result<RunDocument> {
    let hint = "a folder that `lastmile run --out` wrote, or a summary.json";
    let summary = read::summary(path).map_err(|error| Failure::new(error).hint(hint))?;
    let flows = measure(&summary);
    if flows.is_empty() {
        let shown = path.display();
        return Err(Failure::new(format_args!("{shown}: no TCP flow got an ACK in this run, so there is no A")));
    }
    Ok(RunDocument { scenario: summary.run.scenario, seed: summary.run.seed, flows })
}

fn print_run(document: &RunDocument, printer: &mut Printer) -> Result<()> {
    let mut table = Table::new([
        ("flow", Kind::Name),
        ("A ACKs/s", Kind::Number),
        ("M", Kind::Number),
        ("P bits", Kind::Number),
        ("F kbit/s", Kind::Number),
        ("bound kbit/s", Kind::Number),
        ("goodput kbit/s", Kind::Number),
        ("limited by", Kind::Text),
    ]);
    for flow in &document.flows {
        let link = flow.link.as_deref().unwrap_or_default();
        table.row([
            flow.name.clone(),
            format!("{:.1}", flow.acks_per_s),
            format!("{:.2}", flow.packets_per_ack),
            flow.packet_bits.to_string(),
            flow.forward_bps.map_or_else(|| "-".to_owned(), |bps| format!("{:.1}", bps / 1e3)),
            format!("{:.1}", flow.bound_bps / 1e3),
            format!("{:.1}", flow.goodput_bps / 1e3),
            match flow.limited_by {
                Limited::Forward => format!("F: link {link}"),
                Limited::Acks => format!("A: ACKs on link {link}"),
                Limited::Neither => format!("neither: {}", flow.explanation),
            },
        ]);
    }
    printer.table(&table)?;
    printer.data("\nA, M: as measured, over the flow's life. P, F and rates: payload.\n")?;
    Ok(())
}
