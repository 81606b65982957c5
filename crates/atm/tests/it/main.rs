//! Networks of ATM, as those who use the crate see them.

mod network;
mod trials;
