//! Times at which classes change, or by which they are served: a heap with at most one time for each class, which can
//! be changed or removed. `BinaryHeap` can neither change nor remove the time of a class.
//!
//! Cost: the logarithm of the number of classes in the heap.

/// At most one time for each class. `T` is a time of the clock, or a virtual time.
#[derive(Clone, Debug)]
pub(super) struct Heap<T> {
    /// A binary heap, the earliest first; equal times by class.
    heap: Vec<(T, u32)>,
    /// By class: its position in the heap, while it has a time.
    positions: Vec<Option<u32>>,
}

impl<T: Copy + Ord> Heap<T> {
    /// An empty heap for `classes` classes.
    pub(super) fn new(classes: usize) -> Self {
        Self { heap: Vec::new(), positions: vec![None; classes] }
    }

    /// The earliest time.
    #[inline]
    pub(super) fn first(&self) -> Option<T> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// The class with the earliest time, if that is not after `now`.
    #[inline]
    pub(super) fn due(&self, now: T) -> Option<usize> {
        self.heap.first().filter(|(at, _)| *at <= now).map(|(_, class)| *class as usize)
    }

    /// The class with the earliest time.
    #[inline]
    pub(super) fn first_class(&self) -> Option<usize> {
        self.heap.first().map(|(_, class)| *class as usize)
    }

    /// Sets the time of a class, in place of an earlier one.
    pub(super) fn set(&mut self, class: usize, at: T) {
        let entry = (at, class as u32);
        match self.positions[class] {
            None => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1);
            }
            Some(position) => {
                let position = position as usize;
                let before = std::mem::replace(&mut self.heap[position], entry);
                if entry < before {
                    self.rise(position);
                } else if entry > before {
                    self.sink(position);
                }
            }
        }
    }

    /// Whether the class has a time.
    #[inline]
    pub(super) fn has(&self, class: usize) -> bool {
        self.positions[class].is_some()
    }

    /// Removes the time of a class, if it has one.
    #[inline]
    pub(super) fn cancel(&mut self, class: usize) {
        if let Some(position) = self.positions[class].take() {
            self.take_out(position as usize);
        }
    }

    fn take_out(&mut self, position: usize) {
        let removed = self.heap.swap_remove(position);
        if let Some(&moved) = self.heap.get(position) {
            if moved < removed {
                self.rise(position);
            } else {
                self.sink(position);
            }
        }
    }

    fn rise(&mut self, mut position: usize) {
        let entry = self.heap[position];
        while position > 0 {
            let above = (position - 1) / 2;
            if self.heap[above] <= entry {
                break;
            }
            self.put(position, self.heap[above]);
            position = above;
        }
        self.put(position, entry);
    }

    fn sink(&mut self, mut position: usize) {
        let entry = self.heap[position];
        loop {
            let mut below = 2 * position + 1;
            if below + 1 < self.heap.len() && self.heap[below + 1] < self.heap[below] {
                below += 1;
            }
            if below >= self.heap.len() || self.heap[below] >= entry {
                break;
            }
            self.put(position, self.heap[below]);
            position = below;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: (T, u32)) {
        self.heap[position] = entry;
        self.positions[entry.1 as usize] = Some(position as u32);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lastmile_units::Instant;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with a sorted map.
        #[test]
        fn the_earliest_is_first_whatever_moves(
            steps in prop::collection::vec((0..20_usize, prop::option::weighted(0.8, 0..50_u64)), 1..200),
        ) {
            let (mut events, mut model) = (Heap::new(20), BTreeMap::new());
            for (class, at) in steps {
                if let Some(at) = at {
                    events.set(class, Instant::from_ps(at));
                    model.insert(class, at);
                } else {
                    events.cancel(class);
                    model.remove(&class);
                }
                let earliest = model.iter().map(|(class, at)| (*at, *class)).min();
                prop_assert_eq!(events.first(), earliest.map(|(at, _)| Instant::from_ps(at)));
                prop_assert_eq!(events.first_class(), earliest.map(|(_, class)| class));
                prop_assert_eq!(events.due(Instant::MAX), earliest.map(|(_, class)| class));
                if let Some((at, class)) = earliest {
                    prop_assert_eq!(events.due(Instant::from_ps(at)), Some(class));
                    prop_assert_eq!(at.checked_sub(1).and_then(|at| events.due(Instant::from_ps(at))), None);
                }
            }
        }
    }
}
