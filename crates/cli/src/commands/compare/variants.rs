//! Which runs a comparison has: values of a key, remedies, or the cases of the file.

use lastmile_scenario::policy::ready;
use lastmile_scenario::{Diagnostic, Override, Remedy, Report, Scenario};

use super::{Arguments, plan, run};
use crate::commands::run::variants::{Variant, file_name, policy_override};
use crate::exit::{Failure, Result};

/// What names them.
const REMEDIES: &str = "--remedies";
/// What is compared of an access line where nobody says.
const USUAL: [&str; 3] = ["fifo", "ack-priority", "sad-cbq"];

/// The runs of a comparison.
pub(super) struct Rows {
    /// What their names are: `remedy`, `case` or a key.
    pub(super) what: String,
    /// At least one.
    pub(super) variants: Vec<Variant>,
}

/// The runs that `arguments` ask for, of `file` as it is with the overrides that all runs have.
pub(super) fn of(arguments: &Arguments, file: &Scenario) -> Result<Rows> {
    if let Some(vary) = &arguments.vary {
        let variants = run::variants::of(&run::Arguments { vary: Some(vary.clone()), ..plan(arguments) })?;
        return Ok(Rows { what: vary.split_once('=').map_or(vary.as_str(), |(key, _)| key).to_owned(), variants });
    }
    if !arguments.remedies.is_empty() {
        if file.access().is_none() {
            let hint = "--vary KEY=VALUE,... compares values of any key";
            return Err(Failure::new("--remedies: the file has no [access] line to remedy").hint(hint));
        }
        return remedies(arguments, arguments.remedies.iter().map(String::as_str));
    }
    if !file.cases().is_empty() {
        return cases(arguments, file);
    }
    if file.access().is_none() {
        let hint = "add a [[case]] to the file for each run, or give --vary KEY=VALUE,...";
        return Err(Failure::new("nothing to compare: the file has neither a [[case]] nor an [access] line").hint(hint));
    }
    remedies(arguments, USUAL.into_iter())
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
    Ok(Rows { what: "case".to_owned(), variants })
}

fn remedies<'a>(arguments: &Arguments, names: impl Iterator<Item = &'a str>) -> Result<Rows> {
    let common = arguments.common();
    let mut variants: Vec<Variant> = Vec::new();
    for name in names.map(str::trim) {
        let known = |other: &&str| *other == name;
        // Where a policy and a remedy have one name, the policy is meant: it needs no certain queue below it.
        let own = if !ready::NAMES.iter().any(known) && Remedy::NAMES.iter().any(|(other, _)| known(other)) {
            vec![Override::from_option(REMEDIES, "access.remedy", name)]
        } else {
            let none = Override::from_argument("access.remedy=none", &format!("{REMEDIES} {name}"));
            vec![none, policy_override(REMEDIES, name)]
        };
        if variants.iter().any(|other| file_name(&other.label) == file_name(name)) {
            return Err(Failure::new(format_args!("--remedies names \"{name}\" twice")));
        }
        variants.push(Variant::new(name, &common, own));
    }
    Ok(Rows { what: "remedy".to_owned(), variants })
}
