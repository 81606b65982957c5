//! A run: its label, its changes of the file, and the folder of its results.

use std::path::{Path, PathBuf};

use lastmile_scenario::Override;
use lastmile_units::Duration;

use crate::error::Error;

/// Precedes the seed in the label of one of several seeds.
const SEED: &str = " seed ";

/// One run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Name among the compared runs; empty for a single run.
    pub label: String,
    /// Overrides of `--set`, followed by its own.
    pub overrides: Vec<Override>,
    /// Overrides in which it differs from the other runs.
    pub own: Vec<Override>,
    /// True if `--out` writes its results.
    pub is_written: bool,
}

impl Variant {
    /// The run called `label` with the overrides of all runs and its own.
    #[must_use]
    pub fn new(label: &str, common: &[Override], own: Vec<Override>) -> Self {
        Self { label: label.to_owned(), overrides: common.iter().chain(&own).cloned().collect(), own, is_written: true }
    }

    /// A copy without files.
    #[must_use]
    pub fn unwritten(self) -> Self {
        Self { is_written: false, ..self }
    }

    /// Copies with each of `seeds` seeds from `first` on.
    ///
    /// # Errors
    /// There are fewer seeds from `first` on.
    pub fn over_seeds(&self, first: u64, seeds: u64) -> Result<Vec<Self>, Error> {
        check_seeds(first, seeds)?;
        Ok((0..seeds).map(|number| self.with_seed(first + number)).collect())
    }

    /// A copy with a seed, which is added to its label.
    fn with_seed(&self, seed: u64) -> Self {
        let own = Override::from_option("--seeds", "seed", &seed.to_string());
        let mut with = self.clone();
        with.label = format!("{}{SEED}{seed}", self.label).trim_start().to_owned();
        with.overrides.push(own.clone());
        with.own.push(own);
        with
    }

    /// The origin of its folder's name, in words.
    #[must_use]
    pub fn named_by(&self) -> String {
        const MOST: usize = 40;
        let label: String = self.label.chars().take(MOST).collect();
        match self.label.chars().count() {
            0 => "--out".to_owned(),
            1..=MOST => format!("--out, run {label:?}"),
            _ => format!("--out, run \"{label}...\""),
        }
    }

    /// The folder of its results, if they are written: `out` itself for a single run.
    #[must_use]
    pub fn directory(&self, out: &Path) -> Option<PathBuf> {
        self.is_written.then(|| if self.label.is_empty() { out.to_owned() } else { out.join(file_name(&self.label)) })
    }
}

/// Refuses more seeds from `first` on than there are.
///
/// # Errors
/// The last of `seeds` seeds is above the largest.
pub fn check_seeds(first: u64, seeds: u64) -> Result<(), Error> {
    if seeds.saturating_sub(1) <= u64::MAX - first {
        return Ok(());
    }
    let largest = u64::MAX;
    Err(Error::new(format_args!("seed: {seeds} seeds from {first} on pass {largest}, the largest"))
        .hint(format!("a seed of at most {}", largest - (seeds - 1))))
}

/// The overrides of `--set`, `--seed` and `--duration`, in this order.
#[must_use]
pub fn common(set: &[Override], seed: Option<u64>, duration: Option<Duration>) -> Vec<Override> {
    let seed = seed.map(|seed| Override::from_option("--seed", "seed", &seed.to_string()));
    let duration = duration.map(|time| Override::from_option("--duration", "duration", &time.to_string()));
    set.iter().cloned().chain(seed).chain(duration).collect()
}

/// Overrides as `key=value`, for results.
#[must_use]
pub fn pairs(overrides: &[Override]) -> Vec<String> {
    overrides.iter().map(|set| set.as_str().to_owned()).collect()
}

/// The override for `--policy name`. A path is relative to the working directory, while one in a
/// scenario is relative to that scenario.
#[must_use]
pub fn policy_override(name: &str) -> Override {
    let file = if name.contains(['/', '.']) { std::path::absolute(name).ok() } else { None };
    let seen = file.map_or_else(|| name.to_owned(), |file| file.display().to_string());
    if name.is_empty() {
        // Written as a text, so that the reader of policies says which there are.
        return Override::from_argument("access.policy=\"\"", "--policy \"\"");
    }
    Override::from_argument(&format!("access.policy={seen}"), &format!("--policy {name}"))
}

/// `label` as the name of a directory: any character but a letter, digit, dot or dash becomes a
/// dash.
#[must_use]
pub fn file_name(label: &str) -> String {
    let kept = |c: char| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' };
    let name: String = label.chars().map(kept).collect();
    // The result is never `.`, `..` or a hidden file.
    if name.starts_with('.') || name.is_empty() { format!("-{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_end_at_the_largest() {
        let one = Variant::new("", &[], Vec::new());
        let seeds = one.over_seeds(u64::MAX - 1, 2).unwrap();
        assert_eq!(pairs(&seeds[1].own), ["seed=18446744073709551615"]);
        let wrong = one.over_seeds(u64::MAX - 1, 3).unwrap_err().to_string();
        let of = "error: seed: 3 seeds from 18446744073709551614 on pass 18446744073709551615, the largest";
        assert_eq!(wrong, format!("{of}\nhint: a seed of at most 18446744073709551613"));
    }

    #[test]
    fn labels_make_names_that_stay_in_their_directory() {
        assert_eq!(file_name("256 kbit/s"), "256-kbit-s");
        assert_eq!(file_name("../../etc"), "-..-..-etc");
        assert_eq!(file_name(""), "-");
        assert_eq!(file_name("ack-priority"), "ack-priority");
    }
}
