//! A hierarchical timing wheel: 11 levels of 64 slots over a 64-bit clock, exact to the picosecond.
//!
//! After Varghese and Lauck 1987, scheme 7. Differs: the clock jumps from event to event instead of ticking; a slot that
//! holds one event gives it up at once, without cascading it down; slots are lists in insertion order, so equal times come
//! out in the order in which they went in.
//!
//! Cost: push and cancel O(1); pop amortised O(levels) at worst, and near O(1) while few events share a slot. Independent
//! of how many are pending.

use lastmile_units::Instant;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64_usize.div_ceil(BITS as usize);
const NONE: u32 = u32::MAX;

/// A pending set of events.
#[derive(Clone, Debug)]
pub struct Wheel<E> {
    /// The time of the latest event popped, or a point after it before which nothing is pending.
    now: u64,
    /// Which levels hold anything.
    levels: u16,
    /// Which slots of each level hold anything.
    occupied: [u64; LEVELS],
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    nodes: Vec<Node<E>>,
    /// Head of the list of unused nodes.
    free: u32,
    pending: usize,
}

/// A list of events, oldest first.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    tail: u32,
}

/// The time in two halves: a node with an event of four bytes takes 20, not 24.
#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: [u32; 2],
    event: E,
    next: u32,
    /// Of no meaning in the head of a list.
    prev: u32,
}

impl<E> Node<E> {
    #[inline]
    fn time(&self) -> u64 {
        u64::from(self.time[1]) << 32 | u64::from(self.time[0])
    }
}

/// A pending event, until it comes or is cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(u32);

impl Handle {
    /// No event: four bytes where an option would take eight.
    pub const NONE: Self = Self(NONE);
}

impl<E: Copy> Default for Wheel<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Wheel<E> {
    /// Nothing pending, at the beginning of the clock.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: 0,
            levels: 0,
            occupied: [0; LEVELS],
            slots: Box::new([[Slot { head: NONE, tail: NONE }; SLOTS]; LEVELS]),
            nodes: Vec::new(),
            free: NONE,
            pending: 0,
        }
    }

    /// How many events are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending
    }

    /// True when nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Adds an event at `time`, which must not lie before the latest event popped.
    #[inline]
    pub fn push(&mut self, time: Instant, event: E) -> Handle {
        let time = time.as_ps();
        debug_assert!(time >= self.now, "an event in the past: {time} ps is before {} ps", self.now);
        let time = time.max(self.now);
        let node = Node { time: [time as u32, (time >> 32) as u32], event, next: NONE, prev: NONE };
        let index = if self.free == NONE {
            let index = u32::try_from(self.nodes.len()).expect("fewer than 2^32 events are pending");
            self.nodes.push(node);
            index
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.pending += 1;
        self.link(index, time);
        Handle(index)
    }

    /// When a pending event comes; the end of the clock for [`Handle::NONE`].
    #[inline]
    #[must_use]
    pub fn time(&self, handle: Handle) -> Instant {
        self.nodes.get(handle.0 as usize).map_or(Instant::MAX, |node| Instant::from_ps(node.time()))
    }

    /// Takes back a pending event. Nothing happens for [`Handle::NONE`].
    #[inline]
    pub fn cancel(&mut self, handle: Handle) {
        let Some(&node) = self.nodes.get(handle.0 as usize) else { return };
        let (level, slot) = self.position(node.time());
        let Slot { head, tail } = self.slots[level][slot];
        self.pending -= 1;
        if head == handle.0 {
            self.unlink_head(level, slot, head, node.next);
            return;
        }
        self.nodes[node.prev as usize].next = node.next;
        if tail == handle.0 {
            self.slots[level][slot].tail = node.prev;
        } else {
            self.nodes[node.next as usize].prev = node.prev;
        }
        self.nodes[handle.0 as usize].next = self.free;
        self.free = handle.0;
    }

    /// Takes the earliest event, if it is due by `limit`. Afterwards no event may be added before the later of its time and
    /// `limit` when nothing was due.
    #[inline]
    pub fn pop(&mut self, limit: Instant) -> Option<(Instant, E)> {
        let limit = limit.as_ps();
        while self.levels != 0 {
            let level = self.levels.trailing_zeros() as usize;
            let slot = self.occupied[level].trailing_zeros() as usize;
            let Slot { head, tail } = self.slots[level][slot];
            let node = self.nodes[head as usize];
            let time = node.time();
            if level == 0 || head == tail {
                if time > limit {
                    return None;
                }
                self.unlink_head(level, slot, head, node.next);
                self.now = time;
                self.pending -= 1;
                return Some((Instant::from_ps(time), node.event));
            }
            let shift = BITS * level as u32;
            let start = time >> shift << shift;
            if start > limit {
                return None;
            }
            self.cascade(level, slot, head, start);
        }
        None
    }

    /// Spreads the events of a slot over the levels below.
    fn cascade(&mut self, level: usize, slot: usize, head: u32, start: u64) {
        self.slots[level][slot] = Slot { head: NONE, tail: NONE };
        self.clear(level, slot);
        self.now = start;
        let mut index = head;
        while index != NONE {
            let node = &mut self.nodes[index as usize];
            let (time, next) = (node.time(), node.next);
            node.next = NONE;
            self.link(index, time);
            index = next;
        }
    }

    /// The level and the slot where a time belongs. What is pending stays there until the slot is cascaded: the clock
    /// moves on within a slot of each level, and no event is left in the one that it moves into.
    #[inline]
    fn position(&self, time: u64) -> (usize, usize) {
        // The highest digit in which the time differs from now names the level, that digit names the slot.
        let differs = 63 - ((time ^ self.now) | 1).leading_zeros();
        let level = (differs / BITS) as usize;
        (level, ((time >> (BITS * level as u32)) as usize) % SLOTS)
    }

    /// Appends a node to the slot where its time belongs.
    #[inline]
    fn link(&mut self, index: u32, time: u64) {
        let (level, digit) = self.position(time);
        let slot = &mut self.slots[level][digit];
        if slot.head == NONE {
            slot.head = index;
            self.occupied[level] |= 1 << digit;
            self.levels |= 1 << level;
        } else {
            self.nodes[slot.tail as usize].next = index;
            self.nodes[index as usize].prev = slot.tail;
        }
        slot.tail = index;
    }

    #[inline]
    fn unlink_head(&mut self, level: usize, slot: usize, head: u32, next: u32) {
        self.slots[level][slot].head = next;
        if next == NONE {
            self.slots[level][slot].tail = NONE;
            self.clear(level, slot);
        }
        self.nodes[head as usize].next = self.free;
        self.free = head;
    }

    #[inline]
    fn clear(&mut self, level: usize, slot: usize) {
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
                        wheel.cancel(Handle::NONE);
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
