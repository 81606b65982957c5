//! Removed options, and the options that replace them.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// Command, removed option, and its replacement.
const REMOVED: [(&str, &str, &str); 5] = [
    ("run", "--remedy", POLICY),
    ("run", "--vary", "lastmile compare --vary KEY=VALUE,..."),
    ("run", "--live", "lastmile lab"),
    ("compare", "--remedies", POLICY),
    ("reproduce", "--explore", "the pages in docs/reproductions, which have its answers"),
];
const POLICY: &str = "lastmile compare --policy NAME,...";
/// A remedy kept the limit of the line's queue. A policy has its own limits.
const LIMIT: &str =
    "a policy has queues with limits of its own; --vary access.up.queue.kind=fifo,sad,priority keeps that of the file";

/// The error of a command line whose first word is `command`, if it names a removed option.
pub(crate) fn removed(command: &str, error: &clap::Error) -> Option<Failure> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let (_, option, instead) = REMOVED.iter().find(|known| (known.0, known.1) == (command, option))?;
    let failure = Failure::new(format_args!("{option}: use {instead}"));
    Some(if *instead == POLICY { failure.hint(LIMIT) } else { failure })
}
