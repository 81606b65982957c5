//! The cost of a packet in each discipline, with few flows and with many: nanoseconds, and
//! instructions if they can be counted.
//!
//! Every discipline gets equal packets: a constant number wait, from every flow, and each arrival
//! releases one. Time advances by a fixed step per packet, and in a shaper without tokens until a
//! packet can be sent. ACK regulators are also measured with a load of ACKs only.

use std::hint::black_box;
use std::time::Instant as Clock;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Meta, SeqNumber, TcpFlags};
use lastmile_queueing::random::Stream;
use lastmile_queueing::{Backlog, Discipline as _, DropReason, DropSink, Environment, Node, Spec};
use lastmile_units::{Duration, Instant};

use crate::costs::{self, Cost};
use crate::disciplines::{self, Load, SIZES};
use crate::measurement::Measurement;

const FLOWS: [u32; 3] = [1, 100, 10_000];
/// Packets that wait, if the discipline allows it: two of each flow in the case with most flows.
const STANDING: u64 = 20_000;
/// Time between two packets: with packets of [`SIZES`] a line of cells at 1.3 Gbit/s, and a delay
/// of 100 ms.
const STEP: Duration = Duration::from_us(5);
/// Packets before the measurement: until the initial backlog has departed, and CoDel's first
/// interval is over.
const WARM_UP: u64 = 2 * STANDING;
const BATCH: u64 = 10_000;
const BATCHES: u32 = 20;
const SEGMENT: u32 = 1460;

pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    for row in disciplines::all() {
        for load in row.loads {
            names.extend(FLOWS.map(|flows| name(row.name, *load, flows)));
        }
    }
    names
}

fn name(discipline: &str, load: Load, flows: u32) -> String {
    let plural = if flows == 1 { "" } else { "s" };
    format!("queue: {discipline}, {}, at {flows} flow{plural}", load.name())
}

/// `brief` selects one batch, for counting instructions.
pub(crate) fn run(wanted: &str, brief: bool) -> Option<Measurement> {
    let (row, load, flows) = disciplines::all().into_iter().find_map(|row| {
        let each = row.loads.iter().flat_map(|load| FLOWS.map(|flows| (*load, flows)));
        let (load, flows) = each.into_iter().find(|(load, flows)| name(row.name, *load, *flows) == wanted)?;
        Some((row, load, flows))
    })?;
    let mut served = Served::new(&(row.spec)(flows), load, flows);
    served.fill();
    warm_up(&mut served);
    let mut wall_s = f64::INFINITY;
    for _ in 0..if brief { 1 } else { BATCHES } {
        let clock = Clock::now();
        serve_a_batch(&mut served);
        wall_s = wall_s.min(clock.elapsed().as_secs_f64());
    }
    let cost = Cost {
        what: row.name.to_owned(),
        load: load.name().to_owned(),
        flows,
        ns_per_packet: wall_s * 1e9 / BATCH as f64,
        instructions_per_packet: None,
    };
    Some(Measurement { queue: Some(cost), ..Measurement::of_events(wanted, wall_s, BATCH) })
}

/// The function whose instructions count.
pub(crate) const COUNTED: &str = "lastmile_bench::queues::serve_a_batch";

/// Instructions per packet, from those of one batch.
pub(crate) fn per_packet(instructions: u64) -> f64 {
    instructions as f64 / BATCH as f64
}

// A function of its own, so that callgrind can count its instructions separately.
#[inline(never)]
fn serve_a_batch(served: &mut Served) {
    for _ in 0..BATCH {
        served.serve();
    }
}

fn warm_up(served: &mut Served) {
    for _ in 0..WARM_UP {
        served.serve();
    }
}

/// A discipline, and the flows that send through it.
struct Served {
    queue: Node<Meta>,
    load: Load,
    flows: u32,
    sizes: Vec<u16>,
    now: Instant,
    came: u64,
}

struct Nobody;

impl DropSink<Meta> for Nobody {
    fn dropped(&mut self, _now: Instant, packet: Meta, _reason: DropReason) {
        black_box(&packet);
    }
}

impl Served {
    fn new(spec: &Spec, load: Load, flows: u32) -> Self {
        let mut random = Stream::new(1, "sizes");
        let sizes = (0..4096).map(|_| SIZES[random.below(SIZES.len() as u64) as usize]).collect();
        let line = LinkLayer::from_name("ipoa-llcsnap").expect("a preset");
        let queue = spec.build_in(&Environment::new(line)).expect("a tree that can be built");
        Self { queue, load, flows, sizes, now: Instant::ZERO, came: 0 }
    }

    fn fill(&mut self) {
        for _ in 0..STANDING {
            let packet = self.packet();
            self.queue.enqueue(self.now, packet, &mut Nobody);
        }
    }

    /// One packet arrives, and the backlog above the limit departs. If packets are dropped in
    /// favour of others, so that the backlog shrinks, one departs for every two arrivals.
    fn serve(&mut self) {
        self.now += STEP;
        let packet = self.packet();
        self.queue.enqueue(self.now, packet, &mut Nobody);
        if self.came.is_multiple_of(2) {
            self.send();
        }
        while self.waiting() > STANDING {
            self.send();
        }
    }

    fn send(&mut self) {
        loop {
            if let Some(packet) = self.queue.dequeue(self.now, &mut Nobody) {
                black_box(&packet);
                return;
            }
            match self.queue.next_ready(self.now) {
                Some(ready) if ready > self.now => self.now = ready,
                _ => return,
            }
        }
    }

    fn waiting(&self) -> u64 {
        let Backlog { packets, .. } = self.queue.backlog();
        packets.as_u64()
    }

    /// The next packet. The flows send in a scattered order, not by their numbers.
    fn packet(&mut self) -> Meta {
        const STRIDE: u64 = 7_919;
        let flows = u64::from(self.flows);
        let (turn, flow) = (self.came / flows, self.came * STRIDE % flows);
        let number = SeqNumber::new((turn as u32).wrapping_mul(SEGMENT));
        // A flow of pure ACKs has a constant sequence number.
        let (ip_len, seq) = match self.load {
            Load::Mixed => (self.sizes[self.came as usize % self.sizes.len()], number),
            Load::Acks => (SIZES[0], SeqNumber::new(0)),
        };
        self.came += 1;
        Meta {
            arrived: self.now,
            flow: FlowId::new(flow as u32),
            seq,
            ack: number,
            window: 8_000,
            flags: TcpFlags::ACK,
            header_len: 40,
            ip_len,
            ..Meta::default()
        }
    }
}

/// One row for each discipline and load, with a column per number of flows.
pub(crate) fn print_table(rows: &[Measurement]) {
    let costs: Vec<&Cost> = rows.iter().filter_map(|row| row.queue.as_ref()).collect();
    let legend = format!(
        "a packet in and a packet out, by the number of flows; {STANDING} packets wait; mixed: 40, 576 and 1500 bytes, \
         acks: pure ACKs"
    );
    costs::print_table(&costs, ["discipline", "load"], FLOWS, &legend);
}
