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
//! Each direction is a path of hops, each hop a [`lastmile_queueing::line::Line`]: the access line itself, and what a scenario
//! puts before and behind it (LAN, aggregation, backbone), so that a round trip takes what it takes in the simulator.
//!
//! [`World::build`] makes the namespaces and devices that [`Config`] asks for, [`World::run`] carries packets until it is told
//! to stop, and dropping the world removes what was made. Inside, one thread waits in ppoll(2) for packets of both sides, for
//! the next departure and for the end. What is in the line at the end is counted, not carried further.
//!
//! Every packet is accounted for ([`DirectionReport::is_balanced`]): received = too long + dropped by a line + queued + in
//! flight + sent + refused by the receiving device; what the kernel dropped before this program could read it is counted
//! apart.

mod engine;
mod report;
mod world;

pub use engine::{Emulator, EmulatorConfig};
pub use report::{CounterValue, DirectionReport, Ended, HopReport, Outcome};
pub use world::{Config, Place, Side, Tuning, World};

use lastmile_queueing::{line, spec};

/// One hop of a path: a line, and the queue in front of it.
#[derive(Clone, Debug)]
pub struct HopConfig {
    /// Its name in reports. It also names the random stream of its losses, as in the simulator: `loss on link NAME`.
    pub name: String,
    /// Rate, encapsulation, delay, loss. The delay includes that of the node at its end.
    pub line: line::Config,
    /// The queue in front of the transmitter.
    pub queue: spec::Spec,
}
