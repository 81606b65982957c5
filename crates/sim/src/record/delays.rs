//! One-way delays: the time of each packet from its sender to its receiver. A packet made on the path (a restored ACK)
//! has the sending time of the packet from which it is made.
//!
//! Datagrams are numbered, so that losses show: the identification of the IP header, which the sender counts up by one,
//! identifies a datagram. Identifications repeat; of equal ones the sending time decides.
//!
//! Cost: O(1) a packet; 8 bytes for each datagram after the latest arrival, of at most [`MOST`].

use std::collections::VecDeque;

use lastmile_analysis::stream::{Reception, Stream};
use lastmile_packet::{Meta, Protocol};
use lastmile_units::Instant;

use lastmile_model::outcome::Buckets;
use lastmile_model::{Network, Source};

/// The most sending times of a flow that are kept.
const MOST: usize = 65_536;
/// The number of identifications in IPv4.
const IDENTIFICATIONS: u64 = 65_536;

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
    kind: Kind,
    stream: Stream,
}

/// The packets of a flow that are measured.
#[derive(Clone, Debug)]
enum Kind {
    Datagrams(Datagrams),
    Data,
    Acks,
    /// Any packet of QUIC: none shows what it carries.
    Quic,
}

/// The datagrams of a flow.
#[derive(Clone, Debug)]
struct Datagrams {
    traffic: usize,
    count: u64,
    /// The identification of the latest.
    latest_id: u16,
    /// Sending times of those after the latest that has arrived.
    sent: VecDeque<Instant>,
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
                | Source::Game(_) => [Some(Kind::Datagrams(Datagrams::of(index))), None],
                Source::Bulk { .. } | Source::Writes { .. } if few => [Some(Kind::Data), Some(Kind::Acks)],
                Source::Quic { .. } if few => [Some(Kind::Quic), Some(Kind::Quic)],
                _ => [None, None],
            };
            let datagrams = matches!(kinds[0], Some(Kind::Datagrams(_)));
            delays.traffics.push(datagrams.then(Box::default));
            let track = |kind| Box::new(Track { kind, stream: Stream::new(traffic.listener.buffer, few) });
            for _ in 0..traffic.count {
                delays.flows.extend(kinds.clone().map(|kind| kind.map(track)));
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
    pub(crate) fn sent(&mut self, packet: &Meta) {
        if let Some(Track { kind: Kind::Datagrams(datagrams), .. }) = self.of(packet) {
            datagrams.sent(packet);
        }
    }

    /// A packet arrives at its host.
    #[inline(always)]
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        let Some(track) = self.of(packet) else { return };
        let counts = match track.kind {
            Kind::Datagrams(_) => return self.datagram_arrived(now, packet),
            Kind::Data => packet.protocol == Protocol::Tcp && packet.payload_len() > 0,
            Kind::Acks => packet.is_pure_ack(),
            Kind::Quic => true,
        };
        if counts {
            track.stream.delayed(now.since(packet.sent));
        }
    }

    // Not inlined: most packets are of transports.
    #[inline(never)]
    fn datagram_arrived(&mut self, now: Instant, packet: &Meta) {
        let Some(Track { kind: Kind::Datagrams(datagrams), stream }) = self.of(packet) else { return };
        let Some(number) = datagrams.number(packet) else { return };
        datagrams.arrived(number);
        if !stream.arrived(number, packet.sent, now) {
            return;
        }
        let traffic = datagrams.traffic;
        if let Some(distribution) = &mut self.traffics[traffic] {
            distribution.record(now.since(packet.sent).as_ns());
        }
    }

    /// The mean delay of the data of a flow since the latest call, and the present jitter, in seconds.
    pub(crate) fn sample(&mut self, flow: usize) -> Option<(Option<f64>, Option<f64>)> {
        let track = self.flows.get_mut(2 * flow)?.as_deref_mut()?;
        let jitter_s = track.stream.jitter_s().filter(|_| matches!(track.kind, Kind::Datagrams(_)));
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
    fn finish(self, end: Instant, dropped: u64) -> Reception {
        let Self { kind, stream } = self;
        let Kind::Datagrams(Datagrams { sent, count, .. }) = kind else {
            return stream.finish(end, std::iter::empty(), 0);
        };
        let under_way = count.saturating_sub(stream.packets()).saturating_sub(dropped);
        stream.finish(end, sent.into_iter(), under_way)
    }
}

impl Datagrams {
    fn of(traffic: usize) -> Self {
        Self { traffic, count: 0, latest_id: 0, sent: VecDeque::new() }
    }

    fn sent(&mut self, packet: &Meta) {
        debug_assert!(self.count == 0 || packet.ip_id == self.latest_id.wrapping_add(1), "a sender counts up by one");
        (self.count, self.latest_id) = (self.count + 1, packet.ip_id);
        if self.sent.len() == MOST {
            self.sent.pop_front();
        }
        self.sent.push_back(packet.sent);
    }

    /// The number of the first in `sent`.
    fn first(&self) -> u64 {
        self.count - self.sent.len() as u64
    }

    /// The number of a datagram, counted from 0.
    fn number(&self, packet: &Meta) -> Option<u64> {
        let behind = u64::from(self.latest_id.wrapping_sub(packet.ip_id));
        let mut number = self.count.checked_sub(1 + behind)?;
        while let Some(place) = number.checked_sub(self.first())
            && self.sent[place as usize] != packet.sent
        {
            number = number.checked_sub(IDENTIFICATIONS)?;
        }
        Some(number)
    }

    /// Forgets the sending times up to this number.
    fn arrived(&mut self, number: u64) {
        let arrived = (number + 1).saturating_sub(self.first());
        // Mostly one, for which a pop is cheaper than a drain.
        for _ in 0..arrived {
            self.sent.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    fn ms(count: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(count)
    }

    fn datagram(number: u64) -> Meta {
        Meta { ip_id: (40_000 + number) as u16, sent: ms(number), ..Meta::default() }
    }

    /// However late a datagram comes, and where identifications repeat while datagrams are under way.
    #[test]
    fn each_datagram_keeps_its_number() {
        let mut datagrams = Datagrams::of(0);
        let all = 100_000;
        (0..all).for_each(|number| datagrams.sent(&datagram(number)));
        assert_eq!(datagrams.sent.len(), MOST, "older ones are forgotten");
        for number in [40_000, 99_999, 50_000, 34_464] {
            assert_eq!(datagrams.number(&datagram(number)), Some(number));
            datagrams.arrived(number);
        }
        assert!(datagrams.sent.is_empty());
    }

    #[test]
    fn a_datagram_that_was_never_sent_has_no_number() {
        let mut datagrams = Datagrams::of(0);
        assert_eq!(datagrams.number(&datagram(0)), None);
        datagrams.sent(&datagram(0));
        assert_eq!(datagrams.number(&datagram(7)), None);
    }
}
