//! `lastmile overhead`: the bytes of IP packets on the wire of each encapsulation, and the largest
//! packet in a number of cells.

use std::fmt::Write as _;

use clap::Args;
use lastmile_linklayer::{Framing, LinkLayer, OamShare, PRESETS, Preset};
use lastmile_scenario::layer_meant;
use lastmile_text::table::{Kind, Table};
use lastmile_units::{ByteCount, CellCount};
use serde::Serialize;

use crate::bytes;
use crate::failure::{Exit, Failure, Result};
use crate::printer::Printer;

/// A TCP ACK without options, one with timestamps, the packet that every host accepts (RFC 791), a
/// full Ethernet payload.
const USUAL_SIZES: [u64; 4] = [40, 52, 576, 1500];

/// The largest IPv4 packet (RFC 791).
const LARGEST: u64 = 65_535;

/// Print the overhead of IP packets on the wire: bytes, cells, efficiency
///
/// Without --link, every encapsulation; with one, also each of its headers. Overheads count from
/// the IP packet, as in tc-cake(8); tc-stab(8) on Ethernet counts from the frame, which is 14 bytes
/// more.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Encapsulation by its name or an alias, `l2tp/CARRIER` for a tunnel, or words of tc-cake(8), such as
    /// "ptm overhead 34" [default: all]
    #[arg(long = "link", value_name = "PRESET")]
    links: Vec<String>,

    /// A link layer of your own: bytes around each IP packet, AAL5 trailer included
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    overhead: Option<i32>,

    /// Framing of --overhead: none, atm or ptm [default: none]
    #[arg(long, requires = "overhead", value_parser = ["none", "atm", "ptm"])]
    framing: Option<String>,

    /// Minimum frame of --overhead, in bytes before framing [default: 0]
    #[arg(long, requires = "overhead", value_name = "BYTES")]
    min_frame: Option<u32>,

    /// Count the OAM cells of ATM lines, one in 27 (ITU-T I.432), into the efficiency
    #[arg(long)]
    oam: bool,

    /// IP packet size in bytes, 1 to 65535 [default: 40, 52, 576, 1500]
    #[arg(long = "size", value_name = "BYTES", value_parser = size, conflicts_with = "cells")]
    sizes: Vec<u64>,

    /// The inverse: the largest IP packet that fits into this many cells
    #[arg(long, value_name = "CELLS", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cells: Vec<u64>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A link layer and its name.
struct Named {
    name: String,
    link: LinkLayer,
    preset: Option<&'static Preset>,
}

/// One packet size on one link, for `--json`.
#[derive(Serialize)]
struct Cost {
    link: String,
    size_bytes: u64,
    /// Includes headers, trailers and padding to a minimum frame, but not framing.
    frame_bytes: u64,
    wire_bytes: u64,
    /// `null` on a line without cells.
    cells: Option<u64>,
    /// IP bytes per byte on the wire, with `--oam` without the share of OAM cells.
    efficiency: f64,
}

/// The largest packet for a number of cells, for `--json`.
#[derive(Serialize)]
struct Fit {
    link: String,
    cells: u64,
    /// `null` if one byte does not fit.
    size_bytes: Option<u64>,
    wire_bytes: u64,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let links = links(arguments)?;
    if arguments.cells.is_empty() {
        let sizes = if arguments.sizes.is_empty() { &USUAL_SIZES[..] } else { &arguments.sizes };
        let costs: Vec<Vec<Cost>> =
            links.iter().map(|named| sizes.iter().map(|&size| cost(named, size)).collect()).collect();
        match (&links[..], arguments.json) {
            (_, true) => printer.json(&costs.iter().flatten().collect::<Vec<_>>())?,
            ([only], false) => print_one(only, &costs[0], printer)?,
            (several, false) => print_several(several, sizes, &costs, printer)?,
        }
    } else {
        let fits = fits(&links, arguments)?;
        if arguments.json {
            printer.json(&fits)?;
        } else {
            print_fits(&fits, &arguments.cells, printer)?;
        }
    }
    Ok(Exit::Done)
}

/// The requested links; all presets by default.
fn links(arguments: &Arguments) -> Result<Vec<Named>> {
    let mut links = Vec::new();
    for name in &arguments.links {
        links.push(named(name)?);
    }
    if let Some(overhead) = arguments.overhead {
        let framing = match arguments.framing.as_deref() {
            Some("atm") => Framing::Atm,
            Some("ptm") => Framing::Ptm,
            _ => Framing::None,
        };
        let link = LinkLayer::new(overhead, framing)
            .and_then(|link| link.with_min_frame(arguments.min_frame.unwrap_or(0)))
            .map_err(Failure::new)?;
        links.push(Named { name: "custom".to_owned(), link, preset: None });
    }
    if links.is_empty() {
        links = PRESETS
            .iter()
            .map(|preset| Named { name: preset.name.to_owned(), link: preset.link, preset: Some(preset) })
            .collect();
    }
    if arguments.oam {
        for named in &mut links {
            if named.link.framing() == Framing::Atm {
                named.link = named.link.with_oam(OamShare::I_432).map_err(Failure::new)?;
            }
        }
    }
    Ok(links)
}

/// The link layer with the name of `--link`.
pub(crate) fn link_by_name(name: &str) -> Result<LinkLayer> {
    LinkLayer::from_name(name).ok_or_else(|| {
        let all = "`lastmile overhead` lists them; words of tc-cake(8) are known, too: \"ptm overhead 34\"";
        let hint = layer_meant(name).unwrap_or_else(|| all.to_owned());
        Failure::new(format_args!("--link: unknown link layer \"{name}\"")).hint(hint)
    })
}

fn named(name: &str) -> Result<Named> {
    let link = link_by_name(name)?;
    let preset = Preset::by_name(name);
    Ok(Named { name: preset.map_or(name, |preset| preset.name).to_owned(), link, preset })
}

/// A size on the command line: `1500` or `"1500 B"`.
fn size(text: &str) -> std::result::Result<u64, String> {
    match bytes::parse(text)? {
        size @ 1..=LARGEST => Ok(size),
        size => Err(format!("{size} is not in 1..={LARGEST}")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "for printing")]
fn cost(named: &Named, size: u64) -> Cost {
    let ip = ByteCount::new(size);
    let user_share = named.link.oam().map_or(1.0, |oam| {
        let user = f64::from(oam.user_cells());
        user / (user + 1.0)
    });
    let wire_bytes = named.link.on_wire(ip).as_u64();
    Cost {
        link: named.name.clone(),
        size_bytes: size,
        frame_bytes: named.link.frame(ip),
        wire_bytes,
        cells: named.link.cells(ip).map(CellCount::as_u64),
        efficiency: if wire_bytes == 0 { 0.0 } else { size as f64 / wire_bytes as f64 * user_share },
    }
}

/// One link: its headers, then one line per size.
fn print_one(named: &Named, costs: &[Cost], printer: &mut Printer) -> Result<()> {
    printer.heading(&format!("{}: {}", named.name, summary(named.link)))?;
    if let Some(preset) = named.preset {
        let mut text = String::new();
        for header in preset.headers {
            writeln!(text, "{:>4}  {}", header.bytes, header.name).expect("a string takes all");
        }
        writeln!(text, "{}", preset.note).expect("a string takes all");
        if !preset.aliases.is_empty() {
            writeln!(text, "also called {}", preset.aliases.join(", ")).expect("a string takes all");
        }
        printer.data(&text)?;
    }
    let mut table =
        Table::new(["IP bytes", "frame", "cells", "wire bytes", "efficiency"].map(|title| (title, Kind::Number)));
    for cost in costs {
        table.row([
            cost.size_bytes.to_string(),
            cost.frame_bytes.to_string(),
            cost.cells.map_or_else(|| "-".to_owned(), |cells| cells.to_string()),
            cost.wire_bytes.to_string(),
            percent(cost.efficiency),
        ]);
    }
    printer.data(&format!("\n{}", table.render_within(printer.width())))?;
    Ok(())
}

/// Several links: one line each, with wire bytes, cells and efficiency by size.
fn print_several(links: &[Named], sizes: &[u64], costs: &[Vec<Cost>], printer: &mut Printer) -> Result<()> {
    let columns = [("link", Kind::Name), ("bytes", Kind::Number), ("framing", Kind::Text)];
    let sizes = sizes.iter().flat_map(|size| [format!("{size} B"), "cells".to_owned(), "eff.".to_owned()]);
    let sizes = sizes.map(|title| (title, Kind::Number));
    let mut table = Table::new(columns.map(|(title, align)| (title.to_owned(), align)).into_iter().chain(sizes));
    for (named, costs) in links.iter().zip(costs) {
        let head = [named.name.clone(), named.link.overhead().to_string(), named.link.framing().to_string()];
        let cells = costs.iter().flat_map(|cost| {
            let cells = cost.cells.map_or_else(|| "-".to_owned(), |cells| cells.to_string());
            [cost.wire_bytes.to_string(), cells, percent(cost.efficiency)]
        });
        table.row(head.into_iter().chain(cells));
    }
    printer.table(&table)?;
    Ok(())
}

fn fits(links: &[Named], arguments: &Arguments) -> Result<Vec<Fit>> {
    let chosen = !arguments.links.is_empty() || arguments.overhead.is_some();
    let mut fits = Vec::new();
    for named in links {
        if named.link.framing() != Framing::Atm {
            if chosen {
                return Err(Failure::new(format_args!("--cells: {} has no cells", named.name)));
            }
            continue;
        }
        for &cells in &arguments.cells {
            let count = CellCount::new(cells);
            fits.push(Fit {
                link: named.name.clone(),
                cells,
                size_bytes: named.link.largest_ip_in_cells(count).map(|size| size.as_u64().min(LARGEST)),
                wire_bytes: count.wire_bytes().as_u64(),
            });
        }
    }
    Ok(fits)
}

fn print_fits(fits: &[Fit], counts: &[u64], printer: &mut Printer) -> Result<()> {
    let plural = |count| if count == 1 { "" } else { "s" };
    let columns = counts.iter().map(|&count| (format!("in {count} cell{}", plural(count)), Kind::Number));
    let mut table = Table::new([("largest IP packet".to_owned(), Kind::Name)].into_iter().chain(columns));
    for row in fits.chunks(counts.len()) {
        let sizes = row.iter().map(|fit| fit.size_bytes.map_or_else(|| "-".to_owned(), |size| size.to_string()));
        table.row([row[0].link.clone()].into_iter().chain(sizes));
    }
    printer.table(&table)?;
    Ok(())
}

/// A summary such as `50 bytes around each IP packet, ATM cells, at least 84 bytes`.
fn summary(link: LinkLayer) -> String {
    let mut text = format!("{} bytes around each IP packet", link.overhead());
    if link.min_frame() > 0 {
        write!(text, ", at least {} bytes together", link.min_frame()).expect("a string takes all");
    }
    text.push_str(match link.framing() {
        Framing::None => ", no framing",
        Framing::Atm => ", then cells of 53 bytes that carry 48",
        Framing::Ptm => ", then 65 bytes for every 64",
    });
    if link.oam().is_some() {
        text.push_str("; one cell in 27 is an OAM cell");
    }
    text
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
