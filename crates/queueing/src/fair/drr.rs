//! Deficit round robin (DRR): turns of a quantum each; what a turn leaves unused is kept for the next.
//!
//! Published: Shreedhar, Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", 1995; tc-drr(8).
//! Differs: quanta count bytes on the wire of the line. A class is any discipline ([`super::members`] tells how its head is
//! known); if it sends more than was expected of it, its deficit falls below zero and turns to come pay. Flows are told
//! apart exactly, where the paper hashes them.
//! Cost: O(1) a packet if no quantum is smaller than the largest packet; else as many rounds as quanta go into the packet.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::members::{Among, Shares};
use super::scheduler::{self, Order};
use crate::Spec;
use crate::catalogue::{Built, Mechanism};
use crate::spec::{Problem, Site};

/// Among whom turns go, and what each may send in a turn: not zero.
pub type Config = Among<WireBytes>;

/// Turns and deficits.
#[derive(Clone, Debug)]
pub(crate) struct Drr {
    quanta: Shares,
    members: Vec<Member>,
    /// Those who have packets, and those who had when they last stood in front, in the order of turns.
    turns: VecDeque<u32>,
    /// The first of them has its quantum for this turn.
    begun: bool,
    forgotten: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// Bytes on the wire that it may still send.
    deficit: i64,
    head: Option<i64>,
    listed: bool,
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

impl Drr {
    pub(crate) const fn new(quanta: Shares) -> Self {
        Self { quanta, members: Vec::new(), turns: VecDeque::new(), begun: false, forgotten: Vec::new() }
    }

    fn leave(&mut self) {
        self.begun = false;
        if let Some(member) = self.turns.pop_front() {
            self.members[member as usize].listed = false;
            self.forgotten.push(member);
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
            if !state.listed {
                state.listed = true;
                self.turns.push_back(member);
            }
            return;
        }
        state.deficit = 0;
        if !state.listed {
            self.forgotten.push(member);
        } else if self.turns.front() == Some(&member) {
            self.leave();
        }
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            let member = *self.turns.front()?;
            let state = &mut self.members[member as usize];
            let Some(head) = state.head else {
                self.leave();
                continue;
            };
            if !self.begun {
                state.deficit += signed(self.quanta.of(member));
                self.begun = true;
            }
            if head <= state.deficit {
                return Some(member);
            }
            self.turns.rotate_left(1);
            self.begun = false;
        }
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        self.members[member as usize].deficit -= signed(size.as_u64());
    }

    fn forgotten(&mut self) -> &mut Vec<u32> {
        &mut self.forgotten
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Self::check(self)?;
        let zero = match self {
            Self::Classes(classes) => classes.iter().any(|class| class.share.as_u64() == 0),
            Self::Flows { share, .. } => share.as_u64() == 0,
        };
        if zero { Err(Problem::ZeroQuantum) } else { Ok(()) }
    }

    fn below(&self) -> Vec<&Spec> {
        self.queues()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.name(class)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        scheduler::build("drr", self, Drr::new(self.shares(WireBytes::as_u64)), site)
    }
}

#[cfg(test)]
mod tests;
