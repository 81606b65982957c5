//! The one table of what a file may say: keys, kinds, defaults, ranges, and what they mean.
//!
//! The reader takes names, defaults and ranges from here, and the reference in `docs/` is printed from here,
//! so that neither can say what the other does not do.

/// The keys of one table of a file.
#[derive(Debug)]
pub(crate) struct Section {
    /// Heading in the reference, such as `[access]`.
    pub(crate) heading: &'static str,
    /// The subject of the table. Markdown.
    pub(crate) about: &'static str,
    /// The keys of the section, in the order of the reference.
    pub(crate) keys: &'static [Key],
}

impl Section {
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// One key.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) fallback: Fallback,
    /// Least value, written as in a file.
    pub(crate) min: Option<&'static str>,
    /// Largest value, written as in a file.
    pub(crate) max: Option<&'static str>,
    /// The meaning of the key. Markdown, one line.
    pub(crate) doc: &'static str,
}

impl Key {
    /// A key that may be left out; `then` says what holds without it.
    pub(crate) const fn optional(name: &'static str, kind: Kind, then: &'static str, doc: &'static str) -> Self {
        Self { name, kind, fallback: Fallback::Absent(then), min: None, max: None, doc }
    }

    /// A key that must be there.
    pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, fallback: Fallback::Required, min: None, max: None, doc }
    }

    /// A key with a default, written as in a file.
    pub(crate) const fn with_default(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self { name, kind, fallback: Fallback::Value(default), min: None, max: None, doc }
    }

    pub(crate) const fn at_least(self, min: &'static str) -> Self {
        Self { min: Some(min), ..self }
    }

    pub(crate) const fn at_most(self, max: &'static str) -> Self {
        Self { max: Some(max), ..self }
    }
}

/// The value of a key that is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// Leaving it out is an error.
    Required,
    /// This, in words.
    Absent(&'static str),
    /// This value, written as in a file.
    Value(&'static str),
}

/// The kind of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Text,
    Flag,
    Count,
    Time,
    Rate,
    Bytes,
    WireBytes,
    Cells,
    Share,
    Limit,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A table, or a list of tables, described under this heading.
    Table(&'static str),
    Tables(&'static str),
    /// Something else: in words, and the forms of its values.
    Other(&'static str, &'static [Kind]),
    /// Forms of [`Kind::Other`]: a number, with a point or without.
    Number,
    /// This whole number alone.
    Exactly(u64),
    /// A number of packets, in quotes.
    Packets,
    /// One of these words, in letters of any case.
    Words(&'static [&'static str]),
    /// A text that matches this regular expression (ECMA-262).
    Matching(&'static str),
    /// `<` or `>`, and a quantity.
    Bounded(&'static Kind),
    /// The name of an encapsulation.
    Encapsulation,
    /// A list with at least one entry.
    Several(&'static [Kind]),
    /// A table that the reference describes in a line.
    Fields(&'static [Key]),
}

/// An address, or a prefix with the number of its bits.
pub(crate) const ADDRESS: &str = "^[0-9a-fA-F:.]+(/[0-9]+)?$";
/// A decimal number in quotes.
pub(crate) const NUMBER: &str = "^[0-9]*\\.?[0-9]*([eE][-+]?[0-9]+)?$";
/// A code point: a number, or a name.
pub(crate) const CODE_POINT: Kind =
    Kind::Other("code point", &[Kind::Count, Kind::Words(crate::queue::CODE_POINT_NAMES)]);

/// The words of a table of choices, for [`Kind::Choice`].
pub(crate) const fn names<T, const N: usize>(table: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut index = 0;
    while index < N {
        names[index] = table[index].0;
        index += 1;
    }
    names
}

impl Kind {
    /// As the reference names it.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Flag => "`true` or `false`".into(),
            Self::Count => "whole number".into(),
            Self::Time => "time".into(),
            Self::Rate => "rate".into(),
            Self::Bytes => "size".into(),
            Self::WireBytes => "size on the wire".into(),
            Self::Cells => "number of cells".into(),
            Self::Share => "share".into(),
            Self::Limit => "limit".into(),
            Self::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
            Self::Table(heading) => format!("table, see {heading}"),
            Self::Tables(heading) => format!("list of tables, see {heading}"),
            Self::Other(words, _) => words.into(),
            Self::Number => "number".into(),
            Self::Exactly(number) => format!("`{number}`"),
            Self::Packets => "number of packets".into(),
            Self::Words(words) => Self::Choice(words).describe(),
            Self::Matching(_) | Self::Bounded(_) | Self::Encapsulation => Self::Text.describe(),
            Self::Several(_) => "list".into(),
            Self::Fields(_) => "table".into(),
        }
    }
}
