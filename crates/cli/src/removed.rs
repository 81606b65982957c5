//! Removed options, and the options that replace them.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Failure;

/// Command, removed option, and what to write in its place.
const REMOVED: [(&str, &str, &str); 4] = [
    ("run", "--remedy", "lastmile compare --policy NAME,..."),
    ("run", "--vary", "lastmile compare --vary KEY=VALUE,..."),
    ("run", "--live", "lastmile lab"),
    ("compare", "--remedies", "lastmile compare --policy NAME,..."),
];

/// The error of a command line whose first word is `command`, if it names a removed option.
pub(crate) fn removed(command: &str, error: &clap::Error) -> Option<Failure> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let (_, option, instead) = REMOVED.iter().find(|known| (known.0, known.1) == (command, option))?;
    Some(Failure::new(format_args!("{option}: use {instead}")))
}
