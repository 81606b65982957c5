//! The pending set: a hierarchical timing wheel over a 64-bit clock, exact to the picosecond.
//!
//! A slot of the lowest of its 7 levels spans 4.2 us, and a level has 64 slots. Lists of the lowest level are
//! in order of time, equal times in order of insertion. Lists of the other levels are in order of insertion.
//!
//! Published: Varghese and Lauck 1987, scheme 7. Differs: the clock jumps from event to event; a slot with one event
//! releases it at once instead of moving it to a lower level; the lowest level sorts.
//!
//! Cost: push and cancel are O(1), but a push into the lowest level passes the later events of its slot. An
//! event moves to a lower level at most 6 times, and none or one time while few events share a slot. The
//! number of pending events elsewhere has no influence.

use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};

use lastmile_units::Instant;

/// Picoseconds of a slot of the lowest level, as a power of two.
const FINEST: u32 = 22;
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
/// Seven are in use. A bit of `levels` is below eight, so no access to an array of levels needs a check.
const LEVELS: usize = 8;
const _: () = assert!((64 - FINEST).div_ceil(BITS) < LEVELS as u32);

/// A pending set of events.
#[derive(Clone, Debug)]
pub struct Wheel<E> {
    /// The time of the latest event popped, or a later time before which nothing is pending.
    now: u64,
    /// A bit for each level that has events.
    levels: u8,
    /// A bit for each slot that has events, by level.
    occupied: [u64; LEVELS],
    slots: Box<[[Option<List>; SLOTS]; LEVELS]>,
    nodes: Vec<Node<E>>,
    /// The first of the list of unused nodes.
    free: Option<Handle>,
    pending: usize,
}

/// The events of a slot.
#[derive(Clone, Copy, Debug)]
struct List {
    head: Handle,
    tail: Handle,
}

/// The time in two halves: a node with an event of four bytes takes 20 bytes instead of 24.
#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: [u32; 2],
    event: E,
    next: Option<Handle>,
    prev: Option<Handle>,
}

impl<E> Node<E> {
    #[inline]
    fn time(&self) -> u64 {
        u64::from(self.time[1]) << 32 | u64::from(self.time[0])
    }
}

/// A pending event, valid until it is popped or cancelled: the number of its node, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(NonZeroU32);

impl Handle {
    /// The handle of the node at this index.
    fn at(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("fewer than 2^32 events are pending"))
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

impl<E: Copy> Default for Wheel<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Wheel<E> {
    /// An empty set at the beginning of the clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Box::new([[None; SLOTS]; LEVELS]),
            nodes: Vec::new(),
            free: None,
            pending: 0,
        }
    }

    /// The number of pending events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending
    }

    /// True if no event is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Adds an event at `time`, which must not be before the latest event popped.
    // Not inlined: many callers push, and most of their calls do not.
    #[inline(never)]
    pub fn push(&mut self, time: Instant, event: E) -> Handle {
        let time = time.as_ps();
        debug_assert!(time >= self.now, "an event in the past: {time} ps is before {} ps", self.now);
        let time = time.max(self.now);
        let handle = self.free.unwrap_or_else(|| self.grow(event));
        let node = &mut self.nodes[handle.index()];
        self.free = node.next;
        *node = Node { time: [time as u32, (time >> 32) as u32], event, next: None, prev: None };
        self.pending += 1;
        self.link(handle, time);
        handle
    }

    /// Adds an unused node.
    #[cold]
    fn grow(&mut self, event: E) -> Handle {
        self.nodes.push(Node { time: [0; 2], event, next: None, prev: None });
        Handle::at(self.nodes.len() - 1)
    }

    /// The time of a pending event.
    #[inline]
    #[must_use]
    pub fn time(&self, handle: Handle) -> Instant {
        Instant::from_ps(self.nodes[handle.index()].time())
    }

    /// Removes a pending event.
    #[inline]
    pub fn cancel(&mut self, handle: Handle) {
        let Node { prev, next, .. } = self.nodes[handle.index()];
        let (level, slot) = self.position(self.nodes[handle.index()].time());
        let Some(list) = &mut self.slots[level][slot] else { return };
        let Some(prev) = prev else {
            let list = *list;
            self.take_head(level, slot, list);
            return;
        };
        self.nodes[prev.index()].next = next;
        match next {
            Some(next) => self.nodes[next.index()].prev = Some(prev),
            None => list.tail = prev,
        }
        self.release(handle);
    }

    /// Takes the earliest event, if it is due by `limit`. After an event, no event may be added before its time; after
    /// `None`, none before `limit`.
    #[inline]
    pub fn pop(&mut self, limit: Instant) -> Option<(Instant, E)> {
        let limit = limit.as_ps();
        while let Some(levels) = NonZeroU8::new(self.levels) {
            let level = levels.trailing_zeros() as usize;
            let slot = NonZeroU64::new(self.occupied[level])?.trailing_zeros() as usize;
            let List { head, tail } = self.slots[level][slot]?;
            let time = self.nodes[head.index()].time();
            if level == 0 || head == tail {
                if time > limit {
                    return None;
                }
                self.now = time;
                return Some((Instant::from_ps(time), self.take_head(level, slot, List { head, tail })));
            }
            let shift = FINEST + BITS * level as u32;
            let start = time >> shift << shift;
            if start > limit {
                return None;
            }
            self.cascade(level, slot, head, start);
        }
        None
    }

    /// Spreads the events of a slot over the lower levels.
    fn cascade(&mut self, level: usize, slot: usize, head: Handle, start: u64) {
        self.clear(level, slot);
        self.now = start;
        let mut next = Some(head);
        while let Some(handle) = next {
            let node = &mut self.nodes[handle.index()];
            let time = node.time();
            next = node.next.take();
            node.prev = None;
            self.link(handle, time);
        }
    }

    /// The level and the slot of a time. A pending event keeps them until its slot is cascaded: the clock
    /// moves on within one slot of each level, and a slot is emptied before the clock enters it.
    #[inline]
    fn position(&self, time: u64) -> (usize, usize) {
        // The highest digit in which the time differs from now is the level, and the value of that digit the slot.
        let differs = 63 - (((time ^ self.now) >> FINEST) | 1).leading_zeros();
        let level = differs / BITS;
        (level as usize, ((time >> (FINEST + BITS * level)) as usize) % SLOTS)
    }

    /// Adds a node to the slot of its time: in the lowest level behind the last event that is not later, else
    /// at the end.
    #[inline(always)]
    fn link(&mut self, handle: Handle, time: u64) {
        let (level, slot) = self.position(time);
        let Some(list) = &mut self.slots[level][slot] else {
            self.slots[level][slot] = Some(List { head: handle, tail: handle });
            self.occupied[level] |= 1 << slot;
            self.levels |= 1 << level;
            return;
        };
        let mut before = Some(list.tail);
        let mut after = None;
        while level == 0
            && let Some(later) = before
            && self.nodes[later.index()].time() > time
        {
            after = before;
            before = self.nodes[later.index()].prev;
        }
        match before {
            Some(before) => self.nodes[before.index()].next = Some(handle),
            None => list.head = handle,
        }
        match after {
            Some(after) => self.nodes[after.index()].prev = Some(handle),
            None => list.tail = handle,
        }
        let node = &mut self.nodes[handle.index()];
        (node.prev, node.next) = (before, after);
    }

    /// Takes the first node out of a slot.
    #[inline]
    fn take_head(&mut self, level: usize, slot: usize, List { head, tail }: List) -> E {
        let Node { event, next, .. } = self.nodes[head.index()];
        self.release(head);
        match next {
            Some(next) => {
                self.nodes[next.index()].prev = None;
                self.slots[level][slot] = Some(List { head: next, tail });
            }
            None => self.clear(level, slot),
        }
        event
    }

    /// Adds a node to the unused ones.
    #[inline]
    fn release(&mut self, handle: Handle) {
        self.nodes[handle.index()].next = self.free;
        self.free = Some(handle);
        self.pending -= 1;
    }

    /// Empties a slot.
    #[inline]
    fn clear(&mut self, level: usize, slot: usize) {
        self.slots[level][slot] = None;
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    #[test]
    fn equal_times_come_out_in_the_order_of_insertion() {
        let mut wheel = Wheel::new();
        for event in 0..200_u32 {
            wheel.push(at(1_000_000 + u64::from(event % 2)), event);
        }
        let order: Vec<u32> = std::iter::from_fn(|| wheel.pop(Instant::MAX)).map(|(_, event)| event).collect();
        let (even, odd) = order.split_at(100);
        assert!(even.iter().all(|e| e % 2 == 0) && even.is_sorted());
        assert!(odd.iter().all(|e| e % 2 == 1) && odd.is_sorted());
    }

    #[test]
    fn the_whole_clock_can_be_used() {
        let mut wheel = Wheel::new();
        wheel.push(Instant::MAX, 2);
        wheel.push(at(0), 1);
        assert_eq!(wheel.pop(Instant::MAX), Some((at(0), 1)));
        assert_eq!(wheel.pop(at(u64::MAX - 1)), None);
        assert_eq!(wheel.pop(Instant::MAX), Some((Instant::MAX, 2)));
        assert!(wheel.is_empty());
    }

    proptest! {
        /// Any mix of pushes, cancellations and pops, with and without limits, agrees with a heap of (time, insertion
        /// number).
        #[test]
        fn agrees_with_a_heap(steps in prop::collection::vec((0_u32..44, any::<u64>(), 0_u8..5), 1..400)) {
            let mut wheel = Wheel::new();
            let mut heap = BinaryHeap::new();
            let mut handles = std::collections::BTreeMap::new();
            let mut now = 0_u64;
            for (number, (shift, random, kind)) in steps.into_iter().enumerate() {
                let span = random & ((1 << shift) - 1);
                match kind {
                    0 | 1 => {
                        handles.insert(number, wheel.push(at(now + span), number));
                        heap.push(Reverse((now + span, number)));
                    }
                    2 => {
                        let expected = heap.pop().map(|Reverse((time, number))| (at(time), number));
                        prop_assert_eq!(wheel.pop(Instant::MAX), expected);
                        if let Some((time, number)) = expected {
                            now = time.as_ps();
                            handles.remove(&number);
                        }
                    }
                    3 => {
                        if let Some((&victim, &handle)) = handles.iter().nth(random as usize % handles.len().max(1)) {
                            let time = heap.iter().find(|Reverse((_, number))| *number == victim).unwrap().0.0;
                            prop_assert_eq!(wheel.time(handle), at(time));
                            wheel.cancel(handle);
                            handles.remove(&victim);
                            heap.retain(|Reverse((_, number))| *number != victim);
                        }
                    }
                    _ => {
                        let limit = now + span;
                        let due = heap.peek().is_some_and(|Reverse((time, _))| *time <= limit);
                        let expected = if due { heap.pop().map(|Reverse((t, n))| (at(t), n)) } else { None };
                        prop_assert_eq!(wheel.pop(at(limit)), expected);
                        now = expected.map_or(limit, |(time, _)| time.as_ps());
                        if let Some((_, number)) = expected {
                            handles.remove(&number);
                        }
                    }
                }
                prop_assert_eq!(wheel.len(), heap.len());
            }
        }
    }
}
