//! A connection of an application over QUIC: each request and its response have a stream of their own (RFC 9114,
//! section 4.1).
//!
//! The end that opened the connection asks, and the other end answers a request once it has all of it. The library
//! sends streams in the order in which they were written, as the simulator does.

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

use lastmile_units::Instant;
use quinn_proto::{Connection, Dir, Side, StreamId};

use crate::error::Error;
use crate::outcome::{FlowOutcome, FlowSample};
use crate::spec::{QuicPlan, Turn};

use super::counters;
use super::observed::Flight;
use super::peer::{Peer, Zero};
use super::settings::Settings;
use super::stream;

/// A connection, both ends of it.
pub(in super::super) struct Turns {
    plan: QuicPlan,
    zero: Zero,
    asker: Peer,
    answerer: Peer,
    /// True if the end that sends the data is the one that asks.
    sender_asks: bool,
    /// The flight of the end of the data.
    flight: Flight,
    /// Turns that are not over, in the order in which they were asked for; the streams of the first `asked` of them are
    /// open, and the other end has seen the first `seen`.
    turns: VecDeque<Exchange>,
    asked: usize,
    seen: usize,
    /// Payload bytes that have come in the direction of the data.
    delivered: u64,
    /// True if the connection closes after the turns that were asked for.
    hangs_up: bool,
    /// The end that asks has closed it. The other end learns of that, or later by a reset.
    closed: bool,
    failure: Option<String>,
}

/// A request and its response.
struct Exchange {
    stream: Option<StreamId>,
    /// Bytes of the request and of the response that are not written yet; `None` once the end is written, too.
    request: Option<u64>,
    response: Option<u64>,
    /// The whole request has come, and the whole response.
    is_heard: bool,
    is_over: bool,
}

impl Turns {
    /// A connection that opens `now`, with its first turn, between the socket of the end that opens and that of the
    /// other. `sender_opens`: the data are the requests.
    pub(in super::super) fn open(
        plan: QuicPlan,
        first: Turn,
        sender_opens: bool,
        [opener, other]: [UdpSocket; 2],
        now: Instant,
    ) -> Result<Self, Error> {
        let settings = Settings::new(&plan.quic)?;
        let flight = Flight::default();
        let of = |sends: bool| if sends { flight.clone() } else { Flight::default() };
        let mut turns = Self {
            zero: Zero::new(now),
            asker: Peer::new(opener, Side::Client, &settings, of(sender_opens))?,
            answerer: Peer::new(other, Side::Server, &settings, of(!sender_opens))?,
            plan,
            sender_asks: sender_opens,
            flight,
            turns: VecDeque::new(),
            asked: 0,
            seen: 0,
            delivered: 0,
            hangs_up: false,
            closed: false,
            failure: None,
        };
        let failed = |error: io::Error| Error::Quic(error.to_string());
        turns.asker.open(turns.zero.std(now)).map_err(failed)?;
        turns.ask(first, now);
        Ok(turns)
    }

    /// Another request is sent.
    pub(in super::super) fn ask(&mut self, Turn { request, bytes }: Turn, now: Instant) {
        let (request, response) = (Some(request), Some(bytes));
        self.turns.push_back(Exchange { stream: None, request, response, is_heard: false, is_over: false });
        self.go_on(now);
    }

    /// Closes the connection when all responses have arrived.
    pub(in super::super) fn hang_up(&mut self, now: Instant) {
        self.hangs_up = true;
        self.go_on(now);
    }

    /// Closes the connection at once.
    pub(in super::super) fn stop(&mut self, now: Instant) {
        self.turns.clear();
        (self.asked, self.seen) = (0, 0);
        self.hang_up(now);
    }

    /// The descriptors of the end that sends the data, and of the other.
    pub(in super::super) fn ends(&self) -> [BorrowedFd<'_>; 2] {
        let [sender, receiver] = self.peers();
        [sender.as_fd(), receiver.as_fd()]
    }

    /// The end that sends the data, and the other.
    fn peers(&self) -> [&Peer; 2] {
        if self.sender_asks { [&self.asker, &self.answerer] } else { [&self.answerer, &self.asker] }
    }

    /// When a timer of either end expires.
    pub(in super::super) fn next(&mut self) -> Option<Instant> {
        let timers = [self.asker.timer(), self.answerer.timer()];
        timers.into_iter().flatten().min().map(|at| self.zero.lab(at))
    }

    /// Timers may have expired.
    pub(in super::super) fn wake(&mut self, now: Instant) {
        let at = self.zero.std(now);
        self.asker.expire(at);
        self.answerer.expire(at);
        self.go_on(now);
    }

    /// Packets have come to one of the ends. Returns the number of responses that are whole with them.
    pub(in super::super) fn ready(&mut self, at_sender: bool, now: Instant) -> u32 {
        let peer = if at_sender == self.sender_asks { &mut self.asker } else { &mut self.answerer };
        let heard = peer.hear(self.zero.std(now));
        self.note_failure(heard);
        self.go_on(now)
    }

    /// Both ends do what they can, and send what they may. Returns the number of responses that have come whole.
    fn go_on(&mut self, now: Instant) -> u32 {
        let at = self.zero.std(now);
        for peer in [&mut self.asker, &mut self.answerer] {
            let failure = peer.notice().filter(|_| !self.closed);
            self.failure = self.failure.take().or(failure);
        }
        self.answer();
        let complete = self.receive();
        self.request();
        if self.hangs_up && self.turns.is_empty() && !self.closed {
            self.closed = true;
            self.asker.close(at);
        }
        for peer in [&mut self.asker, &mut self.answerer] {
            let sent = peer.send(at);
            self.failure = self.failure.take().or(sent.err().map(|error| error.to_string()));
        }
        complete
    }

    /// The end that asks opens streams, as many as the other end admits, and writes its requests.
    fn request(&mut self) {
        let Some(connection) = self.asker.connected() else { return };
        for turn in &mut self.turns {
            let id = match turn.stream {
                Some(id) => id,
                None => {
                    let Some(id) = connection.streams().open(Dir::Bi) else { return };
                    self.asked += 1;
                    *turn.stream.insert(id)
                }
            };
            Exchange::write(connection, id, &mut turn.request);
        }
    }

    /// The other end reads requests, and answers those that are whole.
    fn answer(&mut self) {
        let Some(connection) = self.answerer.connection() else { return };
        while self.seen < self.asked && connection.streams().accept(Dir::Bi).is_some() {
            self.seen += 1;
        }
        for turn in self.turns.iter_mut().take(self.seen) {
            let Some(id) = turn.stream else { return };
            if !turn.is_heard {
                let (bytes, whole) = stream::read(connection, id);
                turn.is_heard = whole;
                self.delivered += if self.sender_asks { bytes } else { 0 };
            }
            if turn.is_heard {
                Exchange::write(connection, id, &mut turn.response);
            }
        }
    }

    /// The end that asks reads responses. Returns the number of those that are whole now.
    fn receive(&mut self) -> u32 {
        let Some(connection) = self.asker.connection() else { return 0 };
        let mut complete = 0;
        for turn in self.turns.iter_mut().filter(|turn| !turn.is_over) {
            let Some(id) = turn.stream else { break };
            let (bytes, whole) = stream::read(connection, id);
            turn.is_over = whole;
            self.delivered += if self.sender_asks { 0 } else { bytes };
            complete += u32::from(whole);
        }
        while self.turns.front().is_some_and(|turn| turn.is_over) {
            self.turns.pop_front();
            self.asked -= 1;
            self.seen -= 1;
        }
        complete
    }

    fn note_failure(&mut self, result: io::Result<()>) {
        self.failure = self.failure.take().or(result.err().map(|error| error.to_string()));
    }

    pub(in super::super) fn bytes_delivered(&self) -> u64 {
        self.delivered
    }

    /// True if the connection is closed at both ends, or broken.
    pub(in super::super) fn is_over(&self) -> bool {
        self.has_failed() || (self.closed && self.asker.is_over() && self.answerer.is_over())
    }

    pub(in super::super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(in super::super) fn sample(&self) -> FlowSample {
        let tcp = counters::sample(self.peers()[0], &self.flight);
        FlowSample { bytes_delivered: self.delivered, tcp, ..FlowSample::default() }
    }

    pub(in super::super) fn outcome(self) -> FlowOutcome {
        let (bytes_delivered, failure) = (self.delivered, self.failure.clone());
        let received = FlowOutcome { bytes_delivered, failure, ..FlowOutcome::default() };
        counters::outcome(self.peers(), &self.flight, &self.plan.quic, received)
    }
}

impl Exchange {
    /// Writes the request or the response.
    fn write(connection: &mut Connection, id: StreamId, left: &mut Option<u64>) {
        if left.as_mut().is_some_and(|left| stream::write(connection, id, left)) {
            *left = None;
        }
    }
}
