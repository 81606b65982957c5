//! Drain: a shaper behind a queue in another device, which keeps that queue empty.
//!
//! The downstream queue of an access line is at its far end, in the DSLAM. A shaper at the near end
//! moves it here: it passes less than the line carries, and senders clocked by acknowledgements
//! then send no faster. But a backlog that arose there earlier (in slow start, say) drains only at
//! the difference of the rates: 64 kB behind a shaper at 97 % of 2 Mbit/s last for 9 s. This shaper
//! therefore has two rates. It keeps a small margin as long as the line is idle now and then. When
//! the line has not been idle for too long, the far end has a standing queue, and the shaper passes
//! much less until the line is idle again.
//!
//! During a drain the far queue shrinks at the difference of the rates, and the queue below this
//! shaper grows accordingly. The line stays fully used until the far queue is empty; then the
//! difference of the rates is lost for as long as senders take to notice, a round-trip time. A deep
//! drain therefore costs no more than a shallow one, and is over sooner.
//!
//! Published: indirect control of the downstream by a rate below that of the line is chapter 8 of
//! Brouer 2005, and the ingress mode of tc-cake(8); both keep one margin. Idle time as a sign of an
//! empty queue is CoDel's criterion (RFC 8289, section 3.2: a good queue is empty now and then).
//! tc-cake(8), `autorate-ingress`, estimates the rate of the line from arrivals; here that is
//! known. The two rates and the bucket of idle time are this project's own.
//!
//! Rules:
//!
//! - A packet that arrives after a gap longer than its transmission time found the line idle for
//!   the difference. Half of the margin must be idle time: idle time fills a bucket, and elapsed
//!   time empties it, at half the margin.
//! - An empty bucket (after `patience` without idle time) begins a drain, a full one ends it.
//! - A drain that does not end within `longest` is given up, since unresponsive traffic would cause
//!   loss of rate without benefit. The next begins after twice the patience, then four times, at
//!   most 64 times; a drain that ends by a full bucket restores the initial patience.
//! - The shaper is a transmitter of its rate: after a packet it waits for that packet's
//!   transmission time, and commits none ahead. In front of a modem this keeps the modem's queue
//!   empty, where a token bucket with a burst of one packet may send two.
//! - Urgent packets do not wait here, but are charged, up to two of the largest packets ahead of
//!   the rate. They pass the queue below, and leave without a class of it.
//!
//! Limits:
//!
//! - The rate of the line must be known. If the true rate is lower by more than half of the margin,
//!   late packets look like idle time and no drain begins: the shaper then has too small a margin.
//!   If it is higher, the difference is lost.
//! - Unresponsive traffic cannot be controlled from here.
//! - Growing windows refill the far queue: n flows that grow by a packet each round-trip time bring
//!   n packets more than departed in that time, which exceeds a small margin unless the round-trip
//!   time is long. Clamped windows ([`crate::WindowClamp`]) do not grow.
//!
//! Cost: a division a packet at arrival and one at departure, plus the cost of the queue below.

mod config;
mod idleness;

use std::collections::VecDeque;

use lastmile_linklayer::{LinkLayer, WireMeter};
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Serialiser, WireBytes};

pub use self::config::{Config, DrainError, Law};
use self::idleness::Idleness;
use crate::catalogue::{Above, Built};
use crate::classify::Packets;
use crate::discipline::Counter;
use crate::spec::{Problem, Shaper, Site, Spec, shaper_over};
use crate::{Backlog, Condition, Discipline, DropReason, DropSink, Environment, Matcher as _, Node};

/// A shaper that drains the queue at the far end of the line in front of it.
#[derive(Debug)]
pub struct Drain<P, D = Node<P>> {
    queue: D,
    steady: Serialiser,
    far_queue: Option<FarQueue>,
    meter: WireMeter,
    catch_up: Duration,
    /// End of the transmission of the last packet, at the shaper's rate.
    busy_until: Instant,
    /// The time at which the next packet may depart.
    due: Option<Instant>,
    express: Express<P>,
    stats: Stats,
}

/// Urgent packets, which do not wait for the shaper.
#[derive(Debug)]
struct Express<P> {
    urgent: Condition,
    packets: VecDeque<P>,
    bytes: u64,
    /// The largest packet on the wire.
    largest: WireBytes,
    /// Maximum time by which urgent packets may run ahead of the rate: two of the largest packets.
    ahead: Duration,
    /// The time at which the first urgent packet may depart.
    due: Option<Instant>,
    passed: u64,
    passed_bytes: u64,
    dropped: u64,
}

impl<P> Express<P> {
    /// Capacity in packets, if urgent traffic exceeds the rate.
    const LIMIT: usize = 100;
}

/// Detection and draining of the queue at the far end.
#[derive(Debug)]
struct FarQueue {
    idleness: Idleness,
    state: State,
    /// The rate during a drain.
    rate: Serialiser,
    longest: Duration,
    stats: DrainStats,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Only the margin; `in_vain` drains in a row were given up.
    Steady { in_vain: u32 },
    /// A drain since `since`; `in_vain` earlier drains were given up. `gained`: bytes arrived less
    /// bytes departed since.
    Draining { since: Instant, in_vain: u32, gained: i64 },
}

#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    sent_packets: u64,
    sent_bytes: u64,
    sent_wire_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct DrainStats {
    drains: u64,
    given_up: u64,
    time: Duration,
    wire_bytes: u64,
    largest_wire_bytes: u64,
}

/// Maximum number of doublings of the patience.
const MOST_IN_VAIN: u32 = 6;

impl FarQueue {
    /// Begins and ends drains.
    fn update_state(&mut self, now: Instant) {
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

    /// Adds bytes that arrived during a drain; negative for bytes that departed.
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
    /// A shaper over `queue`, without a known standing queue.
    ///
    /// # Errors
    /// Shares or times with which it would pass or drain nothing.
    pub fn new(config: &Config, environment: &Environment, queue: D) -> Result<Self, DrainError> {
        config.check()?;
        let link_layer = &environment.link_layer;
        let largest = link_layer.on_wire(config.largest);
        let far = match config.drain {
            Some(law) => Some(FarQueue {
                idleness: Idleness::new(
                    config.line,
                    *link_layer,
                    config.required_idleness(),
                    law.patience,
                    config.largest,
                ),
                state: State::Steady { in_vain: 0 },
                rate: Serialiser::new(config.rate(law.depth)?),
                longest: law.longest,
                stats: DrainStats::default(),
            }),
            None => None,
        };
        Ok(Self {
            queue,
            steady: Serialiser::new(config.rate(config.share)?),
            far_queue: far,
            express: Express {
                urgent: Condition::new(&config.urgent, environment),
                packets: VecDeque::new(),
                bytes: 0,
                largest,
                ahead: config.rate(config.share)?.time_for(largest).saturating_mul(2),
                due: None,
                passed: 0,
                passed_bytes: 0,
                dropped: 0,
            },
            meter: WireMeter::new(*link_layer),
            catch_up: config.catch_up,
            busy_until: Instant::ZERO,
            due: None,
            stats: Stats::default(),
        })
    }

    /// True during a drain.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.far_queue.as_ref().is_some_and(FarQueue::is_draining)
    }

    /// Updates the times of the next departures. A packet that is ready now counts as ready since
    /// `since`.
    fn reschedule(&mut self, now: Instant, since: Instant) {
        let ready = self.queue.next_ready(now);
        self.due = ready.map(|ready| self.busy_until.max(if ready <= now { since } else { ready }));
        let allowed = Instant::from_ps(self.busy_until.as_ps().saturating_sub(self.express.ahead.as_ps()));
        self.express.due = self.express.packets.front().map(|_| allowed.max(since));
    }

    /// Dequeues a packet that may depart now: an urgent one first, else one that `below` takes from
    /// the queue below.
    fn take(
        &mut self,
        now: Instant,
        drops: &mut dyn DropSink<P>,
        below: impl FnOnce(&mut D, Instant, &mut dyn DropSink<P>) -> Option<P>,
    ) -> Option<P> {
        let due = self.next_ready(now).filter(|due| *due <= now)?;
        if let Some(far) = &mut self.far_queue {
            far.idleness.silence(now);
            far.update_state(now);
        }
        let at = due.max(Instant::from_ps(now.as_ps().saturating_sub(self.catch_up.as_ps())));
        let packet = if self.express.due.is_some_and(|due| due <= now) {
            let mut packet = self.express.packets.pop_front()?;
            // No class has carried it, so its wait is none of a class.
            packet.meta_mut().class = None;
            self.express.bytes -= u64::from(packet.meta().ip_len);
            self.express.passed += 1;
            self.express.passed_bytes += u64::from(packet.meta().ip_len);
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

    /// Charges a departing packet, as of `at`.
    fn charge(&mut self, at: Instant, packet: &P) {
        let bytes = packet.meta().ip_bytes();
        let wire = self.meter.on_wire(bytes);
        let rate = match &mut self.far_queue {
            Some(far) if far.is_draining() => {
                far.gain(-signed(wire));
                &mut far.rate
            }
            _ => &mut self.steady,
        };
        if at > self.busy_until {
            rate.restart();
        }
        self.busy_until = self.busy_until.max(at).saturating_add(rate.advance(wire));
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += bytes.as_u64();
        self.stats.sent_wire_bytes += wire.as_u64();
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for Drain<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        if let Some(far) = &mut self.far_queue {
            // The time of arrival, which a live caller sees later.
            let wire = far.idleness.arrival(packet.meta().arrived.min(now), packet.meta().ip_bytes());
            far.gain(signed(wire));
            far.update_state(now);
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

    /// With a law the rate is that of the line, and does not change. A shaper below takes the rate as well.
    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        if self.far_queue.is_some() {
            return false;
        }
        let since = self.next_ready(now).map_or(now, |due| due.min(now));
        let left = self.steady.change_rate(rate, self.busy_until.since(now));
        self.busy_until = self.busy_until.min(now).saturating_add(left);
        self.express.ahead = rate.time_for(self.express.largest).saturating_mul(2);
        self.queue.set_rate(now, rate);
        self.reschedule(now, since);
        true
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

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.queue.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let stats = &self.stats;
        let counts = [
            ("sent_packets", stats.sent_packets),
            ("sent_bytes", stats.sent_bytes),
            ("sent_wire_bytes", stats.sent_wire_bytes),
            ("urgent", self.express.passed),
            ("urgent_bytes", self.express.passed_bytes),
            ("dropped_tail", self.express.dropped),
        ];
        let drained = self.far_queue.as_ref().map(|far| {
            [
                ("drains", far.stats.drains),
                ("drains_given_up", far.stats.given_up),
                ("drained_ms", far.stats.time.as_ms()),
                ("drained_wire_bytes", far.stats.wire_bytes),
                ("largest_drain_wire_bytes", far.stats.largest_wire_bytes),
            ]
        });
        Counter::all("drain", counts.into_iter().chain(drained.into_iter().flatten()), visit);
        Counter::below("queue", &self.queue, visit);
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(Self::check(self)?)
    }

    fn own_shapers(&self, _packets: &Packets) -> Vec<Shaper> {
        self.share.of_rate(self.line).map(|rate| Shaper::of_all(rate, None)).into_iter().collect()
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
