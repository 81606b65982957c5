//! `--memory`: the user's limit for simulations.

use clap::Args;
use lastmile_studies::memory::Memory;
use lastmile_units::ByteCount;

/// The user's limit.
#[derive(Args, Clone, Debug)]
pub(crate) struct Grant {
    /// Memory for all simulations together; a run with a larger need is refused, and one that
    /// exceeds it later is ended
    #[arg(long, value_name = "SIZE", default_value = "4 GiB")]
    memory: ByteCount,
}

impl Default for Grant {
    fn default() -> Self {
        Self { memory: ByteCount::new(4 << 30) }
    }
}

impl Grant {
    /// The limit, without runs.
    pub(crate) fn memory(&self) -> Memory {
        Memory::new(self.memory, "--memory")
    }
}
