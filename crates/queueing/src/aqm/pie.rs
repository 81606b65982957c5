//! PIE (proportional integral controller enhanced): drops or marks what arrives with a probability that holds
//! the wait at a target.
//!
//! Published: RFC 8033; tc-pie(8). Differs: the wait is that of the last packet that departed, by its time
//! stamp (section 4.3 allows it), and zero once the queue is empty, as in Linux. The probability is a
//! fixed-point number, so that runs are the same on every machine. Two of the largest packets are counted in
//! bytes on the wire, where the RFC counts bytes of packets. Drops are spread (section 5.4) and steps above
//! 10 % are capped (section 5.5), which the RFC leaves optional. While nothing waits the probability loses a
//! 64th a period, as in Linux; the RFC has 2 % and calls a 64th sufficient. Linux's extra step above 250 ms,
//! and the estimated departure rate of section 5.2, are not here. Cost: O(1) a packet, and O(1) for each
//! period since the packet before until the probability is steady.

pub mod control;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{Instant, Limit, PacketCount, WireBytes};

use super::WireFifo;
use super::pi::percent;
use crate::catalogue::{Built, Mechanism};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::random::Stream;
use crate::spec::{Problem, Site};
use crate::{Backlog, Discipline, DropReason, DropSink};

pub(crate) use control::Control;
pub use control::{Parameters, PieError};

/// The parameters of PIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The control of the queue.
    pub control: Parameters,
    /// Capacity.
    pub limit: Limit,
}

impl Default for Config {
    /// The defaults of the control; 1000 packets (tc-pie(8)).
    fn default() -> Self {
        Self { control: Parameters::default(), limit: Limit::Packets(PacketCount::new(1000)) }
    }
}

/// A FIFO under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P: Packet> {
    parameters: Parameters,
    queue: WireFifo<P>,
    control: Control,
    random: Stream,
    /// Two of the largest packets.
    spared: WireBytes,
    dropped: u64,
    marked: u64,
    tally: Tally,
}

impl<P: Packet> Pie<P> {
    /// An empty queue. `None`: the limit is in cells, and `link_layer` sends none.
    #[must_use]
    pub fn new(config: &Config, link_layer: &LinkLayer) -> Option<Self> {
        let parameters = config.control;
        let largest = link_layer.on_wire(parameters.largest);
        Some(Self {
            parameters,
            queue: WireFifo::new(config.limit, link_layer)?,
            control: Control::default(),
            random: Stream::new(parameters.seed, "pie"),
            spared: largest + largest,
            dropped: 0,
            marked: 0,
            tally: Tally::default(),
        })
    }
}

impl<P: Packet> Discipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        self.control.start(now, &self.parameters);
        self.control.advance(now, &self.parameters);
        if let Some(full) = self.queue.refuses(&packet) {
            let reason = full.counted(&mut self.tally);
            drops.dropped(now, packet, reason);
            return;
        }
        if self.control.selects(&self.parameters, self.queue.wire, self.spared, &mut self.random) {
            if self.parameters.ecn && self.control.marks_below(percent(10)) && packet.mark_ce() {
                self.marked += 1;
            } else {
                self.dropped += 1;
                drops.dropped(now, packet, DropReason::Aqm);
                return;
            }
        }
        self.queue.put(packet);
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        self.control.advance(now, &self.parameters);
        let packet = self.queue.pop()?;
        self.control.departed(now, packet.meta().arrived, self.queue.is_empty());
        self.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show("pie", visit);
        Counter::all("pie", [("dropped_aqm", self.dropped), ("marked", self.marked)], visit);
    }
}

impl Mechanism for Config {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(self.control.check()?)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let pie = Pie::new(&Self { control: self.control.seeded(site), ..*self }, &site.environment.link_layer);
        Ok(Box::new(pie.ok_or_else(|| site.refuse(Problem::NoCells))?))
    }
}

#[cfg(test)]
mod tests;
