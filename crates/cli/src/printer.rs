//! The terminal: data on standard output, talk on standard error.
//!
//! Colours only on a terminal, and not with `NO_COLOR`; what is piped is plain text.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
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

    /// Says why a command ended early; returns the exit code for it.
    pub(crate) fn failure(&mut self, failure: &Failure) -> Exit {
        let Failure::Wrong { message, hint } = failure else { return Exit::Done };
        // With standard error closed there is nobody left to tell; the exit code still says it.
        let _ = writeln!(self.talk, "{ERROR}error:{ERROR:#} {message}");
        if let Some(hint) = hint {
            let _ = writeln!(self.talk, "{HINT}hint:{HINT:#} {hint}");
        }
        Exit::CouldNotRun
    }

    /// True when somebody watches standard error: only then is there a progress bar.
    #[expect(dead_code, reason = "the run command asks")]
    pub(crate) fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }
}
