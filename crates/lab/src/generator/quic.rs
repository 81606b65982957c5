//! QUIC between two endpoints of the library quinn-proto: the applications at both ends of it.
//!
//! The library decides everything that RFC 9000 and RFC 9002 leave to an endpoint. The end that sends the data of a
//! transfer opens a stream in its direction alone, once it has all of a request, which comes over a stream of the other
//! end. The connections of applications are in `turns`.

mod counters;
mod observed;
mod one_way;
mod peer;
mod requests;
mod settings;
mod stream;

use std::io;
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

use lastmile_model::outcome::Deliveries;
use lastmile_units::Instant;
use quinn_proto::Side;

use crate::error::Error;
use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::QuicPlan;

use self::observed::Flight;
use self::one_way::OneWay;
use self::peer::{Peer, Zero};
pub(super) use self::requests::Turns;
use self::settings::Settings;

/// Bytes that the end of the data offers beyond its window: as many as leave during a wake-up.
const UNSENT: u64 = 64 << 10;

/// A QUIC transfer, both ends of it.
pub(super) struct QuicTransfer {
    plan: QuicPlan,
    sender: OneWay,
    receiver: OneWay,
    flight: Flight,
    /// The clock of the transfer, once it has begun.
    zero: Option<Zero>,
    /// Bytes of the data left to offer; `None` for as many as there is time for.
    left: Option<u64>,
    /// Bytes of the request left to send, and of these heard at the other end.
    to_ask: u64,
    heard: u64,
    /// The deliveries, in the fields that they have in an outcome.
    received: FlowOutcome,
    failure: Option<String>,
}

impl QuicTransfer {
    /// A transfer between these sockets: of the end that sends the data, and of the other. `sender_opens`: the former
    /// opens the connection.
    pub(super) fn new(plan: QuicPlan, sender_opens: bool, [sender, receiver]: [UdpSocket; 2]) -> Result<Self, Error> {
        let settings = Settings::new(&plan.quic)?;
        let flight = Flight::default();
        let [one, other] = if sender_opens { [Side::Client, Side::Server] } else { [Side::Server, Side::Client] };
        Ok(Self {
            left: plan.bytes,
            to_ask: plan.request,
            sender: OneWay::new(Peer::new(sender, one, &settings, flight.clone())?),
            receiver: OneWay::new(Peer::new(receiver, other, &settings, Flight::default())?),
            flight,
            plan,
            zero: None,
            heard: 0,
            received: FlowOutcome::default(),
            failure: None,
        })
    }

    /// The opener connects.
    pub(super) fn begin(&mut self, now: Instant) -> io::Result<()> {
        let at = self.zero.insert(Zero::new(now)).std(now);
        self.sender.peer.open(at)?;
        self.receiver.peer.open(at)?;
        self.go_on(now)
    }

    /// The application stops offering data.
    pub(super) fn stop(&mut self) {
        self.left = Some(0);
    }

    /// The descriptors of the end that sends the data, and of the other.
    pub(super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        [self.sender.peer.as_fd(), self.receiver.peer.as_fd()]
    }

    /// When a timer of either end expires.
    pub(super) fn next(&mut self) -> Option<Instant> {
        let timers = [self.sender.peer.timer(), self.receiver.peer.timer()];
        timers.into_iter().flatten().min().zip(self.zero.as_ref()).map(|(at, zero)| zero.lab(at))
    }

    /// Timers have expired.
    pub(super) fn wake(&mut self, now: Instant) -> io::Result<()> {
        let Some(zero) = &self.zero else { return Ok(()) };
        let at = zero.std(now);
        self.sender.peer.expire(at);
        self.receiver.peer.expire(at);
        self.go_on(now)
    }

    /// Packets have come to one of the ends. True if the last of a given number of bytes is among them.
    pub(super) fn ready(&mut self, at_sender: bool, now: Instant) -> io::Result<bool> {
        let Some(zero) = &self.zero else { return Ok(false) };
        let before = self.received.end;
        let end = if at_sender { &mut self.sender } else { &mut self.receiver };
        end.peer.hear(zero.std(now))?;
        self.go_on(now)?;
        Ok(before.is_none() && self.received.end.is_some())
    }

    /// Both applications do what they can, and both ends send what they may.
    fn go_on(&mut self, now: Instant) -> io::Result<()> {
        let Some(zero) = &self.zero else { return Ok(()) };
        let at = zero.std(now);
        for end in [&mut self.sender, &mut self.receiver] {
            let failure = end.peer.notice();
            self.failure = self.failure.take().or(failure);
        }
        self.heard += self.sender.read();
        self.receive(now);
        self.receiver.write(&mut self.to_ask);
        if self.heard >= self.plan.request {
            self.sender.bound_unsent(UNSENT);
            let mut endless = u64::MAX;
            self.sender.write(self.left.as_mut().unwrap_or(&mut endless));
        }
        self.sender.peer.send(at)?;
        self.receiver.peer.send(at)
    }

    fn receive(&mut self, now: Instant) {
        let bytes = self.receiver.read();
        if bytes == 0 {
            return;
        }
        self.received.bytes_delivered += bytes;
        Deliveries::note(&mut self.received.deliveries, now);
        if self.plan.bytes.is_some_and(|all| self.received.bytes_delivered >= all) {
            self.received.end.get_or_insert(now);
        }
    }

    /// Payload bytes that the receiving application has read.
    pub(super) fn bytes_delivered(&self) -> u64 {
        self.received.bytes_delivered
    }

    pub(super) fn sample(&self) -> FlowSample {
        let tcp = counters::sample(&self.sender.peer, &self.flight);
        FlowSample { bytes_delivered: self.bytes_delivered(), tcp, ..FlowSample::default() }
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        let received = FlowOutcome { failure: self.failure, ..self.received };
        counters::outcome([&self.sender.peer, &self.receiver.peer], &self.flight, &self.plan.quic, received)
    }
}
