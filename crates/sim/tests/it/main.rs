//! Whole networks, run through the public interface.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::float_cmp,
    reason = "tests may panic, and compare threads"
)]

mod ack_regulation;
mod aqm;
mod autorate;
mod backup;
mod build;
mod cells;
mod conference;
mod connections;
mod conservation;
mod determinism;
mod game;
mod ip_versions;
mod quic;
mod regeneration;
mod senders;
mod sources;
mod starvation;
mod throughput;
mod timing;
mod transfers;
mod video;
mod web;
