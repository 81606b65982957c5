//! "What would change if", for the line of a scenario: the scenario as it was read, with another policy.

use std::io::{self, Read};
use std::path::{Path as FilePath, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastmile_dashboard::hub::{Program, Question};
use lastmile_lab::path::Path;
use lastmile_live::bump::States;
use lastmile_live::emulate::Handle;
use lastmile_model::{Hop, Network};
use lastmile_scenario::files::{Disk, Files};
use lastmile_scenario::policy::{Class, Position, ready};
use lastmile_scenario::{Override, Policy, Scenario};

use super::super::control;
use super::super::policy;
use super::super::web::recent::Recent;
use super::super::web::what_if::{self, Asked, HEADERS, OPEN_LOOP, Setup, TEXT, TRUST, WINDOWS};
use crate::failure::{Failure, Result};

/// The limits of an answer, as the page shows them.
const LIMITS: [&str; 5] = [
    OPEN_LOOP,
    TRUST,
    "Losses, jitter and duplicates of a link are drawn anew with the scenario's seed: once the run is longer than the \
     record, other packets are lost than those that were, as many on average.",
    HEADERS,
    WINDOWS,
];

/// The name of a scenario's policy that is none.
const NONE: &str = "none";

/// A scenario as it was read, and the ends of its line.
pub(in crate::commands) struct Script {
    file: String,
    text: String,
    overrides: Vec<Override>,
    between: Option<(String, String)>,
}

impl Script {
    /// Reads the scenario in `file`.
    pub(in crate::commands) fn read(
        file: &FilePath,
        overrides: &[Override],
        between: Option<&(String, String)>,
    ) -> Result<(Self, Scenario)> {
        let text = Scenario::text(file).map_err(Failure::Report)?;
        let file = file.display().to_string();
        let scenario = Scenario::parse_with(&file, &text, overrides).map_err(Failure::Report)?;
        Ok((Self { file, text, overrides: overrides.to_vec(), between: between.cloned() }, scenario))
    }

    /// The scenario with another policy.
    fn with(&self, question: &Question) -> Result<Setup> {
        let name = match question {
            Question::Policy(name) => name.as_str(),
            Question::Text(_) => TEXT,
        };
        let own = PolicyText::path();
        let (value, files): (String, Rc<dyn Files>) = match question {
            Question::Policy(name) if name == NONE || ready::text(name).is_some() => (name.clone(), Rc::new(Disk)),
            Question::Policy(name) => return Err(policy::unknown(name, &[NONE])),
            Question::Text(text) => (own.display().to_string(), Rc::new(PolicyText(text.clone()))),
        };
        let other = Override::from_argument(&format!("access.policy={value}"), &format!("policy {name}"));
        let overrides = [self.overrides.as_slice(), &[other]].concat();
        let scenario = Scenario::parse_among(files, &self.file, &self.text, &overrides).map_err(Failure::Report)?;
        let path = Path::of(&scenario, self.between.as_ref())?;
        Ok(setup(&scenario, path.up(), path.down()))
    }
}

/// The files of the machine, and the text of a policy among them.
struct PolicyText(String);

impl PolicyText {
    /// A path, for a policy is a path or a name.
    fn path() -> PathBuf {
        FilePath::new("/").join(TEXT)
    }
}

impl Files for PolicyText {
    fn open(&self, path: &FilePath) -> io::Result<Box<dyn Read>> {
        if path == Self::path() { Ok(Box::new(io::Cursor::new(self.0.clone()))) } else { Disk.open(path) }
    }
}

/// The policy of a scenario on its hops.
fn setup(scenario: &Scenario, up: Vec<Hop>, down: Vec<Hop>) -> Setup {
    let policy = scenario.access().and_then(|access| access.policy.as_ref());
    let of = |direction: &'static str, hops: &[Hop]| {
        let name = move |hop: &Hop| {
            let classes = policy.map_or_else(Vec::new, |policy| classes_at(policy, scenario.network_ref(), hop));
            (format!("{direction}, link {}", hop.name), classes)
        };
        hops.iter().map(name).collect::<Vec<_>>()
    };
    let names = [of("up", &up), of("down", &down)].concat();
    Setup { policy: policy.map_or(NONE, |policy| &policy.name).to_owned(), up, down, names }
}

/// The classes of a policy whose scheduler is in front of this hop.
fn classes_at(policy: &Policy, network: &Network, hop: &Hop) -> Vec<Class> {
    let is_upstream = match policy.place {
        Position::Middlebox => hop.name.starts_with("middlebox-up"),
        Position::Modem => network.lines.iter().any(|line| network.links[line.up].hop.name == hop.name),
    };
    match &policy.down {
        _ if is_upstream => policy.classes.clone(),
        Some(down) if hop.name.starts_with("middlebox-down") => down.classes.clone(),
        _ => Vec::new(),
    }
}

/// The line of a scenario, and what another policy would change.
pub(in crate::commands) struct Alternatives {
    script: Script,
    in_force: Setup,
    /// The run of the line.
    handle: Mutex<Option<Handle>>,
    recent: Mutex<Recent>,
}

impl Alternatives {
    /// The alternatives of a line with these hops, up and down; `None` if no policy would change it.
    pub(in crate::commands) fn of(script: Script, scenario: &Scenario, [up, down]: [&[Hop]; 2]) -> Option<Self> {
        scenario.access()?;
        let network = scenario.network_ref();
        let carries = |link: usize| up.iter().chain(down).any(|hop| hop.name == network.links[link].hop.name);
        network.lines.iter().any(|line| carries(line.up) || carries(line.down)).then(|| Self {
            script,
            in_force: setup(scenario, up.to_vec(), down.to_vec()),
            handle: Mutex::default(),
            recent: Mutex::default(),
        })
    }

    /// A run begins.
    pub(in crate::commands) fn begin(&self, handle: Handle) {
        *lock(&self.handle) = Some(handle);
        lock(&self.recent).clear();
    }

    /// Adds the state of a second.
    pub(in crate::commands) fn push(&self, before: Option<&States>, now: &States) {
        lock(&self.recent).push(before, now);
    }

    /// The last minute with another policy, as JSON.
    fn answer(&self, question: &Question) -> std::result::Result<String, String> {
        let path = PolicyText::path().display().to_string();
        let words = |failure| control::words(&failure).replace(&path, TEXT);
        let other = self.script.with(question).map_err(words)?;
        let handle = lock(&self.handle).clone().ok_or("no packets are carried yet")?;
        let asked = Asked { handle: &handle, in_force: &self.in_force, other: &other, limits: &LIMITS };
        what_if::answer(&asked, lock(&self.recent))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The line of a scenario for the page, which cannot change it.
pub(in crate::commands) struct Line(pub(in crate::commands) Option<Arc<Alternatives>>);

impl Program for Line {
    fn policies(&self) -> Vec<String> {
        if self.0.is_none() {
            return Vec::new();
        }
        std::iter::once(NONE).chain(ready::NAMES.iter().copied()).map(str::to_owned).collect()
    }

    fn what_if(&self, question: &Question) -> std::result::Result<String, String> {
        self.0.as_ref().ok_or("the line between these ends has no policy")?.answer(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"
        duration = "1 s"
        [access]
        policy = "cake"
        down = { rate = "2 Mbit/s" }
        up = { rate = "512 kbit/s" }
        [[link]]
        from = "server"
        to = "beyond"
        rate = "1 Gbit/s"
    "#;

    fn alternatives(text: &str, between: Option<(&str, &str)>) -> Option<Alternatives> {
        let between = between.map(|(client, server)| (client.to_owned(), server.to_owned()));
        let (file, text) = ("line.toml".to_owned(), text.to_owned());
        let script = Script { file, text, overrides: Vec::new(), between };
        let scenario = Scenario::parse_with(&script.file, &script.text, &script.overrides).unwrap();
        let path = Path::of(&scenario, script.between.as_ref()).unwrap();
        let hops = [path.up(), path.down()];
        Alternatives::of(script, &scenario, [&hops[0], &hops[1]])
    }

    fn words(question: &Question) -> std::result::Result<String, String> {
        let setup =
            alternatives(LINE, None).unwrap().script.with(question).map_err(|failure| control::words(&failure))?;
        let hops = setup.up.iter().chain(&setup.down).map(|hop| hop.name.as_str()).collect::<Vec<_>>();
        Ok(format!("{}: {}", setup.policy, hops.join(" ")))
    }

    #[test]
    fn another_policy_gives_the_line_other_hops() {
        let line = alternatives(LINE, None).unwrap();
        assert_eq!((line.in_force.policy.as_str(), line.in_force.up.len()), ("cake", 5));
        let none = words(&Question::Policy("none".into()));
        let links = "client-cpe up dslam-gateway gateway-server server-gateway gateway-dslam down cpe-client";
        assert_eq!(none.unwrap(), format!("none: {links}"));
        let text = ready::text("cake").unwrap().to_owned();
        let [named, text] = [Question::Policy("cake".into()), Question::Text(text)].map(|question| words(&question));
        assert!(text.is_ok() && named == text, "{text:?}");
    }

    /// A page may not read files.
    #[test]
    fn a_policy_is_a_built_in_one_or_a_text() {
        for name in ["/etc/passwd", "./line.toml", "nothing of this name"] {
            let refused = words(&Question::Policy(name.into())).unwrap_err();
            assert!(refused.contains("no built-in policy") && refused.contains("policies: none, "), "{refused}");
        }
        let refused = words(&Question::Text("[[class]]\nname = 3".into())).unwrap_err();
        assert!(refused.contains("text of the dashboard:2"), "{refused}");
    }

    #[test]
    fn a_way_without_an_access_line_has_no_policy() {
        assert!(alternatives(LINE, Some(("server", "beyond"))).is_none());
        let own = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"";
        assert!(alternatives(own, Some(("a", "b"))).is_none());
        assert!(Line(None).policies().is_empty());
    }
}
