//! The applications on both hosts, in one thread: every socket of both namespaces in one wait.
//!
//! Connections of applications are opened while the lab runs: the generator's thread enters the namespace of the end
//! that opens, and needs its own namespace for nothing else.

mod application;
mod connection;
mod datagrams;
mod dialogue;
mod echo;
mod octets;
mod quic;
mod replay;
mod sockets;
mod source;
mod transfer;
mod udp;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_live::clock::{Clock, MonotonicClock, std_span};
use lastmile_live::emulate::{self, Tuning};
use lastmile_live::error::Context;
use lastmile_live::stop::StopHandle;
use lastmile_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::Error;
use crate::hosts::Hosts;
use crate::outcome::{FlowOutcome, FlowSample, Glance, Outcome, Sample};
use crate::progress::Flows;
use crate::spec::{Config, End, Flow};

use self::application::Side;
use self::replay::Catcher;
use self::sockets::{Listener, Opener};
use self::source::Source;

/// The longest wait: afterwards the generator looks whether the emulator has ended.
const LONGEST_WAIT: Duration = Duration::from_ms(100);

/// The interval at which the progress is published. The generator wakes up for nothing else meanwhile, so that the
/// interval may last up to [`LONGEST_WAIT`] longer.
const PUBLISH: Duration = Duration::from_ms(250);

pub(crate) struct Generator<'a> {
    hosts: Hosts<'a>,
    flows: Vec<Running>,
    listeners: Vec<Listener>,
    catchers: [Option<Catcher>; 2],
    duration: Duration,
    interval: Option<Duration>,
    samples: Vec<Sample>,
    refused: Vec<String>,
    latest: Duration,
}

/// A flow, and its progress.
struct Running {
    name: String,
    from: End,
    /// The phase that begins with its traffic; `None` once it has begun.
    phase: Option<Instant>,
    start: Instant,
    stop: Option<Instant>,
    dscp: u8,
    begun: bool,
    stopped: bool,
    source: Source,
}

/// The owner of a descriptor in a wait.
#[derive(Clone, Copy)]
enum Who {
    Listener(usize),
    Catcher(End),
    /// A flow: its only descriptor, or the one of the sending end.
    Flow(usize),
    /// A flow: the descriptor of the receiving end.
    Receiver(usize),
    Connection(usize, Side),
}

impl<'a> Generator<'a> {
    /// Opens every socket; nothing is sent yet.
    pub(crate) fn new(config: &Config, flows: Vec<Flow>, hosts: Hosts<'a>) -> Result<Self, Error> {
        hosts.add_addresses(&config.line, &flows)?;
        let mut opener = Opener::new(hosts);
        let mut running = Vec::with_capacity(flows.len());
        for flow in flows {
            let Flow { phase, start, stop, from, dscp, .. } = flow;
            let (name, phase) = (flow.name.clone(), Some(phase));
            let source = opener.source(flow)?;
            running.push(Running { name, from, phase, start, stop, dscp, begun: false, stopped: false, source });
        }
        Ok(Self {
            hosts,
            flows: running,
            listeners: opener.listeners,
            catchers: opener.catchers,
            duration: config.duration,
            interval: config.interval,
            samples: Vec::new(),
            refused: opener.refused.into_iter().collect(),
            latest: Duration::ZERO,
        })
    }

    /// Lets the flows run until the time is up or the emulator is `over`. Wakes the emulator by `poke`, and
    /// publishes the progress of its flows.
    pub(crate) fn run(
        &mut self,
        clock: MonotonicClock,
        tuning: Tuning,
        (poke, progress): (&StopHandle, &Flows),
        over: &AtomicBool,
    ) -> Result<(), Error> {
        tuning.apply()?;
        let end = Instant::ZERO + self.duration;
        let mut published = Instant::ZERO;
        let mut sampled = self.interval.map(|interval| Instant::ZERO + interval);
        self.sample(clock.now(), Some(Instant::ZERO), poke);
        while !over.load(Ordering::Acquire) {
            let now = clock.now();
            if now >= end {
                break;
            }
            if let Some(planned) = self.change(now)? {
                self.sample(now, Some(planned), poke);
            }
            while let (Some(due), Some(interval)) = (sampled, self.interval)
                && due <= now
            {
                self.sample(now, None, poke);
                // A late one does not shift those after it, and two are not taken at once.
                sampled = Some(due + interval * (now.since(due) / interval + 1));
            }
            if now >= published {
                progress.publish(self.flows.iter_mut().map(|flow| flow.source.progress()));
                published = now + PUBLISH;
            }
            self.send_due(clock)?;
            let next = [Some(end), sampled, self.next()].into_iter().flatten().min().unwrap_or(end);
            let ready = self.wait(next, clock)?;
            if self.handle(clock, &ready)? {
                let now = clock.now();
                self.sample(now, Some(now), poke);
            }
        }
        let now = clock.now();
        self.sample(now, Some(now.min(end)), poke);
        Ok(())
    }

    /// Starts and stops the flows that are due; returns the planned time of the latest phase.
    fn change(&mut self, now: Instant) -> Result<Option<Instant>, Error> {
        let mut changed = None;
        for flow in &mut self.flows {
            if let Some(phase) = flow.phase.filter(|phase| *phase <= now) {
                flow.phase = None;
                changed = changed.max(Some(phase));
            }
            if !flow.begun && flow.start <= now {
                flow.begun = true;
                match &mut flow.source {
                    Source::Transfer(transfer) => {
                        transfer.begin(now).context(|| format!("connecting for \"{}\"", flow.name))?;
                    }
                    Source::Quic(transfer) => {
                        transfer.begin(now).context(|| format!("connecting for \"{}\"", flow.name))?;
                    }
                    Source::Datagrams(datagrams) => datagrams.begin(flow.start),
                    Source::Dialogue(exchange) => exchange.begin(flow.start, flow.stop),
                    Source::Echo(echo) => echo.begin(flow.start),
                    Source::Application(owner) => owner.begin(now, &self.hosts)?,
                    Source::Replay(replay) => replay.begin(flow.start),
                }
            }
            if let Some(stop) = flow.stop.filter(|stop| !flow.stopped && *stop <= now) {
                flow.stopped = true;
                changed = changed.max(Some(stop));
                match &mut flow.source {
                    Source::Transfer(transfer) => transfer.stop(),
                    Source::Quic(transfer) => transfer.stop(),
                    Source::Datagrams(datagrams) => datagrams.stop(),
                    // It knows when it stops, and ends with what is under way.
                    Source::Dialogue(_) => {}
                    Source::Echo(echo) => echo.stop(),
                    Source::Application(owner) => owner.stop(now, &self.hosts)?,
                    Source::Replay(replay) => replay.stop(),
                }
            }
        }
        Ok(changed)
    }

    /// The time of the next action of any flow.
    fn next(&mut self) -> Option<Instant> {
        let next = self.flows.iter_mut().flat_map(|flow| {
            let start = (!flow.begun).then_some(flow.start);
            [flow.source.next(), flow.phase, start, flow.stop.filter(|_| !flow.stopped)]
        });
        next.flatten().min()
    }

    /// Sends the packets that are due, and wakes the applications that are due.
    fn send_due(&mut self, clock: MonotonicClock) -> Result<(), Error> {
        for Running { name, source, .. } in &mut self.flows {
            loop {
                let due = source.next();
                let now = clock.now();
                let Some(due) = due.filter(|due| *due <= now) else { break };
                self.latest = self.latest.max(now.since(due));
                let sent = match source {
                    Source::Transfer(_) => Ok(()),
                    Source::Quic(transfer) => transfer.wake(now),
                    Source::Datagrams(datagrams) => datagrams.send(&clock),
                    Source::Dialogue(exchange) => exchange.send(&clock),
                    Source::Echo(echo) => echo.send(&clock),
                    Source::Application(owner) => {
                        owner.wake(now, &self.hosts)?;
                        Ok(())
                    }
                    Source::Replay(replay) => replay.send(),
                };
                sent.context(|| format!("sending for \"{name}\""))?;
            }
        }
        Ok(())
    }

    /// Waits until a socket is ready or it is `next`; returns the owners of ready sockets. A signal ends the wait
    /// early, with none ready.
    fn wait(&self, next: Instant, clock: MonotonicClock) -> Result<Vec<Who>, Error> {
        let (who, mut polled): (Vec<Who>, Vec<PollFd<'_>>) =
            self.wishes().into_iter().map(|(who, fd, wish)| (who, PollFd::from_borrowed_fd(fd, wish))).unzip();
        let span = std_span(next.since(clock.now()).min(LONGEST_WAIT));
        let timeout = Timespec::try_from(span).expect("at most LONGEST_WAIT");
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Ok(Err(error.into()).context(|| "waiting for the hosts")?),
        }
        let ready = who.into_iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        Ok(ready.map(|(who, _)| who).collect())
    }

    /// The events that every socket waits for. Sockets that wait for none are left out: poll(2) would report their
    /// hang-ups.
    fn wishes(&self) -> Vec<(Who, BorrowedFd<'_>, PollFlags)> {
        const READ: PollFlags = PollFlags::IN;
        let mut wishes = Vec::new();
        let mut add = |who, fd, wish: PollFlags| {
            if !wish.is_empty() {
                wishes.push((who, fd, wish));
            }
        };
        for (index, listener) in self.listeners.iter().enumerate() {
            add(Who::Listener(index), listener.socket.as_fd(), READ);
        }
        for (end, catcher) in [End::Client, End::Server].into_iter().zip(&self.catchers) {
            if let Some(catcher) = catcher {
                add(Who::Catcher(end), catcher.as_fd(), READ);
            }
        }
        for (index, flow) in self.flows.iter().enumerate() {
            match &flow.source {
                Source::Transfer(transfer) => {
                    for (who, wish) in
                        [(Who::Flow(index), transfer.sender_wish()), (Who::Receiver(index), transfer.receiver_wish())]
                    {
                        if let Some((fd, wish)) = wish {
                            add(who, fd, wish);
                        }
                    }
                }
                Source::Quic(transfer) => {
                    let [sends, receives] = transfer.ends();
                    add(Who::Flow(index), sends, READ);
                    add(Who::Receiver(index), receives, READ);
                }
                Source::Datagrams(datagrams) => add(Who::Flow(index), datagrams.sink(), READ),
                Source::Dialogue(exchange) => {
                    let [sends, receives] = exchange.ends();
                    add(Who::Flow(index), sends, READ);
                    add(Who::Receiver(index), receives, READ);
                }
                Source::Echo(echo) => add(Who::Flow(index), echo.as_fd(), READ),
                Source::Application(owner) => {
                    owner.wishes().for_each(|(side, fd, wish)| add(Who::Connection(index, side), fd, wish));
                }
                Source::Replay(_) => {}
            }
        }
        wishes
    }

    /// Serves the ready sockets; true when a transfer of given size has ended.
    fn handle(&mut self, clock: MonotonicClock, ready: &[Who]) -> Result<bool, Error> {
        let mut ended = false;
        for who in ready {
            let now = clock.now();
            match *who {
                Who::Listener(index) => self.accept(index)?,
                Who::Catcher(end) => self.catch(now, end)?,
                Who::Flow(index) => self.flow_ready(index, clock)?,
                Who::Receiver(index) => {
                    let Running { name, source, .. } = &mut self.flows[index];
                    match source {
                        Source::Transfer(transfer) => ended |= transfer.receiver_ready(now) > 0,
                        Source::Quic(transfer) => {
                            ended |= transfer.ready(false, now).context(|| format!("receiving for \"{name}\""))?;
                        }
                        Source::Dialogue(exchange) => {
                            exchange.receive(&clock, false).context(|| format!("receiving for \"{name}\""))?;
                        }
                        _ => {}
                    }
                }
                Who::Connection(index, side) => {
                    if let Source::Application(owner) = &mut self.flows[index].source {
                        owner.ready(side, now, &self.hosts)?;
                    }
                }
            }
        }
        Ok(ended)
    }

    fn flow_ready(&mut self, index: usize, clock: MonotonicClock) -> Result<(), Error> {
        let Running { name, source, .. } = &mut self.flows[index];
        let received = match source {
            Source::Transfer(transfer) => {
                transfer.sender_ready(clock.now());
                Ok(())
            }
            Source::Quic(transfer) => transfer.ready(true, clock.now()).map(drop),
            Source::Datagrams(datagrams) => datagrams.receive(&clock),
            Source::Dialogue(exchange) => exchange.receive(&clock, true),
            Source::Echo(echo) => echo.receive(&clock),
            Source::Application(_) | Source::Replay(_) => Ok(()),
        };
        Ok(received.context(|| format!("receiving for \"{name}\""))?)
    }

    /// Takes the replayed packets that have come to this end.
    fn catch(&mut self, now: Instant, end: End) -> Result<(), Error> {
        let Some(catcher) = &mut self.catchers[end.index()] else { return Ok(()) };
        let flows = &mut self.flows;
        let received = catcher.receive(now, |takes| {
            for flow in flows.iter_mut().filter(|flow| flow.from == end.other()) {
                if let Source::Replay(replay) = &mut flow.source
                    && takes(replay)
                {
                    return;
                }
            }
        });
        Ok(received.context(|| "receiving replayed packets")?)
    }

    fn accept(&mut self, index: usize) -> Result<(), Error> {
        let Listener { end, address, socket } = &self.listeners[index];
        let here = (*end, address.port());
        while let Ok((stream, peer)) = socket.accept() {
            let mut stream = Some(stream);
            for flow in &mut self.flows {
                let Some(given) = stream.take() else { break };
                stream = match &mut flow.source {
                    Source::Transfer(transfer) if transfer.is_from(here, peer.port()) => {
                        transfer.accepted(given, flow.dscp)?;
                        None
                    }
                    Source::Application(owner) => owner.accept(here, peer.port(), given)?,
                    _ => Some(given),
                };
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant, cut: Option<Instant>, poke: &StopHandle) {
        let flows = self.flows.iter_mut().map(|flow| match &mut flow.source {
            Source::Transfer(transfer) => transfer.sample(now),
            Source::Quic(transfer) => transfer.sample(),
            Source::Datagrams(datagrams) => datagrams.sample(),
            Source::Dialogue(exchange) => exchange.sample(),
            Source::Echo(_) => FlowSample::default(),
            Source::Application(owner) => owner.sample(),
            Source::Replay(replay) => FlowSample { bytes_delivered: replay.bytes_delivered(), ..FlowSample::default() },
        });
        self.samples.push(Sample { at: now, cut, flows: flows.collect() });
        poke.stop();
    }

    pub(crate) fn into_outcome(self, line: emulate::Outcome, glances: Vec<Glance>, realtime: bool) -> Outcome {
        let end = Instant::ZERO + self.duration;
        let flows = self.flows.into_iter().map(|flow| -> FlowOutcome {
            match flow.source {
                Source::Transfer(transfer) => transfer.outcome(),
                Source::Quic(transfer) => transfer.outcome(),
                Source::Datagrams(datagrams) => datagrams.outcome(end),
                Source::Dialogue(exchange) => exchange.outcome(end),
                Source::Echo(echo) => echo.outcome(),
                Source::Application(owner) => owner.outcome(end),
                Source::Replay(replay) => replay.outcome(),
            }
        });
        Outcome {
            line,
            flows: flows.collect(),
            samples: self.samples,
            glances,
            refused: self.refused,
            realtime,
            generator_late: self.latest,
        }
    }
}
