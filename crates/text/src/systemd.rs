//! Words and values of a unit file (systemd.syntax(7), systemd.unit(5), systemd.service(5)).
//!
//! systemd ends a line at a line feed, a carriage return or a NUL, and joins a line that ends in a
//! backslash with the next.

use std::fmt::Write as _;
use std::path::Path;

use crate::escape;

/// Why a path cannot be the program of a command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoProgram {
    /// A relative path, of which systemd accepts only a few names.
    Relative,
    /// Control characters, quotes or backslashes, which systemd refuses in a program's path, or
    /// bytes that are not UTF-8.
    Characters,
}

/// One line with the expected form.
impl std::fmt::Display for NoProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Relative => "systemd needs the whole path of a program, from / on",
            Self::Characters => {
                "systemd takes no program whose path has quotes, backslashes, \
                 control characters or bytes that are no UTF-8"
            }
        })
    }
}

impl std::error::Error for NoProgram {}

/// `path` as the first word of a command line, in which systemd expands no variables.
///
/// # Errors
/// A path that systemd refuses as a program.
pub fn program(path: &Path) -> Result<String, NoProgram> {
    let text = path.to_str().ok_or(NoProgram::Characters)?;
    if !path.is_absolute() {
        return Err(NoProgram::Relative);
    }
    if text.contains(['"', '\'', '\\']) || text.contains(escape::is_hidden) {
        return Err(NoProgram::Characters);
    }
    Ok(quoted(&text.replace('%', "%%")))
}

/// `text` as a further word of a command line, without expansion of specifiers (`%`) and variables
/// (`$`). No command line can have a NUL, which becomes a visible escape.
#[must_use]
pub fn word(text: &str) -> String {
    quoted(&text.replace('%', "%%").replace('$', "$$"))
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:%$@=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '\0' => quoted.push_str("\\\\u{0}"),
            c if escape::is_hidden(c) => {
                let code = u32::from(c);
                // `\x` encodes one byte, which is a character only below 128.
                match code {
                    ..0x80 => write!(quoted, "\\x{code:02x}"),
                    0x80..0x1_0000 => write!(quoted, "\\u{code:04x}"),
                    _ => write!(quoted, "\\U{code:08x}"),
                }
                .expect("a string takes all");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// `text` as a part of a value that systemd does not split into words, such as `Description=`: one
/// line, without expansion of specifiers. A last backslash does not join the next line.
#[must_use]
pub fn value(text: &str) -> String {
    let mut value = escape::line(text).replace('%', "%%");
    let backslashes = value.len() - value.trim_end_matches('\\').len();
    if backslashes % 2 == 1 {
        value.push('\\');
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// systemd.service(5), "Command lines"; systemd.syntax(7), "Quoting".
    #[test]
    fn words_are_as_systemd_reads_them() {
        assert_eq!(word("/usr/bin/lastmile"), "/usr/bin/lastmile");
        assert_eq!(word("512 kbit/s"), "\"512 kbit/s\"");
        assert_eq!(word("/srv/100%$/a\"b"), "\"/srv/100%%$$/a\\\"b\"");
        assert_eq!(word(""), "\"\"");
        assert_eq!(word(";"), "\";\"");
        assert_eq!(word("a\nExecStartPre=/bin/sh\r"), "\"a\\x0aExecStartPre=/bin/sh\\x0d\"");
        assert_eq!(word("\u{9b}\u{202e}\u{e0041}"), "\"\\u009b\\u202e\\U000e0041\"");
    }

    #[test]
    fn a_program_is_a_whole_path_that_systemd_takes() {
        assert_eq!(program(Path::new("/opt/last mile/100%/$x")).unwrap(), "\"/opt/last mile/100%%/$x\"");
        assert_eq!(program(Path::new("lastmile")), Err(NoProgram::Relative));
        for path in ["/a\nb", "/a\"b", "/a'b", "/a\\b"] {
            assert_eq!(program(Path::new(path)), Err(NoProgram::Characters), "{path:?}");
        }
    }

    #[test]
    fn a_value_stays_on_its_line() {
        assert_eq!(value("a\nUser=root"), "a\\nUser=root");
        assert_eq!(value("100 %i \u{1b}[31m"), "100 %%i \\u{1b}[31m");
        assert_eq!(value("a\\"), "a\\\\");
        assert_eq!(value("a\\\\"), "a\\\\");
    }
}
