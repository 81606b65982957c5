//! A table that is also measured with real packets.

use lastmile_model::Network;
use lastmile_model::outcome::Outcome;
use lastmile_scenario::Scenario;

use crate::data::Table;
use crate::error::ExperimentError;
use crate::reproduction::TableResult;

/// A laboratory runs a scenario with real packets and returns the network with its outcome. The
/// error gives the reason where it did not run.
pub type Lab<'a> = dyn FnMut(&Scenario) -> Result<(Network, Outcome), String> + 'a;

/// How a table is measured with real packets, after it was simulated.
#[derive(Clone, Copy, Debug)]
pub struct LiveExperiment {
    /// Key of the publication.
    pub publication: &'static str,
    /// Id of the table.
    pub table: &'static str,
    /// Duration of all its runs together.
    pub seconds: u64,
    /// Runs them, and adds what they gave to the table's rows and claims.
    pub run: fn(&Table, &mut TableResult, &mut Lab<'_>) -> Result<(), ExperimentError>,
}

impl LiveExperiment {
    /// Simulates the very runs of which the live figures will come, and sets what they give next to these.
    ///
    /// # Errors
    /// As those of the runs.
    pub fn simulate(&self, table: &Table, result: &mut TableResult) -> Result<(), ExperimentError> {
        let mut simulated = result.clone();
        (self.run)(table, &mut simulated, &mut |scenario| {
            let network = scenario.network();
            let outcome = lastmile_sim::run(&network).map_err(|error| error.to_string())?;
            Ok((network, outcome))
        })?;
        for (row, simulated) in result.rows.iter_mut().zip(simulated.rows) {
            row.live_simulated = simulated.live;
        }
        Ok(())
    }
}
