//! `lastmile study status`: how far the study of a folder is.

use std::path::PathBuf;

use clap::Args;
use lastmile_studies::memory::Memory;
use lastmile_studies::study::journal::{self, FILE, Failed, Record};
use lastmile_studies::study::plan::{Ended, Failure as FailedRun, Means, Progress as Runs};
use lastmile_studies::study::{Described, Store};
use serde::Serialize;

use super::progress::{failures, words};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Show how far the study of a directory is: its runs, the rate, and what failed
///
/// The study is the one that began last. The exit code is 1 until all runs have a result.
#[derive(Args)]
pub(super) struct Arguments {
    /// The directory of --out
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    study: &'a str,
    is_running: bool,
    runs: usize,
    finished: usize,
    runs_per_s: Option<f64>,
    failed: &'a [Failed],
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let folder = &arguments.folder;
    let failure = |error: std::io::Error| Failure::new(format_args!("{}: {error}", folder.display()));
    let Some(record) = journal::read(folder).map_err(failure)? else {
        let message = format_args!("{}: no study: it has no {FILE}", folder.display());
        return Err(Failure::new(message).hint("the directory of `lastmile study FILE --out DIR`"));
    };
    let interrupt = Interrupt::watch()?;
    let is_running = journal::is_running(folder);
    let (runs, failed, damaged) = match look(&record, arguments, &interrupt)? {
        Ok(known) => known,
        Err(interrupted) => return Ok(interrupted),
    };
    if let Some(damaged) = damaged {
        printer.talk(&format!("note: {damaged}"));
    }
    let is_complete = runs.finished == runs.runs;
    let Record { name, .. } = &record;
    if arguments.json {
        let Runs { runs, finished, .. } = runs;
        let document = Document { study: name, is_running, runs, finished, runs_per_s: record.rate(), failed: &failed };
        printer.json(&document)?;
    } else {
        let state = match (is_running, runs.finished + runs.failed == runs.runs) {
            (true, _) => "running",
            (false, true) => "finished",
            (false, false) => "stopped",
        };
        // The time left is that of a study which runs.
        let shown = if is_running { words(runs, &record) } else { words(runs, &Record::default()) };
        let rate = record.rate().filter(|_| !is_running);
        let rate = rate.map(|rate| format!("; it had {} runs/s", lastmile_results::format::number(rate)));
        printer.data(&format!("{name}: {state}, {shown}{}\n", rate.unwrap_or_default()))?;
        let failed: Vec<FailedRun> = failed.iter().map(FailedRun::from).collect();
        for words in failures(&failed) {
            printer.data(&format!("{words}\n"))?;
        }
    }
    Ok(if is_complete { Exit::Done } else { Exit::No })
}

/// Numbers of runs, those without a result, and a sentence about damaged files.
type Looked = (Runs, Vec<Failed>, Option<String>);

/// The runs that the folder has; those of the record if the study has no file. The inner error is the exit code after a
/// signal.
fn look(record: &Record, arguments: &Arguments, interrupt: &Interrupt) -> Result<std::result::Result<Looked, Exit>> {
    let (Some(file), Some(text)) = (&record.file, &record.text) else {
        let Record { runs, finished, simulated, failed, .. } = record.clone();
        return Ok(Ok((Runs { runs, finished, failed: failed.len(), simulated }, failed, None)));
    };
    let described = Described::parse(file, text).map_err(Failure::Report)?;
    let failure = |error: std::io::Error| Failure::new(format_args!("{}: {error}", arguments.folder.display()));
    let store = Store::open(&arguments.folder).map_err(failure)?;
    let (memory, is_over) = (Memory::unlimited(), || interrupt.requested().is_some());
    let load = |overrides: &[_]| described.scenario(overrides);
    let means = Means { load: &load, store: &store, memory: &memory, threads: None, is_over: &is_over };
    let looked = described.study().look(means, &mut |_| interrupt.requested().map_or(Ok(()), Err));
    match looked {
        Ok(runs) => {
            let damaged = runs.about_damaged("counted as not run");
            Ok(Ok((runs.progress, runs.failures.iter().map(Failed::from).collect(), damaged)))
        }
        Err(Ended::Stop(exit)) => Ok(Err(exit)),
        Err(Ended::Wrong(wrong)) => Err(wrong.into()),
        Err(Ended::Io(error)) => Err(failure(error)),
    }
}
