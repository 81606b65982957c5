//! Link sharing by a tree of classes with exact token accounting: the common part of HTB and CBQ.
//!
//! Published: Floyd and Van Jacobson 1995, formal link-sharing guidelines; Devera, "Hierarchical
//! token bucket theory", for the modes, the levels and the order of service.
//!
//! A class *can send* while it owes no tokens. It *may borrow* from its parent while its own tokens
//! are used up but those of its ceiling are not. Else it *cannot send*.
//!
//! Order of service:
//!
//! - leaves that can send, then leaves that borrow from the lowest class that can lend;
//! - on each level the most urgent priority;
//! - within a priority, turns of a quantum.
//!
//! A packet is charged to the ceiling of its leaf and of every ancestor, and to the own rate of the
//! lender and of every ancestor above it.
//!
//! Cost a packet: O(depth + priorities), plus the logarithm of the number of classes that wait for
//! tokens, in a heap. Members of a level or a class are bit sets, with one step for each factor of
//! 64.

mod accounting;
mod backlogged;
mod bucket;
mod build;
mod class;
mod modes;
mod ordered_set;
mod plan;
mod round_robin;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Instant, PacketCount};

use self::backlogged::Backlogged;
use self::class::{Bound, Class, Leaf};
use super::heap::Heap;
use crate::{Backlog, DropSink};

pub(crate) use self::plan::{Own, PRIORITIES, Plan, Slack, Tokens};

/// A tree of classes with its queues.
pub(crate) struct Sharing<P> {
    kind: &'static str,
    link_layer: LinkLayer,
    slack: Slack,
    classes: Vec<Class>,
    /// By class: its number in the configuration.
    indices: Vec<Option<u32>>,
    leaves: Vec<Leaf<P>>,
    /// By inner class: its children that may borrow from it.
    borrowers: Vec<Backlogged>,
    /// By level: the classes that can send or lend.
    lenders: Vec<Backlogged>,
    /// By level: its classes.
    levels: Vec<Vec<u32>>,
    events: Heap<Instant>,
    backlog: Backlog,
}

impl<P: Packet> Sharing<P> {
    /// Enqueues a packet in the queue of leaf `id`.
    pub(crate) fn enqueue(&mut self, id: usize, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let content_index = self.classes[id].content_index as usize;
        self.leaves[content_index].queue.enqueue(now, packet, drops);
        let ready = self.update_backlog(content_index, now);
        self.update_leaf(id, ready, now);
    }

    pub(crate) fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.handle_events(now);
        self.send_first(u8::MAX, now, drops)
    }

    /// Dequeues a packet of a leaf that has priority over others.
    pub(crate) fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.handle_events(now);
        let leaves = self.classes.iter().filter(|class| class.is_leaf());
        let last = leaves.map(|class| class.priority).max()?;
        self.send_first((1 << last) - 1, now, drops)
    }

    /// Gives each class the rates that `rate` makes of those of its plan.
    pub(crate) fn set_rates(&mut self, now: Instant, plans: &[Plan], rate: impl Fn(BitRate) -> BitRate) {
        for (class, plan) in self.classes.iter_mut().zip(plans) {
            if let (Bound::Bucket(own), Own::Rate(tokens)) = (&mut class.own, plan.own) {
                own.set_rate(now, rate(tokens.rate), tokens.burst);
            }
            if let (Some(ceil), Some(tokens)) = (&mut class.ceil, plan.ceil) {
                ceil.set_rate(now, rate(tokens.rate), tokens.burst);
            }
        }
        (0..self.classes.len()).for_each(|id| self.update_mode(id, now));
    }

    /// Handles all events due by `now`.
    fn handle_events(&mut self, now: Instant) {
        while let Some(id) = self.events.due(now) {
            if self.classes[id].active == 0 {
                self.poll_leaf(id, now);
            } else {
                self.update_mode(id, now);
            }
        }
    }

    /// Dequeues the first packet of these priorities, a bit each.
    fn send_first(&mut self, priorities: u8, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let level = self.lenders.iter().position(|backlogged| backlogged.priorities & priorities != 0)?;
            let priority = (self.lenders[level].priorities & priorities).trailing_zeros() as usize;
            let id = self.next_leaf(level, priority);
            let content_index = self.classes[id].content_index as usize;
            let packet = self.leaves[content_index].queue.dequeue(now, drops);
            let ready = self.update_backlog(content_index, now);
            if let Some(packet) = packet {
                let bytes = packet.meta().ip_bytes();
                let wire = self.link_layer.on_wire(bytes);
                self.spend_turn(id, level, priority, wire);
                self.charge(id, level, now, bytes, wire);
                self.update_leaf(id, ready, now);
                return Some(packet);
            }
            self.update_leaf(id, ready, now);
        }
    }

    /// `now` while a class can send, else the time of the next event, which may make no packet
    /// ready.
    pub(crate) fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.lenders.iter().any(|backlogged| backlogged.priorities != 0) { Some(now) } else { self.events.first() }
    }

    /// Records in the packet that it belongs to leaf `id`, by the class's number in the
    /// configuration.
    #[inline]
    pub(crate) fn note_class(&self, id: usize, packet: &mut P) {
        if let Some(number) = self.indices[id] {
            packet.meta_mut().join_class(number as usize);
        }
    }

    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Shows the backlog of each leaf, by the number of its class in the configuration.
    pub(crate) fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        for (class, index) in self.classes.iter().zip(&self.indices) {
            if let (true, Some(index)) = (class.is_leaf(), *index) {
                visit(index as usize, self.leaves[class.content_index as usize].queue.backlog());
            }
        }
    }

    /// Updates the backlog after a change in the queue of a leaf. Returns the time at which the leaf
    /// has a packet ready.
    // Inlined as `update_leaf` is.
    #[inline(always)]
    fn update_backlog(&mut self, content_index: usize, now: Instant) -> Option<Instant> {
        let leaf = &mut self.leaves[content_index];
        let (after, ready) = leaf.queue.standing(now);
        let before = core::mem::replace(&mut leaf.last_backlog, after);
        let sum = |all: u64, before: u64, after: u64| all + after - before;
        self.backlog = Backlog {
            packets: PacketCount::new(sum(
                self.backlog.packets.as_u64(),
                before.packets.as_u64(),
                after.packets.as_u64(),
            )),
            bytes: ByteCount::new(sum(self.backlog.bytes.as_u64(), before.bytes.as_u64(), after.bytes.as_u64())),
        };
        ready
    }

    /// Polls the queue of leaf `id`.
    fn poll_leaf(&mut self, id: usize, now: Instant) {
        let ready = self.leaves[self.classes[id].content_index as usize].queue.next_ready(now);
        self.update_leaf(id, ready, now);
    }

    /// Activates or deactivates leaf `id`, which has a packet ready at `ready`.
    // Runs twice a packet and nearly always changes nothing: a call would take three times the instructions.
    #[inline(always)]
    fn update_leaf(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let is_ready = ready.is_some_and(|ready| ready <= now);
        let class = &self.classes[id];
        if is_ready != (class.active == 0) && (is_ready || ready.is_none() && !self.events.has(id)) {
            // The state of the leaf is unchanged.
            return;
        }
        self.change_activity(id, ready, now);
    }

    fn change_activity(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let is_ready = ready.is_some_and(|ready| ready <= now);
        let class = &mut self.classes[id];
        if is_ready && class.active == 0 {
            class.active = 1 << class.priority;
            self.refresh_mode(id, now);
            self.attach(id, self.classes[id].active, now);
        } else if !is_ready {
            if class.active != 0 {
                self.detach(id, self.classes[id].active);
                self.classes[id].active = 0;
            }
            match ready {
                Some(ready) => self.events.set(id, ready),
                None => self.events.cancel(id),
            }
        }
    }
}
