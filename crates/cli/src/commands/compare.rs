//! `lastmile compare`: one scenario under several policies, with several values of keys, or in several cases.

mod arguments;
mod difference;

use lastmile_results::comparison;
use lastmile_scenario::Scenario;
use lastmile_studies::compare::rows::{Choice, Dimension};
use lastmile_studies::compare::{self, Compared};

pub(crate) use self::arguments::Arguments;
use super::run;
use super::run::options::Changes;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::printer::Printer;

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let name = arguments.scenario.display().to_string();
    // Read once: it may be a pipe.
    let text = Scenario::text(&arguments.scenario).map_err(Failure::Report)?;
    let load = |overrides: &[_]| Scenario::parse_with(&name, &text, overrides);
    let file = load(&arguments.common()).map_err(Failure::Report)?;
    printer.warnings(file.warnings());
    let vary = arguments.vary.iter().map(|vary| Dimension::parse(vary)).collect::<std::result::Result<_, _>>()?;
    let choice =
        Choice { common: arguments.common(), policies: arguments.policy.clone(), vary, seeds: arguments.seeds };
    choice.check_overrides()?;
    let planned = compare::plan(&choice, (&file, &name), &load, &mut |warnings| printer.warnings(warnings))?;
    let plan = plan(arguments);
    let interrupt = Interrupt::watch()?;
    let _folders = run::folders(&plan, &planned.variants)?;
    let mut done = match run::simulate_all(&plan, &planned.variants, &planned.scenarios, &interrupt, printer)? {
        Ok(done) => done,
        Err(interrupted) => return Ok(interrupted),
    };
    run::write_runs(&plan, &planned.variants, &mut done, printer)?;
    let compared = planned.compared(done.into_iter().map(|done| done.finished).collect());
    let report = match &arguments.files.out {
        Some(out) => Some(run::write_report(out, &compared.comparison)?),
        None => None,
    };
    print(arguments, &compared, printer)?;
    for sentence in compared.without_effect() {
        printer.talk(&format!("note: {sentence}"));
    }
    if let Some(report) = report {
        let line = format!("report: {}", report.display());
        if arguments.json { printer.talk(&line) } else { printer.data(&format!("\n{line}\n"))? }
    }
    Ok(Exit::Done)
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

fn print(arguments: &Arguments, compared: &Compared, printer: &mut Printer) -> Result<()> {
    let comparison = &compared.comparison;
    if arguments.json {
        return Ok(printer.json(&compared.document(true))?);
    }
    let measured = comparison.measured();
    let runs: Vec<_> = compared.runs().collect();
    printer.heading(&runs[0].summary.run.scenario)?;
    let alone = comparison::about_the_baseline(&measured).map(|about| format!("{about}\n"));
    let seeds = arguments.seeds.map(|seeds| format!("Means of {seeds} seeds, with 95 % intervals.\n"));
    let probe = comparison::about_the_probe(&measured).map(|about| format!("{about}\n"));
    let limits = comparison::about_the_limits(comparison).map(|about| format!("{about}\n"));
    let rows = comparison::about_the_rows(comparison, &measured);
    let [alone, seeds, probe, limits] = [alone, seeds, probe, limits].map(Option::unwrap_or_default);
    printer.data(&format!("\n{alone}{seeds}{rows}\n{probe}{limits}\n"))?;
    printer.table(&compared.table())?;
    if arguments.seeds.is_none() {
        let width = printer.width();
        for words in [
            difference::explained(&runs, &comparison::measured_phases(&measured), width),
            difference::noticed_by_people(&runs, width),
        ] {
            printer.data(&if words.is_empty() { words } else { format!("\n{words}") })?;
        }
    }
    Ok(())
}
