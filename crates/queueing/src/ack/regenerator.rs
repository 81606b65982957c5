//! ACK regenerator (AR): restores, behind the line, the ACKs that were suppressed in front of it.
//!
//! Published: Kalyanaraman, Shekhar, Kidambi 1999, at the end of the reverse link, with a
//! regeneration factor R ("R ACKs generated per suppressed ACK"); ACK reconstruction is RFC 3449,
//! section 5.2.2. Both leave open how the numbers become known. Here it is one of three ways
//! ([`Know`]): a list in the ACK, a signal ahead of it (both from a
//! [`SmartAckDropper`](super::SmartAckDropper) that reports), or interpolation between two ACKs.
//!
//! Properties in all three cases:
//!
//! - Every number sent was sent or implied by the receiver: each lies before that of the ACK it is
//!   made from. With R = 1 and a list or signal, the suppressed numbers are restored, each once,
//!   and no other.
//! - With R > 1 further numbers are spread evenly between a restored one and the next, never one
//!   twice. A *duplicate* is restored once whatever R is, since fast retransmit counts them.
//! - Window and timestamps are those of the newest ACK. A closing window, however, closes in
//!   proportion to the number, whatever its scale; otherwise the right edge would move back (RFC
//!   9293, section 3.8.6). An ACK with SACK blocks is never multiplied.
//! - Order within a flow is kept, also where ACKs are spread over time: arriving packets wait
//!   behind held ones of their flow.
//! - Packets that it cannot parse pass unchanged. A lost list or signal costs only its numbers.
//!
//! Interpolation assumes that the receiver acknowledges every [`Know::Interpolate::stride`] bytes.
//! It cannot distinguish a filled hole from suppressed ACKs, so it ignores the first advance after
//! a duplicate or SACK blocks.
//!
//! R > 1 makes a sender that counts ACKs grow faster than one ACK a segment would, up to R times:
//! so published, and the purpose of R. A sender that counts bytes (RFC 3465) is not affected.
//!
//! Cost: one table look-up an ACK, O(1) a packet made; spread over time O(log n) with n packets
//! held. Memory: bounded, see `recent_flows.rs`; held are at most [`AckRegenerator::MOST_HELD`] packets
//! and those that must wait behind them.

mod delayed;
mod factor;
mod flow;
mod numbers;
mod stats;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{AckFields, AckList, Packet, Protocol, PureAck, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, Duration, Instant, PacketCount};

use self::delayed::{DelayedPackets, DepartureTimes};
pub use self::factor::Factor;
use self::flow::Flow;
use self::numbers::{NumberCollector, window_at};
use self::stats::Stats;
use super::recent_flows::RecentFlows;
use super::{AckKind, Newest};
use crate::catalogue::Above;
use crate::classify::{Condition, Match, Matcher};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Node};

/// Source of the suppressed numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Know {
    /// The list in an ACK.
    List,
    /// The signal directly ahead of an ACK.
    Signal,
    /// The distance between two ACKs.
    Interpolate {
        /// Bytes between two ACKs of the receiver: segments for each ACK times bytes of a segment.
        /// At least 1.
        stride: u32,
    },
}

/// Departure of restored ACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// At once, directly ahead of the ACK that they are made from.
    Burst,
    /// Spread evenly over the time since the flow's previous ACK.
    Paced {
        /// The longest time for which a packet is held.
        hold: Duration,
    },
}

/// Parameters of a regenerator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Source of the suppressed numbers.
    pub know: Know,
    /// ACKs for each suppressed one.
    pub factor: Factor,
    /// Departure of restored ACKs.
    pub release: Release,
    /// Time of silence after which a flow is forgotten.
    pub idle: Duration,
    /// Packets that pass unchanged.
    pub exempt: Match,
}

impl Config {
    /// Checks the parameters.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.know == (Know::Interpolate { stride: 0 }) {
            return Err(Problem::ZeroStride);
        }
        let hold = match self.release {
            Release::Burst => Duration::ZERO,
            Release::Paced { hold } => hold,
        };
        if self.idle > hold { Ok(()) } else { Err(Problem::ForgetsTooSoon { idle: self.idle, hold }) }
    }
}

impl Default for Config {
    /// Exactly the numbers of a list, at once; flows are forgotten after a minute.
    fn default() -> Self {
        Self {
            know: Know::List,
            factor: Factor::ONE,
            release: Release::Burst,
            idle: Duration::from_s(60),
            exempt: Match::Never,
        }
    }
}

/// An ACK regenerator in front of a queue.
#[derive(Debug)]
pub struct AckRegenerator<P, D = Node<P>> {
    queue: D,
    know: Know,
    factor: Factor,
    release: Release,
    exempt: Condition,
    flows: RecentFlows<Flow>,
    held: DelayedPackets<P>,
    /// The numbers to put ahead of an ACK, oldest first; a field to reuse its memory.
    numbers: Vec<SeqNumber>,
    stats: Stats,
}

/// Information from an arriving packet.
#[derive(Default)]
struct Reading {
    /// Arrival time of the flow's previous acknowledgement, and the newest so far.
    before: Option<(Instant, Newest)>,
    /// The fields of the ACK without the list for a regenerator.
    without_list: Option<AckFields>,
}

impl<P: Packet, D: Discipline<P>> AckRegenerator<P, D> {
    /// ACKs are restored only while at most this many packets are held.
    pub const MOST_HELD: usize = 16_384;
    /// Maximum number of packets made from one ACK.
    const MOST_AT_ONCE: usize = 4096;

    /// A regenerator in front of `queue`.
    #[must_use]
    pub fn new(queue: D, config: &Config, environment: &Environment) -> Self {
        Self {
            queue,
            know: config.know,
            factor: config.factor,
            release: config.release,
            exempt: Condition::new(&config.exempt, environment),
            flows: RecentFlows::new(config.idle),
            held: DelayedPackets::default(),
            numbers: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Reads an arriving packet, and collects the numbers to put ahead of it.
    fn read(&mut self, now: Instant, packet: &P) -> Reading {
        self.numbers.clear();
        let mut reading = Reading::default();
        let ack = self.stats.passed.may_read(now, packet, &mut self.exempt);
        let Some(segment) = packet.segment().filter(|segment| segment.flags.contains(TcpFlags::ACK)) else {
            return reading;
        };
        let flow = self.flows.get_or_create(now, segment.flow, || Flow::of(Newest::of(segment)));
        let before = flow.last_ack_at.replace(now);
        let kind = if before.is_some() { flow.newest.kind_of(segment) } else { AckKind::Advance };
        if let Some(ack) = ack {
            self.stats.seen += 1;
            let list = match self.know {
                Know::List => ack.list(),
                Know::Signal => self.stats.matched(flow.signal.take(), ack.ack),
                Know::Interpolate { .. } => AckList::EMPTY,
            };
            let mut collector =
                NumberCollector { numbers: &mut self.numbers, stats: &mut self.stats, factor: self.factor };
            if kind == AckKind::Old {
                // It was reordered together with the ACKs that it replaces; its numbers are not
                // multiplied.
                collector.numbers.extend(list.numbers(ack.ack));
                collector.stats.restored += u64::from(list.count());
                collector.stats.passed.old += 1;
            } else if ack.options().sack_count() > 0 {
                collector.stats.passed_sack += 1;
            } else if let Know::Interpolate { stride } = self.know {
                collector.interpolate(flow, ack, before, stride);
            } else if !list.is_empty() {
                collector.restore(flow, &list, ack.ack, before.is_some());
            }
            if self.know == Know::List && ack.options().has_list() {
                reading.without_list = Some(AckFields { options: ack.options().without_list(), ..ack.fields() });
            }
        }
        match kind {
            AckKind::Advance => flow.may_be_hole = segment.options().sack_count() > 0,
            AckKind::Duplicate => flow.may_be_hole |= segment.payload_len() == 0,
            AckKind::WindowUpdate | AckKind::Old => {}
        }
        reading.before = before.map(|before| (before, flow.newest));
        flow.newest.note(segment);
        reading
    }

    /// Removes the list from an ACK.
    fn strip(&mut self, packet: &mut P, without_list: &AckFields) {
        let came = packet.meta().ip_len;
        packet.rewrite_ack(without_list);
        self.stats.lists += 1;
        self.stats.shrunk_bytes += u64::from(came - packet.meta().ip_len);
    }

    /// Consumes a signal: true. Any other packet passes: false.
    fn consume_signal(&mut self, now: Instant, packet: &P) -> bool {
        let meta = packet.meta();
        if meta.protocol != Protocol::AckSignal || self.know != Know::Signal || self.exempt.matches(now, packet) {
            return false;
        }
        let flow = self
            .flows
            .get_or_create(now, meta.flow, || Flow::of(Newest { ack: meta.ack, window: meta.window, duplicates: 0 }));
        self.stats.signals += 1;
        self.stats.signals_unmatched += u64::from(flow.signal.is_some());
        flow.signal = Some((meta.ack, meta.list()));
        true
    }

    /// Releases held packets whose departure time has come.
    fn release(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        while let Some(packet) = self.held.take(now) {
            self.queue.enqueue(now, packet, drops);
        }
    }

    fn forward(&mut self, now: Instant, at: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if at <= now {
            self.queue.enqueue(now, packet, drops);
        } else {
            self.stats.held += 1;
            self.held.put(at, packet);
        }
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for AckRegenerator<P, D> {
    fn enqueue(&mut self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
        self.release(now, drops);
        if self.consume_signal(now, &packet) {
            drops.dropped(now, packet, DropReason::AckSignal);
            return;
        }
        let Reading { before, without_list } = self.read(now, &packet);
        if let Some(without_list) = without_list {
            self.strip(&mut packet, &without_list);
        }
        if self.held.len() + self.numbers.len() > Self::MOST_HELD || self.numbers.len() > Self::MOST_AT_ONCE {
            self.stats.no_room += 1;
            self.numbers.clear();
        }
        let flow = packet.meta().flow;
        let times = match (self.release, before) {
            (Release::Paced { hold }, Some((before, _))) if !self.numbers.is_empty() => DepartureTimes::new(
                now,
                self.held.last_departure(flow),
                now.since(before),
                hold,
                self.numbers.len() + 1,
            ),
            _ => DepartureTimes::at(self.held.last_departure(flow).map_or(now, |until| until.max(now))),
        };
        let numbers = std::mem::take(&mut self.numbers);
        // Numbers are collected for pure ACKs only.
        if let Some(carrier) = packet.meta().pure_ack().map(PureAck::fields) {
            for (index, number) in numbers.iter().enumerate() {
                let mut restored = packet.duplicate();
                let window = before.map_or(carrier.window, |(_, newest)| window_at(*number, newest, &carrier));
                restored.rewrite_ack(&AckFields { ack: *number, window, ..carrier });
                drops.created(now, &restored);
                self.stats.created += 1;
                self.forward(now, times.time(index), restored, drops);
            }
        }
        self.forward(now, times.time(numbers.len()), packet, drops);
        self.numbers = numbers;
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.release(now, drops);
        self.queue.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.release(now, drops);
        self.queue.dequeue_urgent(now, drops)
    }

    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        self.queue.set_rate(now, rate)
    }

    fn level_ready(&self, now: Instant) -> Option<usize> {
        let is_due = self.held.next().is_some_and(|due| due <= now);
        self.queue.level_ready(now).or_else(|| is_due.then_some(0))
    }

    fn level_sent(&self) -> usize {
        self.queue.level_sent()
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        [self.queue.next_ready(now), self.held.next()].into_iter().flatten().min()
    }

    fn backlog(&self) -> Backlog {
        let below = self.queue.backlog();
        Backlog {
            packets: below.packets + PacketCount::new(self.held.len() as u64),
            bytes: below.bytes + self.held.bytes,
        }
    }

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.queue.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Self::check(self)?;
        Ok(self.exempt.check()?)
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(AckRegenerator::new(queue, self, environment)))
    }
}

#[cfg(test)]
mod tests;
