//! A queue of a port: cells whose transmission has not begun, in order.
//!
//! Consecutive cells of one frame are one item.

use std::collections::VecDeque;

use crate::cell::{Header, Payload, Run};
use crate::connection::Connection;
use crate::discard::Rules;
use crate::network::in_flight::InFlight;
use crate::time::{Moment, Spacing};

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) rules: Rules,
    items: VecDeque<Item>,
    /// For each last cell of a frame in the queue: the cells that had joined the queue up to it.
    frame_ends: VecDeque<u64>,
    /// Cells that have left.
    left: u64,
    /// Cells in the queue.
    pub(crate) waiting: u32,
    /// The largest number of cells in the queue so far.
    pub(crate) peak: u32,
    /// VCs with cells in the queue.
    pub(crate) active_vcs: u32,
}

/// Consecutive cells of one frame.
#[derive(Clone, Copy, Debug)]
struct Item {
    header: Header,
    vc: u16,
    cells: u16,
}

impl Queue {
    pub(crate) fn new(rules: Rules) -> Self {
        let (items, frame_ends) = (VecDeque::new(), VecDeque::new());
        Self { rules, items, frame_ends, left: 0, waiting: 0, peak: 0, active_vcs: 0 }
    }

    /// Appends cells. `join`: to the last item, if they continue its frame.
    #[inline]
    pub(crate) fn append(&mut self, run: &Run, connection: &mut Connection, join: bool) {
        self.waiting += u32::from(run.cells);
        if connection.joins_queue(run.cells.into()) {
            self.active_vcs += 1;
        }
        if run.header.last {
            self.frame_ends.push_back(self.left + u64::from(self.waiting));
        }
        let before_end = Header { last: false, ..run.header };
        match self.items.back_mut() {
            Some(back) if join && back.header == before_end && matches!(before_end.payload, Payload::Frame(_)) => {
                back.header = run.header;
                back.cells += run.cells;
            }
            _ => self.items.push_back(Item { header: run.header, vc: run.vc, cells: run.cells }),
        }
    }

    /// Sends the first `cells` cells, the first at `start` and the others at intervals after it.
    #[inline]
    pub(crate) fn send(
        &mut self,
        cells: u32,
        mut start: Moment,
        interval: Spacing,
        connections: &mut [Connection],
        in_flight: &mut InFlight,
    ) {
        self.waiting -= cells;
        self.left += u64::from(cells);
        let mut rest = cells;
        while rest > 0 {
            let Item { header, vc, cells } = self.take(rest);
            if header.last {
                self.frame_ends.pop_front();
            }
            let connection = &mut connections[vc as usize];
            if connection.leaves_queue(cells.into()) {
                self.active_vcs -= 1;
            }
            let at = start.plus(connection.transit);
            in_flight.push(connection.out, Run { at, spacing: interval, header, vc: connection.next_vc, cells });
            start = start.plus(interval.times(cells.into()));
            rest -= u32::from(cells);
        }
    }

    /// Takes the next cells of one frame, at most `most`.
    #[inline]
    fn take(&mut self, most: u32) -> Item {
        let front = self.items.front_mut().expect("a queue with cells");
        if most >= u32::from(front.cells) {
            return self.items.pop_front().expect("a queue with cells");
        }
        front.cells -= most as u16;
        Item { header: Header { last: false, ..front.header }, cells: most as u16, ..*front }
    }

    /// Cells up to the first last cell of a frame, that cell included. `None`: no frame ends in the
    /// queue.
    pub(crate) fn until_frame_end(&self) -> Option<u64> {
        Some(self.frame_ends.front()? - self.left)
    }
}
