//! WF2Q+: of the packets that a fluid system would have begun, the one that it would finish first.
//!
//! Published: Bennett, Zhang, "Hierarchical Packet Fair Queueing Algorithms", 1996, on their WF2Q of the same year.
//! Differs: sizes are bytes on the wire of the line. Virtual time moves a whole packet at a time, when the line asks for the
//! next one, since nobody here knows how far the line is: who comes meanwhile starts where the packet in service did. It
//! moves by the size over the weights of those who have packets or are still ahead of it, where the paper divides by all
//! there could be: flows come and go, and nobody knows how many there will be. With all weights in use both are the
//! same. It jumps to the least start tag when nobody may send. Tags belong to heads alone, as in the paper. A class is any
//! discipline ([`super::members`] tells how its head is known).
//! What a member sent does not count against it once the line was idle; a line that asks at the very time at which the
//! first packet comes was.
//! Cost: O(log n) a packet among n members.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::members::{Among, Shares};
use super::scheduler::{self, Order};
use super::tags::span;
use crate::Spec;
use crate::catalogue::{Built, Mechanism};
use crate::spec::{Problem, Site};

/// Among whom the line is shared, and by which weights. All flows have the same, whatever it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config(pub Among<NonZeroU32>);

/// Start and finish tags.
#[derive(Clone, Debug)]
pub(crate) struct Wf2qPlus {
    weights: Shares,
    members: Vec<Member>,
    /// By start tag: those whose turn has not begun in the fluid system, and those without a packet that are ahead of it.
    waiting: BTreeSet<(u128, u32)>,
    /// By finish tag: those whose turn has begun.
    eligible: BTreeSet<(u128, u32)>,
    /// As of when the packet in service began.
    virtual_time: u128,
    /// The size of the packet in service.
    in_service: u64,
    /// What the last division left of virtual time.
    rest: u64,
    /// The weights of all in either set.
    total: u64,
    forgotten: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The start tag of the head; without one, the finish tag of what it sent last.
    start: u128,
    /// What the last division left.
    rest: u64,
    head: Option<u64>,
    place: Place,
    /// It has just sent, so that a packet that it still has came before.
    sending: bool,
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Place {
    /// Nowhere, and nothing is remembered of it.
    #[default]
    Out,
    Waiting,
    /// With this finish tag.
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
            rest: 0,
            total: 0,
            forgotten: Vec::new(),
        }
    }

    /// Puts a member with its head among the eligible.
    fn admit(&mut self, member: u32, head: u64) {
        let state = &mut self.members[member as usize];
        let finish = state.start + span(head, state.rest, self.weights.of(member)).0;
        state.place = Place::Eligible(finish);
        self.eligible.insert((finish, member));
    }

    /// Forgets a member that stands in neither set any more.
    fn forget(&mut self, member: u32) {
        self.members[member as usize].place = Place::Out;
        self.total -= self.weights.of(member);
        self.rest = 0;
        self.forgotten.push(member);
    }

    /// The virtual time has come for those whose start tag it has reached.
    fn settle(&mut self) {
        while let Some(&(start, member)) = self.waiting.first()
            && start <= self.virtual_time
        {
            self.waiting.pop_first();
            match self.members[member as usize].head {
                Some(head) => self.admit(member, head),
                None => self.forget(member),
            }
        }
    }

    fn arrived(&mut self, member: u32, head: u64, sending: bool) {
        let now = self.virtual_time;
        let state = &mut self.members[member as usize];
        let had = state.head.replace(head);
        match state.place {
            Place::Out => {
                (state.start, state.rest) = (now, 0);
                self.total += self.weights.of(member);
                self.rest = 0;
                self.admit(member, head);
            }
            Place::Waiting => {
                // Virtual time has overtaken what it sent last, and nobody has noticed yet.
                if had.is_none() && !sending && state.start < now {
                    self.waiting.remove(&(state.start, member));
                    (state.start, state.rest) = (now, 0);
                    self.waiting.insert((now, member));
                }
            }
            Place::Eligible(finish) => {
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
        match state.place {
            Place::Out => self.forgotten.push(member),
            Place::Waiting => {}
            Place::Eligible(finish) => {
                self.eligible.remove(&(finish, member));
                self.forget(member);
            }
        }
    }

    fn next(&mut self) -> Option<u32> {
        if self.total > 0 {
            let (span, rest) = span(std::mem::take(&mut self.in_service), self.rest, self.total);
            self.virtual_time += span;
            self.rest = rest;
        }
        loop {
            self.settle();
            if let Some((_, member)) = self.eligible.first() {
                return Some(*member);
            }
            let (start, _) = self.waiting.first()?;
            self.virtual_time = *start;
        }
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        let state = &mut self.members[member as usize];
        if let Place::Eligible(finish) = state.place {
            self.eligible.remove(&(finish, member));
        }
        let (own, rest) = span(size.as_u64(), state.rest, self.weights.of(member));
        state.start += own;
        *state = Member { rest, head: None, place: Place::Waiting, sending: true, ..*state };
        self.waiting.insert((state.start, member));
        self.in_service = size.as_u64();
    }

    fn restart(&mut self) {
        (self.virtual_time, self.in_service, self.rest) = (0, 0, 0);
        let eligible = std::mem::take(&mut self.eligible);
        for (_, member) in std::mem::take(&mut self.waiting).into_iter().chain(eligible) {
            let state = &mut self.members[member as usize];
            (state.start, state.rest) = (0, 0);
            match state.head {
                Some(head) => self.admit(member, head),
                None => self.forget(member),
            }
        }
    }

    fn forgotten(&mut self) -> &mut Vec<u32> {
        &mut self.forgotten
    }
}

impl Mechanism for Config {
    fn check(&self, _link_layer: &LinkLayer) -> Result<(), Problem> {
        self.0.check()
    }

    fn below(&self) -> Vec<&Spec> {
        self.0.queues()
    }

    fn class_name(&self, class: u16) -> Option<String> {
        self.0.name(class)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        let order = Wf2qPlus::new(self.0.shares(|weight| weight.get().into()));
        scheduler::build("wf2q-plus", &self.0, order, site)
    }
}

#[cfg(test)]
mod tests;
