//! Whose cells wait in a FIFO, for schemes that count them by VC.
//!
//! Who asks is the first cell of a frame, and any of a VC of which SPD may take no frame until none of its cells waits. To all others it is all the
//! same; so cells that have left are a number until somebody asks. Trains side by side wait as a *braid*: a count for each, served in turn.
//! Cost: a comparison a cell or run that comes; when somebody asks, an addition for each run that has left, or for each train of a braid.

use super::bundle::Bundle;
use super::connection::Connection;
use super::ring::Ring;

#[derive(Debug, Default)]
pub(super) struct ByVc {
    /// In the order in which they leave.
    order: Ring<Strand>,
    /// Of a braid in front: whose cell is next.
    next: u32,
    /// Cells that have left and are in the order yet.
    left: u32,
    /// VCs of which cells are in the order.
    active: u32,
}

/// Cells of a VC that wait one behind the other, or in turn with those of others.
#[derive(Clone, Copy, Debug)]
struct Strand {
    cells: u32,
    label: u16,
    /// How many strands take turns, from the first of them on; they have as many cells each. One: it stands alone.
    abreast: u16,
}

impl ByVc {
    /// VCs of which cells wait. For who asks after [`Self::catch_up`].
    #[inline]
    pub(super) fn active(&self) -> u32 {
        self.active
    }

    /// So many cells of a VC wait.
    pub(super) fn wait(&mut self, label: u16, cells: u32, connection: &mut Connection) {
        self.count(cells, connection);
        match self.order.back_mut() {
            Some(back) if back.label == label && back.abreast == 1 => back.cells += cells,
            _ => self.order.push(Strand { cells, label, abreast: 1 }),
        }
    }

    /// All cells of trains side by side wait.
    pub(super) fn wait_in_turn(&mut self, bundle: &Bundle, connections: &mut [Connection]) {
        let (cells, abreast) = (u32::from(bundle.rounds), bundle.trains.len() as u16);
        for train in &bundle.trains {
            let label = train.label();
            self.count(cells, &mut connections[label as usize]);
            self.order.push(Strand { cells, label, abreast });
        }
    }

    fn count(&mut self, cells: u32, connection: &mut Connection) {
        if connection.waits(cells) {
            self.active += 1;
        }
    }

    /// The first cells have left.
    #[inline]
    pub(super) fn leave(&mut self, cells: u32) {
        self.left += cells;
    }

    /// Takes what has left off the counts of its VCs.
    pub(super) fn catch_up(&mut self, connections: &mut [Connection]) {
        while self.left > 0 {
            let first = self.order.front_mut().expect("whoever waits is in the order");
            if first.abreast > 1 {
                self.catch_up_braid(connections);
                continue;
            }
            let cells = first.cells.min(self.left);
            first.cells -= cells;
            self.left -= cells;
            if connections[first.label as usize].leaves(cells) {
                self.active -= 1;
            }
            if first.cells == 0 {
                self.order.skip(1);
            }
        }
    }

    /// The same as far as a braid goes that stands in front.
    #[inline(never)]
    fn catch_up_braid(&mut self, connections: &mut [Connection]) {
        let first = self.order.get(self.next as usize).expect("one of a braid");
        let (abreast, had) = (u32::from(first.abreast), first.cells);
        let standing = abreast * had - self.next;
        let cells = standing.min(self.left);
        for turn in 0..cells.min(abreast) {
            let place = (self.next + turn) % abreast;
            let strand = self.order.get_mut(place as usize).expect("one of a braid");
            let own = (cells - turn).div_ceil(abreast);
            strand.cells -= own;
            if connections[strand.label as usize].leaves(own) {
                self.active -= 1;
            }
        }
        self.next = (self.next + cells) % abreast;
        self.left -= cells;
        if cells == standing {
            self.order.skip(abreast as usize);
        }
    }
}
