//! `lastmile analyse`: TCP connections in captures and results: retransmissions and their causes,
//! limits, fairness.

mod both_ends;
mod connection;
mod csv;
mod document;
mod flows;
mod group;
mod read;
mod row;
mod run;
mod samples;
mod tables;

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_analysis::joined;
use lastmile_results::write::SERIES;
use lastmile_results::{atomic, captured, json, parquet};

use self::document::Document;
use self::group::GroupBy;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Name of the file with all results.
const ANALYSIS: &str = "analysis.json";

/// Analyse captures: causes of retransmissions, limits of each connection, differences in goodput
///
/// Reads pcap and pcapng, also compressed by gzip or zstd, and the folders that `run --out` writes.
/// The output for such a folder compares the run's own counters with those of its captures. `up` is
/// the data from the side that opened a connection, `down` the data to it. The position of the
/// capture is inferred from the packets; captures next to the sender are the most informative. Exit
/// code 1: a capture could not be read to its end.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Captures (pcap, pcapng; .gz and .zst too; - for standard input), or folders with the results of a run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Compare groups: dscp, port (of the side that accepted), prefix/BITS (address of the side
    /// that opened the connection)
    #[arg(long, value_name = "KEY", value_parser = GroupBy::parse)]
    group_by: Option<GroupBy>,

    /// Show all results of this connection, by its number in the table
    #[arg(long, value_name = "N", conflicts_with_all = ["json", "csv"])]
    connection: Option<usize>,

    /// Rows of the table of connections, the largest first; 0 for all
    #[arg(long, value_name = "N", default_value_t = 40)]
    most: usize,

    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print comma-separated values: a row for each connection and direction
    #[arg(long)]
    csv: bool,

    /// Write analysis.json, and series.parquet with timeouts, fast retransmits and pauses by time,
    /// into this folder; for a single FILE only
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Page to write, such as report.html: the largest connections as time-sequence graph, outstanding
    /// data with the estimated congestion window, round trips, throughput and ACK spacing. A name that
    /// ends in .svg: the first two of the largest direction, as one drawing
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// Parquet file to write, such as segments.parquet: a row for each TCP packet
    #[arg(long, value_name = "FILE")]
    segments: Option<PathBuf>,

    /// Another capture of the same packets, at another position of their path: one-way delays between
    /// the two, and where packets were lost
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    if arguments.out.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--out: of one FILE only").hint("analyse them one after the other"));
    }
    for (option, given) in [
        ("--page", arguments.page.is_some()),
        ("--segments", arguments.segments.is_some()),
        ("--with", arguments.with.is_some()),
    ] {
        if given && arguments.files.len() > 1 {
            return Err(
                Failure::new(format_args!("{option}: of one FILE only")).hint("analyse them one after the other")
            );
        }
    }
    if arguments.files.iter().chain(&arguments.with).filter(|file| *file == Path::new(read::STANDARD_INPUT)).count() > 1
    {
        return Err(Failure::new("standard input (-) can be read once"));
    }
    let _cut_off = Interrupt::at_once()?;
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare(out, &[SERIES, ANALYSIS], "--out")?;
    }
    for (option, path) in [("--page", &arguments.page), ("--segments", &arguments.segments)] {
        if let Some(path) = path {
            folders.prepare_file(path, option)?;
        }
    }
    let wanted = read::Wanted {
        pictures: arguments.page.is_some(),
        glimpses: arguments.with.is_some(),
        segments: arguments.segments.as_deref(),
    };
    let mut analysed = Vec::new();
    for file in &arguments.files {
        analysed.extend(read::all(file, wanted)?);
    }
    let mut documents: Vec<Document> =
        analysed.iter().map(|file| Document::new(file, arguments.group_by.as_ref())).collect();
    if let (Some(with), [first], [document]) = (&arguments.with, &mut analysed[..], &mut documents[..]) {
        document.joined = Some(both_ends(first, with)?);
    }
    let is_table = !arguments.json && !arguments.csv && arguments.connection.is_none();
    for document in &documents {
        // The table begins with this message.
        if let Some(broken) = tables::broken(document).filter(|_| !is_table) {
            printer.talk(&format!("error: {broken}"));
        }
    }
    for document in &documents {
        tables::tell(document, printer);
    }
    if let Some(number) = arguments.connection {
        for (file, document) in analysed.iter().zip(&documents) {
            tables::one(file, document, number, printer)?;
        }
    } else if arguments.json {
        printer.json(&document::Files { files: &documents })?;
    } else if arguments.csv {
        printer.write(|to| csv::write(&documents, to))?;
    } else {
        for document in &documents {
            tables::all(document, arguments.most, printer)?;
        }
    }
    if let Some(directory) = &arguments.out {
        write(directory, &analysed, &documents)?;
    }
    for file in &mut analysed {
        if let Some(segments) = file.segments.take() {
            let path = segments.path().to_owned();
            segments.commit().map_err(|error| cannot_write(&path, &error))?;
        }
    }
    if let (Some(path), [file], [document]) = (&arguments.page, &analysed[..], &documents[..]) {
        write_page(path, file, document)?;
        printer.talk(&format!("page: {}", path.display()));
    }
    Ok(if documents.iter().all(|document| document.complete) { Exit::Done } else { Exit::No })
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format_args!("cannot write {}: {error}", path.display()))
}

/// Compares a capture with another of the same packets.
fn both_ends(first: &mut read::Analysed, with: &Path) -> Result<both_ends::BothEnds> {
    let wanted = read::Wanted { glimpses: true, ..read::Wanted::default() };
    let mut second = read::all(with, wanted)?;
    let mut glimpses = second.iter_mut().filter_map(|file| file.glimpses.take());
    let pair = first.glimpses.take().zip(glimpses.next());
    let joined = pair.and_then(|(first, second)| joined::join(first, second));
    drop(glimpses);
    let (Some(joined), [second]) = (joined, &second[..]) else {
        return Err(Failure::new(format_args!("{}: no packet of {}", with.display(), first.path.display()))
            .hint("the captures must be of the same packets, without address translation between them"));
    };
    let name = with.display().to_string();
    Ok(both_ends::BothEnds::new(&name, &joined, &first.connections, &second.connections))
}

fn write_page(path: &Path, file: &read::Analysed, document: &Document) -> Result<()> {
    let Some(pictures) = &file.pictures else { return Ok(()) };
    let lines: Vec<String> = tables::summary(document).lines().map(str::to_owned).collect();
    let warnings: Vec<String> = tables::broken(document).into_iter().chain(tables::warnings(document)).collect();
    let mut texts = Vec::new();
    if !document.datagram_flows.is_empty() {
        texts.push(flows::table(&document.datagram_flows, captured::MOST_DRAWN));
    }
    if let Some(joined) = &document.joined {
        texts.push(both_ends::text(joined, &document.file));
    }
    let capture = captured::Capture {
        name: &document.file,
        lines: &lines,
        warnings: &warnings,
        connections: &file.connections,
        tables: &texts,
        version: env!("CARGO_PKG_VERSION"),
    };
    let is_drawing = path.extension().is_some_and(|extension| extension == "svg");
    let text = if is_drawing { captured::figure(&capture, pictures) } else { captured::page(&capture, pictures) };
    atomic::write(path, text.as_bytes()).map_err(|error| cannot_write(path, &error))
}

fn write(directory: &Path, analysed: &[read::Analysed], documents: &[Document]) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    let path = directory.join(SERIES);
    let mut rows = Vec::new();
    let series: Vec<_> = analysed.iter().flat_map(samples::of).collect();
    parquet::write(&series, &mut rows).map_err(|error| cannot_write(&path, &error))?;
    atomic::write(&path, &rows).map_err(|error| cannot_write(&path, &error))?;
    let path = directory.join(ANALYSIS);
    atomic::write(&path, json::pretty(&document::Files { files: documents }).as_bytes())
        .map_err(|error| cannot_write(&path, &error))
}
