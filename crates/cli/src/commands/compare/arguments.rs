//! The command line of `lastmile compare`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lastmile_scenario::Override;
use lastmile_units::Duration;

use crate::commands::run::options::Files;
use crate::memory::Grant;
use lastmile_studies::variant::common;

/// Simulate a scenario under several policies, with several values of keys, or in several cases
///
/// Each row of the table is a run. Several lists of values make a grid: every combination is a row,
/// and the values of the last list change fastest. The [[case]]s of the file are the first list.
///
/// Over an [access] line, a row shows the goodput of downloads and uploads while both are active,
/// and the round trips of the file's ping and of a best-effort probe. The baseline is the goodput
/// of the downloads alone, on the line's own queues. The probe is added: a ping over UDP without a
/// code point, with at most 1 % of the upstream. Columns of calls and datagrams show the worst
/// flow.
///
/// Over other networks, a row shows goodputs and their fairness, losses, and over ATM the queue of
/// the busiest port and the backlog at the edge. With --out, each run has a folder of results, and
/// one report shows all.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file
    pub(super) scenario: PathBuf,

    /// Policies in place of the file's: built-in ones, files, or none for the line's own queues
    /// [default, without --vary and [[case]]s: none, the file's policy, cake, fq-codel-sqm and
    /// full-both-ways]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) policy: Vec<String>,

    /// Values of a key, such as access.up.interleave=none,cells; may be given for several keys. A comma
    /// inside of braces, brackets or quotes belongs to its value
    #[arg(long, value_name = "KEY=VALUE,...")]
    pub(super) vary: Vec<String>,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Run each row with N seeds, from the seed of the file or of --seed on: means with 95 % intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub(super) seeds: Option<u64>,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) set: Vec<Override>,

    /// Length of each run; short for --set duration=TIME
    #[arg(long, value_name = "TIME")]
    pub(super) duration: Option<Duration>,

    #[command(flatten)]
    pub(super) files: Files,

    #[command(flatten)]
    pub(super) memory: Grant,

    /// Threads for the runs; results do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = crate::commands::threads)]
    pub(super) threads: Option<NonZeroUsize>,

    /// Print JSON: the contents of the table, and each run's summary
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    /// The overrides that all runs have.
    pub(super) fn common(&self) -> Vec<Override> {
        common(&self.set, self.seed, self.duration)
    }
}
