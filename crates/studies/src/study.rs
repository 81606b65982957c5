//! Studies: a scenario at many points of a space of parameters, each with several seeds.
//!
//! Every finished run is a file of one folder, under an address made of its inputs. So a study that was killed goes on,
//! nothing runs twice, and studies that share a folder share their runs. All points have the same seeds: differences
//! between points are then paired comparisons with common random numbers.
//!
//! | file | holds |
//! | --- | --- |
//! | `space.rs` | points: grids, paired lists, Latin hypercubes, and the values between two ends |
//! | `address.rs` | the address of a run |
//! | `store.rs` | the files of runs |
//! | `plan.rs` | the runs of a study: seeds by number, or until an interval is narrow enough |
//! | `table.rs` | the table: a row for each run |
//! | `statistics.rs` | means, intervals, paired differences |

pub mod address;
pub mod plan;
pub mod space;
pub mod statistics;
pub mod store;
pub mod table;

pub use plan::{Seeds, Study, Until};
pub use space::{Point, Space};
pub use store::Store;
pub use table::{Column, Table};
