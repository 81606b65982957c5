//! A networked game: a client's commands, a server's updates, and the time from a command to the first update that
//! shows its effect.
//!
//! Published: Faerber, "Network Game Traffic Modelling" (NetGames 2002), whose measurements of a first-person shooter
//! give the default sizes and intervals: extreme-value (Gumbel) distributions Ext(a, b) of location a and scale b.
//! Feng and others, "Provisioning On-line Games" (IMW 2002), show the same structure: a server sends to every client at
//! each tick of its clock. Claypool and Claypool, "Latency and Player Actions in Online Games" (CACM 49, 2006), give
//! the tolerable latency: 100 ms for a first-person view, 500 ms for a third-person view, 1 s from above.
//!
//! The client sends a command at each of its intervals. The server sends an update at each of its own, which contains
//! the effect of every command that it has received. The response time of a command is the time from its departure to
//! the arrival of the first such update: both one-way delays and the wait for the server's tick. A command whose
//! datagram is lost has no response. An update that is lost delays responses to the next one.
//!
//! Differs: sizes and intervals do not depend on what happens in the game or on the number of players. The client does
//! not predict and the server does not compensate: both hide latency from players. The clocks of both ends start
//! together.
//!
//! Cost: one event and two random numbers a datagram; memory for the commands without a response.

use std::collections::BTreeSet;
use std::sync::Arc;

use lastmile_analysis::stream::{Reception, Stream as Measured};
use lastmile_model::{Datagrams, Game as Model, IpFields, Spread};
use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::random::Stream;
use lastmile_units::{ByteCount, Duration, Instant};

use super::numbered::Numbered;
use super::{DataCounts, datagram};

/// The least interval between two datagrams.
const LEAST_INTERVAL: Duration = Duration::from_us(100);
/// For how long an update is remembered that has not arrived.
const REMEMBERED: u64 = 1 << 12;

/// A command that has had no response.
#[derive(Clone, Copy, Debug)]
struct Command {
    sent: Instant,
    received: bool,
}

/// An update on its way.
#[derive(Clone, Copy, Debug)]
struct Update {
    sent: Instant,
    /// The commands whose effects it contains: received ones below.
    shows: u64,
}

/// A session of one player, both ends of it.
#[derive(Debug)]
pub struct Game {
    pub(crate) traffic: usize,
    /// The counters of updates.
    pub(crate) data: DataCounts,
    /// Times from commands to their effects.
    responses: Vec<Duration>,
    /// The arrivals of those effects.
    response_ends: Vec<Instant>,
    /// The departures of commands that later ones overtook.
    overtaken: Vec<Instant>,
    model: Arc<Model>,
    flows: ([FlowId; 2], IpFields),
    stop: Option<Instant>,
    random: Stream,
    next: Next,
    /// Commands that no update has shown.
    commands: Numbered<Command>,
    /// One past the highest command that the server has received.
    seen: u64,
    updates: Numbered<Update>,
    measured: [Measured; 2],
    /// Updates and commands, by number, that were dropped after the latest that arrived.
    dropped: [BTreeSet<u64>; 2],
}

/// The next datagrams, and the pending event.
#[derive(Clone, Copy, Debug)]
struct Next {
    command: Instant,
    update: Instant,
    scheduled: Option<Instant>,
}

/// The results of a session.
pub(crate) struct Finished {
    pub(crate) updates: Reception,
    pub(crate) commands: Reception,
    pub(crate) responses: Vec<Duration>,
    pub(crate) response_ends: Vec<Instant>,
    /// The departures of commands without a response.
    pub(crate) unanswered: Vec<Instant>,
    pub(crate) end: Instant,
    /// Updates, and commands, that did not arrive before later ones, or were dropped at the end.
    pub(crate) lost: [u64; 2],
}

impl Game {
    pub(crate) fn new(
        model: &Arc<Model>,
        traffic: usize,
        flows: ([FlowId; 2], IpFields),
        buffer: Duration,
        random: Stream,
    ) -> Self {
        Self {
            traffic,
            data: DataCounts::default(),
            responses: Vec::new(),
            response_ends: Vec::new(),
            overtaken: Vec::new(),
            model: Arc::clone(model),
            flows,
            stop: None,
            random,
            next: Next { command: Instant::ZERO, update: Instant::ZERO, scheduled: None },
            commands: Numbered::default(),
            seen: 0,
            updates: Numbered::default(),
            measured: [Measured::new(buffer, true), Measured::new(buffer, true)],
            dropped: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    /// The session starts.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) {
        self.stop = stop;
        self.next.command = now;
        self.next.update = now + self.interval(self.model.updates.interval);
    }

    /// The time of the next event, unless a wake-up is pending at that time or earlier.
    pub(crate) fn take_wake(&mut self) -> Option<Instant> {
        let next = self.next.command.min(self.next.update);
        let goes_on = self.stop.is_none_or(|stop| next < stop);
        if !goes_on || self.next.scheduled.is_some_and(|pending| pending <= next) {
            return None;
        }
        self.next.scheduled = Some(next);
        Some(next)
    }

    /// The datagrams to send at `now`, when an event fires.
    pub(crate) fn wake(&mut self, now: Instant, send: &mut dyn FnMut(Meta)) {
        self.next.scheduled = None;
        let ([updates, commands], ip) = self.flows;
        if self.next.command <= now {
            let size = self.size(self.model.commands);
            send(datagram(commands, Protocol::Udp, size, self.commands.next(), ip));
            self.commands.push(Command { sent: now, received: false });
            // A late event does not shift those after it.
            let interval = self.interval(self.model.commands.interval);
            self.next.command += interval;
        }
        if self.next.update <= now {
            let size = self.size(self.model.updates);
            send(datagram(updates, Protocol::Udp, size, self.updates.next(), ip));
            self.data.sent += 1;
            if self.updates.next() - self.updates.first() == REMEMBERED {
                self.updates.pop();
            }
            self.updates.push(Update { sent: now, shows: self.seen });
            let interval = self.interval(self.model.updates.interval);
            self.next.update += interval;
        }
    }

    /// A datagram reaches its end.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        let number = u64::from(packet.seq.raw());
        if packet.flow == self.flows.0[1] {
            // A command that a later update overtook had no effect of its own.
            let Some(command) = self.commands.get_mut(number) else { return };
            command.received = true;
            self.seen = self.seen.max(number + 1);
            let sent = command.sent;
            self.measured[1].arrived(number, sent, now);
            return;
        }
        if !self.data.arrived(now, number, packet.payload_len().into()) {
            return;
        }
        let Some(update) = self.updates.get(number).copied() else { return };
        self.measured[0].arrived(number, update.sent, now);
        while self.commands.first() < update.shows
            && let Some(command) = self.commands.pop()
        {
            if command.received {
                self.responses.push(now - command.sent);
                self.response_ends.push(now);
            } else {
                self.overtaken.push(command.sent);
            }
        }
    }

    /// The network drops a datagram.
    pub(crate) fn dropped(&mut self, flow: FlowId, number: u64) {
        let index = usize::from(flow == self.flows.0[1]);
        let dropped = &mut self.dropped[index];
        *dropped = dropped.split_off(&self.measured[index].next());
        dropped.insert(number);
    }

    fn interval(&mut self, spread: Spread<Duration>) -> Duration {
        let seconds = spread.location.as_secs_f64() + spread.scale.as_secs_f64() * self.gumbel();
        Duration::from_ns((seconds.max(0.0) * 1e9) as u64).max(LEAST_INTERVAL)
    }

    /// IP bytes of a datagram.
    fn size(&mut self, Datagrams { size: spread, most, .. }: Datagrams) -> ByteCount {
        let bytes = spread.location.as_u64() as f64 + spread.scale.as_u64() as f64 * self.gumbel();
        let least = f64::from(self.flows.1.datagram_headers()) + 1.0;
        ByteCount::new(bytes.clamp(least, most.as_u64() as f64) as u64)
    }

    /// The standard extreme-value distribution, by the inverse of its distribution function.
    fn gumbel(&mut self) -> f64 {
        -libm::log(-libm::log(self.random.uniform()))
    }

    /// Commands that the client has sent.
    pub(crate) fn commands_sent(&self) -> u64 {
        self.commands.next()
    }

    /// Times kept for the end of the run.
    pub(crate) fn kept(&self) -> usize {
        2 * self.responses.capacity() + self.overtaken.capacity() + self.commands.capacity() + self.updates.capacity()
    }

    /// The results at `end`.
    pub(crate) fn finish(self, end: Instant) -> Finished {
        let lost = [0, 1].map(|index: usize| {
            let measured = &self.measured[index];
            let dropped = self.dropped[index].range(measured.next()..).count() as u64;
            measured.next().saturating_sub(measured.packets()) + dropped
        });
        let mut unanswered = self.overtaken;
        unanswered.extend(self.commands.iter().map(|command| command.sent));
        let [updates, commands] = self.measured;
        let late = |measured: Measured, first: u64, sent: Vec<Instant>| {
            let skip = usize::try_from(measured.next().saturating_sub(first)).unwrap_or(usize::MAX);
            let outstanding: Vec<Instant> = sent.into_iter().skip(skip).collect();
            let count = outstanding.len() as u64;
            measured.finish(end, outstanding.into_iter(), count)
        };
        Finished {
            updates: late(updates, self.updates.first(), self.updates.iter().map(|update| update.sent).collect()),
            commands: late(commands, self.commands.first(), self.commands.iter().map(|command| command.sent).collect()),
            responses: self.responses,
            response_ends: self.response_ends,
            unanswered,
            end: self.stop.map_or(end, |stop| stop.min(end)),
            lost,
        }
    }
}
