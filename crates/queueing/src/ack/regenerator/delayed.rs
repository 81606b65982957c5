//! Delayed packets of a regenerator, and the times of their departure.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use lastmile_packet::{FlowId, Packet};
use lastmile_units::{ByteCount, Duration, Instant};

use crate::ack::flow_map::FlowMap;

/// Departure times of the packets made from one ACK.
#[derive(Clone, Copy)]
pub(super) struct DepartureTimes {
    from: Instant,
    length: Duration,
    parts: u64,
}

impl DepartureTimes {
    pub(super) const fn at(from: Instant) -> Self {
        Self { from, length: Duration::ZERO, parts: 1 }
    }

    /// `parts` packets, spread evenly over `gap`, starting when the flow's last held packet
    /// departs, and none later than `hold` from now.
    pub(super) fn new(now: Instant, busy_until: Option<Instant>, gap: Duration, hold: Duration, parts: usize) -> Self {
        let from = busy_until.map_or(now, |until| until.max(now));
        let latest = now.saturating_add(hold);
        // Earlier held packets depart before `latest`, since their hold began earlier.
        Self { from, length: gap.min(latest.since(from)), parts: parts as u64 }
    }

    pub(super) fn time(&self, index: usize) -> Instant {
        let ps = u128::from(self.length.as_ps()) * index as u128 / u128::from(self.parts);
        // At most the length.
        self.from.saturating_add(Duration::from_ps(ps as u64))
    }
}

/// Packets held until their departure time, in order within each flow.
#[derive(Debug)]
pub(super) struct DelayedPackets<P> {
    /// By departure time; at equal times in the order of arrival.
    packets: BTreeMap<(Instant, u64), P>,
    pub(super) flows: FlowMap<DelayedFlow>,
    put: u64,
    pub(super) bytes: ByteCount,
}

#[derive(Debug)]
pub(super) struct DelayedFlow {
    packets: u32,
    /// Departure time of the last delayed packet.
    last_departure: Instant,
}

impl<P> Default for DelayedPackets<P> {
    fn default() -> Self {
        Self { packets: BTreeMap::new(), flows: FlowMap::default(), put: 0, bytes: ByteCount::new(0) }
    }
}

impl<P: Packet> DelayedPackets<P> {
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// Departure time of the last held packet of the flow.
    pub(super) fn last_departure(&self, flow: FlowId) -> Option<Instant> {
        self.flows.get(&flow).map(|held| held.last_departure)
    }

    pub(super) fn put(&mut self, at: Instant, packet: P) {
        let flow = self.flows.entry(packet.meta().flow).or_insert(DelayedFlow { packets: 0, last_departure: at });
        debug_assert!(at >= flow.last_departure, "order within a flow is kept");
        flow.packets += 1;
        flow.last_departure = at;
        self.bytes += packet.meta().ip_bytes();
        self.packets.insert((at, self.put), packet);
        self.put += 1;
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<P> {
        if self.next()? > now {
            return None;
        }
        let (_, packet) = self.packets.pop_first()?;
        self.bytes -= packet.meta().ip_bytes();
        if let Entry::Occupied(mut flow) = self.flows.entry(packet.meta().flow) {
            flow.get_mut().packets -= 1;
            if flow.get().packets == 0 {
                flow.remove();
            }
        }
        Some(packet)
    }
}
