//! Runs of scenarios: one, several seeds, comparisons, studies; and captures. Every door runs scenarios through this
//! crate.
//!
//! | file | holds |
//! | --- | --- |
//! | [`run`] | one run: a scenario advanced in slices, its result and its speed |
//! | [`variant`] | a run's label and its changes of the file |
//! | [`compare`], `compare/rows.rs` | runs that differ by policy, by values of keys or by case, and their table |
//! | [`captures`], `captures/` | captures analysed: connections, limits, fairness |
//! | [`recording`] | packets of links during a run, as pcapng |
//! | [`memory`] | memory of runs: estimated before they begin, and checked between slices |
//! | [`parallel`] | jobs on several threads, with results in the order of the jobs |
//! | [`study`], `study/` | thousands of runs over a space of parameters, kept by their addresses |
//! | [`error`] | why runs cannot begin or go on |

pub mod captures;
pub mod compare;
pub mod error;
pub mod memory;
pub mod parallel;
pub mod recording;
pub mod run;
pub mod study;
pub mod variant;

pub use error::Error;
pub use run::{Early, Finished, Input, Job, Watch, simulate, simulate_untimed};
pub use variant::Variant;
