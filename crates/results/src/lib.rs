//! What comes of a run, in files and on the terminal: one schema for simulated, live and analysed runs.

pub mod schema;
