//! Tables of a file as definitions: each section, and tables of several kinds.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::value::{self, plain};
use crate::reader::Tagged;
use crate::schema::{Fallback, Section};
use crate::{atm, queue, trace, traffic};

/// The tables that a file can have.
pub(super) struct Tables {
    tagged: Vec<Tagged>,
    /// Headings by the names of their definitions.
    definitions: BTreeMap<String, &'static Section>,
}

impl Tables {
    /// The tables of the sections. The first one counts where several have one heading.
    pub(super) fn new(sections: &[&'static Section]) -> Self {
        let tagged = vec![
            queue::kinds(),
            queue::meter::kinds(),
            atm::queue::kinds(),
            atm::contract::kinds(),
            atm::abr::kinds(),
            traffic::kinds(),
            trace::kinds(),
        ];
        let mut definitions = BTreeMap::new();
        for section in sections {
            definitions.entry(slug(section.heading)).or_insert(*section);
        }
        Self { tagged, definitions }
    }

    /// The definition of this name.
    pub(super) fn definition(&self, name: &str) -> Value {
        let section = self.definitions.get(name).copied();
        let section = section.unwrap_or_else(|| panic!("{name} is referred to and not defined"));
        let Some(tagged) = self.tagged.iter().find(|tagged| core::ptr::eq(tagged.common, section)) else {
            return Value::Object(self.object(&[section], None));
        };
        let tag = section.key(tagged.tag);
        let default = tag.and_then(|key| match key.fallback {
            Fallback::Value(text) => Some(text),
            _ => None,
        });
        let mut kinds: Vec<Value> = Vec::new();
        if tag.is_none() {
            // Without its tag the table has the common keys alone.
            kinds.push(Value::Object(self.object(&[section], None)));
        }
        for (name, own) in &tagged.variants {
            let sections: &[&'static Section] = if tag.is_some() { &[section, own] } else { &[own] };
            let mut kind = self.object(sections, Some((tagged.tag, name, default == Some(*name))));
            kind.insert("title".into(), json!(format!("{} = \"{name}\"", tagged.tag)));
            kinds.push(Value::Object(kind));
        }
        json!({ "description": plain(section.about), "oneOf": kinds })
    }

    /// A table with the keys of `sections`. `kind` is the value of the key that names its kind, and whether that is the
    /// default.
    pub(super) fn object(
        &self,
        sections: &[&'static Section],
        kind: Option<(&'static str, &str, bool)>,
    ) -> Map<String, Value> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (section, key) in sections.iter().flat_map(|section| section.keys.iter().map(move |key| (section, key))) {
            let mut schema = value::of(key.kind, &|link| self.linked(section, link));
            value::describe(&mut schema, key);
            let mut needed = matches!(key.fallback, Fallback::Required);
            if let Some((tag, name, is_default)) = kind
                && key.name == tag
            {
                schema = json!({ "const": name, "description": plain(key.doc) });
                needed = !is_default;
            }
            if needed && !required.contains(&key.name) {
                required.push(key.name);
            }
            properties.insert(key.name.into(), schema);
        }
        let mut object = Map::new();
        object.insert("type".into(), json!("object"));
        let about = sections.last().map(|section| plain(section.about)).unwrap_or_default();
        if !about.is_empty() {
            object.insert("description".into(), json!(about));
        }
        object.insert("properties".into(), Value::Object(properties));
        object.insert("additionalProperties".into(), json!(false));
        if !required.is_empty() {
            object.insert("required".into(), json!(required));
        }
        object
    }

    /// The tables to which the row of a key in `section` links by this text.
    fn linked(&self, section: &Section, link: &str) -> Vec<String> {
        let wanted = if let Some((_, anchor)) = link.rsplit_once('#') {
            anchor.trim_end_matches(')').to_owned()
        } else if link == "the classes below" {
            slug(&format!("`classes` of {}", section.heading))
        } else if link == "the steps below" {
            slug(trace::STEP.heading)
        } else {
            slug(link)
        };
        // Links and their ways back are of packets or of cells, as their ends are.
        let found =
            [format!("{wanted}-of-cells"), wanted].into_iter().filter(|name| self.definitions.contains_key(name));
        let found: Vec<String> = found.collect();
        assert!(!found.is_empty(), "{} links to {link}, which is no table", section.heading);
        found
    }

    /// The names of all definitions.
    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.definitions.keys().map(String::as_str)
    }
}

/// The anchor of a heading: letters, digits and points, with hyphens between words.
fn slug(heading: &str) -> String {
    let words = heading.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-").to_lowercase()
}
