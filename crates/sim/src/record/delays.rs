//! One-way delays: the time of each packet from its sender to its receiver.
//!
//! The identification of the IP header, which the sender counts up by one, identifies a packet. A packet made
//! on the path (a restored ACK) has the identification and the sending time of the packet from which it is
//! made.
//!
//! Cost: O(1) a packet; 8 bytes for each packet in flight, and for up to [`SLACK`] before the latest arrival.

use std::collections::VecDeque;

use lastmile_analysis::stream::{Reception, Stream};
use lastmile_packet::{Meta, Protocol};
use lastmile_units::Instant;

use lastmile_model::outcome::Buckets;
use lastmile_model::{Network, Source};

/// Packets that may arrive after others that were sent later.
const SLACK: usize = 256;
/// The number of identifications in IPv4.
const MOST: usize = 65_536;

/// The one-way delays of a run.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// By [`lastmile_packet::FlowId::index`].
    flows: Vec<Option<Box<Track>>>,
    /// By traffic: the delays of its datagrams in nanoseconds.
    traffics: Vec<Option<Box<Buckets>>>,
}

/// Packets of one flow in one direction.
#[derive(Debug)]
struct Track {
    traffic: usize,
    kind: Kind,
    stream: Stream,
    /// Sending times of the packets from number `first` on.
    sent: VecDeque<Instant>,
    first: u64,
    /// The identification of packet number `first`.
    first_id: u16,
}

/// The packets of a flow that are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Datagrams,
    Data,
    Acks,
    /// Any packet of QUIC: none shows what it carries.
    Quic,
}

impl Delays {
    /// Measures datagram flows, and the data and ACKs of TCP and both
    /// directions of QUIC if there are at most `flow_limit` flows.
    pub(crate) fn new(network: &Network) -> Self {
        let declared: u64 = network.traffic.iter().map(|traffic| u64::from(traffic.count)).sum();
        let few = declared <= network.record.flow_limit as u64;
        let mut delays = Self::default();
        for (index, traffic) in network.traffic.iter().enumerate() {
            let kinds = match traffic.source {
                Source::Constant { .. }
                | Source::Poisson { .. }
                | Source::OnOff { .. }
                | Source::Conference(_)
                | Source::Game(_) => [Some(Kind::Datagrams), None],
                Source::Bulk { .. } | Source::Writes { .. } if few => [Some(Kind::Data), Some(Kind::Acks)],
                Source::Quic { .. } if few => [Some(Kind::Quic); 2],
                _ => [None; 2],
            };
            let datagrams = kinds[0] == Some(Kind::Datagrams);
            delays.traffics.push(datagrams.then(Box::default));
            let track = |kind: Kind| {
                let stream = Stream::new(traffic.listener.buffer, few);
                Box::new(Track { traffic: index, kind, stream, sent: VecDeque::new(), first: 0, first_id: 0 })
            };
            for _ in 0..traffic.count {
                delays.flows.extend(kinds.map(|kind| kind.map(track)));
            }
        }
        // Without measured flows, a packet costs one comparison.
        if delays.flows.iter().all(Option::is_none) {
            delays.flows = Vec::new();
        }
        delays
    }

    #[inline]
    fn of(&mut self, packet: &Meta) -> Option<&mut Track> {
        self.flows.get_mut(packet.flow.index() as usize)?.as_deref_mut()
    }

    /// A host sends a packet.
    #[inline]
    pub(crate) fn sent(&mut self, now: Instant, packet: &Meta) {
        if let Some(track) = self.of(packet) {
            track.sent(now, packet.ip_id);
        }
    }

    /// A packet arrives at its host.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        let Some(track) = self.of(packet) else { return };
        let Some(sent) = track.arrived(now, packet) else { return };
        let traffic = track.traffic;
        if let Some(distribution) = &mut self.traffics[traffic] {
            distribution.record(now.since(sent).as_ns());
        }
    }

    /// The mean delay of the data of a flow since the latest call, and the present jitter, in seconds.
    pub(crate) fn sample(&mut self, flow: usize) -> Option<(Option<f64>, Option<f64>)> {
        let track = self.flows.get_mut(2 * flow)?.as_deref_mut()?;
        let jitter_s = track.stream.jitter_s().filter(|_| track.kind == Kind::Datagrams);
        Some((track.stream.take_mean_s(), jitter_s))
    }

    /// Takes the delays of all datagrams of a traffic, in nanoseconds.
    pub(crate) fn take_distribution(&mut self, traffic: usize) -> Option<Box<Buckets>> {
        self.traffics.get_mut(traffic)?.take()
    }

    /// The reception of the data and of the ACKs of a flow by `end`. `dropped` of its datagrams are known to be lost.
    pub(crate) fn finish(&mut self, flow: usize, end: Instant, dropped: u64) -> [Option<Box<Reception>>; 2] {
        [2 * flow, 2 * flow + 1].map(|index| {
            let track = self.flows.get_mut(index)?.take()?;
            Some(Box::new(track.finish(end, dropped)))
        })
    }
}

impl Track {
    fn sent(&mut self, now: Instant, id: u16) {
        if self.sent.is_empty() {
            self.first_id = id;
        } else if self.sent.len() == MOST {
            self.forget(1);
        }
        debug_assert_eq!(self.first_id.wrapping_add(self.sent.len() as u16), id, "a sender counts up by one");
        self.sent.push_back(now);
    }

    /// A packet arrives. Returns its sending time, if the packet is measured.
    fn arrived(&mut self, now: Instant, packet: &Meta) -> Option<Instant> {
        let index = usize::from(packet.ip_id.wrapping_sub(self.first_id));
        let sent = *self.sent.get(index)?;
        let counts = match self.kind {
            Kind::Datagrams | Kind::Quic => true,
            Kind::Data => packet.protocol == Protocol::Tcp && packet.payload_len() > 0,
            Kind::Acks => packet.is_pure_ack(),
        };
        match self.kind {
            _ if !counts => {}
            Kind::Datagrams => self.stream.arrived(self.first + index as u64, sent, now),
            Kind::Data | Kind::Acks | Kind::Quic => self.stream.delayed(now.since(sent)),
        }
        self.forget(index.saturating_sub(SLACK));
        counts.then_some(sent)
    }

    /// Forgets the oldest packets.
    fn forget(&mut self, packets: usize) {
        // Mostly one packet, for which a pop is cheaper than a drain.
        for _ in 0..packets {
            self.sent.pop_front();
        }
        self.first += packets as u64;
        self.first_id = self.first_id.wrapping_add(packets as u16);
    }

    fn finish(self, end: Instant, dropped: u64) -> Reception {
        let Self { stream, sent, first, .. } = self;
        let all = first + sent.len() as u64;
        let behind = usize::try_from(stream.next().saturating_sub(first)).unwrap_or(usize::MAX);
        let under_way = all.saturating_sub(stream.packets()).saturating_sub(dropped);
        stream.finish(end, sent.into_iter().skip(behind), under_way)
    }
}
