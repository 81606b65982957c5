//! Schedulers by class: strict priority, custom queueing, HTB, CBQ and HFSC.

pub mod cbq;
pub mod custom;
mod heap;
pub mod hfsc;
pub mod htb;
pub mod priority;
mod proportion;
mod sharing;
pub mod tree;

pub use cbq::Cbq;
pub use custom::CustomQueueing;
pub use hfsc::Hfsc;
pub use htb::Htb;
pub use priority::Priority;
pub use proportion::in_proportion;
