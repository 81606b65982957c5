//! ACK pacing: ACKs depart no faster than the data that they release can follow.
//!
//! An ACK lets its sender send about as many bytes as it acknowledges. Bunched ACKs, or ACKs that a
//! regulator has thinned out, release bursts that queue at the next bottleneck. Spaced by the bytes
//! that they acknowledge, they make the data arrive there at the bottleneck's rate.
//!
//! Published: Karandikar, Kalyanaraman, Bagal, Packer 2000 (TCP rate control), as the rate of
//! acknowledgements in addition to the [clamp](super::clamp) of the window; RFC 3449, section
//! 5.3.2, spaces reconstructed ACKs in this way. The order between flows is start-time fair
//! queueing (Goyal, Vin, Cheng 1996).
//!
//! Rules:
//!
//! - An ACK that acknowledges b bytes more than the previous one of its flow takes b / `rate`. All
//!   flows together share the rate, by bytes acknowledged, however many ACKs each has.
//! - An ACK that finds the rate free departs at once, and the next waits for it. A pause therefore
//!   saves no tokens.
//! - No ACK is held longer than `max_hold`: then it departs, and is charged like any other. The
//!   debt is at most `max_hold`.
//! - An ACK that acknowledges nothing new (a duplicate, a window update) takes no time, and waits
//!   only behind ACKs of its own flow.
//! - Only pure ACKs are held. Any other packet of the flow releases the held ACKs ahead of it and
//!   departs at once, so that order is kept; the bytes that it acknowledges are charged too.
//!
//! Differs: the publication also sets the number that an ACK carries; here ACKs are only delayed.
//! The first ACK of a flow, and one that acknowledges more than any window (RFC 7323, section 2.3),
//! take no time: the bytes that they acknowledge are unknown.
//! A held ACK joins the queue below when it is released; an AQM there counts the time since
//! `arrived`, the hold included.
//! Cost: one table look-up a packet, a checksum over the payload of a segment that has one; for a
//! held ACK O(log n) in the flows with held ACKs. Memory: an entry for each flow with a recent
//! acknowledgement, at most 131 072, and one for each held ACK.

use std::collections::{BTreeSet, VecDeque};

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Packet, Protocol, Segment, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Serialiser, WireBytes};

use super::Passed;
use super::flow_map::FlowMap;
use super::linked_fifo::{Handle, LinkedFifo};
use super::recent_flows::RecentFlows;
use crate::catalogue::Above;
use crate::classify::{Condition, Match};
use crate::discipline::Counter;
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// Parameters of an ACK pacer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes acknowledged per time, all flows together: the payload rate of the line, or less.
    pub rate: BitRate,
    /// The longest time for which an ACK is held: above zero, at most [`Config::LONGEST_HOLD`].
    pub max_hold: Duration,
    /// Packets that are never held.
    pub exempt: Match,
}

impl Config {
    /// RFC 1122, section 4.2.3.2: no ACK is delayed by more.
    pub const LONGEST_HOLD: Duration = Duration::from_ms(500);
}

/// Time after which the acknowledgements of a silent flow are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_s(600);

/// A pacer in front of a queue.
#[derive(Debug)]
pub struct AckPacing<P, D = Node<P>> {
    queue: D,
    max_hold: Duration,
    exempt: Condition,
    /// Every held ACK, in the order of arrival, which is also that of their deadlines.
    held: LinkedFifo<HeldAck<P>>,
    held_bytes: u64,
    flows: RecentFlows<Flow>,
    /// The held ACKs of each flow, in their order.
    held_by_flow: FlowMap<VecDeque<Handle>>,
    /// The flows with held ACKs, by the start tag of the first.
    next_by_tag: BTreeSet<(u64, FlowId)>,
    clock: Clock,
    stats: Stats,
}

#[derive(Debug)]
struct HeldAck<P> {
    packet: P,
    /// Bytes that it newly acknowledges.
    bytes: u32,
    /// Start tag: bytes acknowledged, on the scale of [`Clock::virtual_time`].
    start: u64,
    deadline: Instant,
}

/// State of a flow.
#[derive(Debug, Default)]
struct Flow {
    /// The highest number acknowledged.
    acked: Option<SeqNumber>,
    /// Finish tag of its last ACK.
    finish: u64,
}

/// The time of the next release, and the virtual time that selects its flow.
#[derive(Debug)]
struct Clock {
    serialiser: Serialiser,
    /// The time at which the data released so far has passed at the rate.
    busy_until: Instant,
    /// Start tag of the ACK that was last released in its turn.
    virtual_time: u64,
    /// The highest finish tag so far.
    last_finish: u64,
}

impl Clock {
    /// Charges data of `bytes` bytes, released at `at`; the debt is at most `most`.
    fn charge(&mut self, at: Instant, bytes: u32, most: Duration) {
        if self.busy_until < at {
            self.serialiser.restart();
        }
        let takes = self.serialiser.advance(WireBytes::new(u64::from(bytes)));
        self.busy_until = self.busy_until.max(at).saturating_add(takes).min(at.saturating_add(most));
    }

    /// Start tag of an ACK of `bytes` in a flow with this finish tag, which advances.
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
            flows: RecentFlows::new(FORGOTTEN_AFTER),
            held_by_flow: FlowMap::default(),
            next_by_tag: BTreeSet::new(),
            clock: Clock {
                serialiser: Serialiser::new(config.rate),
                busy_until: Instant::ZERO,
                virtual_time: 0,
                last_finish: 0,
            },
            stats: Stats::default(),
        })
    }

    /// The time of the next release of a held ACK.
    fn next_release(&self) -> Option<Instant> {
        let oldest = self.held.first()?;
        Some(self.clock.busy_until.min(self.held.get(oldest).deadline))
    }

    /// Releases the ACKs due by `now`, each as of the time at which it was due.
    fn release_due(&mut self, now: Instant, drops: &mut dyn DropSink<P>) {
        while let Some(oldest) = self.held.first() {
            let deadline = self.held.get(oldest).deadline;
            let at = self.clock.busy_until.min(deadline);
            if at > now {
                return;
            }
            let flow = if self.clock.busy_until <= deadline {
                let &(start, flow) = self.next_by_tag.first().expect("a flow with a held ACK has a turn");
                self.clock.virtual_time = start;
                self.stats.paced += 1;
                flow
            } else {
                self.stats.overdue += 1;
                self.held.get(oldest).packet.meta().flow
            };
            self.release(flow, at, now, drops);
        }
        if self.clock.busy_until <= now {
            self.clock.virtual_time = self.clock.last_finish;
        }
    }

    /// Releases the first held ACK of a flow, and those behind it that take no time.
    fn release(&mut self, flow: FlowId, at: Instant, now: Instant, drops: &mut dyn DropSink<P>) {
        let mut acks = self.held_by_flow.remove(&flow).expect("a flow with a turn has a held ACK");
        let first = *acks.front().expect("it has one");
        self.next_by_tag.remove(&(self.held.get(first).start, flow));
        let mut bytes = self.held.get(first).bytes;
        while let Some(handle) = acks.pop_front() {
            let HeldAck { packet, .. } = self.held.remove(handle);
            self.held_bytes -= u64::from(packet.meta().ip_len);
            self.clock.charge(at, bytes, self.max_hold);
            self.queue.enqueue(now, packet, drops);
            let Some(next) = acks.front() else { return };
            bytes = self.held.get(*next).bytes;
            if bytes > 0 {
                self.next_by_tag.insert((self.held.get(*next).start, flow));
                self.held_by_flow.insert(flow, acks);
                return;
            }
            self.stats.paced += 1;
        }
    }

    /// Releases all held ACKs of a flow, ahead of a packet that must not overtake them.
    fn flush(&mut self, flow: FlowId, now: Instant, drops: &mut dyn DropSink<P>) {
        while self.held_by_flow.contains_key(&flow) {
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
        let state = self.flows.get_or_create(now, flow, Flow::default);
        let start = self.clock.tag(&mut state.finish, bytes);
        let deadline = now.saturating_add(self.max_hold);
        let handle = self.held.push_back(HeldAck { packet, bytes, start, deadline });
        let acks = self.held_by_flow.entry(flow).or_default();
        if acks.is_empty() {
            self.next_by_tag.insert((start, flow));
        }
        acks.push_back(handle);
        self.stats.held += 1;
    }
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for AckPacing<P, D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.release_due(now, drops);
        let meta = *packet.meta();
        // A damaged ACK takes no time, and keeps its position among those of its flow.
        let holdable = self.stats.passed.may_read(now, &packet, &mut self.exempt).is_some() || meta.is_damaged();
        if meta.protocol != Protocol::Tcp {
            if meta.protocol == Protocol::AckSignal {
                self.flush(meta.flow, now, drops);
            }
            self.queue.enqueue(now, packet, drops);
            return;
        }
        let bytes = match packet.segment() {
            Some(segment) => self.flows.get_or_create(now, meta.flow, Flow::default).acknowledge(segment),
            None => 0,
        };
        if holdable {
            self.stats.seen += u64::from(!meta.is_damaged());
            let has_held = self.held_by_flow.contains_key(&meta.flow);
            if has_held || (bytes > 0 && self.clock.busy_until > now) {
                self.hold(now, packet, bytes);
                return;
            }
        } else {
            self.flush(meta.flow, now, drops);
        }
        if bytes > 0 {
            let state = self.flows.get_or_create(now, meta.flow, Flow::default);
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

    fn set_rate(&mut self, now: Instant, rate: BitRate) -> bool {
        self.queue.set_rate(now, rate)
    }

    fn level_ready(&self, now: Instant) -> Option<usize> {
        let is_due = self.next_release().is_some_and(|due| due <= now);
        self.queue.level_ready(now).or_else(|| is_due.then_some(0))
    }

    fn level_sent(&self) -> usize {
        self.queue.level_sent()
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

    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        self.queue.class_backlogs(visit);
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }
}

impl Flow {
    /// Records the acknowledgement of a segment; returns the bytes that it newly acknowledges, or 0
    /// if unknown.
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

/// Counters of a pacer.
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
        Counter::all(KIND, counts, visit);
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
