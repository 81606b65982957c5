//! DOCSIS-PIE: the AQM of cable modems, PIE for a service flow whose rates the modem knows.
//!
//! Published: RFC 8034, appendix A (CM-SP-MULPIv3.1, annex M).
//! Differs: bytes are those on the wire of the line, where the RFC counts those of Ethernet frames. The
//! probability is a fixed-point number, so that runs are the same on every machine. The discipline does not
//! shape: it keeps count of the tokens that the service flow's shaper has, and the line has the rate.
//!
//! RFC 8034, section 5, lists the differences from PIE:
//!
//! - the target is 10 ms, the period 16 ms, and the gains are twice PIE's;
//! - the wait is predicted by the backlog, the tokens and the rates of the service flow;
//! - a burst is spared when a drop ends a time of at least a second in which nothing waited for long, and
//!   nothing at all is dropped until a third of the buffer is full once;
//! - the step grows with probabilities above 10 %, and the probability may exceed one;
//! - waits of up to 5 ms, not only of zero, let it decay, and those above 200 ms raise it by 2 %;
//! - a packet's probability is in proportion to its size, one of 1024 bytes has that of the controller;
//! - no marks.
//!
//! Cost: O(1) a packet, and O(1) for each update since the packet before until the probability is steady.

mod controller;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, Duration, Instant, Limit, WireBytes};

use self::controller::{Controller, ServiceFlow};
use super::WireFifo;
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

/// The parameters of DOCSIS-PIE: those of the service flow. All others are constants of RFC 8034.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The wait that the controller aims at (`LATENCY_TARGET`).
    pub target: Duration,
    /// Maximum Sustained Traffic Rate (`MSR`), on the wire.
    pub sustained: BitRate,
    /// Peak Traffic Rate (`PEAK_RATE`), on the wire: the rate while the shaper has tokens.
    pub peak: BitRate,
    /// Maximum Traffic Burst: tokens of the shaper.
    pub burst: WireBytes,
    /// Capacity of the buffer.
    pub limit: Limit,
    /// Seed of the random numbers that decide.
    pub seed: u64,
}

impl Config {
    /// RFC 8034, section 5.1.
    pub const TARGET: Duration = Duration::from_ms(10);
    /// The default Maximum Traffic Burst of DOCSIS: two Ethernet frames.
    pub const BURST: WireBytes = WireBytes::new(3044);

    /// A service flow of this rate without a higher peak, with the defaults of DOCSIS.
    #[must_use]
    pub const fn of(sustained: BitRate, limit: Limit) -> Self {
        Self { target: Self::TARGET, sustained, peak: sustained, burst: Self::BURST, limit, seed: 1 }
    }

    /// Refuses parameters with which DOCSIS-PIE cannot work.
    ///
    /// # Errors
    /// A target of zero, or a peak rate below the sustained rate.
    pub fn check(&self) -> Result<(), DocsisPieError> {
        if self.target.is_zero() {
            return Err(DocsisPieError::ZeroTarget);
        }
        if self.peak < self.sustained {
            return Err(DocsisPieError::Peak { peak: self.peak, sustained: self.sustained });
        }
        Ok(())
    }
}

/// Parameters with which DOCSIS-PIE cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DocsisPieError {
    /// Every packet would wait too long.
    #[error("a target of zero: no queue could reach it; RFC 8034 has 10 ms")]
    ZeroTarget,
    /// The peak is no peak.
    #[error("a peak rate of {peak} is below the sustained rate of {sustained}")]
    Peak {
        /// The peak rate.
        peak: BitRate,
        /// The sustained rate.
        sustained: BitRate,
    },
}

/// A FIFO under DOCSIS-PIE.
#[derive(Clone, Debug)]
pub struct DocsisPie<P: Packet> {
    queue: WireFifo<P>,
    controller: Controller,
    flow: ServiceFlow,
    random: Stream,
    dropped: u64,
    tally: Tally,
}

impl<P: Packet> DocsisPie<P> {
    /// An empty queue. `None`: the limit is in cells, and `link_layer` sends none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        Some(Self {
            queue: WireFifo::new(config.limit, link_layer)?,
            controller: Controller::new(config.target),
            flow: ServiceFlow::new(config.sustained, config.peak, config.burst),
            random: Stream::new(config.seed, "docsis-pie"),
            dropped: 0,
            tally: Tally::default(),
        })
    }

    /// Makes the updates that are due.
    fn advance(&mut self, now: Instant) {
        let Self { controller, queue, flow, .. } = self;
        controller.advance(now, queue.is_empty(), |due| flow.wait(due, queue.wire));
    }
}

impl<P: Packet> Discipline<P> for DocsisPie<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.controller.start(now);
        self.advance(now);
        if let Some(full) = self.queue.refuses(&packet) {
            let reason = full.counted(&mut self.tally);
            drops.dropped(now, packet, reason);
            return;
        }
        let size = self.queue.link_layer.on_wire(packet.meta().ip_bytes());
        let is_third_full = self.queue.capacity.is_third_full();
        if self.controller.drops(size, self.queue.wire, is_third_full, &mut self.random) {
            self.dropped += 1;
            drops.dropped(now, packet, DropReason::Aqm);
        } else {
            self.queue.put(packet);
        }
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        self.advance(now);
        let before = self.queue.wire;
        let packet = self.queue.pop()?;
        self.flow.sent(now, before - self.queue.wire);
        self.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("docsis-pie", visit);
        Counter::all("docsis-pie", [("dropped_aqm", self.dropped), ("bursts", self.controller.bursts())], visit);
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(Self::check(self)?)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let pie = DocsisPie::new(&Self { seed: site.seed(self.seed), ..*self }, &site.environment.link_layer);
        Ok(Box::new(pie.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
