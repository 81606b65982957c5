//! The command line of `lastmile run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::options::{Changes, Files};
use crate::memory::Grant;

/// Simulate a scenario
///
/// Prints the goodput, the limit and the closed-form bound of each flow. With --out, writes
/// summary.json, series.parquet and report.html. lastmile compare runs a scenario under several
/// policies, or with several values of a key.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file
    pub(in crate::commands) scenario: PathBuf,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub(in crate::commands) seed: Option<u64>,

    #[command(flatten)]
    pub(in crate::commands) changes: Changes,

    /// Run with N seeds, from the seed of the file or of --seed on: means with 95 % intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub(in crate::commands) seeds: Option<u64>,

    #[command(flatten)]
    pub(in crate::commands) files: Files,

    #[command(flatten)]
    pub(in crate::commands) memory: Grant,

    /// Threads for the runs with several seeds; results do not depend on it [default: one per
    /// processor]
    #[arg(long, value_name = "N", value_parser = crate::commands::threads)]
    pub(in crate::commands) threads: Option<NonZeroUsize>,

    /// Print JSON: the summary, and machine-dependent values under "timing"
    #[arg(long)]
    pub(in crate::commands) json: bool,
}

impl Arguments {
    /// The arguments for a single run of this scenario.
    pub(in crate::commands) fn of_one(scenario: PathBuf) -> Self {
        Self {
            scenario,
            seed: None,
            seeds: None,
            changes: Changes::default(),
            files: Files::default(),
            memory: Grant::default(),
            threads: None,
            json: false,
        }
    }
}
