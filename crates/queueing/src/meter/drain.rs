//! Drain: a shaper behind a queue that belongs to someone else, which sees to it that this queue stays empty.
//!
//! Downstream the queue of an access line stands at its far end, in the DSLAM. A shaper at the near end moves it here by letting less
//! through than the line carries: senders that are clocked by acknowledgements then send no faster than that. But what piled up
//! over there before (in slow start, say) goes only as fast as the rates differ: 64 kB behind a shaper at 97 % of 2 Mbit/s
//! last for 9 s. So this shaper has two rates. It keeps a small margin as long as the line is idle now and then; when the line
//! has not been idle for too long, a queue stands at the far end, and it lets much less through until the line is idle again.
//!
//! While it drains, the far queue empties at what the line carries beyond what leaves here, and fills the queue below this shaper:
//! nothing of the line is lost until the far queue is empty, and then what is lost is the difference of the rates for as long as
//! senders take to hear of it, a round-trip time. That is why a deep drain costs no more than a shallow one, and is over sooner.
//!
//! Published: indirect control of the downstream by a rate below that of the line is chapter 8 of Brouer 2005, and the ingress
//! mode of tc-cake(8); both keep one margin. That idle time tells of the queue is CoDel's criterion (RFC 8289, section 3.2: a good
//! queue is empty now and then). tc-cake(8), `autorate-ingress`, estimates the rate of the line from arrivals; here that is known.
//! The two rates and the bucket of idle time are this project's own.
//!
//! Rules:
//!
//! - A packet that arrives after a gap longer than it takes on the wire found the line idle for the difference. Half of the
//!   margin must be idle time: a bucket is filled by idle time and emptied by time passing, at half the margin.
//! - A bucket that is empty (after `patience` without idle time) begins a drain, a full one ends it.
//! - A drain that does not end within `longest` is given up: traffic that nothing slows down would pay for nothing. The next begins
//!   after twice the patience, then four times, at most 64 times; one that ends as it should makes it as short as at first.
//! - The shaper is a transmitter of its rate: after a packet it waits for what the packet takes, and commits none ahead. Before a modem
//!   that keeps its queue empty: a token bucket with a burst of one packet may send two.
//! - What is urgent does not wait here, but is charged, up to two of the largest packets ahead of the rate.
//!
//! Limits: the rate of the line must be known. Where the true rate is lower by more than half of the margin, packets that come late for it
//! pass for idle time, and nothing is drained: what is left is a shaper with too small a margin. Where it is higher, all is well and the
//! difference is lost. What does not slow down cannot be controlled from here. Windows that grow refill the far queue: n flows
//! that grow by a packet each round-trip time bring n packets in that time beyond what left, which is more than a small margin
//! carries unless the round-trip time is long. Clamped windows ([`crate::WindowClamp`]) do not grow.
//! Cost: a division a packet on arrival, one on departure, beside the queue's own.

mod idleness;

use std::collections::VecDeque;

use lastmile_linklayer::{LinkLayer, WireMeter};
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Ratio, Serialiser, WireBytes};

use self::idleness::Idleness;
use crate::catalogue::{Above, Built};
use crate::classify::MatchError;
use crate::discipline::Counter;
use crate::spec::{Problem, Site, Spec, shaper_over};
use crate::{Backlog, Condition, Discipline, DropReason, DropSink, Environment, Match, Matcher as _, Node};

/// A shaper behind a line, or before one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Rate of the line, on the wire.
    pub line: BitRate,
    /// What of it is let through as long as nothing stands at the far end.
    pub share: Ratio,
    /// How the queue at the far end is drained. `None`: not, since the shaper stands before the line, or by the margin alone.
    pub drain: Option<Law>,
    /// What does not wait for the shaper, and is charged afterwards: for packets behind the line, where they have waited enough.
    pub urgent: Match,
    /// The largest IP packet to expect.
    pub largest: ByteCount,
    /// How late a caller may ask without costing rate, as [`super::tbf::Config::catch_up`].
    pub catch_up: Duration,
}

/// How the queue at the far end of a line is drained. The share of the shaper must then be below the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Law {
    /// What of the line's rate is let through during a drain: below the share.
    pub depth: Ratio,
    /// How long the line may go without idle time before a drain begins.
    pub patience: Duration,
    /// How long a drain lasts at most.
    pub longest: Duration,
}

/// Shares or times with which nothing would pass, or nothing would drain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DrainError {
    /// Without a margin the line need not be idle, and nothing could be told from that.
    #[error("a share of {0}; it must be below 100 %, so that the line is idle when nothing stands at its far end")]
    NoMargin(Ratio),
    /// A drain that lets as much through as before.
    #[error("a drain to {depth} that is not below the share of {share}")]
    NoDrain {
        /// The depth asked for.
        depth: Ratio,
        /// The share asked for.
        share: Ratio,
    },
    /// A share of the rate of which nothing is left.
    #[error("{share} of {line} is nothing")]
    Nothing {
        /// The share asked for.
        share: Ratio,
        /// The rate of the line.
        line: BitRate,
    },
    /// A condition that cannot be.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// The bucket would hold nothing, or a drain would be over at once.
    #[error("a time of zero: patience and longest must be above zero")]
    ZeroTime,
}

impl Config {
    /// Checks shares and times.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self) -> Result<(), DrainError> {
        self.urgent.check()?;
        self.rate(self.share)?;
        let Some(law) = self.drain else { return Ok(()) };
        if self.share >= Ratio::ONE {
            return Err(DrainError::NoMargin(self.share));
        }
        if law.depth >= self.share {
            return Err(DrainError::NoDrain { depth: law.depth, share: self.share });
        }
        if self.wanted().of(law.patience.as_ps()) == 0 || law.longest.is_zero() {
            return Err(DrainError::ZeroTime);
        }
        self.rate(law.depth).map(|_| ())
    }

    fn rate(&self, share: Ratio) -> Result<BitRate, DrainError> {
        share.of_rate(self.line).ok_or(DrainError::Nothing { share, line: self.line })
    }

    /// The share of idle time without which a queue stands at the far end: half of the margin.
    fn wanted(&self) -> Ratio {
        let margin = Ratio::ONE.as_parts_per_billion() - self.share.as_parts_per_billion();
        Ratio::from_parts_per_billion(margin / 2).unwrap_or(Ratio::ZERO)
    }
}

/// A shaper that drains the queue in front of the line before it.
#[derive(Debug)]
pub struct Drain<P, D = Node<P>> {
    queue: D,
    steady: Serialiser,
    far: Option<Far>,
    meter: WireMeter,
    catch_up: Duration,
    /// When what left last has passed.
    free: Instant,
    /// When the next packet may leave.
    due: Option<Instant>,
    express: Express<P>,
    stats: Stats,
}

/// What does not wait for the shaper.
#[derive(Debug)]
struct Express<P> {
    urgent: Condition,
    packets: VecDeque<P>,
    bytes: u64,
    /// How far the shaper may run ahead of its rate for them: two of the largest packets.
    ahead: Duration,
    /// When the first of them may leave.
    due: Option<Instant>,
    passed: u64,
    dropped: u64,
}

impl<P> Express<P> {
    /// So many may wait when there is more of them than the rate.
    const LIMIT: usize = 100;
}

/// What is known of the queue at the far end, and done about it.
#[derive(Debug)]
struct Far {
    idleness: Idleness,
    state: State,
    /// What is let through during a drain.
    rate: Serialiser,
    longest: Duration,
    stats: Drained,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The margin alone; so many drains in a row were given up.
    Steady { in_vain: u32 },
    /// Since when, and as before; bytes that came since beyond those that left.
    Draining { since: Instant, in_vain: u32, gained: i64 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Drained {
    drains: u64,
    given_up: u64,
    time: Duration,
    wire_bytes: u64,
    largest_wire_bytes: u64,
}

/// The patience doubles no more often.
const MOST_IN_VAIN: u32 = 6;

impl Far {
    /// Begins and ends drains.
    fn judge(&mut self, now: Instant) {
        match self.state {
            State::Steady { in_vain } if self.idleness.is_empty() => {
                self.stats.drains += 1;
                self.state = State::Draining { since: now, in_vain, gained: 0 };
            }
            State::Draining { since, gained, .. } if self.idleness.is_full() => {
                self.end(now.since(since), gained);
                self.idleness.refill(1);
                self.state = State::Steady { in_vain: 0 };
            }
            State::Draining { since, in_vain, gained } if now.since(since) >= self.longest => {
                self.end(now.since(since), gained);
                self.stats.given_up += 1;
                let in_vain = (in_vain + 1).min(MOST_IN_VAIN);
                self.idleness.refill(1 << in_vain);
                self.state = State::Steady { in_vain };
            }
            State::Steady { .. } | State::Draining { .. } => {}
        }
    }

    fn end(&mut self, lasted: Duration, gained: i64) {
        let gained = u64::try_from(gained).unwrap_or(0);
        self.stats.time += lasted;
        self.stats.wire_bytes += gained;
        self.stats.largest_wire_bytes = self.stats.largest_wire_bytes.max(gained);
    }

    /// So much came during a drain; what left counts against it.
    fn gain(&mut self, wire: i64) {
        if let State::Draining { gained, .. } = &mut self.state {
            *gained = gained.saturating_add(wire);
        }
    }

    const fn is_draining(&self) -> bool {
        matches!(self.state, State::Draining { .. })
    }
}

fn signed(wire: WireBytes) -> i64 {
    i64::try_from(wire.as_u64()).unwrap_or(i64::MAX)
}

impl<P: Packet, D: Discipline<P>> Drain<P, D> {
    /// A shaper over `queue`, with nothing known against the line.
    ///
    /// # Errors
    /// Shares or times with which nothing would pass, or nothing would drain.
    pub fn new(config: &Config, environment: &Environment, queue: D) -> Result<Self, DrainError> {
        config.check()?;
        let link_layer = &environment.link_layer;
        let far = match config.drain {
            Some(law) => Some(Far {
                idleness: Idleness::new(config.line, *link_layer, config.wanted(), law.patience, config.largest),
                state: State::Steady { in_vain: 0 },
                rate: Serialiser::new(config.rate(law.depth)?),
                longest: law.longest,
                stats: Drained::default(),
            }),
            None => None,
        };
        Ok(Self {
            queue,
            steady: Serialiser::new(config.rate(config.share)?),
            far,
            express: Express {
                urgent: Condition::new(&config.urgent, environment),
                packets: VecDeque::new(),
                bytes: 0,
                ahead: config.rate(config.share)?.time_for(link_layer.on_wire(config.largest)).saturating_mul(2),
                due: None,
                passed: 0,
                dropped: 0,
            },
            meter: WireMeter::new(*link_layer),
            catch_up: config.catch_up,
            free: Instant::ZERO,
            due: None,
            stats: Stats::default(),
        })
    }

    /// True while a drain goes on.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.far.as_ref().is_some_and(Far::is_draining)
    }

    /// Says when the next packet may leave: what is ready by now, as if it had been ready at `since`.
    fn reschedule(&mut self, now: Instant, since: Instant) {
        let ready = self.queue.next_ready(now);
        self.due = ready.map(|ready| self.free.max(if ready <= now { since } else { ready }));
        let allowed = Instant::from_ps(self.free.as_ps().saturating_sub(self.express.ahead.as_ps()));
        self.express.due = self.express.packets.front().map(|_| allowed.max(since));
    }

    /// What may leave by now, the urgent first, and of the queue below what `below` gives.
    fn take(
        &mut self,
        now: Instant,
        drops: &mut dyn DropSink<P>,
        below: impl FnOnce(&mut D, Instant, &mut dyn DropSink<P>) -> Option<P>,
    ) -> Option<P> {
        let due = self.next_ready(now).filter(|due| *due <= now)?;
        if let Some(far) = &mut self.far {
            far.idleness.silence(now);
            far.judge(now);
        }
        let at = due.max(Instant::from_ps(now.as_ps().saturating_sub(self.catch_up.as_ps())));
        let packet = if self.express.due.is_some_and(|due| due <= now) {
            let packet = self.express.packets.pop_front()?;
            self.express.bytes -= u64::from(packet.meta().ip_len);
            self.express.passed += 1;
            Some(packet)
        } else {
            below(&mut self.queue, now, drops)
        };
        if let Some(packet) = &packet {
            self.charge(at, packet);
        }
        self.reschedule(now, at);
        packet
    }

    /// Charges what leaves, as of `at`.
    fn charge(&mut self, at: Instant, packet: &P) {
        let bytes = packet.meta().ip_bytes();
        let wire = self.meter.on_wire(bytes);
        let rate = match &mut self.far {
            Some(far) if far.is_draining() => {
                far.gain(-signed(wire));
                &mut far.rate
            }
            _ => &mut self.steady,
        };
        if at > self.free {
            rate.restart();
        }
        self.free = self.free.max(at).saturating_add(rate.advance(wire));
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += bytes.as_u64();
        self.stats.sent_wire_bytes += wire.as_u64();
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Drain<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if let Some(far) = &mut self.far {
            // The time of arrival, which for a live caller lies before that of waking.
            let wire = far.idleness.arrival(packet.meta().arrived.min(now), packet.meta().ip_bytes());
            far.gain(signed(wire));
            far.judge(now);
        }
        let due = self.next_ready(now).map_or(now, |due| due.min(now));
        if !self.express.urgent.matches(now, &packet) {
            self.queue.enqueue(now, packet, drops);
        } else if self.express.packets.len() < Express::<P>::LIMIT {
            self.express.bytes += u64::from(packet.meta().ip_len);
            self.express.packets.push_back(packet);
        } else {
            self.express.dropped += 1;
            drops.dropped(now, packet, DropReason::Tail);
        }
        self.reschedule(now, due);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.take(now, drops, D::dequeue)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.take(now, drops, D::dequeue_urgent)
    }

    fn next_ready(&self, _now: Instant) -> Option<Instant> {
        match (self.express.due, self.due) {
            (Some(express), Some(due)) => Some(express.min(due)),
            (express, due) => express.or(due),
        }
    }

    fn backlog(&self) -> Backlog {
        let below = self.queue.backlog();
        Backlog {
            packets: below.packets + PacketCount::new(self.express.packets.len() as u64),
            bytes: below.bytes + ByteCount::new(self.express.bytes),
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let stats = &self.stats;
        let counts = [
            ("sent_packets", stats.sent_packets),
            ("sent_bytes", stats.sent_bytes),
            ("sent_wire_bytes", stats.sent_wire_bytes),
            ("urgent", self.express.passed),
            ("dropped_tail", self.express.dropped),
        ];
        let drained = self.far.as_ref().map(|far| {
            [
                ("drains", far.stats.drains),
                ("drains_given_up", far.stats.given_up),
                ("drained_ms", far.stats.time.as_ms()),
                ("drained_wire_bytes", far.stats.wire_bytes),
                ("largest_drain_wire_bytes", far.stats.largest_wire_bytes),
            ]
        });
        for (name, value) in counts.into_iter().chain(drained.into_iter().flatten()) {
            visit(Counter { path: "", kind: "drain", name, value });
        }
        Counter::below("queue", &self.queue, visit);
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(Self::check(self)?)
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(Drain::new(self, environment, queue)?))
    }

    fn build<P: Packet + Send + 'static>(&self, queue: &Spec, site: &mut Site<'_>) -> Built<P> {
        shaper_over(self, queue, site)
    }
}

#[cfg(test)]
mod tests;
