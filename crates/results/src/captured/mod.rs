//! Captured connections: a page with their pictures, and a table of all their segments.
//!
//! [`Pictures`] receives each packet as it is analysed and keeps a bounded amount: bins of time that
//! double in width when there are too many (`picture`), for the largest connections. So memory does
//! not depend on the length of a capture.
//!
//! | file | holds |
//! | --- | --- |
//! | `picture.rs` | what is kept of one direction |
//! | `plot.rs` | drawings, and their data for the page's script |
//! | `curves.rs` | from the one to the other |
//! | `page.rs` | the page |
//! | `segments.rs` | every segment as a row of a Parquet file |
//! | `chunks.rs` | the columns of its row groups, page by page |
//! | `encode.rs` | encodings of pages |

mod chunks;
mod curves;
mod encode;
mod page;
mod picture;
mod plot;
mod segments;

use lastmile_analysis::Traced;

pub use self::page::{Capture, PANELS, figure, page};
pub use self::segments::Segments;

use self::picture::Picture;

/// The most directions that a page draws.
pub const MOST_DRAWN: usize = 12;
/// The most bins of all directions together. Half of the pictures, of the smallest directions, are
/// removed where there are more.
const MOST_BINS: usize = 40_000;

/// The pictures of a direction.
#[derive(Debug, Default)]
enum Slot {
    #[default]
    Empty,
    Kept(Box<Picture>),
    /// Removed for larger ones.
    Dropped,
}

/// The pictures of the largest connections of a capture.
#[derive(Debug, Default)]
pub struct Pictures {
    /// By connection: data from its opener, and to it.
    slots: Vec<[Slot; 2]>,
    bins: usize,
}

impl Pictures {
    /// Adds a packet.
    pub fn add(&mut self, packet: &Traced) {
        if self.slots.len() <= packet.connection {
            self.slots.resize_with(packet.connection + 1, Default::default);
        }
        let [up, down] = &mut self.slots[packet.connection];
        let (own, other) = if packet.from_opener { (up, down) } else { (down, up) };
        let mut more = 0;
        if let Some(data) = &packet.data {
            if packet.payload > 0 && matches!(own, Slot::Empty) {
                *own = Slot::Kept(Box::default());
            }
            if let Slot::Kept(picture) = own {
                let before = picture.bins();
                picture.data(packet.at, data, packet.payload);
                more += picture.bins().cast_signed() - before.cast_signed();
            }
        }
        if let (Some(ack), Slot::Kept(picture)) = (&packet.ack, other) {
            let before = picture.bins();
            picture.ack(packet.at, ack);
            more += picture.bins().cast_signed() - before.cast_signed();
        }
        self.bins = self.bins.saturating_add_signed(more);
        if self.bins > MOST_BINS {
            self.drop_small();
        }
    }

    /// Removes the smaller half of the pictures, of equal ones the earlier.
    fn drop_small(&mut self) {
        let mut kept = Vec::new();
        for (connection, slots) in self.slots.iter().enumerate() {
            for (way, slot) in slots.iter().enumerate() {
                if let Slot::Kept(picture) = slot {
                    kept.push((picture.bytes(), connection, way));
                }
            }
        }
        kept.sort_unstable();
        for (_, connection, way) in kept.drain(..kept.len() / 2) {
            if let Slot::Kept(picture) = std::mem::replace(&mut self.slots[connection][way], Slot::Dropped) {
                self.bins -= picture.bins();
            }
        }
    }

    /// The pictures to draw: connection, direction and picture, the [`MOST_DRAWN`] with the most bytes, the largest
    /// first; and the number of others with payload.
    fn drawn(&self) -> (Vec<(usize, bool, &Picture)>, usize) {
        let mut drawn = Vec::new();
        let mut others = 0;
        for (connection, slots) in self.slots.iter().enumerate() {
            for (slot, up) in slots.iter().zip([true, false]) {
                match slot {
                    Slot::Kept(picture) => drawn.push((connection, up, &**picture)),
                    Slot::Dropped => others += 1,
                    Slot::Empty => {}
                }
            }
        }
        drawn.sort_by_key(|(.., picture)| std::cmp::Reverse(picture.bytes()));
        others += drawn.len().saturating_sub(MOST_DRAWN);
        drawn.truncate(MOST_DRAWN);
        (drawn, others)
    }
}

#[cfg(test)]
mod tests;
