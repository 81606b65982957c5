//! `lastmile compare`: one scenario under several policies, with several values of keys, or in several cases.

mod arguments;
mod difference;
mod variants;

use lastmile_model::{Source, Traffic};
use lastmile_results::comparison::{self, Comparison};
use lastmile_results::format;
use lastmile_results::schema::Document;
use lastmile_results::seeds::{Means, Seeded};
use lastmile_scenario::Scenario;
use lastmile_text::table::{Kind, Table};
use serde::Serialize;

pub(crate) use self::arguments::Arguments;
use self::variants::Rows;
use super::run::options::Changes;
use super::run::variants::Variant;
use super::run::{self, Done};
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Label of the run with only the downloads.
const ALONE: &str = "download alone";

#[derive(Serialize)]
struct Compared<'a> {
    scenario: &'a str,
    /// Goodput of the downloads without other traffic, a mean over several seeds; only for files
    /// with bulk downloads over an access line.
    reference_bps: Option<f64>,
    /// Means over seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<Vec<Means<'a>>>,
    runs: Vec<ComparedRun<'a>>,
}

#[derive(Serialize)]
struct ComparedRun<'a> {
    label: &'a str,
    #[serde(flatten)]
    measured: comparison::Row,
    summary: Document<'a>,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let file = Scenario::load_with(&arguments.scenario, &arguments.common()).map_err(Failure::Report)?;
    printer.warnings(file.warnings());
    let rows = variants::of(arguments, &file)?;
    let planned = planned(arguments, &file, &rows, printer)?;
    let (mut variants, mut scenarios) = planned.compared;
    let compared = variants.len();
    variants.extend(planned.alone.0);
    scenarios.extend(planned.alone.1);
    let plan = plan(arguments);
    let interrupt = Interrupt::watch()?;
    let _folders = run::folders(&plan, &variants)?;
    let mut done = match run::simulate_all(&plan, &variants, &scenarios, &interrupt, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    let alone = done.split_off(compared);
    let comparison = Comparison {
        rows: seeded(&rows, &done),
        alone_bps: alone.iter().map(|alone| comparison::downloads(&alone.run.summary)).collect(),
    };
    let report = match &arguments.files.out {
        Some(out) => {
            run::write_runs(out, &variants, &mut done)?;
            Some(run::write_report(out, &comparison)?)
        }
        None => None,
    };
    print(arguments, &rows, &done, &comparison, printer)?;
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
}

/// Runs, and the scenario of each.
type Runs = (Vec<Variant>, Vec<Scenario>);

/// All runs of a comparison.
struct Planned {
    /// The seeds of each row, row by row.
    compared: Runs,
    /// The runs with only the downloads, one per seed; empty without an access line or a bulk
    /// download.
    alone: Runs,
}

fn planned(arguments: &Arguments, file: &Scenario, rows: &Rows, printer: &mut Printer) -> Result<Planned> {
    let mut planned = Planned { compared: Runs::default(), alone: Runs::default() };
    for row in &rows.rows {
        let why = rows.words(row);
        for (number, variant) in over_seeds(arguments, file, &row.variant).into_iter().enumerate() {
            let read = Scenario::load_with(&arguments.scenario, &variant.overrides);
            // The file without the row's changes is valid, so the error is in this row.
            let scenario = read.map_err(|report| Failure::Report(report.within(&why)))?;
            scenario.needs_traffic(&arguments.scenario.display().to_string()).map_err(Failure::Report)?;
            if number == 0 {
                printer.warnings(&scenario.warnings().beyond(file.warnings()).within(&why));
            }
            planned.compared.0.push(variant);
            planned.compared.1.push(scenario.with_probe());
        }
    }
    if file.access().is_some() && has_download(file) {
        let alone = Variant::new(ALONE, &arguments.common(), rows.reference.clone()).unwritten();
        for variant in over_seeds(arguments, file, &alone) {
            let file = Scenario::load_with(&arguments.scenario, &variant.overrides).map_err(Failure::Report)?;
            planned.alone.0.push(variant);
            planned.alone.1.push(file.with_traffic(is_download));
        }
    }
    Ok(planned)
}

/// The runs of each row.
fn seeded(rows: &Rows, done: &[Done]) -> Vec<Seeded> {
    let each = done.len() / rows.rows.len();
    let of =
        |(row, done): (&variants::Row, &[Done])| Seeded { label: row.variant.label.clone(), runs: run::runs(done) };
    rows.rows.iter().zip(done.chunks(each)).map(of).collect()
}

/// `variant` itself, or a variant for each seed that `arguments` request.
fn over_seeds(arguments: &Arguments, file: &Scenario, variant: &Variant) -> Vec<Variant> {
    let first = file.network_ref().seed;
    arguments.seeds.map_or_else(|| vec![variant.clone()], |seeds| variant.over_seeds(first, seeds).collect())
}

/// True for a transfer down the line.
fn is_download(traffic: &Traffic) -> bool {
    matches!(traffic.source, Source::Bulk { .. } | Source::Quic { .. }) && traffic.direction == "down"
}

fn has_download(file: &Scenario) -> bool {
    file.network_ref().traffic.iter().any(is_download)
}

/// The arguments of `lastmile run` that the runs need.
fn plan(arguments: &Arguments) -> run::Arguments {
    run::Arguments {
        seed: arguments.seed,
        changes: Changes { set: arguments.set.clone(), duration: arguments.duration, policy: None },
        files: arguments.files.clone(),
        memory: arguments.memory.clone(),
        threads: arguments.threads,
        json: arguments.json,
        ..run::Arguments::of_one(arguments.scenario.clone())
    }
}

fn print(
    arguments: &Arguments,
    rows: &Rows,
    done: &[Done],
    comparison: &Comparison,
    printer: &mut Printer,
) -> Result<()> {
    let scenario = &done[0].run.summary.run.scenario;
    let measured = comparison.measured();
    let alone = comparison.alone();
    if arguments.json {
        let means = comparison.rows.iter().zip(&measured);
        let means = means.map(|(row, runs)| Means { label: &row.label, measures: comparison::means(runs) });
        let means = arguments.seeds.map(|_| means.collect());
        let runs = done.iter().zip(measured.iter().flatten().cloned());
        let runs = runs
            .map(|(done, measured)| ComparedRun { label: &done.run.label, measured, summary: done.document() })
            .collect();
        return Ok(printer.json(&Compared { scenario, reference_bps: alone.map(|alone| alone.mean), means, runs })?);
    }
    printer.heading(scenario)?;
    let unvaried = if arguments.vary.is_empty() { "" } else { ", with the file's values," };
    let alone =
        alone.map(|alone| format!("Baseline: the downloads alone{unvaried} have {}. ", format::rate(alone.mean)));
    let seeds = arguments.seeds.map(|seeds| format!("Means of {seeds} seeds, with 95 % intervals. "));
    let probe = comparison::about_the_probe(&measured).map(|about| format!("{about}\n"));
    let place = measured.first().map(|runs| comparison::measured_where(runs)).unwrap_or_default();
    let [alone, seeds, probe] = [alone, seeds, probe].map(Option::unwrap_or_default);
    printer.data(&format!("\n{alone}{seeds}Measured {place}.\n{probe}\n"))?;
    let (columns, texts) = comparison::table(&measured);
    let columns = columns.into_iter().map(|name| (name, Kind::Number));
    let mut table = Table::new(rows.what.iter().map(|what| (what.as_str(), Kind::Name)).chain(columns));
    for (row, cells) in rows.rows.iter().zip(texts) {
        table.row(row.values.iter().cloned().chain(cells));
    }
    printer.table(&table)?;
    if arguments.seeds.is_none() {
        let (runs, width) = (run::runs(done), printer.width());
        for words in [difference::explained(&runs, width), difference::noticed_by_people(&runs, width)] {
            printer.data(&if words.is_empty() { words } else { format!("\n{words}") })?;
        }
    }
    Ok(())
}
