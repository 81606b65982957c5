//! Studies: a scenario at many points of a space of parameters, each with several seeds.
//!
//! Every finished run is a file of one folder, under an address made of its inputs. So a study that was killed goes on,
//! nothing runs twice, and studies that share a folder share their runs. All points have the same seeds: differences
//! between points are then paired comparisons with common random numbers.
//!
//! | file | holds |
//! | --- | --- |
//! | `space.rs` | points: grids, paired lists, Latin hypercubes, and the values between two ends |
//! | `cases.rs` | settings of several keys under one name |
//! | `address.rs`, `identity.rs` | the address of a run; the identity of the engine, which is part of it |
//! | `store.rs` | the files of runs |
//! | `measured.rs` | the measures of a run, and their names |
//! | `single_run.rs` | one run: read, or simulated and kept |
//! | `seeds.rs` | the seeds of each point: by number, or until an interval is narrow enough |
//! | `plan.rs` | the runs of a study |
//! | `check.rs` | all points read before the first run |
//! | `file.rs` | a study from its file |
//! | `journal.rs` | `study.json`: how far a study is |
//! | `folder.rs` | a study in its folder |
//! | `page.rs` | the page of a study |
//! | `means.rs` | the table of means for people |
//! | `table.rs` | the table: a row for each run |
//! | `statistics.rs` | means, intervals, paired differences |

pub mod address;
pub mod cases;
pub mod check;
pub mod file;
pub mod folder;
#[cfg(test)]
mod identity;
pub mod journal;
pub mod means;
pub mod measured;
pub mod page;
pub mod plan;
mod seeds;
mod single_run;
pub mod space;
pub mod statistics;
pub mod store;
pub mod table;

pub use file::Described;
pub use plan::{Seeds, Study, Until};
pub use space::{Point, Space};
pub use store::Store;
pub use table::{Column, Table};
