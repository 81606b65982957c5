//! WF2Q+: of the packets whose service a fluid system would have begun, the one that it would
//! finish first.
//!
//! Published: Bennett, Zhang, "Hierarchical Packet Fair Queueing Algorithms", 1996, on their WF2Q
//! of the same year.
//! Differs:
//!
//! - Sizes are bytes on the wire of the line.
//! - Virtual time advances by a whole packet when the line dequeues the next one, since the
//!   progress of a transmission is unknown here. A packet that arrives meanwhile starts where the
//!   packet in service did.
//! - Virtual time advances by the size over the weights of the members that have packets or are
//!   still ahead of it, where the paper divides by all weights: the number of flows is not known in
//!   advance. With all weights in use both are equal. It jumps to the least start tag when no
//!   member is eligible.
//! - A class is any discipline ([`super::members`] explains how the size of its head is known).
//! - Earlier service is released once the line was idle. The line counts as idle if it dequeues at
//!   the very time at which the first packet arrives.
//!
//! Only heads have tags, as in the paper.
//! Cost: O(log n) a packet among n members.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use lastmile_units::WireBytes;

use super::members::{Among, Shares};
use super::scheduler::{Fair, Order};
use super::tags::span;

/// Classes or flows, with the weight of each. All flows have equal weights, so their value has no
/// effect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config(pub Among<NonZeroU32>);

/// Start and finish tags.
#[derive(Clone, Debug)]
pub(crate) struct Wf2qPlus {
    weights: Shares,
    members: Vec<Member>,
    /// By start tag: members whose head a fluid system would not have begun, and members without a
    /// packet that are ahead of virtual time.
    waiting: BTreeSet<(u128, u32)>,
    /// By finish tag: members whose head a fluid system would have begun.
    eligible: BTreeSet<(u128, u32)>,
    /// Virtual time at the beginning of the packet in service.
    virtual_time: u128,
    /// The size of the packet in service.
    in_service: u64,
    /// Remainder of the last division of virtual time.
    remainder: u64,
    /// The sum of weights of the members in both sets.
    total_weight: u64,
    released: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The start tag of the head; without a head, the finish tag of its last packet.
    start: u128,
    /// Remainder of the last division of its tag.
    remainder: u64,
    head: Option<u64>,
    membership: Membership,
    /// True if the member has just sent a packet, so its next head was already queued.
    sending: bool,
}

/// The set that holds a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Membership {
    /// The member is in no set and has no state.
    #[default]
    Absent,
    Waiting,
    /// The eligible set, with this finish tag.
    Eligible(u128),
}

impl Wf2qPlus {
    pub(crate) const fn new(weights: Shares) -> Self {
        Self {
            weights,
            members: Vec::new(),
            waiting: BTreeSet::new(),
            eligible: BTreeSet::new(),
            virtual_time: 0,
            in_service: 0,
            remainder: 0,
            total_weight: 0,
            released: Vec::new(),
        }
    }

    /// Inserts a member with its head into the eligible set.
    fn admit(&mut self, member: u32, head: u64) {
        let state = &mut self.members[member as usize];
        let finish = state.start + span(head, state.remainder, self.weights.of(member)).0;
        state.membership = Membership::Eligible(finish);
        self.eligible.insert((finish, member));
    }

    /// Discards the state of a member that is in neither set.
    fn release(&mut self, member: u32) {
        self.members[member as usize].membership = Membership::Absent;
        self.total_weight -= self.weights.of(member);
        self.remainder = 0;
        self.released.push(member);
    }

    /// Makes members eligible whose start tag virtual time has reached.
    fn admit_eligible(&mut self) {
        while let Some(&(start, member)) = self.waiting.first()
            && start <= self.virtual_time
        {
            self.waiting.pop_first();
            match self.members[member as usize].head {
                Some(head) => self.admit(member, head),
                None => self.release(member),
            }
        }
    }

    fn arrived(&mut self, member: u32, head: u64, sending: bool) {
        let now = self.virtual_time;
        let state = &mut self.members[member as usize];
        let had = state.head.replace(head);
        match state.membership {
            Membership::Absent => {
                (state.start, state.remainder) = (now, 0);
                self.total_weight += self.weights.of(member);
                self.remainder = 0;
                self.admit(member, head);
            }
            Membership::Waiting => {
                // Virtual time has passed the finish tag of its last packet, and `admit_eligible` has not
                // yet run.
                if had.is_none() && !sending && state.start < now {
                    self.waiting.remove(&(state.start, member));
                    (state.start, state.remainder) = (now, 0);
                    self.waiting.insert((now, member));
                }
            }
            Membership::Eligible(finish) => {
                self.eligible.remove(&(finish, member));
                self.admit(member, head);
            }
        }
    }
}

impl Order for Wf2qPlus {
    fn head(&mut self, member: u32, head: Option<WireBytes>) {
        if self.members.len() <= member as usize {
            self.members.resize(member as usize + 1, Member::default());
        }
        let state = &mut self.members[member as usize];
        let sending = std::mem::take(&mut state.sending);
        if let Some(head) = head {
            self.arrived(member, head.as_u64(), sending);
            return;
        }
        state.head = None;
        match state.membership {
            Membership::Absent => self.released.push(member),
            Membership::Waiting => {}
            Membership::Eligible(finish) => {
                self.eligible.remove(&(finish, member));
                self.release(member);
            }
        }
    }

    fn next(&mut self) -> Option<u32> {
        if self.total_weight > 0 {
            let (span, remainder) = span(std::mem::take(&mut self.in_service), self.remainder, self.total_weight);
            self.virtual_time += span;
            self.remainder = remainder;
        }
        loop {
            self.admit_eligible();
            if let Some((_, member)) = self.eligible.first() {
                return Some(*member);
            }
            let (start, _) = self.waiting.first()?;
            self.virtual_time = *start;
        }
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        let state = &mut self.members[member as usize];
        if let Membership::Eligible(finish) = state.membership {
            self.eligible.remove(&(finish, member));
        }
        let (own, remainder) = span(size.as_u64(), state.remainder, self.weights.of(member));
        state.start += own;
        *state = Member { remainder, head: None, membership: Membership::Waiting, sending: true, ..*state };
        self.waiting.insert((state.start, member));
        self.in_service = size.as_u64();
    }

    fn restart(&mut self) {
        (self.virtual_time, self.in_service, self.remainder) = (0, 0, 0);
        let eligible = std::mem::take(&mut self.eligible);
        for (_, member) in std::mem::take(&mut self.waiting).into_iter().chain(eligible) {
            let state = &mut self.members[member as usize];
            (state.start, state.remainder) = (0, 0);
            match state.head {
                Some(head) => self.admit(member, head),
                None => self.release(member),
            }
        }
    }

    fn released(&mut self) -> &mut Vec<u32> {
        &mut self.released
    }
}

impl Fair for Config {
    const KIND: &'static str = "wf2q-plus";
    type Share = NonZeroU32;

    fn among(&self) -> &Among<NonZeroU32> {
        &self.0
    }

    fn order(&self) -> impl Order + Send + 'static {
        Wf2qPlus::new(self.0.shares(|weight| weight.get().into()))
    }
}

#[cfg(test)]
mod tests;
