//! The rows of a comparison: policies and values of keys in every combination, or the cases of the file.

use std::collections::BTreeMap;

use lastmile_scenario::{Access, Diagnostic, Override, Report, Scenario};

use super::arguments::Arguments;
use crate::commands::run::variants::{Variant, file_name, policy_override};
use crate::failure::{Failure, Result};

/// The key that `--policy` sets.
const POLICY: &str = "access.policy";
/// The policy of the line's own queues.
const NONE: &str = "none";
/// Default policies of a comparison over an access line, after `none` and the file's own.
const USUAL: [&str; 3] = ["cake", "fq-codel-sqm", "full-both-ways"];
/// The most rows of a comparison.
const MOST_ROWS: usize = 10_000;

/// The rows of a comparison.
pub(super) struct Rows {
    /// Names of the columns in which rows differ: `policy`, keys, or `case`.
    pub(super) what: Vec<String>,
    /// Rows, at least one.
    pub(super) rows: Vec<Row>,
    /// The overrides of the run with only the downloads: with policies, it has the line's own
    /// queues.
    pub(super) reference: Vec<Override>,
}

/// A row of a comparison.
pub(super) struct Row {
    /// A value for each of [`Rows::what`].
    pub(super) values: Vec<String>,
    pub(super) variant: Variant,
}

impl Rows {
    /// `row` in words: `policy "cake", access.up.rate "1 Mbit/s"`.
    pub(super) fn words(&self, row: &Row) -> String {
        let pairs = self.what.iter().zip(&row.values).map(|(what, value)| format!("{what} \"{value}\""));
        pairs.collect::<Vec<_>>().join(", ")
    }
}

/// A column in which rows differ, and its values.
struct Dimension {
    what: String,
    /// The option as given.
    option: String,
    values: Vec<(String, Override)>,
}

impl Dimension {
    fn of_policies<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let value = |name: &str| (name.to_owned(), policy_override(name));
        let values = names.into_iter().map(|name| value(name.trim())).collect();
        Self { what: "policy".to_owned(), option: "--policy".to_owned(), values }
    }

    /// Parses `KEY=VALUE,...`.
    fn of_key(vary: &str) -> Result<Self> {
        let (key, values) = vary.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Failure::new(format_args!("--vary {vary}: not of the form KEY=VALUE,..."))
                .hint("such as --vary \"access.up.rate=256 kbit/s,512 kbit/s\"")
        })?;
        let value = |value: &str| {
            let pair = format!("{key}={value}");
            (value.to_owned(), Override::from_argument(&pair, &format!("--vary {pair}")))
        };
        let values = values.split(',').map(|text| value(text.trim())).collect();
        Ok(Self { what: key.to_owned(), option: format!("--vary {key}"), values })
    }

    fn key(&self) -> &str {
        if self.option == "--policy" { POLICY } else { &self.what }
    }
}

/// The rows that `arguments` request, with `file` read with the overrides of all runs.
pub(super) fn of(arguments: &Arguments, file: &Scenario) -> Result<Rows> {
    let common = arguments.common();
    if arguments.policy.is_empty() && arguments.vary.is_empty() {
        if !file.cases().is_empty() {
            return cases(&common, file);
        }
        let Some(access) = file.access() else {
            let hint = "add a [[case]] to the file for each run, or give --vary KEY=VALUE,...";
            let message = "nothing to compare: the file has neither a [[case]] nor an [access] line";
            return Err(Failure::new(message).hint(hint));
        };
        return Ok(usual(&common, access));
    }
    let mut dimensions = Vec::new();
    let mut reference = Vec::new();
    if !arguments.policy.is_empty() {
        if file.access().is_none() {
            let hint = "--vary KEY=VALUE,... compares values of any key";
            return Err(Failure::new("--policy: the file has no [access] line").hint(hint));
        }
        dimensions.push(Dimension::of_policies(arguments.policy.iter().map(String::as_str)));
        reference.push(policy_override(NONE));
    }
    for vary in &arguments.vary {
        let dimension = Dimension::of_key(vary)?;
        if let Some(other) = dimensions.iter().find(|other| other.key() == dimension.key()) {
            let (one, two) = (&other.option, &dimension.option);
            let message = format!("{one} and {two} set one key, {}", dimension.key());
            return Err(Failure::new(message).hint("write all values of a key in one list"));
        }
        dimensions.push(dimension);
    }
    let what = dimensions.iter().map(|dimension| dimension.what.clone()).collect();
    Ok(Rows { what, rows: grid(&common, &dimensions)?, reference })
}

/// Every combination of the dimensions' values; those of the last change fastest.
fn grid(common: &[Override], dimensions: &[Dimension]) -> Result<Vec<Row>> {
    let count = dimensions.iter().map(|dimension| dimension.values.len()).fold(1, usize::saturating_mul);
    if count > MOST_ROWS {
        return Err(Failure::new(format_args!("{count} combinations; a comparison has at most {MOST_ROWS}")));
    }
    for Dimension { option, values, .. } in dimensions {
        let twice = values
            .iter()
            .enumerate()
            .find(|(number, (value, _))| values[..*number].iter().any(|(other, _)| other == value));
        if let Some((_, (value, _))) = twice {
            return Err(Failure::new(format_args!("{option} has \"{value}\" twice")));
        }
    }
    let mut combinations: Vec<Vec<&(String, Override)>> = vec![Vec::new()];
    for dimension in dimensions {
        let with = |before: &Vec<_>| {
            let before = before.clone();
            dimension.values.iter().map(move |value| [before.as_slice(), &[value]].concat())
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    let row = |combination: Vec<&(String, Override)>| {
        let (values, own): (Vec<String>, _) = combination.into_iter().cloned().unzip();
        Row { variant: Variant::new(&values.join(", "), common, own), values }
    };
    let rows: Vec<Row> = combinations.into_iter().map(row).collect();
    match same_folder(rows.iter().map(|row| row.variant.label.as_str())) {
        Some((one, two, name)) => {
            Err(Failure::new(format_args!("the runs {one:?} and {two:?} have one folder for their results: {name}")))
        }
        None => Ok(rows),
    }
}

/// Two labels with one folder name, and that name.
fn same_folder<'a>(labels: impl Iterator<Item = &'a str>) -> Option<(&'a str, &'a str, String)> {
    let mut folders: BTreeMap<String, &str> = BTreeMap::new();
    for label in labels {
        let name = file_name(label);
        if let Some(other) = folders.insert(name.clone(), label) {
            return Some((other, label, name));
        }
    }
    None
}

fn cases(common: &[Override], file: &Scenario) -> Result<Rows> {
    let cases = file.cases();
    if let Some((one, two, name)) = same_folder(cases.iter().map(|case| case.name.as_str())) {
        let place = cases.iter().rev().find(|case| case.name == two).map(|case| case.place.clone());
        let message = format!("the cases {one:?} and {two:?} have one folder for their results: {name}");
        let place = place.expect("one of the cases is called so");
        return Err(Failure::Report(Report::of(Diagnostic::error(place, message))));
    }
    let row = |name: &str, set: &[Override]| Row {
        values: vec![name.to_owned()],
        variant: Variant::new(name, common, set.to_vec()),
    };
    let rows = cases.iter().map(|case| row(&case.name, &case.set)).collect();
    Ok(Rows { what: vec!["case".to_owned()], rows, reference: Vec::new() })
}

/// No policy, the file's own, and the default ones.
fn usual(common: &[Override], access: &Access) -> Rows {
    let row = |name: &str, own: Vec<Override>| Row {
        values: vec![name.to_owned()],
        variant: Variant::new(name, common, own),
    };
    let of = |name: &str| row(name, vec![policy_override(name)]);
    let own = access.policy.as_ref().map(|policy| row(&policy.name, Vec::new()));
    let is_own = |name: &str| own.as_ref().is_some_and(|own| file_name(&own.variant.label) == file_name(name));
    let others: Vec<Row> = USUAL.into_iter().filter(|name| !is_own(name)).map(of).collect();
    let rows = std::iter::once(of(NONE)).chain(own).chain(others).collect();
    Rows { what: vec!["policy".to_owned()], rows, reference: vec![policy_override(NONE)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(dimensions: &[Dimension]) -> String {
        match grid(&[], dimensions) {
            Err(Failure::Wrong { message, .. }) => message,
            _ => panic!("it is refused"),
        }
    }

    fn numbers(key: &str, count: u32) -> Dimension {
        let values: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        Dimension::of_key(&format!("{key}={}", values.join(","))).unwrap()
    }

    #[test]
    fn a_grid_beyond_the_limit_is_refused_before_anything_is_read() {
        assert_eq!(grid(&[], &[numbers("seed", 100), numbers("lines", 100)]).unwrap().len(), 10_000);
        let message = refused(&[numbers("seed", 101), numbers("lines", 100)]);
        assert_eq!(message, "10100 combinations; a comparison has at most 10000");
    }

    #[test]
    fn combinations_that_share_a_folder_are_refused() {
        let dimensions = ["a=1-,1", "b=2,-2"].map(|vary| Dimension::of_key(vary).unwrap());
        let message = refused(&dimensions);
        assert!(message.contains("have one folder for their results: 1---2"), "{message}");
    }
}
