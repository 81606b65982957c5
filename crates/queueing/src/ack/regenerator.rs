//! ACK regenerator (AR): puts back, behind the line, the ACKs that were suppressed before it.
//!
//! Published: Kalyanaraman, Shekhar, Kidambi 1999, at the end of the reverse link, with a regeneration factor R ("R ACKs
//! generated per suppressed ACK"); ACK reconstruction is RFC 3449, section 5.2.2. How the numbers become known is left
//! open there. Here it is one of three ([`Know`]): a list in the ACK, a signal ahead of it (both from a
//! [`SmartAckDropper`](super::SmartAckDropper) that reports), or interpolation between two ACKs that came.
//!
//! What holds whatever is known:
//!
//! - No number goes out that the receiver did not send or imply: each lies before that of the ACK it comes from. With
//!   R = 1 and a list or signal, those that were suppressed come back, each once, and no other.
//! - With R > 1 further numbers stand evenly between a restored one and the next, never one twice. A *duplicate* comes back
//!   once whatever R is, since fast retransmit counts them.
//! - Window and timestamps are those of the newest ACK. Only a window that closes does so in proportion to the number, whatever its
//!   scale: else the right edge would go back (RFC 9293, section 3.8.6). An ACK with SACK blocks is never multiplied.
//! - Order within a flow is kept, also where ACKs are spread over time: whatever comes waits behind what is held.
//! - What is not understood passes as it came. A list or signal that was lost costs only its numbers.
//!
//! Interpolation takes it that the receiver acknowledges every [`Know::Interpolate::stride`] bytes. It cannot tell a hole
//! that was filled from ACKs that were suppressed, so it leaves alone the first advance after a duplicate or SACK blocks.
//!
//! R > 1 makes a sender that counts ACKs grow faster than one ACK a segment would, up to R times: so published, and the
//! reason to have R. A sender that counts bytes (RFC 3465) is not moved.
//!
//! Cost: one table look-up an ACK, O(1) a packet made; spread over time O(log n) with n packets held. Memory: bounded, see
//! `recent.rs`; of what is held no more than [`AckRegenerator::MOST_HELD`] packets and those that must wait behind them.

mod held;
mod numbers;
mod stats;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{AckFields, AckList, Packet, Protocol, PureAck, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant, PacketCount};

use self::held::{Held, Span};
use self::numbers::{Made, window_at};
use self::stats::Stats;
use super::recent::Recent;
use super::{Newest, Standing};
use crate::catalogue::Above;
use crate::classify::{Condition, Match, Matcher};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Node};

/// How a regenerator knows what was suppressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Know {
    /// From the list in an ACK.
    List,
    /// From the signal right ahead of an ACK.
    Signal,
    /// From the distance between two ACKs.
    Interpolate {
        /// Bytes between two ACKs of the receiver: segments for each ACK times bytes of a segment. At least 1.
        stride: u32,
    },
}

/// ACKs for each one that was suppressed: above 0, at most [`Factor::MOST`]. The share of an ACK that is left over counts for
/// the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Factor {
    numerator: u32,
    denominator: u32,
}

impl Factor {
    /// One for one.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };
    /// The highest factor.
    pub const MOST: u32 = 16;

    /// `numerator / denominator`; `None` unless it is above 0 and at most [`Factor::MOST`].
    #[must_use]
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if numerator == 0 || numerator as u64 > denominator as u64 * Self::MOST as u64 {
            None
        } else {
            Some(Self { numerator, denominator })
        }
    }
}

/// When restored ACKs leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// At once, right ahead of the ACK that they come from.
    Burst,
    /// Spread evenly over the time since the flow's previous ACK came.
    Paced {
        /// The longest that a packet is held.
        hold: Duration,
    },
}

/// How a regenerator works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// How it knows what was suppressed.
    pub know: Know,
    /// ACKs for each one that was suppressed.
    pub factor: Factor,
    /// When they leave.
    pub release: Release,
    /// What is remembered of a flow is forgotten after so long a silence.
    pub idle: Duration,
    /// What passes untouched.
    pub exempt: Match,
}

impl Config {
    /// What can be wrong with it.
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
    /// Exactly the numbers that a list tells, at once; forgotten after a minute.
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
    flows: Recent<Flow>,
    held: Held<P>,
    /// The numbers to put ahead of an ACK, oldest first; kept for its memory.
    numbers: Vec<SeqNumber>,
    stats: Stats,
}

/// What is remembered of a flow.
#[derive(Clone, Debug)]
struct Flow {
    newest: Newest,
    /// When an acknowledgement came last. `None`: none did, only a signal.
    came: Option<Instant>,
    /// A duplicate or SACK blocks came: the next advance may be a hole that was filled.
    hole: bool,
    /// What is left over of the factor, in parts of its denominator.
    left_over: u32,
    /// The signal that came, and the number of the ACK that it is about.
    signal: Option<(SeqNumber, AckList)>,
}

impl Flow {
    const fn of(newest: Newest) -> Self {
        Self { newest, came: None, hole: false, left_over: 0, signal: None }
    }
}

/// What a packet that came says.
#[derive(Default)]
struct Heard {
    /// When the flow's previous acknowledgement came, and the newest so far.
    before: Option<(Instant, Newest)>,
    /// What the ACK says without the list that it carries for a regenerator.
    without_list: Option<AckFields>,
}

impl<P: Packet, D: Discipline<P>> AckRegenerator<P, D> {
    /// ACKs are restored only while no more packets than this are held.
    pub const MOST_HELD: usize = 16_384;
    /// One ACK is made into no more than this.
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
            flows: Recent::new(config.idle),
            held: Held::default(),
            numbers: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Finds the numbers to put ahead of a packet that came.
    fn read(&mut self, now: Instant, packet: &P) -> Heard {
        self.numbers.clear();
        let mut heard = Heard::default();
        let ack = self.stats.passed.may_read(now, packet, &mut self.exempt);
        let Some(segment) = packet.segment().filter(|segment| segment.flags.contains(TcpFlags::ACK)) else {
            return heard;
        };
        let flow = self.flows.hear(now, segment.flow, || Flow::of(Newest::of(segment)));
        let before = flow.came.replace(now);
        let standing = if before.is_some() { flow.newest.standing_of(segment) } else { Standing::Advance };
        if let Some(ack) = ack {
            self.stats.seen += 1;
            let list = match self.know {
                Know::List => ack.list(),
                Know::Signal => self.stats.matched(flow.signal.take(), ack.ack),
                Know::Interpolate { .. } => AckList::EMPTY,
            };
            let mut made = Made { numbers: &mut self.numbers, stats: &mut self.stats, factor: self.factor };
            if standing == Standing::Old {
                // It was overtaken, and what it stands for with it; nothing is to be spread there.
                made.numbers.extend(list.numbers(ack.ack));
                made.stats.restored += u64::from(list.count());
                made.stats.passed.old += 1;
            } else if ack.options().sack_count() > 0 {
                made.stats.passed_sack += 1;
            } else if let Know::Interpolate { stride } = self.know {
                made.interpolate(flow, ack, before, stride);
            } else if !list.is_empty() {
                made.restore(flow, &list, ack.ack, before.is_some());
            }
            if self.know == Know::List && ack.options().has_list() {
                heard.without_list = Some(AckFields { options: ack.options().without_list(), ..ack.fields() });
            }
        }
        match standing {
            Standing::Advance => flow.hole = segment.options().sack_count() > 0,
            Standing::Duplicate => flow.hole |= segment.payload_len() == 0,
            Standing::WindowUpdate | Standing::Old => {}
        }
        heard.before = before.map(|before| (before, flow.newest));
        flow.newest.note(segment);
        heard
    }

    /// Takes out of an ACK the list that it carried.
    fn strip(&mut self, packet: &mut P, without_list: &AckFields) {
        let came = packet.meta().ip_len;
        packet.rewrite_ack(without_list);
        self.stats.lists += 1;
        self.stats.shrunk_bytes += u64::from(came - packet.meta().ip_len);
    }

    /// Takes a signal in, or lets it pass: false.
    fn take_in(&mut self, now: Instant, packet: &P) -> bool {
        let meta = packet.meta();
        if meta.protocol != Protocol::AckSignal || self.know != Know::Signal || self.exempt.matches(now, packet) {
            return false;
        }
        let flow = self.flows.hear(now, meta.flow, || Flow::of(Newest { ack: meta.ack, window: meta.window }));
        self.stats.signals += 1;
        self.stats.signals_unmatched += u64::from(flow.signal.is_some());
        flow.signal = Some((meta.ack, meta.list()));
        true
    }

    /// Lets the packets go whose time has come.
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
        if self.take_in(now, &packet) {
            drops.dropped(now, packet, DropReason::AckSignal);
            return;
        }
        let Heard { before, without_list } = self.read(now, &packet);
        if let Some(without_list) = without_list {
            self.strip(&mut packet, &without_list);
        }
        if self.held.len() + self.numbers.len() > Self::MOST_HELD || self.numbers.len() > Self::MOST_AT_ONCE {
            self.stats.no_room += 1;
            self.numbers.clear();
        }
        let flow = packet.meta().flow;
        let span = match (self.release, before) {
            (Release::Paced { hold }, Some((before, _))) if !self.numbers.is_empty() => {
                Span::new(now, self.held.until(flow), now.since(before), hold, self.numbers.len() + 1)
            }
            _ => Span::at(self.held.until(flow).map_or(now, |until| until.max(now))),
        };
        let numbers = std::mem::take(&mut self.numbers);
        // Numbers are found in pure ACKs alone.
        if let Some(carrier) = packet.meta().pure_ack().map(PureAck::fields) {
            for (index, number) in numbers.iter().enumerate() {
                let mut restored = packet.duplicate();
                let window = before.map_or(carrier.window, |(_, newest)| window_at(*number, newest, &carrier));
                restored.rewrite_ack(&AckFields { ack: *number, window, ..carrier });
                drops.created(now, &restored);
                self.stats.created += 1;
                self.forward(now, span.time(index), restored, drops);
            }
        }
        self.forward(now, span.time(numbers.len()), packet, drops);
        self.numbers = numbers;
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.release(now, drops);
        self.queue.dequeue(now, drops)
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
