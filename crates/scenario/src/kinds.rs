//! The kind of a file, by its keys at the top level: a file of another kind is one error, and not one for each key.

use crate::diagnostics::{Diagnostic, Place, Report};
use crate::document::{Document, Origin};

/// The kinds of files that lastmile reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    /// A network with its traffic.
    Scenario,
    /// Queues and classes for a line.
    Policy,
    /// Many runs of a scenario.
    Study,
}

impl FileKind {
    pub(crate) const ALL: [Self; 3] = [Self::Scenario, Self::Policy, Self::Study];

    /// Keys that only files of this kind have. Keys of several kinds, and keys that occur only together with these, are
    /// left out.
    pub(crate) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Scenario => &["access", "traffic", "link", "node", "switch"],
            Self::Policy => &["line", "scheduler", "ack", "class", "rule", "down"],
            Self::Study => &["scenario", "grid", "paired", "latin"],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Policy => "policy",
            Self::Study => "study",
        }
    }

    /// The commands that take such a file.
    const fn taken_by(self) -> &'static str {
        match self {
            Self::Scenario => "`lastmile run FILE` takes a scenario, and so do compare, plot, emulate and lab",
            Self::Policy => "`lastmile policy check FILE` takes a policy, and so does --policy of run, emulate and lab",
            Self::Study => "`lastmile study FILE --out DIR` takes a study",
        }
    }

    /// Refuses a file that is of another kind: it has keys of that one, and none of this.
    ///
    /// # Errors
    /// One error, about the whole file.
    pub(crate) fn check(self, document: &Document, name: &str) -> Result<(), Report> {
        let in_file = document.root.entries.iter().filter(|(key, _)| matches!(key.origin, Origin::Span(_)));
        let names: Vec<&str> = in_file.map(|(key, _)| key.name.as_str()).collect();
        let has = |kind: &Self| names.iter().any(|name| kind.keys().contains(name));
        let Some(other) = Self::ALL.into_iter().find(has).filter(|_| !has(&self)) else { return Ok(()) };
        let place = Place::WholeFile { name: name.to_owned() };
        let message = format!("this is a {}, where a {} is expected", other.name(), self.name());
        Err(Report::of(Diagnostic::error(place, message).hint(other.taken_by())))
    }
}
