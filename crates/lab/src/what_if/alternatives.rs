//! "What would change if", for the line of a scenario: the scenario as it was read, with another policy.

use std::io::{self, Read};
use std::path::{Path as FilePath, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lastmile_live::bump::States;
use lastmile_live::control::Replacement;
use lastmile_live::handle::Handle;
use lastmile_model::{Hop, Network};
use lastmile_scenario::files::{Disk, Files};
use lastmile_scenario::policy::ready::{self, NONE};
use lastmile_scenario::policy::{Class, Position};
use lastmile_scenario::{Override, Policy, Scenario};

use super::{Answer, Recent, Setup};
use crate::error::Error;
use crate::path::Path;

/// A scenario as it was read, and the ends of its line.
pub struct Script {
    file: String,
    text: String,
    overrides: Vec<Override>,
    between: Option<(String, String)>,
}

impl Script {
    /// Reads the scenario in `file`.
    pub fn read(
        file: &FilePath,
        overrides: &[Override],
        between: Option<&(String, String)>,
    ) -> Result<(Self, Scenario), Error> {
        let text = Scenario::text(file)?;
        let file = file.display().to_string();
        let scenario = Scenario::parse_with(&file, &text, overrides)?;
        Ok((Self { file, text, overrides: overrides.to_vec(), between: between.cloned() }, scenario))
    }
}

/// The files of the machine, and the text of a policy among them.
struct PolicyText {
    path: PathBuf,
    text: String,
}

impl Files for PolicyText {
    fn open(&self, path: &FilePath) -> io::Result<Box<dyn Read>> {
        if path == self.path { Ok(Box::new(io::Cursor::new(self.text.clone()))) } else { Disk.open(path) }
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
    let moves_rates = policy.is_some_and(|policy| policy.autorate().is_some());
    Setup { policy: policy.map_or(NONE, |policy| &policy.name).to_owned(), up, down, names, moves_rates }
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
pub struct Alternatives {
    script: Script,
    in_force: Setup,
    /// The run of the line.
    handle: Mutex<Option<Handle>>,
    recent: Mutex<Recent>,
}

impl Alternatives {
    /// The alternatives of a line with these hops, up and down; `None` if no policy would change it.
    pub fn of(script: Script, scenario: &Scenario, [up, down]: [&[Hop]; 2]) -> Option<Self> {
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
    pub fn begin(&self, handle: Handle) {
        *lock(&self.handle) = Some(handle);
        lock(&self.recent).clear();
    }

    /// Adds the state of a second.
    pub fn push(&self, before: Option<&States>, now: &States) {
        lock(&self.recent).push(before, now);
    }

    /// The line with another policy: a built-in one, `none`, or a text, which messages call by the path `/NAME`.
    pub fn with(&self, Replacement { name, text }: &Replacement) -> Result<Setup, Error> {
        let script = &self.script;
        let (value, files): (_, Rc<dyn Files>) = match text {
            None if name == NONE || ready::text(name).is_some() => (name.clone(), Rc::new(Disk)),
            None => return Err(Error::NoPolicy(name.clone())),
            Some(text) => {
                // A policy is a name or a path.
                let path = format!("/{name}");
                (path.clone(), Rc::new(PolicyText { path: path.into(), text: text.clone() }))
            }
        };
        let other = Override::from_argument(&format!("access.policy={value}"), &format!("policy {name}"));
        let overrides = [script.overrides.as_slice(), &[other]].concat();
        let scenario = Scenario::parse_among(files, &script.file, &script.text, &overrides)?;
        let path = Path::of(&scenario, script.between.as_ref())?;
        Ok(setup(&scenario, path.up(), path.down()))
    }

    /// The last minute with another policy.
    pub fn answer<'a>(&'a self, other: &'a Setup, limits: &'a [&'a str]) -> Result<Answer<'a>, String> {
        let handle = lock(&self.handle).clone().ok_or("no packets are carried yet")?;
        super::answer(&handle, [&self.in_force, other], limits, lock(&self.recent))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn words(name: &str, text: Option<&str>) -> Result<String, Error> {
        let (name, text) = (name.to_owned(), text.map(str::to_owned));
        let setup = alternatives(LINE, None).unwrap().with(&Replacement { name, text })?;
        let hops = setup.up.iter().chain(&setup.down).map(|hop| hop.name.as_str()).collect::<Vec<_>>();
        Ok(format!("{}: {}", setup.policy, hops.join(" ")))
    }

    #[test]
    fn another_policy_gives_the_line_other_hops() {
        let line = alternatives(LINE, None).unwrap();
        assert_eq!((line.in_force.policy.as_str(), line.in_force.up.len()), ("cake", 5));
        let none = words("none", None);
        let links = "client-cpe up dslam-gateway gateway-server server-gateway gateway-dslam down cpe-client";
        assert_eq!(none.unwrap(), format!("none: {links}"));
        let [named, text] = [None, ready::text("cake")].map(|text| words("cake", text).unwrap());
        assert_eq!(named, text);
    }

    #[test]
    fn a_policy_with_a_controller_moves_its_rates() {
        let line = alternatives(LINE, None).unwrap();
        let named = |name: &str| line.with(&Replacement { name: name.to_owned(), text: None }).unwrap().moves_rates;
        assert_eq!(["cake", "cake-autorate", NONE].map(named), [false, true, false]);
    }

    /// A page may not read files.
    #[test]
    fn a_policy_is_a_built_in_one_or_a_text() {
        for name in ["/etc/passwd", "./line.toml", "nothing of this name"] {
            let refused = words(name, None).unwrap_err();
            let hint = refused.hint().unwrap();
            assert!(refused.to_string().contains("no built-in policy") && hint.contains("policies: none, "), "{hint}");
        }
        let refused = words("text of a page", Some("[[class]]\nname = 3")).unwrap_err().to_string();
        assert!(refused.contains("/text of a page:2"), "{refused}");
    }

    #[test]
    fn a_way_without_an_access_line_has_no_policy() {
        assert!(alternatives(LINE, Some(("server", "beyond"))).is_none());
        let own = "[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"";
        assert!(alternatives(own, Some(("a", "b"))).is_none());
    }
}
