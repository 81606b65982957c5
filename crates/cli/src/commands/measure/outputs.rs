//! The files that a measurement writes.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_measure::conditions::Conditions;
use lastmile_measure::flent;
use lastmile_measure::report::Measurement;
use lastmile_results::{atomic, json};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::folders::Folders;
use crate::printer::Printer;

use super::{page, table};

/// The name of standard output in place of a file.
const STANDARD_OUTPUT: &str = "-";

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

impl Outputs {
    /// Checks that each file can be written, before there is anything to write.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn prepare(&self, folders: &mut Folders) -> Result<()> {
        for (option, path) in [("--json", self.json_file()), ("--flent", self.flent())] {
            if let Some(path) = path {
                folders.prepare_file(path, option)?;
            }
        }
        self.page().map_or(Ok(()), |path| folders.prepare_page(path, "--page"))
    }

    /// The file for JSON; `None` also for standard output.
    pub(super) fn json_file(&self) -> Option<&Path> {
        self.json.as_deref().filter(|path| *path != Path::new(STANDARD_OUTPUT))
    }

    /// Whether JSON goes to standard output.
    pub(super) fn prints_json(&self) -> bool {
        self.json.as_deref() == Some(Path::new(STANDARD_OUTPUT))
    }

    fn flent(&self) -> Option<&Path> {
        self.flent.as_deref()
    }

    fn page(&self) -> Option<&Path> {
        self.page.as_deref()
    }
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
    let written = [
        outputs.json_file().map(|path| file(path, json::pretty(&document).as_bytes())),
        outputs.flent().map(|path| file(path, &flent::write(measured))),
        outputs.page().map(|path| file(path, page::of(measured, conditions).as_bytes())),
    ];
    let printed = match outputs.prints_json() {
        true => printer.json(&document).map_err(Failure::from),
        false => table::print(measured, conditions, printer),
    };
    outcome(written, printed, printer)
}

/// Writes a file.
pub(super) fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    atomic::write(path, bytes).map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
}

/// One failure of those of files and of standard output; the others are printed. None of them keeps the rest from being
/// written. That the reader of standard output has gone is none: the exit code is a verdict about the measurement.
pub(super) fn outcome<const N: usize>(
    written: [Option<Result<()>>; N],
    printed: Result<()>,
    printer: &mut Printer,
) -> Result<()> {
    let mut failed = written.into_iter().flatten().filter_map(Result::err);
    let Some(first) = failed.next() else { return printed.or_else(Failure::unless_reader_gone) };
    for other in failed {
        printer.failure(&other);
    }
    Err(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verdict about a line does not change with the reader of standard output.
    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        assert!(outcome([None], Err(Failure::ReaderGone), &mut Printer::new()).is_ok());
        assert!(outcome([None], Err(Failure::new("a full disk")), &mut Printer::new()).is_err());
    }

    /// A folder that goes while the line is measured, for one.
    #[test]
    fn a_file_that_cannot_be_written_keeps_no_other_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let measured = Measurement {
            schema: 1,
            version: String::new(),
            started_unix_s: 0.0,
            host: "192.0.2.1".to_owned(),
            load: None,
            phases: Vec::new(),
            clocks: None,
            warnings: Vec::new(),
            complete: true,
        };
        let at = |name: &str| Some(folder.path().join(name));
        let outputs = Outputs { json: at("gone/line.json"), flent: at("line.flent.gz"), page: at("line.html") };
        let failure = write(&measured, &Conditions::of(&measured), &outputs, &mut Printer::new()).unwrap_err();
        let Failure::Wrong { message, .. } = failure else { panic!("{failure:?}") };
        assert!(message.contains("gone/line.json"), "{message}");
        assert!(folder.path().join("line.flent.gz").is_file() && folder.path().join("line.html").is_file());
    }
}
