//! The lastmile command: reads the command line, calls the crates below, prints what they return.
//!
//! Data goes to standard output, messages to standard error. The exit code is 0 for success, 1 if
//! the command's answer is no, 2 for a failure, 130 for an interrupt ([`failure::Exit`]).

// Doc comments on arguments are their help texts, in which [access] is a table of a file.
#![allow(rustdoc::broken_intra_doc_links)]

mod bytes;
mod commands;
mod failure;
mod folders;
mod interrupt;
mod memory;
mod parallel;
mod printer;
mod removed;

use std::io::{self, Write as _};
use std::process::ExitCode;

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
    Report(commands::report::Arguments),
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
    Completions(commands::completions::Arguments),
}

fn main() -> ExitCode {
    let mut printer = Printer::new();
    #[cfg(target_os = "linux")]
    if lastmile_live::streams::output_was_closed() {
        let closed = Failure::new("standard output is closed").hint("redirect it to /dev/null to discard the output");
        return printer.failure(&closed).into();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // With standard error closed there is no reader.
        Err(error) if error.use_stderr() => {
            let command = std::env::args_os().nth(1).unwrap_or_default();
            if let Some(removed) = removed::removed(&command.to_string_lossy(), &error) {
                return printer.failure(&removed).into();
            }
            let _ = printer::escaped(error).print();
            return Exit::CouldNotRun.into();
        }
        Err(help) => {
            let printed = help.print().and_then(|()| io::stdout().flush()).map_err(Failure::from);
            return printed.map_or_else(|failure| printer.failure(&failure), |()| Exit::Done).into();
        }
    };
    let result = match arguments.command {
        Command::New(arguments) => commands::new::run(&arguments, &mut printer),
        Command::Run(arguments) => commands::run::run(&arguments, &mut printer),
        Command::Compare(arguments) => commands::compare::run(&arguments, &mut printer),
        Command::Report(arguments) => commands::report::run(&arguments, &mut printer),
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
        Command::Completions(arguments) => commands::completions::run(&arguments, Arguments::command(), &mut printer),
    };
    match result {
        Ok(exit) => exit,
        Err(failure) => printer.failure(&failure),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
