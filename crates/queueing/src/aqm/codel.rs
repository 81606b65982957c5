//! CoDel (controlled delay): drops the oldest packet when the queueing delay of every packet
//! exceeds a target for a whole interval.
//!
//! Published: RFC 8289; Nichols and Jacobson 2012; tc-codel(8).
//! Differs: the square root of the control law is an exact integer root. The backlog is compared
//! with the largest packet in bytes on the wire, where the RFC counts bytes of packets. The limit
//! may be in bytes or cells as well as in packets. [`CeThreshold`] is that of Linux (tc-codel(8), `ce_threshold`).
//! Queueing delay counts from [`lastmile_packet::Meta::arrived`], which the owner of the queue
//! sets.
//! Cost: O(1) a packet; a square root for each drop or mark.

pub mod law;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Duration, Instant, Limit, WireBytes};

use super::WireFifo;
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropSink};

pub use law::{CeThreshold, ControlLaw, ControlledQueue, Selector, Settings, Signals, drop_after, interval_over_root};

/// Parameters of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Acceptable queueing delay; must be below `interval`.
    pub target: Duration,
    /// Time for which the delay of every packet must exceed `target` before one is dropped: about
    /// the longest round-trip time.
    pub interval: Duration,
    /// Capacity of the queue.
    pub limit: Limit,
    /// Marks packets of ECN-capable senders instead of dropping them.
    pub ecn: bool,
    /// The largest IP packet to expect: nothing is dropped while the backlog is no larger.
    pub largest: ByteCount,
    /// Marks packets by their delay alone. `None`: never.
    pub ce_threshold: Option<CeThreshold>,
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
            ce_threshold: None,
        }
    }
}

/// Times with which CoDel cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a target of {target} is not below the interval of {interval}; RFC 8289 recommends 5 to 10 % of it")]
pub struct TimesError {
    /// The configured target.
    pub target: Duration,
    /// The configured interval.
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
    /// An empty queue. `None` if the limit is in cells and `link_layer` has none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        let Config { target, interval, ecn, largest, ce_threshold, .. } = *config;
        Some(Self {
            queue: WireFifo::new(config.limit, link_layer)?,
            settings: Settings { target, interval, ecn, mtu: link_layer.on_wire(largest), ce_threshold },
            law: ControlLaw::default(),
            signals: Signals::default(),
            tally: Tally::default(),
        })
    }
}

impl<P: Packet> ControlledQueue<P> for WireFifo<P> {
    fn take(&mut self) -> Option<P> {
        self.pop()
    }

    fn backlog_bytes(&self) -> WireBytes {
        self.wire
    }
}

impl<P: Packet> Discipline<P> for CoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if let Err((packet, full)) = self.queue.push(packet) {
            let reason = full.counted(&mut self.tally);
            drops.dropped(now, packet, reason);
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut packet = self.law.dequeue(&self.settings, now, &mut self.queue, &mut self.signals, drops)?;
        self.settings.mark_late(now, &mut packet, &mut self.signals);
        self.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("codel", visit);
        self.signals.show("codel", &self.settings, visit);
    }
}

/// Refuses a selector that no packet fits.
pub(crate) fn check_threshold(threshold: Option<CeThreshold>) -> Result<(), Problem> {
    match threshold {
        Some(CeThreshold { selector, .. }) if selector.value & !selector.mask != 0 => Err(Problem::Selector(selector)),
        _ => Ok(()),
    }
}

/// Refuses a target that is not below the interval.
pub(crate) fn check_times(target: Duration, interval: Duration) -> Result<(), Problem> {
    if target < interval { Ok(()) } else { Err(TimesError { target, interval }.into()) }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        check_threshold(self.ce_threshold)?;
        check_times(self.target, self.interval)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let codel = CoDel::new(self, &site.environment.link_layer);
        Ok(Box::new(codel.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
