//! Schedulers: whose packet goes next.

pub mod priority;

pub use priority::Priority;
