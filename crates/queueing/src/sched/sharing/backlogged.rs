//! Who waits for a turn, by priority.

use super::PRIORITIES;
use super::set::Turns;

/// Those that wait for a turn, by priority.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    /// Priorities with a member, a bit each.
    pub(super) priorities: u8,
    pub(super) turns: [Turns; PRIORITIES],
}

impl Waiting {
    pub(super) fn new(capacity: usize) -> Self {
        Self { priorities: 0, turns: std::array::from_fn(|_| Turns::new(capacity)) }
    }

    /// The priorities of `mask` that had nobody before.
    #[inline]
    pub(super) fn insert(&mut self, member: usize, mask: u8) -> u8 {
        let new = mask & !self.priorities;
        for priority in bits(mask) {
            self.turns[priority].members.insert(member);
        }
        self.priorities |= mask;
        new
    }

    /// The priorities of `mask` that have nobody left.
    #[inline]
    pub(super) fn remove(&mut self, member: usize, mask: u8) -> u8 {
        let mut gone = 0;
        for priority in bits(mask) {
            self.turns[priority].members.remove(member);
            gone |= u8::from(self.turns[priority].members.is_empty()) << priority;
        }
        self.priorities &= !gone;
        gone
    }
}

/// The bits that are set, from the lowest.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}
