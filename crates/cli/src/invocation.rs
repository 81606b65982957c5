//! How the command was started: its program and its arguments.
//!
//! An installed script of another language also starts the command. The process is then that language's interpreter,
//! and the program is the script.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The script and its arguments, if one started the command.
static SCRIPT: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();

/// Records the script that started the command. Only the first call counts.
pub(crate) fn by_script(script: PathBuf, arguments: Vec<OsString>) {
    let _ = SCRIPT.set((script, arguments));
}

/// The program that starts the command once more.
///
/// # Errors
/// The system does not report the program of the process.
pub(crate) fn program() -> io::Result<PathBuf> {
    SCRIPT.get().map_or_else(std::env::current_exe, |(script, _)| Ok(script.clone()))
}

/// The arguments of the command, without its name.
pub(crate) fn arguments() -> Vec<OsString> {
    SCRIPT.get().map_or_else(|| std::env::args_os().skip(1).collect(), |(_, arguments)| arguments.clone())
}
