//! FQ-PIE: deficit round robin over flows, new flows first, each under PIE.
//!
//! Published: sch_fq_pie.c of Linux; tc-fq_pie(8); Ramakrishnan et al., "FQ-PIE Queue Discipline in the Linux Kernel"
//! (2019); the control of a flow is RFC 8033 ([`crate::aqm::Pie`]).
//! Differs:
//!
//! - Deficits, and two of the largest packets, count bytes on the wire, where Linux counts bytes of packets.
//! - The limit on memory counts IP bytes, since the overhead of a buffer is unknown here, and drops the packet that
//!   would exceed it; Linux only counts such packets.
//! - A flow's probability is updated when the flow is next used, with the wait as of each update. Linux has a timer for
//!   all flows, and 2048 of them a tick.
//! - Flows may have queues of their own instead of sharing the buckets of a hash. Such a flow is forgotten, with its
//!   probability, when its queue was empty for a round.
//! - As in [`crate::aqm::Pie`], there is no extra step above 250 ms, and no estimated departure rate.
//!
//! Drops happen on arrival only, to the packet that arrives. Cost: O(1) a packet, and O(1) for each update since the
//! flow's packet before until its probability is steady.

use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Instant, PacketCount, Ratio, WireBytes};

use super::flows::{FlowKeys, Flows};
use super::per::{Per, Tags};
use super::rounds::{HasTurn, Rounds, Turn};
use crate::aqm::pi::ONE;
use crate::aqm::pie::{Control, Parameters};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment};

/// Parameters of FQ-PIE.
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
    /// The control of each queue.
    pub control: Parameters,
    /// With `ecn`: packets of senders that understand it are marked while the probability is below this.
    pub ecn_prob: Ratio,
}

impl Default for Config {
    /// The defaults of tc-fq_pie(8), with a queue of its own for each flow: a quantum of a 1500-byte packet, 10 240
    /// packets, 32 MB, marks below 10 %.
    fn default() -> Self {
        Self {
            flows: FlowKeys::Exact,
            per: Per::Flow,
            quantum: WireBytes::new(1500),
            limit: PacketCount::new(10_240),
            memory: ByteCount::new(32_000_000),
            control: Parameters::default(),
            ecn_prob: Ratio::from_percent(10).expect("a share"),
        }
    }
}

/// A scheduler of flows under PIE.
#[derive(Clone, Debug)]
pub struct FqPie<P> {
    flows: Flows<P, Flow>,
    tags: Tags,
    rounds: Rounds,
    config: Config,
    random: Stream,
    /// Two of the largest packets.
    spared: WireBytes,
    /// Packets are marked while the probability is below this.
    marks_below: u64,
    dropped: u64,
    marked: u64,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    control: Control,
    turn: Turn,
}

impl HasTurn for Flow {
    #[inline]
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

impl<P: Packet> FqPie<P> {
    /// A scheduler without packets.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let largest = environment.link_layer.on_wire(config.control.largest);
        let marks_below = u128::from(ONE) * u128::from(config.ecn_prob.as_parts_per_billion()) / 1_000_000_000;
        Self {
            flows: Flows::new(config.flows, &environment.link_layer),
            tags: Tags::new(config.per, environment),
            rounds: Rounds::new(config.quantum),
            config: *config,
            random: Stream::new(config.control.seed, "fq-pie"),
            spared: largest + largest,
            marks_below: marks_below as u64,
            dropped: 0,
            marked: 0,
            tally: Tally::default(),
        }
    }

    /// The reason for which the packet finds no free space, if any.
    fn refuses(&mut self, size: ByteCount) -> Option<DropReason> {
        let backlog = self.flows.backlog();
        if size > self.config.memory {
            self.tally.too_large += 1;
            Some(DropReason::TooLarge)
        } else if backlog.packets >= self.config.limit || backlog.bytes + size > self.config.memory {
            self.tally.tail += 1;
            Some(DropReason::Tail)
        } else {
            None
        }
    }
}

impl<P: Packet> Discipline<P> for FqPie<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        if let Some(reason) = self.refuses(packet.meta().ip_bytes()) {
            drops.dropped(now, packet, reason);
            return;
        }
        let queue = self.flows.queue_of(self.tags.of(&packet));
        let backlog = self.flows.wire_in(queue);
        let parameters = &self.config.control;
        let Flow { control, turn } = self.flows.state_mut(queue);
        control.start(now, parameters);
        control.advance(now, parameters);
        // A queue that selects a packet is not empty, so it is listed, and dropping loses no state.
        if control.selects(parameters, backlog, self.spared, &mut self.random) {
            if parameters.ecn && control.marks_below(self.marks_below) && packet.mark_ce() {
                self.marked += 1;
            } else {
                self.dropped += 1;
                drops.dropped(now, packet, DropReason::Aqm);
                return;
            }
        }
        self.rounds.arrived(queue, turn);
        self.flows.push(queue, packet);
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let queue = self.rounds.current(&mut self.flows)?;
            let Some(packet) = self.flows.pop(queue) else {
                self.rounds.emptied(&mut self.flows);
                continue;
            };
            let (wire, is_empty) = (self.flows.wire_bytes(&packet), self.flows.packets_in(queue) == 0);
            let Flow { control, turn } = self.flows.state_mut(queue);
            control.advance(now, &self.config.control);
            control.departed(now, packet.meta().arrived, is_empty);
            turn.sent(wire);
            self.tally.sent(&packet);
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("fq-pie", visit);
        let counts = [("dropped_aqm", self.dropped), ("marked", self.marked), ("new_flows", self.rounds.new_flows())];
        Counter::all("fq-pie", counts, visit);
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &lastmile_linklayer::LinkLayer) -> Result<(), Problem> {
        if self.limit.as_u64() == 0 || self.memory.as_u64() == 0 {
            return Err(Problem::ZeroLimit);
        }
        if self.quantum.as_u64() == 0 {
            return Err(Problem::ZeroQuantum);
        }
        self.flows.check()?;
        Ok(self.control.check()?)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let config = Self { flows: self.flows.seeded(site), control: self.control.seeded(site), ..*self };
        Ok(Box::new(FqPie::new(&config, site.environment)))
    }
}

#[cfg(test)]
mod tests;
