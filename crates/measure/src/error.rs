use std::io;

/// A measurement that cannot be made, or has ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call of the system failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action, such as `connecting to 192.0.2.1:5201`.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The other end answered something that its protocol does not allow.
    #[error("{peer}: {what}")]
    Protocol {
        /// Name and address of the other end.
        peer: String,
        /// The unexpected answer, and what would be right.
        what: String,
    },
    /// The other end refused the measurement.
    #[error("{peer} refuses: {reason}")]
    Refused {
        /// Name and address of the other end.
        peer: String,
        /// Its reason.
        reason: String,
    },
    /// The other end has ended: nothing more can be measured against it.
    #[error("{peer}: the server ended: {what}")]
    Ended {
        /// Name and address of the other end.
        peer: String,
        /// What shows it.
        what: String,
    },
    /// The user ended the measurement.
    #[error("it was stopped")]
    Stopped,
    /// The measurement is not possible over this kind of path or server.
    #[error("{0}")]
    Unsupported(String),
}

impl Error {
    /// An error of the system with the attempted action.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Whether the server is gone: another attempt would fail, too.
    #[must_use]
    pub fn is_end(&self) -> bool {
        match self {
            Self::Ended { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::ConnectionRefused,
            _ => false,
        }
    }
}
