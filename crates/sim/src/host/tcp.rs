//! A TCP transfer: both endpoints and the applications on them.
//!
//! Data flows from the sender (side `From`) to the receiver (side `To`). Whichever opens, the receiver may send a request
//! first, as a client does. The receiver reads at once; each side closes when the other has.

use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_tcp::{Endpoint, Open};
use lastmile_units::Instant;

use crate::net::Side;
use crate::spec::{OpenedBy, Source};

/// A TCP transfer, both ends of it.
pub(crate) struct Transfer {
    ends: [Endpoint; 2],
    /// The earliest wake-up that is pending for each end.
    wake_at: [Option<Instant>; 2],
    pub(crate) traffic: u32,
    opened_by: Side,
    /// What the sender will offer once it may.
    bytes: Option<u64>,
    request: u64,
    offered: bool,
    delivered: u64,
    pub(crate) start: Instant,
    pub(crate) first_delivery: Option<Instant>,
    pub(crate) last_delivery: Option<Instant>,
    pub(crate) data_packets_received: u64,
    pub(crate) max_in_flight: u64,
}

/// What a segment did to the transfer as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// Nothing that its application would see as an end.
    Ongoing,
    /// The last of the data has arrived.
    Complete,
}

impl Transfer {
    /// A transfer of this kind; `None` for what is not TCP.
    pub(crate) fn new(source: &Source, flows: [FlowId; 2], traffic: u32, iss: [SeqNumber; 2]) -> Option<Self> {
        let Source::Bulk { sender, receiver, bytes, request, opened_by } = source else { return None };
        let (open, opener) = match opened_by {
            OpenedBy::Sender => ([Open::Active, Open::Passive], Side::From),
            OpenedBy::Receiver => ([Open::Passive, Open::Active], Side::To),
        };
        Some(Self {
            ends: [
                Endpoint::new(Arc::clone(sender), flows[0], open[0], iss[0]),
                Endpoint::new(Arc::clone(receiver), flows[1], open[1], iss[1]),
            ],
            wake_at: [None; 2],
            traffic,
            opened_by: opener,
            bytes: *bytes,
            request: *request,
            offered: false,
            delivered: 0,
            start: Instant::ZERO,
            first_delivery: None,
            last_delivery: None,
            data_packets_received: 0,
            max_in_flight: 0,
        })
    }

    pub(crate) fn sender(&self) -> &Endpoint {
        &self.ends[Side::From.index()]
    }

    pub(crate) fn receiver(&self) -> &Endpoint {
        &self.ends[Side::To.index()]
    }

    /// Payload bytes handed to the receiving application.
    pub(crate) fn bytes_delivered(&self) -> u64 {
        self.delivered
    }

    /// When the last byte of a transfer of given size arrived.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.last_delivery.filter(|_| self.bytes.is_some_and(|bytes| self.delivered >= bytes))
    }

    /// The transfer begins: the side to pump.
    pub(crate) fn begin(&mut self, now: Instant) -> Side {
        self.start = now;
        if self.request > 0 {
            self.ends[Side::To.index()].write(self.request);
        } else if self.opened_by == Side::From {
            self.offer();
        }
        // A listening sender offers its data when the first segment comes: to close while it listens would end it.
        self.ends[self.opened_by.index()].connect(now);
        self.opened_by
    }

    /// The application stops offering data.
    pub(crate) fn stop(&mut self) {
        let sender = &mut self.ends[Side::From.index()];
        self.offered = true;
        sender.abort();
    }

    /// A segment arrives at one end.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, side: Side, segment: &Meta) -> Progress {
        let end = &mut self.ends[side.index()];
        end.on_segment(now, segment);
        match side {
            Side::To => self.received(now, segment),
            Side::From => {
                if !self.offered && self.ends[Side::From.index()].delivered() >= self.request {
                    self.offer();
                }
                Progress::Ongoing
            }
        }
    }

    /// An end's wake-up fires; false when an earlier one took its place.
    pub(crate) fn on_wake(&mut self, now: Instant, side: Side) -> bool {
        let wake_at = &mut self.wake_at[side.index()];
        if *wake_at != Some(now) {
            return false;
        }
        *wake_at = None;
        let end = &mut self.ends[side.index()];
        if end.next_timer().is_some_and(|at| at <= now) {
            end.on_timer(now);
        }
        true
    }

    /// The next segment that an end has to send.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, side: Side) -> Option<Meta> {
        self.ends[side.index()].poll_transmit(now)
    }

    /// Reads a word of each cache line that a segment for this end will need.
    #[inline]
    pub(crate) fn touch(&self, side: Side) {
        std::hint::black_box(self.ends[side.index()].touch() ^ self.delivered ^ self.max_in_flight);
    }

    /// An end has sent all that it may for now.
    #[inline]
    pub(crate) fn sent_all(&mut self, side: Side) {
        if side == Side::From {
            self.max_in_flight = self.max_in_flight.max(self.sender().in_flight());
        }
    }

    /// When an end must be woken, if that is earlier than any wake-up pending for it.
    #[inline]
    pub(crate) fn next_wake(&mut self, now: Instant, side: Side) -> Option<Instant> {
        let at = self.ends[side.index()].next_timer()?.max(now);
        let wake_at = &mut self.wake_at[side.index()];
        if wake_at.is_some_and(|pending| pending <= at) {
            return None;
        }
        *wake_at = Some(at);
        Some(at)
    }

    fn offer(&mut self) {
        self.offered = true;
        let sender = &mut self.ends[Side::From.index()];
        match self.bytes {
            Some(bytes) => {
                sender.write(bytes);
                sender.close();
            }
            None => sender.write_forever(),
        }
    }

    #[inline]
    fn received(&mut self, now: Instant, segment: &Meta) -> Progress {
        let end = &mut self.ends[Side::To.index()];
        if segment.payload_len() > 0 {
            self.data_packets_received += 1;
        }
        let delivered = end.delivered();
        if delivered == self.delivered {
            if end.peer_closed() {
                end.close();
            }
            return Progress::Ongoing;
        }
        self.delivered = delivered;
        self.first_delivery.get_or_insert(now);
        self.last_delivery = Some(now);
        if end.peer_closed() {
            end.close();
        }
        if self.bytes == Some(delivered) { Progress::Complete } else { Progress::Ongoing }
    }
}
