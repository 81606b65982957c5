//! Cases of a study: settings of several keys under one name, which is a value of the key `case`.

use lastmile_scenario::Override;

use crate::error::Error;

/// The key whose values are the names of cases.
pub const CASE: &str = "case";

/// Names, each with its settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cases(Vec<(String, Vec<Override>)>);

impl Cases {
    /// Cases with different names and settings.
    ///
    /// # Errors
    /// Two equal names, two equal lists of settings, or a seed.
    pub fn new(cases: Vec<(String, Vec<Override>)>) -> Result<Self, Error> {
        for (number, (name, set)) in cases.iter().enumerate() {
            if set.iter().any(|one| one.is_within("seed")) {
                let hint = "a number of seeds runs every case with that many";
                return Err(Error::new(format_args!("case {name:?}: the seed is no key of a study")).hint(hint));
            }
            let pairs = |set: &[Override]| set.iter().map(|one| one.as_str().to_owned()).collect::<Vec<_>>();
            for (other, its) in &cases[..number] {
                if other == name {
                    return Err(Error::new(format_args!("two cases are called {name:?}")));
                }
                if pairs(its) == pairs(set) {
                    return Err(Error::new(format_args!("the cases {other:?} and {name:?} are equal"))
                        .hint("each case once; a number of seeds runs it several times"));
                }
            }
        }
        Ok(Self(cases))
    }

    /// The cases in their order.
    #[must_use]
    pub fn all(&self) -> &[(String, Vec<Override>)] {
        &self.0
    }

    /// The settings of a case.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<&[Override]> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, set)| set.as_slice())
    }

    /// The first case that sets `key`, a part of it, or a table with it.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&str> {
        let whole = Override::set(key);
        let path = |one: &Override| one.as_str().split('=').next().unwrap_or_default().to_owned();
        let sets = |one: &Override| one.is_within(key) || whole.is_within(&path(one));
        self.0.iter().find(|(_, set)| set.iter().any(sets)).map(|(name, _)| name.as_str())
    }
}
