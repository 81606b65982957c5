//! The line emulator: real packets, through the same line as in the simulator, on the machine's clock.
//!
//! ```text
//!   client namespace                     this program                      server namespace
//!   +--------------+   read   +------------------------------+   write   +--------------+
//!   | hosts   TUN -|----------|-> Line -> Line up -> Line   -|-----------|-> TUN   hosts |
//!   |              |  write   |   queue, rate, encapsulation |    read   |              |
//!   |         TUN <-|---------|-- Line <- Line down <- Line <-|----------|-- TUN         |
//!   +--------------+          +------------------------------+           +--------------+
//! ```
//!
//! It is a [`crate::bump`] whose hops are the access line itself, and what a scenario puts before and behind it (LAN,
//! aggregation, backbone), so that a round trip takes what it takes in the simulator.
//!
//! [`World::build`] makes the namespaces and devices that [`Config`] asks for, [`World::run`]
//! carries packets until it is asked to stop, and dropping the world removes what was made. Inside,
//! one thread waits in ppoll(2) for packets of both sides, for the next departure and for the end.
//! Packets in the line at the end are counted, not carried further.
//!
//! Every packet is accounted for ([`crate::bump::DirectionReport::is_balanced`]): received = too
//! long + dropped by a line + queued + in flight + sent + refused by the receiving device; what the
//! kernel dropped before this program could read it is counted apart.

mod config;
mod environment;
mod outcome;
mod server;
mod side;

pub use config::{Config, Place};
pub use environment::World;
pub use outcome::{Ended, Outcome};
pub use side::Side;

pub use crate::handle::{Handle, Snapshot};
pub use crate::pace::Tuning;
