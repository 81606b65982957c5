//! Real packets through emulated lines: they need root, network namespaces and TUN devices, so they
//! run only when asked for (`scripts/live-tests.sh`), each in a process of its own, and those one
//! at a time that measure how late or how fast something is.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bridge;
mod carrier;
mod exact;
mod frames;
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod hosts;
mod htb;
mod joined_frames;
mod kernel_rules;
mod lifecycle;
mod line;
mod opportunities;
mod planned_end;
mod queue_control;
mod shape;
mod unregulated;
mod world;
