//! The line between two ports, apart from all input and output: time and packets come in with every call.
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
use lastmile_queueing::{Counter, random::Stream};
use lastmile_units::{Duration, Instant};

use super::{CounterValue, DirectionConfig, DirectionReport};
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
    /// From the client to the server.
    pub up: DirectionConfig,
    /// From the server to the client.
    pub down: DirectionConfig,
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
        let direction = |direction: &DirectionConfig, name| Direction::new(direction, Stream::new(config.seed, name));
        Ok(Self {
            up: direction(&config.up, "up")?,
            down: direction(&config.down, "down")?,
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

/// One direction: a line, and the counters around it.
struct Direction {
    line: Line<Frame>,
    /// The latest time that the line has been told. It never goes back.
    latest: Instant,
    received: Count,
    oversize: Count,
    unreadable: u64,
    unnumbered: u64,
    sent: Count,
    refused: [Count; Refusal::ALL.len()],
    lateness: Histogram<u64>,
    watch: Watch,
}

impl Direction {
    fn new(config: &DirectionConfig, losses: Stream) -> Result<Self, BuildError> {
        let queue = config.queue.build(&config.line.link_layer)?;
        Ok(Self {
            line: Line::new(&config.line, queue, losses),
            latest: Instant::ZERO,
            received: Count::default(),
            oversize: Count::default(),
            unreadable: 0,
            unnumbered: 0,
            sent: Count::default(),
            refused: Default::default(),
            lateness: histogram(),
            watch: Watch { waited: histogram(), spare: Vec::new() },
        })
    }

    fn next_wake(&self) -> Option<Instant> {
        [self.line.next_transmission(), self.line.next_arrival()].into_iter().flatten().min()
    }

    fn receive(&mut self, clock: &impl Clock, port: &mut impl Port, flows: &mut FlowTable, mtu: u16) -> io::Result<()> {
        let horizon = port.receive(clock, BATCH, &mut |arrived, bytes| self.take(arrived, bytes, flows, mtu))?;
        self.latest = self.latest.max(horizon);
        self.line.transmit(self.latest, &mut self.watch);
        Ok(())
    }

    fn take(&mut self, arrived: Instant, bytes: &[u8], flows: &mut FlowTable, mtu: u16) {
        self.received.packets += 1;
        self.received.bytes += bytes.len() as u64;
        if bytes.len() > usize::from(mtu) {
            self.oversize.packets += 1;
            self.oversize.bytes += bytes.len() as u64;
            return;
        }
        self.latest = self.latest.max(arrived);
        let mut buffer = self.watch.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let (mut frame, key) = Frame::new(buffer);
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
        self.line.enqueue(self.latest, frame, &mut self.watch);
    }

    fn send(&mut self, clock: &impl Clock, port: &mut impl Port) {
        while let Some(frame) = self.line.take_arrival(self.latest, &mut self.watch) {
            let due = frame.meta().arrived;
            let lateness = clock.now().since(due);
            self.lateness.saturating_record(lateness.as_ns());
            match port.send(frame.bytes()) {
                Ok(()) => self.sent.add(&frame),
                Err(refusal) => self.refused[refusal.index()].add(&frame),
            }
            self.watch.recycle(frame);
        }
    }

    fn report(&self) -> DirectionReport {
        let mut in_flight = Count::default();
        self.line.in_flight().for_each(|frame| in_flight.add(frame));
        let mut counters = Vec::new();
        self.line.queue().counters(&mut |Counter { path, kind, name, value }| {
            counters.push(CounterValue { path: path.to_owned(), kind, name, value });
        });
        DirectionReport {
            received: self.received,
            oversize: self.oversize,
            unreadable: self.unreadable,
            unnumbered: self.unnumbered,
            line: self.line.stats().clone(),
            cells: self.line.cells(),
            queued: self.line.queue().backlog(),
            in_flight,
            sent: self.sent,
            refused: self.refused,
            dropped_unread: 0,
            queue_counters: counters,
            waited: self.watch.waited.clone(),
            lateness: self.lateness.clone(),
        }
    }
}

/// Watches a line: how long packets wait in its queue, and what becomes of the memory of those it drops.
struct Watch {
    waited: Histogram<u64>,
    spare: Vec<Vec<u8>>,
}

impl Watch {
    fn recycle(&mut self, frame: Frame) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(frame.into_bytes());
        }
    }
}

impl DropSink<Frame> for Watch {
    /// The line has counted the packet, with its reason.
    fn dropped(&mut self, _now: Instant, packet: Frame, _reason: DropReason) {
        self.recycle(packet);
    }
}

impl Observer<Frame> for Watch {
    fn transmitted(&mut self, _start: Instant, _end: Instant, waited: Duration, _packet: &Frame) {
        self.waited.saturating_record(waited.as_ns());
    }
}

/// Nanoseconds up to an hour, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(3_600_000_000_000, 3).expect("bounds and digits in range")
}

#[cfg(test)]
mod tests;
