//! Detection over simulated lines.
//!
//! Measurements against the servers of others, with real packets between namespaces (`scripts/live-tests.sh`). A test
//! whose server is not installed prints so and passes.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "the example prints all cases as a table")]
#[path = "../../examples/detect-table/cases.rs"]
mod cases;
mod detect;
mod detect_idle;
mod flent;
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
#[path = "../../../live/tests/it/hosts.rs"]
mod hosts;
mod iperf3;
mod irtt;
mod responsiveness;
mod servers;
#[path = "../../examples/detect-table/simulated.rs"]
mod simulated;
