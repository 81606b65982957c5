//! ACK pacing: ACKs go on no faster than the data that they let go can follow.
//!
//! An ACK lets its sender send about as much as it acknowledges. ACKs that come bunched, or that a regulator has thinned out, let
//! bursts go that pile up in front of the next bottleneck. Spaced by what they acknowledge they let the data arrive there as fast
//! as it leaves.
//!
//! Published: Karandikar, Kalyanaraman, Bagal, Packer 2000 (TCP rate control), as the rate of acknowledgements beside the
//! [clamp](super::clamp) of the window; RFC 3449, section 5.3.2, spaces reconstructed ACKs likewise. The order between flows is
//! start-time fair queueing (Goyal, Vin, Cheng 1996).
//!
//! Rules:
//!
//! - An ACK that acknowledges b bytes more than the one before of its flow takes b / `rate`. All flows together share the rate, by
//!   bytes acknowledged, however many ACKs each has.
//! - An ACK that finds the rate free goes at once, and the next waits for it. So nothing is saved up in a pause.
//! - No ACK is held longer than `max_hold`: then it goes, and takes its time all the same. What is owed is at most `max_hold`.
//! - An ACK that acknowledges nothing new (a duplicate, a window update) takes no time, and waits only behind ACKs of its own flow.
//! - Only pure ACKs are held. Anything else of the flow sends the ACKs that are held ahead of it and goes at once, so that order
//!   holds; what it acknowledges takes its time too.
//!
//! Differs: the publication sets the number that an ACK carries, too; here ACKs only wait. The first ACK of a flow, and one that
//! acknowledges more than any window (RFC 7323, section 2.3), take no time: what they acknowledge is not known.
//! What is held joins the queue below when its time comes; an AQM there counts the time in `arrived`, the hold included.
//! Cost: one table look-up a packet, a sum over the payload of a segment that has one, for an ACK that is held O(log n) in the flows of which ACKs are held. Memory: an entry for
//! each flow that has acknowledged something lately, of 131 072 at most, and one for each ACK that is held.

use std::collections::{BTreeSet, VecDeque};

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Packet, Protocol, Segment, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Serialiser, WireBytes};

use super::Passed;
use super::flow_map::FlowMap;
use super::linked_fifo::{Handle, LinkedFifo};
use super::recent::Recent;
use crate::catalogue::Above;
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// How ACKs are paced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes that may be acknowledged in a time, all flows together: what the line can carry of payload, or less.
    pub rate: BitRate,
    /// The longest that an ACK is held: above zero, at most [`Config::LONGEST_HOLD`].
    pub max_hold: Duration,
    /// What is never held.
    pub exempt: Match,
}

impl Config {
    /// RFC 1122, section 4.2.3.2: no ACK is delayed by more.
    pub const LONGEST_HOLD: Duration = Duration::from_ms(500);
}

/// What a silent flow acknowledged is forgotten after so long.
const FORGOTTEN_AFTER: Duration = Duration::from_s(600);

/// A pacer in front of a queue.
#[derive(Debug)]
pub struct AckPacing<P, D = Node<P>> {
    queue: D,
    max_hold: Duration,
    exempt: Condition,
    /// Every ACK that is held, in the order in which they came, and so in that of their deadlines.
    held: LinkedFifo<Held<P>>,
    held_bytes: u64,
    flows: Recent<Flow>,
    /// The ACKs of a flow that are held, in their order.
    waiting: FlowMap<VecDeque<Handle>>,
    /// The flows of which ACKs are held, by the start tag of the first.
    turns: BTreeSet<(u64, FlowId)>,
    clock: Clock,
    stats: Stats,
}

#[derive(Debug)]
struct Held<P> {
    packet: P,
    /// What it acknowledges, in bytes.
    bytes: u32,
    /// Start tag: bytes acknowledged, on the scale of [`Clock::virtual_time`].
    start: u64,
    deadline: Instant,
}

/// What is known of a flow.
#[derive(Debug, Default)]
struct Flow {
    /// The highest number acknowledged.
    acked: Option<SeqNumber>,
    /// Finish tag of its last ACK.
    finish: u64,
}

/// When the next ACK may go, and whose it is.
#[derive(Debug)]
struct Clock {
    serialiser: Serialiser,
    /// When the data that was let go has passed.
    free: Instant,
    /// Start tag of the ACK that went last in its turn.
    virtual_time: u64,
    /// The highest finish tag given.
    last_finish: u64,
}

impl Clock {
    /// Data of so many bytes is let go at `at`; no more than `most` is ever owed.
    fn charge(&mut self, at: Instant, bytes: u32, most: Duration) {
        if self.free < at {
            self.serialiser.restart();
        }
        let takes = self.serialiser.advance(WireBytes::new(u64::from(bytes)));
        self.free = self.free.max(at).saturating_add(takes).min(at.saturating_add(most));
    }

    /// Start tag of an ACK of `bytes` whose flow has come to `finish`.
    fn tag(&mut self, finish: &mut u64, bytes: u32) -> u64 {
        let start = self.virtual_time.max(*finish);
        *finish = start + u64::from(bytes);
        self.last_finish = self.last_finish.max(*finish);
        start
    }
}

impl<P: Packet, D: Discipline<P>> AckPacing<P, D> {
    /// A pacer in front of `queue`. `None`: `max_hold` is out of its range.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment, queue: D) -> Option<Self> {
        if config.max_hold.is_zero() || config.max_hold > Config::LONGEST_HOLD {
            return None;
        }
        Some(Self {
            queue,
            max_hold: config.max_hold,
            exempt: Condition::new(&config.exempt, environment),
            held: LinkedFifo::new(),
            held_bytes: 0,
            flows: Recent::new(FORGOTTEN_AFTER),
            waiting: FlowMap::default(),
            turns: BTreeSet::new(),
            clock: Clock {
                serialiser: Serialiser::new(config.rate),
                free: Instant::ZERO,
                virtual_time: 0,
                last_finish: 0,
            },
            stats: Stats::default(),
        })
    }

    /// When the next ACK that is held goes on.
    fn next_release(&self) -> Option<Instant> {
        let oldest = self.held.first()?;
        Some(self.clock.free.min(self.held.get(oldest).deadline))
    }

    /// Lets go on what is due by `now`, each as of the time at which it was due.
    fn release_due(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        while let Some(oldest) = self.held.first() {
            let deadline = self.held.get(oldest).deadline;
            let at = self.clock.free.min(deadline);
            if at > now {
                return;
            }
            let flow = if self.clock.free <= deadline {
                let &(start, flow) = self.turns.first().expect("a flow with a held ACK has a turn");
                self.clock.virtual_time = start;
                self.stats.paced += 1;
                flow
            } else {
                self.stats.overdue += 1;
                self.held.get(oldest).packet.meta().flow
            };
            self.release(flow, at, now, drops);
        }
        if self.clock.free <= now {
            self.clock.virtual_time = self.clock.last_finish;
        }
    }

    /// Lets the first held ACK of a flow go on, and those behind it that take no time.
    fn release(&mut self, flow: FlowId, at: Instant, now: Instant, drops: &mut dyn DropSink<P>) {
        let mut waiting = self.waiting.remove(&flow).expect("a flow with a turn has a held ACK");
        let first = *waiting.front().expect("it has one");
        self.turns.remove(&(self.held.get(first).start, flow));
        let mut bytes = self.held.get(first).bytes;
        while let Some(handle) = waiting.pop_front() {
            let Held { packet, .. } = self.held.remove(handle);
            self.held_bytes -= u64::from(packet.meta().ip_len);
            self.clock.charge(at, bytes, self.max_hold);
            self.queue.enqueue(now, packet, drops);
            let Some(next) = waiting.front() else { return };
            bytes = self.held.get(*next).bytes;
            if bytes > 0 {
                self.turns.insert((self.held.get(*next).start, flow));
                self.waiting.insert(flow, waiting);
                return;
            }
            self.stats.paced += 1;
        }
    }

    /// Lets all held ACKs of a flow go on, for something that must not overtake them.
    fn flush(&mut self, flow: FlowId, now: Instant, drops: &mut dyn DropSink<P>) {
        while self.waiting.contains_key(&flow) {
            let before = self.held.len();
            let paced = self.stats.paced;
            self.release(flow, now, now, drops);
            self.stats.paced = paced;
            self.stats.flushed += (before - self.held.len()) as u64;
        }
    }

    fn hold(&mut self, now: Instant, packet: P, bytes: u32) {
        let flow = packet.meta().flow;
        self.held_bytes += u64::from(packet.meta().ip_len);
        let state = self.flows.hear(now, flow, Flow::default);
        let start = self.clock.tag(&mut state.finish, bytes);
        let deadline = now.saturating_add(self.max_hold);
        let handle = self.held.push_back(Held { packet, bytes, start, deadline });
        let waiting = self.waiting.entry(flow).or_default();
        if waiting.is_empty() {
            self.turns.insert((start, flow));
        }
        waiting.push_back(handle);
        self.stats.held += 1;
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for AckPacing<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.release_due(now, drops);
        let meta = *packet.meta();
        // A damaged ACK takes no time, and keeps its place among those of its flow.
        let holdable = self.stats.passed.may_read(now, &packet, &mut self.exempt).is_some() || meta.is_damaged();
        if meta.protocol != Protocol::Tcp {
            if meta.protocol == Protocol::AckSignal {
                self.flush(meta.flow, now, drops);
            }
            self.queue.enqueue(now, packet, drops);
            return;
        }
        let bytes = match packet.segment() {
            Some(segment) => self.flows.hear(now, meta.flow, Flow::default).acknowledge(segment),
            None => 0,
        };
        if holdable {
            self.stats.seen += u64::from(!meta.is_damaged());
            let behind = self.waiting.contains_key(&meta.flow);
            if behind || (bytes > 0 && self.clock.free > now) {
                self.hold(now, packet, bytes);
                return;
            }
        } else {
            self.flush(meta.flow, now, drops);
        }
        if bytes > 0 {
            let state = self.flows.hear(now, meta.flow, Flow::default);
            self.clock.tag(&mut state.finish, bytes);
            self.clock.charge(now, bytes, self.max_hold);
        }
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.release_due(now, drops);
        self.queue.dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.release_due(now, drops);
        self.queue.dequeue_urgent(now, drops)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        match (self.next_release(), self.queue.next_ready(now)) {
            (Some(release), Some(below)) => Some(release.min(below)),
            (release, below) => release.or(below),
        }
    }

    fn backlog(&self) -> Backlog {
        let below = self.queue.backlog();
        Backlog {
            packets: below.packets + PacketCount::new(self.held.len() as u64),
            bytes: below.bytes + ByteCount::new(self.held_bytes),
        }
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }
}

impl Flow {
    /// Takes note of what a segment acknowledges; returns how many bytes that is more than before, as far as can be told.
    fn acknowledge(&mut self, meta: Segment<'_>) -> u32 {
        /// RFC 7323, section 2.3: the window is at most 2^30 bytes.
        const LARGEST_WINDOW: u32 = 1 << 30;
        if !meta.flags.contains(TcpFlags::ACK) {
            return 0;
        }
        let before = if meta.flags.contains(TcpFlags::SYN) { None } else { self.acked };
        let Some(before) = before else {
            self.acked = Some(meta.ack);
            return 0;
        };
        if !meta.ack.after(before) {
            return 0;
        }
        self.acked = Some(meta.ack);
        let bytes = meta.ack.distance_from(before);
        if bytes <= LARGEST_WINDOW { bytes } else { 0 }
    }
}

/// What a pacer counts.
#[derive(Clone, Debug, Default)]
struct Stats {
    seen: u64,
    held: u64,
    paced: u64,
    overdue: u64,
    flushed: u64,
    passed: Passed,
}

impl Stats {
    fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        const KIND: &str = "ack-pacing";
        let counts = [
            ("seen", self.seen),
            ("held", self.held),
            ("paced", self.paced),
            ("overdue", self.overdue),
            ("flushed", self.flushed),
        ];
        for (name, value) in counts {
            visit(Counter { path: "", kind: KIND, name, value });
        }
        self.passed.show(KIND, visit);
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(self.exempt.check()?)
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(AckPacing::new(self, environment, queue).ok_or(Problem::Hold(self.max_hold))?))
    }
}

#[cfg(test)]
mod tests;
