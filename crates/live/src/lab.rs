//! Real hosts on an emulated line: two network namespaces, between them the hops of a scenario's path, and a traffic generator
//! that uses the kernel's own TCP.
//!
//! ```text
//!   client namespace             emulator: a thread, first in line            server namespace
//!   +--------------+            +------------------------------+             +--------------+
//!   | kernel TCP   |<--- TUN -->|  the hops of the path        |<--- TUN --->|   kernel TCP |
//!   +------^-------+            +--------------^---------------+             +------^-------+
//!          |                                   | "look now"                         |
//!          +------------------- generator: one thread, all sockets ----------------+
//! ```
//!
//! [`run`] does it all. The generator opens every connection, sends and receives without ever blocking, and reads `TCP_INFO` at the
//! sample interval and whenever the offered traffic changes; at the same moments the emulator looks at its queues. What comes out
//! is plain data ([`Outcome`]).
//!
//! What a host does is the kernel's: congestion control by name, windows by `TCP_WINDOW_CLAMP`, options by the namespace's
//! sysctls ([`Hosts`]).

mod datagrams;
mod echo;
mod generator;
mod hosts;
pub mod netns;
mod outcome;
mod plan;
mod transfer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lastmile_units::Instant;

use crate::clock::{Clock, MonotonicClock};
use crate::emulate::{self, Place, World};
use crate::error::Error;
use crate::stop::Stop;
use crate::sys::wait;

use generator::Generator;
pub use netns::Namespace;
pub use outcome::{FlowOutcome, FlowSample, Glance, LimitedTime, Outcome, Sample, TcpOutcome, TcpSample};
pub use plan::{Config, DatagramPlan, EchoPlan, End, Flow, Hosts, Kind, TransferPlan};

/// How often the caller hears how far it has come.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// Builds line and hosts, lets `flows` run for the time that `config` says, and takes everything away again. `stop` ends it
/// early; `tick` hears now and then how far it is.
///
/// # Errors
/// As [`World::build`]; a congestion control that the kernel lacks; a port that is taken; a device that went away.
pub fn run(config: &Config, flows: Vec<Flow>, stop: &Stop, tick: &mut dyn FnMut(Instant)) -> Result<Outcome, Error> {
    let client = hosts::namespace("client", &config.hosts)?;
    let server = hosts::namespace("server", &config.hosts)?;
    let mut tuning = config.line.tuning;
    // Root alone is not enough everywhere: in a container the kernel may refuse, and then it goes on as it can.
    tuning.realtime =
        tuning.realtime && thread::scope(|scope| scope.spawn(|| wait::run_first().is_ok()).join().unwrap_or(false));
    let line = emulate::Config {
        client: Place::Existing(client.name().to_owned()),
        server: Place::Existing(server.name().to_owned()),
        tuning,
        ..config.line.clone()
    };
    let mut world = World::build(&line)?;
    let addresses = [line.client_address, line.server_address];
    let mut generator = Generator::new(config, flows, [&client, &server], addresses)?;
    let clock = LabClock::start(world.clock());
    let over = AtomicBool::new(false);
    let handle = stop.handle()?;
    let mut glances = Vec::new();
    let (emulated, generated) = thread::scope(|scope| {
        let emulator = scope.spawn(|| {
            let result = world.run_watched(stop, |at, hops| {
                glances.push(Glance { at: clock.of(at), hops });
                !over.load(Ordering::Acquire) && stop.signal().is_none()
            });
            over.store(true, Ordering::Release);
            result
        });
        let hosts = scope.spawn(|| {
            let result = generator.run(clock, tuning.realtime, &handle, &over);
            over.store(true, Ordering::Release);
            handle.stop();
            result
        });
        while !(emulator.is_finished() && hosts.is_finished()) {
            thread::park_timeout(TICK);
            tick(clock.now());
        }
        (joined(emulator), joined(hosts))
    });
    let emulated = emulated?;
    generated?;
    Ok(generator.into_outcome(emulated, glances, tuning.realtime))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The emulator's clock, counted from when the traffic may begin.
#[derive(Clone, Copy, Debug)]
struct LabClock {
    clock: MonotonicClock,
    origin: Instant,
}

impl LabClock {
    fn start(clock: MonotonicClock) -> Self {
        Self { clock, origin: clock.now() }
    }

    /// A time of the emulator's clock.
    fn of(&self, at: Instant) -> Instant {
        Instant::ZERO + at.since(self.origin)
    }
}

impl Clock for LabClock {
    fn now(&self) -> Instant {
        self.of(self.clock.now())
    }
}
