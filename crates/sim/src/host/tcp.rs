//! A TCP transfer: both endpoints and the applications on them.
//!
//! Data flows from the sender (side `From`) to the receiver (side `To`). Whichever opens, the receiver may send a request
//! first, as a client does. The receiver reads at once; each side closes when the other has.

use std::num::NonZeroU64;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, SeqNumber};
use lastmile_tcp::{Config, Endpoint, Open};
use lastmile_units::Instant;

use crate::engine::Handle;
use crate::flow::Side;
use lastmile_model::{OpenedBy, Source};

/// A TCP transfer, both ends of it. Laid out so that a segment for one end touches few cache lines, and small: there may be
/// a million of them.
#[repr(C)]
pub(crate) struct Transfer {
    ends: [Endpoint; 2],
    first_delivery: Instant,
    last_delivery: Instant,
    /// What the sender will offer once it may.
    bytes: Option<NonZeroU64>,
    /// The wake-up that is pending for each end.
    wakes: [Option<Handle>; 2],
    request: u32,
    pub(crate) max_in_flight: u32,
    /// The flow number of what opened it; [`NO_OWNER`] for a transfer of its own.
    owner: u32,
    opened_by: Side,
    offered: bool,
    /// The connection may carry more than `bytes`: it stays open.
    keep_open: bool,
}

/// No flow has this number.
const NO_OWNER: u32 = u32::MAX;

/// What a connection that something opened is to carry first.
pub(crate) struct Carries {
    /// Bytes of data; `None` for as many as there is time for.
    pub(crate) bytes: Option<u64>,
    /// Bytes that the receiver asks with.
    pub(crate) request: u32,
    /// More may follow.
    pub(crate) keep_open: bool,
    pub(crate) opened_by: OpenedBy,
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
    pub(crate) fn new(source: &Source, flows: [FlowId; 2], iss: [SeqNumber; 2]) -> Option<Self> {
        match source {
            Source::Bulk { sender, receiver, bytes, request, opened_by } => {
                let request = u32::try_from(*request).unwrap_or(u32::MAX);
                let carries = Carries { bytes: *bytes, request, keep_open: false, opened_by: *opened_by };
                Some(Self::between([sender, receiver], flows, iss, NO_OWNER, &carries))
            }
            Source::Writes { tcp, opened_by, .. } => {
                let carries = Carries { bytes: None, request: 0, keep_open: true, opened_by: *opened_by };
                let transfer = Self::between([tcp, tcp], flows, iss, NO_OWNER, &carries);
                // It offers nothing by itself: its writer does.
                Some(Self { offered: true, ..transfer })
            }
            _ => None,
        }
    }

    /// A connection that flow number `owner` opens.
    pub(crate) fn between(
        tcp: [&Arc<Config>; 2],
        flows: [FlowId; 2],
        iss: [SeqNumber; 2],
        owner: u32,
        carries: &Carries,
    ) -> Self {
        let Carries { bytes, request, keep_open, opened_by } = *carries;
        let (open, opener) = match opened_by {
            OpenedBy::Sender => ([Open::Active, Open::Passive], Side::From),
            OpenedBy::Receiver => ([Open::Passive, Open::Active], Side::To),
        };
        let end = |tcp: &Arc<Config>, side: Side| {
            Endpoint::new(Arc::clone(tcp), flows[side.index()], open[side.index()], iss[side.index()])
        };
        Self {
            ends: [end(tcp[0], Side::From), end(tcp[1], Side::To)],
            first_delivery: Instant::ZERO,
            last_delivery: Instant::ZERO,
            bytes: bytes.and_then(NonZeroU64::new),
            wakes: [None; 2],
            request,
            max_in_flight: 0,
            owner,
            opened_by: opener,
            offered: false,
            keep_open,
        }
    }

    /// The flow number of what opened it.
    pub(crate) fn owner(&self) -> Option<u32> {
        (self.owner != NO_OWNER).then_some(self.owner)
    }

    /// The receiver asks for `bytes` more on a connection that was kept open.
    pub(crate) fn ask(&mut self, request: u32, bytes: u64) {
        self.request = self.request.saturating_add(request);
        self.bytes = NonZeroU64::new(self.bytes.map_or(0, NonZeroU64::get) + bytes);
        self.offered = false;
        self.end(Side::To).write(request.into());
    }

    /// Nothing more will be asked for: the sender closes, then the receiver.
    pub(crate) fn hang_up(&mut self) {
        self.end(Side::From).close();
    }

    /// Both ends are done with it, or one has given up.
    pub(crate) fn is_over(&self) -> bool {
        self.has_failed() || (self.sender().is_done() && self.receiver().is_done())
    }

    /// One end was reset or has given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.sender().has_failed() || self.receiver().has_failed()
    }

    pub(crate) fn sender(&self) -> &Endpoint {
        &self.ends[Side::From.index()]
    }

    pub(crate) fn receiver(&self) -> &Endpoint {
        &self.ends[Side::To.index()]
    }

    fn end(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side.index()]
    }

    /// Payload bytes handed to the receiving application.
    pub(crate) fn bytes_delivered(&self) -> u64 {
        self.receiver().delivered()
    }

    /// When the last byte of a transfer of given size arrived.
    pub(crate) fn completed(&self) -> Option<Instant> {
        self.deliveries()
            .map(|(_, last)| last)
            .filter(|_| self.bytes.is_some_and(|bytes| self.bytes_delivered() >= bytes.get()))
    }

    /// When the first and the latest byte were delivered.
    pub(crate) fn deliveries(&self) -> Option<(Instant, Instant)> {
        (self.bytes_delivered() > 0).then_some((self.first_delivery, self.last_delivery))
    }

    /// The transfer begins: the side to pump.
    pub(crate) fn begin(&mut self, now: Instant) -> Side {
        if self.request > 0 {
            let request = u64::from(self.request);
            self.end(Side::To).write(request);
        } else if self.opened_by == Side::From && !self.offered {
            self.offer();
        }
        // A listening sender offers its data when the first segment comes: to close while it listens would end it.
        let opener = self.opened_by;
        self.end(opener).connect(now);
        opener
    }

    /// The application hands over `bytes` more; after [`stop`](Self::stop) nothing comes of it.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.end(Side::From).write(bytes);
    }

    /// The application stops offering data.
    pub(crate) fn stop(&mut self) {
        self.offered = true;
        self.end(Side::From).abort();
    }

    /// A segment arrives at one end.
    #[inline]
    pub(crate) fn on_segment(&mut self, now: Instant, side: Side, segment: &Meta) -> Progress {
        let before = self.bytes_delivered();
        self.end(side).on_segment(now, segment);
        match side {
            Side::To => self.received(now, before),
            Side::From => {
                if !self.offered && self.sender().delivered() >= u64::from(self.request) {
                    self.offer();
                }
                Progress::Ongoing
            }
        }
    }

    /// An end's wake-up fires.
    pub(crate) fn on_wake(&mut self, now: Instant, side: Side) {
        self.wakes[side.index()] = None;
        let end = self.end(side);
        if end.next_timer().is_some_and(|at| at <= now) {
            end.on_timer(now);
        }
    }

    /// The next segment that an end has to send.
    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant, side: Side) -> Option<Meta> {
        self.end(side).poll_transmit(now)
    }

    /// Reads a word of each cache line that a segment for this end will need.
    #[inline]
    pub(crate) fn touch(&self, side: Side) {
        let end = &self.ends[side.index()];
        std::hint::black_box(end.touch() ^ self.last_delivery.as_ps());
    }

    /// The same for what is a pointer away, a little later.
    #[inline]
    pub(crate) fn touch_further(&self, side: Side) {
        std::hint::black_box(self.ends[side.index()].touch_further());
    }

    /// An end has sent all that it may for now.
    #[inline]
    pub(crate) fn sent_all(&mut self, side: Side) {
        if side == Side::From {
            let in_flight = u32::try_from(self.sender().in_flight()).unwrap_or(u32::MAX);
            self.max_in_flight = self.max_in_flight.max(in_flight);
        }
    }

    /// When an end must be woken at the latest.
    #[inline]
    pub(crate) fn next_wake(&self, now: Instant, side: Side) -> Option<Instant> {
        Some(self.ends[side.index()].next_timer()?.max(now))
    }

    /// The wake-up that is pending for an end.
    #[inline]
    pub(crate) fn wake(&self, side: Side) -> Option<Handle> {
        self.wakes[side.index()]
    }

    /// Notes the wake-up that is pending for an end.
    #[inline]
    pub(crate) fn set_wake(&mut self, side: Side, wake: Handle) {
        self.wakes[side.index()] = Some(wake);
    }

    fn offer(&mut self) {
        self.offered = true;
        let (bytes, keep_open) = (self.bytes, self.keep_open);
        let sender = self.end(Side::From);
        match bytes {
            Some(bytes) => {
                // What was asked for earlier on this connection is written already.
                sender.write(bytes.get() - (sender.sent() + sender.unsent()).min(bytes.get()));
                if !keep_open {
                    sender.close();
                }
            }
            None => sender.write_forever(),
        }
    }

    /// What came of a segment for the receiver, which had delivered `before` bytes.
    #[inline]
    fn received(&mut self, now: Instant, before: u64) -> Progress {
        let end = &mut self.ends[Side::To.index()];
        if end.peer_closed() {
            end.close();
        }
        let delivered = end.delivered();
        if delivered == before {
            return Progress::Ongoing;
        }
        if before == 0 {
            self.first_delivery = now;
        }
        self.last_delivery = now;
        if self.bytes.is_some_and(|bytes| bytes.get() == delivered) { Progress::Complete } else { Progress::Ongoing }
    }
}
