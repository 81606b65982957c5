//! The surroundings of an emulated line: namespaces, devices, a command, the loop that wakes up.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus};

use lastmile_packet::HashKey;
use lastmile_queueing::autorate;
use lastmile_units::{Duration, Instant};

use super::config::{Config, Place};
use super::server::Server;
use super::side::{CLIENT, Side};
use super::{Ended, Outcome};
use crate::autorate::{Reflectors, Steering};
use crate::bump::{Bump, BumpConfig, HopGlance, Queues, Tap};
use crate::clock::{Clock, MonotonicClock};
use crate::error::{Context, Error};
use crate::forwarding_loop::{self, carry};
use crate::handle::{Asked, Draws, Handle, Inbox, Snapshot};
use crate::io::Counters;
use crate::links::Links;
use crate::pace::Pace;
use crate::stop::Stop;
use crate::sys::{random, wait};

/// Time in which a command must end after the signal that ended the run.
const GRACE: Duration = Duration::from_s(5);

/// The line with its ends in place. Dropping it removes the devices and the namespaces that were made.
pub struct World {
    bump: Bump,
    // It goes before the end that it stands at.
    serving: Option<Server>,
    client: Side,
    server: Side,
    clock: MonotonicClock,
    pace: Pace,
    inbox: Inbox,
}

impl World {
    /// Makes the line, the namespaces and the devices.
    ///
    /// # Errors
    /// A queue that cannot be built, missing rights, no TUN driver, or a namespace that does not
    /// exist. Everything made before the error is removed.
    pub fn build(config: &Config) -> Result<Self, Error> {
        if config.client == config.server && !matches!(config.client, Place::New | Place::Unnamed) {
            return Err(Error::SamePlace);
        }
        let interfaces = [&config.client, &config.server].map(|place| matches!(place, Place::Interface { .. }));
        if interfaces[0] != interfaces[1] {
            return Err(Error::MixedEnds);
        }
        if config.up.is_empty() || config.down.is_empty() {
            return Err(Error::NoHops);
        }
        let hash_key = HashKey::new(random::bytes().context(|| "asking for random bytes")?);
        let draws = Draws { seed: config.seed, hash_key };
        let mut bump = Bump::new(&BumpConfig {
            up: config.up.clone(),
            down: config.down.clone(),
            // An interface has an MTU of its own, which the kernel keeps.
            mtu: if interfaces[0] { u16::MAX } else { config.mtu },
            seed: config.seed,
            hash_key,
        })?;
        if config.records {
            bump.record();
        }
        let client = Side::build(config, &config.client, CLIENT, (config.client_address, config.client_address_v6))?;
        let server = Side::build(config, &config.server, "server", (config.server_address, config.server_address_v6))?;
        let (clock, pace, inbox) = (MonotonicClock::start(), Pace::new(config.tuning)?, Inbox::new(draws)?);
        Ok(Self { bump, serving: None, client, server, clock, pace, inbox })
    }

    /// The end whose packets go up.
    #[must_use]
    pub fn client(&self) -> &Side {
        &self.client
    }

    /// The end whose packets go down.
    #[must_use]
    pub fn server(&self) -> &Side {
        &self.server
    }

    /// Starts `command` at the server's end, and returns when it can be reached by TCP or UDP;
    /// after five seconds anyway, and when it ends or `stop` says so. It and its children end when
    /// the world does.
    ///
    /// # Errors
    /// There is no such program.
    pub fn serve(&mut self, stop: &Stop, command: &mut Command) -> Result<(), Error> {
        self.serving = Some(Server::start(&self.server, command, stop)?);
        Ok(())
    }

    /// How the command at the server's end has ended by itself; `None` while it runs, and if there is none.
    #[must_use]
    pub fn server_ended(&self) -> Option<ExitStatus> {
        self.serving.as_ref().and_then(Server::ended)
    }

    /// The interfaces of a line between two, for other threads to look at.
    ///
    /// # Errors
    /// An interface is gone.
    pub fn links(&self) -> Result<Option<Links>, Error> {
        let sides = [&self.client, &self.server];
        let interfaces = sides.map(|side| (side.namespace(), side.device()));
        sides[0].is_interface().then(|| Links::of(&interfaces)).transpose()
    }

    /// For each controller and the hops of its shapers, down and up (hops up are numbered first): the steering of
    /// these, and the sockets for [`Steering::run`]. Pings go from the client's end to the server's.
    ///
    /// # Errors
    /// The ends are interfaces, behind which no host is known; pings that no live program sends; missing rights.
    pub fn steering(
        &self,
        controllers: &[(autorate::Config, [usize; 2])],
    ) -> Result<Vec<(Steering, Reflectors)>, Error> {
        let steered = |(config, hops): &(autorate::Config, [usize; 2])| {
            let server = self.server.address().ok_or(Error::NoReflector)?;
            let reflectors = Reflectors::open(self.client.namespace(), &[server.into()])?;
            let steering = Steering::new(self.handle(), *hops, reflectors.len());
            steering.begin(Some(config), || Ok(()))?;
            Ok((steering, reflectors))
        };
        controllers.iter().map(steered).collect()
    }

    /// For other threads, to ask for reports while this one runs, once.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.inbox.handle()
    }

    /// Carries packets until `stop` or a [`Handle`] says so, or until `limit` has passed. Between
    /// two interfaces the rest of the kernel then has what comes, and packets in the line arrive,
    /// for a second at most and until another `stop`. The calling thread gets punctual timers and, if
    /// [`Tuning::realtime`](crate::pace::Tuning::realtime) says so, a higher priority, and keeps both.
    ///
    /// # Errors
    /// A device is gone, or the priority was refused.
    pub fn run(&mut self, stop: &Stop, limit: Option<Duration>) -> Result<Outcome, Error> {
        self.begin()?;
        let ended = match self.carry(stop, None, limit.map(|limit| Instant::ZERO + limit))? {
            Woken::Stop => stop.signal().map_or(Ended::Asked, Ended::Signal),
            Woken::Asked => Ended::Asked,
            Woken::Time | Woken::Child => Ended::Limit,
        };
        self.leave(stop)?;
        self.outcome(ended)
    }

    /// Carries packets while `command` runs at the client's end. At a `stop` the command gets the
    /// signal that came (SIGTERM if none did), and some seconds before it is killed.
    ///
    /// # Errors
    /// As [`World::run`]; and there is no such program.
    pub fn run_command(&mut self, stop: &Stop, command: &mut Command) -> Result<Outcome, Error> {
        let mut child = self.client.spawn(command)?;
        let result = self.carry_for(stop, &mut child);
        if result.is_err() {
            // The command does not outlive its line, whatever the error.
            let _ = child.kill();
            let _ = child.wait();
        }
        result
    }

    /// Carries packets until `look` says no, which is asked whenever `stop` becomes readable and
    /// gets the time and what the hops hold then, those up and then those down. The time is that of
    /// [`World::start_clock`], which is to be called before.
    ///
    /// # Errors
    /// As [`World::run`].
    pub fn run_watched(
        &mut self,
        stop: &Stop,
        mut look: impl FnMut(Instant, Vec<HopGlance>) -> bool,
    ) -> Result<Outcome, Error> {
        self.pace.tuning.apply()?;
        while let Woken::Stop = self.carry(stop, None, None)? {
            stop.rearm().context(|| "reading signals")?;
            self.turn()?;
            let now = self.clock.now();
            if !look(now, self.bump.glance(now)) {
                break;
            }
        }
        self.outcome(stop.signal().map_or(Ended::Asked, Ended::Signal))
    }

    /// From now on `tap` hears of every packet that passes a hop.
    pub fn set_tap(&mut self, tap: Box<Tap>) {
        self.bump.set_tap(tap);
    }

    /// The time of the line begins: traces do, and no packet has arrived earlier. The clock of all its times, in
    /// which it is zero now.
    pub fn start_clock(&mut self) -> MonotonicClock {
        self.clock = MonotonicClock::start();
        self.clock
    }

    fn carry_for(&mut self, stop: &Stop, child: &mut Child) -> Result<Outcome, Error> {
        // The kernel's handle, not the number, which could pass to another process.
        let handle = wait::process_handle(child.id()).context(|| "watching the command")?;
        self.begin()?;
        let mut until = None;
        loop {
            match self.carry(stop, Some(&handle), until)? {
                Woken::Child => break,
                Woken::Stop | Woken::Asked => {
                    stop.rearm().context(|| "reading signals")?;
                    let signal = stop.signal().unwrap_or(signal_hook::consts::SIGTERM);
                    wait::signal(&handle, signal).context(|| "ending the command")?;
                    until = until.or(Some(self.clock.now() + GRACE));
                }
                Woken::Time => {
                    child.kill().context(|| "ending the command")?;
                    break;
                }
            }
        }
        let status = child.wait().context(|| "waiting for the command")?;
        self.outcome(Ended::Command(status))
    }

    fn begin(&mut self) -> Result<(), Error> {
        self.pace.tuning.apply()?;
        self.start_clock();
        Ok(())
    }

    fn carry(&mut self, stop: &Stop, child: Option<&OwnedFd>, until: Option<Instant>) -> Result<Woken, Error> {
        // Whoever waits for an answer of a world that has failed hears that there is none.
        self.carry_on(stop, child, until).inspect_err(|_| self.inbox.close())
    }

    fn carry_on(&mut self, stop: &Stop, child: Option<&OwnedFd>, until: Option<Instant>) -> Result<Woken, Error> {
        loop {
            let Self { bump, client, server, clock, pace, inbox, .. } = self;
            let watched = [child.map(AsFd::as_fd), Some(stop.as_fd()), Some(inbox.waiting.as_fd())];
            match carry(bump, clock, pace, [client.port(), server.port()], watched, until)? {
                forwarding_loop::Woken::Watched(0) => return Ok(Woken::Child),
                forwarding_loop::Woken::Watched(1) => return Ok(Woken::Stop),
                forwarding_loop::Woken::Watched(_) if self.answer()? => return Ok(Woken::Asked),
                forwarding_loop::Woken::Watched(_) => {}
                forwarding_loop::Woken::Time => return Ok(Woken::Time),
            }
        }
    }

    /// Leaves interfaces to the rest of the kernel, and carries what came before.
    fn leave(&mut self, stop: &Stop) -> Result<(), Error> {
        let Self { bump, client, server, clock, pace, .. } = self;
        // Not lazily: both are to be left.
        if client.let_go() | server.let_go() {
            stop.rearm().context(|| "reading signals")?;
            forwarding_loop::finish(bump, clock, pace, [client.port(), server.port()], stop.as_fd())?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Error> {
        self.bump.turn(&self.clock, self.client.port(), self.server.port()).context(|| "reading packets")
    }

    fn outcome(&mut self, ended: Ended) -> Result<Outcome, Error> {
        self.inbox.close();
        let Snapshot { uptime: elapsed, up, down, .. } = self.snapshot()?;
        Ok(Outcome { ended, elapsed, up, down })
    }
}

impl Asked for World {
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let uptime = self.clock.now() - Instant::ZERO;
        let (mut up, mut down) = self.bump.reports();
        [up.port, down.port] = self.ports()?;
        Ok(Snapshot { uptime, hand_overs: 0, up, down })
    }

    fn ports(&mut self) -> Result<[Counters; 2], Error> {
        let counters =
            |side: &mut Side| side.port().counters().context(|| format!("reading the counters of {}", side.device()));
        Ok([counters(&mut self.client)?, counters(&mut self.server)?])
    }

    fn bump(&mut self) -> (&mut Bump, Instant) {
        (&mut self.bump, self.clock.now())
    }

    fn hand_over(&mut self, _: Queues) {
        // The queues are the line's own. Nobody can ask for others; whoever did would see that they are not taken.
    }
}

/// Why the loop came back.
enum Woken {
    Stop,
    /// A [`Handle`] said that it is over.
    Asked,
    Child,
    Time,
}
