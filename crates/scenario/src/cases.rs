//! Cases of `lastmile compare`: settings under a name.

use crate::diagnostics::Place;
use crate::overrides::Override;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(crate) const SETTING: Kind = Kind::Matching("=");

pub(crate) static CASE: Section = Section {
    heading: "`[[case]]`",
    about: "A row of `lastmile compare`: the file with some keys set; with `--policy` or `--vary` each case has a row \
            for each of their values. Other commands take the file as it is.",
    keys: &[
        Key::required("name", Kind::Text, "Name of the row in the comparison, unique."),
        Key::optional(
            "set",
            Kind::Other("`\"key=value\"`, or a list of these", &[SETTING, Kind::Several(&[SETTING])]),
            "the file as it is",
            "Keys that it sets, in the form of `--set`, such as `\"traffic.transfer.contract=best\"`. They apply \
             after `--set` of the command line.",
        ),
    ],
};

/// A row of `lastmile compare`, or a value of the key `case` of a study.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The name of the case.
    pub name: String,
    /// Where the file says so.
    pub place: Place,
    /// The settings of the case, each in the form of `--set`.
    pub set: Vec<Override>,
}

/// The cases of a file, in its order.
pub(crate) fn read(root: &Table<'_>, section: &'static Section) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for table in root.tables("case") {
        let table = table.open(section);
        let name = table.name("name");
        let set = table.each::<String>("set");
        for (place, wrong) in set.iter().filter(|(_, pair)| !pair.contains('=')) {
            let message = format!("{wrong:?} is not of the form key=value, such as \"access.up.rate=1 Mbit/s\"");
            table.error_at(place.clone(), "set", message);
        }
        let Some(name) = name else { continue };
        if cases.iter().any(|other| other.name == name) {
            table.error("name", format!("two cases are called {name:?}"), None);
            continue;
        }
        let set = set.into_iter().map(|(place, pair)| Override::at(place, pair)).collect();
        cases.push(Case { name, place: table.place("name"), set });
    }
    cases
}
