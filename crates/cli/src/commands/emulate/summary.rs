//! The results of an emulated line.

use lastmile_lab::line;
use lastmile_lab::path::Path;
use lastmile_live::emulate::Outcome;
use lastmile_results::schema::Inputs;
use lastmile_results::{Origin, json, table};
use lastmile_scenario::Scenario;
use lastmile_scenario::file::{self, Reading};
use lastmile_studies::variant::pairs;

use crate::failure::Result;
use crate::printer::Printer;

use super::{Start, devices};

/// Prints on standard output, or on standard error if a command uses standard output.
pub(super) fn print(
    arguments: &Start,
    scenario: &Scenario,
    path: &Path,
    outcome: &Outcome,
    printer: &mut Printer,
) -> Result<()> {
    let file = arguments.scenario.as_deref();
    let origin = Origin {
        scenario: scenario.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs: Inputs {
            file: file.and_then(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned()),
            set: pairs(&arguments.overrides()),
            // A pipe has been read, and its text is not stored.
            text: file.and_then(|file| file::read(file, Reading::Again).ok()),
        },
    };
    let document = line::document(&origin, path, outcome);
    let alone = arguments.command.is_empty();
    let text = match (arguments.json, alone) {
        (true, true) => return Ok(printer.json(&document)?),
        (true, false) => json::pretty(&document),
        (false, _) => format!("{}\n{}", table::run(&document.summary, printer.width()), devices::table(&document.live)),
    };
    if alone {
        printer.data(&text)?;
    } else {
        printer.talk_lines(text.trim_end());
    }
    Ok(())
}
