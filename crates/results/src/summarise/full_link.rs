//! The full link on the path of an application's data.
//!
//! The sender of an application has nothing to send while all its data wait in a queue of the network. Its own account
//! then says that the application is the limit; the link is.

use lastmile_model::outcome::FlowOutcome;

use super::run::Run;
use crate::bounds::Full;

impl Run<'_> {
    /// The fullest hold on the path of a flow's data over its life, in words; `None` if none is full.
    pub(super) fn full_link(&self, flow: &FlowOutcome) -> Option<String> {
        let until = self.active_until(flow);
        let parts = self.parts.iter().filter(|part| part.from < until && part.to > flow.start).cloned();
        let life = parts.reduce(|mut life, part| {
            life.join(part);
            life
        })?;
        let data = self.loads(&life);
        let full = match &self.shapes[flow.traffic] {
            Some(shape) => Full::of_data(self.network, shape, &life, &data),
            None => Full::of(self.network, &flow.data_path, &life, &data),
        }?;
        Some(format!("{} ({} busy)", full.words(), full.percent()))
    }
}
