//! A port with one queue or several, against an independent model: lists of cells that are counted
//! anew for every arrival.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lastmile_atm::discard::{FrameState, Occupancy, Rules, Scheme};
use lastmile_atm::network::ClassSpec;
use lastmile_atm::time::{Moment, Spacing};
use lastmile_atm::{
    CellDrop, Departure, Discard, Fate, LinkSpec, Network, NetworkSpec, QueueSpec, Queues, VcId, VcSpec,
};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};
use proptest::prelude::*;

/// Rate of senders: a cell every 10 us, which arrives at the trunk after 5 us.
const PCR: BitRate = BitRate::from_kbit_per_s(42_400);
const LINK: BitRate = BitRate::from_kbit_per_s(84_800);

#[derive(Clone, Debug)]
struct Frame {
    vc: usize,
    at: Instant,
    cells: u64,
}

#[derive(Clone, PartialEq, Debug)]
struct Outcome {
    /// By VC: cells dropped by reason, and when frames arrived whole, ps.
    vcs: Vec<([u64; CellDrop::ALL.len()], Vec<u64>)>,
    /// The most cells that ever waited in a class.
    peak: u64,
}

/// The trunk. VCs have its classes in turn.
#[derive(Clone)]
struct Trunk {
    rate: BitRate,
    /// One: a FIFO.
    classes: Vec<ClassSpec>,
    /// Its memory has room for all, but is that of another port, too.
    shared: bool,
}

/// The simulation, all at once or from one event to the next; no frame arrives before the announced
/// time.
fn simulated(trains: bool, by_event: bool, vcs: usize, trunk: &Trunk, frames: &[Frame]) -> Outcome {
    let mut spec = NetworkSpec { trains, ..NetworkSpec::new() };
    let near = if trunk.shared { spec.shared_memory_node("near", CellCount::new(1_000)) } else { spec.node("near") };
    let far = spec.node("far");
    let queues = match trunk.classes[..] {
        [class] => Queues::Fifo(class.queue),
        ref classes => Queues::Classes(classes.to_vec()),
    };
    let at = spec.link(LinkSpec::new(near, far, trunk.rate, Duration::ZERO).with_queues(queues));
    let other = spec.node("other");
    spec.link(LinkSpec::new(near, other, trunk.rate, Duration::ZERO));
    let ids: Vec<_> = (0..vcs)
        .map(|vc| {
            let [sender, receiver] = [format!("sender {vc}"), format!("receiver {vc}")];
            let (from, to) = (spec.node(sender.clone()), spec.node(receiver.clone()));
            spec.link(LinkSpec::new(from, near, LINK, Duration::ZERO));
            spec.link(LinkSpec::new(far, to, LINK, Duration::ZERO));
            let route = spec.route(&[&sender, "near", "far", &receiver]).expect("links");
            let class = vc % trunk.classes.len();
            spec.vc(VcSpec { pcr: Some(PCR), class, ..VcSpec::new(sender, 32 + vc as u16, route) })
        })
        .collect();
    let mut network = Network::new(&spec).expect("a network");
    for frame in frames {
        network.offer(frame.at, ids[frame.vc], ByteCount::new(48 * frame.cells - 16), 0).expect("a packet that fits");
    }
    let mut left: Vec<Departure> = Vec::new();
    while by_event && let Some(next) = network.next_event() {
        let before = left.len();
        network.advance(next);
        network.departures(&mut left);
        assert!(left[before..].iter().all(|gone| gone.fate != Fate::Whole || gone.at >= next), "before {next}");
    }
    network.advance(Instant::ZERO + Duration::from_s(10));
    network.departures(&mut left);
    let whole =
        |id| left.iter().filter(move |gone| gone.vc == id && gone.fate == Fate::Whole).map(|gone| gone.at.as_ps());
    let of_vc = |id: &VcId| (network.hop_stats(*id, 1).dropped, whole(*id).collect());
    Outcome { vcs: ids.iter().map(of_vc).collect(), peak: network.link_stats(at).peak }
}

/// A cell: its VC, its frame, and whether it is the last.
#[derive(Clone, Copy)]
struct Cell {
    vc: usize,
    frame: usize,
    last: bool,
}

/// A class of the trunk.
struct Class {
    rules: Rules,
    waiting: VecDeque<Cell>,
    priority: u8,
    /// Tags (self-clocked fair queueing): how far apart they are, of the next cell, and of the last
    /// that was sent.
    step: u64,
    tag: u64,
    finish: u64,
}

/// The trunk, cell by cell.
struct Listed<'a> {
    frames: &'a [Frame],
    interval: Spacing,
    classes: Vec<Class>,
    /// By priority: the tag of the last cell that was sent.
    clocks: BTreeMap<u8, u64>,
    free: Moment,
    /// By VC: of which frames cells have come since one ended.
    received: Vec<Vec<usize>>,
    outcome: Outcome,
}

impl Listed<'_> {
    fn first_tag(&mut self, class: usize) {
        let Class { step, finish, priority, .. } = self.classes[class];
        self.classes[class].tag = finish.max(*self.clocks.entry(priority).or_default()) + step;
    }

    /// A cell of a class starts, and comes to its far end.
    fn start(&mut self, class: usize, cell: Cell, at: Moment) {
        self.free = at.plus(self.interval);
        let arrived = self.free.plus(Spacing::of_cell(LINK)).ps();
        let class = &mut self.classes[class];
        class.finish = class.tag;
        self.clocks.insert(class.priority, class.tag);
        class.tag += class.step;
        let received = &mut self.received[cell.vc];
        received.push(cell.frame);
        if cell.last {
            let cells = std::mem::take(received);
            if cells.len() as u64 == self.frames[cell.frame].cells && cells.iter().all(|frame| *frame == cell.frame) {
                self.outcome.vcs[cell.vc].1.push(arrived);
            }
        }
    }

    /// Starts all transmissions that are due by `now`.
    fn serve(&mut self, now: Moment) {
        while self.free <= now {
            let classes = self.classes.iter().enumerate().filter(|(_, class)| !class.waiting.is_empty());
            let Some((index, _)) = classes.min_by_key(|(index, class)| (class.priority, class.tag, *index)) else {
                return;
            };
            let cell = self.classes[index].waiting.pop_front().expect("one waits");
            self.start(index, cell, self.free);
        }
    }

    fn comes(&mut self, at: Moment, cell: Cell, state: &mut FrameState) {
        self.serve(at);
        let memory = self.classes.iter().map(|class| class.waiting.len() as u32).sum();
        let index = cell.vc % self.classes.len();
        let class = &mut self.classes[index];
        let waiting = &class.waiting;
        let seen = Occupancy {
            queue: waiting.len() as u32,
            memory,
            vc: waiting.iter().filter(|other| other.vc == cell.vc).count() as u32,
            active: waiting.iter().map(|other| other.vc).collect::<BTreeSet<_>>().len() as u32,
        };
        if let Some(reason) = class.rules.admit(state, &seen, cell.last, false) {
            self.outcome.vcs[cell.vc].0[reason.index()] += 1;
        } else if memory == 0 && at >= self.free {
            self.first_tag(index);
            self.start(index, cell, at);
        } else {
            class.waiting.push_back(cell);
            self.outcome.peak = self.outcome.peak.max(class.waiting.len() as u64);
            if seen.queue == 0 {
                self.first_tag(index);
            }
        }
    }
}

fn listed(vcs: usize, trunk: &Trunk, frames: &[Frame]) -> Outcome {
    let mut free = vec![Moment::default(); vcs];
    let mut cells = Vec::new();
    for (number, frame) in frames.iter().enumerate() {
        let mut at = free[frame.vc].max(Moment::at(frame.at));
        for left in (0..frame.cells).rev() {
            cells.push((at.plus(Spacing::of_cell(LINK)), Cell { vc: frame.vc, frame: number, last: left == 0 }));
            at = at.plus(Spacing::of_cell(PCR));
        }
        free[frame.vc] = at;
    }
    // Cells of one time are in the order of their inputs.
    cells.sort_by_key(|(at, cell)| (*at, cell.vc));
    let class = |class: &ClassSpec| Class {
        rules: class.queue.discard.rules(class.queue.limit, None).expect("thresholds within the buffer"),
        waiting: VecDeque::new(),
        priority: class.priority,
        step: (1 << 28) / u64::from(class.weight),
        tag: 0,
        finish: 0,
    };
    let mut port = Listed {
        frames,
        interval: Spacing::of_cell(trunk.rate),
        classes: trunk.classes.iter().map(class).collect(),
        clocks: BTreeMap::new(),
        free: Moment::default(),
        received: vec![Vec::new(); vcs],
        outcome: Outcome { vcs: vec![Default::default(); vcs], peak: 0 },
    };
    let mut states = vec![FrameState::default(); vcs];
    for (at, cell) in cells {
        port.comes(at, cell, &mut states[cell.vc]);
    }
    port.serve(Moment::at(Instant::MAX));
    port.outcome
}

fn discards() -> impl Strategy<Value = Discard> {
    let sharing = prop_oneof![Just(None), (1..5_u32).prop_map(Some)];
    let numbers = (0..4_u8, prop_oneof![1..3_u64, 1..14_u64], 8..26_u64, prop_oneof![0..2_u64, 0..12_u64]);
    (numbers, sharing).prop_map(|((scheme, share, threshold, activation), vcs)| {
        let [epd_threshold, vc_threshold, activation] = [threshold, share, activation].map(CellCount::new);
        let scheme = match scheme {
            0 => Scheme::Tail,
            1 => Scheme::EpdPerVc { threshold: epd_threshold, vcs },
            _ => Scheme::Spd { epd_threshold, vc_threshold, activation },
        };
        Discard { scheme, ..Discard::default() }
    })
}

proptest! {
    /// Frames of one cell to forty on the grid on which cells come and leave, at a trunk that takes
    /// a cell in half the time of one, in that, or in longer.
    #[test]
    fn a_port_does_what_its_lists_tell(
        vcs in 2..6_usize,
        kbit_per_s in prop_oneof![Just(84_800_u64), Just(42_400), Just(21_200), Just(15_000), Just(2_120)],
        frames in prop::collection::vec(
            (0..6_usize, prop_oneof![2 => Just(0_u64), 2 => 0..30_u64, 2 => 0..900_u64, 1 => 0..9_000_u64], 1..40_u64),
            2..50,
        ),
        discard in discards(),
        // Weight and priority.
        classes in prop_oneof![1 => Just(None), 1 => prop::array::uniform3((1..6_u16, 0..2_u8)).prop_map(Some)],
        shared in any::<bool>(),
    ) {
        let queue = QueueSpec { limit: Some(CellCount::new(30)), discard };
        let class = |(weight, priority)| ClassSpec { queue, priority, weight };
        let classes = classes.map_or_else(|| vec![class((1, 0))], |classes| classes.map(class).to_vec());
        let trunk = Trunk { rate: BitRate::from_kbit_per_s(kbit_per_s), classes, shared };
        let mut at = Instant::ZERO;
        let frame = |(vc, gap_us, cells)| {
            at += Duration::from_us(gap_us);
            Frame { vc: vc % vcs, at, cells }
        };
        let frames: Vec<Frame> = frames.into_iter().map(frame).collect();
        let expected = listed(vcs, &trunk, &frames);
        for (trains, by_event) in [(false, false), (true, false), (true, true)] {
            let simulated = simulated(trains, by_event, vcs, &trunk, &frames);
            prop_assert_eq!(&simulated, &expected, "trains: {}, by event: {}", trains, by_event);
        }
    }
}

/// A cell arrives every 10 us and departs after 5 us. SPD drops the second frame of VC 3; of the
/// third, the cell of 90 us starts at 100 us, when the next arrives: for a moment no cell of the VC
/// waits. From then on its cells alternate with those of two others, and the backlog grows. So SPD
/// is armed, and drops the fourth frame.
#[test]
fn spd_takes_a_frame_again_when_a_queue_was_empty_only_between_two_cells() {
    let cells = CellCount::new;
    let scheme = Scheme::Spd { epd_threshold: cells(25), vc_threshold: cells(1), activation: cells(0) };
    let discard = Discard { scheme, ..Discard::default() };
    let queue = QueueSpec { limit: Some(cells(30)), discard };
    let class = ClassSpec { queue, priority: 0, weight: 1 };
    let trunk = Trunk { rate: LINK, classes: vec![class], shared: false };
    // VC, when its first cell comes, and how many.
    let frames =
        [(0, 0, 4), (1, 0, 4), (2, 0, 4), (3, 0, 2), (3, 20, 2), (3, 40, 20), (0, 92, 30), (1, 94, 30), (3, 240, 5)];
    let frames = frames.map(|(vc, us, cells)| Frame { vc, at: Instant::ZERO + Duration::from_us(us), cells });
    for trains in [false, true] {
        let outcome = simulated(trains, false, 4, &trunk, &frames);
        let dropped = |vc: usize| outcome.vcs[vc].0[CellDrop::Spd.index()];
        // Last cells pass.
        assert_eq!([0, 1, 2, 3].map(dropped), [0, 0, 0, 1 + 4], "trains: {trains}");
        assert_eq!(outcome, listed(4, &trunk, &frames));
    }
}
