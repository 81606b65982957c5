//! Controllers that move the rates of shapers while a network runs.

use lastmile_queueing::autorate;

use crate::node::NodeIndex;

/// A controller of the shapers of both directions of a line ([`autorate`]), in a router that pings a reflector.
#[derive(Clone, Debug)]
pub struct Autorate {
    /// Its parameters.
    pub controller: autorate::Config,
    /// Indices of the links whose queues it steers: down, up.
    pub shapers: [usize; 2],
    /// The node that pings.
    pub from: NodeIndex,
    /// The node that answers, for all reflectors.
    pub reflector: NodeIndex,
}

impl Autorate {
    /// The name of its pings in errors.
    pub const PINGS: &str = "pings of autorate";

    /// The flow numbers that it takes: one for each reflector, and one for its clock.
    #[must_use]
    pub fn flows(&self) -> u32 {
        self.controller.pings.no_pingers + 1
    }
}
