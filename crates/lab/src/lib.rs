//! A scenario on real hosts: two network namespaces with the kernel's TCP, the scenario's line between them, and
//! generators of its traffic.
//!
//! ```text
//!   client namespace             emulator: a thread                           server namespace
//!   +--------------+            +------------------------------+             +--------------+
//!   | kernel TCP   |<--- TUN -->|  the hops of the path        |<--- TUN --->|   kernel TCP |
//!   +------^-------+            +--------------^---------------+             +------^-------+
//!          |                                   | "look now"                         |
//!          +------------------- generator: one thread, all sockets ----------------+
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`path`] | from a scenario's links to the hops between two of its nodes |
//! | [`plan`] | from a scenario to hosts, addresses and flows; warnings about what the kernel does differently |
//! | [`spec`] | the task of a run as plain data: hosts, flows, applications |
//! | `run` | one run ([`plan::Plan::run`]): hosts are made, traffic runs, everything is removed |
//! | `hosts` | network namespaces with TCP settings and addresses |
//! | `generator` | the sockets of both hosts in one thread: transfers by TCP and QUIC, datagrams, echo, applications |
//! | `descriptors` | enough descriptors for all sockets |
//! | [`capture`] | captures of real packets |
//! | [`control_sockets`] | the control sockets of this user's emulated lines |
//! | [`progress`] | the progress of a run, for a display |
//! | [`outcome`] | the outcome of a run as plain data |
//! | [`classes`] | the classes of a policy on a live line, in an interval |
//! | [`what_if`] | the traffic of the last minute through the hops of another policy |
//! | [`mod@line`] | the outcome of an emulated line, in the schema of every run |
//! | [`summary`] | the outcome of a run, in the schema of every run |
//! | [`error`] | why a scenario has no lab, or its run failed |
//!
//! The kernel is the host: sockets choose its congestion control by name and its windows by `TCP_WINDOW_CLAMP`, the
//! sysctls of a namespace its TCP options ([`spec::HostConfig`]).
//!
//! ```no_run
//! use lastmile_lab::plan::{Kernel, Plan};
//! use lastmile_live::stop::Stop;
//! use lastmile_scenario::Scenario;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = std::fs::read_to_string("line.toml")?;
//! let scenario = Scenario::parse("line.toml", &text, &[]).map_err(|report| format!("{report:?}"))?;
//! let plan = Plan::of(&scenario, None, Kernel::default())?;
//! let outcome = plan.run(&Stop::on_signals()?, None, &mut |_| ())?;
//! println!("{} bytes", outcome.flows[0].bytes_delivered);
//! # Ok(())
//! # }
//! ```
#![cfg(target_os = "linux")]

pub mod capture;
pub mod classes;
pub mod control_sockets;
mod descriptors;
pub mod error;
mod generator;
mod hosts;
pub mod line;
pub mod outcome;
pub mod path;
pub mod plan;
pub mod progress;
mod run;
pub mod spec;
pub mod summary;
pub mod what_if;

pub use error::Error;
