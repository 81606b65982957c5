//! Tables whose keys the schema does not list: the keys of another file, such as those of a scenario in a study.

use super::{Path, Reader, Unopened};
use crate::diagnostics::{Diagnostic, Place};
use crate::document::{Key, Node, Origin, Value};

/// A key of such a table, and its value.
pub(crate) struct FreeKey<'d> {
    /// The keys below the table, joined by dots: `access.up.rate`.
    pub(crate) name: String,
    /// Where the key is.
    pub(crate) place: Place,
    reader: &'d Reader,
    path: Path,
    node: &'d Node,
}

impl<'d> Unopened<'d> {
    /// Every key of the table with its value, in the order of the file. A table is a value if `is_value` holds for the
    /// name of a key that has neither a list nor a table; else its keys are joined to its own name.
    pub(crate) fn free(&self, is_value: &dyn Fn(&str) -> bool) -> Vec<FreeKey<'d>> {
        let mut keys = Vec::new();
        let is_of_value =
            |(key, node): &(Key, Node)| !matches!(node.value, Value::Array(_) | Value::Table(_)) && is_value(&key.name);
        for (key, node) in &self.table.entries {
            let path = self.path.child(&key.name);
            match &node.value {
                Value::Table(table) if !table.entries.iter().any(is_of_value) => {
                    let below = Self { table, origin: Some(&node.origin), path, ..self.clone() };
                    let with = |inner: FreeKey<'d>| FreeKey { name: format!("{}.{}", key.name, inner.name), ..inner };
                    keys.extend(below.free(is_value).into_iter().map(with));
                }
                _ => {
                    let place = self.reader.place(Some(&key.origin));
                    keys.push(FreeKey { name: key.name.clone(), place, reader: self.reader, path, node });
                }
            }
        }
        keys
    }
}

impl<'d> FreeKey<'d> {
    /// The values of a list as `--set` has them, each with its place; `None` if the value is no list.
    pub(crate) fn list(&self) -> Option<Vec<(Place, String)>> {
        let Value::Array(items) = &self.node.value else { return None };
        Some(items.iter().map(|item| (self.reader.place(Some(&item.origin)), self.setting(item))).collect())
    }

    /// The value, if it is a table.
    pub(crate) fn table(&self) -> Option<Unopened<'d>> {
        let Value::Table(table) = &self.node.value else { return None };
        Some(Unopened { reader: self.reader, table, origin: Some(&self.node.origin), path: self.path.clone() })
    }

    /// The value in words, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        self.node.value.name()
    }

    /// Where the value is.
    pub(crate) fn value_place(&self) -> Place {
        self.reader.place(Some(&self.node.origin))
    }

    /// Adds an error about the key at `place`.
    pub(crate) fn error(&self, place: Place, message: &str, hint: Option<String>) {
        let path = &self.path.keys;
        self.reader.push(Diagnostic::error(place, format!("{path}: {message}")).about(path).maybe_hint(hint));
    }

    /// A value as `--set` has it: a text without quotes, another value as it is written.
    fn setting(&self, node: &Node) -> String {
        match (&node.value, &node.origin) {
            (Value::String(text), _) => text.clone(),
            (_, Origin::Span(span)) => {
                let text = &self.reader.document.source.text()[span.clone()];
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
            (value, Origin::Override(_)) => value.name().to_owned(),
        }
    }
}
