//! The full link on the path of an application's data.
//!
//! The sender of an application has nothing to send while all its data wait in a queue of the network. Its own account
//! then says that the application is the limit; the link is.

use lastmile_model::outcome::FlowOutcome;

use super::run::Run;
use crate::bounds::Hold;
use crate::format::{self, to_f64};

/// The utilisation from which a link counts as full.
const FULL: f64 = 0.95;

impl Run<'_> {
    /// The fullest link or shaper on the path of a flow's data over its life, in words; `None` if none is full.
    pub(super) fn full_link(&self, flow: &FlowOutcome) -> Option<String> {
        let until = self.active_until(flow);
        let parts = || self.parts.iter().filter(|part| part.from < until && part.to > flow.start);
        let used = |link: usize, hold: Hold| {
            let bits: f64 = parts().map(|part| to_f64(part.wire_bits[link])).sum();
            let line = &self.network.links[link].hop.line;
            let could = parts().map(|part| match hold {
                Hold::Wire(limit) | Hold::Shaper(limit) => to_f64(limit.rate.as_bps()) * part.length_s(),
                Hold::Changing => line.rate_between(part.from, part.to).unwrap_or(0.0) * part.length_s(),
                Hold::Grants(_) => 0.0,
            });
            let could: f64 = could.sum();
            if could > 0.0 { bits / could } else { 0.0 }
        };
        let holds = flow.data_path.iter().flat_map(|index| {
            let link = &self.network.links[*index];
            Hold::of(link).into_iter().map(move |hold| (used(*index, hold), hold.words(link)))
        });
        let (busy, words) = holds.reduce(|a, b| if b.0 > a.0 { b } else { a })?;
        (busy >= FULL).then(|| format!("{words} ({} busy)", format::percent(busy.min(1.0))))
    }
}
