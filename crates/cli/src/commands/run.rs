//! `lastmile run`: simulates a scenario, once or with several seeds, prints the results and writes
//! them.

mod arguments;
mod earlier;
pub(super) mod options;
mod simulate;

use std::path::{Path, PathBuf};

use indicatif::{MultiProgress, ProgressDrawTarget};
use lastmile_results::comparison::Comparison;
use lastmile_results::schema::Document;
use lastmile_results::seeds::{Means, Seeded};
use lastmile_results::{Run, table, write};
use lastmile_scenario::Scenario;
use lastmile_studies::parallel::in_parallel;
use lastmile_studies::recording::file;
use lastmile_studies::{Input, Job, Variant};
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

pub(crate) use self::arguments::Arguments;
pub(super) use self::simulate::Done;
use self::simulate::{Shared, simulate};

/// The document that `--json` prints for several seeds.
#[derive(Serialize)]
struct OverSeeds<'a> {
    scenario: &'a str,
    /// Means over the seeds, under an empty label.
    means: [Means<'a>; 1],
    runs: Vec<Labelled<'a>>,
}

#[derive(Serialize)]
struct Labelled<'a> {
    label: &'a str,
    #[serde(flatten)]
    document: Document<'a>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let name = arguments.scenario.display().to_string();
    // Read once: it may be a pipe.
    let text = Scenario::text(&arguments.scenario).map_err(Failure::Report)?;
    let read = |variant: &Variant| Scenario::parse_with(&name, &text, &variant.overrides).map_err(Failure::Report);
    let one = Variant::new("", &arguments.changes.overrides(arguments.seed), Vec::new());
    let scenario = read(&one)?;
    scenario.needs_traffic(&name).map_err(Failure::Report)?;
    printer.warnings(scenario.warnings());
    let (variants, scenarios): (Vec<Variant>, Vec<Scenario>) = match arguments.seeds {
        None => (vec![one], vec![scenario]),
        Some(seeds) => {
            let variants: Vec<Variant> = one.over_seeds(scenario.network_ref().seed, seeds)?;
            let scenarios = variants.iter().map(read).collect::<Result<_>>()?;
            (variants, scenarios)
        }
    };
    let interrupt = Interrupt::watch()?;
    let _folders = folders(arguments, &variants)?;
    let mut done = match simulate_all(arguments, &variants, &scenarios, &interrupt, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    write_runs(arguments, &variants, &mut done, printer)?;
    let report = match &arguments.files.out {
        Some(out) => {
            if done.len() > 1 {
                write_report(out, &Comparison { rows: vec![one_row(&done)], alone: Vec::new() })?;
            }
            Some(out.join(write::REPORT))
        }
        None => None,
    };
    print(arguments, &done, report.as_deref(), printer)?;
    if printer.is_watched() {
        for done in &done {
            printer.talk(&done.finished.speed());
        }
    }
    Ok(Exit::Done)
}

/// Simulates `scenarios`, each as its variant. The inner error is the exit code after a signal.
pub(super) fn simulate_all(
    arguments: &Arguments,
    variants: &[Variant],
    scenarios: &[Scenario],
    interrupt: &Interrupt,
    printer: &mut Printer,
) -> Result<std::result::Result<Vec<Done>, Exit>> {
    let memory = arguments.memory.memory();
    if let Some(need) = memory.admit(scenarios, arguments.threads)? {
        printer.talk(&need);
    }
    let input = Input::of_file(&arguments.scenario);
    let bars = MultiProgress::with_draw_target(if printer.is_watched() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    let shared = Shared { interrupt, memory: &memory, bars: &bars };
    let mut done = Vec::new();
    for ended in in_parallel(variants.len(), arguments.threads, |number| {
        let (variant, scenario) = (&variants[number], &scenarios[number]);
        let directory = arguments.files.out.as_deref().and_then(|out| variant.directory(out));
        simulate(arguments, Job { number, input: &input, variant, scenario }, directory.as_deref(), &shared)
    }) {
        match ended? {
            Ok(run) => done.push(run),
            Err(Some(exit)) => return Ok(Err(exit)),
            Err(None) => memory.outcome()?,
        }
    }
    Ok(interrupt.requested().map_or(Ok(done), Err))
}

/// The folders for the files of each run, and of several runs for their comparison; none without
/// `--out`.
pub(super) fn folders(arguments: &Arguments, variants: &[Variant]) -> Result<Folders> {
    let mut folders = Folders::default();
    let Some(out) = &arguments.files.out else { return Ok(folders) };
    if variants.len() > 1 {
        folders.prepare(out, &[write::REPORT], "--out")?;
    }
    for variant in variants {
        let Some(folder) = variant.directory(out) else { continue };
        folders.prepare(&folder, &write::FILES, &variant.named_by())?;
        for link in &arguments.files.capture {
            folders.prepare(&folder, &[&file(link)], &format!("--capture {link}"))?;
        }
    }
    Ok(folders)
}

/// Writes the files of each run to `--out`, if it is given.
pub(super) fn write_runs(
    arguments: &Arguments,
    variants: &[Variant],
    done: &mut [Done],
    printer: &mut Printer,
) -> Result<()> {
    let Some(out) = &arguments.files.out else { return Ok(()) };
    for (variant, done) in variants.iter().zip(done) {
        let Some(folder) = variant.directory(out) else { continue };
        write::write_all(&folder, &done.finished.run).map_err(Failure::new)?;
        if let Some(captures) = done.captures.take() {
            captures.commit()?;
        }
    }
    if let Some(note) = earlier::left(out, variants, &arguments.files.capture) {
        printer.talk(&note);
    }
    Ok(())
}

/// Writes the page of a comparison; returns its path.
pub(super) fn write_report(out: &Path, comparison: &Comparison) -> Result<PathBuf> {
    let report = out.join(write::REPORT);
    write::write_comparison(&report, comparison).map_err(Failure::new)?;
    Ok(report)
}

/// Runs that differ only by seed.
fn one_row(done: &[Done]) -> Seeded {
    Seeded { label: String::new(), runs: runs(done) }
}

pub(super) fn runs(done: &[Done]) -> Vec<Run> {
    done.iter().map(|done| done.finished.run.clone()).collect()
}

fn print(arguments: &Arguments, done: &[Done], report: Option<&Path>, printer: &mut Printer) -> Result<()> {
    let scenario = &done[0].finished.run.summary.run.scenario;
    match (done, arguments.json) {
        ([only], true) => printer.write(|to| only.finished.document().write_json(to))?,
        ([only], false) => {
            let width = printer.width();
            printer.heading(scenario)?;
            printer.data(&format!("\n{}", table::run(&only.finished.run.summary, width)))?;
        }
        (several, true) => {
            let seeded = one_row(several);
            let means = [Means { label: &seeded.label, measures: seeded.measures() }];
            let runs = several.iter().map(|done| &done.finished);
            let runs = runs.map(|done| Labelled { label: &done.run.label, document: done.document() }).collect();
            printer.json(&OverSeeds { scenario, means, runs })?;
        }
        (several, false) => {
            let width = printer.width();
            printer.heading(scenario)?;
            printer.data(&format!("\n{}", table::over_seeds(&[one_row(several)], width)))?;
        }
    }
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json {
            printer.talk(&line);
        } else {
            printer.data(&format!("\n{line}\n"))?;
        }
    }
    Ok(())
}
