//! `lastmile compare`: one scenario in several cases, under remedies, or with values of a key, side by side.

mod variants;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lastmile_results::comparison::{self, Row};
use lastmile_results::schema::Document;
use lastmile_results::{Run, format};
use lastmile_scenario::{Override, Scenario};
use lastmile_sim::spec::Source;
use lastmile_units::Duration;
use serde::Serialize;

use self::variants::Rows;
use super::run::options::{Changes, Files};
use super::run::variants::{Variant, common};
use super::run::{self, Done};
use crate::exit::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::memory::Grant;
use crate::printer::Printer;
use crate::table::{Align, Table};

/// Columns of a terminal that nobody has made larger.
const WIDTH: usize = 80;

/// What the run of the downloads alone is called.
const ALONE: &str = "download alone";

/// Simulate a scenario in several cases, under remedies, or with values of a key
///
/// Over an [access] line, prints what each leaves of downloads and uploads while both run, what share that is of the downloads alone on the
/// line's own queues, and the round trips of the file's ping and of a best-effort probe, which is added: a ping over UDP without a code point,
/// with at most 1 % of the upstream. Over other networks, prints what connections get and how evenly, what was lost, and over ATM the queue of the busiest port
/// and what waits at the edge. With --out, writes the results of each run and a report that shows them side by side.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file, with an [access] line, a [[case]] for each run, or --vary
    scenario: PathBuf,

    /// Ready policies, files of policies, or remedies of `[access]`, each in place of the policy or remedy of the file; `none` is the line's own
    /// queues [default: the [[case]]s of the file, or none, the policy or remedy of the file, cake, fq-codel-sqm and full-both-ways]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    remedies: Vec<String>,

    /// Instead of remedies: run once for each value of a key, such as access.up.interleave=none,cells
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "remedies")]
    vary: Option<String>,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// How long each run lasts; short for --set duration=TIME
    #[arg(long, value_name = "TIME")]
    duration: Option<Duration>,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    memory: Grant,

    /// Threads for the runs; they change nothing in the results [default: one a processor]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Print JSON: what the table holds, and each run's summary
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Comparison<'a> {
    scenario: &'a str,
    /// Goodput of the downloads alone; only over an access line.
    reference_bps: Option<f64>,
    runs: Vec<Compared<'a>>,
}

#[derive(Serialize)]
struct Compared<'a> {
    label: &'a str,
    #[serde(flatten)]
    measured: Row,
    summary: Document<'a>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let file = Scenario::load_with(&arguments.scenario, &arguments.common()).map_err(Failure::Report)?;
    printer.warnings(file.warnings());
    let Rows { what, mut variants, reference } = variants::of(arguments, &file)?;
    let mut scenarios = Vec::new();
    for variant in &variants {
        let read = Scenario::load_with(&arguments.scenario, &variant.overrides);
        // The file is right as it is, so what is wrong now comes of this.
        let why = format!("{what} \"{}\"", variant.label);
        let scenario = read.map_err(|report| Failure::Report(report.within(&why)))?;
        printer.warnings(&scenario.warnings().beyond(file.warnings()).within(&why));
        scenarios.push(scenario.with_probe());
    }
    let has_line = file.access().is_some();
    if has_line {
        let alone = Variant::new(ALONE, &arguments.common(), reference);
        let file = Scenario::load_with(&arguments.scenario, &alone.overrides).map_err(Failure::Report)?;
        scenarios.push(downloads_alone(file)?);
        variants.push(alone);
    }
    let plan = plan(arguments);
    let interrupt = Interrupt::watch()?;
    let _folders = run::folders(&plan, &variants[..variants.len() - usize::from(has_line)])?;
    let mut done = match run::simulate_all(&plan, &variants, &scenarios, &interrupt, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    let alone = if has_line { done.pop() } else { None };
    let reference_bps = alone.map(|alone| comparison::downloads(&alone.run.summary));
    let report = match &arguments.out {
        Some(out) => Some(run::write_files(out, &variants[..done.len()], &mut done, reference_bps)?),
        None => None,
    };
    print(arguments, &what, &done, reference_bps, printer)?;
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
}

/// The downloads of `file` without the rest of its traffic.
fn downloads_alone(file: Scenario) -> Result<Scenario> {
    let is_download = |source: &Source, direction: &str| matches!(source, Source::Bulk { .. }) && direction == "down";
    if !file.network_ref().traffic.iter().any(|traffic| is_download(&traffic.source, &traffic.direction)) {
        return Err(Failure::new("no download to compare: no bulk traffic has direction = \"down\"")
            .hint("`lastmile run --vary KEY=VALUE,...` sets whatever runs side by side"));
    }
    Ok(file.with_traffic(|traffic| is_download(&traffic.source, &traffic.direction)))
}

impl Arguments {
    /// The overrides that all runs have.
    fn common(&self) -> Vec<Override> {
        common(&self.set, self.seed, self.duration)
    }
}

/// What the runs need of the arguments of `lastmile run`.
fn plan(arguments: &Arguments) -> run::Arguments {
    run::Arguments {
        seed: arguments.seed,
        changes: Changes { set: arguments.set.clone(), duration: arguments.duration, policy: None },
        files: Files { out: arguments.out.clone(), ..Files::default() },
        memory: arguments.memory.clone(),
        threads: arguments.threads,
        json: arguments.json,
        ..run::Arguments::of_one(arguments.scenario.clone())
    }
}

/// The rows; `what` says what their names are.
fn print(
    arguments: &Arguments,
    what: &str,
    done: &[Done],
    reference_bps: Option<f64>,
    printer: &mut Printer,
) -> Result<()> {
    let scenario = &done[0].run.summary.scenario;
    let runs: Vec<&Run> = done.iter().map(|done| &done.run).collect();
    let rows = comparison::rows(&runs, reference_bps);
    if arguments.json {
        let runs = done.iter().zip(rows);
        let runs = runs
            .map(|(done, measured)| Compared { label: &done.run.label, measured, summary: done.document() })
            .collect();
        return Ok(printer.json(&Comparison { scenario, reference_bps, runs })?);
    }
    printer.heading(scenario)?;
    let alone =
        reference_bps.map(|bps| format!("The downloads alone have {}. ", format::rate(bps))).unwrap_or_default();
    let probe = comparison::about_the_probe(&rows).map(|about| format!("{about}\n")).unwrap_or_default();
    printer.data(&format!("\n{alone}Measured {}.\n{probe}\n", comparison::measured_where(&rows)))?;
    let (columns, texts) = comparison::table(&rows);
    let columns = columns.into_iter().map(|name| (name, Align::Right));
    let mut table = Table::new([(what, Align::Left)].into_iter().chain(columns));
    for (done, cells) in done.iter().zip(texts) {
        table.row(std::iter::once(done.run.label.clone()).chain(cells));
    }
    Ok(printer.data(&table.render_within(WIDTH))?)
}
