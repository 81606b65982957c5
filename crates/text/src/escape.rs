//! Text for people: every hidden character is replaced by a visible escape, `\u{1b}`.
//!
//! A hidden character moves the cursor, changes the terminal or the order of other characters, or
//! has no width. Letters, marks and symbols of every script are unchanged, as are the two joiners
//! (U+200C, U+200D) that Persian, the languages of India and emoji need.
//!
//! A backslash is unchanged, so the escapes are not always reversible. Programs should read JSON.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True for a character that must not reach a terminal or page: control characters (C0, DEL, C1),
/// line and paragraph separators, and format characters that reorder or hide text.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || matches!(c,
            // Soft hyphen, zero-width space, word joiner and invisible operators, byte order mark.
            '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}'
            // Bidi_Control of the Unicode Character Database, and the deprecated format characters
            // that follow it.
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{2028}' | '\u{2029}'
            // Annotations, two characters that XML excludes, and tags.
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` on one line.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// `text` with its line breaks.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && c != '\n')
}

/// The text of a whole file, with its line breaks and tabs: a page whose markup is already escaped,
/// or data for programs on a terminal. The escapes contain no special character of HTML, XML or
/// CSV.
#[must_use]
pub fn file(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = first(text, &hidden) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut escaped = String::with_capacity(text.len() + 8);
    escaped.push_str(plain);
    for c in rest.chars() {
        match (hidden(c), c) {
            (false, _) => escaped.push(c),
            (true, '\n') => escaped.push_str("\\n"),
            (true, '\r') => escaped.push_str("\\r"),
            (true, '\t') => escaped.push_str("\\t"),
            (true, _) => write!(escaped, "\\u{{{:x}}}", u32::from(c)).expect("a string takes all"),
        }
    }
    Cow::Owned(escaped)
}

/// The position of the first hidden character. Printable ASCII, which is never hidden, is skipped by
/// whole blocks: pages of megabytes pass here.
fn first(text: &str, hidden: impl Fn(char) -> bool) -> Option<usize> {
    const BLOCK: usize = 64;
    let is_other = |byte: &u8| !matches!(byte, b' '..=b'~');
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        let plain = rest.chunks(BLOCK).take_while(|block| !block.iter().fold(false, |any, byte| any | is_other(byte)));
        let skipped = (plain.count() * BLOCK).min(rest.len());
        at += skipped + rest[skipped..].iter().position(is_other)?;
        let c = text[at..].chars().next()?;
        if hidden(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ECMA-48: ESC [ and its one-character form U+009B; OSC 8 and 52 of xterm's control sequences;
    /// UAX #9 for U+202E.
    #[test]
    fn sequences_for_a_terminal_become_visible() {
        assert_eq!(line("\u{1b}[2J\u{9b}2J"), "\\u{1b}[2J\\u{9b}2J");
        assert_eq!(line("\u{1b}]52;c;cm0=\u{7}"), "\\u{1b}]52;c;cm0=\\u{7}");
        assert_eq!(line("a\rb\u{8}\u{7f}\n\tc\0"), "a\\rb\\u{8}\\u{7f}\\n\\tc\\u{0}");
        assert_eq!(line("\u{202e}drowssap\u{2069}\u{2028}"), "\\u{202e}drowssap\\u{2069}\\u{2028}");
    }

    #[test]
    fn lines_stay_lines_and_a_file_keeps_its_tabs() {
        assert_eq!(lines("one\ntwo\tthree\r\n"), "one\ntwo\\tthree\\r\n");
        assert_eq!(file("<pre>one\n\ttwo\u{0}</pre>"), "<pre>one\n\ttwo\\u{0}</pre>");
    }

    #[test]
    fn letters_of_every_script_are_unchanged_and_not_copied() {
        for text in [
            "Größe µs – 12\u{a0}%",
            "نمی\u{200c}خواهم",
            "क्\u{200d}ष",
            "上り回線",
            "👩\u{200d}🔧",
            "e\u{301}",
            "\\u{1b}",
        ] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    /// Around the edges of the blocks that are skipped.
    #[test]
    fn a_hidden_character_is_found_at_every_position() {
        for before in 0..200 {
            let text = format!("{}µ\u{202e}{}", "x".repeat(before), "y".repeat(70));
            assert_eq!(line(&text), format!("{}µ\\u{{202e}}{}", "x".repeat(before), "y".repeat(70)));
        }
    }

    /// Every character with the property Bidi_Control in UCD PropList.txt.
    #[test]
    fn nothing_that_reorders_text_is_left() {
        for c in
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars()
        {
            assert!(is_hidden(c), "{c:?}");
        }
    }
}
