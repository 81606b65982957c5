//! Integration tests of the TCP endpoints.

mod arbitrary;
mod cubic_curve;
mod diff;
mod golden;
mod notation;
mod pair;
mod rack;
mod trace;
mod transfer;
