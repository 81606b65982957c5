//! The sending half of an endpoint.
//!
//! Published: RFC 9293, RFC 6298.
//!
//! An endpoint has a [`SendHalf`], which becomes a [`Sender`] with the first data.
//! Each part owns its state and answers questions about it: `buffer` (the offered octets), `flight` (the
//! octets sent and not acknowledged), `window` (the peer's window, the congestion window), `repair` (losses
//! and their repair), `rtt` (the timeout), `timers` (the timer that runs). No part knows [`Sender`], which
//! asks them in the order of the RFCs.
//!
//! The procedures of the RFCs touch several parts each. They are methods of [`Sender`], and every event has
//! a file: `acknowledgement`, `sack`, `recovery`, `transmit`, and the files of `timers`; `half` has the
//! handshake. These files and this one refer to one another, since they are one type.
//!
//! Cost: a dozen stores for each segment sent.

mod acknowledgement;
mod buffer;
pub(crate) mod delivery_rate;
pub(crate) mod flight;
mod half;
mod marks;
mod model;
pub(crate) mod octet_rate;
pub(crate) mod pacing;
mod recovery;
pub(crate) mod repair;
mod rtt;
mod sack;
mod timers;
mod transmit;
mod validation;
pub(crate) mod window;

use lastmile_packet::SeqNumber;

use crate::stats::{DataStats, LimitClock, SendStats};
pub(crate) use acknowledgement::{AckInfo, AckVerdict};
pub(crate) use buffer::FOREVER;
use buffer::SendBuffer;
use delivery_rate::DeliveryRate;
use flight::Flight;
pub(crate) use half::SendHalf;
use pacing::Pacer;
use repair::Repair;
use rtt::Rtt;
pub(crate) use timers::Alarm;
use timers::Timers;
pub(crate) use transmit::Plan;
use window::{Congestion, EcnResponse, PeerWindow, WindowUse};

/// A segment that is sent regardless of the congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Urgent {
    /// The retransmission of the segment at the cumulative acknowledgement.
    First,
    WindowProbe,
    TailLossProbe,
}

/// The sender of an established connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    buffer: SendBuffer,
    peer: PeerWindow,
    timers: Timers,
    rtt: Rtt,
    stats: SendStats,
    limits: LimitClock,
    mss: u16,
    data: Box<DataState>,
}

/// The state that an end without data to send does not have.
#[derive(Clone, Debug)]
struct DataState {
    flight: Flight,
    /// Octets that the send buffer holds.
    capacity: u64,
    congestion: Congestion,
    usage: WindowUse,
    repair: Repair,
    ecn: EcnResponse,
    stats: DataStats,
    urgent: Option<Urgent>,
    /// Octets of the packet that is being built, as Linux builds them (`CongestionConfig::tso_deferral`).
    packet: u32,
    /// One past the last octet of the socket buffer from which the newest octets were sent, as Linux divides them.
    socket_buffer_end: u64,
    /// The samples of a variant that measures delivery rates.
    rate: Option<Box<DeliveryRate>>,
    /// `None`: segments depart as the windows admit them.
    pacer: Option<Box<Pacer>>,
}

impl Sender {
    /// The sequence number of an octet.
    #[inline]
    fn wire(&self, offset: u64) -> SeqNumber {
        self.buffer.wire(offset)
    }

    fn fin_sent(&self) -> bool {
        self.data.flight.max() > self.buffer.end()
    }

    /// Octets that the network holds by this sender's estimate.
    #[inline]
    fn in_flight(&self) -> u64 {
        self.data.flight.in_network()
    }
}
