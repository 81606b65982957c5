//! A run: hosts on a network, driven from event to event.
//!
//! | file | contents |
//! | --- | --- |
//! | `state.rs` | the state of a run |
//! | `setup.rs` | the state before the first event |
//! | `event_loop.rs` | the loop over events |
//! | `flow_events.rs` | events of applications: start, stop, the next packet |
//! | `delivery.rs` | packets that reach a host, and packets that it sends |
//! | `connections.rs` | connections that web users and swarms open |

mod connections;
mod delivery;
mod event_loop;
mod flow_events;
mod setup;
pub(crate) mod state;

pub use event_loop::{Advance, run};
pub use state::Simulation;
