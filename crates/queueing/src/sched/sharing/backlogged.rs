//! Backlogged members by priority, with their turns.

use super::PRIORITIES;
use super::ordered_set::RoundRobin;

/// Backlogged members by priority, with their turns.
#[derive(Clone, Debug)]
pub(super) struct Backlogged {
    /// Priorities with a member, a bit each.
    pub(super) priorities: u8,
    pub(super) by_priority: [RoundRobin; PRIORITIES],
}

impl Backlogged {
    pub(super) fn new(capacity: usize) -> Self {
        Self { priorities: 0, by_priority: std::array::from_fn(|_| RoundRobin::new(capacity)) }
    }

    /// Adds a member. Returns the priorities of `mask` that were empty before.
    #[inline]
    pub(super) fn insert(&mut self, member: usize, mask: u8) -> u8 {
        let new = mask & !self.priorities;
        for priority in bits(mask) {
            self.by_priority[priority].members.insert(member);
        }
        self.priorities |= mask;
        new
    }

    /// Removes a member. Returns the priorities of `mask` that are empty after.
    #[inline]
    pub(super) fn remove(&mut self, member: usize, mask: u8) -> u8 {
        let mut gone = 0;
        for priority in bits(mask) {
            self.by_priority[priority].members.remove(member);
            gone |= u8::from(self.by_priority[priority].members.is_empty()) << priority;
        }
        self.priorities &= !gone;
        gone
    }
}

/// The positions of set bits, from the lowest.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}
