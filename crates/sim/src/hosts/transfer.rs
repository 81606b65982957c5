//! A transfer over TCP or QUIC: both endpoints and the applications on them.
//!
//! Data flows from the sender to the receiver. Either side opens the connection. The receiver may send a
//! request first, as a client does. The receiver reads at once; each side closes when the other has closed.

use std::num::NonZeroU64;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_quic::Role;
use lastmile_tcp::{Config, Endpoint, LimitedTime, Open};
use lastmile_units::Instant;

use super::end::{End, QuicEnd};
use super::requests::Turns;
use crate::engine::Handle;
use crate::network::flow::Side;
use lastmile_model::outcome::Deliveries;
use lastmile_model::{IpFields, OpenedBy, Source, Transport};

/// Both ends of a transfer. A run may have a million of them, so the struct is small.
pub(crate) struct Transfer {
    ends: [End; 2],
    deliveries: Option<Deliveries>,
    /// Bytes that the sender offers; `None`: it sends for ever.
    bytes: Option<NonZeroU64>,
    /// The pending event of each end's timer.
    wakes: [Option<Handle>; 2],
    request: u32,
    pub(crate) max_in_flight: u32,
    /// The flow number of the application or swarm that opened the connection.
    owner: Option<u32>,
    opened_by: Side,
    offered: bool,
    /// The connection stays open after `bytes`.
    keep_open: bool,
    /// The requests of an application and their responses, in place of `bytes`.
    turns: Option<Box<Turns>>,
}

/// The request and the data with which a connection begins.
pub(crate) struct Exchange {
    /// Bytes of data; `None`: the sender sends for ever.
    pub(crate) bytes: Option<u64>,
    /// Bytes of the receiver's request.
    pub(crate) request: u32,
    /// The connection stays open after the data.
    pub(crate) keep_open: bool,
    pub(crate) opened_by: OpenedBy,
}

/// The effect of a segment on the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// The transfer goes on.
    Ongoing,
    /// The last of the data has arrived, or this many responses.
    Complete(u32),
}

impl Transfer {
    /// A transfer for this source; `None` unless the source is a transfer. `iss`: initial sequence numbers, or seeds of
    /// QUIC.
    pub(crate) fn new(source: &Source, flows: [FlowId; 2], iss: [SeqNumber; 2], ip: IpFields) -> Option<Self> {
        match source {
            Source::Bulk { sender, receiver, bytes, request, opened_by } => {
                let request = u32::try_from(*request).unwrap_or(u32::MAX);
                let exchange = Exchange { bytes: *bytes, request, keep_open: false, opened_by: *opened_by };
                Some(Self::between([sender, receiver], flows, iss, None, &exchange))
            }
            Source::Writes { tcp, opened_by, .. } => {
                let exchange = Exchange { bytes: None, request: 0, keep_open: true, opened_by: *opened_by };
                let transfer = Self::between([tcp, tcp], flows, iss, None, &exchange);
                // A writer offers its data.
                Some(Self { offered: true, ..transfer })
            }
            Source::Quic { quic, bytes, request, opened_by } => {
                let request = u32::try_from(*request).unwrap_or(u32::MAX);
                let exchange = Exchange { bytes: *bytes, request, keep_open: false, opened_by: *opened_by };
                Some(Self::over_quic(quic, (flows, ip), iss, None, &exchange))
            }
            _ => None,
        }
    }

    /// A connection that the flow number `owner` opens, if there is one. `ip` is the code point of packets of QUIC.
    pub(crate) fn over(
        transport: &Transport,
        (flows, ip): ([FlowId; 2], IpFields),
        iss: [SeqNumber; 2],
        owner: Option<u32>,
        exchange: &Exchange,
    ) -> Self {
        match transport {
            Transport::Tcp(tcp) => Self::between([tcp, tcp], flows, iss, owner, exchange),
            Transport::Quic(quic) => Self::over_quic(quic, (flows, ip), iss, owner, exchange),
        }
    }

    fn over_quic(
        quic: &Arc<lastmile_quic::Config>,
        (flows, ip): ([FlowId; 2], IpFields),
        seeds: [SeqNumber; 2],
        owner: Option<u32>,
        exchange: &Exchange,
    ) -> Self {
        let opener = opener(exchange.opened_by);
        let end = |side: Side| {
            let role = if side == opener { Role::Client } else { Role::Server };
            let endpoint = lastmile_quic::Endpoint::new(Arc::clone(quic), role, seeds[side.index()].raw());
            End::Quic(Box::new(QuicEnd::new(endpoint, flows[side.index()], ip)))
        };
        Self::with_ends([end(Side::Sender), end(Side::Receiver)], owner, exchange)
    }

    /// A connection of TCP.
    fn between(
        tcp: [&Arc<Config>; 2],
        flows: [FlowId; 2],
        iss: [SeqNumber; 2],
        owner: Option<u32>,
        exchange: &Exchange,
    ) -> Self {
        let opener = opener(exchange.opened_by);
        let end = |tcp: &Arc<Config>, side: Side| {
            let open = if side == opener { Open::Active } else { Open::Passive };
            End::Tcp(Endpoint::new(Arc::clone(tcp), flows[side.index()], open, iss[side.index()]))
        };
        Self::with_ends([end(tcp[0], Side::Sender), end(tcp[1], Side::Receiver)], owner, exchange)
    }

    fn with_ends(ends: [End; 2], owner: Option<u32>, exchange: &Exchange) -> Self {
        let Exchange { bytes, request, keep_open, opened_by } = *exchange;
        Self {
            ends,
            deliveries: None,
            bytes: bytes.and_then(NonZeroU64::new),
            wakes: [None; 2],
            request,
            max_in_flight: 0,
            owner,
            opened_by: opener(opened_by),
            offered: false,
            keep_open,
            turns: None,
        }
    }

    /// This connection, whose opener sends requests that the other end answers. The first has `request` octets and a
    /// response of `bytes`.
    pub(crate) fn by_turns(mut self, (request, bytes): (u64, u64)) -> Self {
        let mut turns = Turns::default();
        turns.ask(request, bytes);
        self.turns = Some(Box::new(turns));
        self.offered = true;
        self
    }

    /// The side that opens, or has opened, the connection.
    pub(crate) fn opener(&self) -> Side {
        self.opened_by
    }

    /// The flow number of the application or swarm that opened the connection.
    pub(crate) fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The opener of a connection by turns sends another request, for a response of `bytes`.
    pub(crate) fn ask(&mut self, request: u64, bytes: u64) {
        if let Some(turns) = &mut self.turns {
            turns.ask(request, bytes);
        }
        self.end(self.opened_by).write(request);
    }

    /// The last exchange is over: the sender closes, then the receiver.
    pub(crate) fn hang_up(&mut self) {
        self.end(Side::Sender).close();
    }

    /// Both ends are done, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.has_failed() || (self.sender().is_done() && self.receiver().is_done())
    }

    /// One end was reset or has given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.sender().has_failed() || self.receiver().has_failed()
    }

    pub(crate) fn sender(&self) -> &End {
        &self.ends[Side::Sender.index()]
    }

    pub(crate) fn receiver(&self) -> &End {
        &self.ends[Side::Receiver.index()]
    }

    /// The time for which each reason limited the sender, up to `now`. One that waits to be opened, as that of a
    /// download does, has none until the handshake reaches it: the end that opens then waits for both.
    pub(crate) fn limited_by(&self, now: Instant) -> LimitedTime {
        let of_sender = self.sender().limited_by(now);
        if !of_sender.total().is_zero() {
            return of_sender;
        }
        LimitedTime { awaiting_ack: self.receiver().limited_by(now).awaiting_ack, ..LimitedTime::default() }
    }

    #[inline]
    pub(crate) fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.index()]
    }

    /// Payload bytes handed to the receiving application.
    pub(crate) fn bytes_delivered(&self) -> u64 {
        self.receiver().delivered()
    }

    /// The arrival of the last byte of a transfer of given size.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.deliveries
            .map(|deliveries| deliveries.last)
            .filter(|_| self.bytes.is_some_and(|bytes| self.bytes_delivered() >= bytes.get()))
    }

    /// The first and the latest delivery.
    pub(crate) fn deliveries(&self) -> Option<Deliveries> {
        self.deliveries
    }

    /// Begins the transfer. Returns the side that opens, which has a segment to send.
    pub(crate) fn begin(&mut self, now: Instant) -> Side {
        if let Some(turns) = &self.turns {
            let requested = turns.requested();
            self.end(self.opened_by).write(requested);
        } else if self.request > 0 {
            let request = u64::from(self.request);
            self.end(Side::Receiver).write(request);
        } else if self.opened_by == Side::Sender && !self.offered {
            self.offer();
        }
        // A listening sender offers its data when the first segment arrives: a close would end its listening.
        let opener = self.opened_by;
        self.end(opener).connect(now);
        opener
    }

    /// The application writes `bytes` more. After [`stop`](Self::stop) this has no effect.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.end(Side::Sender).write(bytes);
    }

    /// The application stops offering data.
    pub(crate) fn stop(&mut self) {
        self.offered = true;
        if let Some(turns) = &mut self.turns {
            turns.stop();
        }
        self.end(Side::Sender).abort();
    }

    /// A segment, or a packet of QUIC, arrives at one end.
    #[inline(always)]
    pub(crate) fn on_segment(&mut self, now: Instant, side: Side, segment: &Meta) -> Progress {
        let [sender, receiver] = &mut self.ends;
        let before = receiver.delivered();
        if side == Side::Sender {
            End::deliver(sender, receiver, now, segment);
        } else {
            End::deliver(receiver, sender, now, segment);
        }
        self.advance(now, side, before)
    }

    /// The timer event of an end fires. A receiver that offloads hands data over then, too.
    pub(crate) fn on_wake(&mut self, now: Instant, side: Side) -> Progress {
        self.wakes[side.index()] = None;
        let before = self.receiver().delivered();
        self.end(side).on_timer(now);
        self.advance(now, side, before)
    }

    /// An end has processed segments, before which the receiver had delivered `before` bytes.
    #[inline(always)]
    fn advance(&mut self, now: Instant, side: Side, before: u64) -> Progress {
        if side == Side::Sender {
            if self.turns.is_some() {
                return self.turn(side);
            }
            if !self.offered && self.sender().delivered() >= u64::from(self.request) {
                self.offer();
            }
            return Progress::Ongoing;
        }
        let delivered = self.received(now, before);
        if self.turns.is_some() {
            return self.turn(side);
        }
        let complete = delivered > before && self.bytes.is_some_and(|bytes| bytes.get() == delivered);
        if complete { Progress::Complete(1) } else { Progress::Ongoing }
    }

    /// Updates the largest amount in flight, after an end has sent all that its windows admit.
    #[inline]
    pub(crate) fn note_in_flight(&mut self, side: Side) {
        if side == Side::Sender {
            let in_flight = u32::try_from(self.sender().in_flight()).unwrap_or(u32::MAX);
            self.max_in_flight = self.max_in_flight.max(in_flight);
        }
    }

    /// The time of the next timer event that an end needs.
    #[inline(always)]
    pub(crate) fn next_wake(&self, now: Instant, side: Side) -> Option<Instant> {
        Some(self.ends[side.index()].next_timer()?.max(now))
    }

    /// The pending timer event of an end.
    #[inline]
    pub(crate) fn wake(&self, side: Side) -> Option<Handle> {
        self.wakes[side.index()]
    }

    /// Stores the pending timer event of an end.
    #[inline]
    pub(crate) fn set_wake(&mut self, side: Side, wake: Handle) {
        self.wakes[side.index()] = Some(wake);
    }

    /// A segment has arrived at one end of a connection by turns. The end that answers writes a response to each
    /// complete request; the end that asks counts the complete responses.
    fn turn(&mut self, side: Side) -> Progress {
        let Some(turns) = &mut self.turns else { return Progress::Ongoing };
        let end = &mut self.ends[side.index()];
        if side == self.opened_by {
            // A stream of QUIC may be whole where octets before it are missing.
            return match turns.receive(|response| end.has_received(response)) {
                0 => Progress::Ongoing,
                responses => Progress::Complete(responses),
            };
        }
        let bytes = turns.respond(|request| end.has_received(request));
        if bytes > 0 {
            end.write(bytes);
            if !self.keep_open {
                end.close();
            }
        }
        Progress::Ongoing
    }

    fn offer(&mut self) {
        self.offered = true;
        let (bytes, keep_open) = (self.bytes, self.keep_open);
        let sender = self.end(Side::Sender);
        match bytes {
            Some(bytes) => {
                sender.write(bytes.get());
                if !keep_open {
                    sender.close();
                }
            }
            None => sender.write_forever(),
        }
    }

    /// The receiver, which had delivered `before` bytes, has processed a segment. Returns the bytes delivered since the
    /// beginning.
    #[inline(always)]
    fn received(&mut self, now: Instant, before: u64) -> u64 {
        let end = &mut self.ends[Side::Receiver.index()];
        if end.peer_closed() {
            end.close();
        }
        let delivered = end.delivered();
        if delivered > before {
            Deliveries::note(&mut self.deliveries, now);
        }
        delivered
    }
}

/// The side that opens a connection.
fn opener(opened_by: OpenedBy) -> Side {
    match opened_by {
        OpenedBy::Sender => Side::Sender,
        OpenedBy::Receiver => Side::Receiver,
    }
}
