//! A switch: output ports, the merging of all cells that arrive for them, and their policing.
//!
//! Cells are handled in the order of their arrival; of cells of one picosecond, in the order of
//! inputs. The outcome for a cell depends on the cells before it at the ports of one memory, and on
//! nothing else. So a switch takes all that its inputs hold up to some time, without an event for
//! each cell. The first run of the earliest input is handled up to the next arrival at another
//! input.
//!
//! Ports of a node with one shared memory are one switch. Ports with a memory of their own are a
//! switch each, except in networks with ABR: there all ports of a node are one switch, since a
//! returning RM cell reads the port of the other direction.
//! Cost: a comparison for each run taken, or a search among inputs and a move of at most half of them.

use std::collections::VecDeque;

use lastmile_units::Instant;

use crate::abr::control::AbrPorts;
use crate::cell::{Clp, Run};
use crate::connection::Connection;
use crate::contract::policer::{Policer, Seen, Verdict};
use crate::network::in_flight::InFlight;
use crate::network::loss;
use crate::network::tournament::earlier;
use crate::port::Port;
use crate::time::Moment;

#[derive(Debug, Default)]
pub(crate) struct Switch {
    /// Streams.
    pub(crate) inputs: Vec<u32>,
    /// The next arrival at each input that has cells, sorted.
    heads: VecDeque<Head>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) ports: Vec<Port>,
    /// All ports share one memory. Otherwise each has its own.
    pub(crate) shares_memory: bool,
    pub(crate) policers: Vec<Policer>,
    /// In a network with ABR.
    pub(crate) abr: Option<Box<AbrPorts>>,
}

/// The next arrival at an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Head {
    at: Instant,
    input: u32,
}

impl Switch {
    /// Handles all arrivals up to picosecond `until` and starts all transmissions due at its
    /// beginning: cells offered at `until` later on find those that start within that picosecond in
    /// their queue. `index`: that of this switch.
    pub(crate) fn advance(&mut self, index: usize, until: Instant, in_flight: &mut InFlight) {
        while let Some(input) = in_flight.woken[index].pop() {
            self.add_head(input, in_flight);
        }
        while let Some(&Head { at, input }) = self.heads.front()
            && at <= until
        {
            self.heads.pop_front();
            let bound = match self.heads.front() {
                Some(rival) if rival.input > input => until.min(rival.at),
                Some(rival) => until.min(Instant::from_ps(rival.at.as_ps() - 1)),
                None => until,
            };
            let stream = self.inputs[input as usize];
            while let Some(run) = in_flight.take_until(stream, bound) {
                self.cross_link(run, in_flight);
            }
            self.add_head(input, in_flight);
        }
        let now = Moment::at(until);
        let (mut next, mut bound) = (self.heads.front().map(|head| head.at), None);
        for port in &mut self.ports {
            port.serve(now, &mut self.connections, in_flight);
            if port.waiting > 0 {
                next = earlier(next, Some(port.free.next_instant()));
                bound = earlier(bound, port.bound());
            }
        }
        in_flight.next.set(index, next);
        let streams = in_flight.streams.len();
        in_flight.bounds.set(streams + index, bound);
    }

    fn add_head(&mut self, input: u32, in_flight: &InFlight) {
        if let Some(at) = in_flight.streams[self.inputs[input as usize] as usize].next() {
            let head = Head { at, input };
            match self.heads.back() {
                // At equal spacings an input that was first becomes last.
                Some(last) if head < *last => {
                    let index = self.heads.partition_point(|other| *other < head);
                    self.heads.insert(index, head);
                }
                _ => self.heads.push_back(head),
            }
        }
    }

    /// Cells come off a link, which may lose some of them.
    #[inline]
    fn cross_link(&mut self, run: Run, in_flight: &mut InFlight) {
        let mut rest = Some(run);
        while let Some(run) = rest {
            let (arrived, others) = loss::cross(&mut self.connections[run.vc as usize].loss, run, in_flight);
            if let Some(run) = arrived {
                self.receive(run, in_flight);
            }
            rest = others;
        }
    }

    #[inline]
    fn receive(&mut self, run: Run, in_flight: &mut InFlight) {
        if let Some(abr) = &mut self.abr {
            abr.answer(&run, |vc| self.connections[vc as usize].port, in_flight);
        }
        let connection = &mut self.connections[run.vc as usize];
        connection.arrived.add(&run);
        if self.ports.len() == 1 && self.abr.is_none() && !connection.is_policed() {
            let mut rest = Some(run);
            while let Some(run) = rest {
                self.ports[0].serve(run.at, &mut self.connections, in_flight);
                let memory = self.ports[0].waiting;
                rest = self.ports[0].admit(run, memory, &mut self.connections, in_flight);
            }
            return;
        }
        let mut rest = Some(run);
        while let Some(run) = rest {
            let (cell, others) = run.split(1);
            if let Some(cell) = self.police(cell, in_flight) {
                self.forward(cell, in_flight);
            }
            rest = others;
        }
    }

    /// The policer of the VC judges a cell, then that of its path. `None`: the cell is dropped.
    #[inline]
    fn police(&mut self, mut cell: Run, in_flight: &mut InFlight) -> Option<Run> {
        let connection = &mut self.connections[cell.vc as usize];
        for policer in [connection.policer, connection.path_policer].into_iter().flatten() {
            let seen = Seen { low_priority: cell.low_priority(), last: cell.header.last };
            let verdict = self.policers[policer as usize].police(cell.at, seen);
            if let Some(reason) = verdict.refusal() {
                connection.drop(&cell, reason, in_flight);
                return None;
            }
            if verdict == Verdict::Tag {
                cell.header.clp = Clp::One;
                connection.tagged += 1;
            }
        }
        Some(cell)
    }

    /// A cell arrives at its port.
    #[inline]
    fn forward(&mut self, mut cell: Run, in_flight: &mut InFlight) {
        let Connection { port, queue, .. } = self.connections[cell.vc as usize];
        let index = port as usize;
        for port in &mut self.ports {
            port.serve(cell.at, &mut self.connections, in_flight);
        }
        let memory = if self.shares_memory {
            self.ports.iter().map(|port| port.waiting).sum()
        } else {
            self.ports[index].waiting
        };
        if let Some(abr) = &mut self.abr {
            let waiting = self.ports[index].queues[queue as usize].waiting;
            cell.header.efci |= abr.arrives(&cell, port, waiting, in_flight);
        }
        self.ports[index].admit(cell, memory, &mut self.connections, in_flight);
    }
}
