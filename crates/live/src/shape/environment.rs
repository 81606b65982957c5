//! The surroundings of a middlebox's queues: two interfaces, the bridge below them, the loop.

use std::os::fd::AsFd;
use std::sync::Arc;

use lastmile_packet::HashKey;
use lastmile_units::{Duration, Instant};

use super::bridge::Bridge;
use super::direction::Direction;
use super::handle::Handle;
use crate::bump::{Bump, BumpConfig, Queues};
use crate::clock::{Clock, MonotonicClock};
use crate::error::{Context, Error};
use crate::forwarding_loop::{Woken, carry, finish};
use crate::handle::{Asked, Draws, Inbox, Snapshot};
use crate::holder::Program;
use crate::io::{Counters, Device, Interface, Path};
use crate::links::Links;
use crate::netns::Namespace;
use crate::pace::{Pace, Tuning};
use crate::stop::Stop;
use crate::sys::random;

/// A middlebox and where it stands.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace of the interfaces; `None` for that of the caller.
    pub namespace: Option<String>,
    /// The interface of the LAN.
    pub lan: String,
    /// The interface of the line.
    pub wan: String,
    /// The name of the bridge that those of them become ports of that are ports of nothing. It is made unless it
    /// exists, and stays.
    pub make_bridge: Option<String>,
    /// From the LAN to the line.
    pub up: Direction,
    /// From the line to the LAN.
    pub down: Direction,
    /// By what packets come and go.
    pub path: Path,
    /// How hard to try to be on time.
    pub tuning: Tuning,
    /// Whether the headers of packets are recorded, for [`crate::handle::Handle::replay`].
    pub records: bool,
}

/// The middlebox in its place. Dropping it leaves the line to the bridge.
pub struct World {
    bump: Bump,
    lan: Side,
    wan: Side,
    bridge: String,
    links: Arc<Links>,
    clock: MonotonicClock,
    pace: Pace,
    inbox: Inbox,
    started: Instant,
    hand_overs: u64,
}

/// Busy machines wake a program up milliseconds late, which must not cost rate; one that was
/// stopped or moved sleeps for longer.
const CATCH_UP: Duration = Duration::from_ms(100);

/// An interface that the bridge gets nothing from.
struct Side {
    interface: Interface,
    name: String,
}

impl World {
    /// Builds the queues, checks the interfaces, and takes the place of the bridge under them.
    ///
    /// # Errors
    /// A queue that cannot be built, missing rights, an interface that is missing, down or not a
    /// port of the bridge that the other one is a port of, or a kernel that is too old. Then
    /// nothing is changed: a bridge that was made is removed, and an interface that has joined one leaves it.
    pub fn build(config: &Config) -> Result<Self, Error> {
        let hash_key = HashKey::new(random::bytes().context(|| "asking for random bytes")?);
        // The wires of a middlebox lose nothing.
        let draws = Draws { seed: 0, hash_key };
        let mut bump = Bump::new(&BumpConfig {
            up: vec![config.up.hop("up")],
            down: vec![config.down.hop("down")],
            // The interfaces have MTUs of their own, which the kernel keeps.
            mtu: u16::MAX,
            seed: draws.seed,
            hash_key,
        })?;
        bump.make_up_for_at_most(CATCH_UP);
        if config.records {
            bump.record();
        }
        let namespace = config.namespace.as_deref().map(Namespace::open).transpose()?;
        let bridge = Bridge::under(namespace.as_ref(), &config.lan, &config.wan, config.make_bridge.as_deref())?;
        Self::above(config, bump, &bridge.name, (namespace.as_ref(), draws))
            .inspect_err(|_| bridge.undo(namespace.as_ref()))
    }

    /// Takes the place of the bridge.
    fn above(
        config: &Config,
        bump: Bump,
        bridge: &str,
        (namespace, draws): (Option<&Namespace>, Draws),
    ) -> Result<Self, Error> {
        let [lan, wan] = [&config.lan, &config.wan].map(|name| {
            let interface = Interface::open(namespace, name, config.path, Program::Shape)?;
            Ok::<_, Error>(Side { interface, name: name.clone() })
        });
        let links = Links::of(&[(namespace, &config.lan), (namespace, &config.wan)])?;
        let clock = MonotonicClock::start();
        let started = clock.now();
        let (pace, inbox) = (Pace::new(config.tuning)?, Inbox::new(draws)?);
        let (bridge, links) = (bridge.to_owned(), Arc::new(links));
        Ok(Self { bump, lan: lan?, wan: wan?, bridge, links, clock, pace, inbox, started, hand_overs: 0 })
    }

    /// The bridge that carries on when this program does not.
    #[must_use]
    pub fn bridge(&self) -> &str {
        &self.bridge
    }

    /// The interfaces, for other threads to look at.
    #[must_use]
    pub fn links(&self) -> Arc<Links> {
        Arc::clone(&self.links)
    }

    /// By what packets come and go on the side of the LAN and on that of the line, and why.
    #[must_use]
    pub fn paths(&self) -> [&str; 2] {
        [&self.lan, &self.wan].map(|side| side.interface.path.as_str())
    }

    /// For other threads, to ask for reports and other queues while this one runs.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(self.inbox.handle())
    }

    /// Carries packets until `stop`, or until a [`Handle`] says so, and returns the counters. From
    /// then on the bridge carries what comes, and this program its backlog, for a second at most:
    /// what waits then is lost, also at a second `stop`. The calling thread gets punctual timers
    /// and, if [`Tuning::realtime`] says so, a higher priority, and keeps both. Pending requests of
    /// a [`Handle`] get an error at the end.
    ///
    /// # Errors
    /// A device is gone, or the priority was refused.
    pub fn run(mut self, stop: &Stop) -> Result<Snapshot, Error> {
        self.pace.tuning.apply()?;
        loop {
            let watched = [Some(stop.as_fd()), Some(self.inbox.waiting.as_fd()), None];
            let ports: [&mut dyn Device; 2] = [&mut *self.lan.interface.device, &mut *self.wan.interface.device];
            match carry(&mut self.bump, &self.clock, &mut self.pace, ports, watched, None)? {
                Woken::Watched(0) => break,
                _ if self.answer()? => break,
                _ => {}
            }
        }
        self.leave(stop)?;
        self.snapshot()
    }

    /// Leaves the line to the bridge, and carries what came before.
    fn leave(&mut self, stop: &Stop) -> Result<(), Error> {
        stop.rearm().context(|| "reading signals")?;
        let Self { bump, lan, wan, clock, pace, .. } = self;
        lan.interface.let_go();
        wan.interface.let_go();
        finish(bump, clock, pace, [&mut *lan.interface.device, &mut *wan.interface.device], stop.as_fd())
    }
}

impl Asked for World {
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let uptime = self.clock.now() - self.started;
        let (mut up, mut down) = self.bump.reports();
        [up.port, down.port] = self.ports()?;
        Ok(Snapshot { uptime, hand_overs: self.hand_overs, up, down })
    }

    fn ports(&mut self) -> Result<[Counters; 2], Error> {
        let counters = |side: &mut Side| {
            side.interface.device.counters().context(|| format!("reading the counters of {}", side.name))
        };
        Ok([counters(&mut self.lan)?, counters(&mut self.wan)?])
    }

    fn bump(&mut self) -> (&mut Bump, Instant) {
        (&mut self.bump, self.clock.now())
    }

    fn hand_over(&mut self, queues: Queues) {
        self.bump.hand_over(queues);
        self.hand_overs += 1;
    }
}
