//! Why runs cannot begin or go on: an invalid file, or an invalid request.

use std::fmt;

use lastmile_scenario::Report;

/// Why runs cannot begin or go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// An invalid request.
    Wrong {
        /// The error, in one line.
        message: String,
        /// The expected form, in one line.
        hint: Option<String>,
    },
    /// An invalid file. The report includes the position and the expected form.
    Report(Report),
}

impl Error {
    /// An invalid request, without a hint.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::Wrong { message: message.to_string(), hint: None }
    }

    /// A copy with the expected form. A report has its own hints.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Wrong { message, .. } => Self::Wrong { message, hint: Some(hint.into()) },
            report @ Self::Report(_) => report,
        }
    }
}

impl From<Report> for Error {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

/// The message and the hint, as on a terminal.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { message, hint: None } => write!(f, "error: {message}"),
            Self::Wrong { message, hint: Some(hint) } => write!(f, "error: {message}\nhint: {hint}"),
            Self::Report(report) => report.fmt(f),
        }
    }
}

impl std::error::Error for Error {}
