//! The rights that a shaper needs, and the result of giving up others.

use std::fmt;
use std::path::PathBuf;

/// The rights that a running shaper needs.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The file that a reload reads; `None` for a built-in policy.
    pub policy: Option<PathBuf>,
    /// The control socket, which is removed at the end.
    pub control: PathBuf,
    /// Whether the thread that carries packets takes real-time priority.
    pub realtime: bool,
}

/// The result of giving up one kind of rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Only what is needed is left.
    Full,
    /// The kernel knows some of the rights alone.
    Part,
    /// Nothing was given up, for this reason.
    None(String),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("limited"),
            Self::Part => f.write_str("limited in part: the kernel's Landlock is older than Linux 6.12"),
            Self::None(why) => write!(f, "not limited: {why}"),
        }
    }
}
