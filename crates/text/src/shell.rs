//! Words and comments of a script for `sh` (POSIX.1-2017, XCU 2.2 and 2.3).

use std::borrow::Cow;

use crate::escape;

/// Any `text` as one word of a command. No shell word can have a NUL, which becomes a visible
/// escape.
///
/// A reserved word or a word with `=` must not be the program's name; that name never comes from a
/// file.
#[must_use]
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:/=@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\0', "\\u{0}").replace('\'', "'\\''"))
}

/// `text` as a part of a comment. Line breaks are escaped, because a comment ends at the first.
#[must_use]
pub fn comment(text: &str) -> Cow<'_, str> {
    escape::line(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more_into_them() {
        assert_eq!(word("1a57:10"), "1a57:10");
        assert_eq!(word("{"), "'{'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
        assert_eq!(word("~root"), "'~root'");
        assert_eq!(word("a\nb"), "'a\nb'");
    }

    #[test]
    fn a_comment_stays_on_its_line() {
        assert_eq!(comment("a policy\nreboot #"), "a policy\\nreboot #");
    }
}
