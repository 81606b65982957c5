//! CoDel (controlled delay): drops the oldest packet when every packet has waited too long for too long.
//!
//! Published: RFC 8289; Nichols and Jacobson 2012; tc-codel(8).
//! Differs: the square root of the control law is an exact integer one. What still waits is compared with the largest packet
//! in bytes on the wire, where the RFC counts bytes of packets. The limit may be in bytes or cells as well as in packets.
//! A packet has waited since [`lastmile_packet::Meta::arrived`], which whoever owns the queue sets.
//! Cost: O(1) a packet; a square root for each drop or mark.

pub mod law;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, Limit, WireBytes};

use super::{Full, WireFifo};
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

pub use law::{ControlLaw, Settings, Signals, Waiting, drop_after, interval_over_root};

/// What CoDel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The wait that is good enough.
    pub target: Duration,
    /// For how long every packet must wait longer before one is dropped: about the longest round-trip time.
    pub interval: Duration,
    /// How much it holds whatever happens.
    pub limit: Limit,
    /// Marks packets of senders that understand it, in place of dropping them.
    pub ecn: bool,
    /// The largest IP packet to expect: as long as no more waits, nothing is dropped.
    pub largest: ByteCount,
}

impl Default for Config {
    /// 5 ms and 100 ms (RFC 8289, sections 4.2 and 4.3); 1000 packets and no ECN (tc-codel(8)).
    fn default() -> Self {
        Self {
            target: Duration::from_ms(5),
            interval: Duration::from_ms(100),
            limit: Limit::Packets(lastmile_units::PacketCount::new(1000)),
            ecn: false,
            largest: ByteCount::new(1500),
        }
    }
}

/// Times with which CoDel cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a target of {target} is not below the interval of {interval}; RFC 8289 recommends 5 to 10 % of it")]
pub struct TimesError {
    /// The target asked for.
    pub target: Duration,
    /// The interval asked for.
    pub interval: Duration,
}

/// A FIFO under CoDel.
#[derive(Clone, Debug)]
pub struct CoDel<P: Packet> {
    queue: WireFifo<P>,
    settings: Settings,
    law: ControlLaw,
    signals: Signals,
    tally: Tally,
}

impl<P: Packet> CoDel<P> {
    /// An empty queue. `None`: the limit is in cells, and `link_layer` sends none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        let Config { target, interval, ecn, largest, .. } = *config;
        Some(Self {
            queue: WireFifo::new(config.limit, link_layer)?,
            settings: Settings { target, interval, ecn, mtu: link_layer.on_wire(largest) },
            law: ControlLaw::default(),
            signals: Signals::default(),
            tally: Tally::default(),
        })
    }
}

impl<P: Packet> Waiting<P> for WireFifo<P> {
    fn take(&mut self) -> Option<P> {
        self.pop()
    }

    fn left(&self) -> WireBytes {
        self.wire
    }
}

impl<P: Packet> Discipline<P> for CoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        match self.queue.push(packet) {
            Ok(()) => {}
            Err((packet, Full::Now)) => {
                self.tally.tail += 1;
                drops.dropped(now, packet, DropReason::Tail);
            }
            Err((packet, Full::ForEver)) => {
                self.tally.too_large += 1;
                drops.dropped(now, packet, DropReason::TooLarge);
            }
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let packet = self.law.dequeue(&self.settings, now, &mut self.queue, &mut self.signals, drops)?;
        self.tally.sent(&packet);
        Some(packet)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.queue.is_empty() { None } else { Some(now) }
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("codel", visit);
        self.signals.show("codel", visit);
    }
}

/// Refuses a target that is not below the interval.
pub(crate) fn check_times(target: Duration, interval: Duration) -> Result<(), Problem> {
    if target < interval { Ok(()) } else { Err(TimesError { target, interval }.into()) }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        check_times(self.target, self.interval)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let codel = CoDel::new(self, &site.environment.link_layer);
        Ok(Box::new(codel.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
