//! The ports of a stage: one that has its memory for itself, or several that share one.
//!
//! A cell alone takes a way of its own to the queue, without what only runs need. Of several ports those at which nothing waits are not looked at.

use super::abr::Watch;
use super::bundle::{Bundle, Bundled};
use super::connection::Connection;
use super::fabric::Fabric;
use super::fifo::Fifo;
use super::run::Run;
use super::scheduled::Scheduled;
use crate::discard::{CellDrop, Occupancy, Rules};
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(super) enum Port {
    Fifo(Fifo),
    Scheduled(Scheduled),
}

/// What a port does with cells, whatever waits how.
pub(super) trait Output {
    /// Starts what starts by `now`. Gives how many cells wait no longer.
    fn settle(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u32;

    /// Counts by VC whose cells have left, if a run asks for that: before it is judged.
    fn catch_up(&mut self, run: &Run, connections: &mut [Connection]);

    /// True if a cell may be let in before others that start by then have started: nothing would be decided or counted otherwise.
    fn may_come_first(&self, cell: &Run, connection: &Connection) -> bool;

    /// What a cell of a VC finds, and what is dropped by that.
    fn seen(&self, connection: &Connection, memory: u32) -> (Occupancy, &Rules);

    /// How many cells of a run may be judged together.
    fn at_once(&self, run: &Run, spacing: Spacing) -> u16;

    /// Lets in a cell. Gives how many cells wait more than before, one or none.
    fn accept_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) -> u32;

    /// Lets in a run. Gives how many cells wait more than before.
    fn accept(&mut self, run: Run, spacing: Spacing, connections: &mut [Connection], fabric: &mut Fabric) -> i64;

    /// Lets in trains side by side, if it can without a look at each cell.
    fn accept_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled;

    /// Cells that wait.
    fn waiting(&self) -> u32;

    /// Nothing more comes by `now`. Gives how many cells wait no longer, and in which picosecond there is something to do if nothing
    /// comes, `u64::MAX` for never.
    fn finish(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> (u32, u64);
}

/// The ports of a stage, as what comes to it knows them.
pub(super) trait Exit {
    /// Brings all ports up to date, before a run is let in; of one that has its memory for itself, as far as the run could tell.
    fn settle(&mut self, run: &Run, connections: &mut [Connection], fabric: &mut Fabric);

    /// Is told of what comes, before it is judged.
    fn comes(&mut self, run: &Run, connections: &[Connection], fabric: &mut Fabric);

    /// A cell to its queue: what [`Self::admit_run`] does, without what only runs need.
    fn admit_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric);

    /// A run to its queue.
    fn admit_run(&mut self, run: Run, connections: &mut [Connection], fabric: &mut Fabric);

    /// Trains side by side to their queues, if that needs no look at each cell.
    fn admit_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled;

    /// Nothing more comes by `now`. Tells in which picosecond there is something to do, `u64::MAX` for never.
    fn finish(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u64;
}

/// One port, in a memory of its own.
pub(super) struct Lone<'a, O>(pub(super) &'a mut O);

impl<O: Output> Exit for Lone<'_, O> {
    #[inline(always)]
    fn settle(&mut self, run: &Run, connections: &mut [Connection], fabric: &mut Fabric) {
        if run.cells() > 1 || !self.0.may_come_first(run, &connections[run.label() as usize]) {
            self.0.settle(run.at(), connections, fabric);
            self.0.catch_up(run, connections);
        }
    }

    #[inline]
    fn comes(&mut self, _: &Run, _: &[Connection], _: &mut Fabric) {}

    #[inline(always)]
    fn admit_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) {
        let memory = self.0.waiting();
        admit_cell(self.0, cell, (connection, memory), fabric);
    }

    fn admit_run(&mut self, mut run: Run, connections: &mut [Connection], fabric: &mut Fabric) {
        let spacing = fabric.spacings[run.class() as usize];
        loop {
            let mut memory = self.0.waiting();
            if admit(self.0, &mut run, spacing, (connections, &mut memory), fabric) {
                return;
            }
            self.0.settle(run.at(), connections, fabric);
            self.0.catch_up(&run, connections);
        }
    }

    fn admit_bundle(&mut self, bundle: &Bundle, connections: &mut [Connection], fabric: &mut Fabric) -> Bundled {
        self.0.accept_bundle(bundle, connections, fabric)
    }

    #[inline]
    fn finish(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u64 {
        self.0.finish(now, connections, fabric).1
    }
}

/// Several ports in one memory; or all of a node, where the network has ABR.
pub(super) struct Several<'a> {
    pub(super) ports: &'a mut [Port],
    /// Ports at which something waits, or did when last looked at.
    pub(super) busy: &'a mut Vec<u16>,
    /// Cells that wait at all ports.
    pub(super) memory: &'a mut u32,
    pub(super) watch: Option<&'a mut Watch>,
}

impl Several<'_> {
    /// A port has let something in.
    fn note(&mut self, port: u16) {
        if self.ports[port as usize].waiting() > 0 && !self.busy.contains(&port) {
            self.busy.push(port);
        }
    }
}

impl Exit for Several<'_> {
    fn settle(&mut self, run: &Run, connections: &mut [Connection], fabric: &mut Fabric) {
        let (now, mut place) = (run.at(), 0);
        while let Some(port) = self.busy.get(place) {
            let (left, waiting) = match &mut self.ports[*port as usize] {
                Port::Fifo(port) => (port.settle(now, connections, fabric), port.waiting),
                Port::Scheduled(port) => (port.settle(now, connections, fabric), port.waiting),
            };
            *self.memory -= left;
            if waiting == 0 {
                self.busy.swap_remove(place);
            } else {
                place += 1;
            }
        }
        let port = connections[run.label() as usize].port;
        if let Port::Fifo(port) = &mut self.ports[port as usize] {
            port.catch_up(run, connections);
        }
    }

    fn comes(&mut self, run: &Run, connections: &[Connection], fabric: &mut Fabric) {
        if let Some(watch) = &mut self.watch {
            watch.answer(run, |label| connections[label as usize].port, fabric);
        }
    }

    fn admit_cell(&mut self, cell: Run, connection: &mut Connection, fabric: &mut Fabric) {
        let port = connection.port;
        let found = (connection, *self.memory);
        let more = match (&mut self.ports[port as usize], &mut self.watch) {
            (Port::Fifo(output), None) => admit_cell(output, cell, found, fabric),
            (Port::Scheduled(output), None) => admit_cell(output, cell, found, fabric),
            (Port::Fifo(output), Some(watch)) => admit_watched(output, cell, found, watch, fabric),
            (Port::Scheduled(output), Some(watch)) => admit_watched(output, cell, found, watch, fabric),
        };
        *self.memory += more;
        if more > 0 {
            self.note(port);
        }
    }

    fn admit_run(&mut self, mut run: Run, connections: &mut [Connection], fabric: &mut Fabric) {
        let port = connections[run.label() as usize].port;
        let spacing = fabric.spacings[run.class() as usize];
        loop {
            let found = (&mut *connections, &mut *self.memory);
            let done = match &mut self.ports[port as usize] {
                Port::Fifo(output) => admit(output, &mut run, spacing, found, fabric),
                Port::Scheduled(output) => admit(output, &mut run, spacing, found, fabric),
            };
            self.note(port);
            if done {
                return;
            }
            self.settle(&run, connections, fabric);
        }
    }

    fn admit_bundle(&mut self, _: &Bundle, _: &mut [Connection], _: &mut Fabric) -> Bundled {
        Bundled::Cells
    }

    fn finish(&mut self, now: Moment, connections: &mut [Connection], fabric: &mut Fabric) -> u64 {
        let mut next = u64::MAX;
        for port in &*self.busy {
            let (left, then) = match &mut self.ports[*port as usize] {
                Port::Fifo(port) => port.finish(now, connections, fabric),
                Port::Scheduled(port) => port.finish(now, connections, fabric),
            };
            *self.memory -= left;
            next = next.min(then);
        }
        next
    }
}

impl Port {
    fn waiting(&self) -> u32 {
        match self {
            Self::Fifo(port) => port.waiting,
            Self::Scheduled(port) => port.waiting,
        }
    }
}

/// Judges a cell, and lets it in or drops it. Gives how many cells wait more than before.
#[inline(always)]
fn admit_cell(
    output: &mut impl Output,
    cell: Run,
    (connection, memory): (&mut Connection, u32),
    fabric: &mut Fabric,
) -> u32 {
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
) -> u32 {
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

#[inline(always)]
fn enter(
    output: &mut impl Output,
    cell: Run,
    refused: Option<CellDrop>,
    connection: &mut Connection,
    fabric: &mut Fabric,
) -> u32 {
    match refused {
        None => output.accept_cell(cell, connection, fabric),
        Some(reason) => {
            connection.drop(cell, Spacing::ZERO, reason, fabric);
            0
        }
    }
}

/// Judges the first cells of a run, and lets them in or drops them. True if nothing is left of it.
#[inline]
fn admit(
    output: &mut impl Output,
    run: &mut Run,
    spacing: Spacing,
    (connections, memory): (&mut [Connection], &mut u32),
    fabric: &mut Fabric,
) -> bool {
    let connection = &mut connections[run.label() as usize];
    let most = output.at_once(run, spacing);
    let (seen, rules) = output.seen(connection, *memory);
    let ends = run.ends() && most == run.cells();
    let (cells, refused) = rules.admit_run(&mut connection.state, &seen, (most, ends, run.low()));
    let done = cells == run.cells();
    let piece = if done { *run } else { run.split(cells, spacing) };
    if let Some(reason) = refused {
        connection.drop(piece, spacing, reason, fabric);
    } else {
        let more = output.accept(piece, spacing, connections, fabric);
        *memory = memory.wrapping_add_signed(more as i32);
    }
    done
}
