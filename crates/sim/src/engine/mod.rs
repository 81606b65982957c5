//! The event engine: events in order of time, equal times in order of insertion.

pub(crate) mod event;
mod wheel;

pub use wheel::{Handle, Wheel};
