//! An output port: queues, the discard rules of each, a scheduler and a transmitter.
//!
//! A cell that finds the port idle starts at its arrival. Any other joins its queue if the discard
//! rules admit it, and starts when the scheduler serves it, one interval after the start before. A
//! transmission that may start at the very moment of an arrival starts first.
//!
//! Cells are handled one by one, except at a port with one queue: there a run of cells is admitted
//! at once if it finds the port idle and its cells arrive no closer than the port sends them, or if
//! they arrive no further apart than the port sends them. In both cases the outcome for each cell
//! follows from that of the first.
//! Cost: the scheduler's, for each cell that waits.

use lastmile_units::Instant;

use crate::cell::{Payload, Run};
use crate::connection::Connection;
use crate::discard::{Arriving, Occupancy};
use crate::network::in_flight::InFlight;
use crate::queue::Queue;
use crate::schedule::{Schedule, Share};
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) queues: Vec<Queue>,
    schedule: Schedule,
    /// From one start of a transmission to the next, at least.
    pub(crate) interval: Spacing,
    /// The next transmission may start at this time.
    pub(crate) free: Moment,
    /// Cells in all queues.
    pub(crate) waiting: u32,
    /// The shortest time from the start of a transmission to the far end of a VC. `None`: no VC
    /// crosses the port.
    pub(crate) onward: Option<Spacing>,
}

impl Port {
    pub(crate) fn new(queues: Vec<(Queue, Share)>, interval: Spacing) -> Self {
        let (queues, shares) = queues.into_iter().unzip();
        let (schedule, free) = (Schedule::new(shares), Moment::default());
        Self { queues, schedule, interval, free, waiting: 0, onward: None }
    }

    /// Starts every transmission that is due by `now`.
    #[inline]
    pub(crate) fn serve(&mut self, now: Moment, connections: &mut [Connection], in_flight: &mut InFlight) {
        while self.free <= now
            && let Some((index, alone)) = self.schedule.next()
        {
            let queue = &mut self.queues[index as usize];
            let cells =
                if alone { self.free.starts_by(now, self.interval).min(queue.waiting.into()) as u32 } else { 1 };
            queue.send(cells, self.free, self.interval, connections, in_flight);
            self.schedule.served(cells, queue.waiting == 0);
            self.free = self.free.plus(self.interval.times(cells.into()));
            self.waiting -= cells;
        }
    }

    /// Admits or drops the first cells of a run and returns the others. All that starts by the
    /// arrival of the first cell has started; `memory` cells wait in the memory of the port.
    #[inline]
    pub(crate) fn admit(
        &mut self,
        run: Run,
        memory: u32,
        connections: &mut [Connection],
        in_flight: &mut InFlight,
    ) -> Option<Run> {
        let (cells, waiting) = self.at_once(&run);
        let connection = &mut connections[run.vc as usize];
        let queue = &self.queues[connection.queue as usize];
        let seen = Occupancy { queue: queue.waiting, memory, vc: connection.waiting, active: queue.active_vcs };
        let low_priority = run.low_priority();
        let (cells, refused) = match run.header.payload {
            // Selective discard spares RM cells, even if a policer has tagged them.
            Payload::Rm(_) => (1, queue.rules.full(&seen, false)),
            Payload::Frame(_) => {
                let last = run.header.last && cells == run.cells;
                let arriving = Arriving { cells, last, low_priority, waiting };
                queue.rules.admit_run(&mut connection.state, &seen, &arriving)
            }
        };
        let (front, rest) = run.split(cells);
        match refused {
            Some(reason) => connection.drop(&front, reason, in_flight),
            None => self.accept(front, connections, in_flight),
        }
        rest
    }

    /// The number of cells of a run that may be admitted at once, and the largest number of those
    /// that wait at the same time.
    #[inline]
    fn at_once(&self, run: &Run) -> (u16, u16) {
        if self.queues.len() > 1 || run.cells == 1 {
            (1, 1)
        } else if self.is_idle(run.at) && run.spacing >= self.interval {
            (run.cells, 1)
        } else if run.spacing <= self.interval {
            (run.cells, run.cells)
        } else {
            (1, 1)
        }
    }

    #[inline]
    fn is_idle(&self, at: Moment) -> bool {
        self.waiting == 0 && at >= self.free
    }

    /// Transmits admitted cells, or lets them wait.
    #[inline]
    fn accept(&mut self, run: Run, connections: &mut [Connection], in_flight: &mut InFlight) {
        if !self.is_idle(run.at) {
            self.enqueue(&run, connections, in_flight);
            return;
        }
        let (passing, rest) = if run.spacing >= self.interval { (run, None) } else { run.split(1) };
        let connection = &mut connections[run.vc as usize];
        connection.sent += u64::from(passing.cells);
        self.schedule.pass(connection.queue, passing.cells);
        self.free = passing.last_at().plus(self.interval);
        let at = passing.at.plus(connection.transit);
        in_flight.push(connection.out, Run { at, vc: connection.next_vc, ..passing });
        if let Some(rest) = rest {
            self.enqueue(&rest, connections, in_flight);
        }
    }

    #[inline]
    fn enqueue(&mut self, run: &Run, connections: &mut [Connection], in_flight: &mut InFlight) {
        let connection = &mut connections[run.vc as usize];
        let index = connection.queue;
        let queue = &mut self.queues[index as usize];
        if queue.waiting == 0 {
            self.schedule.add(index);
        }
        queue.append(run, connection, in_flight.trains);
        self.waiting += u32::from(run.cells);
        if run.cells > 1 {
            // The backlog grows from arrival to arrival, so it is largest when the last cell has
            // arrived.
            self.serve(run.last_at(), connections, in_flight);
        }
        let queue = &mut self.queues[index as usize];
        queue.peak = queue.peak.max(queue.waiting);
    }

    /// No frame with a last cell in a queue is at the far end of its VC before this time. `None`:
    /// there is no such frame.
    ///
    /// This is the time if nothing else arrives. Later arrivals can only delay it, since the tags
    /// of waiting cells stay.
    pub(crate) fn bound(&self) -> Option<Instant> {
        let ends = self.schedule.turns().filter_map(|first| {
            let nth = self.queues[first.queue as usize].until_frame_end()?;
            Some(self.schedule.nth(first, nth))
        });
        let turn = ends.min()?;
        let before = self.schedule.turns().map(|first| {
            let waiting = self.queues[first.queue as usize].waiting;
            self.schedule.served_before(turn, first, waiting)
        });
        let start = self.free.plus(self.interval.times(before.sum()));
        Some(start.plus(self.onward?).instant())
    }
}
