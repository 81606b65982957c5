//! Token bucket filter (TBF): a shaper that dequeues packets at a rate, with a burst above it.
//!
//! Published: tc-tbf(8).
//! Differs: sizes are bytes on the wire of the line, not of the frame. Time is exact
//! ([`TokenBucket`]). A burst smaller than the largest packet is refused at construction, where tc
//! drops each such packet for good; larger packets than announced are dropped on arrival, as in tc.
//!
//! As `sch_tbf` of Linux does (`qdisc_peek_dequeued`), it dequeues the next packet as soon as the
//! previous one has departed, since the size of a packet decides when it may depart. That packet is
//! committed: an urgent one behind it waits, and an ACK regulator in the queue cannot change it.
//! Cost: one or two divisions a packet, plus the cost of the queue below.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::TokenBucket;
use crate::catalogue::{Above, Built};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::spec::{Problem, Shaper, Site, Spec, shaper_over};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Node};

/// Parameters of a shaper, without its queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The rate on the wire, headers and cells included.
    pub rate: BitRate,
    /// Bytes on the wire that may depart at once after a pause.
    pub burst: WireBytes,
    /// The rate within a burst. `None`: unlimited.
    pub peak: Option<Peak>,
    /// The largest IP packet to expect. It must fit each burst.
    pub largest: ByteCount,
    /// Maximum lateness of a caller that does not cost rate: a packet delayed by a late caller is
    /// charged from when it was due, at most this far back. Zero suits a caller that is on time for
    /// [`Discipline::next_ready`], and limits every interval to the burst plus the tokens earned in
    /// it.
    pub catch_up: Duration,
}

/// The rate within a burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// The rate on the wire.
    pub rate: BitRate,
    /// Bytes on the wire that may depart at once within a burst: at least one packet (`mtu` of
    /// tc-tbf).
    pub burst: WireBytes,
}

/// A shaper that would pass nothing, or whose parameters contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TbfError {
    /// The largest packet does not fit the burst.
    #[error("a burst of {burst} never lets the largest packet pass, which takes {needed}")]
    BurstTooSmall {
        /// The configured burst.
        burst: WireBytes,
        /// Size of the largest packet on the wire.
        needed: WireBytes,
    },
    /// The largest packet does not fit the burst of the peak rate.
    #[error("a peak burst of {burst} never lets the largest packet pass, which takes {needed}")]
    PeakBurstTooSmall {
        /// The configured burst.
        burst: WireBytes,
        /// Size of the largest packet on the wire.
        needed: WireBytes,
    },
    /// The peak rate does not exceed the rate, so the burst could never be used.
    #[error("a peak rate of {peak} is not above the rate of {rate}")]
    PeakNotAboveRate {
        /// The configured peak rate.
        peak: BitRate,
        /// The configured rate.
        rate: BitRate,
    },
}

impl Config {
    /// Refuses what would pass nothing, or not what it says.
    ///
    /// # Errors
    /// A burst that the largest packet does not fit, or a peak rate that is not above the rate.
    pub fn check(&self, link_layer: &LinkLayer) -> Result<(), TbfError> {
        let needed = link_layer.on_wire(self.largest);
        if self.burst < needed {
            return Err(TbfError::BurstTooSmall { burst: self.burst, needed });
        }
        match self.peak {
            Some(peak) if peak.burst < needed => Err(TbfError::PeakBurstTooSmall { burst: peak.burst, needed }),
            Some(peak) if peak.rate <= self.rate => {
                Err(TbfError::PeakNotAboveRate { peak: peak.rate, rate: self.rate })
            }
            _ => Ok(()),
        }
    }
}

/// A token bucket filter over a queue.
#[derive(Debug)]
pub struct Tbf<P, D = Node<P>> {
    queue: D,
    bucket: TokenBucket,
    peak: Option<TokenBucket>,
    /// The smaller burst: larger packets never conform.
    largest: WireBytes,
    link_layer: LinkLayer,
    catch_up: Duration,
    /// The next packet to depart, already dequeued from `queue`.
    head: Option<Head<P>>,
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
    too_large: u64,
}

#[derive(Debug)]
struct Head<P> {
    packet: P,
    wire: WireBytes,
    /// IP bytes of the packet when it was dequeued from `queue`.
    bytes: ByteCount,
    /// The time at which it may depart.
    ready: Instant,
}

impl<P: Packet, D: Discipline<P>> Tbf<P, D> {
    /// A shaper over `queue`, its buckets full.
    ///
    /// # Errors
    /// A burst smaller than the largest packet, or a peak rate that does not exceed the rate.
    pub fn new(config: &Config, link_layer: &LinkLayer, queue: D) -> Result<Self, TbfError> {
        config.check(link_layer)?;
        Ok(Self {
            queue,
            bucket: TokenBucket::new(config.rate, config.burst),
            peak: config.peak.map(|peak| TokenBucket::new(peak.rate, peak.burst)),
            largest: config.peak.map_or(config.burst, |peak| peak.burst.min(config.burst)),
            link_layer: *link_layer,
            catch_up: config.catch_up,
            head: None,
            sent_packets: 0,
            sent_bytes: 0,
            sent_wire_bytes: 0,
            too_large: 0,
        })
    }

    /// The time at which a packet of this size conforms to both rates. `None`: never.
    fn conforms_at(&self, wire: WireBytes) -> Option<Instant> {
        let at = self.bucket.ready_at(wire)?;
        match &self.peak {
            Some(peak) => Some(at.max(peak.ready_at(wire)?)),
            None => Some(at),
        }
    }

    /// Dequeues the next packet, which arrived at `since` or before, and commits it.
    fn pull(&mut self, now: Instant, since: Instant, drops: &mut dyn DropSink<P>) {
        debug_assert!(self.head.is_none(), "one packet at a time is committed");
        while let Some(packet) = self.queue.dequeue(now, drops) {
            let bytes = packet.meta().ip_bytes();
            let wire = self.link_layer.on_wire(bytes);
            if let Some(at) = self.conforms_at(wire) {
                self.head = Some(Head { packet, wire, bytes, ready: at.max(since) });
                return;
            }
            // An ACK that became larger in the queue.
            self.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
        }
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Tbf<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let wire = self.link_layer.on_wire(packet.meta().ip_bytes());
        if wire > self.largest {
            self.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        self.queue.enqueue(now, packet, drops);
        if self.head.is_none() {
            self.pull(now, now, drops);
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        if self.head.is_none() {
            self.pull(now, now, drops);
        }
        let head = self.head.take_if(|head| head.ready <= now)?;
        let earliest = Instant::from_ps(now.as_ps().saturating_sub(self.catch_up.as_ps()));
        let at = head.ready.max(earliest);
        let conforms =
            self.bucket.take(at, head.wire) && self.peak.as_mut().is_none_or(|peak| peak.take(at, head.wire));
        debug_assert!(conforms, "a packet leaves when it conforms, not before");
        self.sent_packets += 1;
        self.sent_bytes += head.bytes.as_u64();
        self.sent_wire_bytes += head.wire.as_u64();
        self.pull(now, at, drops);
        Some(head.packet)
    }

    /// A peak rate stays, also below the new rate. A shaper below takes the rate as well.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        self.queue.set_rate(now, rate);
        self.bucket.set_rate(now, rate);
        if let Some(wire) = self.head.as_ref().filter(|head| head.ready > now).map(|head| head.wire)
            && let Some(ready) = self.conforms_at(wire)
            && let Some(head) = &mut self.head
        {
            head.ready = ready;
        }
        true
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        match &self.head {
            Some(head) => Some(head.ready),
            None => self.queue.next_ready(now),
        }
    }

    fn backlog(&self) -> Backlog {
        let queued = self.queue.backlog();
        match &self.head {
            Some(head) => Backlog { packets: queued.packets + PacketCount::new(1), bytes: queued.bytes + head.bytes },
            None => queued,
        }
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.queue.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("sent_packets", self.sent_packets),
            ("sent_bytes", self.sent_bytes),
            ("sent_wire_bytes", self.sent_wire_bytes),
            ("dropped_too_large", self.too_large),
        ];
        Counter::all("tbf", counts, visit);
        Counter::below("queue", &self.queue, visit);
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(Self::check(self, link_layer)?)
    }

    fn own_shapers(&self, _packets: &Packets) -> Vec<Shaper> {
        vec![Shaper::of_all(self.rate, Some(self.burst))]
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Tbf::new(self, &environment.link_layer, queue)?))
    }

    fn build<P: Packet + Send + 'static>(&self, queue: &Spec, site: &mut Site<'_>) -> Built<P> {
        shaper_over(self, queue, site)
    }
}

#[cfg(test)]
mod tests;
