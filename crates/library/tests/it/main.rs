//! Tests of the whole library: every line, every home, every ready policy.

mod entries;
mod policies;
