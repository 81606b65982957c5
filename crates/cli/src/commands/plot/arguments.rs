//! The command line of `lastmile plot`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use lastmile_picture::Format;
use lastmile_scenario::Override;
use lastmile_units::Duration;

use crate::failure::{Failure, Result};
use crate::memory::Grant;

/// Draw a figure of scenarios, results or a capture, as SVG, PDF or PNG
///
/// A scenario is simulated. A folder has results that --out of another command has written. Each input is a
/// column of panels. With --policy, a scenario is a column, and each policy a curve in its panels. With
/// --together, all inputs are curves in one column. Of a capture, the largest connection is drawn.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenarios (.toml), folders with results, or one capture (pcap, pcapng; .gz and .zst too)
    #[arg(required = true, value_name = "INPUT")]
    pub(super) inputs: Vec<PathBuf>,

    /// Figure to write; the ending of its name is its format: .svg, .pdf or .png
    #[arg(long, value_name = "FILE", required_unless_present = "list")]
    pub(super) out: Option<PathBuf>,

    /// Panel to draw, by its name or series; may be given several times [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub(super) panel: Vec<String>,

    /// Print the names of the panels, and draw nothing
    #[arg(long, conflicts_with_all = ["out", "panel"])]
    pub(super) list: bool,

    /// Policies, each a curve: built-in ones, files, or none for the line's own queues, perhaps with
    /// a label, such as "no remedy=none"; a list, and may be given several times
    #[arg(long, value_name = "[LABEL=]NAME,...", value_delimiter = ',', conflicts_with = "together")]
    pub(super) policy: Vec<String>,

    /// Draw all inputs as curves in common panels
    #[arg(long)]
    pub(super) together: bool,

    /// Heading of an input's column, or name of its curve; given once for each input, in their order
    #[arg(long, value_name = "TEXT")]
    pub(super) label: Vec<String>,

    /// Override a key of each scenario, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(super) set: Vec<Override>,

    /// Seed of every random stream; equal seeds give equal results [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Length of each run; short for --set duration=TIME
    #[arg(long, value_name = "TIME")]
    pub(super) duration: Option<Duration>,

    /// Pixels of a PNG for each unit of the drawing; a column is 560 units wide
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = scale)]
    pub(super) scale: f32,

    #[command(flatten)]
    pub(super) memory: Grant,

    /// Threads for the runs; results do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = crate::commands::threads)]
    pub(super) threads: Option<NonZeroUsize>,
}

impl Arguments {
    /// The format that the name of the figure ends in; `None` without a figure.
    pub(super) fn format(&self) -> Result<Option<Format>> {
        let Some(out) = &self.out else { return Ok(None) };
        let found = out.extension().and_then(|extension| extension.to_str()).and_then(Format::of_extension);
        let wrong = || {
            Failure::new(format_args!("--out: {} names no format of figures", out.display()))
                .hint("a name that ends in .svg, .pdf or .png")
        };
        found.map(Some).ok_or_else(wrong)
    }
}

fn scale(text: &str) -> std::result::Result<f32, String> {
    match text.parse::<f32>() {
        Ok(scale) if (0.1..=20.0).contains(&scale) => Ok(scale),
        _ => Err("a number from 0.1 to 20".into()),
    }
}
