//! Schedulers: whose packet goes next.

pub mod custom;
pub mod priority;

pub use custom::CustomQueueing;
pub use priority::Priority;
