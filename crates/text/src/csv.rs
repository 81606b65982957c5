//! Cells of a table in the form of RFC 4180: complete data for programs.
//!
//! A cell that begins with `=`, `+`, `-` or `@` is unchanged, because a number may begin so.
//! Spreadsheets read it as a formula unless the column is imported as text.

use std::borrow::Cow;

/// `text` as one cell.
#[must_use]
pub fn cell(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4180, 2.5 to 2.7.
    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(cell("eth0"), "eth0");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("a\r\n\"b\""), "\"a\r\n\"\"b\"\"\"");
        assert_eq!(cell("=1+1"), "=1+1");
    }
}
