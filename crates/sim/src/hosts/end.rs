//! One end of a transfer, whatever its transport: a TCP endpoint, or a QUIC endpoint with the contents of the packets
//! that it has sent.
//!
//! A QUIC packet is a UDP datagram in the network: its metadata has a length, the header for captures and, where TCP
//! has its sequence number, the number of the packet, from which the far end finds the contents. No queue, regulator or
//! classifier sees more.
//! Cost: a comparison for each call; QUIC is boxed, so that an end of TCP stays small.

use lastmile_model::IpFields;
use lastmile_packet::{FlowId, Meta, Protocol, QuicHeader};
use lastmile_quic::{Form, InTransit};
use lastmile_tcp::{Endpoint, LimitedTime, RoundTrips};
use lastmile_units::{ByteCount, Duration, Instant};

use super::datagram;
use super::requests::Span;

/// One end of a transfer.
#[expect(clippy::large_enum_variant, reason = "most ends are of TCP, which is not to pay for an indirection")]
pub(crate) enum End {
    Tcp(Endpoint),
    Quic(Box<QuicEnd>),
}

/// An end of a QUIC connection in the network.
pub(crate) struct QuicEnd {
    endpoint: lastmile_quic::Endpoint,
    /// The packets that it has sent.
    transit: InTransit,
    flow: FlowId,
    ip: IpFields,
}

/// The counters of an end, by the words of results.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) data_packets: u64,
    pub(crate) data_received: u64,
    /// Packets with data that was sent before.
    pub(crate) retransmissions: u64,
    pub(crate) mark_reductions: u64,
    /// Expiries of the retransmission timer, or of the probe timeout.
    pub(crate) timeouts: u64,
    /// Entries into fast retransmit, or reductions of the window for losses.
    pub(crate) fast_retransmits: u64,
    pub(crate) acks_sent: u64,
    pub(crate) acks_received: u64,
}

impl QuicEnd {
    pub(crate) fn new(endpoint: lastmile_quic::Endpoint, flow: FlowId, ip: IpFields) -> Self {
        Self { endpoint, transit: InTransit::default(), flow, ip }
    }

    // Not inlined, as the rest of QUIC: registers of the caller are those that TCP needs.
    #[inline(never)]
    fn poll_transmit(&mut self, now: Instant) -> Option<Meta> {
        let packet = self.endpoint.poll_transmit(now)?;
        let size = ByteCount::new(u64::from(packet.size) + u64::from(self.ip.datagram_headers()));
        let mut meta = datagram(self.flow, Protocol::Udp, size, packet.number, self.ip);
        let connection_id = self.endpoint.connection_id();
        meta.set_quic(match packet.form {
            Form::Initial => QuicHeader::initial(connection_id),
            Form::Handshake => QuicHeader::handshake(connection_id),
            Form::Short => QuicHeader::short(connection_id, packet.spin),
        });
        self.transit.send(packet);
        Some(meta)
    }

    /// A datagram that the peer has sent arrives. Its contents are gone if it arrived before.
    #[inline(never)]
    fn on_datagram(&mut self, now: Instant, peer: &mut Self, number: u32) {
        match peer.transit.arrive(number) {
            Some(packet) => self.endpoint.on_packet(now, &packet),
            None => self.endpoint.on_duplicate(),
        }
    }
}

/// Calls the same method of either transport.
macro_rules! either {
    ($end:expr, $endpoint:ident => $call:expr) => {
        match $end {
            Self::Tcp($endpoint) => $call,
            Self::Quic(quic) => {
                let $endpoint = &mut quic.endpoint;
                $call
            }
        }
    };
}

/// As [`either`], for a shared reference.
macro_rules! either_ref {
    ($end:expr, $endpoint:ident => $call:expr) => {
        match $end {
            Self::Tcp($endpoint) => $call,
            Self::Quic(quic) => {
                let $endpoint = &quic.endpoint;
                $call
            }
        }
    };
}

/// Events.
impl End {
    /// A packet arrives at `to`, sent by `from`.
    #[inline(always)]
    pub(crate) fn deliver(to: &mut Self, from: &mut Self, now: Instant, packet: &Meta) {
        match (to, from) {
            (Self::Tcp(to), _) => to.on_segment(now, packet),
            (Self::Quic(to), Self::Quic(from)) => to.on_datagram(now, from, packet.seq.raw()),
            (Self::Quic(_), Self::Tcp(_)) => unreachable!("both ends of a transfer have one transport"),
        }
    }

    #[inline]
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Meta> {
        match self {
            Self::Tcp(endpoint) => endpoint.poll_transmit(now),
            Self::Quic(quic) => quic.poll_transmit(now),
        }
    }

    /// The timer may have expired.
    #[inline]
    pub(crate) fn on_timer(&mut self, now: Instant) {
        match self {
            Self::Tcp(endpoint) => endpoint.on_timer(now),
            Self::Quic(quic) => {
                if quic.endpoint.next_timer().is_some_and(|at| at <= now) {
                    quic.endpoint.on_timer(now);
                }
            }
        }
    }

    pub(crate) fn connect(&mut self, now: Instant) {
        either!(self, endpoint => endpoint.connect(now));
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        either!(self, endpoint => endpoint.write(bytes));
    }

    pub(crate) fn write_forever(&mut self) {
        either!(self, endpoint => endpoint.write_forever());
    }

    pub(crate) fn close(&mut self) {
        either!(self, endpoint => endpoint.close());
    }

    pub(crate) fn abort(&mut self) {
        either!(self, endpoint => endpoint.abort());
    }
}

/// Reports.
impl End {
    #[inline]
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        either_ref!(self, endpoint => endpoint.next_timer())
    }

    /// Bytes handed to the application, in order.
    #[inline]
    pub(crate) fn delivered(&self) -> u64 {
        either_ref!(self, endpoint => endpoint.delivered())
    }

    /// The octets of `span` have arrived: of TCP with all before them, of QUIC as a stream of its own.
    pub(super) fn has_received(&self, span: Span) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.delivered() >= span.end,
            Self::Quic(quic) => quic.endpoint.has_received(span.start, span.end),
        }
    }

    /// Bytes of this end that the peer has acknowledged.
    pub(crate) fn acked(&self) -> u64 {
        either_ref!(self, endpoint => endpoint.acked())
    }

    /// Bytes in the network: of TCP the payload, of QUIC the whole packets.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        either_ref!(self, endpoint => endpoint.in_flight())
    }

    pub(crate) fn is_established(&self) -> bool {
        either_ref!(self, endpoint => endpoint.is_established())
    }

    #[inline]
    pub(crate) fn peer_closed(&self) -> bool {
        either_ref!(self, endpoint => endpoint.peer_closed())
    }

    pub(crate) fn cwnd_bytes(&self) -> u32 {
        either_ref!(self, endpoint => endpoint.cwnd_bytes())
    }

    pub(crate) fn ssthresh_bytes(&self) -> Option<u32> {
        either_ref!(self, endpoint => endpoint.ssthresh_bytes())
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        either_ref!(self, endpoint => endpoint.srtt())
    }

    /// The receiver's window; `None` for QUIC, which limits a stream's last byte.
    pub(crate) fn peer_window(&self) -> Option<u64> {
        match self {
            Self::Tcp(endpoint) => Some(endpoint.peer_window()),
            Self::Quic(_) => None,
        }
    }

    pub(crate) fn round_trips(&self, now: Instant) -> RoundTrips {
        match self {
            Self::Tcp(endpoint) => endpoint.round_trips(now),
            Self::Quic(quic) => quic.endpoint.round_trips(),
        }
    }

    /// Octets of this end that were sent at least once, and of these the acknowledged ones.
    pub(crate) fn sent_and_acked(&self) -> (u64, u64) {
        either_ref!(self, endpoint => (endpoint.sent(), endpoint.acked()))
    }

    /// Octets that have arrived, in order or not.
    pub(crate) fn arrived(&self) -> u64 {
        either_ref!(self, endpoint => endpoint.arrived())
    }

    pub(crate) fn limited_by(&self, now: Instant) -> LimitedTime {
        either_ref!(self, endpoint => endpoint.limited_by(now))
    }

    /// The connection is over for the application.
    pub(crate) fn is_done(&self) -> bool {
        either_ref!(self, endpoint => endpoint.is_done())
    }

    /// No connection exists any more. A connection of QUIC stays silent once its stream is finished.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.is_closed(),
            Self::Quic(quic) => quic.endpoint.is_done(),
        }
    }

    /// The connection was reset or given up. QUIC has neither here.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.has_failed(),
            Self::Quic(_) => false,
        }
    }

    /// The flow of its packets.
    pub(crate) fn flow(&self) -> FlowId {
        match self {
            Self::Tcp(endpoint) => endpoint.flow(),
            Self::Quic(quic) => quic.flow,
        }
    }

    pub(crate) fn counts(&self) -> Counts {
        match self {
            Self::Tcp(endpoint) => {
                let stats = endpoint.stats();
                Counts {
                    data_packets: stats.data_packets,
                    data_received: stats.data_received,
                    retransmissions: stats.retransmissions.into(),
                    mark_reductions: stats.ecn_reductions.into(),
                    timeouts: stats.timeouts.into(),
                    fast_retransmits: stats.fast_retransmits.into(),
                    acks_sent: stats.acks_sent,
                    acks_received: stats.acks_received,
                }
            }
            Self::Quic(quic) => {
                let stats = quic.endpoint.stats();
                Counts {
                    data_packets: stats.data_packets,
                    data_received: stats.data_received,
                    retransmissions: stats.retransmissions,
                    mark_reductions: 0,
                    timeouts: stats.probe_timeouts,
                    fast_retransmits: stats.reductions,
                    acks_sent: stats.acks_sent,
                    acks_received: stats.acks_received,
                }
            }
        }
    }
}
