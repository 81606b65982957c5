//! One run of a lab: line, hosts and generator are built, carry traffic for a given time, and are removed.
//!
//! The emulator and the generator have a thread each. The generator samples `TCP_INFO` at the sample interval and
//! whenever the offered traffic changes; at the same moments the emulator samples its queues.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lastmile_live::bump::Tap;
use lastmile_live::clock::Clock as _;
use lastmile_live::emulate::{self, Place, World};
use lastmile_live::stop::Stop;

use crate::error::Error;
use crate::generator::Generator;
use crate::hosts::{self, Hosts};
use crate::outcome::{Glance, Outcome};
use crate::progress::{Flows, Progress};
use crate::spec::{Config, Flow};

/// The interval at which the caller gets the progress.
const TICK: std::time::Duration = std::time::Duration::from_millis(250);

/// Builds line and hosts, runs `flows` for the time of `config`, and removes everything. The other arguments are those
/// of [`crate::plan::Plan::run`].
pub(crate) fn run(
    config: &Config,
    flows: Vec<Flow>,
    stop: &Stop,
    tap: Option<Box<Tap>>,
    tick: &mut dyn FnMut(&Progress<'_>),
) -> Result<Outcome, Error> {
    let client = hosts::namespace("client", &config.hosts)?;
    let server = hosts::namespace("server", &config.hosts)?;
    let tuning = config.line.tuning.as_allowed();
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
    let hosts = Hosts { namespaces: [&client, &server], devices: [&devices[0], &devices[1]] };
    let mut generator = Generator::new(config, flows, hosts)?;
    if let Some(tap) = tap {
        world.set_tap(tap);
    }
    let steered = world.steering(&config.autorates)?;
    // Pings end with the line.
    let never = Stop::new()?;
    let over = AtomicBool::new(false);
    let handle = stop.handle()?;
    let mut glances = Vec::new();
    let (line, progress) = (world.handle(), Flows::default());
    // The traffic may begin now.
    let clock = world.start_clock();
    let (outcomes, steered) = thread::scope(|scope| {
        let emulator = scope.spawn(|| {
            let result = world.run_watched(stop, |at, hops| {
                glances.push(Glance { at, hops });
                !over.load(Ordering::Acquire) && stop.signal().is_none()
            });
            over.store(true, Ordering::Release);
            result
        });
        let never = &never;
        let steered = steered
            .into_iter()
            .map(|(steering, mut reflectors)| scope.spawn(move || steering.run(&mut reflectors, never, &mut |_| {})));
        let steered: Vec<_> = steered.collect();
        let hosts = scope.spawn(|| {
            let result = generator.run(clock, tuning, (&handle, &progress), &over);
            over.store(true, Ordering::Release);
            handle.stop();
            result
        });
        while !(emulator.is_finished() && hosts.is_finished()) {
            thread::park_timeout(TICK);
            tick(&Progress { now: clock.now(), line: &line, flows: &progress });
        }
        let outcomes = (joined(emulator), joined(hosts));
        (outcomes, steered.into_iter().try_for_each(joined))
    });
    let (emulated, generated) = outcomes;
    let emulated = emulated?;
    generated?;
    steered?;
    Ok(generator.into_outcome(emulated, glances, tuning.realtime))
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
