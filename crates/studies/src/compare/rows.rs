//! The rows of a comparison: cases of the file, policies and values of keys in every combination.

use std::collections::BTreeMap;

use lastmile_scenario::policy::ready::NONE;
use lastmile_scenario::{Access, Case, Diagnostic, Override, Report, Scenario};

use crate::error::Error;
use crate::variant::{Variant, file_name, policy_override};

/// The key that `--policy` sets.
const POLICY: &str = "access.policy";
/// Default policies of a comparison over an access line, after `none` and the file's own.
const USUAL: [&str; 3] = ["cake", "fq-codel-sqm", "full-both-ways"];
/// The most rows of a comparison.
const MOST_ROWS: usize = 10_000;

/// The policies, keys and seeds that a comparison varies.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Overrides that all runs have.
    pub common: Vec<Override>,
    /// Policies in place of the file's.
    pub policies: Vec<String>,
    /// Values of keys.
    pub vary: Vec<Dimension>,
    /// Runs of each row, from the seed of the file on; `None` for one.
    pub seeds: Option<u64>,
}

impl Choice {
    /// True if the rows vary this key.
    #[must_use]
    pub fn varies(&self, key: &str) -> bool {
        self.vary.iter().any(|dimension| dimension.key() == key)
    }

    /// An error if an override of all runs sets a key that the rows vary, and would say nothing.
    ///
    /// # Errors
    /// Both, by their options.
    pub fn check_overrides(&self) -> Result<(), Error> {
        let policies = (!self.policies.is_empty()).then_some(("--policy", POLICY));
        let varied = self.vary.iter().map(|dimension| (dimension.option.as_str(), dimension.key()));
        for (option, key) in policies.into_iter().chain(varied) {
            if let Some(other) = self.common.iter().find(|other| other.is_within(key)) {
                let message = format!("{option} and {} set one key, {key}", other.given());
                return Err(Error::new(message).hint("leave one of them out"));
            }
        }
        Ok(())
    }
}

/// The rows of a comparison.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Names of the columns in which rows differ: `policy`, keys, or `case`.
    pub what: Vec<String>,
    /// Rows, at least one.
    pub rows: Vec<Row>,
}

/// A row of a comparison.
#[derive(Clone, Debug)]
pub struct Row {
    /// A value for each of [`Rows::what`].
    pub values: Vec<String>,
    /// Its label and changes.
    pub variant: Variant,
    /// The changes of its run with only the downloads: its own, and where rows differ by policies the line's own queues
    /// in place of the policy.
    pub baseline: Vec<Override>,
}

impl Row {
    /// The rows of these values, labels and own changes.
    fn all(rows: Vec<(Vec<String>, String, Vec<Override>)>, common: &[Override]) -> Vec<Self> {
        let is_policy = |set: &Override| set.is_within(POLICY);
        let clears = rows.iter().any(|(_, _, own)| own.iter().any(is_policy));
        let row = |(values, label, own): (Vec<String>, String, Vec<Override>)| {
            let others = own.iter().filter(|set| !is_policy(set)).cloned();
            let baseline = others.chain(clears.then(|| policy_override(NONE))).collect();
            Self { values, variant: Variant::new(&label, common, own), baseline }
        };
        rows.into_iter().map(row).collect()
    }
}

impl Rows {
    /// `row` in words: `policy "cake", access.up.rate "1 Mbit/s"`.
    #[must_use]
    pub fn words(&self, row: &Row) -> String {
        let pairs = self.what.iter().zip(&row.values).map(|(what, value)| format!("{what} \"{value}\""));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// Of a row with another `kind` of a table: how to give that kind keys of its own. The file's are those of its
    /// kind, such as a limit in bytes where another counts packets. A limit of `file` that is valid for it is repeated.
    pub(super) fn whole_table(
        &self,
        row: &Row,
        file: &Scenario,
        is_valid: impl Fn(&[Override]) -> bool,
    ) -> Option<String> {
        let of_kind = |(what, value): (&String, &String)| Some((what.strip_suffix(".kind")?.to_owned(), value.clone()));
        let (table, kind) = self.what.iter().zip(&row.values).find_map(of_kind)?;
        let limit = file.text_at(&format!("{table}.limit"));
        let with_limit = limit.map(|limit| format!("{{ kind = \"{kind}\", limit = \"{limit}\" }}"));
        let takes = |value: &String| {
            let replaced = Override::set(&format!("{table}={value}"));
            is_valid(&[row.variant.overrides.as_slice(), &[replaced]].concat())
        };
        let value = with_limit.filter(takes).unwrap_or_else(|| format!("{{ kind = \"{kind}\" }}"));
        Some(format!(
            "the other keys are those of the file's kind; --vary '{table}={value},...' replaces the whole table, each \
             value with keys of its own"
        ))
    }
}

/// A column in which rows differ, and its values.
#[derive(Clone, Debug)]
pub struct Dimension {
    what: String,
    /// The option as given.
    option: String,
    values: Vec<Value>,
}

/// A value of a column, and the settings that it means.
type Value = (String, Vec<Override>);

impl Dimension {
    fn of_policies<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let value = |name: &str| (name.to_owned(), vec![policy_override(name)]);
        let values = names.into_iter().map(|name| value(name.trim())).collect();
        Self { what: "policy".to_owned(), option: "--policy".to_owned(), values }
    }

    /// The cases of a file.
    fn of_cases(cases: &[Case]) -> Result<Self, Error> {
        if let Some((one, two, name)) = same_folder(cases.iter().map(|case| case.name.as_str())) {
            let place = cases.iter().rev().find(|case| case.name == two).map(|case| case.place.clone());
            let message = format!("the cases {one:?} and {two:?} have one folder for their results: {name}");
            let place = place.expect("one of the cases is called so");
            return Err(Error::Report(Report::of(Diagnostic::error(place, message))));
        }
        let values = cases.iter().map(|case| (case.name.clone(), case.set.clone())).collect();
        Ok(Self { what: "case".to_owned(), option: "[[case]]".to_owned(), values })
    }

    /// Parses `KEY=VALUE,...`.
    ///
    /// # Errors
    /// A text of another form.
    pub fn parse(vary: &str) -> Result<Self, Error> {
        let (key, values) = vary.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
            Error::new(format_args!("--vary {vary}: not of the form KEY=VALUE,..."))
                .hint("such as --vary \"access.up.rate=256 kbit/s,512 kbit/s\"")
        })?;
        Ok(Self::of_key(key, split(values).into_iter().map(str::trim)))
    }

    /// Values of `key`, each as `--set` has it.
    pub fn of_key<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let value = |value: &str| {
            let pair = format!("{key}={value}");
            (value.to_owned(), vec![Override::from_argument(&pair, &format!("--vary {pair}"))])
        };
        Self { what: key.to_owned(), option: format!("--vary {key}"), values: values.into_iter().map(value).collect() }
    }

    fn key(&self) -> &str {
        if self.option == "--policy" { POLICY } else { &self.what }
    }
}

/// Values between commas. A comma inside a table, a list or a quoted text belongs to its value.
fn split(values: &str) -> Vec<&str> {
    let (mut found, mut from) = (Vec::new(), 0);
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    for (at, letter) in values.char_indices() {
        // A bare text ends at the next comma, whatever it has.
        let bare = !values[from..].trim_start().starts_with(['{', '[', '"', '\'']);
        match (quote, letter) {
            (_, ',') if bare || (quote.is_none() && depth == 0) => {
                found.push(&values[from..at]);
                (from, depth, quote, escaped) = (at + 1, 0, None, false);
            }
            (Some('"'), _) if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found.push(&values[from..]);
    found
}

/// The rows that `choice` requests, with `file` read with the overrides of all runs.
///
/// # Errors
/// Nothing to compare, a key twice, or two runs with one folder for their results.
pub fn of(choice: &Choice, file: &Scenario) -> Result<Rows, Error> {
    let common = &choice.common;
    if choice.policies.is_empty() && choice.vary.is_empty() && file.cases().is_empty() {
        let Some(access) = file.access() else {
            let hint = "add a [[case]] to the file for each run, or give --vary KEY=VALUE,...";
            let message = "nothing to compare: the file has neither a [[case]] nor an [access] line";
            return Err(Error::new(message).hint(hint));
        };
        return Ok(usual(common, access));
    }
    let mut dimensions = Vec::new();
    if !choice.policies.is_empty() {
        if file.access().is_none() {
            let hint = "--vary KEY=VALUE,... compares values of any key";
            return Err(Error::new("--policy: the file has no [access] line").hint(hint));
        }
        dimensions.push(Dimension::of_policies(choice.policies.iter().map(String::as_str)));
    }
    for dimension in choice.vary.iter().cloned() {
        if dimension.values.is_empty() {
            let message = format!("{}: no values of {}", dimension.option, dimension.key());
            return Err(Error::new(message).hint("at least one value"));
        }
        if choice.seeds.is_some() && dimension.key() == "seed" {
            let message = format!("{} and a number of seeds set one key, seed", dimension.option);
            return Err(Error::new(message).hint("leave one of them out"));
        }
        if let Some(other) = dimensions.iter().find(|other| other.key() == dimension.key()) {
            let (one, two) = (&other.option, &dimension.option);
            let message = format!("{one} and {two} set one key, {}", dimension.key());
            return Err(Error::new(message).hint("write all values of a key in one list"));
        }
        dimensions.push(dimension);
    }
    if !file.cases().is_empty() {
        for (case, set) in file.cases().iter().flat_map(|case| case.set.iter().map(move |set| (case, set))) {
            if let Some(other) = dimensions.iter().find(|other| set.is_within(other.key())) {
                let message = format!("{} and the case {:?} set one key, {}", other.option, case.name, other.key());
                return Err(Error::new(message).hint("leave the option out, or take the case out of the file"));
            }
        }
        dimensions.insert(0, Dimension::of_cases(file.cases())?);
    }
    let what = dimensions.iter().map(|dimension| dimension.what.clone()).collect();
    Ok(Rows { what, rows: grid(common, &dimensions)? })
}

/// Every combination of the dimensions' values; those of the last change fastest.
fn grid(common: &[Override], dimensions: &[Dimension]) -> Result<Vec<Row>, Error> {
    let count = dimensions.iter().map(|dimension| dimension.values.len()).fold(1, usize::saturating_mul);
    if count > MOST_ROWS {
        return Err(Error::new(format_args!("{count} combinations; a comparison has at most {MOST_ROWS}")));
    }
    for Dimension { option, values, .. } in dimensions {
        let twice = values
            .iter()
            .enumerate()
            .find(|(number, (value, _))| values[..*number].iter().any(|(other, _)| other == value));
        if let Some((_, (value, _))) = twice {
            return Err(Error::new(format_args!("{option} has \"{value}\" twice")));
        }
    }
    let mut combinations: Vec<Vec<&Value>> = vec![Vec::new()];
    for dimension in dimensions {
        let with = |before: &Vec<_>| {
            let before = before.clone();
            dimension.values.iter().map(move |value| [before.as_slice(), &[value]].concat())
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    let row = |combination: Vec<&Value>| {
        let (values, own): (Vec<String>, Vec<Vec<Override>>) = combination.into_iter().cloned().unzip();
        let label = values.join(", ");
        (values, label, own.concat())
    };
    let rows = Row::all(combinations.into_iter().map(row).collect(), common);
    match same_folder(rows.iter().map(|row| row.variant.label.as_str())) {
        Some((one, two, name)) => {
            Err(Error::new(format_args!("the runs {one:?} and {two:?} have one folder for their results: {name}")))
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

/// No policy, the file's own, and the default ones.
fn usual(common: &[Override], access: &Access) -> Rows {
    let row = |name: &str, own: Vec<Override>| (vec![name.to_owned()], name.to_owned(), own);
    let of = |name: &str| row(name, vec![policy_override(name)]);
    let own = access.policy.as_ref().map(|policy| &policy.name);
    let is_own = |name: &str| own.is_some_and(|own| file_name(own) == file_name(name));
    let others = USUAL.into_iter().filter(|name| !is_own(name)).map(of);
    let own = own.map(|own| row(own, Vec::new()));
    let rows = std::iter::once(of(NONE)).chain(own).chain(others).collect();
    Rows { what: vec!["policy".to_owned()], rows: Row::all(rows, common) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links of the documentation to the playground name the same rows.
    #[test]
    fn the_pages_know_the_usual_policies() {
        let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/docs.mjs")).unwrap();
        let names: Vec<String> = [NONE].iter().chain(&USUAL).map(|name| format!("\"{name}\"")).collect();
        let list = format!("const USUAL = [{}];", names.join(", "));
        assert!(script.contains(&list), "{list}");
    }

    fn refused(dimensions: &[Dimension]) -> String {
        match grid(&[], dimensions) {
            Err(Error::Wrong { message, .. }) => message,
            _ => panic!("it is refused"),
        }
    }

    fn numbers(key: &str, count: u32) -> Dimension {
        let values: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        Dimension::of_key(key, values.iter().map(String::as_str))
    }

    #[test]
    fn a_grid_beyond_the_limit_is_refused_before_anything_is_read() {
        assert_eq!(grid(&[], &[numbers("seed", 100), numbers("lines", 100)]).unwrap().len(), 10_000);
        let message = refused(&[numbers("seed", 101), numbers("lines", 100)]);
        assert_eq!(message, "10100 combinations; a comparison has at most 10000");
    }

    #[test]
    fn commas_inside_of_tables_lists_and_quotes_are_of_the_value() {
        let values = |vary: &str| {
            let values = Dimension::parse(vary).unwrap().values;
            values.into_iter().map(|(value, _)| value).collect::<Vec<_>>()
        };
        assert_eq!(values("k=1 Mbit/s, 2 Mbit/s"), ["1 Mbit/s", "2 Mbit/s"]);
        assert_eq!(
            values(r#"k={kind="fq-codel", limit="100 packets"},{kind="fifo"}"#),
            [r#"{kind="fq-codel", limit="100 packets"}"#, r#"{kind="fifo"}"#]
        );
        assert_eq!(values(r#"k=[1,[2,3]],"a,\"b,c",'d,\',e"#), ["[1,[2,3]]", r#""a,\"b,c""#, r"'d,\'", "e"]);
        assert_eq!(values(r#"k={a="}", b='"'},o'er,4" x"#), [r#"{a="}", b='"'}"#, "o'er", "4\" x"]);
        assert_eq!(values("k={a,b"), ["{a,b"], "what is wrong is said of the whole");
    }

    #[test]
    fn combinations_that_share_a_folder_are_refused() {
        let dimensions = ["a=1-,1", "b=2,-2"].map(|vary| Dimension::parse(vary).unwrap());
        let message = refused(&dimensions);
        assert!(message.contains("have one folder for their results: 1---2"), "{message}");
    }
}
