//! The line emulator: real packets, through the same line as in the simulator, on the machine's clock.
//!
//! ```text
//!   client namespace                  this program                    server namespace
//!   +--------------+   read   +--------------------------+   write   +--------------+
//!   | hosts   TUN -|----------|-> Line up: queue, rate, -|-----------|-> TUN   hosts |
//!   |              |  write   |   encapsulation, delay   |    read   |              |
//!   |         TUN <-|---------|-- Line down             <-|----------|-- TUN         |
//!   +--------------+          +--------------------------+           +--------------+
//! ```
//!
//! [`World::build`] makes the namespaces and devices that [`Config`] asks for, [`World::run`] carries packets until it is told
//! to stop, and dropping the world removes what was made. Inside, one thread waits in ppoll(2) for packets of both sides, for
//! the next departure and for the end. What is in the line at the end is counted, not carried further.
//!
//! Every packet is accounted for ([`DirectionReport::is_balanced`]): received = too long + dropped by the line + queued +
//! in flight + sent + refused by the receiving device; what the kernel dropped before this program could read it is counted
//! apart.

mod engine;
mod report;
mod world;

pub use engine::{Emulator, EmulatorConfig};
pub use report::{CounterValue, DirectionReport, Ended, Outcome};
pub use world::{Config, Place, Side, Tuning, World};

use lastmile_queueing::{line, spec};

/// One direction: what the line is made of, and the queue in front of it.
#[derive(Clone, Debug)]
pub struct DirectionConfig {
    /// Rate, encapsulation, delay, loss.
    pub line: line::Config,
    /// The queue in front of the transmitter.
    pub queue: spec::Spec,
}
