//! Whole networks, run through the public interface.

mod build;
mod conservation;
mod determinism;
mod sources;
mod starvation;
mod timing;
