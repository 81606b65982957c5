//! Which runs a comparison has: values of a key, remedies, or the cases of the file.

use lastmile_scenario::policy::ready;
use lastmile_scenario::{Access, Diagnostic, Override, Remedy, Report, Scenario};

use super::{Arguments, plan, run};
use crate::commands::run::variants::{Variant, file_name, policy_overrides, remedy_overrides};
use crate::failure::{Failure, Result};

/// What names them.
const REMEDIES: &str = "--remedies";
/// The row without policy and remedy: the line's own queues.
const NONE: &str = "none";
/// Rows of an access line after that and what the file itself has, without `--remedies`: what home routers run today, and the best of ours.
const USUAL: [&str; 3] = ["cake", "fq-codel-sqm", "full-both-ways"];

/// The runs of a comparison.
pub(super) struct Rows {
    /// What their names are: `remedy`, `case` or a key.
    pub(super) what: String,
    /// At least one.
    pub(super) variants: Vec<Variant>,
    /// What sets the run of the downloads alone apart from the file: with remedies, the line's own queues.
    pub(super) reference: Vec<Override>,
}

/// The runs that `arguments` ask for, of `file` as it is with the overrides that all runs have.
pub(super) fn of(arguments: &Arguments, file: &Scenario) -> Result<Rows> {
    if let Some(vary) = &arguments.vary {
        let variants = run::variants::of(&run::Arguments { vary: Some(vary.clone()), ..plan(arguments) })?;
        let what = vary.split_once('=').map_or(vary.as_str(), |(key, _)| key).to_owned();
        return Ok(Rows { what, variants, reference: Vec::new() });
    }
    if !arguments.remedies.is_empty() {
        if file.access().is_none() {
            let hint = "--vary KEY=VALUE,... compares values of any key";
            return Err(Failure::new("--remedies: the file has no [access] line to remedy").hint(hint));
        }
        let common = arguments.common();
        let named = arguments.remedies.iter().map(|name| named(name.trim(), &common));
        return remedies(named);
    }
    if !file.cases().is_empty() {
        return cases(arguments, file);
    }
    let Some(access) = file.access() else {
        let hint = "add a [[case]] to the file for each run, or give --vary KEY=VALUE,...";
        return Err(Failure::new("nothing to compare: the file has neither a [[case]] nor an [access] line").hint(hint));
    };
    remedies(usual(arguments, access))
}

fn cases(arguments: &Arguments, file: &Scenario) -> Result<Rows> {
    let common = arguments.common();
    let mut variants: Vec<Variant> = Vec::new();
    for case in file.cases() {
        if let Some(other) = variants.iter().find(|other| file_name(&other.label) == file_name(&case.name)) {
            let (one, two, name) = (&other.label, &case.name, file_name(&case.name));
            let message = format!("the cases {one:?} and {two:?} have one folder for their results: {name}");
            return Err(Failure::Report(Report::of(Diagnostic::error(case.place.clone(), message))));
        }
        variants.push(Variant::new(&case.name, &common, case.set.clone()));
    }
    Ok(Rows { what: "case".to_owned(), variants, reference: Vec::new() })
}

/// Nothing, the policy or remedy of the file, and what is usual.
fn usual(arguments: &Arguments, access: &Access) -> impl Iterator<Item = Variant> {
    let common = arguments.common();
    let own = match (&access.policy, access.remedy) {
        (Some(policy), _) => Some(Variant::new(&policy.name, &common, Vec::new())),
        (None, Remedy::None) => None,
        (None, remedy) => Some(Variant::new(remedy.name(), &common, Vec::new())),
    };
    let is_own = |name: &str| own.as_ref().is_some_and(|own| file_name(&own.label) == file_name(name));
    let others: Vec<Variant> =
        USUAL.into_iter().filter(|name| !is_own(name)).map(|name| named(name, &common)).collect();
    std::iter::once(named(NONE, &common)).chain(own).chain(others)
}

/// The run under the policy or remedy of this name, in place of those of the file.
fn named(name: &str, common: &[Override]) -> Variant {
    let known = |other: &&str| *other == name;
    // Where a policy and a remedy have one name, the policy is meant: it needs no certain queue below it.
    let is_remedy = !ready::NAMES.iter().any(known) && Remedy::NAMES.iter().any(|(other, _)| known(other));
    let own = if is_remedy { remedy_overrides(REMEDIES, name) } else { policy_overrides(REMEDIES, name) };
    Variant::new(name, common, own)
}

fn remedies(rows: impl Iterator<Item = Variant>) -> Result<Rows> {
    let mut variants: Vec<Variant> = Vec::new();
    for row in rows {
        if variants.iter().any(|other| file_name(&other.label) == file_name(&row.label)) {
            return Err(Failure::new(format_args!("--remedies names \"{}\" twice", row.label)));
        }
        variants.push(row);
    }
    Ok(Rows { what: "remedy".to_owned(), variants, reference: policy_overrides(REMEDIES, NONE) })
}
