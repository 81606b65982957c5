//! CAKE (common applications kept enhanced): a shaper, tins, flow and host isolation, COBALT and an
//! ACK filter in one.
//!
//! Published: tc-cake(8); Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a comprehensive queue
//! management solution for home gateways", LANMAN 2018. Numbers that both omit are those of
//! `net/sched/sch_cake.c` of Linux (read in 2026).
//!
//! - *Shaper*, in deficit mode (`shaper`): sizes are bytes on the wire. With `ingress` dropped packets
//!   are charged too, and no packet is late before each bulk flow of its tin could have sent two.
//! - *Tins* ([`Diffserv`]): the tin with the largest number has priority while it is below its
//!   threshold.
//! - *Isolation* ([`Isolation`]): within a tin each flow has a queue, and each host its share.
//! - *COBALT* in each queue, with times from `rtt` and the transmission time of the largest packet.
//! - *Memory*: above the limit the longest queue loses its oldest packet.
//! - *ACK filter*: the rules of [`crate::ack::cake`], within each queue.
//!
//! Differs from Linux:
//!
//! - Memory counts IP bytes, not buffers.
//! - Hosts are counted exactly, where Linux hashes them too.
//! - Divisions of a quantum carry their remainder, where Linux adds a random number.
//! - A flow that finds all eight ways of its set taken stays in the queue that it shares until that
//!   is empty. Linux may move it earlier, which reorders the flow.
//! - `nat` is only passed on to Linux: addresses here are never translated.
//! - A packet larger than the memory is not charged, as no such packet exists in Linux.
//! - Not implemented: `autorate-ingress`, `fwmark`, the splitting of large segments (there
//!   are none here).
//!
//! Cost: a few look-ups a packet; the logarithm of the number of queues while memory is short; a
//! scan of a flow's queue with the ACK filter. If hosts share, a flow of a host with n bulk flows
//! gets an n-th of the quantum a round, so that up to n rounds pass before a packet departs, as in
//! Linux. Memory: 220 kB for each tin that has seen a packet.

mod cobalt;
mod config;
mod isolation;
mod shaper;
mod shared;
mod stats;
mod tin;
mod tins;

use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowDirectory, Packet};
use lastmile_units::{BitRate, ByteCount, Instant, PacketCount};

use crate::catalogue::{Built, Mechanism};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::random::Stream;
use crate::spec::{self, Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment};

pub use config::{CakeError, Config};
pub use isolation::Isolation;
use shaper::Shaper;
use shared::{Ledger, Shared};
use tin::{QUEUES, Tin};
pub use tins::Diffserv;

/// A CAKE.
pub struct Cake<P> {
    config: Config,
    flows: Arc<dyn FlowDirectory>,
    tins: Vec<Tin<P>>,
    /// The tin that sent last.
    sent: usize,
    shared: Shared,
    memory: u64,
    /// Without a rate: the tin that has the turn.
    turn: usize,
    too_large: u64,
}

impl<P> core::fmt::Debug for Cake<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cake")
            .field("config", &self.config)
            .field("shaper", &self.shared.shaper)
            .finish_non_exhaustive()
    }
}

impl<P: Packet> Cake<P> {
    /// An empty CAKE for this environment.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment) -> Self {
        let link_layer = config.link_layer.unwrap_or(environment.link_layer);
        let largest = link_layer.on_wire(config.largest);
        let tins = (0..config.diffserv.names().len()).map(|number| Tin::new(config, number, largest));
        Self {
            tins: tins.collect(),
            sent: 0,
            flows: Arc::clone(&environment.flows),
            shared: Shared {
                link_layer,
                ack_filter: config.ack_filter,
                ingress: config.ingress,
                shaper: config.bandwidth.map(|rate| Shaper::new(rate, config.catch_up)),
                random: Stream::new(config.seed, "cake"),
                ledger: Ledger::default(),
            },
            memory: config.memory().as_u64(),
            turn: 0,
            too_large: 0,
            config: config.clone(),
        }
    }

    /// Drops from the longest queue until the backlog fits the memory.
    fn fit_memory(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        while self.shared.ledger.bytes > self.memory {
            let by_size =
                self.shared.ledger.by_size.get_or_insert_with(|| self.tins.iter().flat_map(Tin::sizes).collect());
            let &(_, longest) = by_size.last().expect("the backlog is not empty");
            let longest = longest as usize;
            self.tins[longest / QUEUES].drop_oldest(longest % QUEUES, now, &mut self.shared, drops);
        }
    }

    /// The tin to serve next. Some tin is active.
    fn choose_tin(&mut self, now: Instant) -> usize {
        if self.shared.shaper.is_some() {
            return self.earliest_tin(now);
        }
        while !self.tins[self.turn].has_turn() {
            self.turn = (self.turn + 1) % self.tins.len();
        }
        self.turn
    }

    /// The active tin below its threshold with the largest number; without one, the tin that will
    /// be first below its threshold.
    fn earliest_tin(&self, now: Instant) -> usize {
        let active = self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active());
        let (number, _) = active
            .min_by_key(|(number, tin)| (tin.next.max(now), core::cmp::Reverse(*number)))
            .expect("some tin is active");
        number
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        if u64::from(packet.meta().ip_len) > self.memory {
            self.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        if let Some(shaper) = self.shared.shaper.as_mut().filter(|_| self.shared.ledger.packets == 0) {
            shaper.begin(now);
        }
        let hosts = if self.config.isolation.needs_hosts() { packet.key(&*self.flows) } else { None };
        let hosts = hosts.map(|key| (key.addresses.ip.source(), key.addresses.ip.destination()));
        let tin = self.config.diffserv.tin(packet.meta().dscp());
        packet.meta_mut().join_class(tin);
        if self.config.wash && packet.meta().dscp() > 0 {
            packet.set_dscp(0);
        }
        self.tins[tin].push(now, packet, hosts, &mut self.shared, drops);
        self.fit_memory(now, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if self.shared.shaper.as_ref().is_some_and(|shaper| shaper.ready() > now) {
            return None;
        }
        let mut decays = true;
        while self.shared.ledger.packets > 0 {
            let tin = self.choose_tin(now);
            if let Some(packet) = self.tins[tin].serve(now, &mut decays, &mut self.shared, drops) {
                self.sent = tin;
                if self.shared.ledger.bytes < self.memory / 2 {
                    self.shared.ledger.by_size = None;
                }
                return Some(packet);
            }
        }
        None
    }

    /// Tins, quanta, the times of COBALT and a memory that is derived from the bandwidth follow, as in Linux. Packets
    /// beyond a smaller memory are dropped at the next arrival.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        let Some(shaper) = &mut self.shared.shaper else { return false };
        shaper.set_rate(now, rate);
        self.config.bandwidth = Some(rate);
        self.memory = self.config.memory().as_u64();
        let largest = self.shared.link_layer.on_wire(self.config.largest);
        self.tins.iter_mut().for_each(|tin| tin.set_rate(now, rate, &self.config, largest));
        true
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        let ready = self.shared.shaper.as_ref().map_or(now, Shaper::ready);
        (self.shared.ledger.packets > 0).then_some(ready)
    }

    fn backlog(&self) -> Backlog {
        let Ledger { packets, bytes, .. } = self.shared.ledger;
        Backlog { packets: PacketCount::new(packets), bytes: ByteCount::new(bytes) }
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        visit(Counter { path: "", kind: "cake", name: "dropped_too_large", value: self.too_large });
        for tin in &self.tins {
            tin.show(visit);
        }
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(Self::check(self)?)
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.diffserv.names().get(usize::from(class)).map(|name| (*name).to_owned())
    }

    fn thins_acks(&self) -> bool {
        self.ack_filter.is_some()
    }

    /// Its clock lets one packet pass at once.
    fn shapers_of(&self, _packets: &Packets) -> Vec<spec::Shaper> {
        let shaper =
            |rate| spec::Shaper { layer: self.link_layer, ..spec::Shaper::of_all(rate, Some(spec::Shaper::PACKET)) };
        self.bandwidth.map(shaper).into_iter().collect()
    }

    fn sets_dscp(&self) -> bool {
        self.wash
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let config = Self { seed: site.seed(self.seed), ..self.clone() };
        Ok(Box::new(Cake::new(&config, site.environment)))
    }
}

#[cfg(test)]
mod tests;
