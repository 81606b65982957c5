//! The simulated clock: an event engine that drives the same datapath as live packets do.
//!
//! [`spec::Network`] says what there is; [`run`] simulates it and returns an [`outcome::Outcome`].

pub mod outcome;
pub mod spec;
