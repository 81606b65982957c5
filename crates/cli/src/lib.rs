//! The lastmile command: reads the command line, calls the crates below, prints what they return.
//!
//! [`main`] is the program, and [`main_of_script`] the same command for a script of another language.
//!
//! Data goes to standard output, messages to standard error. The exit code is 0 for success, 1 if
//! the command's answer is no, 2 for a failure, 130 for an interrupt (`failure::Exit`).

// Doc comments on arguments are their help texts, in which [access] is a table of a file.
#![allow(rustdoc::broken_intra_doc_links)]

mod bytes;
mod commands;
mod failure;
mod folders;
mod interrupt;
mod invocation;
mod memory;
mod printer;
mod removed_options;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::failure::{Exit, Failure};
use crate::printer::Printer;

/// The laboratory and optimizer for TCP over asymmetric access lines.
///
/// Simulates a line with its encapsulation, queues and traffic, carries real packets through the
/// same code, and compares published results with its own. Rates are rates of the line, headers and
/// cells included.
#[derive(Parser)]
#[command(name = "lastmile", version, max_term_width = 100, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    New(commands::new::Arguments),
    Run(commands::run::Arguments),
    Compare(commands::compare::Arguments),
    Study(commands::study::Arguments),
    Report(commands::report::Arguments),
    Plot(commands::plot::Arguments),
    Analyse(commands::analyse::Arguments),
    Policy(commands::policy::Arguments),
    #[cfg(target_os = "linux")]
    Emulate(commands::emulate::Arguments),
    #[cfg(target_os = "linux")]
    Lab(commands::lab::Arguments),
    #[cfg(target_os = "linux")]
    Shape(commands::shape::Arguments),
    #[cfg(target_os = "linux")]
    Measure(commands::measure::Arguments),
    #[cfg(target_os = "linux")]
    Watch(commands::watch::Arguments),
    #[cfg(target_os = "linux")]
    History(commands::history::Arguments),
    Tc(commands::tc::Arguments),
    Trace(commands::trace::Arguments),
    Overhead(commands::overhead::Arguments),
    Model(commands::model::Arguments),
    Reproduce(commands::reproduce::Arguments),
    Schema(commands::schema::Arguments),
    Completions(commands::completions::Arguments),
    Man(commands::man::Arguments),
}

/// Runs the command with the arguments of the process, and returns the exit code.
#[must_use]
pub fn main() -> u8 {
    let code = command(&invocation::arguments()).into();
    // Nothing is left to do about an error.
    let _ = io::stdout().flush();
    code
}

/// Runs the command that `script` was called as, with its arguments, and returns the exit code.
///
/// Commands that start the program once more, or name it in a unit of systemd, use `script`.
#[must_use]
pub fn main_of_script(script: PathBuf, arguments: Vec<OsString>) -> u8 {
    invocation::by_script(script, arguments);
    main()
}

fn command(arguments: &[OsString]) -> Exit {
    let mut printer = Printer::new();
    #[cfg(target_os = "linux")]
    if lastmile_live::streams::output_was_closed() {
        let closed = Failure::new("standard output is closed").hint("redirect it to /dev/null to discard the output");
        return printer.failure(&closed);
    }
    let named = std::iter::once(OsString::from("lastmile")).chain(arguments.iter().cloned());
    let read = match Arguments::try_parse_from(named) {
        Ok(arguments) => arguments,
        // With standard error closed there is no reader.
        Err(error) if error.use_stderr() => {
            let command = arguments.first().map(|command| command.to_string_lossy()).unwrap_or_default();
            if let Some(removed) = removed_options::removed(&command, &error) {
                return printer.failure(&removed);
            }
            let _ = printer::escaped(error).print();
            return Exit::CouldNotRun;
        }
        Err(help) => {
            let printed = help.print().and_then(|()| io::stdout().flush()).map_err(Failure::from);
            return printed.map_or_else(|failure| printer.failure(&failure), |()| Exit::Done);
        }
    };
    let result = match read.command {
        Command::New(arguments) => commands::new::run(&arguments, &mut printer),
        Command::Run(arguments) => commands::run::run(&arguments, &mut printer),
        Command::Compare(arguments) => commands::compare::run(&arguments, &mut printer),
        Command::Study(arguments) => commands::study::run(&arguments, &mut printer),
        Command::Report(arguments) => commands::report::run(&arguments, &mut printer),
        Command::Plot(arguments) => commands::plot::run(&arguments, &mut printer),
        Command::Analyse(arguments) => commands::analyse::run(&arguments, &mut printer),
        Command::Policy(arguments) => commands::policy::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Emulate(arguments) => commands::emulate::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Lab(arguments) => commands::lab::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Shape(arguments) => commands::shape::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Measure(arguments) => commands::measure::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Watch(arguments) => commands::watch::run(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::History(arguments) => commands::history::run(&arguments, &mut printer),
        Command::Tc(arguments) => commands::tc::run(&arguments, &mut printer),
        Command::Trace(arguments) => commands::trace::run(&arguments, &mut printer),
        Command::Overhead(arguments) => commands::overhead::run(&arguments, &mut printer),
        Command::Model(arguments) => commands::model::run(&arguments, &mut printer),
        Command::Reproduce(arguments) => commands::reproduce::run(&arguments, &mut printer),
        Command::Schema(arguments) => commands::schema::run(&arguments, &mut printer),
        Command::Man(arguments) => commands::man::run(&arguments, Arguments::command(), &mut printer),
        Command::Completions(arguments) => commands::completions::run(&arguments, Arguments::command(), &mut printer),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => printer.failure(&failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
