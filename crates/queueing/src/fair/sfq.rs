//! SFQ (stochastic fairness queueing): hash buckets of flows take turns; on overflow the longest
//! queue loses a packet.
//!
//! Published: McKenney 1990; tc-sfq(8).
//! Differs:
//!
//! - Quanta count bytes on the wire, and a queue pays exactly for the bytes that it sent, as in
//!   deficit round robin, where the paper sends a packet a turn.
//! - Flows may have queues of their own instead of sharing buckets.
//! - With `perturb` the whole backlog moves to the buckets of the new hash, each flow in its order,
//!   as in Linux since 2.6.39. Two flows that share a bucket are separated even if it is never
//!   empty.
//! - RED within a bucket is not implemented: [`crate::fair::FqCodel`] superseded it.
//!
//! Cost: O(1) a packet, if a quantum is no less than a packet; a new hash moves every queued
//! packet.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Duration, Instant, PacketCount, WireBytes};

use super::flows::{FlowKeys, Flows};
use super::lengths::Lengths;
use super::per::{Per, Tags};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Overflow};

/// Parameters of SFQ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rule by which packets share a queue.
    pub flows: FlowKeys,
    /// The member that has a queue: a flow or a host.
    pub per: Per,
    /// Bytes on the wire that a queue may send in a turn.
    pub quantum: WireBytes,
    /// Interval at which the hash changes. Zero: never. No effect on flows with queues of their
    /// own.
    pub perturb: Duration,
    /// Capacity in packets.
    pub limit: PacketCount,
    /// Capacity of one queue in packets.
    pub depth: PacketCount,
    /// The packet to drop on overflow. Of the longest queue: its newest or its oldest. Of a queue
    /// above `depth`: the one that arrives, or the oldest.
    pub drop: Overflow,
}

/// A scheduler of flows that take turns.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    flows: Flows<P, Flow>,
    tags: Tags,
    lengths: Lengths,
    /// Queues with packets, in the order of their turns.
    round: VecDeque<u32>,
    config: Config,
    link_layer: LinkLayer,
    quantum: i64,
    /// Number of the current period of `perturb`, from time zero.
    period: u64,
    seeds: Stream,
    tally: Tally,
    rehashes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Bytes on the wire that it may still send in this turn.
    credit: i64,
    /// True if the flow is in the round.
    listed: bool,
}

impl<P: Packet> Sfq<P> {
    /// A scheduler without packets.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let link_layer = &environment.link_layer;
        let seed = match config.flows {
            FlowKeys::Buckets { seed, .. } => seed,
            FlowKeys::Exact => 0,
        };
        Self {
            flows: Flows::new(config.flows, link_layer),
            tags: Tags::new(config.per, environment),
            lengths: Lengths::default(),
            round: VecDeque::new(),
            config: *config,
            link_layer: *link_layer,
            quantum: i64::try_from(config.quantum.as_u64()).unwrap_or(i64::MAX / 2),
            period: 0,
            seeds: Stream::new(seed, "sfq"),
            tally: Tally::default(),
            rehashes: 0,
        }
    }

    /// Rehashes the backlog if a new period has begun.
    fn perturb(&mut self, now: Instant) {
        let FlowKeys::Buckets { count, .. } = self.config.flows else { return };
        if self.config.perturb.is_zero() {
            return;
        }
        let period = now.as_ps() / self.config.perturb.as_ps();
        if period == self.period {
            return;
        }
        self.period = period;
        self.rehashes += 1;
        let keys = FlowKeys::Buckets { count, seed: self.seeds.bits() };
        let mut before = std::mem::replace(&mut self.flows, Flows::new(keys, &self.link_layer));
        self.lengths = Lengths::default();
        for queue in std::mem::take(&mut self.round) {
            while let Some(packet) = before.pop(queue) {
                let queue = self.flows.queue_of(self.tags.of(&packet));
                self.push(queue, packet);
            }
        }
    }

    fn push(&mut self, queue: u32, packet: P) {
        let length = self.flows.packets_in(queue);
        self.flows.push(queue, packet);
        self.lengths.moved(queue, length, length + 1);
        let flow = self.flows.state_mut(queue);
        if !flow.listed {
            *flow = Flow { credit: self.quantum, listed: true };
            self.round.push_back(queue);
        }
    }

    /// Removes a packet from a queue, which may become empty.
    fn take(&mut self, queue: u32, newest: bool) -> Option<P> {
        let length = self.flows.packets_in(queue);
        let packet = if newest { self.flows.pop_newest(queue) } else { self.flows.pop(queue) }?;
        self.lengths.moved(queue, length, length - 1);
        Some(packet)
    }

    /// Drops a packet of a queue above its depth, or of the longest queue.
    fn drop_of(&mut self, queue: u32, now: Instant, drops: &mut dyn DropSink<P>) {
        let newest = self.config.drop == Overflow::Tail;
        let Some(packet) = self.take(queue, newest) else { return };
        if newest {
            self.tally.tail += 1;
            drops.dropped(now, packet, DropReason::Tail);
        } else {
            self.tally.head += 1;
            drops.dropped(now, packet, DropReason::Head);
        }
    }
}

impl<P: Packet> Discipline<P> for Sfq<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.perturb(now);
        let queue = self.flows.queue_of(self.tags.of(&packet));
        self.push(queue, packet);
        if u64::from(self.flows.packets_in(queue)) > self.config.depth.as_u64() {
            self.drop_of(queue, now, drops);
        }
        if self.flows.backlog().packets > self.config.limit
            && let Some(longest) = self.lengths.longest()
        {
            self.drop_of(longest, now, drops);
            if self.flows.packets_in(longest) == 0 {
                // All queues held one packet, and the arriving one reached that length last: its
                // queue is the last of the round.
                self.round.pop_back();
                self.flows.state_mut(longest).listed = false;
                self.flows.release(longest);
            }
        }
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let queue = *self.round.front()?;
            let flow = self.flows.state_mut(queue);
            if flow.credit <= 0 {
                flow.credit += self.quantum;
                self.round.rotate_left(1);
                continue;
            }
            let packet = self.take(queue, false).expect("a queue in the round holds something");
            let wire = self.flows.wire_bytes(&packet).as_u64();
            self.flows.state_mut(queue).credit -= i64::try_from(wire).expect("a packet of at most 64 KiB");
            if self.flows.packets_in(queue) == 0 {
                self.round.pop_front();
                self.flows.state_mut(queue).listed = false;
                self.flows.release(queue);
            }
            self.tally.sent(&packet);
            return Some(packet);
        }
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.round.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("sfq", visit);
        visit(Counter { path: "", kind: "sfq", name: "rehashes", value: self.rehashes });
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        if self.limit.as_u64() == 0 || self.depth.as_u64() == 0 {
            return Err(Problem::ZeroLimit);
        }
        if self.quantum.as_u64() == 0 {
            return Err(Problem::ZeroQuantum);
        }
        self.flows.check()
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        Ok(Box::new(Sfq::new(&Self { flows: self.flows.seeded(site), ..*self }, site.environment)))
    }
}

#[cfg(test)]
mod tests;
