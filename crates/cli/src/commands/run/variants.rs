//! Which runs a command line asks for: one, or one for each value of a key.

use std::path::{Path, PathBuf};

use lastmile_scenario::Override;
use lastmile_units::Duration;

use crate::failure::{Failure, Result};

use super::Arguments;

/// The key that `--remedy` is short for.
const REMEDY: &str = "access.remedy";

/// What stands before the seed in the label of a run that has several.
pub(in crate::commands) const SEED: &str = " seed ";

/// One run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::commands) struct Variant {
    /// What tells it from the others; empty for a run on its own.
    pub(in crate::commands) label: String,
    /// Those of `--set` and then its own.
    pub(in crate::commands) overrides: Vec<Override>,
    /// Those of its own, which set it apart.
    pub(in crate::commands) own: Vec<Override>,
}

impl Variant {
    /// The run called `label` with the overrides that all have and those that set it apart.
    pub(in crate::commands) fn new(label: &str, common: &[Override], own: Vec<Override>) -> Self {
        Self { label: label.to_owned(), overrides: common.iter().chain(&own).cloned().collect(), own }
    }

    /// The run with each of `seeds` seeds, `first` and those after it.
    pub(in crate::commands) fn over_seeds(&self, first: u64, seeds: u64) -> impl Iterator<Item = Self> {
        (0..seeds).map(move |number| self.with_seed(first.wrapping_add(number)))
    }

    /// The same with a seed, which its label then tells.
    fn with_seed(&self, seed: u64) -> Self {
        let own = Override::from_option("--seeds", "seed", &seed.to_string());
        let mut with = self.clone();
        with.label = format!("{}{SEED}{seed}", self.label).trim_start().to_owned();
        with.overrides.push(own.clone());
        with.own.push(own);
        with
    }

    /// What gives the folder of its results its name, in words.
    pub(super) fn named_by(&self) -> String {
        const MOST: usize = 40;
        let label: String = self.label.chars().take(MOST).collect();
        match self.label.chars().count() {
            0 => "--out".to_owned(),
            1..=MOST => format!("--out, run {label:?}"),
            _ => format!("--out, run \"{label}...\""),
        }
    }

    /// Where its results go: `out` itself for a run on its own.
    pub(super) fn directory(&self, out: &Path) -> PathBuf {
        if self.label.is_empty() { out.to_owned() } else { out.join(file_name(&self.label)) }
    }
}

/// The runs that `arguments` ask for, at least one.
pub(in crate::commands) fn of(arguments: &Arguments) -> Result<Vec<Variant>> {
    let common = arguments.changes.overrides(arguments.seed);
    let (key, values) = match &arguments.vary {
        Some(vary) => {
            let (key, values) = vary.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Failure::new(format_args!("--vary {vary}: not of the form KEY=VALUE,..."))
                    .hint("such as --vary \"access.up.rate=256 kbit/s,512 kbit/s\"")
            })?;
            (key, values.split(',').map(str::to_owned).collect())
        }
        None => (REMEDY, arguments.remedy.clone()),
    };
    if values.is_empty() {
        return Ok(vec![Variant::new("", &common, Vec::new())]);
    }
    let mut variants: Vec<Variant> = Vec::new();
    for value in &values {
        let value = value.trim();
        if variants.iter().any(|other| file_name(&other.label) == file_name(value)) {
            return Err(Failure::new(format_args!("{key} is to be \"{value}\" twice")));
        }
        let own = match arguments.vary {
            Some(_) => vec![Override::from_argument(&format!("{key}={value}"), &format!("--vary {key}={value}"))],
            None => remedy_overrides("--remedy", value),
        };
        variants.push(Variant::new(value, &common, own));
    }
    Ok(variants)
}

/// What `--set`, `--seed` and `--duration` ask for, in this order.
pub(in crate::commands) fn common(set: &[Override], seed: Option<u64>, duration: Option<Duration>) -> Vec<Override> {
    let seed = seed.map(|seed| Override::from_option("--seed", "seed", &seed.to_string()));
    let duration = duration.map(|time| Override::from_option("--duration", "duration", &time.to_string()));
    set.iter().cloned().chain(seed).chain(duration).collect()
}

/// Each as `key=value`, for results.
pub(in crate::commands) fn pairs(overrides: &[Override]) -> Vec<String> {
    overrides.iter().map(|set| set.as_str().to_owned()).collect()
}

/// The policy that `option` names, in place of the policy or remedy of the file. A path is relative to the working directory, where one in a
/// scenario is relative to that scenario.
pub(in crate::commands) fn policy_overrides(option: &str, name: &str) -> Vec<Override> {
    let file = if name.contains(['/', '.']) { std::path::absolute(name).ok() } else { None };
    let seen = file.map_or_else(|| name.to_owned(), |file| file.display().to_string());
    either(option, name, "none", &seen)
}

/// The remedy that `option` names, in place of the policy or remedy of the file.
pub(in crate::commands) fn remedy_overrides(option: &str, name: &str) -> Vec<Override> {
    either(option, name, name, "none")
}

/// A file has one of the two: each clears the other.
fn either(option: &str, name: &str, remedy: &str, policy: &str) -> Vec<Override> {
    let argument = format!("{option} {name}");
    [("access.remedy", remedy), ("access.policy", policy)]
        .map(|(key, value)| Override::from_argument(&format!("{key}={value}"), &argument))
        .into()
}

/// `label` as the name of a directory: what is no letter, digit, dot or dash becomes a dash.
pub(in crate::commands) fn file_name(label: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let name: String = label.chars().map(kept).collect();
    // Never `.`, `..` or a hidden file.
    if name.starts_with('.') || name.is_empty() { format!("-{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_names_that_stay_in_their_directory() {
        assert_eq!(file_name("256 kbit/s"), "256-kbit-s");
        assert_eq!(file_name("../../etc"), "-..-..-etc");
        assert_eq!(file_name(""), "-");
        assert_eq!(file_name("ack-priority"), "ack-priority");
    }
}
