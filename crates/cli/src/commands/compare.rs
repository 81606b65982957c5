//! `lastmile compare`: one scenario under several remedies, or with several values of a key, side by side.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lastmile_results::comparison::{self, Measured};
use lastmile_results::schema::Document;
use lastmile_scenario::policy::ready;
use lastmile_scenario::{Remedy, Scenario};
use lastmile_sim::spec::Source;
use serde::Serialize;

use super::run::variants::{Variant, file_name, policy_override};
use super::run::{self, Done};
use crate::exit::{Exit, Failure, Result};
use crate::printer::Printer;
use crate::table::{Align, Table};

/// What the run of the downloads alone is called.
const ALONE: &str = "download alone";

/// Simulate a scenario under several remedies, or with several values of a key
///
/// Prints what each leaves of downloads and uploads while both run, and what share that is of the downloads alone. With --out,
/// writes the results of each run and a report that shows them side by side.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file, with an [access] line
    scenario: PathBuf,

    /// Ready policies, files of policies, or remedies of `[access]`
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "fifo,ack-priority,sad-cbq")]
    remedies: Vec<String>,

    /// Instead of remedies: run once for each value of a key, such as access.up.interleave=none,cells
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "remedies")]
    vary: Option<String>,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Directory for the results; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

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
    /// Goodput of the downloads alone.
    reference_bps: f64,
    runs: Vec<Compared<'a>>,
}

#[derive(Serialize)]
struct Compared<'a> {
    label: &'a str,
    #[serde(flatten)]
    measured: Measured,
    summary: Document<'a>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let variants = variants(arguments)?;
    let mut scenarios = Vec::new();
    for variant in &variants {
        let scenario = Scenario::load(&arguments.scenario, &variant.overrides).map_err(Failure::Report)?;
        if scenarios.is_empty() {
            printer.warnings(scenario.warnings());
        }
        scenarios.push(scenario);
    }
    let is_download = |source: &Source, direction: &str| matches!(source, Source::Bulk { .. }) && direction == "down";
    if !scenarios[0].network_ref().traffic.iter().any(|traffic| is_download(&traffic.source, &traffic.direction)) {
        return Err(Failure::new("no download to compare: no bulk traffic has direction = \"down\""));
    }
    // The last is the downloads alone, on the line as the file has it.
    if let Some(last) = scenarios.pop() {
        scenarios.push(last.with_traffic(|traffic| is_download(&traffic.source, &traffic.direction)));
    }
    let plan = plan(arguments);
    let mut done = match run::simulate_all(&plan, &variants, &scenarios, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    let alone = done.pop().ok_or_else(|| Failure::new("nothing was simulated"))?;
    let reference_bps = comparison::downloads(&alone.run.summary);
    let report = match &arguments.out {
        Some(out) => Some(run::write_files(out, &variants[..done.len()], &mut done, Some(reference_bps))?),
        None => None,
    };
    print(arguments, &done, reference_bps, printer)?;
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
}

/// One run for each remedy or value, and one for the downloads alone.
fn variants(arguments: &Arguments) -> Result<Vec<Variant>> {
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    let common: Vec<String> = arguments.set.iter().cloned().chain(seed).collect();
    let mut variants: Vec<Variant> = Vec::new();
    if let Some(vary) = &arguments.vary {
        let mut variants = run::variants::of(&run::Arguments { vary: Some(vary.clone()), ..plan(arguments) })?;
        variants.push(Variant::new(ALONE, &common, Vec::new()));
        return Ok(variants);
    }
    for name in arguments.remedies.iter().map(|name| name.trim()) {
        let known = |other: &&str| *other == name;
        // Where a policy and a remedy have one name, the policy is meant: it needs no certain queue below it.
        let own = if !ready::NAMES.iter().any(known) && Remedy::NAMES.iter().any(|(other, _)| known(other)) {
            vec![format!("access.remedy={name}")]
        } else {
            vec!["access.remedy=none".to_owned(), policy_override(name)]
        };
        if variants.iter().any(|other| file_name(&other.label) == file_name(name)) {
            return Err(Failure::new(format_args!("--remedies names \"{name}\" twice")));
        }
        variants.push(Variant::new(name, &common, own));
    }
    variants.push(Variant::new(ALONE, &common, Vec::new()));
    Ok(variants)
}

/// What the runs need of the arguments of `lastmile run`.
fn plan(arguments: &Arguments) -> run::Arguments {
    run::Arguments {
        seed: arguments.seed,
        set: arguments.set.clone(),
        out: arguments.out.clone(),
        threads: arguments.threads,
        json: arguments.json,
        ..run::Arguments::of_one(arguments.scenario.clone())
    }
}

fn print(arguments: &Arguments, done: &[Done], reference_bps: f64, printer: &mut Printer) -> Result<()> {
    let scenario = &done[0].run.summary.scenario;
    let measured: Vec<Measured> =
        done.iter().map(|done| Measured::of(&done.run.summary, Some(reference_bps))).collect();
    if arguments.json {
        let runs = done.iter().zip(measured);
        let runs = runs
            .map(|(done, measured)| Compared { label: &done.run.label, measured, summary: done.document() })
            .collect();
        return Ok(printer.json(&Comparison { scenario, reference_bps, runs })?);
    }
    printer.heading(scenario)?;
    let Measured { phase, .. } = &measured[0];
    let rate = comparison::told(reference_bps);
    printer.data(&format!("\nThe downloads alone have {rate}. Measured {phase}:\n\n"))?;
    let what = arguments.vary.as_deref().and_then(|vary| vary.split_once('=')).map_or("remedy", |(key, _)| key);
    let mut table = Table::new(
        [(what, Align::Left)].into_iter().chain(comparison::COLUMNS.iter().map(|name| (*name, Align::Right))),
    );
    for (done, measured) in done.iter().zip(&measured) {
        table.row(std::iter::once(done.run.label.clone()).chain(measured.cells()));
    }
    Ok(printer.data(&table.render())?)
}
