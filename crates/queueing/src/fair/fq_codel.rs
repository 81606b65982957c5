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
//! As in the RFC, CoDel passes a flow's last packet whatever its delay. Linux compares the backlog
//! of all flows with the largest packet, so that it may drop the last packet of a flow; and it
//! counts the drops of an overflow in CoDel's state of the fattest flow.
//!
//! Cost: O(1) a packet; on overflow, a search of all queues for the fattest (section 4.1), of which
//! up to 64 packets are dropped.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use super::per::{Per, Tags};
use super::rounds::{HasTurn, Rounds, Turn};
use crate::aqm::codel::{CeThreshold, ControlLaw, ControlledQueue, Settings, Signals, check_threshold, check_times};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment};

/// Packets dropped at once on overflow, at most (RFC 8290, section 4.1).
const DROP_BATCH: u32 = 64;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rule by which packets share a queue.
    pub flows: FlowKeys,
    /// The member that has a queue: a flow or a host.
    pub per: Per,
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
    /// Marks packets by their delay alone. `None`: never.
    pub ce_threshold: Option<CeThreshold>,
}

impl Default for Config {
    /// The defaults of RFC 8290, section 5.2, without ECN, and with a queue of its own for each flow.
    fn default() -> Self {
        Self {
            flows: FlowKeys::Exact,
            per: Per::Flow,
            quantum: WireBytes::new(1500),
            limit: PacketCount::new(10_240),
            memory: ByteCount::new(32_000_000),
            target: Duration::from_ms(5),
            interval: Duration::from_ms(100),
            ecn: false,
            largest: ByteCount::new(1500),
            ce_threshold: None,
        }
    }
}

/// A scheduler of flows under CoDel.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    flows: Flows<P, Flow>,
    tags: Tags,
    rounds: Rounds,
    settings: Settings,
    config: Config,
    signals: Signals,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    law: ControlLaw,
    turn: Turn,
}

impl HasTurn for Flow {
    #[inline]
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
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
    /// A scheduler without packets.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let link_layer = &environment.link_layer;
        let Config { target, interval, ecn, largest, ce_threshold, .. } = *config;
        Self {
            flows: Flows::new(config.flows, link_layer),
            tags: Tags::new(config.per, environment),
            rounds: Rounds::new(config.quantum),
            settings: Settings { target, interval, ecn, mtu: link_layer.on_wire(largest), ce_threshold },
            config: *config,
            signals: Signals::default(),
            tally: Tally::default(),
        }
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
        let queue = self.flows.queue_of(self.tags.of(&packet));
        self.flows.push(queue, packet);
        self.rounds.arrived(queue, self.flows.state_mut(queue).turn());
        while self.over_limit() {
            self.drop_from_fattest(now, drops);
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let queue = self.rounds.current(&mut self.flows)?;
            let mut law = self.flows.state(queue).law;
            let mut flow_queue = FlowQueue(&mut self.flows, queue);
            let packet = law.dequeue(&self.settings, now, &mut flow_queue, &mut self.signals, drops);
            self.flows.state_mut(queue).law = law;
            let Some(mut packet) = packet else {
                self.rounds.emptied(&mut self.flows);
                continue;
            };
            let wire = self.flows.wire_bytes(&packet);
            self.flows.state_mut(queue).turn.sent(wire);
            self.settings.mark_late(now, &mut packet, &mut self.signals);
            self.tally.sent(&packet);
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("fq-codel", visit);
        self.signals.show("fq-codel", &self.settings, visit);
        visit(Counter { path: "", kind: "fq-codel", name: "new_flows", value: self.rounds.new_flows() });
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
        check_threshold(self.ce_threshold)?;
        check_times(self.target, self.interval)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        Ok(Box::new(FqCodel::new(&Self { flows: self.flows.seeded(site), ..*self }, site.environment)))
    }
}

#[cfg(test)]
mod tests;
