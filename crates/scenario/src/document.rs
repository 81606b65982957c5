//! A TOML document in which every key and value knows where it came from: a span of the file, or an override.
//!
//! `toml` parses; this tree only adds the origin, keeps the order of the file, and takes each `key=value` of
//! `--set` or of a `[[case]]` before anything is read, so that an override is checked exactly as the same
//! line in the file would be.

use core::ops::Range;
use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostics::{Diagnostic, Place, Report, Source, did_you_mean};
use crate::overrides::Override;

/// Where a key or value came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// Bytes of the file.
    Span(Range<usize>),
    /// The override with this index.
    Override(usize),
}

/// A key as written.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// A value with its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A TOML value. Numbers stay text: what they mean depends on the key.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(String),
    Float(String),
    Boolean(bool),
    Datetime,
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// With its article, for messages.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::String(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "a switch (true or false)",
            Self::Datetime => "a date or time of day",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

/// Keys with their values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<(Key, Node)>,
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The text at the end of `path`, below this table, if there is one.
    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&str> {
        let (last, way) = path.split_last()?;
        let table = way.iter().try_fold(self, |table, key| match &table.get(key)?.value {
            Value::Table(inner) => Some(inner),
            _ => None,
        });
        table?.text(last)
    }

    /// The text at `name`, if it is one.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.get(name).map(|node| &node.value) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

/// A file with what is set over it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Source,
    pub(crate) overrides: Vec<Override>,
    pub(crate) root: Table,
}

impl Document {
    /// Parses, and applies the overrides in their order. All that is wrong with either is in the report.
    pub(crate) fn parse(source: Source, overrides: &[Override]) -> Result<Self, Report> {
        let (root, errors) = DeTable::parse_recoverable(source.text());
        if !errors.is_empty() {
            let mut report = Report::default();
            for error in &errors {
                let finding = syntax_error(&source, error);
                // Recovery reports some errors twice.
                if report.findings().last() != Some(&finding) {
                    report.push(finding);
                }
            }
            return Err(only_first_of_prose(&source, &errors).unwrap_or(report));
        }
        let root = table_of(root.into_inner(), &|span| Origin::Span(span));
        let mut document = Self { source, overrides: overrides.to_vec(), root };
        let mut report = Report::default();
        for (index, setting) in overrides.iter().enumerate() {
            if let Err(Refusal { message, hint }) = document.override_with(index) {
                let key = setting.as_str().split('=').next().unwrap_or_default().trim();
                report.push(Diagnostic::error(setting.place().clone(), message).about(key).maybe_hint(hint));
            }
        }
        if report.is_empty() { Ok(document) } else { Err(report) }
    }

    /// The place that messages show for `origin`.
    pub(crate) fn place(&self, origin: &Origin) -> Place {
        match origin {
            Origin::Span(span) => self.source.place(span.clone()),
            Origin::Override(index) => self.overrides[*index].place().clone(),
        }
    }

    /// Applies one override: sets the value, and makes the tables on the way to it.
    fn override_with(&mut self, index: usize) -> Result<(), Refusal> {
        let Some((path, value)) = self.overrides[index].as_str().split_once('=') else {
            return Err(Refusal::hinted("no \"=\"", USAGE));
        };
        let keys: Vec<&str> = path.trim().split('.').map(|key| key.trim().trim_matches('"')).collect();
        if keys.iter().any(|key| key.is_empty()) {
            return Err(Refusal::hinted("a key is empty", USAGE));
        }
        if keys.len() > MOST_KEYS {
            return Err(Refusal::hinted(format!("more than {MOST_KEYS} keys"), USAGE));
        }
        let node = override_value(value.trim(), index)?;
        set(&mut self.root, &keys, node)
    }
}

/// Errors from which on a text whose first line is wrong is no TOML, and one error says so.
const PROSE: usize = 4;

/// The first error alone of a text that is something else than TOML; `None` of TOML with errors.
fn only_first_of_prose(source: &Source, errors: &[toml::de::Error]) -> Option<Report> {
    let is_content = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let first = source.text().split_inclusive('\n').find(is_content)?;
    let end = first.as_ptr().addr() - source.text().as_ptr().addr() + first.len();
    let error = errors.first().filter(|error| error.span().is_some_and(|span| span.start < end))?;
    let hint = "scenarios, policies and studies are TOML; `lastmile policy show NAME --file` prints a policy as a file";
    (errors.len() >= PROSE).then(|| Report::of(syntax_error(source, error).hint(hint)))
}

/// How an override is written.
const USAGE: &str = "write it as key=value, for example access.up.rate=\"1 Mbit/s\" or traffic.upload.start=10s";

/// Why an override cannot be applied.
struct Refusal {
    message: String,
    hint: Option<String>,
}

impl Refusal {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hinted(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}

/// Longest path of an override: deeper than any that is known.
const MOST_KEYS: usize = 32;

fn syntax_error(source: &Source, error: &toml::de::Error) -> Diagnostic {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    let finding = Diagnostic::error(source.place(span), message);
    if message.starts_with("string values must be quoted") {
        return finding.hint("texts and values with a unit are written in quotes: rate = \"512 kbit/s\"");
    }
    finding
}

fn table_of(table: DeTable<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Table {
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let entries = entries.into_iter().map(|(key, value)| {
        let span = key.span();
        (Key { name: key.into_inner().into_owned(), origin: origin(span) }, node_of(value, origin))
    });
    Table { entries: entries.collect() }
}

fn node_of(value: Spanned<DeValue<'_>>, origin: &dyn Fn(Range<usize>) -> Origin) -> Node {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(number.to_string()),
        DeValue::Float(number) => Value::Float(number.to_string()),
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(values) => Value::Array(values.into_iter().map(|value| node_of(value, origin)).collect()),
        DeValue::Table(table) => Value::Table(table_of(table, origin)),
    };
    Node { value, origin: origin(span) }
}

/// The value of an override: as TOML where it is TOML, otherwise the text itself, so that `10s` needs no quotes.
fn override_value(text: &str, index: usize) -> Result<Node, Refusal> {
    let origin = |_| Origin::Override(index);
    if text.is_empty() {
        return Err(Refusal::new("no value behind \"=\""));
    }
    match DeValue::parse(text) {
        Ok(value) => Ok(node_of(value, &origin)),
        // Text that begins as a table, list or quoted text was meant as one.
        Err(error) if text.starts_with(['{', '[', '"', '\'']) => Err(Refusal::new(error.message())),
        Err(_) => Ok(Node { value: Value::String(text.to_owned()), origin: origin(0..0) }),
    }
}

/// Sets `keys` below `table` to `node`. An entry of a list is named by its `name`, or by its place, the first being 0.
fn set(table: &mut Table, keys: &[&str], node: Node) -> Result<(), Refusal> {
    let (first, rest) = keys.split_first().expect("a path of at least one key");
    let key = || Key { name: (*first).to_owned(), origin: node.origin.clone() };
    if rest.is_empty() {
        match table.get_mut(first) {
            Some(old) => *old = node,
            None => table.entries.push((key(), node)),
        }
        return Ok(());
    }
    if table.get(first).is_none() {
        let empty = Node { value: Value::Table(Table::default()), origin: node.origin.clone() };
        table.entries.push((key(), empty));
    }
    let child = table.get_mut(first).expect("it was added where it was missing");
    match &mut child.value {
        Value::Table(inner) => set(inner, rest, node),
        Value::Array(items) => {
            let (item, rest) = rest.split_first().expect("not empty, checked above");
            let found = find(items, first, item)?;
            match &mut items[found].value {
                Value::Table(inner) if !rest.is_empty() => set(inner, rest, node),
                Value::Table(_) if !matches!(node.value, Value::Table(_)) => {
                    let hint = format!("name one of its keys: {first}.{item}.KEY=VALUE");
                    Err(Refusal::hinted(format!("{first}.{item} is a table, not {}", node.value.name()), hint))
                }
                _ if rest.is_empty() => {
                    items[found] = node;
                    Ok(())
                }
                other => Err(Refusal::new(format!("{first}.{item} is {}, not a table", other.name()))),
            }
        }
        other => Err(Refusal::new(format!("{first} is {}, not a table", other.name()))),
    }
}

/// The name of an entry of `list`: its `name`, or of a link without one its ends, by which results call it. Traffic has
/// ends as well, and is called by its kind.
fn name_of<'n>(list: &str, node: &'n Node) -> Option<Cow<'n, str>> {
    let Value::Table(table) = &node.value else { return None };
    let ends = || Some(format!("{}-{}", table.text("from")?, table.text("to")?));
    table.text("name").map(Cow::Borrowed).or_else(|| if list == "link" { ends().map(Cow::Owned) } else { None })
}

/// The place of the entry that `item` names.
fn find(items: &[Node], list: &str, item: &str) -> Result<usize, Refusal> {
    let named: Vec<(usize, Cow<'_, str>)> =
        items.iter().enumerate().filter_map(|(number, node)| Some((number, name_of(list, node)?))).collect();
    let names = || named.iter().map(|(_, name)| &**name);
    if let Some((found, _)) = named.iter().find(|(_, name)| name == item) {
        return Ok(*found);
    }
    match item.parse::<usize>() {
        Ok(index) if index < items.len() => Ok(index),
        Ok(index) => {
            let range = match items.len() {
                0 => "the list is empty".to_owned(),
                n => format!("0 to {}", n - 1),
            };
            Err(Refusal::hinted(format!("{list} has no entry {index}"), range))
        }
        Err(_) => {
            let hint = did_you_mean(item, names()).or_else(|| {
                let known: Vec<String> = names().take(10).map(|name| format!("{name:?}")).collect();
                (!known.is_empty()).then(|| format!("known: {}", known.join(", ")))
            });
            Err(Refusal { message: format!("no [[{list}]] is named {item:?}"), hint })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "name = \"x\"\n[access]\nup = { rate = \"1 kbit/s\" }\n[[traffic]]\nname = \"a\"\n[[traffic]]\nname = \"b\"\n";

    fn with(overrides: &[&str]) -> Result<Document, Report> {
        let overrides: Vec<Override> = overrides.iter().map(|pair| Override::set(pair)).collect();
        Document::parse(Source::new("f.toml", TEXT), &overrides)
    }

    fn at<'d>(document: &'d Document, path: &[&str]) -> &'d Value {
        let mut table = &document.root;
        let (last, way) = path.split_last().unwrap();
        for key in way {
            table = match table.get(key).map(|node| &node.value) {
                Some(Value::Table(inner)) => inner,
                Some(Value::Array(items)) => match &items[1].value {
                    Value::Table(inner) => inner,
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            };
        }
        &table.get(last).unwrap().value
    }

    #[test]
    fn an_override_takes_bare_words_and_toml_alike() {
        for value in ["10s", "\"10s\"", "'10s'", " 10s "] {
            let document = with(&[&format!("access.up.rate={value}")]).unwrap();
            assert!(
                matches!(at(&document, &["access", "up", "rate"]), Value::String(text) if text == "10s"),
                "{value}"
            );
        }
        let document = with(&["traffic.b.count=5", "access.up.queue={kind=\"sad\"}"]).unwrap();
        assert!(matches!(at(&document, &["traffic", "count"]), Value::Integer(n) if n == "5"));
        assert!(matches!(at(&document, &["access", "up", "queue", "kind"]), Value::String(kind) if kind == "sad"));
    }

    #[test]
    fn an_override_makes_the_tables_on_its_way() {
        let document = with(&["access.down.queue.kind=sad", "traffic.1.tcp.variant=reno"]).unwrap();
        assert!(matches!(at(&document, &["access", "down", "queue", "kind"]), Value::String(kind) if kind == "sad"));
        assert!(matches!(at(&document, &["traffic", "tcp", "variant"]), Value::String(kind) if kind == "reno"));
    }

    /// Results call a link without a name by its ends.
    #[test]
    fn a_link_without_a_name_is_found_by_its_ends() {
        let text = "[[link]]\nfrom = \"A\"\nto = \"B\"\nrate = \"1 kbit/s\"\n\
                    [[link]]\nname = \"A-C\"\nfrom = \"B\"\nto = \"C\"\nrate = \"1 kbit/s\"\n";
        let with = |set: &str| Document::parse(Source::new("f.toml", text), &[Override::set(set)]);
        let rate = |set: &str, number: usize| {
            let document = with(set).unwrap();
            let Some(Value::Array(links)) = document.root.get("link").map(|node| &node.value) else { panic!("links") };
            let Value::Table(link) = &links[number].value else { panic!("a link") };
            link.text("rate").unwrap().to_owned()
        };
        assert_eq!(rate("link.A-B.rate=2 kbit/s", 0), "2 kbit/s");
        assert_eq!(rate("link.A-C.rate=3 kbit/s", 1), "3 kbit/s");
        let wrong = with("link.B-C.rate=3 kbit/s").unwrap_err().to_string();
        assert!(wrong.contains("no [[link]] is named \"B-C\"\nhint: did you mean \"A-C\"?"), "{wrong}");
    }

    #[test]
    fn what_an_override_cannot_reach_is_an_error_with_the_argument_as_typed() {
        let cases = [
            (
                "access.up",
                "error: --set access.up: no \"=\"\nhint: write it as key=value, for example access.up.rate=\"1 \
                 Mbit/s\" or traffic.upload.start=10s",
            ),
            (
                "=1",
                "error: --set =1: a key is empty\nhint: write it as key=value, for example access.up.rate=\"1 \
                 Mbit/s\" or traffic.upload.start=10s",
            ),
            ("a=", "error: --set a=: no value behind \"=\""),
            (
                "traffic.a=5",
                "error: --set traffic.a=5: traffic.a is a table, not a whole number\nhint: name one of its keys: \
                 traffic.a.KEY=VALUE",
            ),
            (
                "traffic.aa.start=1",
                "error: --set traffic.aa.start=1: no [[traffic]] is named \"aa\"\nhint: did you mean \"a\"?",
            ),
            (
                "traffic.upload.start=1",
                "error: --set traffic.upload.start=1: no [[traffic]] is named \"upload\"\nhint: known: \"a\", \"b\"",
            ),
            ("traffic.2.start=1", "error: --set traffic.2.start=1: traffic has no entry 2\nhint: 0 to 1"),
            ("access.up.rate.x=1", "error: --set access.up.rate.x=1: rate is a text, not a table"),
            ("access.up={rate", "error: --set access.up={rate: unclosed inline table, expected `}`"),
        ];
        for (argument, expected) in cases {
            assert_eq!(with(&[argument]).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn all_syntax_errors_of_a_file_are_told() {
        let report = Document::parse(Source::new("f.toml", "a = 10 s\nb = 2\nb = 3\n"), &[]).unwrap_err();
        assert_eq!(
            report.to_string(),
            "error: f.toml:1:5: string values must be quoted, expected literal string\n  |\n1 | a = 10 s\n  |     \
             ^^^^\n\
             hint: texts and values with a unit are written in quotes: rate = \"512 kbit/s\"\n\n\
             error: f.toml:3:1: duplicate key\n  |\n3 | b = 3\n  | ^"
        );
    }

    #[test]
    fn deep_nesting_is_an_error_not_a_crash() {
        for text in [
            vec!["a"; 100_000].join(".") + "=1",
            "a=".to_owned() + &"[".repeat(100_000),
            "a=".to_owned() + &"{a=".repeat(100_000),
        ] {
            assert!(Document::parse(Source::new("f", text), &[]).is_err());
        }
        assert!(with(&[&(vec!["a"; 100_000].join(".") + "=1")]).is_err());
    }
}
