//! The state of a VC and the backlog, by which a rule judges a cell.

use super::reason::CellDrop;

/// The state of a VC at a queue: Receiving, Discarding and Dropping of Sun's listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameState {
    /// A frame has begun and not ended.
    pub receiving: bool,
    /// The reason for which the cells of the frame are dropped, if they are.
    pub discarding: Option<CellDrop>,
    /// Earlier cells of the frame that is dropped were admitted.
    pub partial: bool,
    /// SPD may drop a frame.
    pub armed: bool,
}

impl Default for FrameState {
    fn default() -> Self {
        Self { receiving: false, discarding: None, partial: false, armed: true }
    }
}

/// The backlog that a cell finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occupancy {
    /// Q: cells in the queue.
    pub queue: u32,
    /// Cells in all queues of the memory.
    pub memory: u32,
    /// q: cells of the VC in the queue.
    pub vc: u32,
    /// VCs with cells in the queue.
    pub active: u32,
}
