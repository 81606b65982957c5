//! When which class changes: a heap of times in which every class has at most one, which can be moved.
//!
//! Cost: the logarithm of the classes that wait.

use lastmile_units::Instant;

const NOWHERE: u32 = u32::MAX;

/// A time for each class that has one.
#[derive(Clone, Debug)]
pub(super) struct Events {
    /// A binary heap, the earliest first; equal times by class.
    heap: Vec<(Instant, u32)>,
    /// Where each class stands in the heap.
    places: Vec<u32>,
}

impl Events {
    /// Nothing, for so many classes.
    pub(super) fn new(classes: usize) -> Self {
        Self { heap: Vec::new(), places: vec![NOWHERE; classes] }
    }

    /// The earliest time.
    pub(super) fn first(&self) -> Option<Instant> {
        self.heap.first().map(|(at, _)| *at)
    }

    /// The class whose time is the earliest, if it has come.
    #[inline]
    pub(super) fn due(&self, now: Instant) -> Option<usize> {
        self.heap.first().filter(|(at, _)| *at <= now).map(|(_, class)| *class as usize)
    }

    /// Gives the class this time and no other.
    pub(super) fn set(&mut self, class: usize, at: Instant) {
        let entry = (at, class as u32);
        match self.places[class] {
            NOWHERE => {
                self.heap.push(entry);
                self.rise(self.heap.len() - 1);
            }
            place => {
                let place = place as usize;
                let before = std::mem::replace(&mut self.heap[place], entry);
                if entry < before {
                    self.rise(place);
                } else if entry > before {
                    self.sink(place);
                }
            }
        }
    }

    /// Whether the class has a time.
    #[inline]
    pub(super) fn has(&self, class: usize) -> bool {
        self.places[class] != NOWHERE
    }

    /// Takes the class's time away, if it has one.
    #[inline]
    pub(super) fn cancel(&mut self, class: usize) {
        if self.has(class) {
            self.take_out(class);
        }
    }

    fn take_out(&mut self, class: usize) {
        let place = std::mem::replace(&mut self.places[class], NOWHERE) as usize;
        let removed = self.heap.swap_remove(place);
        if let Some(&moved) = self.heap.get(place) {
            if moved < removed {
                self.rise(place);
            } else {
                self.sink(place);
            }
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.heap[above] <= entry {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let mut below = 2 * place + 1;
            if below + 1 < self.heap.len() && self.heap[below + 1] < self.heap[below] {
                below += 1;
            }
            if below >= self.heap.len() || self.heap[below] >= entry {
                break;
            }
            self.put(place, self.heap[below]);
            place = below;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: (Instant, u32)) {
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a sorted map.
        #[test]
        fn the_earliest_is_first_whatever_moves(
            steps in prop::collection::vec((0..20_usize, prop::option::weighted(0.8, 0..50_u64)), 1..200),
        ) {
            let (mut events, mut model) = (Events::new(20), BTreeMap::new());
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
                prop_assert_eq!(events.due(Instant::MAX), earliest.map(|(_, class)| class));
                if let Some((at, class)) = earliest {
                    prop_assert_eq!(events.due(Instant::from_ps(at)), Some(class));
                    prop_assert_eq!(at.checked_sub(1).and_then(|at| events.due(Instant::from_ps(at))), None);
                }
            }
        }
    }
}
