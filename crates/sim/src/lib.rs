//! The simulated clock: an event engine that drives the same datapath as live packets do.
//!
//! [`run`] simulates a [`Network`](lastmile_model::Network) and returns an [`Outcome`](lastmile_model::outcome::Outcome). [`Simulation`] does the
//! same step by step, for progress bars and interruptions.
//!
//! | file | what |
//! | --- | --- |
//! | `engine/wheel.rs` | what is pending, in order |
//! | `event.rs` | what can happen |
//! | `net.rs` | links, paths, conservation |
//! | `flow.rs` | the two ends of a flow, and where its state is |
//! | `cells.rs` | links that carry cells |
//! | `edges.rs` | what is done with packets before they become cells |
//! | `held.rs` | ACKs that an edge device holds back |
//! | `host/` | TCP transfers, datagram sources, pings, web users, swarms, replays |
//! | `owned.rs` | connections that come and go |
//! | `simulation.rs` | the loop over events |
//! | `sample.rs`, `report.rs` | series, totals |
//! | `memory.rs` | what a run holds |

mod cell_delays;
mod cells;
mod edges;
pub mod engine;
mod event;
mod flow;
mod held;
mod host;
mod losses;
pub mod memory;
mod net;
mod owned;
mod report;
mod route;
mod sample;
mod simulation;
mod tracks;
/// What applications decide, apart from the clock and from what carries their data: the lab's applications decide by the same.
pub mod sources {
    pub use crate::host::{Departures, Request, Session, Swarm};
}

pub use simulation::{Advance, Simulation, run};
