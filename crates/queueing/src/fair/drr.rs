//! Deficit round robin (DRR): each class or flow may send a quantum in its turn; the unused part is
//! kept for its next turn.
//!
//! Published: Shreedhar, Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", 1995;
//! tc-drr(8).
//! Differs: quanta count bytes on the wire of the line. A class is any discipline
//! ([`super::members`] explains how the size of its head is known); if it sends more than expected,
//! its deficit becomes negative and later active pay. Flows are distinguished exactly, where the
//! paper hashes them.
//! Cost: O(1) a packet if no quantum is smaller than the largest packet; else as many rounds as
//! quanta go into the packet.

use std::collections::VecDeque;

use lastmile_units::WireBytes;

use super::members::{Among, Shares};
use super::scheduler::{Fair, Order};
use crate::spec::Problem;

/// Classes or flows, with the quantum of each: bytes on the wire a turn, not zero.
pub type Config = Among<WireBytes>;

/// The active list and the deficits.
#[derive(Clone, Debug)]
pub(crate) struct Drr {
    quanta: Shares,
    members: Vec<Member>,
    /// The active list, in the order of active: members with packets, and members that became empty
    /// since their last turn.
    active: VecDeque<u32>,
    /// The first member of the list has received its quantum for this turn.
    has_quantum: bool,
    released: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Bytes on the wire that the member may still send.
    deficit: i64,
    head: Option<i64>,
    is_active: bool,
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Drr {
    pub(crate) const fn new(quanta: Shares) -> Self {
        Self { quanta, members: Vec::new(), active: VecDeque::new(), has_quantum: false, released: Vec::new() }
    }

    fn deactivate(&mut self) {
        self.has_quantum = false;
        if let Some(member) = self.active.pop_front() {
            self.members[member as usize].is_active = false;
            self.released.push(member);
        }
    }
}

impl Order for Drr {
    fn head(&mut self, member: u32, head: Option<WireBytes>) {
        if self.members.len() <= member as usize {
            self.members.resize(member as usize + 1, Member::default());
        }
        let state = &mut self.members[member as usize];
        state.head = head.map(|head| signed(head.as_u64()));
        if state.head.is_some() {
            if !state.is_active {
                state.is_active = true;
                self.active.push_back(member);
            }
            return;
        }
        state.deficit = 0;
        if !state.is_active {
            self.released.push(member);
        } else if self.active.front() == Some(&member) {
            self.deactivate();
        }
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            let member = *self.active.front()?;
            let state = &mut self.members[member as usize];
            let Some(head) = state.head else {
                self.deactivate();
                continue;
            };
            if !self.has_quantum {
                state.deficit += signed(self.quanta.of(member));
                self.has_quantum = true;
            }
            if head <= state.deficit {
                return Some(member);
            }
            self.active.rotate_left(1);
            self.has_quantum = false;
        }
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        self.members[member as usize].deficit -= signed(size.as_u64());
    }

    fn released(&mut self) -> &mut Vec<u32> {
        &mut self.released
    }
}

impl Fair for Config {
    const KIND: &'static str = "drr";
    type Share = WireBytes;

    fn among(&self) -> &Self {
        self
    }

    fn order(&self) -> impl Order + Send + 'static {
        Drr::new(self.shares(WireBytes::as_u64))
    }

    fn check_shares(&self) -> Result<(), Problem> {
        let zero = match self {
            Self::Classes(classes) => classes.iter().any(|class| class.share.as_u64() == 0),
            Self::Flows { share, .. } => share.as_u64() == 0,
        };
        if zero { Err(Problem::ZeroQuantum) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
