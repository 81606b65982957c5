//! One file of the library: what it says about itself, and the part that goes into a scenario.
//!
//! A file begins with a comment, the keys of the entry (`about`, and `shared`, `duration` or `lines`), and then has
//! tables of a scenario. These are copied as they are, comments included.

use lastmile_units::BitRate;

/// An access line: the `[access]` part of a scenario.
#[derive(Clone, Debug)]
pub struct Line {
    /// The name of the line, as `lastmile new --line` takes it.
    pub name: &'static str,
    /// A description of the line, in one line.
    pub about: String,
    /// Mean rate of the wire towards the client.
    pub down: BitRate,
    /// Mean rate of the wire from the client.
    pub up: BitRate,
    /// The capacity downstream that neighbours share, with its comment.
    pub(crate) shared: Shared,
    /// The comment at the beginning of the file.
    pub(crate) intro: String,
    /// The tables of the scenario.
    pub(crate) tables: &'static str,
}

/// A capacity that several lines share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) rate: String,
    pub(crate) comment: String,
}

/// A household: the `[[traffic]]` part of a scenario.
#[derive(Clone, Debug)]
pub struct Home {
    /// The name of the home, as `lastmile new --home` takes it.
    pub name: &'static str,
    /// The people of the household and their applications, in one line.
    pub about: String,
    /// The number of access lines that share the capacity behind them.
    pub lines: u64,
    /// Simulated time, as a scenario has it.
    pub(crate) duration: String,
    /// The tables of the scenario.
    pub(crate) tables: &'static str,
}

impl Line {
    /// The line of this file.
    ///
    /// # Panics
    /// If the file is wrong: the library is embedded, and a test reads all of it.
    pub(crate) fn read(name: &'static str, text: &'static str) -> Self {
        let (head, tables) = parts(name, text);
        let keys = keys(name, head);
        let access = lastmile_scenario::Scenario::parse(name, tables, &[]).unwrap_or_else(|report| panic!("{report}"));
        let access = access.access().unwrap_or_else(|| panic!("{name}: no [access]"));
        let rate = |hop: &lastmile_model::Hop| hop.line.rate.unwrap_or_else(|| panic!("{name}: a line without a rate"));
        Self {
            name,
            about: word(name, &keys, "about"),
            down: rate(&access.down),
            up: rate(&access.up),
            shared: Shared { rate: word(name, &keys, "shared"), comment: comment_above(head, "shared") },
            intro: head.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect(),
            tables,
        }
    }
}

impl Home {
    /// The home of this file.
    ///
    /// # Panics
    /// If the file is wrong: the library is embedded, and a test reads all of it.
    pub(crate) fn read(name: &'static str, text: &'static str) -> Self {
        let (head, tables) = parts(name, text);
        let keys = keys(name, head);
        let lines = keys.get("lines").map_or(Some(1), toml::Value::as_integer);
        Self {
            name,
            about: word(name, &keys, "about"),
            lines: lines.and_then(|lines| u64::try_from(lines).ok()).unwrap_or_else(|| panic!("{name}: lines")),
            duration: word(name, &keys, "duration"),
            tables,
        }
    }
}

/// The keys of the entry, and the tables of the scenario behind them.
fn parts(name: &str, text: &'static str) -> (&'static str, &'static str) {
    let start = text.find("\n[").unwrap_or_else(|| panic!("{name}: no table"));
    let (head, tables) = text.split_at(start + 1);
    (head, tables)
}

fn keys(name: &str, head: &str) -> toml::Table {
    head.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn word(name: &str, keys: &toml::Table, key: &str) -> String {
    let found = keys.get(key).and_then(toml::Value::as_str);
    found.unwrap_or_else(|| panic!("{name}: no {key}")).to_owned()
}

/// The comment in the lines before a key.
fn comment_above(head: &str, key: &str) -> String {
    let before = head.lines().take_while(|line| !line.starts_with(&format!("{key} ="))).collect::<Vec<_>>();
    let comment = before.iter().rev().take_while(|line| line.starts_with('#')).collect::<Vec<_>>();
    comment.iter().rev().map(|line| format!("{line}\n")).collect()
}
