//! The cost of a cell at a hop, and the simulated time in which it is measured.

use lastmile_units::Duration;
use serde::{Deserialize, Serialize};

/// A tenth of the goal's simulated time.
pub(super) const MEASURED: Duration = Duration::from_s(18);
/// The simulated time for counting instructions.
pub(super) const BRIEF: Duration = Duration::from_ms(200);

/// The cost of a cell at a hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellCost {
    pub(super) what: String,
    pub(super) trains: bool,
    /// Cells sent, on all links.
    pub(super) cell_hops: u64,
    /// Cells sent on the trunk.
    pub(super) trunk_cells: u64,
    pub(super) ns_per_cell_hop: f64,
    pub(crate) instructions_per_cell_hop: Option<f64>,
}

impl CellCost {
    /// Instructions per cell and hop, from the `instructions` of a brief run.
    pub(crate) fn per_cell_hop(&self, instructions: u64) -> f64 {
        let brief = self.cell_hops as f64 * BRIEF.as_secs_f64() / MEASURED.as_secs_f64();
        instructions as f64 / brief
    }
}
