//! CAKE (common applications kept enhanced): a shaper, tins, flow and host isolation, COBALT and an ACK filter in one.
//!
//! Published: tc-cake(8); Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018. Where both are silent, the numbers are those of `net/sched/sch_cake.c` of Linux (read in 2026).
//!
//! - *Shaper*, in deficit mode: when a packet leaves, the next may leave once the line would have carried this one. No
//!   bucket, no burst. Sizes are those on the wire.
//! - *Tins* ([`Diffserv`]): the one with the largest number goes first as long as it keeps to its threshold.
//! - *Isolation* ([`Isolation`]): within a tin each flow has a queue, and each host its share.
//! - *COBALT* in each queue, its times from `rtt` and what the largest packet takes.
//! - *Memory*: beyond the limit the oldest packet of the longest queue goes.
//! - *ACK filter*: the rules of [`crate::ack::cake`], within each queue.
//!
//! Differs from Linux: memory counts IP bytes, not buffers. Hosts are counted exactly, where Linux hashes them too. A quantum is
//! divided with its rest carried, where Linux adds a random number. A flow that finds all eight ways of its set taken keeps to
//! the queue that it shares until that is empty, where Linux may move it and overtake its own packets. `nat` is only passed on to
//! Linux: addresses here are never translated. Not there: `wash`, `ingress`, `autorate-ingress`, `fwmark`, the splitting of large segments (there are none here).
//! Cost: a few look-ups a packet, a logarithm of the number of queues while memory is short, a scan of a flow's queue where
//! ACKs are filtered. Where hosts share, a flow of a host with n bulk flows gets an n-th of the quantum a round, so that up to n
//! rounds pass before a packet leaves, as in Linux. Memory: 220 kB for each tin that has seen a packet.

mod cobalt;
mod isolation;
mod tin;
mod tins;

use std::collections::BTreeSet;
use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowDirectory, Packet};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Serialiser};

use crate::ack::cake::Mode;
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment};

pub use isolation::Isolation;
use tin::{QUEUES, Tin};
pub use tins::Diffserv;

/// What a CAKE is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rate on the wire that it keeps to. `None`: as fast as what is below takes packets.
    pub bandwidth: Option<BitRate>,
    /// How the differentiated services field divides traffic.
    pub diffserv: Diffserv,
    /// What is kept apart.
    pub isolation: Isolation,
    /// The round-trip time of most traffic, from which COBALT's times follow.
    pub rtt: Duration,
    /// IP bytes that may wait. `None`: four times what the bandwidth carries in `rtt`, at least [`Config::LEAST_MEMORY`], and
    /// [`Config::MEMORY`] without a bandwidth.
    pub memory: Option<ByteCount>,
    /// Linux looks behind its address translation for the hosts. Changes nothing here, where no address is translated.
    pub nat: bool,
    /// Which ACKs go when a newer one comes. `None`: none.
    pub ack_filter: Option<Mode>,
    /// What a packet takes of the bandwidth, where that is not what it takes on this line: the line that is shaped for may be
    /// a later one.
    pub link_layer: Option<LinkLayer>,
    /// The largest IP packet to expect: COBALT's times allow for it.
    pub largest: ByteCount,
    /// How late a caller may ask without costing rate, as for a token bucket filter.
    pub catch_up: Duration,
    /// Seed of BLUE's random numbers.
    pub seed: u64,
}

impl Default for Config {
    /// Without a bandwidth, `diffserv3`, `triple-isolate`, 100 ms, no ACK filter: the defaults of tc-cake(8).
    fn default() -> Self {
        Self {
            bandwidth: None,
            diffserv: Diffserv::default(),
            isolation: Isolation::default(),
            rtt: Duration::from_ms(100),
            memory: None,
            nat: false,
            ack_filter: None,
            link_layer: None,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
            seed: 0,
        }
    }
}

impl Config {
    /// The shortest round-trip time: COBALT's target is a twentieth of it.
    pub const LEAST_RTT: Duration = Duration::from_us(1);
    /// The least memory that follows from a bandwidth.
    pub const LEAST_MEMORY: ByteCount = ByteCount::new(4 << 20);
    /// The memory without a bandwidth: 10 240 packets of 1514 bytes, as many as Linux lets a queue hold.
    pub const MEMORY: ByteCount = ByteCount::new(10_240 * 1514);

    /// Checks what only a value can be wrong about.
    ///
    /// # Errors
    /// A round-trip time or a memory with which nothing would pass.
    pub fn check(&self) -> Result<(), CakeError> {
        if self.rtt < Self::LEAST_RTT {
            return Err(CakeError::Rtt(self.rtt));
        }
        match self.memory {
            Some(memory) if memory < self.largest => Err(CakeError::Memory { memory, largest: self.largest }),
            _ => Ok(()),
        }
    }

    fn memory(&self) -> ByteCount {
        let in_flight = |bandwidth: BitRate| {
            let bits = u128::from(bandwidth.as_bps()) * u128::from(self.rtt.as_ps()) / 1_000_000_000_000;
            ByteCount::new(u64::try_from(bits / 8 * 4).unwrap_or(u64::MAX)).max(Self::LEAST_MEMORY)
        };
        self.memory.unwrap_or_else(|| self.bandwidth.map_or(Self::MEMORY, in_flight))
    }
}

/// A CAKE that would let nothing pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CakeError {
    /// The round-trip time is too short.
    #[error("a round-trip time of {0}; it is at least {least}", least = Config::LEAST_RTT)]
    Rtt(Duration),
    /// The largest packet does not fit the memory.
    #[error("a memory of {memory} does not hold the largest packet, which has {largest}")]
    Memory {
        /// The memory asked for.
        memory: ByteCount,
        /// The largest packet.
        largest: ByteCount,
    },
}

/// A CAKE.
pub struct Cake<P> {
    config: Config,
    flows: Arc<dyn FlowDirectory>,
    tins: Vec<Tin<P>>,
    /// The tin that sent last.
    sent: usize,
    cx: Cx,
    memory: u64,
    shaper: Option<Serialiser>,
    /// When the next packet may leave.
    next: Instant,
    /// Where there is no rate: the tin whose turn it is.
    turn: usize,
    too_large: u64,
}

impl<P> core::fmt::Debug for Cake<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Cake").field("config", &self.config).field("next", &self.next).finish_non_exhaustive()
    }
}

/// What all tins use.
#[derive(Debug)]
struct Cx {
    link_layer: LinkLayer,
    ack_filter: Option<Mode>,
    random: Stream,
    ledger: Ledger,
}

/// What waits in all tins, and while memory is short which queue is the longest.
#[derive(Debug, Default)]
struct Ledger {
    packets: u64,
    bytes: u64,
    /// The queues by their bytes. Kept only from an overflow until half of the memory is free.
    by_size: Option<BTreeSet<(u64, u32)>>,
}

impl Ledger {
    /// A packet of so many `bytes` came to a queue that held so many `before`.
    fn add(&mut self, queue: u32, before: u64, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
        self.resize(queue, before, before + bytes);
    }

    /// A packet of so many `bytes` left a queue that held so many `before`.
    fn remove(&mut self, queue: u32, before: u64, bytes: u64) {
        self.packets -= 1;
        self.bytes -= bytes;
        self.resize(queue, before, before - bytes);
    }

    fn resize(&mut self, queue: u32, before: u64, after: u64) {
        if let Some(by_size) = &mut self.by_size {
            by_size.remove(&(before, queue));
            if after > 0 {
                by_size.insert((after, queue));
            }
        }
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
            cx: Cx {
                link_layer,
                ack_filter: config.ack_filter,
                random: Stream::new(config.seed, "cake"),
                ledger: Ledger::default(),
            },
            memory: config.memory().as_u64(),
            shaper: config.bandwidth.map(Serialiser::new),
            next: Instant::ZERO,
            turn: 0,
            too_large: 0,
            config: config.clone(),
        }
    }

    /// Drops from the longest queue until what waits fits the memory.
    fn make_room(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        while self.cx.ledger.bytes > self.memory {
            let by_size = self.cx.ledger.by_size.get_or_insert_with(|| self.tins.iter().flat_map(Tin::sizes).collect());
            let &(_, longest) = by_size.last().expect("something waits");
            let longest = longest as usize;
            self.tins[longest / QUEUES].drop_oldest(longest % QUEUES, now, &mut self.cx.ledger, drops);
        }
    }

    /// The tin that is served next. Some tin has a flow in its rounds.
    fn choose_tin(&mut self, now: Instant) -> usize {
        if self.shaper.is_some() {
            return self.earliest_tin(now);
        }
        while !self.tins[self.turn].has_turn() {
            self.turn = (self.turn + 1) % self.tins.len();
        }
        self.turn
    }

    /// The one with the largest number that keeps to its threshold, or else the one that will be the first to.
    fn earliest_tin(&self, now: Instant) -> usize {
        let active = self.tins.iter().enumerate().filter(|(_, tin)| tin.is_active());
        let (number, _) = active
            .min_by_key(|(number, tin)| (tin.next.max(now), core::cmp::Reverse(*number)))
            .expect("some tin is active");
        number
    }

    /// The packet was sent: the next may leave once the line would have carried it.
    fn charge(&mut self, now: Instant, tin: usize, packet: &P) {
        let Some(shaper) = &mut self.shaper else { return };
        let wire = self.cx.link_layer.on_wire(packet.meta().ip_bytes());
        self.tins[tin].charge(now, wire);
        let earliest = Instant::from_ps(now.as_ps().saturating_sub(self.config.catch_up.as_ps()));
        if self.next < earliest {
            self.next = earliest;
            shaper.restart();
        }
        self.next = self.next.saturating_add(shaper.advance(wire));
    }
}

impl<P: Packet> Discipline<P> for Cake<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        if u64::from(packet.meta().ip_len) > self.memory {
            self.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        if self.cx.ledger.packets == 0 && self.next < now {
            self.next = now;
            if let Some(shaper) = &mut self.shaper {
                shaper.restart();
            }
        }
        let hosts = if self.config.isolation.asks_for_hosts() { packet.key(&*self.flows) } else { None };
        let hosts = hosts.map(|key| (key.addresses.ip.source(), key.addresses.ip.destination()));
        let tin = self.config.diffserv.tin(packet.meta().dscp());
        packet.meta_mut().join_class(tin);
        self.tins[tin].push(now, packet, hosts, &mut self.cx, drops);
        self.make_room(now, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if self.shaper.is_some() && self.next > now {
            return None;
        }
        let mut decays = true;
        while self.cx.ledger.packets > 0 {
            let tin = self.choose_tin(now);
            if let Some(packet) = self.tins[tin].serve(now, &mut decays, &mut self.cx, drops) {
                self.charge(now, tin, &packet);
                self.sent = tin;
                if self.cx.ledger.bytes < self.memory / 2 {
                    self.cx.ledger.by_size = None;
                }
                return Some(packet);
            }
        }
        None
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        let ready = if self.shaper.is_some() { self.next } else { now };
        (self.cx.ledger.packets > 0).then_some(ready)
    }

    fn backlog(&self) -> Backlog {
        let Ledger { packets, bytes, .. } = self.cx.ledger;
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

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        Ok(Box::new(Cake::new(self, site.environment)))
    }
}

#[cfg(test)]
mod tests;
