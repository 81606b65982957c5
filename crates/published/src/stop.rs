//! Experiments that end before their time: another thread asks for it.
//!
//! The simulations of an experiment are some calls below it. So the request is of the thread, and each simulation looks
//! for it between slices of its work, which do not change its outcome.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_model::outcome::Outcome;
use lastmile_model::{BuildError, Network};
use lastmile_sim::{Advance, Simulation};
use lastmile_units::Instant;

use crate::error::ExperimentError;

/// Events and packets between two looks: about a millisecond.
const WORK: u64 = 4096;

thread_local! {
    static REQUEST: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Calls `work`. Once `is_over` is true, simulations that it begins or has begun end with [`ExperimentError::Stopped`].
pub fn stoppable<T>(is_over: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let before = REQUEST.replace(Some(Arc::clone(is_over)));
    let result = work();
    REQUEST.set(before);
    result
}

/// The outcome of `network`.
pub(crate) fn simulate(network: &Network) -> Result<Outcome, ExperimentError> {
    let refused = |error: BuildError| ExperimentError::Network(error.to_string());
    let mut simulation = Simulation::new(network, None).map_err(refused)?;
    let is_over = REQUEST.with_borrow(Clone::clone);
    if let Some(is_over) = is_over {
        let end = Instant::ZERO + network.duration;
        loop {
            if is_over.load(Ordering::Relaxed) {
                return Err(ExperimentError::Stopped);
            }
            if simulation.advance_by(end, WORK) == Advance::Reached {
                break;
            }
        }
    }
    Ok(simulation.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::publications;
    use crate::experiments::experiment;

    /// Simulations end between slices, and those of threads without a request are as ever.
    #[test]
    fn a_request_ends_the_simulations_of_its_thread_alone() {
        let publications = publications().unwrap();
        let publication = publications.iter().find(|known| known.key == "brouer2005").unwrap();
        let table = publication.tables.iter().find(|table| table.id == "fig-7.1").unwrap();
        let experiment = experiment("brouer2005", "fig-7.1").unwrap();
        let is_over = Arc::new(AtomicBool::new(true));
        let stopped = stoppable(&is_over, || experiment.part(table, 0)).unwrap_err();
        assert_eq!(stopped, ExperimentError::Stopped);
        is_over.store(false, Ordering::Relaxed);
        let sliced = stoppable(&is_over, || experiment.part(table, 0)).unwrap();
        assert_eq!(format!("{sliced:?}"), format!("{:?}", experiment.part(table, 0).unwrap()));
    }
}
