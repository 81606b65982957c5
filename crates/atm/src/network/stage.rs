//! A stage: output ports that share a memory, and all that comes to them, merged by time.
//!
//! What a cell finds depends on the cells before it at the ports of its memory and on nothing else. So a stage takes what its inputs
//! hold up to some time, in the order of time (of equal picoseconds, in that of its inputs), and needs no event for a cell. The front run
//! of the earliest input goes on until another input has something: all its cells by then are handled together.
//! Ports at which nothing waits are not looked at. Cost: see `heads`.

use super::abr::Watch;
use super::connection::{Connection, NONE};
use super::fifo::Fifo;
use super::heads::{Head, Heads};
use super::run::{Fabric, Run};
use super::scheduled::Scheduled;
use crate::discard::{CellDrop, Occupancy, Rules};
use crate::policer::{Policer, Verdict};
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(super) enum Port {
    Fifo(Fifo),
    Scheduled(Scheduled),
}

/// What a port does with a run of cells, whatever waits how.
pub(super) trait Output {
    /// What a cell of a VC finds, and what is dropped by that.
    fn seen(&self, connection: &Connection, memory: u32) -> (Occupancy, &Rules);

    /// How many cells of a run may be judged together.
    fn at_once(&self, run: &Run, spacing: Spacing) -> u16;

    /// Lets in a cell. Gives how many cells wait more than before, one or none.
    fn accept_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) -> u32;

    /// Lets in a run. Gives how many cells wait more than before.
    fn accept(&mut self, run: Run, spacing: Spacing, connections: &mut [Connection], fabric: &mut Fabric) -> i64;

    /// Cells that wait.
    fn waiting(&self) -> u32;
}

#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Streams.
    pub(super) inputs: Vec<u32>,
    heads: Heads,
    /// By label.
    pub(super) connections: Vec<Connection>,
    pub(super) ports: Vec<Port>,
    /// Ports at which something waits, or did when last looked at.
    busy: Vec<u16>,
    pub(super) policers: Vec<Policer>,
    /// Cells that wait at all ports.
    memory: u32,
    /// Where the network has ABR.
    pub(super) watch: Option<Box<Watch>>,
}

impl Stage {
    /// Handles all that comes in picosecond `until` or before, and starts what starts by then.
    pub(super) fn process(&mut self, own: usize, until: u64, fabric: &mut Fabric) {
        while let Some(input) = fabric.woken[own].pop() {
            let ps = fabric.streams[self.inputs[input as usize] as usize].front_ps().expect("woken by a run");
            self.heads.add(Head { ps, input });
        }
        while let Some(Head { ps, input }) = self.heads.first()
            && ps <= until
        {
            let bound = match self.heads.second() {
                Some(rival) if rival.input > input => until.min(rival.ps),
                Some(rival) => until.min(rival.ps - 1),
                None => until,
            };
            let (run, next) = fabric.take(self.inputs[input as usize], bound);
            match next {
                Some(ps) => self.heads.replace_first(ps),
                None => self.heads.remove_first(),
            }
            self.receive(run, fabric);
        }
        self.finish(own, until, fabric);
    }

    fn finish(&mut self, own: usize, until: u64, fabric: &mut Fabric) {
        let mut next = self.heads.first().map_or(u64::MAX, |head| head.ps);
        let now = Moment::from_parts(until, u32::MAX);
        for port in &self.busy {
            if let Port::Scheduled(port) = &mut self.ports[*port as usize] {
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
        let waiting = self.busy.iter().filter_map(|port| match &self.ports[*port as usize] {
            Port::Scheduled(port) => port.bound(),
            Port::Fifo(_) => None,
        });
        waiting.min()
    }

    /// True for a stage with a scheduler at some port.
    pub(super) fn schedules(&self) -> bool {
        self.ports.iter().any(|port| matches!(port, Port::Scheduled(_)))
    }

    #[inline]
    fn receive(&mut self, run: Run, fabric: &mut Fabric) {
        let connection = &mut self.connections[run.label() as usize];
        connection.arrived += u64::from(run.cells());
        connection.arrived_low += if run.low() { u64::from(run.cells()) } else { 0 };
        let (own, path) = (connection.policer, connection.path_policer);
        if let Some(watch) = &mut self.watch {
            watch.answer(&run, |label| self.connections[label as usize].port, fabric);
        }
        if run.cells() == 1 && own == NONE && path == NONE {
            return self.forward_cell(run, fabric);
        }
        let spacing = fabric.spacings[run.class() as usize];
        match (own, path) {
            (NONE, NONE) => self.forward(run, spacing, fabric),
            (NONE, path) => self.police(run, spacing, [path, NONE], fabric),
            policers => self.police(run, spacing, policers.into(), fabric),
        }
    }

    /// Asks the policers, the first before the second; what they let through goes on.
    fn police(&mut self, mut run: Run, spacing: Spacing, policers: [u16; 2], fabric: &mut Fabric) {
        let [policer, next] = policers;
        loop {
            let (verdict, cells) =
                self.policers[policer as usize].police_run(run.at(), spacing, run.cells(), run.low(), run.ends());
            let done = cells == run.cells();
            let mut piece = if done { run } else { run.split(cells, spacing) };
            let refused = match verdict {
                Verdict::Pass => None,
                Verdict::Tag => {
                    piece.set_low();
                    self.connections[run.label() as usize].tagged += u64::from(cells);
                    None
                }
                Verdict::DropPeak => Some(CellDrop::PeakRate),
                Verdict::DropSustainable => Some(CellDrop::SustainableRate),
                Verdict::DropFrame => Some(CellDrop::FrameConformance),
            };
            match refused {
                Some(reason) => {
                    drop(&mut self.connections[run.label() as usize], piece, spacing, reason, fabric);
                }
                None if next == NONE && cells == 1 => self.forward_cell(piece, fabric),
                None if next == NONE => self.forward(piece, spacing, fabric),
                None => self.police(piece, spacing, [next, NONE], fabric),
            }
            if done {
                return;
            }
        }
    }

    /// A cell to the queue: what [`Self::forward`] does, without what only runs need.
    #[inline]
    fn forward_cell(&mut self, cell: Run, fabric: &mut Fabric) {
        self.settle(cell.at(), fabric);
        let connection = &mut self.connections[cell.label() as usize];
        let port = connection.port;
        let found = (connection, self.memory);
        let (more, waiting) = match (&mut self.ports[port as usize], &mut self.watch) {
            (Port::Fifo(output), None) => admit_cell(output, cell, found, fabric),
            (Port::Scheduled(output), None) => admit_cell(output, cell, found, fabric),
            (Port::Fifo(output), Some(watch)) => admit_watched(output, cell, found, watch, fabric),
            (Port::Scheduled(output), Some(watch)) => admit_watched(output, cell, found, watch, fabric),
        };
        self.memory += more;
        // With none before it, it was not among the busy ones.
        if more > 0 && waiting == 1 {
            self.busy.push(port);
        }
    }

    /// To the queue.
    fn forward(&mut self, mut run: Run, spacing: Spacing, fabric: &mut Fabric) {
        let port = self.connections[run.label() as usize].port;
        loop {
            self.settle(run.at(), fabric);
            let (connections, memory) = (&mut self.connections, &mut self.memory);
            let (done, busy) = match &mut self.ports[port as usize] {
                Port::Fifo(output) => admit(output, &mut run, spacing, (connections, memory), fabric),
                Port::Scheduled(output) => admit(output, &mut run, spacing, (connections, memory), fabric),
            };
            if busy && !self.busy.contains(&port) {
                self.busy.push(port);
            }
            if done {
                return;
            }
        }
    }

    /// Brings all ports up to date.
    #[inline]
    fn settle(&mut self, now: Moment, fabric: &mut Fabric) {
        let mut place = 0;
        while let Some(port) = self.busy.get(place) {
            let (left, waiting) = match &mut self.ports[*port as usize] {
                Port::Fifo(port) => (port.drain(now, &mut self.connections), port.waiting),
                Port::Scheduled(port) => (port.serve(now, &mut self.connections, fabric), port.waiting),
            };
            self.memory -= left;
            if waiting == 0 {
                self.busy.swap_remove(place);
            } else {
                place += 1;
            }
        }
    }
}

/// Judges a cell, and lets it in or drops it. Gives how many cells wait more than before, and how many do.
#[inline]
fn admit_cell(
    output: &mut impl Output,
    cell: Run,
    (connection, memory): (&mut Connection, u32),
    fabric: &mut Fabric,
) -> (u32, u32) {
    let (seen, rules) = output.seen(connection, memory);
    let refused = rules.admit(&mut connection.state, &seen, cell.ends(), cell.low());
    enter(output, cell, refused, connection, fabric)
}

/// The same where a network has ABR: ports watch cells and may mark them, and RM cells are of no frame.
fn admit_watched(
    output: &mut impl Output,
    mut cell: Run,
    (connection, memory): (&mut Connection, u32),
    watch: &mut Watch,
    fabric: &mut Fabric,
) -> (u32, u32) {
    let memory = if watch.apart { output.waiting() } else { memory };
    let (seen, rules) = output.seen(connection, memory);
    if watch.arrives(&cell, connection.port, seen.queue, fabric) {
        cell.set_efci();
    }
    let refused = if cell.rm() {
        rules.full(&seen, false)
    } else {
        rules.admit(&mut connection.state, &seen, cell.ends(), cell.low())
    };
    enter(output, cell, refused, connection, fabric)
}

#[inline]
fn enter(
    output: &mut impl Output,
    cell: Run,
    refused: Option<CellDrop>,
    connection: &mut Connection,
    fabric: &mut Fabric,
) -> (u32, u32) {
    let more = match refused {
        None => output.accept_cell(cell, connection, fabric),
        Some(reason) => {
            drop(connection, cell, Spacing::ZERO, reason, fabric);
            0
        }
    };
    (more, output.waiting())
}

/// Judges the first cells of a run, and lets them in or drops them. True if nothing is left of it; and if something waits.
#[inline]
fn admit(
    output: &mut impl Output,
    run: &mut Run,
    spacing: Spacing,
    (connections, memory): (&mut [Connection], &mut u32),
    fabric: &mut Fabric,
) -> (bool, bool) {
    let connection = &mut connections[run.label() as usize];
    let most = output.at_once(run, spacing);
    let (seen, rules) = output.seen(connection, *memory);
    let ends = run.ends() && most == run.cells();
    let (cells, refused) = rules.admit_run(&mut connection.state, &seen, (most, ends, run.low()));
    let done = cells == run.cells();
    let piece = if done { *run } else { run.split(cells, spacing) };
    if let Some(reason) = refused {
        drop(connection, piece, spacing, reason, fabric);
    } else {
        let more = output.accept(piece, spacing, connections, fabric);
        *memory = memory.wrapping_add_signed(more as i32);
    }
    (done, output.waiting() > 0)
}

#[cold]
fn drop(connection: &mut Connection, run: Run, spacing: Spacing, reason: CellDrop, fabric: &mut Fabric) {
    connection.dropped[reason.index()] += u64::from(run.cells());
    connection.dropped_low += if run.low() { u64::from(run.cells()) } else { 0 };
    if run.rm() {
        fabric.rms.remove(run.frame);
        return;
    }
    let ps = [run.at().ps(), run.last_at(spacing).ps()];
    fabric.frames.drop_cells(run.frame, run.cells(), reason, ps);
}
