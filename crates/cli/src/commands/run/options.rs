//! Options of several commands that run a scenario.

use std::path::{Path, PathBuf};

use clap::Args;
use lastmile_model::Network;
use lastmile_scenario::Override;
use lastmile_studies::recording::{Captures, file};
use lastmile_studies::variant::{common, policy_override};
use lastmile_units::Duration;

use crate::failure::Result;

/// Changes of the file's settings.
#[derive(Args, Clone, Default)]
pub(in crate::commands) struct Changes {
    /// Override a key of the file, such as access.up.rate="1 Mbit/s" or traffic.upload.start=10s
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(in crate::commands) set: Vec<Override>,

    /// Policy in place of the file's: a built-in one, a file, or none for the line's own queues
    #[arg(long, value_name = "NAME")]
    pub(in crate::commands) policy: Option<String>,

    /// Length of the run; short for --set duration=TIME
    #[arg(long, value_name = "TIME")]
    pub(in crate::commands) duration: Option<Duration>,
}

impl Changes {
    /// The changes as overrides, with that of a seed.
    pub(in crate::commands) fn overrides(&self, seed: Option<u64>) -> Vec<Override> {
        let policy = self.policy.as_deref().map(policy_override);
        common(&self.set, seed, self.duration).into_iter().chain(policy).collect()
    }
}

/// The files to write.
#[derive(Args, Clone, Default)]
pub(in crate::commands) struct Files {
    /// Directory for the results; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(in crate::commands) out: Option<PathBuf>,

    /// Write pcapng captures at the sending end of these links, with both directions; needs --out
    #[arg(long, value_name = "LINK,...", value_delimiter = ',', requires = "out")]
    pub(in crate::commands) capture: Vec<String>,

    /// Keep whole packets in captures, not only their headers
    #[arg(long, requires = "capture")]
    pub(in crate::commands) whole_packets: bool,
}

impl Files {
    /// Begins the captures of a run in `directory`.
    pub(in crate::commands) fn captures(&self, directory: &Path, network: &Network) -> Result<Captures> {
        let path = |link: &String| (link.clone(), directory.join(file(link)));
        let files: Vec<(String, PathBuf)> = self.capture.iter().map(path).collect();
        Ok(Captures::create(network, &files, self.whole_packets, "--capture")?)
    }
}
