//! `lastmile trace`: shows a trace of a line's capacity, makes one, converts between formats.

mod make;
mod show;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lastmile_scenario::trace::file::{self, Format};
use lastmile_units::{BitRate, Duration};

use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::interrupt::Interrupt;
use crate::printer::Printer;

/// Show, convert or make a trace of a line's capacity over time
///
/// FILE is a trace (a table of steps, a packet-delivery trace of mahimahi, or JSON of Rattan), a
/// capture (pcap, pcapng; .gz and .zst too) whose IP bytes become steps of the rate that it carried,
/// or the JSON of `lastmile measure`. A trace of what was carried is the capacity of a line only as
/// far as the line was full. Without --to, the output is a summary: mean, percentiles over time,
/// outages, and a chart. Scenarios read traces with `trace = { file = "..." }`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Trace, capture or measurement
    #[arg(value_name = "FILE", required_unless_present = "generate", conflicts_with = "generate")]
    file: Option<PathBuf>,

    /// Make a trace by this rule, with the defaults of the scenario file
    #[arg(long, value_name = "RULE", requires = "rate")]
    generate: Option<Rule>,

    /// Largest rate of a generated trace; rate of steps of a file that have none
    #[arg(long)]
    rate: Option<BitRate>,

    /// Least delay of a generated trace; delay of steps of a file that have none
    #[arg(long, default_value = "0 ms")]
    delay: Duration,

    /// Length of a generated trace, and of mahimahi's from steps that are played once
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    length: Duration,

    /// Seed of a generated trace
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Direction of a measurement
    #[arg(long, default_value = "down")]
    direction: make::Direction,

    /// Count only packets of a capture to these addresses, such as 192.0.2.0/24 or 2001:db8::/32
    #[arg(long, value_name = "PREFIX")]
    towards: Option<make::Prefix>,

    /// Steps of this length, from a capture or from mahimahi's opportunities
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    interval: Duration,

    /// Print the trace in this format
    #[arg(long, value_name = "FORMAT")]
    to: Option<To>,

    /// Write it to this file, instead of standard output
    #[arg(long, value_name = "FILE", requires = "to")]
    out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long, conflicts_with = "to")]
    json: bool,
}

/// Rules of generated traces.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Rule {
    /// DSL that retrains
    DslRetrain,
    /// Satellites allocated every 15 s
    Starlink,
    /// Markov-modulated rate of a radio cell
    Cell,
}

/// Formats to write.
#[derive(Clone, Copy, ValueEnum)]
enum To {
    /// Table of steps
    Csv,
    /// Milliseconds of packet-delivery opportunities
    Mahimahi,
    /// JSON of Rattan (netem-trace)
    Rattan,
}

impl From<To> for Format {
    fn from(to: To) -> Self {
        match to {
            To::Csv => Self::Csv,
            To::Mahimahi => Self::Mahimahi,
            To::Rattan => Self::Rattan,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let _cut_off = Interrupt::at_once()?;
    if arguments.interval == Duration::ZERO {
        return Err(Failure::new("--interval: 0 s").hint("such as 100 ms"));
    }
    let trace = make::make(arguments)?;
    let Some(to) = arguments.to else {
        let summary = show::Summary::of(&trace, arguments.length);
        if arguments.json {
            printer.json(&summary)?;
        } else {
            printer.data(&summary.text(&trace, printer.width()))?;
        }
        return Ok(Exit::Done);
    };
    let text = file::write(&trace, to.into(), arguments.interval, arguments.length).map_err(Failure::new)?;
    match &arguments.out {
        None => printer.exact(&text)?,
        Some(path) => {
            Folders::default().prepare_file(path, "--out")?;
            std::fs::write(path, text).map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
        }
    }
    Ok(Exit::Done)
}
