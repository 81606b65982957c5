//! Integration tests of the TCP endpoints.

mod arbitrary;
mod cubic_curve;
mod golden;
mod pair;
mod trace;
mod transfer;
