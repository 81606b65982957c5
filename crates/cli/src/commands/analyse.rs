//! `lastmile analyse`: TCP connections in captures and results: retransmissions and their causes,
//! limits, fairness.

mod csv;
mod document;
mod group;
mod read;
mod row;
mod run;
mod samples;
mod tables;

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_results::write::SERIES;
use lastmile_results::{atomic, json, parquet};

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
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    if arguments.out.is_some() && arguments.files.len() > 1 {
        return Err(Failure::new("--out: of one FILE only").hint("analyse them one after the other"));
    }
    if arguments.files.iter().filter(|file| *file == Path::new(read::STANDARD_INPUT)).count() > 1 {
        return Err(Failure::new("standard input (-) can be read once"));
    }
    let _cut_off = Interrupt::at_once()?;
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare(out, &[SERIES, ANALYSIS], "--out")?;
    }
    let mut analysed = Vec::new();
    for file in &arguments.files {
        analysed.extend(read::all(file)?);
    }
    let documents: Vec<Document> =
        analysed.iter().map(|file| Document::new(file, arguments.group_by.as_ref())).collect();
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
    Ok(if documents.iter().all(|document| document.complete) { Exit::Done } else { Exit::No })
}

fn write(directory: &Path, analysed: &[read::Analysed], documents: &[Document]) -> Result<()> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let path = directory.join(SERIES);
    let mut rows = Vec::new();
    let series: Vec<_> = analysed.iter().flat_map(samples::of).collect();
    parquet::write(&series, &mut rows).map_err(|error| failed(&path, &error))?;
    atomic::write(&path, &rows).map_err(|error| failed(&path, &error))?;
    let path = directory.join(ANALYSIS);
    atomic::write(&path, json::pretty(&document::Files { files: documents }).as_bytes())
        .map_err(|error| failed(&path, &error))
}
