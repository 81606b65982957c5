//! The library for pages: lines, homes and policies.

use std::collections::BTreeMap;

use lastmile_scenario::policy::ready;
use lastmile_scenario::reference;
use serde::Serialize;

/// The library.
#[derive(Serialize, Debug)]
pub(crate) struct Catalogue {
    version: &'static str,
    lines: Vec<Entry>,
    homes: Vec<Entry>,
    policies: Vec<Entry>,
    /// Keys of a scenario by the name of their table.
    keys: BTreeMap<String, Vec<KeyEntry>>,
}

#[derive(Serialize, Debug)]
struct KeyEntry {
    key: &'static str,
    about: &'static str,
}

#[derive(Serialize, Debug)]
struct Entry {
    name: String,
    about: String,
}

impl Catalogue {
    pub(crate) fn new() -> Self {
        let lines = lastmile_library::lines().into_iter();
        let homes = lastmile_library::homes().into_iter();
        let policies = ready::NAMES.iter().map(|name| Entry { name: (*name).to_owned(), about: about(name) });
        Self {
            version: env!("CARGO_PKG_VERSION"),
            lines: lines.map(|line| Entry { name: line.name.to_owned(), about: line.about.clone() }).collect(),
            homes: homes.map(|home| Entry { name: home.name.to_owned(), about: home.about.clone() }).collect(),
            policies: policies.collect(),
            keys: keys(),
        }
    }
}

fn keys() -> BTreeMap<String, Vec<KeyEntry>> {
    let all = reference::keys().into_iter();
    all.map(|(table, keys)| (table, keys.into_iter().map(|(key, about)| KeyEntry { key, about }).collect())).collect()
}

/// The description of a built-in policy.
fn about(name: &str) -> String {
    let about = ready::text(name).into_iter().flat_map(str::lines).find_map(|line| line.strip_prefix("about = "));
    about.unwrap_or_default().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_a_name_and_says_what_it_is() {
        let catalogue = Catalogue::new();
        let all = [&catalogue.lines, &catalogue.homes, &catalogue.policies];
        assert!(all.iter().all(|entries| entries.len() > 5));
        for (table, key) in [("", "duration"), ("access.up", "rate"), ("traffic", "codec"), ("tcp", "ecn")] {
            assert!(catalogue.keys[table].iter().any(|known| known.key == key), "{table}: {key}");
        }
        assert!(all.into_iter().flatten().all(|entry| !entry.name.is_empty() && entry.about.len() > 10));
    }
}
