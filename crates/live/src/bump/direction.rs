//! One direction: the hops from one port to another, apart from all input and output.

use std::io;
use std::sync::Arc;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, FlowTable, Frame, HashKey, Packet};
use lastmile_queueing::ack::Handshakes;
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::line::{Count, Line, TransmissionSink};
use lastmile_queueing::spec::{BuildError, Spec};
use lastmile_queueing::{Backlog, Counter, Environment, Node};
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use super::record::Recorder;
use super::tap::{AtHop, Taps};
use super::waits::{Crossed, HopWaits};
use super::{CounterValue, DirectionReport, HopGlance, HopReport, HopState};
use crate::clock::Clock;
use crate::io::{Counters, Framing, Port, Refusal};
use lastmile_model::outcome::{Buckets, GrantsOutcome};
use lastmile_model::{Hop, Passage};

/// Packets that one turn takes from one port, so that a flood from one side cannot hold up the
/// other; and at most as many are sent at once.
pub const BATCH: usize = 64;

/// Memory of packets that have left, kept for those that come.
const SPARE_BUFFERS: usize = 1024;

/// Memory of longer packets is given back, or a thousand packets of 64 kB would take 64 MB for
/// good. A jumbo frame fits.
const LONGEST_SPARE: usize = 10_000;

/// One direction: its hops, and the counters around them.
pub(super) struct Direction {
    pub(super) hops: Vec<RunningHop>,
    /// The latest time that the hops have been told. It never goes back.
    latest: Instant,
    /// The longest sleep that is made up for; `None`: any.
    pub(super) catch_up: Option<Duration>,
    overslept: u64,
    received: Count,
    oversize: Count,
    pub(super) unreadable: u64,
    not_ip: u64,
    evicted: u64,
    sent: Count,
    refused: [Count; Refusal::ALL.len()],
    pub(super) lateness: Buckets,
    /// Packets that have crossed the last hop and are about to be sent.
    leaving: Vec<Frame>,
    /// Counted once headers are recorded.
    pub(super) crossed: Crossed,
    pub(super) kept: Kept,
}

/// Of packets that are gone: buffers to use again, and headers.
#[derive(Default)]
pub(super) struct Kept {
    spare: Spare,
    /// The headers of the packets that came lately, if someone wants them.
    pub(super) recorder: Option<Recorder>,
}

/// One line of a direction.
pub(super) struct RunningHop {
    name: String,
    pub(super) line: Line<Frame>,
    pub(super) waits: HopWaits,
    pub(super) most_queued: Backlog,
    /// The rate that a controller has given its shaper.
    shaper_rate: Option<BitRate>,
    /// The least delay of its wire.
    delay: Duration,
    /// The least time that a packet needs from this hop to the end: the delays of the hops behind it.
    ahead: Duration,
}

impl Direction {
    pub(super) fn new(
        configs: &[Hop],
        seed: u64,
        hash_key: HashKey,
        handshakes: &Arc<Handshakes>,
    ) -> Result<Self, BuildError> {
        let hops: Result<Vec<RunningHop>, BuildError> = configs
            .iter()
            .enumerate()
            .map(|(index, config)| {
                Ok(RunningHop {
                    name: config.name.clone(),
                    line: line(config, seed, hash_key, handshakes)?,
                    waits: HopWaits::new(),
                    most_queued: Backlog::default(),
                    shaper_rate: None,
                    delay: config.line.least_delay(),
                    ahead: configs[index + 1..].iter().map(|config| config.line.least_delay()).sum(),
                })
            })
            .collect();
        Ok(Self {
            hops: hops?,
            latest: Instant::ZERO,
            catch_up: None,
            overslept: 0,
            received: Count::default(),
            oversize: Count::default(),
            unreadable: 0,
            not_ip: 0,
            evicted: 0,
            sent: Count::default(),
            refused: Default::default(),
            lateness: Buckets::default(),
            leaving: Vec::with_capacity(BATCH),
            crossed: Crossed::default(),
            kept: Kept::default(),
        })
    }

    /// Puts another queue in front of the first hop; what waits leaves before.
    pub(super) fn hand_over(&mut self, Queue { node, link_layer }: Queue) {
        if let Some(first) = self.hops.first_mut() {
            first.line.hand_over(node, link_layer);
            first.waits.begin_classes(self.latest);
            first.shaper_rate = None;
        }
    }

    /// Gives the shaper of a hop this rate, and returns the bytes on the wire that the hop has sent. The rate changes
    /// at the time up to which arrivals are known.
    pub(super) fn steer(&mut self, hop: usize, rate: BitRate, taps: &mut Taps<'_>) -> WireBytes {
        let Some(steered) = self.hops.get_mut(hop) else { return WireBytes::ZERO };
        if steered.shaper_rate != Some(rate) {
            steered.set_rate(self.latest, rate, &mut self.kept, taps.at(hop));
        }
        steered.line.stats().wire_bytes
    }

    /// The earliest time at which a packet may leave the last hop. Events inside before that time
    /// can be made up for then, each at its own time, since a line can be called late; so nobody
    /// has to wake up for them.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let wakes = self.hops.iter().flat_map(|hop| {
            let started = hop.line.next_transmission().map(|start| start.saturating_add(hop.delay));
            [started, hop.line.next_arrival()].map(|leaves| Some(leaves?.saturating_add(hop.ahead)))
        });
        wakes.flatten().min()
    }

    pub(super) fn receive(
        &mut self,
        clock: &dyn Clock,
        port: &mut dyn Port,
        flows: &mut FlowTable,
        mtu: u16,
        taps: &mut Taps<'_>,
    ) -> io::Result<()> {
        let framing = port.framing();
        if let Some(most) = self.catch_up {
            self.forgive(Instant::from_ps(clock.now().as_ps().saturating_sub(most.as_ps())));
        }
        let horizon = port.receive(clock, BATCH, &mut |arrived, bytes| {
            self.latest = self.latest.max(arrived);
            if let Some(frame) = self.read(framing, bytes, mtu) {
                self.take_in(frame, flows, taps);
            }
        });
        self.latest = self.latest.max(horizon?);
        Ok(())
    }

    /// Events that were due before `floor` happen then.
    fn forgive(&mut self, floor: Instant) {
        if self.hops.iter().filter_map(|hop| hop.line.next_transmission()).any(|due| due < floor) {
            self.overslept += 1;
            self.hops.iter_mut().for_each(|hop| hop.line.forgive(floor));
        }
        self.latest = self.latest.max(floor);
    }

    /// Reads a packet and counts it. `None`: it is too long, and arrives nowhere.
    fn read(&mut self, framing: Framing, bytes: &[u8], mtu: u16) -> Option<Frame> {
        let mut frame = self.kept.spare.0.pop().unwrap_or_else(|| Frame::new(Vec::new()).0);
        let not_ip = match framing {
            Framing::Packet => {
                // An unparsable packet has no flow.
                let _ = frame.refill(bytes);
                false
            }
            Framing::Ethernet => frame.refill_ethernet(bytes).is_err_and(|error| error.is_not_ip()),
        };
        self.received.add(&frame);
        if frame.meta().ip_len > mtu {
            self.oversize.add(&frame);
            self.kept.spare.recycle(frame);
            return None;
        }
        if frame.flow_key().is_none() {
            *(if not_ip { &mut self.not_ip } else { &mut self.unreadable }) += 1;
        }
        Some(frame)
    }

    /// Gives a packet the number of its flow, and enqueues it.
    fn take_in(&mut self, mut frame: Frame, flows: &mut FlowTable, taps: &mut Taps<'_>) {
        let Some(first) = self.hops.first_mut() else { return };
        let before = flows.evicted();
        number(&mut frame, flows);
        self.evicted += flows.evicted() - before;
        // For the delay over all hops: `arrived` changes at each, and no simulated host has set `sent`.
        frame.meta_mut().sent = self.latest;
        if let Some(recorder) = &mut self.kept.recorder {
            let flow = frame.flow_key().map(|key| (flows.slot(frame.meta().flow), key));
            recorder.note(self.latest, frame.meta(), flow);
        }
        first.enqueue(self.latest, frame, &mut self.kept, taps.at(0));
    }

    /// Lets every hop go on to the latest time, and sends what leaves the last one.
    pub(super) fn send(&mut self, clock: &dyn Clock, port: &mut dyn Port, taps: &mut Taps<'_>) {
        for index in 0..self.hops.len() {
            self.hops[index].transmit(self.latest, &mut self.kept, taps.at(index));
            while let Some(frame) = self.hops[index].take_arrival(self.latest, &mut self.kept, taps.at(index)) {
                let due = frame.meta().arrived;
                taps.at(index).tell(due, Passage::Arrived, &frame);
                if let Some(next) = self.hops.get_mut(index + 1) {
                    next.enqueue(due, frame, &mut self.kept, taps.at(index + 1));
                    continue;
                }
                if self.kept.recorder.is_some() {
                    self.crossed.record(&frame);
                }
                self.leaving.push(frame);
                if self.leaving.len() == BATCH {
                    self.ship(clock, port);
                }
            }
        }
        self.ship(clock, port);
    }

    /// Sends what is about to leave.
    fn ship(&mut self, clock: &dyn Clock, port: &mut dyn Port) {
        if self.leaving.is_empty() {
            return;
        }
        let now = clock.now();
        let Self { leaving, lateness, sent, refused, kept, .. } = self;
        port.send(leaving, &mut |frame, result| {
            lateness.record(now.since(frame.meta().arrived).as_ns());
            match result {
                Ok(()) => sent.add(&frame),
                Err(refusal) => refused[refusal.index()].add(&frame),
            }
            kept.spare.recycle(frame);
        });
        debug_assert!(self.leaving.is_empty(), "a port says of every packet what became of it");
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hops.iter().all(|hop| hop.line.backlog().packets.as_u64() == 0 && hop.line.in_flight().packets == 0)
    }

    pub(super) fn glance(&mut self, now: Instant) -> Vec<HopGlance> {
        let hops = self.hops.iter_mut().map(|hop| HopGlance {
            queued: hop.line.backlog(),
            shaper_rate: hop.shaper_rate,
            wire_bits: hop.line.bits_sent(now),
            dropped_packets: hop.line.stats().dropped.iter().map(|count| count.packets).sum(),
            waited: std::mem::take(&mut hop.waits.lately),
            acks_waited: std::mem::take(&mut hop.waits.acks_lately),
        });
        hops.collect()
    }

    /// The hops at `now`. `port` is in front of the first.
    pub(super) fn states(&self, now: Instant, port: &Counters) -> Vec<HopState> {
        let state = |hop: &RunningHop| HopState { shaper_rate: hop.shaper_rate, ..state(&hop.line, &hop.waits, now) };
        let mut states: Vec<HopState> = self.hops.iter().map(state).collect();
        if let Some(first) = states.first_mut() {
            let Counters { dropped_unread, cut_short, offloads, .. } = *port;
            first.port_drops.extend([("oversize", self.oversize.packets), ("dropped_unread", dropped_unread)]);
            first.port_drops.extend([("cut_short", cut_short), ("not_cut", offloads.refused)]);
        }
        if let Some(last) = states.last_mut() {
            let refused = |refusal: Refusal| (refusal.name(), self.refused[refusal.index()].packets);
            last.port_drops.extend(Refusal::ALL.map(refused));
        }
        states
    }

    pub(super) fn report(&self) -> DirectionReport {
        DirectionReport {
            received: self.received,
            oversize: self.oversize,
            unreadable: self.unreadable,
            not_ip: self.not_ip,
            evicted: self.evicted,
            hops: self.hops.iter().map(RunningHop::report).collect(),
            sent: self.sent,
            refused: self.refused,
            port: Counters::default(),
            overslept: self.overslept,
            lateness: self.lateness.clone(),
        }
    }
}

/// Gives a packet the number of its flow. No regulator takes those that name no flow for packets of one.
fn number(frame: &mut Frame, flows: &mut FlowTable) {
    frame.meta_mut().flow = frame.flow_key().map_or(FlowId::NONE, |key| flows.intern(key).id);
}

/// The idle line of a hop. `handshakes` are those of both directions.
pub(super) fn line<P: Packet + Send + 'static>(
    hop: &Hop,
    seed: u64,
    hash_key: HashKey,
    handshakes: &Arc<Handshakes>,
) -> Result<Line<P>, BuildError> {
    hop.idle_line(seed, environment(hop.line.link_layer, hash_key, handshakes))
}

fn environment(link_layer: LinkLayer, hash_key: HashKey, handshakes: &Arc<Handshakes>) -> Environment {
    Environment { hash_key, ..Environment::new(link_layer).with_handshakes(Arc::clone(handshakes)) }
}

/// A queue, ready to stand in front of a line.
pub(super) struct Queue {
    node: Node<Frame>,
    link_layer: LinkLayer,
}

impl Queue {
    /// `handshakes` are those of both directions.
    pub(super) fn build(
        spec: &Spec,
        link_layer: LinkLayer,
        hash_key: HashKey,
        handshakes: &Arc<Handshakes>,
    ) -> Result<Self, BuildError> {
        Ok(Self { node: spec.build_in(&environment(link_layer, hash_key, handshakes))?, link_layer })
    }
}

impl RunningHop {
    pub(super) fn enqueue(&mut self, at: Instant, frame: Frame, kept: &mut Kept, tap: AtHop<'_>) {
        self.line.enqueue(at, frame, &mut Watch { waits: &mut self.waits, kept, tap });
        let backlog = self.line.backlog();
        self.most_queued.packets = self.most_queued.packets.max(backlog.packets);
        self.most_queued.bytes = self.most_queued.bytes.max(backlog.bytes);
    }

    pub(super) fn transmit(&mut self, now: Instant, kept: &mut Kept, tap: AtHop<'_>) {
        self.line.transmit(now, &mut Watch { waits: &mut self.waits, kept, tap });
    }

    pub(super) fn take_arrival(&mut self, now: Instant, kept: &mut Kept, tap: AtHop<'_>) -> Option<Frame> {
        self.line.take_arrival(now, &mut Watch { waits: &mut self.waits, kept, tap })
    }

    fn set_rate(&mut self, now: Instant, rate: BitRate, kept: &mut Kept, tap: AtHop<'_>) {
        let changed = self.line.set_rate(now, rate, &mut Watch { waits: &mut self.waits, kept, tap });
        self.shaper_rate = changed.then_some(rate);
    }

    fn report(&self) -> HopReport {
        let mut class_backlogs = Vec::new();
        self.line.queue().class_backlogs(&mut |index, backlog| class_backlogs.push((index, backlog)));
        HopReport {
            name: self.name.clone(),
            line: self.line.stats().clone(),
            cells: self.line.cells(),
            queued: self.line.backlog(),
            shaper_rate: self.shaper_rate,
            in_flight: self.line.in_flight(),
            queue_counters: queue_counters(&self.line),
            class_backlogs,
            most_queued: self.most_queued,
            waited: self.waits.all.clone(),
            acks_waited: self.waits.acks.clone(),
            class_waited: self.waits.classes.clone(),
            overlimits: self.waits.overlimits,
            grants: self
                .line
                .grants()
                .map(|counts| GrantsOutcome { counts: *counts, waited_ns: self.waits.grants.clone() }),
        }
    }
}

/// A line at `now`, for a display.
pub(super) fn state<P: Packet>(line: &Line<P>, waits: &HopWaits, now: Instant) -> HopState {
    let mut class_queued = Vec::new();
    line.queue().class_backlogs(&mut |class, backlog| class_queued.push((class, backlog)));
    HopState {
        queued: line.backlog(),
        shaper_rate: None,
        wire_bits: line.bits_sent(now),
        line: line.stats().clone(),
        port_drops: Vec::new(),
        waited: waits.all.to(),
        acks_waited: waits.acks.to(),
        class_waited: waits.classes.iter().map(Buckets::to).collect(),
        class_queued,
        queue_counters: queue_counters(line),
        grants: line.grants().copied(),
    }
}

fn queue_counters<P: Packet>(line: &Line<P>) -> Vec<CounterValue> {
    let mut counters = Vec::new();
    line.queue().counters(&mut |Counter { path, kind, name, value }| {
        counters.push(CounterValue { path: path.to_owned(), kind, name, value });
    });
    counters
}

/// Memory of packets that are gone.
#[derive(Default)]
struct Spare(Vec<Frame>);

impl Spare {
    fn recycle(&mut self, frame: Frame) {
        if self.0.len() < SPARE_BUFFERS && frame.bytes().len() <= LONGEST_SPARE {
            self.0.push(frame);
        }
    }
}

/// Watches a line: how long packets wait in its queue, what the tap is to hear, and what remains of
/// those it drops.
struct Watch<'a> {
    waits: &'a mut HopWaits,
    kept: &'a mut Kept,
    tap: AtHop<'a>,
}

impl DropSink<Frame> for Watch<'_> {
    /// The line has counted the packet, with its reason.
    fn dropped(&mut self, now: Instant, packet: Frame, reason: DropReason) {
        if let Some(recorder) = &mut self.kept.recorder {
            recorder.note_drop(now, packet.meta().flow, reason);
        }
        self.kept.spare.recycle(packet);
    }
}

impl TransmissionSink<Frame> for Watch<'_> {
    #[inline]
    fn transmitted(&mut self, start: Instant, _end: Instant, waited: Duration, packet: &Frame) {
        self.tap.tell(start, Passage::Transmitted, packet);
        self.waits.record(waited, packet);
    }

    fn granted(&mut self, waited: Duration) {
        self.waits.grants.record(waited.as_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_long_packet_is_given_back() {
        let mut spare = Spare::default();
        for len in [60, LONGEST_SPARE, LONGEST_SPARE + 1, 65_535] {
            spare.recycle(Frame::new(vec![0; len]).0);
        }
        let kept: Vec<usize> = spare.0.iter().map(|frame| frame.bytes().len()).collect();
        assert_eq!(kept, [60, LONGEST_SPARE]);
    }
}
