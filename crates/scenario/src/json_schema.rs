//! The schema of scenario and policy files as JSON Schema, draft 2020-12, for editors and other programs.
//!
//! It is made of the rows that the reader goes by (`schema`): names, kinds, defaults, ranges and
//! meanings. It accepts every file that the reader accepts. The reader finds more: bounds of quantities, and
//! conditions between keys.

mod tables;
mod value;

use serde_json::{Map, Value, json};

use crate::policy;
use crate::reference;
use crate::schema::Section;
use tables::Tables;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema of a scenario file.
#[must_use]
pub fn scenario() -> Value {
    document("A scenario of lastmile", &crate::scenario::ROOT, &Tables::new(&scenario_sections()))
}

/// The JSON Schema of a policy file.
#[must_use]
pub fn policy() -> Value {
    let (root, own) = policy::SECTIONS.split_first().expect("a policy file has a top level");
    // Queues, matches and encapsulations are those of scenarios. Tables of one heading are those of policies.
    let mut sections = own.to_vec();
    sections.extend(scenario_sections());
    document("A policy of lastmile", root, &Tables::new(&sections))
}

fn scenario_sections() -> Vec<&'static Section> {
    reference::chapters().into_iter().flat_map(|(_, _, sections)| sections).collect()
}

/// The schema of a file whose top level is `root`, with the definitions that it leads to.
fn document(title: &str, root: &'static Section, tables: &Tables) -> Value {
    let mut document = Map::new();
    document.insert("$schema".into(), json!(DRAFT));
    document.insert("title".into(), json!(title));
    document.extend(tables.object(&[root], None));
    let mut definitions = Map::new();
    let mut wanted = references(&Value::Object(document.clone()));
    while let Some(name) = wanted.pop() {
        if definitions.contains_key(&name) {
            continue;
        }
        let definition = tables.definition(&name);
        wanted.extend(references(&definition));
        definitions.insert(name, definition);
    }
    document.insert("$defs".into(), Value::Object(definitions));
    let mut document = Value::Object(document);
    // The order of keys is alphabetical, whatever map other crates of a build select.
    document.sort_all_objects();
    document
}

/// The definitions to which a schema refers.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix(value::DEFINITIONS));
            own.map(str::to_owned).into_iter().chain(map.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
