//! "What would change if", for the line of a scenario.

use std::sync::Arc;

use lastmile_dashboard::hub::{Program, Question};
use lastmile_lab::what_if::Alternatives;
use lastmile_scenario::policy::ready::{self, NONE};

use super::super::control;
use super::super::web::what_if::{self, TEXT};

/// The limits of an answer, as the page shows them.
const LIMITS: [&str; 5] = what_if::limits(
    "Losses, jitter and duplicates of a link are drawn anew with the scenario's seed: once the run is longer than the \
     record, other packets are lost than those that were, as many on average.",
);

/// The line of a scenario for the page, which cannot change it.
pub(in crate::commands) struct Line(pub(in crate::commands) Option<Arc<Alternatives>>);

impl Program for Line {
    fn policies(&self) -> Vec<String> {
        if self.0.is_none() {
            return Vec::new();
        }
        std::iter::once(NONE).chain(ready::NAMES.iter().copied()).map(str::to_owned).collect()
    }

    fn what_if(&self, question: &Question) -> Result<String, String> {
        let alternatives = self.0.as_ref().ok_or("the line between these ends has no policy")?;
        let other = alternatives.with(&what_if::asked(question));
        let other = other.map_err(|error| control::words(&error.into()).replace(&format!("/{TEXT}"), TEXT))?;
        what_if::json(&alternatives.answer(&other, &LIMITS)?)
    }
}

#[cfg(test)]
mod tests {
    use lastmile_lab::path::Path;
    use lastmile_lab::what_if::Script;

    use super::*;

    /// A page may not read files, and names the text that is pasted into it.
    #[test]
    fn what_is_wrong_with_a_policy_is_said_as_on_a_terminal() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = "duration = \"1 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n";
        std::fs::write(file.path(), line).unwrap();
        let (script, scenario) = Script::read(file.path(), &[], None).unwrap();
        let path = Path::of(&scenario, None).unwrap();
        let line = Line(Alternatives::of(script, &scenario, [&path.up(), &path.down()]).map(Arc::new));
        assert_eq!(line.policies()[..2], [NONE, ready::NAMES[0]]);
        let refused = line.what_if(&Question::Policy("/etc/passwd".into())).unwrap_err();
        let words = "error: there is no built-in policy \"/etc/passwd\"\nhint: built-in policies: none, fifo, ";
        assert!(refused.starts_with(words), "{refused}");
        let refused = line.what_if(&Question::Text("[[class]]\nname = 3".into())).unwrap_err();
        assert!(refused.contains("text of the dashboard:2") && !refused.contains("/text"), "{refused}");
        assert_eq!(line.what_if(&Question::Policy("cake".into())), Err("no packets are carried yet".to_owned()));
    }

    #[test]
    fn a_way_without_an_access_line_has_no_policy() {
        assert!(Line(None).policies().is_empty());
    }
}
