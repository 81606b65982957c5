//! The files that a measurement writes.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_measure::conditions::Conditions;
use lastmile_measure::flent;
use lastmile_measure::report::Measurement;
use lastmile_results::{atomic, json};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::printer::Printer;

use super::{page, table};

/// The files of a measurement.
#[derive(Args)]
pub(super) struct Outputs {
    /// Write the measurement as JSON to this file, or with - to standard output in place of the table
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// Write a data file of flent, such as line.flent.gz, for `flent -i`
    #[arg(long, value_name = "FILE")]
    pub(super) flent: Option<PathBuf>,

    /// Write a page with graphs: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) page: Option<PathBuf>,
}

/// The measurement with its working conditions, as JSON.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    measured: &'a Measurement,
    conditions: &'a Conditions,
}

/// Prints the table or JSON, and writes the files.
pub(super) fn write(
    measured: &Measurement,
    conditions: &Conditions,
    outputs: &Outputs,
    printer: &mut Printer,
) -> Result<()> {
    let document = Document { measured, conditions };
    let to_output = outputs.json.as_deref() == Some(Path::new("-"));
    if let Some(path) = outputs.json.as_deref().filter(|_| !to_output) {
        file(path, json::pretty(&document).as_bytes())?;
    }
    if let Some(path) = &outputs.flent {
        file(path, &flent::write(measured))?;
    }
    if let Some(path) = &outputs.page {
        file(path, page::of(measured, conditions).as_bytes())?;
    }
    if to_output {
        return Ok(printer.json(&document)?);
    }
    table::print(measured, conditions, printer)
}

fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    atomic::write(path, bytes).map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}
