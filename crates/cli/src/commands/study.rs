//! `lastmile study`: a scenario at many points of a space, each with several seeds, kept in a folder.

mod progress;
mod status;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lastmile_scenario::file::{Reading, read};
use lastmile_studies::study::check::check;
use lastmile_studies::study::folder::{TABLE, carry_out};
use lastmile_studies::study::journal::{FILE, Record, about_other};
use lastmile_studies::study::means::{means, notes};
use lastmile_studies::study::measured::is_of_an_entry;
use lastmile_studies::study::page::PAGE;
use lastmile_studies::study::plan::{Ended, Failure as Failed, Means, Runs};
use lastmile_studies::study::statistics::Estimate;
use lastmile_studies::study::{Described, Store, Table};
use serde::Serialize;

use self::progress::{Progress, failures};
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::memory::Grant;
use crate::printer::Printer;

/// Run a study: a scenario at many points of a space, each with several seeds
///
/// The file names a scenario, lists or ranges of values for its keys, and the seeds of each point.
/// Each finished run is kept in the folder, under an address made of everything that determines its
/// result. A study that was stopped by Ctrl-C or killed goes on, and nothing runs twice. Studies may
/// share the runs of a folder; its table and its report are those of the last one.
///
/// The table shows the mean of each measure over the seeds with its 95 % interval. DIR/table.parquet
/// has a row for each run, with every measure; DIR/report.html shows the measures against the keys;
/// DIR/study.json says how far the study is. Python takes the same file, and runs it on a cluster.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    start: Start,
}

#[derive(Subcommand)]
enum Command {
    Status(status::Arguments),
}

#[derive(Args)]
struct Start {
    /// Study file
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,

    /// Directory for runs and table; created if it does not exist
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,

    #[command(flatten)]
    memory: Grant,

    /// Threads for the runs; results do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = crate::commands::threads)]
    threads: Option<NonZeroUsize>,

    /// Print JSON: the means of every measure at each point
    #[arg(long)]
    json: bool,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document<'a> {
    study: &'a str,
    runs: usize,
    simulated: usize,
    points: Vec<Point>,
    notes: Vec<String>,
    failed: Vec<FailedRun<'a>>,
}

#[derive(Serialize)]
struct Point {
    set: BTreeMap<String, String>,
    seeds: usize,
    means: BTreeMap<String, Mean>,
}

#[derive(Serialize)]
struct Mean {
    mean: f64,
    ci95: Option<f64>,
    runs: usize,
}

#[derive(Serialize)]
struct FailedRun<'a> {
    point: &'a str,
    seed: u64,
    reason: &'a str,
}

/// Why the command ends a study.
enum Stop {
    Signal(Exit),
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    if let Some(Command::Status(arguments)) = &arguments.command {
        return status::run(arguments, printer);
    }
    let Start { file: Some(file), out: Some(out), .. } = &arguments.start else {
        unreachable!("clap demands a file and a folder, or a command");
    };
    start_study(&arguments.start, (file, out), printer)
}

fn start_study(start: &Start, (file, out): (&Path, &Path), printer: &mut Printer) -> Result {
    let described = Described::load(file).map_err(Failure::Report)?;
    let interrupt = Interrupt::watch()?;
    let mut folders = Folders::default();
    folders.prepare(out, &[TABLE, PAGE, FILE], "--out")?;
    let store = Store::open(out).map_err(|error| in_folder(out, &error))?;
    let (memory, is_over) = (start.memory.memory(), || interrupt.requested().is_some());
    let load = |overrides: &[_]| described.scenario(overrides);
    let means = Means { load: &load, store: &store, memory: &memory, threads: start.threads, is_over: &is_over };
    let study = described.study();
    let heed = || interrupt.requested().map_or(Ok(()), |exit| Err(Stop::Signal(exit)));
    let checked = match check(&study, means, &mut |_| heed()) {
        Ok(checked) => checked,
        Err(ended) => return end(ended, out),
    };
    printer.warnings(&checked.warnings);
    if let Some(need) = checked.need {
        printer.talk(&need);
    }
    let record = Record {
        name: described.name.clone(),
        file: std::path::absolute(file).ok().map(|path| path.display().to_string()),
        text: read(file, Reading::Again).ok(),
        ..Record::default()
    };
    let record = record.of(&study);
    if let Some(other) = about_other(out, &record) {
        printer.talk(&format!("note: {other}"));
    }
    let mut progress = Progress::new(printer.is_watched());
    let done = carry_out(&study, means, (record, &described.measures), &mut |now, record| {
        progress.show(now, record);
        heed()
    });
    progress.finish();
    match done {
        Ok((runs, table)) => {
            if let Some(damaged) = runs.about_damaged("simulated again") {
                printer.talk(&format!("note: {damaged}"));
            }
            let mut printed = print(start, &described, (&runs, &table), printer);
            if printed.is_ok() && !start.json {
                let (table, page) = (out.join(TABLE), out.join(PAGE));
                let paths = format!("\ntable: {}\nreport: {}\n", table.display(), page.display());
                printed = printer.data(&paths).map_err(Failure::from);
            }
            printed.or_else(Failure::unless_reader_gone)?;
            Ok(if runs.failures.is_empty() { Exit::Done } else { Exit::No })
        }
        Err(ended) => end(ended, out),
    }
}

/// The exit code after a signal, or the failure.
fn end(ended: Ended<Stop>, out: &Path) -> Result {
    match ended {
        Ended::Stop(Stop::Signal(exit)) => Ok(exit),
        Ended::Wrong(wrong) => Err(wrong.into()),
        Ended::Io(error) => Err(in_folder(out, &error)),
    }
}

fn in_folder(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format_args!("--out {}: {error}", folder.display()))
}

fn print(start: &Start, described: &Described, (runs, table): (&Runs, &Table), printer: &mut Printer) -> Result<()> {
    if start.json {
        let failed =
            runs.failures.iter().map(|Failed { point, seed, reason }| FailedRun { point, seed: *seed, reason });
        let document = Document {
            study: &described.name,
            runs: runs.progress.runs,
            simulated: runs.progress.simulated,
            points: points(table, &described.measures)?,
            notes: notes(&described.study(), table),
            failed: failed.collect(),
        };
        return Ok(printer.json(&document)?);
    }
    printer.heading(&described.name)?;
    let seeds = described.seeds.in_words();
    let numbers = format!("{} points, {} runs", described.space.points.len(), runs.progress.runs);
    printer.data(&format!("\n{numbers}. {seeds}\n\n"))?;
    printer.table(&means(table, &described.measures)?)?;
    for note in notes(&described.study(), table) {
        printer.data(&format!("\n{note}\n"))?;
    }
    for words in failures(&runs.failures) {
        printer.talk(&words);
    }
    Ok(())
}

/// The means of the measures of each point: those that the study names, and all but those of single flows, pings and
/// links.
fn points(table: &Table, named: &[String]) -> Result<Vec<Point>> {
    let keys = table.keys();
    let set = |point: &[String]| keys.iter().map(|key| (*key).to_owned()).zip(point.iter().cloned()).collect();
    let mut all: Vec<(Vec<String>, Point)> = Vec::new();
    for (point, seeds) in table.points() {
        let empty = Point { set: set(&point), seeds, means: BTreeMap::new() };
        all.push((point, empty));
    }
    let is_printed = |measure: &&str| !is_of_an_entry(measure) || named.iter().any(|name| name == measure);
    for measure in table.measures().into_iter().filter(is_printed) {
        let estimates: BTreeMap<_, _> = table.estimates(measure)?.into_iter().collect();
        for (point, row) in &mut all {
            if let Some(&Estimate { mean, ci95, seeds }) = estimates.get(point) {
                row.means.insert(measure.to_owned(), Mean { mean, ci95, runs: seeds });
            }
        }
    }
    Ok(all.into_iter().map(|(_, row)| row).collect())
}
