//! `lastmile completions`: a shell script that completes this program's commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::{Exit, Result};
use crate::printer::Printer;

/// Print a script that completes commands and options in a shell
///
/// For bash: `lastmile completions bash > ~/.local/share/bash-completion/completions/lastmile`
#[derive(Args)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

/// `program` is the command line of the whole program.
pub(crate) fn run(arguments: &Arguments, mut program: Command, printer: &mut Printer) -> Result {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "lastmile", &mut script);
    printer.exact(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
