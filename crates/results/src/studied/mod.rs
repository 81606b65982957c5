//! The page of a study: the varied keys, each measure against a key, and all runs.
//!
//! | file | holds |
//! | --- | --- |
//! | `model.rs` | keys, points and runs |
//! | `words.rs` | measures and their values in words |
//! | `design.rs` | which key is the axis, which has a line for each value, which a figure |
//! | `axis.rs` | an axis, and the values of a key on it |
//! | `figures.rs` | a measure against the axis, with 95 % intervals |
//! | `heat.rs` | a measure over two keys with numbers |
//! | `paired.rs` | differences between values of a key over equal seeds |
//! | `rows.rs` | the runs, or the points of too many, as a table |
//! | `page.rs` | all of them as a page |

mod axis;
mod design;
mod figures;
mod heat;
mod model;
mod page;
mod paired;
mod rows;
#[cfg(test)]
mod tests;
mod words;

pub use self::model::{Key, Run, Study, Value};
pub use self::page::page;
pub use self::words::{unit, units};
