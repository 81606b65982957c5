//! `lastmile analyse`: TCP connections in captures and results: retransmissions and their causes,
//! limits, fairness.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_results::captured::PANELS;
use lastmile_results::write::SERIES;
use lastmile_results::{atomic, json, parquet};
use lastmile_studies::captures::{self, Capture, GroupBy, STANDARD_INPUT, Wanted};

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
/// code 1: a capture could not be read to its end, or `--page` has nothing to draw.
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
    if arguments.files.iter().chain(&arguments.with).filter(|file| *file == Path::new(STANDARD_INPUT)).count() > 1 {
        return Err(Failure::new("standard input (-) can be read once"));
    }
    let _cut_off = Interrupt::at_once()?;
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare(out, &[SERIES, ANALYSIS], "--out")?;
    }
    if let Some(path) = &arguments.page {
        folders.prepare_kind(path, "--page", "a page is HTML, and a drawing SVG", &["html", "htm", "svg"])?;
    }
    if let Some(path) = &arguments.segments {
        folders.prepare_kind(path, "--segments", "segments are Parquet", &["parquet"])?;
    }
    let wanted = Wanted {
        pictures: arguments.page.is_some(),
        glimpses: arguments.with.is_some(),
        segments: arguments.segments.as_deref(),
    };
    let mut captures = Vec::new();
    for file in &arguments.files {
        captures.extend(Capture::read(file, wanted, arguments.group_by, None)?);
    }
    if let (Some(with), [first]) = (&arguments.with, &mut captures[..]) {
        first.join(with)?;
    }
    // Files first: the reader of standard output may leave early.
    if let Some(directory) = &arguments.out {
        write(directory, &captures)?;
    }
    if let Some(path) = &arguments.segments {
        for capture in &mut captures {
            capture.commit_segments().map_err(|error| cannot_write(path, &error))?;
        }
    }
    let mut is_drawn = true;
    if let (Some(path), [capture]) = (&arguments.page, &captures[..]) {
        is_drawn = write_page(path, capture)?;
        printer.talk(&if is_drawn {
            format!("page: {}", path.display())
        } else {
            format!("warning: {} has nothing to draw: {} is not written", capture.file(), path.display())
        });
    }
    print(arguments, &captures, printer).or_else(Failure::unless_reader_gone)?;
    Ok(if is_drawn && captures.iter().all(Capture::is_complete) { Exit::Done } else { Exit::No })
}

fn print(arguments: &Arguments, captures: &[Capture], printer: &mut Printer) -> Result<()> {
    let is_table = !arguments.json && !arguments.csv && arguments.connection.is_none();
    for capture in captures {
        // The table begins with this message.
        if !is_table {
            for broken in capture.broken() {
                printer.talk(&format!("error: {broken}"));
            }
        }
    }
    for capture in captures {
        for (file, text) in capture.warnings() {
            printer.talk(&format!("warning: {file}: {text}"));
        }
    }
    if let Some(number) = arguments.connection {
        for capture in captures {
            let text = capture.connection(number, printer.width())?;
            printer.heading(&format!("{}: connection {number}", capture.file()))?;
            printer.data(&text)?;
        }
    } else if arguments.json {
        printer.json(&captures::document(captures))?;
    } else if arguments.csv {
        printer.write(|to| captures::write_csv(captures, to))?;
    } else {
        for capture in captures {
            for broken in capture.broken() {
                printer.data(&format!("{broken}\n"))?;
            }
            printer.heading(capture.file())?;
            printer.data(&capture.table(arguments.most, printer.width()))?;
        }
    }
    Ok(())
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format_args!("cannot write {}: {error}", path.display()))
}

/// False if there is nothing to draw, and no file is written.
fn write_page(path: &Path, capture: &Capture) -> Result<bool> {
    let is_drawing = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let text = if is_drawing { capture.drawing(&PANELS[..2]) } else { capture.page() };
    let Some(text) = text else { return Ok(false) };
    atomic::write(path, text.as_bytes()).map_err(|error| cannot_write(path, &error))?;
    Ok(true)
}

fn write(directory: &Path, captures: &[Capture]) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, &error))?;
    let path = directory.join(SERIES);
    let mut rows = Vec::new();
    let series: Vec<_> = captures.iter().flat_map(Capture::series).collect();
    parquet::write(&series, &mut rows).map_err(|error| cannot_write(&path, &error))?;
    atomic::write(&path, &rows).map_err(|error| cannot_write(&path, &error))?;
    let path = directory.join(ANALYSIS);
    let text = json::pretty(&captures::document(captures));
    atomic::write(&path, text.as_bytes()).map_err(|error| cannot_write(&path, &error))
}
