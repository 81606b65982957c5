//! Link sharing by a tree of classes with exact token accounting: what HTB and CBQ have in common.
//!
//! Published: Floyd and Van Jacobson 1995, formal link-sharing guidelines; Devera, "Hierarchical token bucket theory", whose
//! modes, levels and order this has.
//!
//! A class *can send* while it owes no tokens, *may borrow* from the class above while it is held to its ceiling alone, or
//! *cannot send*. Leaves that can send come first, then those that borrow from the lowest classes that can lend; on
//! each level the most urgent priority; within it turns of a quantum. A packet is charged to all that it passes: its ceiling in
//! every class up to the root, its rate from the lender on.
//!
//! Cost a packet: O(depth + priorities), beside the logarithm of the classes that wait for tokens, in a heap. Members of a
//! level or a class are kept in sets of bits, which cost a step for each factor of 64.

mod accounts;
mod bucket;
mod build;
mod class;
mod events;
mod modes;
mod plan;
mod set;
mod turns;
mod waiting;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Instant, PacketCount};

use self::class::{Class, Leaf};
use self::events::Events;
use self::waiting::Waiting;
use crate::{Backlog, DropSink};

pub(crate) use self::plan::{Own, PRIORITIES, Plan, Slack, Tokens};

/// A tree of classes at work.
pub(crate) struct Sharing<P> {
    kind: &'static str,
    link_layer: LinkLayer,
    slack: Slack,
    classes: Vec<Class>,
    /// The configuration's numbers of the classes.
    indices: Vec<Option<u32>>,
    leaves: Vec<Leaf<P>>,
    /// The children of each inner class that may borrow from it.
    borrowers: Vec<Waiting>,
    /// By level: the classes that can send or lend.
    lenders: Vec<Waiting>,
    /// By level: its classes.
    levels: Vec<Vec<u32>>,
    events: Events,
    backlog: Backlog,
}

impl<P: Packet> Sharing<P> {
    /// Hands a packet to the queue of leaf `id`.
    pub(crate) fn enqueue(&mut self, id: usize, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let content = self.classes[id].content as usize;
        self.leaves[content].queue.enqueue(now, packet, drops);
        let ready = self.account(content, now);
        self.join_or_leave(id, ready, now);
    }

    pub(crate) fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.catch_up(now);
        self.send_first(u8::MAX, now, drops)
    }

    /// The same of the leaves that go before others.
    pub(crate) fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        self.catch_up(now);
        let leaves = self.classes.iter().filter(|class| class.is_leaf());
        let last = leaves.map(|class| class.priority).max()?;
        self.send_first((1 << last) - 1, now, drops)
    }

    /// Does what was to happen by `now`.
    fn catch_up(&mut self, now: Instant) {
        while let Some(id) = self.events.due(now) {
            if self.classes[id].active == 0 {
                self.look_at(id, now);
            } else {
                self.judge(id, now);
            }
        }
    }

    /// Sends the first packet of these priorities, a bit each.
    fn send_first(&mut self, priorities: u8, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        loop {
            let level = self.lenders.iter().position(|waiting| waiting.priorities & priorities != 0)?;
            let priority = (self.lenders[level].priorities & priorities).trailing_zeros() as usize;
            let id = self.pick(level, priority);
            let content = self.classes[id].content as usize;
            let packet = self.leaves[content].queue.dequeue(now, drops);
            let ready = self.account(content, now);
            if let Some(packet) = packet {
                let bytes = packet.meta().ip_bytes();
                let wire = self.link_layer.on_wire(bytes);
                self.spend_turn(id, level, priority, wire);
                self.charge(id, level, now, bytes, wire);
                self.join_or_leave(id, ready, now);
                return Some(packet);
            }
            self.join_or_leave(id, ready, now);
        }
    }

    /// `now` while a class can send, or else when the first class changes, which may make nothing ready yet.
    pub(crate) fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.lenders.iter().any(|waiting| waiting.priorities != 0) { Some(now) } else { self.events.first() }
    }

    /// Notes in the packet that it goes to leaf `id`, by the configuration's number of the class.
    #[inline]
    pub(crate) fn note_class(&self, id: usize, packet: &mut P) {
        if let Some(number) = self.indices[id] {
            packet.meta_mut().join_class(number as usize);
        }
    }

    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue of a leaf may hold more or less than before; returns when it has something to send.
    // As `join_or_leave`.
    #[inline(always)]
    fn account(&mut self, content: usize, now: Instant) -> Option<Instant> {
        let leaf = &mut self.leaves[content];
        let (after, ready) = leaf.queue.standing(now);
        let before = core::mem::replace(&mut leaf.held, after);
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

    /// Asks the queue of leaf `id` whether it has something to send.
    fn look_at(&mut self, id: usize, now: Instant) {
        let ready = self.leaves[self.classes[id].content as usize].queue.next_ready(now);
        self.join_or_leave(id, ready, now);
    }

    /// Leaf `id`, which has something to send at `ready`, joins or leaves those that wait for a turn.
    // Twice a packet, and nearly always there is nothing to do: out of line it takes three times the instructions.
    #[inline(always)]
    fn join_or_leave(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let awake = ready.is_some_and(|ready| ready <= now);
        let class = &self.classes[id];
        if awake != (class.active == 0) && (awake || ready.is_none() && !self.events.has(id)) {
            // As before.
            return;
        }
        self.wake_or_rest(id, ready, now);
    }

    fn wake_or_rest(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let awake = ready.is_some_and(|ready| ready <= now);
        let class = &mut self.classes[id];
        if awake && class.active == 0 {
            class.active = 1 << class.priority;
            self.settle(id, now);
            self.attach(id, self.classes[id].active, now);
        } else if !awake {
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
