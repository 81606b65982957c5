//! A key that is set over what the file says, and where that was asked for.

use crate::diagnostics::Place;

/// `key=value`, and where it was written, so that its errors are reported there.
///
/// It names a key as in the file, entries of lists by their name or by their place from 0 (`traffic.upload.start=10s`,
/// `traffic.0.start=10s`). Its value is TOML, or a bare text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    pair: String,
    place: Place,
}

impl Override {
    /// `pair` as `--set` has it.
    #[must_use]
    pub fn set(pair: &str) -> Self {
        Self::from_argument(pair, &format!("--set {pair}"))
    }

    /// `pair` as what `argument` stands for: `access.policy=gaming` for `--policy gaming`.
    #[must_use]
    pub fn from_argument(pair: &str, argument: &str) -> Self {
        Self { pair: pair.to_owned(), place: Place::Argument { text: argument.to_owned() } }
    }

    /// `key=value`, where `argument` stands for it word by word: `seed=3` for `--seed 3`.
    #[must_use]
    pub fn from_option(option: &str, key: &str, value: &str) -> Self {
        Self::from_argument(&format!("{key}={value}"), &format!("{option} {value}"))
    }

    /// `pair` as it is written at `place`.
    #[must_use]
    pub fn at(place: Place, pair: String) -> Self {
        Self { pair, place }
    }

    /// `key=value`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.pair
    }

    /// How it was given: `--set access.up.rate=0`.
    #[must_use]
    pub fn given(&self) -> &str {
        match &self.place {
            Place::Argument { text } => text,
            _ => &self.pair,
        }
    }

    /// Whether it sets `key` or a part of it.
    #[must_use]
    pub fn is_within(&self, key: &str) -> bool {
        let parts = |key: &str| key.split('.').map(|part| part.trim().trim_matches('"').to_owned()).collect::<Vec<_>>();
        parts(self.pair.split('=').next().unwrap_or_default()).starts_with(&parts(key))
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

/// As `--set` has it.
impl From<&str> for Override {
    fn from(pair: &str) -> Self {
        Self::set(pair)
    }
}
