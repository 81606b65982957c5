//! The terminal: data on standard output, messages on standard error.
//!
//! Colours appear only on a terminal without `NO_COLOR`; a pipe gets plain text. Text may hold
//! names from files, from other programs and from the command line. Every text for people therefore
//! passes [`lastmile_text::escape`], to a terminal and to a pipe: only [`Printer`] adds escape sequences. Data for
//! programs ([`Printer::exact`], [`Printer::write`], [`Printer::json`]) is written unchanged.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::error::{ContextKind, ContextValue};
use lastmile_results::json;
use lastmile_scenario::Report;
use lastmile_text::escape;
use lastmile_text::table::Table;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

use crate::failure::{Exit, Failure, Result};

const HEADING: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// An error of the command line, with the user's words escaped.
pub(crate) fn escaped(mut error: clap::Error) -> clap::Error {
    let hidden = |text: &String| escape::line(text).into_owned();
    let typed = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(hidden(text)))),
        ContextValue::Strings(texts) => Some((kind, ContextValue::Strings(texts.iter().map(hidden).collect()))),
        _ => None,
    });
    for (kind, value) in typed.collect::<Vec<_>>() {
        if error.insert(kind, value.clone()).is_some_and(|before| before != value) {
            // Hints repeat the user's words, and have styles.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

/// Lines that replace the contents of a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Screen(String);

impl Screen {
    /// `text` for a terminal of this size: lines are cut to it, so that the terminal does not
    /// scroll.
    pub(crate) fn new(text: &str, columns: usize, rows: usize) -> Self {
        // ECMA-48: cursor to the first position (CUP); erase the rest of a line, and below the last
        // one (EL, ED).
        let mut screen = "\x1b[H".to_owned();
        let text = escape::lines(text);
        let (lines, room) = (text.lines().count(), rows.saturating_sub(1));
        let whole = if lines > room { room.saturating_sub(1) } else { lines };
        for line in text.lines().take(whole) {
            screen.extend(line.chars().take(columns));
            screen.push_str("\x1b[K\n");
        }
        if whole < lines {
            screen.push_str(&format!("... {} more lines on a taller terminal\x1b[K\n", lines - whole));
        }
        Self(screen + "\x1b[J")
    }
}

/// Writes to both streams.
pub(crate) struct Printer {
    data: AutoStream<io::Stdout>,
    talk: AutoStream<io::Stderr>,
}

impl Printer {
    /// A printer on the process's own streams.
    pub(crate) fn new() -> Self {
        Self { data: AutoStream::auto(io::stdout()), talk: AutoStream::auto(io::stderr()) }
    }

    /// Data for people: text, in lines.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(escape::lines(text).as_bytes())?;
        self.data.flush()
    }

    /// Data for people: a table in the width of the terminal.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        let text = table.render_within(self.width());
        self.data(&text)
    }

    /// Data for people: text that replaces the contents of the terminal.
    pub(crate) fn screen(&mut self, screen: &Screen) -> io::Result<()> {
        self.data.write_all(screen.0.as_bytes())?;
        self.data.flush()
    }

    /// Data for people: a heading on its own line.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.data, "{HEADING}{}{HEADING:#}", escape::line(text))
    }

    /// Data for programs: unchanged text.
    pub(crate) fn exact(&mut self, text: &str) -> io::Result<()> {
        self.write(|to| to.write_all(text.as_bytes()))
    }

    /// Data for programs: the output of `fill`, unchanged. A terminal gets it as text for people.
    pub(crate) fn write(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            let mut data = Vec::new();
            fill(&mut data)?;
            out.write_all(escape::file(&String::from_utf8_lossy(&data)).as_bytes())?;
        } else {
            // Not through the stream that removes escape sequences.
            let mut buffered = io::BufWriter::new(&mut out);
            fill(&mut buffered)?;
            buffered.flush()?;
        }
        out.flush()
    }

    /// Prints a document as JSON, or as `text` does.
    pub(crate) fn either<T: Serialize>(
        &mut self,
        json: bool,
        document: &T,
        text: impl FnOnce(&T, &mut Self) -> Result<()>,
    ) -> Result {
        if json {
            self.json(document)?;
        } else {
            text(document, self)?;
        }
        Ok(Exit::Done)
    }

    /// Data for programs: JSON, indented.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.write(|to| json::write_pretty(value, to))
    }

    /// A message of one line. While a live view is open, the view shows messages.
    pub(crate) fn talk(&mut self, line: &str) {
        if !lastmile_terminal::say(line) {
            self.say(&escape::line(line));
        }
    }

    /// A message of several lines.
    pub(crate) fn talk_lines(&mut self, lines: &str) {
        if !lastmile_terminal::say(lines) {
            self.say(&escape::lines(lines));
        }
    }

    /// Writes lines of escaped text.
    fn say(&mut self, lines: &str) {
        // With standard error closed there is no reader.
        let _ = writeln!(self.talk, "{lines}");
    }

    /// Warnings about a file.
    pub(crate) fn warnings(&mut self, report: &Report) {
        if !report.is_empty() {
            self.talk_lines(&report.to_string());
        }
    }

    /// Prints the reason for an early end, and returns the exit code for it.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Exit {
        match failure {
            Failure::ReaderGone => return Exit::Done,
            Failure::Report(report) => self.talk_lines(&report.to_string()),
            Failure::Wrong { message, hint } => {
                self.say(&format!("{ERROR}error:{ERROR:#} {}", escape::line(message)));
                if let Some(hint) = hint {
                    self.say(&format!("{HINT}hint:{HINT:#} {}", escape::line(hint)));
                }
            }
        }
        Exit::CouldNotRun
    }

    /// Columns of the terminal; 120 if standard output is not a terminal.
    pub(crate) fn width(&self) -> u16 {
        // A terminal may know its columns, and not its rows.
        tcgetwinsize(io::stdout()).map(|size| size.ws_col).ok().filter(|&width| width > 0).unwrap_or(120)
    }

    /// Rows of the terminal; `None` if standard output is not a terminal, or does not report them.
    pub(crate) fn rows(&self) -> Option<u16> {
        tcgetwinsize(io::stdout()).map(|size| size.ws_row).ok().filter(|&rows| rows > 0)
    }

    /// True if standard error is a terminal: only then a progress bar is shown.
    pub(crate) fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_never_larger_than_the_terminal() {
        let text = "one\ntwo and more\nthree\nfour\n";
        let screen = |columns, rows| Screen::new(text, columns, rows).0;
        assert_eq!(screen(7, 5), "\x1b[Hone\x1b[K\ntwo and\x1b[K\nthree\x1b[K\nfour\x1b[K\n\x1b[J");
        let cut = screen(80, 4);
        assert_eq!(cut, "\x1b[Hone\x1b[K\ntwo and more\x1b[K\n... 2 more lines on a taller terminal\x1b[K\n\x1b[J");
        assert_eq!(screen(80, usize::MAX).lines().count(), 5);
    }

    #[test]
    fn only_the_screen_itself_moves_the_cursor() {
        assert_eq!(Screen::new("a\x1b[2Jb\r\n", 80, 24).0, "\x1b[Ha\\u{1b}[2Jb\\r\x1b[K\n\x1b[J");
    }
}
