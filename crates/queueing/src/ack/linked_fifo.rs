//! A FIFO with removal from its middle in O(1): a linked list of indices within one vector. `VecDeque` shifts items
//! to remove one, `LinkedList` has no handle to an item, and `slab` would replace the list of free slots alone.

/// Identifies an item until it is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Handle(u32);

/// A FIFO with removal. Free slots are reused, so it has no more slots than were ever in use at
/// once.
#[derive(Clone, Debug)]
pub(crate) struct LinkedFifo<T> {
    slots: Vec<Slot<T>>,
    free: Option<Handle>,
    first: Option<Handle>,
    last: Option<Handle>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Slot<T> {
    Free { next: Option<Handle> },
    Used { item: T, before: Option<Handle>, after: Option<Handle> },
}

impl<T> LinkedFifo<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), free: None, first: None, last: None, len: 0 }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn first(&self) -> Option<Handle> {
        self.first
    }

    pub(crate) fn push_back(&mut self, item: T) -> Handle {
        let slot = Slot::Used { item, before: self.last, after: None };
        let handle = if let Some(handle) = self.free {
            let Slot::Free { next } = std::mem::replace(&mut self.slots[handle.0 as usize], slot) else {
                unreachable!("the free list holds free slots");
            };
            self.free = next;
            handle
        } else {
            let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 packets in a queue");
            self.slots.push(slot);
            Handle(index)
        };
        match self.last {
            Some(last) => *self.after_mut(last) = Some(handle),
            None => self.first = Some(handle),
        }
        self.last = Some(handle);
        self.len += 1;
        handle
    }

    /// Removes the item.
    pub(crate) fn remove(&mut self, handle: Handle) -> T {
        let slot = std::mem::replace(&mut self.slots[handle.0 as usize], Slot::Free { next: self.free });
        let Slot::Used { item, before, after } = slot else {
            unreachable!("a handle is used only while its item is in the list");
        };
        self.free = Some(handle);
        match before {
            Some(before) => *self.after_mut(before) = after,
            None => self.first = after,
        }
        match after {
            Some(after) => *self.before_mut(after) = before,
            None => self.last = before,
        }
        self.len -= 1;
        item
    }

    pub(crate) fn get(&self, handle: Handle) -> &T {
        match &self.slots[handle.0 as usize] {
            Slot::Used { item, .. } => item,
            Slot::Free { .. } => unreachable!("a handle is used only while its item is in the list"),
        }
    }

    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut T {
        match &mut self.slots[handle.0 as usize] {
            Slot::Used { item, .. } => item,
            Slot::Free { .. } => unreachable!("a handle is used only while its item is in the list"),
        }
    }

    fn before_mut(&mut self, handle: Handle) -> &mut Option<Handle> {
        match &mut self.slots[handle.0 as usize] {
            Slot::Used { before, .. } => before,
            Slot::Free { .. } => unreachable!("links lead to items"),
        }
    }

    fn after_mut(&mut self, handle: Handle) -> &mut Option<Handle> {
        match &mut self.slots[handle.0 as usize] {
            Slot::Used { after, .. } => after,
            Slot::Free { .. } => unreachable!("links lead to items"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(fifo: &mut LinkedFifo<u32>) -> Vec<u32> {
        std::iter::from_fn(|| fifo.first().map(|first| fifo.remove(first))).collect()
    }

    #[test]
    fn removals_keep_the_order_of_the_others() {
        let mut fifo = LinkedFifo::new();
        let handles: Vec<_> = (0..6).map(|n| fifo.push_back(n)).collect();
        assert_eq!(fifo.remove(handles[0]), 0);
        assert_eq!(fifo.remove(handles[3]), 3);
        assert_eq!(fifo.remove(handles[5]), 5);
        fifo.push_back(6);
        assert_eq!(fifo.len(), 4);
        assert_eq!(drain(&mut fifo), [1, 2, 4, 6]);
        assert_eq!(fifo.len(), 0);
    }

    #[test]
    fn slots_are_reused() {
        let mut fifo = LinkedFifo::new();
        for n in 0..1000 {
            fifo.push_back(n);
            fifo.push_back(n);
            assert_eq!(drain(&mut fifo), [n, n]);
        }
        assert_eq!(fifo.slots.len(), 2);
    }
}
