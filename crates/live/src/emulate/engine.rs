//! The lines between two ports, apart from all input and output: time and packets come in with every call.
//!
//! [`Emulator::turn`] does what one wake-up does: takes the packets that have arrived, each at its own arrival time, lets
//! both lines go on, and sends what has reached the far end. However late the wake-up and however many packets it finds, the
//! lines do what they would have done on time; only the sending itself is late, and how late is measured for every packet.
//!
//! Cost per packet: one parse, one flow look-up, one copy of its bytes each way, two readings of the clock.

use std::io;

use hdrhistogram::Histogram;
use lastmile_packet::{FlowId, FlowTable, Frame, HashKey, Packet, Protocol};
use lastmile_queueing::discipline::{DropReason, DropSink};
use lastmile_queueing::line::{Count, Line, Observer};
use lastmile_queueing::spec::BuildError;
use lastmile_queueing::{Backlog, Counter, random::Stream};
use lastmile_units::{Duration, Instant};

use super::{CounterValue, DirectionReport, HopConfig, HopReport};
use crate::clock::Clock;
use crate::io::{Port, Refusal};

/// Packets that one turn takes from one port, so that a flood from one side cannot hold up the other.
const BATCH: usize = 64;

/// Flows of both directions that are told apart at a time.
const MAX_FLOWS: u32 = 1 << 16;

/// How long a flow must be silent before its number may go to another; longer than any queue lasts.
const FLOW_IDLE: Duration = Duration::from_s(600);

/// Memory of packets that have left, kept for those that come.
const SPARE_BUFFERS: usize = 1024;

/// What an emulator is made of.
#[derive(Clone, Debug)]
pub struct EmulatorConfig {
    /// The hops from the client to the server, in this order.
    pub up: Vec<HopConfig>,
    /// The hops from the server to the client, in this order.
    pub down: Vec<HopConfig>,
    /// Packets longer than this are dropped when they come, and counted ([`DirectionReport::oversize`]).
    pub mtu: u16,
    /// Decides which packets are lost on the wire, where a direction loses any.
    pub seed: u64,
    /// Key of the flow table's hash: random where strangers choose the packets.
    pub hash_key: HashKey,
}

/// Two directions of a line, driven by whoever calls [`Emulator::turn`].
pub struct Emulator {
    up: Direction,
    down: Direction,
    flows: FlowTable,
    mtu: u16,
}

impl Emulator {
    /// An idle line.
    ///
    /// # Errors
    /// A queue that its line cannot have, such as a limit in cells on a line without cells.
    pub fn new(config: &EmulatorConfig) -> Result<Self, BuildError> {
        Ok(Self {
            up: Direction::new(&config.up, config.seed)?,
            down: Direction::new(&config.down, config.seed)?,
            flows: FlowTable::new(MAX_FLOWS, FLOW_IDLE, config.hash_key),
            mtu: config.mtu,
        })
    }

    /// When [`Emulator::turn`] must be called at the latest, packets or not; `None` while nothing waits. May change with
    /// every turn.
    #[must_use]
    pub fn next_wake(&self) -> Option<Instant> {
        [self.up.next_wake(), self.down.next_wake()].into_iter().flatten().min()
    }

    /// Takes what has arrived at both ports, and sends what is due.
    ///
    /// # Errors
    /// A port is gone.
    pub fn turn(&mut self, clock: &impl Clock, client: &mut impl Port, server: &mut impl Port) -> io::Result<()> {
        self.up.receive(clock, client, &mut self.flows, self.mtu)?;
        self.down.receive(clock, server, &mut self.flows, self.mtu)?;
        self.up.send(clock, server);
        self.down.send(clock, client);
        Ok(())
    }

    /// What has been done so far: up, then down.
    #[must_use]
    pub fn reports(&self) -> (DirectionReport, DirectionReport) {
        (self.up.report(), self.down.report())
    }
}

/// One direction: its hops, and the counters around them.
struct Direction {
    hops: Vec<Hop>,
    /// The latest time that the hops have been told. It never goes back.
    latest: Instant,
    received: Count,
    oversize: Count,
    unreadable: u64,
    unnumbered: u64,
    sent: Count,
    refused: [Count; Refusal::ALL.len()],
    lateness: Histogram<u64>,
    spare: Spare,
}

/// One line of a direction.
struct Hop {
    name: String,
    line: Line<Frame>,
    waits: Waits,
    most_queued: Backlog,
    delay: Duration,
    /// What a packet that leaves this hop still has before it at the least: the delays of the hops behind it.
    ahead: Duration,
}

impl Direction {
    fn new(configs: &[HopConfig], seed: u64) -> Result<Self, BuildError> {
        let hops: Result<Vec<Hop>, BuildError> = configs
            .iter()
            .enumerate()
            .map(|(index, config)| {
                let queue = config.queue.build(&config.line.link_layer)?;
                let losses = Stream::new(seed, &format!("loss on link {}", config.name));
                Ok(Hop {
                    name: config.name.clone(),
                    line: Line::new(&config.line, queue, losses),
                    waits: Waits { all: histogram(), acks: histogram() },
                    most_queued: Backlog::default(),
                    delay: config.line.delay,
                    ahead: configs[index + 1..].iter().map(|config| config.line.delay).sum(),
                })
            })
            .collect();
        Ok(Self {
            hops: hops?,
            latest: Instant::ZERO,
            received: Count::default(),
            oversize: Count::default(),
            unreadable: 0,
            unnumbered: 0,
            sent: Count::default(),
            refused: Default::default(),
            lateness: histogram(),
            spare: Spare(Vec::new()),
        })
    }

    /// The earliest time at which a packet may leave the last hop. What happens inside before that can be made up for then,
    /// each at its own time, since no line minds being told late; so nobody has to wake up for it.
    fn next_wake(&self) -> Option<Instant> {
        let wakes = self.hops.iter().flat_map(|hop| {
            let started = hop.line.next_transmission().map(|start| start.saturating_add(hop.delay));
            [started, hop.line.next_arrival()].map(|leaves| Some(leaves?.saturating_add(hop.ahead)))
        });
        wakes.flatten().min()
    }

    fn receive(&mut self, clock: &impl Clock, port: &mut impl Port, flows: &mut FlowTable, mtu: u16) -> io::Result<()> {
        let horizon = port.receive(clock, BATCH, &mut |arrived, bytes| self.take(arrived, bytes, flows, mtu))?;
        self.latest = self.latest.max(horizon);
        Ok(())
    }

    fn take(&mut self, arrived: Instant, bytes: &[u8], flows: &mut FlowTable, mtu: u16) {
        if bytes.len() > usize::from(mtu) {
            for count in [&mut self.received, &mut self.oversize] {
                count.packets += 1;
                count.bytes += bytes.len() as u64;
            }
            return;
        }
        self.latest = self.latest.max(arrived);
        let mut buffer = self.spare.0.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let (mut frame, key) = Frame::new(buffer);
        self.received.add(&frame);
        // Beyond every number that the table gives: no regulator takes such packets for those of a flow.
        let no_flow = FlowId::new(MAX_FLOWS);
        let meta = frame.meta_mut();
        match key {
            Ok(key) => match flows.intern(self.latest, &key, |_, _| {}) {
                Some(flow) => meta.flow = flow,
                None => {
                    self.unnumbered += 1;
                    (meta.flow, meta.protocol) = (no_flow, Protocol::Other);
                }
            },
            Err(_) => {
                self.unreadable += 1;
                meta.flow = no_flow;
            }
        }
        if let Some(first) = self.hops.first_mut() {
            first.enqueue(self.latest, frame, &mut self.spare);
        }
    }

    /// Lets every hop go on to the latest time, and sends what leaves the last one.
    fn send(&mut self, clock: &impl Clock, port: &mut impl Port) {
        for index in 0..self.hops.len() {
            let (done, ahead) = self.hops.split_at_mut(index + 1);
            let hop = &mut done[index];
            let mut watch = Watch { waits: &mut hop.waits, spare: &mut self.spare };
            hop.line.transmit(self.latest, &mut watch);
            while let Some(frame) = hop.line.take_arrival(self.latest, &mut watch) {
                let due = frame.meta().arrived;
                if let Some(next) = ahead.first_mut() {
                    next.enqueue(due, frame, watch.spare);
                    continue;
                }
                self.lateness.saturating_record(clock.now().since(due).as_ns());
                match port.send(frame.bytes()) {
                    Ok(()) => self.sent.add(&frame),
                    Err(refusal) => self.refused[refusal.index()].add(&frame),
                }
                watch.spare.recycle(frame);
            }
        }
    }

    fn report(&self) -> DirectionReport {
        DirectionReport {
            received: self.received,
            oversize: self.oversize,
            unreadable: self.unreadable,
            unnumbered: self.unnumbered,
            hops: self.hops.iter().map(Hop::report).collect(),
            sent: self.sent,
            refused: self.refused,
            dropped_unread: 0,
            lateness: self.lateness.clone(),
        }
    }
}

impl Hop {
    fn enqueue(&mut self, at: Instant, frame: Frame, spare: &mut Spare) {
        self.line.enqueue(at, frame, &mut Watch { waits: &mut self.waits, spare });
        let backlog = self.line.queue().backlog();
        self.most_queued.packets = self.most_queued.packets.max(backlog.packets);
        self.most_queued.bytes = self.most_queued.bytes.max(backlog.bytes);
    }

    fn report(&self) -> HopReport {
        let mut in_flight = Count::default();
        self.line.in_flight().for_each(|frame| in_flight.add(frame));
        let mut queue_counters = Vec::new();
        self.line.queue().counters(&mut |Counter { path, kind, name, value }| {
            queue_counters.push(CounterValue { path: path.to_owned(), kind, name, value });
        });
        HopReport {
            name: self.name.clone(),
            line: self.line.stats().clone(),
            cells: self.line.cells(),
            queued: self.line.queue().backlog(),
            in_flight,
            queue_counters,
            most_queued: self.most_queued,
            waited: self.waits.all.clone(),
            acks_waited: self.waits.acks.clone(),
        }
    }
}

/// Memory of packets that are gone.
struct Spare(Vec<Vec<u8>>);

impl Spare {
    fn recycle(&mut self, frame: Frame) {
        if self.0.len() < SPARE_BUFFERS {
            self.0.push(frame.into_bytes());
        }
    }
}

/// How long packets waited in a queue, in nanoseconds: all of them, and pure ACKs.
struct Waits {
    all: Histogram<u64>,
    acks: Histogram<u64>,
}

/// Watches a line: how long packets wait in its queue, and what becomes of the memory of those it drops.
struct Watch<'a> {
    waits: &'a mut Waits,
    spare: &'a mut Spare,
}

impl DropSink<Frame> for Watch<'_> {
    /// The line has counted the packet, with its reason.
    fn dropped(&mut self, _now: Instant, packet: Frame, _reason: DropReason) {
        self.spare.recycle(packet);
    }
}

impl Observer<Frame> for Watch<'_> {
    fn transmitted(&mut self, _start: Instant, _end: Instant, waited: Duration, packet: &Frame) {
        self.waits.all.saturating_record(waited.as_ns());
        if packet.meta().is_pure_ack() {
            self.waits.acks.saturating_record(waited.as_ns());
        }
    }
}

/// Nanoseconds up to an hour, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, 3).expect("bounds and digits in range")
}

#[cfg(test)]
mod tests;
