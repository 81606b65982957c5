//! The terminal: data on standard output, talk on standard error.
//!
//! Colours only on a terminal, and not with `NO_COLOR`; what is piped is plain text. Text may hold names from files, from other programs
//! and from the command line, so every text for people passes [`shown`], to a terminal and to a pipe alike: [`Printer`] alone adds
//! escape sequences. Data for programs ([`Printer::exact`], [`Printer::write`], [`Printer::json`]) is written as it is.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use clap::error::{ContextKind, ContextValue};
use lastmile_results::json;
use lastmile_scenario::Report;
use lastmile_text::shown;
use lastmile_text::table::Table;
use serde::Serialize;

use crate::failure::{Exit, Failure};

const HEADING: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// An error of the command line, with what was typed on it escaped.
pub(crate) fn escaped(mut error: clap::Error) -> clap::Error {
    let hidden = |text: &String| shown::line(text).into_owned();
    let typed = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, ContextValue::String(hidden(text)))),
        ContextValue::Strings(texts) => Some((kind, ContextValue::Strings(texts.iter().map(hidden).collect()))),
        _ => None,
    });
    for (kind, value) in typed.collect::<Vec<_>>() {
        if error.insert(kind, value.clone()).is_some_and(|before| before != value) {
            // Hints have it in them, and styles.
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

/// Lines that fill a terminal, in place of what is on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Screen(String);

impl Screen {
    /// `text` on a terminal of this size: lines are cut to it, so that the first one stays where it is.
    pub(crate) fn new(text: &str, columns: usize, rows: usize) -> Self {
        // ECMA-48: cursor to the first place (CUP); what is right of a line, and below the last one, goes (EL, ED).
        let mut screen = "\x1b[H".to_owned();
        let text = shown::lines(text);
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
    /// On the process's own streams.
    pub(crate) fn new() -> Self {
        Self { data: AutoStream::auto(io::stdout()), talk: AutoStream::auto(io::stderr()) }
    }

    /// Data for people: text, in lines.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(shown::lines(text).as_bytes())?;
        self.data.flush()
    }

    /// Data for people: a table in the width of the terminal.
    pub(crate) fn table(&mut self, table: &Table) -> io::Result<()> {
        let text = table.render_within(self.width());
        self.data(&text)
    }

    /// Data for people: text in place of what is on the terminal.
    pub(crate) fn screen(&mut self, screen: &Screen) -> io::Result<()> {
        self.data.write_all(screen.0.as_bytes())?;
        self.data.flush()
    }

    /// Data for people: a line of its own that heads what follows.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.data, "{HEADING}{}{HEADING:#}", shown::line(text))
    }

    /// Data for programs: text as it is.
    pub(crate) fn exact(&mut self, text: &str) -> io::Result<()> {
        self.write(|to| to.write_all(text.as_bytes()))
    }

    /// Data for programs: what `fill` writes, as it is. A terminal gets it as text for people.
    pub(crate) fn write(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            let mut data = Vec::new();
            fill(&mut data)?;
            out.write_all(shown::file(&String::from_utf8_lossy(&data)).as_bytes())?;
        } else {
            // Past the stream that takes escape sequences out.
            let mut buffered = io::BufWriter::new(&mut out);
            fill(&mut buffered)?;
            buffered.flush()?;
        }
        out.flush()
    }

    /// Data for programs: JSON, indented.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.write(|to| json::write_pretty(value, to))
    }

    /// Talk: a line.
    pub(crate) fn talk(&mut self, line: &str) {
        self.say(&shown::line(line));
    }

    /// Talk: some lines.
    pub(crate) fn talk_lines(&mut self, lines: &str) {
        self.say(&shown::lines(lines));
    }

    /// Writes lines whose text is escaped.
    fn say(&mut self, lines: &str) {
        // With standard error closed there is nobody left to tell.
        let _ = writeln!(self.talk, "{lines}");
    }

    /// Talk: what is odd about a file.
    pub(crate) fn warnings(&mut self, report: &Report) {
        if !report.is_empty() {
            self.talk_lines(&report.to_string());
        }
    }

    /// Says why a command ended early; returns the exit code for it.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Exit {
        match failure {
            Failure::ReaderGone => return Exit::Done,
            Failure::Report(report) => self.talk_lines(&report.to_string()),
            Failure::Wrong { message, hint } => {
                self.say(&format!("{ERROR}error:{ERROR:#} {}", shown::line(message)));
                if let Some(hint) = hint {
                    self.say(&format!("{HINT}hint:{HINT:#} {}", shown::line(hint)));
                }
            }
        }
        Exit::CouldNotRun
    }

    /// Columns of the terminal; 120 where standard output is none.
    pub(crate) fn width(&self) -> u16 {
        let told = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
        told.filter(|&width| width > 0).unwrap_or(120)
    }

    /// Rows of the terminal; `None` where standard output is none, or does not say.
    pub(crate) fn rows(&self) -> Option<u16> {
        terminal_size::terminal_size_of(io::stdout()).map(|(_, height)| height.0).filter(|&rows| rows > 0)
    }

    /// True when somebody watches standard error: only then is there a progress bar.
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
