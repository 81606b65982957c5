//! Schedulers by class: strict priority, custom queueing, HTB and CBQ.

pub mod cbq;
pub mod custom;
pub mod htb;
pub mod priority;
mod sharing;
pub mod tree;

pub use cbq::Cbq;
pub use custom::CustomQueueing;
pub use htb::Htb;
pub use priority::Priority;
