//! `lastmile model`: the closed forms, before anything is simulated.

use clap::{Args, Subcommand};

use crate::exit::Result;
use crate::printer::Printer;

mod asymmetry;

/// Compute what a line can do at best, by closed forms
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    Asymmetry(asymmetry::Arguments),
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match &arguments.form {
        Form::Asymmetry(arguments) => asymmetry::run(arguments, printer),
    }
}
