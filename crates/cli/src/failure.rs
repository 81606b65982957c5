//! Exit codes and failures of commands.

use std::fmt;
use std::io;

use lastmile_scenario::Report;

/// The meaning of the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// The command succeeded.
    Done,
    /// The command succeeded, and its answer is no: a claim not shown, a limit not met.
    No,
    /// The command failed.
    CouldNotRun,
    /// A signal of this number stopped it. No partial file has a final name.
    Interrupted(u8),
    /// The exit code of the command that ran behind an emulated line.
    Command(u8),
}

impl From<Exit> for u8 {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::CouldNotRun => 2,
            // As shells report a process that a signal ended: 130 for SIGINT.
            Exit::Interrupted(signal) => 128_u8.saturating_add(signal),
            Exit::Command(status) => status,
        }
    }
}

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An invalid input of the user.
    Wrong {
        /// The error, in one line.
        message: String,
        /// The expected form, in one line.
        hint: Option<String>,
    },
    /// An invalid file. The report includes the position and the expected form.
    Report(Report),
    /// The reader of standard output has closed it: `lastmile overhead | head -1`. This is no
    /// error.
    ReaderGone,
}

impl Failure {
    /// A failure with no hint.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::Wrong { message: message.to_string(), hint: None }
    }

    /// A copy with the expected form.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Wrong { message, .. } => Self::Wrong { message, hint: Some(hint.into()) },
            other => other,
        }
    }
}

impl Failure {
    /// For commands whose exit code is a verdict: it does not change with the reader of standard output.
    ///
    /// # Errors
    /// Every failure but that the reader has gone.
    pub(crate) fn unless_reader_gone(self) -> Result<()> {
        if matches!(self, Self::ReaderGone) { Ok(()) } else { Err(self) }
    }
}

impl From<lastmile_studies::Error> for Failure {
    fn from(error: lastmile_studies::Error) -> Self {
        match error {
            lastmile_studies::Error::Wrong { message, hint } => Self::Wrong { message, hint },
            lastmile_studies::Error::Report(report) => Self::Report(report),
        }
    }
}

/// Errors of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ReaderGone,
            _ => Self::new(format_args!("cannot write to standard output: {error}")),
        }
    }
}

#[cfg(target_os = "linux")]
impl From<lastmile_live::Error> for Failure {
    fn from(error: lastmile_live::Error) -> Self {
        let (hint, failure) = (error.hint(), Self::new(error));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(target_os = "linux")]
impl From<lastmile_lab::Error> for Failure {
    fn from(error: lastmile_lab::Error) -> Self {
        use lastmile_lab::Error;
        let hint = match &error {
            Error::Scenario(report) => return Self::Report(report.clone()),
            Error::NoEnds { .. } => Some("name the two ends of the line: --between CLIENT,SERVER".to_owned()),
            Error::NoEndsOfTraffic { .. } => {
                Some("name the nodes of the two hosts: --between CLIENT,SERVER".to_owned())
            }
            other => other.hint(),
        };
        let failure = Self::new(error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The result of a command.
pub(crate) type Result<T = Exit> = std::result::Result<T, Failure>;
