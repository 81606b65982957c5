//! Conferences and games: the decisions of the simulator's dialogues, with datagrams of the kernel between the two
//! hosts.
//!
//! Both ends of a dialogue are in one place, and a datagram carries its length and its number, under both clocks. The
//! length and the number of a real one say which it is; its contents stay in the dialogue. An arrival counts from when
//! the kernel received it, unless the dialogue has handled a later time: its time never goes back.
//!
//! A datagram that is too short for its number is sent with more bytes.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::clock::Clock;
use lastmile_model::outcome::Deliveries;
use lastmile_packet::{Meta, Protocol, SeqNumber};
use lastmile_units::Instant;

use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::DialoguePlan;

use super::udp::{self, Arrivals, NUMBER};

/// A conference or a game, both ends of it.
pub(super) struct Exchange {
    plan: DialoguePlan,
    name: String,
    /// The socket of the end that sends the data, and of the other end.
    ends: [UdpSocket; 2],
    start: Instant,
    stop: Option<Instant>,
    /// The next event of the dialogue.
    due: Option<Instant>,
    /// The latest time that the dialogue knows.
    latest: Instant,
    arrivals: Arrivals,
    deliveries: Option<Deliveries>,
    payload: Vec<u8>,
}

impl Exchange {
    /// Between two sockets: of the end that sends the data, and of the other end.
    pub(super) fn new(plan: DialoguePlan, name: String, ends: [UdpSocket; 2]) -> Self {
        let arrivals = Arrivals::new(plan.buffer);
        Self {
            plan,
            name,
            ends,
            start: Instant::ZERO,
            stop: None,
            due: None,
            latest: Instant::ZERO,
            arrivals,
            deliveries: None,
            payload: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, at: Instant, stop: Option<Instant>) {
        (self.start, self.stop, self.latest) = (at, stop, at);
        self.plan.dialogue.start(at, stop);
        self.go_on(at);
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.ends[0].as_fd(), self.ends[1].as_fd()]
    }

    /// Payload bytes of the data that the receiving host has read.
    pub(super) fn bytes_delivered(&self) -> u64 {
        self.plan.dialogue.counts().bytes_delivered
    }

    pub(super) fn sample(&mut self) -> FlowSample {
        let (delay_mean_s, jitter_s) = self.arrivals.sample();
        FlowSample { bytes_delivered: self.bytes_delivered(), tcp: None, delay_mean_s, jitter_s }
    }

    /// Sends the datagrams that are due.
    pub(super) fn send(&mut self, clock: &dyn Clock) -> io::Result<()> {
        let now = clock.now().max(self.latest);
        (self.latest, self.due) = (now, None);
        let Self { plan: DialoguePlan { dialogue, flows, headers, .. }, ends, payload, arrivals, .. } = self;
        let mut result = Ok(());
        dialogue.wake(now, &mut |packet| {
            let back = packet.flow == flows[1];
            if !back {
                arrivals.sent(clock.now());
            }
            payload.clear();
            payload.resize(usize::from(packet.ip_len.saturating_sub((*headers).into())).max(NUMBER), 0);
            if let Some(number) = payload.last_chunk_mut::<NUMBER>() {
                *number = packet.seq.raw().to_be_bytes();
            }
            let sent = udp::send(&ends[usize::from(back)], payload);
            if result.is_ok() {
                result = sent;
            }
        });
        self.go_on(now);
        result
    }

    /// Takes the datagrams that have come to the end that sends the data, or to the other end.
    pub(super) fn receive(&mut self, clock: &dyn Clock, sends: bool) -> io::Result<()> {
        let Self { plan: DialoguePlan { dialogue, flows, headers, .. }, ends, arrivals, latest, deliveries, .. } = self;
        let flow = flows[usize::from(sends)];
        udp::receive(&ends[usize::from(!sends)], clock, |arrived, len, number| {
            let Some(number) = number else { return };
            *latest = arrived.max(*latest);
            if !sends {
                arrivals.arrived(number, arrived);
                Deliveries::note(deliveries, *latest);
            }
            let packet = Meta {
                flow,
                protocol: Protocol::Udp,
                seq: SeqNumber::new(number),
                ip_len: u16::try_from(len + usize::from(*headers)).unwrap_or(u16::MAX),
                header_len: *headers,
                ..Meta::default()
            };
            dialogue.arrived(*latest, &packet);
        })?;
        self.go_on(self.latest);
        Ok(())
    }

    /// The outcome at `end`.
    pub(super) fn outcome(self, end: Instant) -> FlowOutcome {
        let Self { plan: DialoguePlan { dialogue, .. }, name, start, stop, latest, arrivals, deliveries, .. } = self;
        let counts = dialogue.counts().clone();
        let active = stop.unwrap_or(end).min(end).since(start);
        let end = end.max(latest);
        let user = dialogue.outcome(end, name, active);
        FlowOutcome {
            bytes_delivered: counts.bytes_delivered,
            deliveries,
            packets_sent: counts.sent,
            packets_received: counts.received,
            stream: Some(arrivals.outcome(end)),
            user: Some(user),
            ..FlowOutcome::default()
        }
    }

    /// Notes the next event of the dialogue. One that is pending may only become earlier.
    fn go_on(&mut self, now: Instant) {
        if let Some(at) = self.plan.dialogue.take_wake(now) {
            self.due = Some(self.due.map_or(at, |due: Instant| due.min(at)));
        }
    }
}
