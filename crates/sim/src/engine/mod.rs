//! The event engine: what is pending, in order of time, equal times in order of insertion.

mod wheel;

pub use wheel::{Handle, Wheel};
