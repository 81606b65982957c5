//! The applications on both hosts, in one thread: every socket of both namespaces in one wait.
//!
//! A socket belongs to the namespace in which it was opened, whoever uses it, so the generator opens them all beforehand in threads of
//! their own and then never changes its namespace.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_units::{Duration, Instant};

use crate::clock::{Clock, std_span};
use crate::emulate;
use crate::error::{Context, Error};
use crate::stop::StopHandle;
use crate::sys::poll::{Entry, Poll, Wish};
use crate::sys::{socket, wait};

use super::datagrams::{self, Datagrams};
use super::echo::Echo;
use super::transfer::{self, Transfer};
use super::{
    Config, End, Flow, FlowOutcome, FlowSample, Glance, Kind, LabClock, Namespace, Outcome, Sample, TransferPlan,
};

/// How long it waits at most, so that it hears when the emulator has ended.
const LONGEST_WAIT: Duration = Duration::from_ms(100);

pub(super) struct Generator {
    flows: Vec<Running>,
    listeners: Vec<Listener>,
    duration: Duration,
    interval: Option<Duration>,
    samples: Vec<Sample>,
    refused: Vec<String>,
    latest: Duration,
}

/// A flow, and how far it is.
struct Running {
    name: String,
    start: Instant,
    stop: Option<Instant>,
    dscp: u8,
    begun: bool,
    stopped: bool,
    source: Source,
}

enum Source {
    Transfer(Box<Transfer>),
    Datagrams(Box<Datagrams>),
    Echo(Echo),
}

/// A listening socket; flows may share one, and are told apart by the port that connects.
struct Listener {
    end: End,
    port: u16,
    socket: TcpListener,
}

/// Opens sockets in the namespaces of the two hosts.
struct Opener<'a> {
    namespaces: [&'a Namespace; 2],
    addresses: [Ipv4Addr; 2],
    listeners: Vec<Listener>,
    refused: Vec<String>,
}

impl Opener<'_> {
    fn address(&self, end: End, port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(self.addresses[end.index()], port)
    }

    fn source(&mut self, flow: Flow) -> Result<Source, Error> {
        let (from, to) = (flow.from, flow.from.other());
        match flow.kind {
            Kind::Transfer(plan) => self.transfer(plan, from, flow.dscp),
            Kind::Datagrams(plan) => {
                let (own, far) = (self.address(from, plan.from_port), self.address(to, plan.to_port));
                let out = self.namespaces[from.index()].run(|| datagrams::sender(own, flow.dscp))?;
                let out = out.context(|| format!("opening UDP port {own}"))?;
                let sink = self.namespaces[to.index()].run(|| datagrams::sink(far))?;
                let sink = sink.context(|| format!("opening UDP port {far}"))?;
                let source = Datagrams::new(plan, out, sink, far).context(|| format!("connecting to {far}"))?;
                Ok(Source::Datagrams(Box::new(source)))
            }
            Kind::Echo(plan) => {
                let target = self.addresses[to.index()];
                let echo = self.namespaces[from.index()].run(|| Echo::new(plan, target, flow.dscp))?;
                Ok(Source::Echo(echo.context(|| "opening a raw socket")?))
            }
        }
    }

    fn transfer(&mut self, plan: TransferPlan, from: End, dscp: u8) -> Result<Source, Error> {
        let (near, far_end) = (plan.opener, plan.opener.other());
        self.listen(&plan, far_end, dscp)?;
        let (own, far) = (self.address(near, plan.opener_port), self.address(far_end, plan.listener_port));
        let refused = &mut self.refused;
        let opened = self.namespaces[near.index()].run(|| {
            let fd = socket::open().context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), &plan, dscp, &mut |text| refused.push(text))?;
            socket::bind(fd.as_fd(), own).context(|| format!("opening TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        Ok(Source::Transfer(Box::new(Transfer::new(plan, near == from, opened, far))))
    }

    fn listen(&mut self, plan: &TransferPlan, end: End, dscp: u8) -> Result<(), Error> {
        let port = plan.listener_port;
        if self.listeners.iter().any(|listener| listener.end == end && listener.port == port) {
            return Ok(());
        }
        let own = self.address(end, port);
        let opened = self.namespaces[end.index()].run(|| {
            let fd = socket::open().context(|| "opening a TCP socket")?;
            transfer::set_up(fd.as_fd(), plan, dscp, &mut |_| {})?;
            let listen = || socket::bind(fd.as_fd(), own).and_then(|()| socket::listen(fd.as_fd()));
            listen().context(|| format!("listening on TCP port {own}"))?;
            Ok::<_, Error>(fd)
        })??;
        self.listeners.push(Listener { end, port, socket: TcpListener::from(opened) });
        Ok(())
    }
}

impl Generator {
    /// Opens every socket; nothing is sent yet.
    pub(super) fn new(
        config: &Config,
        flows: Vec<Flow>,
        namespaces: [&Namespace; 2],
        addresses: [Ipv4Addr; 2],
    ) -> Result<Self, Error> {
        let mut opener = Opener { namespaces, addresses, listeners: Vec::new(), refused: Vec::new() };
        let mut running = Vec::with_capacity(flows.len());
        for flow in flows {
            let (name, start, stop, dscp) = (flow.name.clone(), flow.start, flow.stop, flow.dscp);
            let source = opener.source(flow)?;
            running.push(Running { name, start, stop, dscp, begun: false, stopped: false, source });
        }
        opener.refused.dedup();
        Ok(Self {
            flows: running,
            listeners: opener.listeners,
            duration: config.duration,
            interval: config.interval,
            samples: Vec::new(),
            refused: opener.refused,
            latest: Duration::ZERO,
        })
    }

    /// Lets the flows run until the time is up or the emulator is `over`. Tells the emulator to look by `poke`.
    pub(super) fn run(
        &mut self,
        clock: LabClock,
        realtime: bool,
        poke: &StopHandle,
        over: &AtomicBool,
    ) -> Result<(), Error> {
        wait::wake_punctually().context(|| "setting the timer slack")?;
        if realtime {
            wait::run_first().context(|| "running with real-time priority")?;
        }
        let end = Instant::ZERO + self.duration;
        let mut sampled = self.interval.map(|interval| Instant::ZERO + interval);
        let mut poll = Poll::default();
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
            self.send_due(clock)?;
            let next = [Some(end), sampled, self.next()].into_iter().flatten().min().unwrap_or(end);
            let entries = self.enter(&mut poll);
            let wait = next.since(clock.now()).min(LONGEST_WAIT);
            poll.wait(std_span(wait)).context(|| "waiting for the hosts")?;
            if self.handle(clock, &poll, &entries)? {
                let now = clock.now();
                self.sample(now, Some(now), poke);
            }
        }
        let now = clock.now();
        self.sample(now, Some(now.min(end)), poke);
        Ok(())
    }

    /// Begins and stops what is to begin and stop; if anything did, when it was to.
    fn change(&mut self, now: Instant) -> Result<Option<Instant>, Error> {
        let mut changed = None;
        for flow in &mut self.flows {
            if !flow.begun && flow.start <= now {
                flow.begun = true;
                changed = changed.max(Some(flow.start));
                match &mut flow.source {
                    Source::Transfer(transfer) => {
                        transfer.begin(now).context(|| format!("connecting for \"{}\"", flow.name))?;
                    }
                    Source::Datagrams(datagrams) => datagrams.begin(flow.start),
                    Source::Echo(echo) => echo.begin(flow.start),
                }
            }
            if let Some(stop) = flow.stop.filter(|stop| !flow.stopped && *stop <= now) {
                flow.stopped = true;
                changed = changed.max(Some(stop));
                match &mut flow.source {
                    Source::Transfer(transfer) => transfer.stop(),
                    Source::Datagrams(datagrams) => datagrams.stop(),
                    Source::Echo(echo) => echo.stop(),
                }
            }
        }
        Ok(changed)
    }

    /// When something is to be done at the latest.
    fn next(&self) -> Option<Instant> {
        let next = self.flows.iter().flat_map(|flow| {
            let packet = match &flow.source {
                Source::Transfer(_) => None,
                Source::Datagrams(datagrams) => datagrams.next(),
                Source::Echo(echo) => echo.next(),
            };
            [packet, (!flow.begun).then_some(flow.start), flow.stop.filter(|_| !flow.stopped)]
        });
        next.flatten().min()
    }

    /// Sends the packets whose time has come.
    fn send_due(&mut self, clock: LabClock) -> Result<(), Error> {
        for Running { name, source, .. } in &mut self.flows {
            loop {
                let due = match source {
                    Source::Transfer(_) => None,
                    Source::Datagrams(datagrams) => datagrams.next(),
                    Source::Echo(echo) => echo.next(),
                };
                let now = clock.now();
                let Some(due) = due.filter(|due| *due <= now) else { break };
                self.latest = self.latest.max(now.since(due));
                let sent = match source {
                    Source::Transfer(_) => Ok(()),
                    Source::Datagrams(datagrams) => datagrams.send(),
                    Source::Echo(echo) => echo.send(&clock),
                };
                sent.context(|| format!("sending for \"{name}\""))?;
            }
        }
        Ok(())
    }

    /// Says what every socket is waited for: listeners first, then two places a flow.
    fn enter(&self, poll: &mut Poll) -> Vec<[Option<Entry>; 2]> {
        const READ: Wish = Wish { read: true, write: false };
        poll.clear();
        let listeners = self.listeners.iter().map(|listener| [Some(poll.add(listener.socket.as_fd(), READ)), None]);
        let mut entries: Vec<[Option<Entry>; 2]> = listeners.collect();
        entries.extend(self.flows.iter().map(|flow| match &flow.source {
            Source::Transfer(transfer) => {
                [transfer.sender_wish(), transfer.receiver_wish()].map(|wish| wish.map(|(fd, wish)| poll.add(fd, wish)))
            }
            Source::Datagrams(datagrams) => [Some(poll.add(datagrams.sink(), READ)), None],
            Source::Echo(echo) => [Some(poll.add(echo.as_fd(), READ)), None],
        }));
        entries
    }

    /// Does what can be done; true when a transfer of given size has ended.
    fn handle(&mut self, clock: LabClock, poll: &Poll, entries: &[[Option<Entry>; 2]]) -> Result<bool, Error> {
        let (listeners, flows) = entries.split_at(self.listeners.len());
        for (index, [entry, _]) in listeners.iter().enumerate() {
            if entry.is_some_and(|entry| poll.is_ready(entry)) {
                self.accept(index)?;
            }
        }
        let now = clock.now();
        let mut ended = false;
        for (flow, entries) in self.flows.iter_mut().zip(flows) {
            let [first, second] = entries.map(|entry| entry.is_some_and(|entry| poll.is_ready(entry)));
            let name = &flow.name;
            match &mut flow.source {
                Source::Transfer(transfer) => {
                    if first {
                        transfer.sender_ready(now);
                    }
                    ended |= second && transfer.receiver_ready(now);
                }
                Source::Datagrams(datagrams) if first => {
                    datagrams.receive(now).context(|| format!("receiving for \"{name}\""))?;
                }
                Source::Echo(echo) if first => {
                    echo.receive(&clock).context(|| format!("receiving for \"{name}\""))?;
                }
                Source::Datagrams(_) | Source::Echo(_) => {}
            }
        }
        Ok(ended)
    }

    fn accept(&mut self, index: usize) -> Result<(), Error> {
        let Listener { end, port, socket } = &self.listeners[index];
        while let Ok((stream, peer)) = socket.accept() {
            let SocketAddr::V4(peer) = peer else { continue };
            let owner = self.flows.iter_mut().find_map(|flow| match &mut flow.source {
                Source::Transfer(transfer) => {
                    let plan = transfer.plan();
                    let is_his =
                        plan.opener == end.other() && plan.listener_port == *port && plan.opener_port == peer.port();
                    is_his.then_some((transfer, flow.dscp))
                }
                _ => None,
            });
            if let Some((transfer, dscp)) = owner {
                transfer.accepted(stream, dscp)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, now: Instant, cut: Option<Instant>, poke: &StopHandle) {
        let flows = self.flows.iter_mut().map(|flow| match &mut flow.source {
            Source::Transfer(transfer) => transfer.sample(now),
            Source::Datagrams(datagrams) => FlowSample { bytes_delivered: datagrams.bytes_delivered(), tcp: None },
            Source::Echo(_) => FlowSample::default(),
        });
        self.samples.push(Sample { at: now, cut, flows: flows.collect() });
        poke.stop();
    }

    pub(super) fn into_outcome(self, line: emulate::Outcome, glances: Vec<Glance>, realtime: bool) -> Outcome {
        let flows = self.flows.into_iter().map(|flow| -> FlowOutcome {
            match flow.source {
                Source::Transfer(transfer) => transfer.outcome(),
                Source::Datagrams(datagrams) => datagrams.outcome(),
                Source::Echo(echo) => echo.outcome(),
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
