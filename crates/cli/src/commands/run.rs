//! `lastmile run`: simulates a scenario, once or with several remedies, prints what came of it and writes the results.

pub(super) mod capture;
mod difference;
pub(super) mod options;
mod simulate;
pub(super) mod variants;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{MultiProgress, ProgressDrawTarget};
use lastmile_results::comparison::Comparison;
use lastmile_results::schema::Document;
use lastmile_results::seeds::{Means, Seeded};
use lastmile_results::{Run, table, write};
use lastmile_scenario::Scenario;
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::memory::{Grant, Memory};
use crate::parallel::in_parallel;
use crate::printer::Printer;

use self::options::{Changes, Files};
pub(super) use self::simulate::Done;
#[cfg(target_os = "linux")]
pub(super) use self::simulate::origin;
use self::simulate::{Early, Shared, simulate};
use self::variants::Variant;

/// Simulate a scenario
///
/// Prints the goodput, the limit and the closed-form bound of each flow. With --out, writes summary.json,
/// series.parquet and report.html. With --remedy or --vary, the scenario runs once for each value, and the runs are compared.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file
    pub(super) scenario: PathBuf,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    #[command(flatten)]
    pub(super) changes: Changes,

    /// Run with so many seeds, from the seed of the file or of --seed on: means with 95 % intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub(super) seeds: Option<u64>,

    /// Compare remedies, such as none,sad, each in place of the policy or remedy of the file
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "vary")]
    pub(super) remedy: Vec<String>,

    /// Compare values of a key: one run for each
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub(super) vary: Option<String>,

    #[command(flatten)]
    pub(super) files: Files,

    #[command(flatten)]
    pub(super) memory: Grant,

    /// Threads for the runs of a comparison; they change nothing in the results [default: one a processor]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<NonZeroUsize>,

    /// Print JSON: the summary, and under "timing" what depends on the machine
    #[arg(long)]
    pub(super) json: bool,

    /// Real packets and the kernel's TCP in place of simulated ones: lastmile lab
    #[cfg(target_os = "linux")]
    #[arg(long, conflicts_with_all = ["remedy", "vary", "seeds", "threads"])]
    pub(super) live: bool,
}

impl Arguments {
    /// One run of this scenario, and no more.
    pub(super) fn of_one(scenario: PathBuf) -> Self {
        Self {
            scenario,
            seed: None,
            seeds: None,
            changes: Changes::default(),
            remedy: Vec::new(),
            vary: None,
            files: Files::default(),
            memory: Grant::default(),
            threads: None,
            json: false,
            #[cfg(target_os = "linux")]
            live: false,
        }
    }
}

/// What `--json` prints for a comparison.
#[derive(Serialize)]
struct Compared<'a> {
    scenario: &'a str,
    /// Means over seeds, for each of the runs that differ by more than the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<Vec<Means<'a>>>,
    runs: Vec<Labelled<'a>>,
}

#[derive(Serialize)]
struct Labelled<'a> {
    label: &'a str,
    #[serde(flatten)]
    document: Document<'a>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    #[cfg(target_os = "linux")]
    if arguments.live {
        return super::lab::run(&super::lab::Arguments::from(arguments), printer);
    }
    let mut variants = variants::of(arguments)?;
    // All are read before any runs: a mistake in the last should not cost the time of the first.
    let mut scenarios: Vec<Scenario> = Vec::new();
    for variant in &variants {
        let scenario = Scenario::load_with(&arguments.scenario, &variant.overrides).map_err(Failure::Report)?;
        scenario.needs_traffic(&arguments.scenario.display().to_string()).map_err(Failure::Report)?;
        match scenarios.first() {
            None => printer.warnings(scenario.warnings()),
            Some(first) => printer.warnings(&scenario.warnings().beyond(first.warnings()).within(&variant.label)),
        }
        scenarios.push(scenario);
    }
    if let Some(seeds) = arguments.seeds {
        (variants, scenarios) = with_seeds(arguments, seeds, &variants, &scenarios)?;
    }
    let interrupt = Interrupt::watch()?;
    let _folders = folders(arguments, &variants)?;
    let mut done = match simulate_all(arguments, &variants, &scenarios, &interrupt, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    let report = match &arguments.files.out {
        Some(out) => {
            write_runs(out, &variants, &mut done)?;
            if done.len() > 1 {
                let rows = seeded(arguments.seeds.unwrap_or(1), &done);
                write_report(out, &Comparison { rows, alone_bps: Vec::new() })?;
            }
            Some(out.join(write::REPORT))
        }
        None => None,
    };
    print(arguments, &done, report.as_deref(), printer)?;
    if printer.is_watched() {
        for done in &done {
            printer.talk(&done.speed());
        }
    }
    Ok(Exit::Done)
}

/// Each of `variants` with each of so many seeds, variant by variant.
fn with_seeds(
    arguments: &Arguments,
    seeds: u64,
    variants: &[Variant],
    scenarios: &[Scenario],
) -> Result<(Vec<Variant>, Vec<Scenario>)> {
    let mut all = (Vec::new(), Vec::new());
    for (variant, scenario) in variants.iter().zip(scenarios) {
        for variant in variant.over_seeds(scenario.network_ref().seed, seeds) {
            let scenario = Scenario::load_with(&arguments.scenario, &variant.overrides).map_err(Failure::Report)?;
            all.0.push(variant);
            all.1.push(scenario);
        }
    }
    Ok(all)
}

/// The runs of each variant, which are as many as there are seeds.
pub(super) fn seeded(seeds: u64, done: &[Done]) -> Vec<Seeded> {
    let each = usize::try_from(seeds).unwrap_or(usize::MAX);
    let label = |label: &str| match label.rsplit_once(variants::SEED) {
        Some((own, _)) if seeds > 1 => own.to_owned(),
        None if seeds > 1 => String::new(),
        _ => label.to_owned(),
    };
    let of = |runs: &[Done]| Seeded { label: label(&runs[0].run.label), runs: self::runs(runs) };
    done.chunks(each).map(of).collect()
}

/// Simulates `scenarios`, each as its variant. The inner error is how the program is to end, since a signal has come.
pub(super) fn simulate_all(
    arguments: &Arguments,
    variants: &[Variant],
    scenarios: &[Scenario],
    interrupt: &Interrupt,
    printer: &mut Printer,
) -> Result<std::result::Result<Vec<Done>, Exit>> {
    let memory = Memory::new(&arguments.memory);
    memory.admit(scenarios, arguments.threads, printer)?;
    let bars = MultiProgress::with_draw_target(if printer.is_watched() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    });
    let shared = Shared { interrupt, memory: &memory, bars: &bars };
    let mut done = Vec::new();
    for ended in in_parallel(variants.len(), arguments.threads, |number| {
        let (variant, scenario) = (&variants[number], &scenarios[number]);
        let directory = arguments.files.out.as_deref().map(|out| variant.directory(out));
        simulate(arguments, (number, variant), scenario, directory.as_deref(), &shared)
    }) {
        match ended? {
            Ok(run) => done.push(run),
            Err(Early::Signal(exit)) => return Ok(Err(exit)),
            Err(Early::Memory) => memory.outcome()?,
        }
    }
    Ok(interrupt.requested().map_or(Ok(done), Err))
}

/// The folders for the files of each run, and of several for their comparison; none without `--out`.
pub(super) fn folders(arguments: &Arguments, variants: &[Variant]) -> Result<Folders> {
    let mut folders = Folders::default();
    let Some(out) = &arguments.files.out else { return Ok(folders) };
    if variants.len() > 1 {
        folders.prepare(out, &[write::REPORT], "--out")?;
    }
    for variant in variants {
        let folder = variant.directory(out);
        folders.prepare(&folder, &write::FILES, &variant.named_by())?;
        for link in &arguments.files.capture {
            folders.prepare(&folder, &[&capture::file(link)], &format!("--capture {link}"))?;
        }
    }
    Ok(folders)
}

/// Writes the files of each run.
pub(super) fn write_runs(out: &Path, variants: &[Variant], done: &mut [Done]) -> Result<()> {
    for (variant, done) in variants.iter().zip(done) {
        write::write_all(&variant.directory(out), &done.run).map_err(Failure::new)?;
        if let Some(captures) = done.captures.take() {
            captures.commit()?;
        }
    }
    Ok(())
}

/// Writes the page of a comparison; returns its path.
pub(super) fn write_report(out: &Path, comparison: &Comparison) -> Result<PathBuf> {
    let report = out.join(write::REPORT);
    write::write_comparison(&report, comparison).map_err(Failure::new)?;
    Ok(report)
}

fn runs(done: &[Done]) -> Vec<Run> {
    done.iter().map(|done| done.run.clone()).collect()
}

fn print(arguments: &Arguments, done: &[Done], report: Option<&Path>, printer: &mut Printer) -> Result<()> {
    match (done, arguments.json) {
        ([only], true) => printer.write(|to| only.document().write_json(to))?,
        (several, true) => {
            let runs =
                several.iter().map(|done| Labelled { label: &done.run.label, document: done.document() }).collect();
            let seeded = arguments.seeds.map(|seeds| seeded(seeds, several));
            let of = |seeded: &'_ Seeded| seeded.measures();
            let means = seeded
                .as_ref()
                .map(|all| all.iter().map(|seeded| Means { label: &seeded.label, measures: of(seeded) }).collect());
            printer.json(&Compared { scenario: &several[0].run.summary.scenario, means, runs })?;
        }
        ([only], false) => {
            let width = printer.width();
            printer.heading(&only.run.summary.scenario)?;
            printer.data(&format!("\n{}", table::run(&only.run.summary, width)))?;
        }
        (several, false) if arguments.seeds.is_some() => {
            let width = printer.width();
            printer.heading(&several[0].run.summary.scenario)?;
            let seeded = seeded(arguments.seeds.unwrap_or(1), several);
            printer.data(&format!("\n{}", table::over_seeds(&seeded, width)))?;
        }
        (several, false) => {
            let width = printer.width();
            printer.heading(&several[0].run.summary.scenario)?;
            let runs = runs(several);
            let limits = difference::explained(&runs);
            printer.data(&format!("\n{}\n{limits}", table::comparison(&runs, width)))?;
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
