//! One file per command. Each has its `Arguments`, which clap reads, and a `run` that executes the
//! command.

pub(crate) mod analyse;
pub(crate) mod compare;
pub(crate) mod completions;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
mod counters;
mod device;
#[cfg(target_os = "linux")]
pub(crate) mod emulate;
#[cfg(target_os = "linux")]
mod exposition;
pub(crate) mod history;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod links;
mod live_view;
pub(crate) mod man;
#[cfg(target_os = "linux")]
pub(crate) mod measure;
pub(crate) mod model;
pub(crate) mod new;
pub(crate) mod overhead;
pub(crate) mod plot;
pub(crate) mod policy;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
#[cfg(target_os = "linux")]
pub(crate) mod shape;
pub(crate) mod study;
pub(crate) mod tc;
#[cfg(target_os = "linux")]
mod ticker;
pub(crate) mod trace;
#[cfg(target_os = "linux")]
mod unit;
#[cfg(target_os = "linux")]
pub(crate) mod watch;
#[cfg(target_os = "linux")]
mod web;

use std::num::NonZeroUsize;

/// Parses a number of threads.
fn threads(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a number of at least 1 is needed".to_owned())
}
