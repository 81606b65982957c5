//! Names in a file of experiments that refer to other parts of it, or to a shipped scenario.

use toml::Spanned;

use super::{Experiment, Plan};
use crate::experiments::scenarios;
use crate::formula::Formula;

/// A name that refers to nothing, and where it stands.
pub(super) fn fault(plan: &Plan) -> Option<(String, usize)> {
    let mut seen: Vec<&str> = Vec::new();
    for experiment in &plan.experiments {
        let known = scenarios::names();
        let mut scenarios =
            experiment.runs.iter().filter_map(|(_, run)| run.scenario.as_ref()).chain([&experiment.scenario]);
        let wrong = scenarios.find_map(|scenario| unknown("scenario", scenario, &known));
        let mut ids = experiment.tables.iter().map(Spanned::get_ref);
        let sensitivity = ids.all(|id| plan.sensitivity.contains_key(id)).then_some("sensitivity");
        let notes: Vec<&str> = plan.notes.keys().map(String::as_str).chain(sensitivity).collect();
        let wrong = wrong.or_else(|| experiment.notes.iter().find_map(|note| unknown("notes", note, &notes)));
        let wrong = wrong.or_else(|| experiment.tables.iter().find_map(|table| twice(table, &mut seen)));
        let wrong = wrong.or_else(|| runs(experiment));
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

fn unknown(key: &str, name: &Spanned<String>, known: &[&str]) -> Option<(String, usize)> {
    let is_known = known.contains(&name.get_ref().as_str());
    (!is_known).then(|| {
        (format!("{key} = \"{}\" is not known; known are {}", name.get_ref(), known.join(", ")), name.span().start)
    })
}

fn twice<'a>(table: &'a Spanned<String>, seen: &mut Vec<&'a str>) -> Option<(String, usize)> {
    let is_new = !seen.contains(&table.get_ref().as_str());
    seen.push(table.get_ref());
    (!is_new).then(|| (format!("tables: \"{}\" already has an experiment", table.get_ref()), table.span().start))
}

/// Runs that a figure asks for.
fn runs(experiment: &Experiment) -> Option<(String, usize)> {
    let known: Vec<&str> = std::iter::once("main").chain(experiment.runs.iter().map(|(name, _)| name)).collect();
    let missing = |(figure, formula): (&str, &Formula)| {
        let run = formula.runs().into_iter().find(|run| !known.contains(run))?;
        Some((
            format!("figures.{figure}: @{run} is no run; known are {}", known.join(", ")),
            experiment.scenario.span().start,
        ))
    };
    experiment.figures.iter().chain(experiment.hidden.iter()).chain(experiment.pooled.iter()).find_map(missing)
}
