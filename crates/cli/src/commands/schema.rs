//! `lastmile schema`: the schema of files, for editors.

use clap::{Args, ValueEnum};
use lastmile_scenario::json_schema;

use crate::failure::{Exit, Result};
use crate::printer::Printer;

/// Print the JSON Schema of scenario or policy files
///
/// Editors complete keys and underline errors by it (draft 2020-12). lastmile run and lastmile policy check
/// find more: ranges of quantities, and conditions between keys.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The kind of file
    file: File,
}

#[derive(Clone, Copy, ValueEnum)]
enum File {
    Scenario,
    Policy,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    printer.json(&match arguments.file {
        File::Scenario => json_schema::scenario(),
        File::Policy => json_schema::policy(),
    })?;
    Ok(Exit::Done)
}
