//! FQ-CoDel: deficit round robin over flows, new flows first, each under CoDel.
//!
//! Published: RFC 8290; tc-fq_codel(8).
//! Differs: deficits, and CoDel's largest packet, count bytes on the wire where the RFC counts bytes of packets; the limit
//! on memory counts IP bytes, since the overhead of a buffer is not known here. Flows may have queues of their own instead
//! of sharing the buckets of a hash. A flow of its own whose queue was empty for a round is forgotten, CoDel's state
//! with it.
//! Cost: O(1) a packet; a packet too many looks at all queues for the fattest (section 4.1) and drops up to 64 of it.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use crate::aqm::codel::{ControlLaw, Settings, Signals, Waiting, check_times};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// As many packets go at once when there are too many (RFC 8290, section 4.1).
const DROP_BATCH: u32 = 64;

/// What FQ-CoDel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Which packets share a queue.
    pub flows: FlowKeys,
    /// What a queue may send in a round.
    pub quantum: WireBytes,
    /// How many packets it holds.
    pub limit: PacketCount,
    /// How many IP bytes it holds.
    pub memory: ByteCount,
    /// CoDel's target.
    pub target: Duration,
    /// CoDel's interval.
    pub interval: Duration,
    /// Marks packets of senders that understand it, in place of dropping them.
    pub ecn: bool,
    /// The largest IP packet to expect: CoDel leaves a queue alone that holds no more.
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
    /// It stands in one of the lists.
    listed: bool,
}

/// A queue as CoDel sees it.
struct Watched<'a, P>(&'a mut Flows<P, Flow>, u32);

impl<P: Packet> Waiting<P> for Watched<'_, P> {
    fn take(&mut self) -> Option<P> {
        self.0.pop(self.1)
    }

    fn left(&self) -> WireBytes {
        self.0.wire_in(self.1)
    }
}

impl<P: Packet> FqCodel<P> {
    /// A scheduler without packets, for a line whose packets take what `link_layer` says.
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
            let mut watched = Watched(&mut self.flows, queue);
            let packet = law.dequeue(&self.settings, now, &mut watched, &mut self.signals, drops);
            self.flows.state_mut(queue).law = law;
            let Some(packet) = packet else {
                list.pop_front();
                // A new flow that is empty waits for its turn among the old, or each of its packets would be new.
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
