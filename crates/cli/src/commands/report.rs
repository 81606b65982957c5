//! `lastmile report`: comparison of existing results.

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use lastmile_results::comparison::{self, Comparison, Row};
use lastmile_results::{Run, Summary, read, write};
use lastmile_text::table::{Kind, Table};
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Compare the results of earlier runs
///
/// Reads folders written by --out of other commands, or by another program in the same schema, and
/// prints one row for each. With --out, writes a page with all of them in common plots.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders with a summary.json, and series.parquet or series.csv; the folders' names are the
    /// labels
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,

    /// Page to write, such as report.html
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Print JSON: the contents of the table, and each run's summary
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ReportedRun<'a> {
    label: &'a str,
    #[serde(flatten)]
    measured: Row,
    summary: &'a Summary,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    let mut folders = Folders::default();
    if let Some(out) = &arguments.out {
        folders.prepare_out_page(out)?;
    }
    let mut runs: Vec<Run> = Vec::new();
    for folder in &arguments.folders {
        // A path such as `..` is resolved for its name.
        let named = folder.file_name().map_or_else(|| folder.canonicalize().ok(), |_| None);
        let run = read::read(named.as_deref().unwrap_or(folder)).map_err(|error| match error.source.kind() {
            ErrorKind::NotFound => Failure::new(error).hint("a folder that `--out` of another command has written"),
            _ => Failure::new(error),
        })?;
        if runs.iter().any(|other| other.label == run.label) {
            return Err(Failure::new(format_args!("two of the folders are called \"{}\"", run.label))
                .hint("their names are the labels of the runs: copy or link one under another name"));
        }
        runs.push(run);
    }
    let comparison = Comparison::of(runs);
    if let Some(out) = &arguments.out {
        write::write_comparison(out, &comparison).map_err(Failure::new)?;
    }
    let rows = comparison.measured();
    let labels = comparison.rows.iter().map(|row| &row.label);
    if arguments.json {
        let runs = comparison.rows.iter().flat_map(|row| &row.runs).zip(rows.into_iter().flatten());
        let reported: Vec<ReportedRun<'_>> =
            runs.map(|(run, measured)| ReportedRun { label: &run.label, measured, summary: &run.summary }).collect();
        printer.json(&reported)?;
    } else {
        let (columns, texts) = comparison::table(&rows);
        let columns = columns.into_iter().map(|name| (name, Kind::Number));
        let mut table = Table::new([("results", Kind::Name), ("measured", Kind::Name)].into_iter().chain(columns));
        for ((label, row), cells) in labels.zip(&rows).zip(texts) {
            table.row([label.clone(), comparison::measured_where(row)].into_iter().chain(cells));
        }
        printer.table(&table)?;
    }
    if let Some(out) = &arguments.out {
        printer.talk(&format!("report: {}", out.display()));
    }
    Ok(Exit::Done)
}
