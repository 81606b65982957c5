//! The runs of a figure: results that are read, and scenarios that are simulated.

use std::path::PathBuf;

use lastmile_results::report::Column;
use lastmile_results::{Run, read};
use lastmile_scenario::{Override, Scenario};
use lastmile_studies::Variant;
use lastmile_studies::variant::{common, policy_override};

use super::Arguments;
use crate::commands::run;
use crate::failure::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// An input, by what it is.
pub(super) enum Input {
    Scenario(PathBuf),
    Results(PathBuf),
    Capture(PathBuf),
}

/// The inputs of the command line.
pub(super) fn named(arguments: &Arguments) -> Result<Vec<Input>> {
    let labels = arguments.label.len();
    if labels > 0 && labels != arguments.inputs.len() {
        return Err(Failure::new(format_args!("{labels} of --label for {} inputs", arguments.inputs.len()))
            .hint("--label is given once for each input, or not at all"));
    }
    let inputs: Vec<Input> = arguments.inputs.iter().map(|path| input(path.clone())).collect();
    let is_capture = |input: &Input| matches!(input, Input::Capture(_));
    let changed = !arguments.set.is_empty() || arguments.seed.is_some() || arguments.duration.is_some();
    if inputs.iter().any(is_capture) {
        let several = inputs.len() > 1 || !arguments.policy.is_empty() || arguments.together || labels > 0;
        if several || changed {
            return Err(Failure::new("a capture is drawn alone, and without options of scenarios")
                .hint("the name of a scenario ends in .toml"));
        }
    }
    if !arguments.policy.is_empty()
        && let Some(Input::Results(path)) = inputs.iter().find(|input| matches!(input, Input::Results(_)))
    {
        return Err(Failure::new(format_args!("--policy: {} has results, which have their policy", path.display()))
            .hint("--together draws several folders as curves in common panels"));
    }
    if changed && let Some(Input::Results(path)) = inputs.iter().find(|input| matches!(input, Input::Results(_))) {
        return Err(Failure::new(format_args!("--set, --seed, --duration: {} has results of a run", path.display()))
            .hint("these options are for scenario files"));
    }
    Ok(inputs)
}

fn input(path: PathBuf) -> Input {
    if path.is_dir() {
        Input::Results(path)
    } else if path.extension().is_some_and(|extension| extension == "toml") || !path.exists() {
        Input::Scenario(path)
    } else {
        Input::Capture(path)
    }
}

/// The columns of the figure. The inner error is the exit code after a signal.
pub(super) fn runs(
    arguments: &Arguments,
    inputs: &[Input],
    printer: &mut Printer,
) -> Result<std::result::Result<Vec<Column>, Exit>> {
    let interrupt = Interrupt::watch()?;
    let shared = common(&arguments.set, arguments.seed, arguments.duration);
    let mut columns = Vec::new();
    for (number, input) in inputs.iter().enumerate() {
        let runs = match input {
            Input::Results(path) => vec![read::read(path).map_err(Failure::new)?],
            Input::Scenario(path) => match simulated(arguments, path, &shared, &interrupt, printer)? {
                Ok(runs) => runs,
                Err(interrupted) => return Ok(Err(interrupted)),
            },
            // A capture is drawn alone.
            Input::Capture(_) => continue,
        };
        let own = runs.first().map(|run| match input {
            Input::Results(_) => run.label.clone(),
            _ => run.summary.run.scenario.clone(),
        });
        let heading = arguments.label.get(number).cloned().or(own).unwrap_or_default();
        columns.push(Column { heading, runs });
    }
    if arguments.together {
        let heading =
            columns.first().and_then(|column| column.runs.first()).map(|run| run.summary.run.scenario.clone());
        let curves = columns.into_iter().flat_map(|Column { heading, runs }| {
            runs.into_iter().map(move |run| Run { label: heading.clone(), ..run })
        });
        columns = vec![Column { heading: heading.unwrap_or_default(), runs: curves.collect() }];
    }
    Ok(Ok(columns))
}

/// The runs of a scenario: one, or one for each policy.
fn simulated(
    arguments: &Arguments,
    path: &std::path::Path,
    shared: &[Override],
    interrupt: &Interrupt,
    printer: &mut Printer,
) -> Result<std::result::Result<Vec<Run>, Exit>> {
    let variants: Vec<Variant> = match &arguments.policy[..] {
        [] => vec![Variant::new("", shared, Vec::new()).unwritten()],
        policies => policies.iter().map(|policy| with_policy(policy, shared)).collect(),
    };
    let name = path.display().to_string();
    // Read once: it may be a pipe.
    let text = Scenario::text(path).map_err(Failure::Report)?;
    let read = |variant: &Variant| Scenario::parse_with(&name, &text, &variant.overrides).map_err(Failure::Report);
    let scenarios: Vec<Scenario> = variants.iter().map(read).collect::<Result<_>>()?;
    for scenario in scenarios.iter().take(1) {
        scenario.needs_traffic(&name).map_err(Failure::Report)?;
        printer.warnings(scenario.warnings());
    }
    let plan = run::Arguments {
        memory: arguments.memory.clone(),
        threads: arguments.threads,
        ..run::Arguments::of_one(path.to_owned())
    };
    let done = run::simulate_all(&plan, &variants, &scenarios, interrupt, printer)?;
    Ok(done.map(|done| run::runs(&done)))
}

/// The run with the policy of `[LABEL=]NAME`.
fn with_policy(policy: &str, shared: &[Override]) -> Variant {
    let (label, name) = policy.split_once('=').unwrap_or((policy, policy));
    Variant::new(label, shared, vec![policy_override(name)]).unwritten()
}
