//! Integration tests of the TCP endpoints.

mod arbitrary;
mod bbr;
mod cubic_curve;
mod diff;
mod golden;
mod notation;
mod pair;
mod path;
mod rack;
mod trace;
mod transfer;
