//! Integration tests of the workspace: its layers, its words, its documents, and the user's view of
//! the terminal.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod analyse;
mod analyse_draws;
#[cfg(target_os = "linux")]
mod autorate;
mod captures;
mod captures_of_lines;
mod claims;
mod compare;
#[cfg(target_os = "linux")]
mod dashboard;
#[cfg(target_os = "linux")]
mod detect;
mod docs;
#[cfg(target_os = "linux")]
mod emulate;
#[cfg(target_os = "linux")]
mod hardship;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod hostile_text;
#[cfg(target_os = "linux")]
#[path = "../../../live/tests/it/hosts.rs"]
mod hosts;
mod json;
#[cfg(target_os = "linux")]
mod lab;
#[cfg(target_os = "linux")]
mod lab_applications;
mod lab_quic;
mod lab_repairs;
#[cfg(target_os = "linux")]
mod leftovers;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod live_view;
#[cfg(target_os = "linux")]
mod measure;
#[cfg(target_os = "linux")]
mod memory;
mod new;
mod openmetrics;
mod out;
mod plot;
mod policies;
#[cfg(target_os = "linux")]
#[path = "../../../terminal/tests/pty/mod.rs"]
mod pty;
#[cfg(target_os = "linux")]
mod reproduce;
#[cfg(target_os = "linux")]
mod shape;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod soak;
mod streams;
mod structure;
mod study;
#[cfg(target_os = "linux")]
mod tc;
#[cfg(target_os = "linux")]
mod tc_tools;
mod terminal;
#[cfg(target_os = "linux")]
mod timely;
mod trace;
mod transcript;
#[cfg(target_os = "linux")]
mod unit;
mod vantage;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod what_if;
mod workspace;
