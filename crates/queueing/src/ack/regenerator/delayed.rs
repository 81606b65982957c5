//! When the packets that one ACK is made into leave, and those that wait until then.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use lastmile_packet::{FlowId, Packet};
use lastmile_units::{ByteCount, Duration, Instant};

use crate::ack::flow_map::FlowMap;

/// When the packets that one ACK is made into leave.
#[derive(Clone, Copy)]
pub(super) struct Span {
    from: Instant,
    length: Duration,
    parts: u64,
}

impl Span {
    pub(super) const fn at(from: Instant) -> Self {
        Self { from, length: Duration::ZERO, parts: 1 }
    }

    /// `parts` packets, evenly over `gap`, from when the flow's last packet leaves, and none later than `hold` from now.
    pub(super) fn new(now: Instant, busy_until: Option<Instant>, gap: Duration, hold: Duration, parts: usize) -> Self {
        let from = busy_until.map_or(now, |until| until.max(now));
        let latest = now.saturating_add(hold);
        // What was held before came before, so it leaves before `latest`.
        Self { from, length: gap.min(latest.since(from)), parts: parts as u64 }
    }

    pub(super) fn time(&self, index: usize) -> Instant {
        let ps = u128::from(self.length.as_ps()) * index as u128 / u128::from(self.parts);
        // No more than the length.
        self.from.saturating_add(Duration::from_ps(ps as u64))
    }
}

/// Packets that wait for their time, and for those of their flow before them.
#[derive(Debug)]
pub(super) struct Held<P> {
    /// By the time at which they leave; at equal times in the order in which they came.
    packets: BTreeMap<(Instant, u64), P>,
    pub(super) flows: FlowMap<HeldFlow>,
    put: u64,
    pub(super) bytes: ByteCount,
}

#[derive(Debug)]
pub(super) struct HeldFlow {
    packets: u32,
    /// When the last of them leaves.
    until: Instant,
}

impl<P> Default for Held<P> {
    fn default() -> Self {
        Self { packets: BTreeMap::new(), flows: FlowMap::default(), put: 0, bytes: ByteCount::new(0) }
    }
}

impl<P: Packet> Held<P> {
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// When the last packet of the flow leaves that is held.
    pub(super) fn until(&self, flow: FlowId) -> Option<Instant> {
        self.flows.get(&flow).map(|held| held.until)
    }

    pub(super) fn put(&mut self, at: Instant, packet: P) {
        let flow = self.flows.entry(packet.meta().flow).or_insert(HeldFlow { packets: 0, until: at });
        debug_assert!(at >= flow.until, "order within a flow is kept");
        flow.packets += 1;
        flow.until = at;
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
