//! A stage: output ports that share a memory, and all that comes to them, merged by time.
//!
//! What a cell finds depends on the cells before it at the ports of its memory and on nothing else. So a stage takes what its inputs
//! hold up to some time, in the order of time (of equal picoseconds, in that of its inputs), and needs no event for a cell. The front run
//! of the earliest input goes on until another input has something: all its cells by then are handled together.
//! What is the same for all stages is written once and compiled for each kind: one FIFO, one scheduler, or several ports (`exit`).
//! Cost: see `heads`.

use super::abr::Watch;
use super::bundle::{Bundle, Bundled};
use super::connection::{Connection, NONE};
use super::exit::{Exit, Lone, Port, Several};
use super::fabric::Fabric;
use super::heads::{Head, Heads};
use super::run::Run;
use super::wire::Wire;
use crate::policer::{Policer, Seen, SeenRun, Verdict};
use crate::time::{Moment, Spacing};

#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Streams.
    pub(super) inputs: Vec<u32>,
    heads: Heads,
    /// By label.
    pub(super) connections: Vec<Connection>,
    pub(super) ports: Vec<Port>,
    /// Of several ports, those at which something waits, or did when last looked at.
    busy: Vec<u16>,
    pub(super) policers: Vec<Policer>,
    /// By label, as far as any is there: the link by which a VC comes, if that loses cells.
    pub(super) wires: Vec<Option<Wire>>,
    /// Of several ports, cells that wait at all of them.
    memory: u32,
    /// Where the network has ABR.
    pub(super) watch: Option<Box<Watch>>,
}

impl Stage {
    /// Handles all that comes in picosecond `until` or before, and starts what starts by then. `own`: its place among the stages.
    pub(super) fn process(&mut self, own: usize, until: u64, fabric: &mut Fabric) {
        let Self { inputs, heads, connections, ports, busy, policers, wires, memory, watch } = self;
        while let Some(input) = fabric.woken[own].pop() {
            let ps = fabric.streams[inputs[input as usize] as usize].front_ps().expect("woken by a run");
            heads.add(Head { ps, input });
        }
        let mut entry = Entry { inputs, heads, connections, policers, wires };
        let next = match (&mut ports[..], watch) {
            ([Port::Fifo(port)], None) => entry.process(&mut Lone(port), until, fabric),
            ([Port::Scheduled(port)], None) => entry.process(&mut Lone(port), until, fabric),
            (ports, watch) => {
                entry.process(&mut Several { ports, busy, memory, watch: watch.as_deref_mut() }, until, fabric)
            }
        };
        fabric.next.set(own, next);
    }

    /// Before when no frame that waits at a scheduler here is at the far end. `None`: no such frame waits.
    pub(super) fn bound(&self) -> Option<u64> {
        let waiting = self.ports.iter().filter_map(|port| match port {
            Port::Scheduled(port) if port.waiting > 0 => port.bound(),
            _ => None,
        });
        waiting.min()
    }

    /// True for a stage with a scheduler at some port.
    pub(super) fn schedules(&self) -> bool {
        self.ports.iter().any(|port| matches!(port, Port::Scheduled(_)))
    }
}

/// Runs that are merged before they are handled, or some more.
const BATCH: usize = 256;

/// What cells pass before they come to a port.
struct Entry<'a> {
    inputs: &'a [u32],
    heads: &'a mut Heads,
    connections: &'a mut [Connection],
    policers: &'a mut [Policer],
    wires: &'a mut [Option<Wire>],
}

impl Entry<'_> {
    /// Handles all that comes by `until`. Tells in which picosecond there is something to do again, `u64::MAX` for never.
    ///
    /// What is merged does not depend on what becomes of it here; so a batch is merged, then handled, each in a loop of its own.
    fn process(&mut self, exit: &mut impl Exit, until: u64, fabric: &mut Fabric) -> u64 {
        let mut batch = core::mem::take(&mut fabric.batch);
        let mut bundle = core::mem::take(&mut fabric.bundle);
        while self.heads.first().is_some_and(|head| head.ps <= until) {
            if fabric.trains && bundle.find(self.heads, self.inputs, until, fabric) {
                self.receive_bundle(&mut bundle, &mut batch, exit, fabric);
            } else {
                let most = if fabric.trains { self.heads.len() } else { BATCH };
                self.merge(until, most, &mut batch, fabric);
            }
            if !self.wires.is_empty() {
                self.cross_wires(&mut batch, fabric);
            }
            for run in &batch {
                self.receive(*run, exit, fabric);
            }
            batch.clear();
        }
        (fabric.batch, fabric.bundle) = (batch, bundle);
        let next = self.heads.first().map_or(u64::MAX, |head| head.ps);
        next.min(exit.finish(Moment::from_parts(until, u32::MAX), self.connections, fabric))
    }

    /// Leaves of a batch what links have not lost of it.
    fn cross_wires(&mut self, batch: &mut Vec<Run>, fabric: &mut Fabric) {
        let mut crossed = core::mem::take(&mut fabric.crossed);
        for run in batch.drain(..) {
            match self.wires.get_mut(run.label() as usize) {
                Some(Some(wire)) => {
                    let spacing = fabric.spacings[run.class() as usize];
                    wire.cross(run, spacing, &mut crossed, fabric);
                }
                _ => crossed.push(run),
            }
        }
        core::mem::swap(batch, &mut crossed);
        fabric.crossed = crossed;
    }

    /// Trains side by side: handled together, or taken apart.
    fn receive_bundle(&mut self, bundle: &mut Bundle, batch: &mut Vec<Run>, exit: &mut impl Exit, fabric: &mut Fabric) {
        let mut done = Bundled::Cells;
        if self.judge_bundle(bundle) {
            done = exit.admit_bundle(bundle, self.connections, fabric);
        }
        if done == Bundled::Done {
            self.count_bundle(bundle);
        }
        let rounds = if done == Bundled::Round { 1 } else { bundle.rounds };
        if done != Bundled::Done {
            bundle.cells(rounds, batch);
        }
        bundle.take(rounds, self.heads, self.inputs, fabric);
    }

    /// Marks what policers tag, and leaves as many rounds as meet the same fate. False: too few, or cells are dropped or lost. Changes no policer
    /// and no link.
    fn judge_bundle(&self, bundle: &mut Bundle) -> bool {
        for train in &bundle.trains {
            if let Some(Some(wire)) = self.wires.get(train.label() as usize) {
                bundle.rounds = wire.next(bundle.rounds).0;
            }
        }
        for index in 0..bundle.trains.len() {
            let connection = &self.connections[bundle.trains[index].label() as usize];
            if connection.unpoliced() {
                continue;
            }
            if connection.path_policer != NONE {
                return false;
            }
            let (verdict, rounds) = self.policers[connection.policer as usize].judge_run(&bundle.seen(index));
            match verdict {
                Verdict::Pass => {}
                Verdict::Tag => bundle.trains[index].set_low(),
                _ => return false,
            }
            bundle.rounds = bundle.rounds.min(rounds);
        }
        bundle.rounds > 1
    }

    /// Trains have been let in.
    fn count_bundle(&mut self, bundle: &Bundle) {
        for (index, (train, came)) in bundle.trains.iter().zip(&bundle.came).enumerate() {
            if let Some(Some(wire)) = self.wires.get_mut(came.label() as usize) {
                wire.pass(bundle.rounds);
            }
            let connection = &mut self.connections[came.label() as usize];
            connection.comes(bundle.rounds, came.low());
            let tagged = train.low() && !came.low();
            if tagged {
                connection.lost.tagged += u64::from(bundle.rounds);
            }
            if let Some(policer) = self.policers.get_mut(connection.policer as usize) {
                policer.take_run(&bundle.seen(index), if tagged { Verdict::Tag } else { Verdict::Pass });
            }
        }
    }

    /// What comes first of what comes by `until`, in its order: `most` runs, or some more.
    fn merge(&mut self, until: u64, most: usize, batch: &mut Vec<Run>, fabric: &mut Fabric) {
        while let Some(Head { ps, input }) = self.heads.first()
            && ps <= until
            && batch.len() < most
        {
            let bound = match self.heads.second() {
                Some(rival) if rival.input > input => until.min(rival.ps),
                Some(rival) => until.min(rival.ps - 1),
                None => until,
            };
            match fabric.take_until(self.inputs[input as usize], bound, batch) {
                Some(ps) => self.heads.replace_first(ps),
                None => self.heads.remove_first(),
            }
        }
    }

    #[inline(always)]
    fn receive(&mut self, run: Run, exit: &mut impl Exit, fabric: &mut Fabric) {
        exit.comes(&run, self.connections, fabric);
        let connection = &mut self.connections[run.label() as usize];
        connection.comes(run.cells(), run.low());
        if run.cells() > 1 {
            let policers = [connection.policer, connection.path_policer];
            self.receive_run(run, policers, exit, fabric);
        } else if connection.unpoliced() {
            self.forward_cell(run, exit, fabric);
        } else if let Some(cell) = self.police_cell(run, fabric) {
            self.forward_cell(cell, exit, fabric);
        }
    }

    /// To the queue.
    #[inline(always)]
    fn forward_cell(&mut self, cell: Run, exit: &mut impl Exit, fabric: &mut Fabric) {
        exit.settle(&cell, self.connections, fabric);
        exit.admit_cell(cell, &mut self.connections[cell.label() as usize], fabric);
    }

    /// Asks the policers, the first before the second. `None`: one of them drops it.
    fn police_cell(&mut self, mut cell: Run, fabric: &mut Fabric) -> Option<Run> {
        let connection = &mut self.connections[cell.label() as usize];
        for policer in [connection.policer, connection.path_policer].into_iter().filter(|policer| *policer != NONE) {
            let seen = Seen { low_priority: cell.low(), last: cell.ends() };
            let verdict = self.policers[policer as usize].police(cell.at(), seen);
            if let Some(reason) = verdict.refusal() {
                connection.drop(cell, Spacing::ZERO, reason, fabric);
                return None;
            }
            if verdict == Verdict::Tag {
                cell.set_low();
                connection.lost.tagged += 1;
            }
        }
        Some(cell)
    }

    /// Asks the policers, the first before the second; what they let through goes on.
    #[inline(never)]
    fn receive_run(&mut self, run: Run, policers: [u16; 2], exit: &mut impl Exit, fabric: &mut Fabric) {
        match policers {
            [NONE, NONE] => self.forward(run, exit, fabric),
            [NONE, policer] => self.police(run, [policer, NONE], exit, fabric),
            policers => self.police(run, policers, exit, fabric),
        }
    }

    /// To the queue.
    #[inline]
    fn forward(&mut self, run: Run, exit: &mut impl Exit, fabric: &mut Fabric) {
        if run.cells() == 1 {
            self.forward_cell(run, exit, fabric);
        } else {
            exit.settle(&run, self.connections, fabric);
            exit.admit_run(run, self.connections, fabric);
        }
    }

    fn police(&mut self, mut run: Run, policers: [u16; 2], exit: &mut impl Exit, fabric: &mut Fabric) {
        let spacing = fabric.spacings[run.class() as usize];
        let [policer, next] = policers;
        loop {
            let seen = SeenRun { at: run.at(), spacing, cells: run.cells(), low_priority: run.low(), ends: run.ends() };
            let (verdict, cells) = self.policers[policer as usize].police_run(&seen);
            let done = cells == run.cells();
            let mut piece = if done { run } else { run.split(cells, spacing) };
            let connection = &mut self.connections[run.label() as usize];
            if verdict == Verdict::Tag {
                piece.set_low();
                connection.lost.tagged += u64::from(cells);
            }
            match verdict.refusal() {
                Some(reason) => connection.drop(piece, spacing, reason, fabric),
                None if next != NONE => self.police(piece, [next, NONE], exit, fabric),
                None => self.forward(piece, exit, fabric),
            }
            if done {
                return;
            }
        }
    }
}
