//! The simulated clock: an event engine that drives the datapath of live packets.
//!
//! [`run`] simulates a [`Network`](lastmile_model::Network) and returns an
//! [`Outcome`](lastmile_model::outcome::Outcome). [`Simulation`] does it step by step, for progress bars and
//! interruptions.
//!
//! | folder | contents |
//! | --- | --- |
//! | `engine/` | the pending set: events in order of time |
//! | `network/` | links, routes and the flow table: packets are forwarded here |
//! | `atm/` | links that carry cells, and the devices at their edges |
//! | `hosts/` | transfers, datagram sources, pings, web users, videos, backups, conferences, games, swarms, replays |
//! | `simulation/` | the loop: events fire here, and hosts receive and send packets |
//! | `record/` | one-way delays, series, and the outcome of a run |
//! | `memory.rs` | an estimate of the memory of a run |

mod atm;
pub mod engine;
mod hosts;
pub mod memory;
mod network;
mod record;
mod simulation;
/// The decisions of applications, apart from the clock, from connections and from sockets. The lab's applications use
/// the same code.
pub mod sources {
    pub use crate::hosts::{Browse, DataCounts, Departures, Dialogue, Request, Swarm, Turns, User, UserOutcome};
}

pub use simulation::{Advance, Simulation, run};
