//! A stage: output ports that share a memory, and all that comes to them, merged by time.
//!
//! What a cell finds depends on the cells before it at the ports of its memory and on nothing else. So a stage takes what its inputs
//! hold up to some time, in the order of time (of equal picoseconds, in that of its inputs), and needs no event for a cell. The front run
//! of the earliest input goes on until another input has something: all its cells by then are handled together.
//! Cost: a heap of the inputs that hold something.

use super::connection::{Connection, NONE};
use super::fifo::Fifo;
use super::run::{Fabric, LOW, Run};
use super::scheduled::Scheduled;
use crate::discard::CellDrop;
use crate::policer::{Policer, Verdict};
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(super) enum Port {
    Fifo(Fifo),
    Scheduled(Scheduled),
}

#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Streams.
    pub(super) inputs: Vec<u32>,
    /// A heap: when which input has something.
    heads: Vec<Head>,
    /// By label.
    pub(super) connections: Vec<Connection>,
    pub(super) ports: Vec<Port>,
    pub(super) policers: Vec<Policer>,
    /// Cells that wait at all ports.
    pub(super) memory: u32,
}

/// The picosecond in which an input has something, and which.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Head {
    ps: u64,
    input: u32,
}

impl Stage {
    /// Handles all that comes in picosecond `until` or before, and starts what starts by then.
    pub(super) fn process(&mut self, own: usize, until: u64, fabric: &mut Fabric) {
        while let Some(input) = fabric.woken[own].pop() {
            let ps = fabric.streams[self.inputs[input as usize] as usize].front_ps().expect("woken by a run");
            self.heads.push(Head { ps, input });
            self.sift_up(self.heads.len() - 1);
        }
        while let Some(&Head { ps, input }) = self.heads.first()
            && ps <= until
        {
            let bound = match self.rival() {
                Some(rival) if rival.input > input => until.min(rival.ps),
                Some(rival) => until.min(rival.ps - 1),
                None => until,
            };
            let (run, next) = fabric.take(self.inputs[input as usize], bound);
            match next {
                Some(ps) => {
                    self.heads[0].ps = ps;
                    self.sift_down();
                }
                None => {
                    self.heads.swap_remove(0);
                    self.sift_down();
                }
            }
            let spacing = fabric.spacings[run.class as usize];
            self.receive(run, spacing, fabric);
        }
        self.finish(own, until, fabric);
    }

    fn finish(&mut self, own: usize, until: u64, fabric: &mut Fabric) {
        let mut next = self.heads.first().map_or(u64::MAX, |head| head.ps);
        let now = Moment::from_parts(until, u32::MAX);
        for port in &mut self.ports {
            if let Port::Scheduled(port) = port {
                self.memory -= port.serve(now, &mut self.connections, fabric);
                if port.waiting > 0 {
                    next = next.min(port.free.ps());
                }
            }
        }
        fabric.next[own] = next;
    }

    /// Before when no frame that waits at a scheduler here is at the far end. `None`: no such frame waits.
    pub(super) fn bound(&self) -> Option<u64> {
        let waiting = self.ports.iter().filter_map(|port| match port {
            Port::Scheduled(port) if port.ends > 0 => Some(port.free.ps().saturating_add(port.remaining)),
            _ => None,
        });
        waiting.min()
    }

    /// True for a stage with a scheduler at some port.
    pub(super) fn schedules(&self) -> bool {
        self.ports.iter().any(|port| matches!(port, Port::Scheduled(_)))
    }

    /// The second of the heap.
    #[inline]
    fn rival(&self) -> Option<Head> {
        match *self.heads {
            [_, one, other, ..] => Some(one.min(other)),
            [_, one] => Some(one),
            _ => None,
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heads[parent] <= self.heads[at] {
                return;
            }
            self.heads.swap(parent, at);
            at = parent;
        }
    }

    /// Lets the first find its place.
    #[inline]
    fn sift_down(&mut self) {
        let heads = &mut self.heads[..];
        let Some(&moving) = heads.first() else { return };
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < heads.len() && heads[child + 1] < heads[child] {
                child += 1;
            }
            if child >= heads.len() || moving <= heads[child] {
                break;
            }
            heads[at] = heads[child];
            at = child;
        }
        heads[at] = moving;
    }

    #[inline]
    fn receive(&mut self, run: Run, spacing: Spacing, fabric: &mut Fabric) {
        let connection = &mut self.connections[run.label as usize];
        connection.arrived += u64::from(run.cells);
        connection.arrived_low += if run.low() { u64::from(run.cells) } else { 0 };
        let (own, path) = (connection.policer, connection.path_policer);
        self.police(run, spacing, [own, path], fabric);
    }

    /// Asks the policers, the first before the second; what they let through goes on.
    #[inline]
    fn police(&mut self, mut run: Run, spacing: Spacing, policers: [u16; 2], fabric: &mut Fabric) {
        let [policer, next] = policers;
        if policer == NONE {
            return if next == NONE {
                self.forward(run, spacing, fabric);
            } else {
                self.police(run, spacing, [next, NONE], fabric);
            };
        }
        loop {
            let (verdict, cells) =
                self.policers[policer as usize].police_run(run.at(), spacing, run.cells, run.low(), run.ends());
            let done = cells == run.cells;
            let mut piece = if done { run } else { run.split(cells, spacing) };
            match verdict {
                Verdict::Pass => {}
                Verdict::Tag => {
                    piece.flags |= LOW;
                    self.connections[run.label as usize].tagged += u64::from(cells);
                }
                Verdict::DropPeak => self.drop(piece, spacing, CellDrop::PeakRate, fabric),
                Verdict::DropSustainable => self.drop(piece, spacing, CellDrop::SustainableRate, fabric),
                Verdict::DropFrame => self.drop(piece, spacing, CellDrop::FrameConformance, fabric),
            }
            if matches!(verdict, Verdict::Pass | Verdict::Tag) {
                self.police(piece, spacing, [next, NONE], fabric);
            }
            if done {
                return;
            }
        }
    }

    /// To the queue.
    #[inline]
    fn forward(&mut self, mut run: Run, spacing: Spacing, fabric: &mut Fabric) {
        let port = self.connections[run.label as usize].port as usize;
        loop {
            self.settle(run.at(), fabric);
            let connection = &mut self.connections[run.label as usize];
            let (seen, most, rules) = match &self.ports[port] {
                Port::Fifo(port) => (port.seen(connection, self.memory), port.at_once(&run, spacing), &port.rules),
                Port::Scheduled(port) => {
                    let rules = &port.queues[connection.queue as usize].rules;
                    (port.seen(connection, self.memory), port.at_once(&run, spacing), rules)
                }
            };
            let ends = run.ends() && most == run.cells;
            let (cells, refused) = rules.admit_run(&mut connection.state, &seen, (most, ends, run.low()));
            let done = cells == run.cells;
            let piece = if done { run } else { run.split(cells, spacing) };
            match (refused, &mut self.ports[port]) {
                (Some(reason), _) => self.drop(piece, spacing, reason, fabric),
                (None, Port::Fifo(port)) => {
                    let more = port.accept(piece, spacing, &mut self.connections, fabric);
                    self.memory = self.memory.wrapping_add_signed(more as i32);
                }
                (None, Port::Scheduled(port)) => {
                    let more = port.accept(piece, spacing, &mut self.connections, fabric);
                    self.memory = self.memory.wrapping_add_signed(more as i32);
                }
            }
            if done {
                return;
            }
        }
    }

    /// Brings all ports up to date.
    #[inline]
    pub(super) fn settle(&mut self, now: Moment, fabric: &mut Fabric) {
        for port in &mut self.ports {
            self.memory -= match port {
                Port::Fifo(port) => port.drain(now, &mut self.connections),
                Port::Scheduled(port) => port.serve(now, &mut self.connections, fabric),
            };
        }
    }

    #[cold]
    fn drop(&mut self, run: Run, spacing: Spacing, reason: CellDrop, fabric: &mut Fabric) {
        let connection = &mut self.connections[run.label as usize];
        connection.dropped[reason.index()] += u64::from(run.cells);
        connection.dropped_low += if run.low() { u64::from(run.cells) } else { 0 };
        let ps = [run.at().ps(), run.last_at(spacing).ps()];
        fabric.frames.drop_cells(run.frame, run.cells, reason, ps);
    }
}
