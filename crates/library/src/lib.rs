//! Access lines and households as data, and the scenarios made of them.
//!
//! A line (`library/lines/NAME.toml`) is the `[access]` part of a scenario, a home (`library/homes/NAME.toml`) its
//! `[[traffic]]`. [`Line::with`] writes both into one commented scenario file. Every value of a line has a comment with
//! its source, or says that it is an estimate.
//!
//! | file | holds |
//! | --- | --- |
//! | `embedded.rs` | the embedded files, and entries found by name |
//! | `entry.rs` | one file: what it says about itself, and the part that goes into a scenario |
//! | `compose.rs` | a scenario made of a line and a home |
//! | `need.rs` | the rates that a home needs, compared with those of the line |

mod compose;
mod embedded;
mod entry;
mod need;

pub use compose::Composed;
pub use embedded::{Unknown, home, homes, line, lines};
pub use entry::{Home, Line};
