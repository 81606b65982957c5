//! The scenario file: read, check, build. One file describes a network for the simulated and the live clock.
//!
//! [`Scenario::load`] reads a TOML file with its `--set key=value` overrides. The result is checked and complete: a
//! [`lastmile_model::Network`] for the simulator, [`lastmile_model::Hop`]s for a live line. Otherwise a [`Report`]
//! lists all errors, with file, line, key and the expected form.
//!
//! | file | holds |
//! | --- | --- |
//! | `diagnostics.rs` | errors of every file that lastmile reads: position, caret, the expected form |
//! | `document.rs`, `overrides.rs` | the TOML tree in which each key knows its position; overrides: `key=value` |
//! | `kinds.rs` | scenario, policy or study: the kind of a file, by its keys |
//! | `file.rs` | the text of a file that a user names: what may be read, and how much |
//! | `files.rs` | the files that a scenario names, on the machine or in memory |
//! | `schema.rs` | the table of all keys: kinds, defaults, ranges; reader and reference both come from it |
//! | `reader.rs`, `value.rs` | typed values out of the tree |
//! | `scenario.rs` | the file as a whole |
//! | `access.rs`, `topology/`, `line.rs`, `delay.rs` | access line, nodes and links, one direction, its longest delay |
//! | `trace.rs`, `trace/` | capacity over time: formats of files, generators |
//! | `impairments.rs` | impairments of the wire |
//! | `queue/` | queues: keys and reader of each discipline, by the table of `lastmile_queueing::catalogue` |
//! | `cases.rs` | cases of a comparison |
//! | `traffic.rs`, `traffic/kinds.rs`, `names.rs`, `tcp.rs` | traffic: reader, keys, addresses, ports, TCP |
//! | `capture.rs`, `replay.rs` | capture files, and their packets as traffic |
//! | `policy/` | the policy file: line, classes, rules; the built-in policies |
//! | `atm/` | switches, links of cells, contracts, virtual channels |
//! | `study.rs` | the study file: points, seeds, measures |
//! | `json_schema.rs` | the schema of both files as JSON Schema, for editors |
//! | `reference.rs` | the reference of all keys, printed from the schema |

mod access;
mod apps;
mod atm;
pub mod capture;
mod cases;
mod delay;
pub mod diagnostics;
mod document;
mod endpoints;
pub mod file;
pub mod files;
mod grants;
mod impairments;
pub mod json_schema;
mod kinds;
mod line;
mod listener;
mod memory;
mod names;
mod overrides;
pub mod policy;
mod provider;
mod queue;
mod quic;
mod reader;
pub mod reference;
mod replay;
mod scenario;
mod schema;
pub mod study;
mod tcp;
mod topology;
pub mod trace;
mod traffic;
mod value;

pub use access::Access;
pub use cases::Case;
pub use diagnostics::{Diagnostic, Place, Report, Severity, Source};
pub use line::layer_meant;
pub use memory::Need;
pub use overrides::Override;
pub use policy::Policy;
pub use queue::code_point_named;
pub use scenario::Scenario;
pub use study::StudyFile;

#[cfg(test)]
mod tests;
