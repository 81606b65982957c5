//! FQ-CoDel: deficit round robin over flows, new flows first, each under CoDel.
//!
//! Published: RFC 8290; tc-fq_codel(8).
//! Differs:
//!
//! - Deficits, and CoDel's largest packet, count bytes on the wire, where the RFC counts bytes of
//!   packets.
//! - The limit on memory counts IP bytes, since the overhead of a buffer is unknown here.
//! - Flows may have queues of their own instead of sharing the buckets of a hash. Such a flow is
//!   forgotten, with its CoDel state, when its queue was empty for a round.
//!
//! Cost: O(1) a packet; on overflow, a search of all queues for the fattest (section 4.1), of which
//! up to 64 packets are dropped.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use crate::aqm::codel::{ControlLaw, ControlledQueue, Settings, Signals, check_times};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// Packets dropped at once on overflow, at most (RFC 8290, section 4.1).
const DROP_BATCH: u32 = 64;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rule by which packets share a queue.
    pub flows: FlowKeys,
    /// Bytes on the wire that a queue may send in a round.
    pub quantum: WireBytes,
    /// Capacity in packets.
    pub limit: PacketCount,
    /// Capacity in IP bytes.
    pub memory: ByteCount,
    /// CoDel's target.
    pub target: Duration,
    /// CoDel's interval.
    pub interval: Duration,
    /// Marks packets of ECN-capable senders instead of dropping them.
    pub ecn: bool,
    /// The largest IP packet to expect: CoDel drops nothing from a queue that holds no more.
    pub largest: ByteCount,
}

/// A scheduler of flows under CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    flows: Flows<P, Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    settings: Settings,
    config: Config,
    signals: Signals,
    tally: Tally,
    new_flows: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    law: ControlLaw,
    /// Bytes on the wire that it may still send in this round.
    credit: i64,
    /// It is in one of the two lists.
    listed: bool,
}

/// The queue of one flow, as CoDel sees it.
struct FlowQueue<'a, P>(&'a mut Flows<P, Flow>, u32);

impl<P: Packet> ControlledQueue<P> for FlowQueue<'_, P> {
    fn take(&mut self) -> Option<P> {
        self.0.pop(self.1)
    }

    fn backlog_bytes(&self) -> WireBytes {
        self.0.wire_in(self.1)
    }
}

impl<P: Packet> FqCodel<P> {
    /// A scheduler without packets, for a line with this encapsulation.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Self {
        let Config { target, interval, ecn, largest, .. } = *config;
        Self {
            flows: Flows::new(config.flows, link_layer),
            new: VecDeque::new(),
            old: VecDeque::new(),
            settings: Settings { target, interval, ecn, mtu: link_layer.on_wire(largest) },
            config: *config,
            signals: Signals::default(),
            tally: Tally::default(),
            new_flows: 0,
        }
    }

    fn quantum(&self) -> i64 {
        i64::try_from(self.config.quantum.as_u64()).unwrap_or(i64::MAX / 2)
    }

    fn over_limit(&self) -> bool {
        let backlog = self.flows.backlog();
        backlog.packets > self.config.limit || backlog.bytes > self.config.memory
    }

    /// Drops half of the fattest queue, at most 64 packets, from its head.
    fn drop_from_fattest(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        let Some(fattest) = self.flows.fattest() else { return };
        let batch = self.flows.packets_in(fattest).div_ceil(2).min(DROP_BATCH);
        for _ in 0..batch {
            if let Some(packet) = self.flows.pop(fattest) {
                self.tally.head += 1;
                drops.dropped(now, packet, DropReason::Head);
            }
        }
    }
}

impl<P: Packet> Discipline<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if packet.meta().ip_bytes() > self.config.memory {
            self.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        let queue = self.flows.queue_of(packet.meta().flow);
        self.flows.push(queue, packet);
        let quantum = self.quantum();
        let flow = self.flows.state_mut(queue);
        if !flow.listed {
            flow.listed = true;
            flow.credit = quantum;
            self.new.push_back(queue);
            self.new_flows += 1;
        }
        while self.over_limit() {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let quantum = self.quantum();
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let queue = *list.front()?;
            if self.flows.state(queue).credit <= 0 {
                self.flows.state_mut(queue).credit += quantum;
                list.pop_front();
                self.old.push_back(queue);
                continue;
            }
            let mut law = self.flows.state(queue).law;
            let mut flow_queue = FlowQueue(&mut self.flows, queue);
            let packet = law.dequeue(&self.settings, now, &mut flow_queue, &mut self.signals, drops);
            self.flows.state_mut(queue).law = law;
            let Some(packet) = packet else {
                list.pop_front();
                // A new flow that is empty moves to the old list, or each of its packets would be
                // new.
                if is_new {
                    self.old.push_back(queue);
                } else {
                    self.flows.state_mut(queue).listed = false;
                    self.flows.release(queue);
                }
                continue;
            };
            let wire = self.flows.wire_bytes(&packet).as_u64();
            self.flows.state_mut(queue).credit -= i64::try_from(wire).expect("a packet of at most 64 KiB");
            self.tally.sent(&packet);
            return Some(packet);
        }
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.flows.backlog().packets == PacketCount::ZERO { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("fq-codel", visit);
        self.signals.show("fq-codel", visit);
        visit(Counter { path: "", kind: "fq-codel", name: "new_flows", value: self.new_flows });
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        if self.limit.as_u64() == 0 || self.memory.as_u64() == 0 {
            return Err(Problem::ZeroLimit);
        }
        if self.quantum.as_u64() == 0 {
            return Err(Problem::ZeroQuantum);
        }
        self.flows.check()?;
        check_times(self.target, self.interval)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        Ok(Box::new(FqCodel::new(self, &site.environment.link_layer)))
    }
}

#[cfg(test)]
mod tests;
