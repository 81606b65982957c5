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

mod application;
mod datagrams;
mod echo;
mod generator;
mod hosts;
pub mod leftovers;
pub mod netns;
mod opener;
mod outcome;
mod plan;
mod replay;
mod transfer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lastmile_units::Instant;

use crate::clock::{Clock, MonotonicClock};
use crate::emulate::{self, Place, World};
use crate::error::{Context, Error};
use crate::stop::Stop;
use crate::sys::{limits, wait};

pub use crate::bump::{Passage, Tap};
use generator::Generator;
pub use netns::Namespace;
pub use outcome::{
    FlowOutcome, FlowSample, Glance, LimitedTime, Outcome, Sample, StreamOutcome, TcpOutcome, TcpSample,
};
pub use plan::{
    Application, ApplicationPlan, Config, DatagramPlan, EchoPlan, End, Flow, Hosts, Kind, Order, Pages, ReplayPlan,
    TransferPlan, Window,
};

/// How often the caller hears how far it has come.
const TICK: std::time::Duration = std::time::Duration::from_millis(200);

/// Descriptors of a process with a lab in it, beside those of flows.
const OTHER_DESCRIPTORS: u64 = 128;
/// Descriptors that a flow has at a time, at most: an application those of its connections.
const FLOW_DESCRIPTORS: u64 = 4;

/// Lets this process have the descriptors that so many flows and connections need; returns how many of them there is room for.
///
/// # Errors
/// The kernel does not tell.
pub fn make_room(flows: u64) -> Result<u64, Error> {
    let wanted = OTHER_DESCRIPTORS + FLOW_DESCRIPTORS * flows;
    let granted = limits::raise_descriptors(wanted).context(|| "asking how many descriptors there may be")?;
    Ok(granted.saturating_sub(OTHER_DESCRIPTORS) / FLOW_DESCRIPTORS)
}

/// Builds line and hosts, lets `flows` run for the time that `config` says, and takes everything away again. `stop` ends it
/// early; `tap` hears of every packet at every hop, at times counted from when the traffic may begin; `tick` hears now and then how far it is.
///
/// # Errors
/// As [`World::build`]; a congestion control that the kernel lacks; a port that is taken; a device that went away.
pub fn run(
    config: &Config,
    flows: Vec<Flow>,
    stop: &Stop,
    tap: Option<Box<dyn Tap>>,
    tick: &mut dyn FnMut(Instant),
) -> Result<Outcome, Error> {
    let client = hosts::namespace("client", &config.hosts)?;
    let server = hosts::namespace("server", &config.hosts)?;
    let mut tuning = config.line.tuning;
    // Root alone is not enough everywhere: in a container the kernel may refuse, and then it goes on as it can.
    tuning.realtime = tuning.realtime
        && crate::pace::Pace::new(tuning).is_ok()
        && thread::scope(|scope| scope.spawn(|| wait::run_first().is_ok()).join().unwrap_or(false));
    let line = emulate::Config {
        client: Place::Existing(client.name().to_owned()),
        server: Place::Existing(server.name().to_owned()),
        tuning,
        ..config.line.clone()
    };
    let mut world = World::build(&line)?;
    if world.client().address_v6().is_none() && flows.iter().any(|flow| flow.addresses[0].is_ipv6()) {
        return Err(Error::NoIpv6);
    }
    let devices = [world.client(), world.server()].map(|side| side.device().to_owned());
    let hosts = opener::Hosts { namespaces: [&client, &server], devices: [&devices[0], &devices[1]] };
    let mut generator = Generator::new(config, flows, hosts)?;
    let clock = LabClock::start(world.clock());
    if let Some(tap) = tap {
        world.set_tap(Box::new(FromOrigin { clock, tap }));
    }
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

/// A tap that hears times counted from when the traffic may begin.
struct FromOrigin {
    clock: LabClock,
    tap: Box<dyn Tap>,
}

impl Tap for FromOrigin {
    fn packet(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        self.tap.packet(self.clock.of(at), hop, passage, bytes);
    }
}

impl Clock for LabClock {
    fn now(&self) -> Instant {
        self.of(self.clock.now())
    }
}
