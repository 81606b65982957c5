//! `lastmile model`: the closed forms, without simulation.

use clap::{Args, Subcommand};

use crate::failure::Result;
use crate::printer::Printer;

mod ack_rate;
mod amp;
mod asymmetry;
mod delay_bound;
mod grants;
mod numbers;
mod packets;

/// Compute closed-form limits of a line
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    Asymmetry(asymmetry::Arguments),
    Amp(amp::Arguments),
    AckRate(ack_rate::Arguments),
    DelayBound(delay_bound::Arguments),
    Grants(grants::Arguments),
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match &arguments.form {
        Form::Asymmetry(arguments) => asymmetry::run(arguments, printer),
        Form::Amp(arguments) => amp::run(arguments, printer),
        Form::AckRate(arguments) => ack_rate::run(arguments, printer),
        Form::DelayBound(arguments) => delay_bound::run(arguments, printer),
        Form::Grants(arguments) => grants::run(arguments, printer),
    }
}
