//! JSON for programs that is harmless on a terminal: exact, with every hidden character as
//! `\u009b`.
//!
//! RFC 8259 allows this form for any character of a string. serde_json uses it for control
//! characters below 32; terminals also interpret those of C1, and bidirectional controls reorder a
//! line.

use std::io::{self, Write};

use lastmile_text::escape;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Writes `value` indented by two, and a line feed.
///
/// # Errors
/// Errors of `to`; a map with keys that are not text.
pub fn write_pretty(value: &impl Serialize, to: impl Write) -> io::Result<()> {
    write(value, PrettyFormatter::new(), to)
}

/// Writes `value` on one line.
///
/// # Errors
/// Errors of `to`; a map with keys that are not text.
pub fn write_line(value: &impl Serialize, to: impl Write) -> io::Result<()> {
    write(value, CompactFormatter, to)
}

/// The text of [`write_pretty`].
///
/// # Panics
/// A map with keys that are not text.
#[must_use]
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    write_pretty(value, &mut text).expect("maps have string keys, and writing to memory cannot fail");
    String::from_utf8(text).expect("JSON is text")
}

/// The text of [`write_line`], without its line feed.
///
/// # Panics
/// A map with keys that are not text.
#[must_use]
pub fn line(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    write_line(value, &mut text).expect("maps have string keys, and writing to memory cannot fail");
    text.pop();
    String::from_utf8(text).expect("JSON is text")
}

fn write(value: &impl Serialize, layout: impl Formatter, mut to: impl Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut to, Visible(layout)))?;
    to.write_all(b"\n")
}

/// The layout of another formatter, with escaped hidden characters in strings.
struct Visible<F>(F);

/// Forwards calls to the layout.
macro_rules! as_the_layout {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $name<W: ?Sized + Write>(&mut self, to: &mut W, $($argument: $type),*) -> io::Result<()> {
            self.0.$name(to, $($argument),*)
        }
    )*};
}

impl<F: Formatter> Formatter for Visible<F> {
    as_the_layout! {
        write_char_escape(escape: CharEscape);
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        end_object_key();
        begin_object_value();
        end_object_value();
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, to: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(escape::is_hidden) {
            let (plain, hidden) = rest.split_at(at);
            to.write_all(plain.as_bytes())?;
            let c = hidden.chars().next().expect("one was found");
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(to, "\\u{unit:04x}")?;
            }
            rest = &hidden[c.len_utf8()..];
        }
        to.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_read_back() {
        let text = "\u{1b}[2J \u{7f}\u{9b}2J \u{202e}x\u{2028} \u{e0041} \" \\ \n \u{e9}";
        let value = std::collections::BTreeMap::from([(text, vec![text, ""])]);
        let written = pretty(&value);
        assert!(!written.contains(|c| escape::is_hidden(c) && c != '\n'), "{written:?}");
        assert!(
            written.contains("\\u001b[2J \\u007f\\u009b2J \\u202ex\\u2028 \\udb40\\udc41 \\\" \\\\ \\n \u{e9}"),
            "{written}"
        );
        let back: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(back, serde_json::to_value(&value).unwrap());
    }

    #[test]
    fn the_layout_is_that_of_the_library() {
        let value = serde_json::json!({ "a": [1, 2.5, null, {}], "b": { "c": "d", "e": [] } });
        assert_eq!(pretty(&value), serde_json::to_string_pretty(&value).unwrap() + "\n");
        let mut line = Vec::new();
        write_line(&value, &mut line).unwrap();
        assert_eq!(line, (value.to_string() + "\n").into_bytes());
    }
}
