//! RM cells in flight.

use super::Rm;

/// The RM cells in flight, by slot.
#[derive(Debug, Default)]
pub(crate) struct RmCells {
    slots: Vec<Rm>,
    free: Vec<u32>,
}

impl RmCells {
    pub(crate) fn add(&mut self, rm: Rm) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = rm;
            return slot;
        }
        self.slots.push(rm);
        (self.slots.len() - 1) as u32
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Rm {
        &mut self.slots[slot as usize]
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Rm {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}
