//! One file a command. Each has its `Arguments`, as clap reads them, and a `run` that does the job.

pub(crate) mod completions;
pub(crate) mod model;
pub(crate) mod overhead;
pub(crate) mod reproduce;
pub(crate) mod run;
