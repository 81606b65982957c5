//! Weighted fair queueing (WFQ), self-clocked: the packet with the least finish tag is sent next.
//!
//! Published: Demers, Keshav, Shenker 1989 and Parekh, Gallager 1993 (WFQ against a fluid system);
//! Golestani, "A Self-Clocked Fair Queueing Scheme for Broadband Applications", 1994 (SCFQ), which
//! is implemented here: virtual time is the finish tag of the packet in service, so no fluid system
//! has to be tracked.
//! Differs: sizes are bytes on the wire of the line. Only heads have tags: the start tag of a
//! packet behind another is the finish tag of that packet, as if it had been tagged on arrival. If
//! the packet in front is dropped, the next one takes its start tag. A class is any discipline
//! ([`super::members`] explains how the size of its head is known).
//! Virtual time restarts at zero when the backlog is empty. All tags are then in the past, so the
//! order does not change.
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

/// Finish tags.
#[derive(Clone, Debug)]
pub(crate) struct Wfq {
    weights: Shares,
    members: Vec<Member>,
    /// The finish tags of heads. Of equal tags the member with the lower number is served first.
    tags: BTreeSet<(u128, u32)>,
    virtual_time: u128,
    released: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Member {
    /// The start tag of the head; after it was sent, the start tag of the next packet.
    start: u128,
    /// Remainder of the last division of its tag.
    remainder: u64,
    /// The finish tag of the head.
    finish: Option<u128>,
    /// True if the member has just sent a packet, so its next head was already queued.
    sending: bool,
}

impl Wfq {
    pub(crate) const fn new(weights: Shares) -> Self {
        Self { weights, members: Vec::new(), tags: BTreeSet::new(), virtual_time: 0, released: Vec::new() }
    }
}

impl Order for Wfq {
    fn head(&mut self, member: u32, head: Option<WireBytes>) {
        if self.members.len() <= member as usize {
            self.members.resize(member as usize + 1, Member::default());
        }
        let state = &mut self.members[member as usize];
        let sending = std::mem::take(&mut state.sending);
        let before = state.finish.take();
        if let Some(finish) = before {
            self.tags.remove(&(finish, member));
        }
        let Some(head) = head else {
            self.released.push(member);
            return;
        };
        if before.is_none() && !sending {
            if self.tags.is_empty() {
                self.virtual_time = 0;
            }
            (state.start, state.remainder) = (self.virtual_time, 0);
        }
        let finish = state.start + span(head.as_u64(), state.remainder, self.weights.of(member)).0;
        state.finish = Some(finish);
        self.tags.insert((finish, member));
    }

    fn next(&mut self) -> Option<u32> {
        self.tags.first().map(|(_, member)| *member)
    }

    fn sent(&mut self, member: u32, size: WireBytes) {
        let state = &mut self.members[member as usize];
        if let Some(finish) = state.finish.take() {
            self.tags.remove(&(finish, member));
        }
        let (span, remainder) = span(size.as_u64(), state.remainder, self.weights.of(member));
        state.start += span;
        (state.remainder, state.sending) = (remainder, true);
        // Less only if the class sent a smaller packet than expected.
        self.virtual_time = self.virtual_time.max(state.start);
    }

    fn released(&mut self) -> &mut Vec<u32> {
        &mut self.released
    }
}

impl Fair for Config {
    const KIND: &'static str = "wfq";
    type Share = NonZeroU32;

    fn among(&self) -> &Among<NonZeroU32> {
        &self.0
    }

    fn order(&self) -> impl Order + Send + 'static {
        Wfq::new(self.0.shares(|weight| weight.get().into()))
    }
}

#[cfg(test)]
mod tests;
