//! The terminal: data on standard output, talk on standard error.
//!
//! Colours only on a terminal, and not with `NO_COLOR`; what is piped is plain text.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use lastmile_scenario::Report;
use serde::Serialize;

use crate::exit::{Exit, Failure};

const HEADING: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

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

    /// Data: text as it is.
    pub(crate) fn data(&mut self, text: &str) -> io::Result<()> {
        self.data.write_all(text.as_bytes())?;
        self.data.flush()
    }

    /// Data: what `fill` writes.
    pub(crate) fn write(&mut self, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut buffered = io::BufWriter::new(&mut self.data);
        fill(&mut buffered)?;
        buffered.flush()
    }

    /// Data: a line of its own that heads what follows.
    pub(crate) fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.data, "{HEADING}{text}{HEADING:#}")
    }

    /// Data: JSON, indented, for programs.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.data, value)?;
        writeln!(self.data)?;
        self.data.flush()
    }

    /// Talk: a line.
    pub(crate) fn talk(&mut self, line: &str) {
        // With standard error closed there is nobody left to tell.
        let _ = writeln!(self.talk, "{line}");
    }

    /// Talk: what is odd about a file.
    pub(crate) fn warnings(&mut self, report: &Report) {
        if !report.is_empty() {
            self.talk(&report.to_string());
        }
    }

    /// Says why a command ended early; returns the exit code for it.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Exit {
        match failure {
            Failure::ReaderGone => return Exit::Done,
            Failure::Report(report) => self.talk(&report.to_string()),
            Failure::Wrong { message, hint } => {
                self.talk(&format!("{ERROR}error:{ERROR:#} {message}"));
                if let Some(hint) = hint {
                    self.talk(&format!("{HINT}hint:{HINT:#} {hint}"));
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
