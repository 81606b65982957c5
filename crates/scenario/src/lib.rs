//! The scenario file: read, check, build. One file describes a network for the simulated and the live clock.
//!
//! | module | holds |
//! | --- | --- |
//! | [`diagnostics`] | what is wrong with a file: place, caret, what would be right |
//! | `document` | the TOML tree in which each key knows its place, and `--set key=value` |
//! | `schema` | the table of all keys: kinds, defaults, ranges; reader and reference both come from it |
//! | `reader` | typed values out of the tree |

pub mod diagnostics;
