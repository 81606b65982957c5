//! Reads a document into typed values: parsed once, then never doubted again.
//!
//! Every table is opened with the [`Section`]s that describe it; keys that they do not have are errors at
//! once, with the nearest known key as a hint. A value that is missing, of the wrong kind or out of range is
//! an error at its own place. Reading goes on after an error, so that one pass finds all that is wrong; a
//! value that could not be read is `None`.

pub(crate) mod free;

use core::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use lastmile_text::escape;
use lastmile_units::Duration;

use crate::diagnostics::{Diagnostic, Place, Report, did_you_mean};
use crate::document::{self, Document, Node, Origin, Value};
use crate::files::{Disk, Files};
use crate::schema::{Fallback, Key, Kind, Section};
use crate::value::{FromNode, Scalar};

/// Reads one document, and gathers what is wrong with it.
pub(crate) struct Reader {
    document: Document,
    /// The files that the document names.
    files: Rc<dyn Files>,
    report: RefCell<Report>,
    /// The keys that were read, by heading: each key that the reference documents is read somewhere.
    read: RefCell<BTreeSet<(&'static str, &'static str)>>,
}

impl Reader {
    /// Reads `document`, which names files of the machine.
    pub(crate) fn new(document: Document) -> Self {
        Self::with_files(document, Rc::new(Disk))
    }

    /// Reads `document`, which names some of `files`.
    pub(crate) fn with_files(document: Document, files: Rc<dyn Files>) -> Self {
        Self { document, files, report: RefCell::default(), read: RefCell::default() }
    }

    /// The top level of the file.
    pub(crate) fn root(&self) -> Unopened<'_> {
        Unopened { reader: self, table: &self.document.root, origin: None, path: Path::root() }
    }

    /// Adds a finding.
    pub(crate) fn push(&self, finding: Diagnostic) {
        self.report.borrow_mut().push(finding);
    }

    /// All that was found, in the order of the file, and the keys that were read.
    pub(crate) fn finish(self) -> (Report, BTreeSet<(&'static str, &'static str)>) {
        let mut report = self.report.into_inner();
        report.sort();
        (report, self.read.into_inner())
    }

    fn place(&self, origin: Option<&Origin>) -> Place {
        match origin {
            Some(origin) => self.document.place(origin),
            None => Place::WholeFile { name: self.document.source.name().to_owned() },
        }
    }
}

/// Where a table is: for messages, and in the words of `--set`.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// `access.up`; empty at the top level.
    keys: String,
    /// `in [access.up]`, `in [[traffic]] "upload"`, `at the top level`.
    within: String,
}

impl Path {
    fn root() -> Self {
        Self { keys: String::new(), within: "at the top level".into() }
    }

    fn key(&self, name: &str) -> String {
        if self.keys.is_empty() { name.to_owned() } else { format!("{}.{name}", self.keys) }
    }

    fn child(&self, name: &str) -> Self {
        let keys = self.key(name);
        Self { within: format!("in [{keys}]"), keys }
    }

    fn item(&self, list: &str, index: usize, name: Option<&str>) -> Self {
        let list = self.key(list);
        match name {
            Some(name) if !name.is_empty() => {
                Self { keys: format!("{list}.{name}"), within: format!("in [[{list}]] {name:?}") }
            }
            _ => Self { keys: format!("{list}.{index}"), within: format!("in [[{list}]] {index}") },
        }
    }
}

/// A table whose sections are not known yet.
#[derive(Clone)]
pub(crate) struct Unopened<'d> {
    reader: &'d Reader,
    table: &'d document::Table,
    /// `None` for the top level.
    origin: Option<&'d Origin>,
    path: Path,
}

/// One of the kinds that a table can be of: its name in the key `kind`, the keys that only it has, and what
/// it stands for.
pub(crate) struct Variant<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) section: &'static Section,
    pub(crate) value: T,
}

/// The sections of a table that can be of several kinds, for the schema.
pub(crate) struct Tagged {
    /// The keys of all kinds.
    pub(crate) common: &'static Section,
    /// The key that names the kind.
    pub(crate) tag: &'static str,
    /// The kinds: name, and keys that only this one has.
    pub(crate) variants: Vec<(&'static str, &'static Section)>,
}

impl Tagged {
    pub(crate) fn new<T>(common: &'static Section, tag: &'static str, variants: &[Variant<T>]) -> Self {
        Self { common, tag, variants: variants.iter().map(|variant| (variant.name, variant.section)).collect() }
    }
}

impl<'d> Unopened<'d> {
    /// The text at `key`, if it is one: for who must look before the table is opened.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.table.text(key)
    }

    /// Reads the table as `section`.
    pub(crate) fn open(self, section: &'static Section) -> Table<'d> {
        self.open_with_hints(section, |_| None)
    }

    /// Reads the table as `section`; `hint` may know what an unknown key should be.
    pub(crate) fn open_with_hints(self, section: &'static Section, hint: impl Fn(&str) -> Option<String>) -> Table<'d> {
        let table = Table { at: self, sections: vec![section] };
        table.check_keys(hint);
        table
    }

    /// Reads the table as `common` and as the one of `variants` that its key `kind` names.
    pub(crate) fn open_kind<T: Copy>(
        self,
        common: &'static Section,
        variants: &[Variant<T>],
    ) -> Option<(T, Table<'d>)> {
        let mut table = Table { at: self, sections: vec![common] };
        let options: Vec<(&'static str, usize)> = variants.iter().enumerate().map(|(i, v)| (v.name, i)).collect();
        let chosen = &variants[table.choice("kind", &options)?];
        table.sections.push(chosen.section);
        table.check_keys(|name| {
            let others: Vec<String> = variants
                .iter()
                .filter(|variant| variant.section.key(name).is_some())
                .map(|variant| format!("{:?}", variant.name))
                .collect();
            let kind = chosen.name;
            (!others.is_empty()).then(|| format!("kind {kind:?} has no such key; {} has", others.join(", ")))
        });
        Some((chosen.value, table))
    }
}

/// A table of the file, described by its sections.
#[derive(Clone)]
pub(crate) struct Table<'d> {
    at: Unopened<'d>,
    sections: Vec<&'static Section>,
}

impl<'d> Table<'d> {
    /// The value at `key`, or its default. `None` if either is missing or wrong, which is then in the report.
    pub(crate) fn get<T: FromNode>(&self, key: &'static str) -> Option<T> {
        let spec = self.spec(key);
        if let Some(node) = self.at.table.get(key) {
            return self.parse(spec, node);
        }
        match spec.fallback {
            Fallback::Value(text) => Some(T::from_default(text)),
            Fallback::Required => {
                self.missing(key);
                None
            }
            Fallback::Absent(_) => unreachable!("{key} has no default: read it with optional()"),
        }
    }

    /// The value at `key`; `None` if there is none, or if it is wrong, which is then in the report.
    pub(crate) fn optional<T: FromNode>(&self, key: &'static str) -> Option<T> {
        let spec = self.spec(key);
        self.parse(spec, self.at.table.get(key)?)
    }

    /// One of the words of `options`, and what it stands for.
    pub(crate) fn choice<T: Copy>(&self, key: &'static str, options: &[(&'static str, T)]) -> Option<T> {
        let words = options.iter().map(|(name, _)| *name);
        let described = self.spec(key).kind;
        debug_assert!(
            matches!(described, Kind::Choice(known) if words.eq(known.iter().copied())),
            "{key}: the schema has {described:?}"
        );
        let word: String = self.get(key)?;
        match options.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => Some(*value),
            None => {
                let names = options.iter().map(|(name, _)| *name);
                let known = || format!("known: {}", names.clone().collect::<Vec<_>>().join(", "));
                let hint = did_you_mean(&word, names.clone()).unwrap_or_else(known);
                self.error(key, format!("unknown {key} {word:?}"), Some(hint));
                None
            }
        }
    }

    /// One of the words of `options`, for a key without a default.
    pub(crate) fn optional_choice<T: Copy>(&self, key: &'static str, options: &[(&'static str, T)]) -> Option<T> {
        self.has(key).then(|| self.choice(key, options)).flatten()
    }

    /// A name: some text on one line, short enough to stand in a table.
    pub(crate) fn name(&self, key: &'static str) -> Option<String> {
        self.valid_name(key, self.get(key)?)
    }

    /// A name, for a key without a default.
    pub(crate) fn optional_name(&self, key: &'static str) -> Option<String> {
        self.valid_name(key, self.optional(key)?)
    }

    fn valid_name(&self, key: &'static str, name: String) -> Option<String> {
        const LONGEST: usize = 80;
        let wrong = if name.trim().is_empty() {
            "a name is empty".to_owned()
        } else if name.chars().count() > LONGEST {
            format!("a name of {} characters; it has at most {LONGEST}", name.chars().count())
        } else if let Some(bad) = name.chars().find(|c| escape::is_hidden(*c) || matches!(c, '/' | '\\')) {
            // Names become names of files.
            format!("a name with {bad:?}; every other printing character will do")
        } else {
            return Some(name);
        };
        self.error(key, format!("{}: {wrong}", self.path(key)), None);
        None
    }

    /// The table at `key`, if there is one.
    pub(crate) fn table(&self, key: &'static str) -> Option<Unopened<'d>> {
        self.spec(key);
        let node = self.at.table.get(key)?;
        match &node.value {
            Value::Table(table) => {
                Some(Unopened { table, origin: Some(&node.origin), path: self.at.path.child(key), ..self.at.clone() })
            }
            other => {
                self.error(key, format!("{} is {}, where a table is expected", self.path(key), other.name()), None);
                None
            }
        }
    }

    /// The table at `key`, which must be there.
    pub(crate) fn required_table(&self, key: &'static str) -> Option<Unopened<'d>> {
        if !self.has(key) {
            self.missing(key);
        }
        self.table(key)
    }

    /// The table at `key` as if it were there and empty: all defaults.
    pub(crate) fn empty(&self, key: &'static str, section: &'static Section) -> Table<'d> {
        static NOTHING: document::Table = document::Table { entries: Vec::new() };
        Unopened { table: &NOTHING, path: self.at.path.child(key), ..self.at.clone() }.open(section)
    }

    /// True if `key` is a list without entries.
    pub(crate) fn is_empty_list(&self, key: &'static str) -> bool {
        matches!(self.at.table.get(key), Some(Node { value: Value::Array(items), .. }) if items.is_empty())
    }

    /// The tables of the list at `key`; none if it is missing.
    pub(crate) fn tables(&self, key: &'static str) -> Vec<Unopened<'d>> {
        self.spec(key);
        let Some(node) = self.at.table.get(key) else { return Vec::new() };
        let Value::Array(items) = &node.value else {
            let found = node.value.name();
            let hint = Some(format!("write [[{}]] above each entry", self.path(key)));
            self.error(key, format!("{} is {found}, where a list of tables is expected", self.path(key)), hint);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match &item.value {
                Value::Table(table) => {
                    let path = self.at.path.item(key, index, table.text("name"));
                    tables.push(Unopened { table, origin: Some(&item.origin), path, ..self.at.clone() });
                }
                other => {
                    let message = format!("{}.{index} is {}, where a table is expected", self.path(key), other.name());
                    self.at.reader.push(Diagnostic::error(self.at.reader.place(Some(&item.origin)), message));
                }
            }
        }
        tables
    }

    /// The values at `key`, a list or one on its own, each with its place; none if it is missing. Those that
    /// are wrong are left out, and in the report.
    pub(crate) fn each<T: FromNode>(&self, key: &'static str) -> Vec<(Place, T)> {
        self.spec(key);
        let Some(node) = self.at.table.get(key) else { return Vec::new() };
        let items = if let Value::Array(items) = &node.value { items } else { core::slice::from_ref(node) };
        let mut values = Vec::new();
        for item in items {
            let place = self.at.reader.place(Some(&item.origin));
            match T::from_value(&item.value) {
                Ok(value) => values.push((place, value)),
                Err(message) => self.error_at(place, key, message),
            }
        }
        values
    }

    /// Adds an error for a value at `key` that is none of those in `allowed`.
    pub(crate) fn refuse<T>(&self, key: &'static str, found: &Scalar, allowed: &str) -> Option<T> {
        self.error(key, format!("{}: {found} is not {allowed}", self.path(key)), None);
        None
    }

    /// True if the file gives `key`.
    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.spec(key);
        self.at.table.get(key).is_some()
    }

    /// True if the file gives `key` as a table, not as a word.
    pub(crate) fn has_table(&self, key: &'static str) -> bool {
        self.spec(key);
        matches!(self.at.table.get(key), Some(Node { value: Value::Table(_), .. }))
    }

    /// Adds an error for one of the values at `key`, which stands at `place`.
    pub(crate) fn error_at(&self, place: Place, key: &str, message: impl core::fmt::Display) {
        let path = self.path(key);
        self.at.reader.push(Diagnostic::error(place, format!("{path}: {message}")).about(path));
    }

    /// The place of the value of `key`, or of the table where the file does not give it.
    pub(crate) fn place(&self, key: &str) -> Place {
        let value = self.at.table.get(key).map(|node| &node.origin);
        self.at.reader.place(value.or(self.at.origin))
    }

    /// Adds an error at the value of `key`, or at the table where the file does not give it.
    pub(crate) fn error(&self, key: &str, message: impl Into<String>, hint: Option<String>) {
        let finding = Diagnostic::error(self.place(key), message);
        self.at.reader.push(finding.about(self.path(key)).maybe_hint(hint));
    }

    /// Adds a warning at the value of `key`.
    pub(crate) fn warning(&self, key: &str, message: impl Into<String>, hint: Option<String>) {
        let finding = Diagnostic::warning(self.place(key), message);
        self.at.reader.push(finding.about(self.path(key)).maybe_hint(hint));
    }

    /// Adds what was found in another file that this one names.
    pub(crate) fn adopt(&self, report: &Report) {
        for finding in report.findings() {
            self.at.reader.push(finding.clone());
        }
    }

    /// Where the file is, from which it names others.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        std::path::Path::new(self.at.reader.document.source.name()).parent().map(PathBuf::from)
    }

    /// The text at the end of `path`, below this table, if there is one: for who must look before the tables on the
    /// way are opened.
    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&'d str> {
        self.at.table.text_at(path)
    }

    /// The files that the document may name.
    pub(crate) fn files(&self) -> &dyn Files {
        &*self.at.reader.files
    }

    /// The seed of the file, of its top level; `None` without one.
    pub(crate) fn root_seed(&self) -> Option<u64> {
        match &self.at.reader.document.root.get("seed")?.value {
            Value::Integer(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The simulated time of the file, of its top level; `None` without one.
    pub(crate) fn root_duration(&self) -> Option<Duration> {
        Duration::from_value(&self.at.reader.document.root.get("duration")?.value).ok()
    }

    /// `access.up.rate`, in the words of `--set`.
    pub(crate) fn path(&self, key: &str) -> String {
        self.at.path.key(key)
    }

    /// The table in the words of `--set`: `access.up`.
    pub(crate) fn own_path(&self) -> &str {
        &self.at.path.keys
    }

    /// The row of `key` in the schema.
    fn spec(&self, key: &'static str) -> &'static Key {
        let found = self.sections.iter().find_map(|section| Some((section.heading, section.key(key)?)));
        let (heading, spec) = found.unwrap_or_else(|| panic!("{key} is read but not described"));
        self.at.reader.read.borrow_mut().insert((heading, spec.name));
        spec
    }

    pub(crate) fn missing(&self, key: &str) {
        let Unopened { reader, origin, path, .. } = &self.at;
        let message = format!("missing key {key:?} {}", path.within);
        let hint = self.sections.iter().find_map(|section| section.key(key)).map(|spec| spec.doc.to_owned());
        reader.push(Diagnostic::error(reader.place(*origin), message).about(path.key(key)).maybe_hint(hint));
    }

    fn parse<T: FromNode>(&self, spec: &'static Key, node: &Node) -> Option<T> {
        let value = match read::<T>(node) {
            Ok(value) => value,
            Err(message) => {
                self.error(spec.name, format!("{}: {message}", self.path(spec.name)), None);
                return None;
            }
        };
        if let Some(message) = value.out_of_range(spec.min, spec.max) {
            let hint = match (spec.min, spec.max) {
                (Some(min), Some(max)) => Some(format!("{min} to {max}")),
                _ => None,
            };
            self.error(spec.name, format!("{}: {message}", self.path(spec.name)), hint);
            return None;
        }
        Some(value)
    }

    /// Reports the keys that no section has; `elsewhere` may know where such a key would belong.
    fn check_keys(&self, elsewhere: impl Fn(&str) -> Option<String>) {
        let Unopened { reader, table, path, .. } = &self.at;
        for (key, _) in &table.entries {
            if self.sections.iter().any(|section| section.key(&key.name).is_some()) {
                continue;
            }
            let known = || self.sections.iter().flat_map(|section| section.keys).map(|key| key.name);
            let hint = elsewhere(&key.name)
                .or_else(|| did_you_mean(&key.name, known()))
                .unwrap_or_else(|| format!("known keys: {}", known().collect::<Vec<_>>().join(", ")));
            let message = format!("unknown key {:?} {}", key.name, path.within);
            let finding = Diagnostic::error(reader.place(Some(&key.origin)), message);
            reader.push(finding.about(path.key(&key.name)).hint(hint));
        }
    }
}

/// The value of `node`. An override has no quotes: in `--set traffic.web.http=2` the number is a text.
fn read<T: FromNode>(node: &Node) -> Result<T, String> {
    let value = T::from_value(&node.value);
    match (&node.value, &node.origin) {
        (Value::Integer(text) | Value::Float(text), Origin::Override(_)) => {
            value.or_else(|message| T::from_value(&Value::String(text.clone())).map_err(|_| message))
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests;
