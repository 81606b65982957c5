//! Properties of every discipline, tested with random traffic.

mod cake;
mod contract;
mod damaged;
#[path = "../../../tcp/tests/it/diff.rs"]
mod diff;
mod disciplines;
mod drain;
mod fair;
mod golden;
mod hfsc;
mod managed;
#[path = "../../../tcp/tests/it/notation.rs"]
mod notation;
mod policers;
mod rates;
mod regeneration;
mod sender_view;
mod sharing;
mod traffic;
